#include "symbolize/elf/dwarf_lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <deque>
#include <unordered_map>
#include <utility>

#include "symbolize/elf/dwarf_file.h"
#include "symbolize/elf/line_sums.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/names/function_ranges.h"

namespace tacho::symbolize {
namespace {

// The directory of an open file, with a slash, as libdw determines it; empty when unknown.
std::string folder_of(int fd) {
  std::array<char, PATH_MAX> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  if (size <= 0) return {};
  const std::string path(target.data(), static_cast<std::size_t>(size));
  return path.substr(0, path.rfind('/') + 1);
}

enum class PathCheck : std::uint8_t { Missing, Safe, Unsafe };

// Whether libdw may open `path`. Safe: a regular file below `root` (an empty `root` allows all directories),
// but none of /proc or /sys.
PathCheck check_path(const std::string& path, const std::string& root) {
  const format::Fd seen(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!seen || ::fstat(seen.get(), &status) != 0) return PathCheck::Missing;
  if (!S_ISREG(status.st_mode) || is_pseudo_file(seen.get())) return PathCheck::Unsafe;
  return root.empty() || is_below(path, root) ? PathCheck::Safe : PathCheck::Unsafe;
}

constexpr int kLongestReference = 100;  // DIEs from a concrete function to its name
constexpr std::uint32_t kNone = InlineFunction::kNone;

std::string_view view_of(const char* text) { return text ? std::string_view(text) : std::string_view{}; }

struct Function : InlineFunction {
  Dwarf_Die die{};
  bool is_inlined = false;
  bool is_named = false;  // name, call_file and call_line were read
};

// Split DWARF inside the object file (-gsplit-dwarf=single), in an image of its own for libdw: the .dwo
// sections of the object, and .debug_addr and .debug_ranges of the linked file, to which they have indexes.
// From the object itself libdw would read the skeleton.
struct SingleSplit {
  DebugImage image;
  OwnedDwarf dwarf;
};

struct Unit {
  Dwarf_Die die{};      // in the file itself; of split DWARF: the skeleton unit
  Dwarf_Addr base = 0;  // of a SingleSplit: base address of its range lists
  const SingleSplit* single = nullptr;
  bool is_skeleton = false;
  bool is_read = false;
  Dwarf_Die functions_die{};  // the unit with its functions
  std::vector<Function> functions;
  RangeIndex by_address;
  Dwarf_Lines* lines = nullptr;
  std::size_t line_count = 0;
  bool has_last_lines = false;  // they are in State::last_lines
};

// Bytes of padding before the ranges: to libdw, offset 0 means "start of iteration".
constexpr std::uint64_t kBeforeRanges = 16;

// Offset of the range list of an entry in a SingleSplit; 0: it has none.
std::ptrdiff_t list_of_ranges(Dwarf_Die* die, const DebugImage& image) {
  Dwarf_Attribute attribute;
  if (!dwarf_attr(die, DW_AT_ranges, &attribute)) return 0;
  if (dwarf_whatform(&attribute) != DW_FORM_rnglistx) {  // .debug_ranges of DWARF 4
    const auto offset = number_of(*die, DW_AT_ranges);
    return offset ? static_cast<std::ptrdiff_t>(*offset + kBeforeRanges) : 0;
  }
  const format::Bytes section = image.section(".debug_rnglists");
  std::uint64_t number = 0;
  for (unsigned i = 0; i < 5; ++i) {  // LEB128; libdw saw that it ends within the unit
    number |= std::uint64_t{attribute.valp[i] & 0x7fU} << (7 * i);
    if ((attribute.valp[i] & 0x80) == 0) break;
  }
  constexpr std::uint64_t kHeader = 12, kOffset = 4;
  if (section.size() < kHeader || number >= (section.size() - kHeader) / kOffset) return 0;
  format::Cursor in(section.subspan(static_cast<std::size_t>(kHeader + number * kOffset)), image.order());
  return static_cast<std::ptrdiff_t>(kHeader + in.u32());
}

// Reads the ranges of an entry, limited by `budget`. `single`: it is in split DWARF with the base address
// `base`.
void read_ranges(Dwarf_Die* die, DwarfBudget& budget, AddressRanges& ranges,
                 const SingleSplit* single = nullptr, Dwarf_Addr base = 0) {
  ranges.clear();
  Dwarf_Addr start = 0, end = 0;
  std::ptrdiff_t offset = single != nullptr ? list_of_ranges(die, single->image) : 0;
  for (; budget.ranges > 0; --budget.ranges) {
    const std::ptrdiff_t next = dwarf_ranges(die, offset, &base, &start, &end);
    if (next <= 0 || next <= offset) return;
    offset = next;
    if (start < end) add_range(ranges, start, end);
  }
}

bool is_function(int tag) {
  return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_entry_point;
}

}  // namespace

struct DwarfLines::State {
  explicit State(DwarfFile file_dwarf) : dwarf(std::move(file_dwarf)) {}

  DwarfFile dwarf;
  // The file once more, opened by libdw itself for split DWARF: it looks for .dwo files relative to its path.
  format::Fd file;
  OwnedElf path_elf;
  OwnedDwarf path_dwarf;
  std::string root;
  std::string folder;
  bool is_indexed = false;
  std::string missing_reason;  // the first part that could not be read
  bool left_out = false;
  std::vector<Unit> units;
  RangeIndex by_address;
  AddressRanges scratch;
  DwarfBudget budget;
  LineTables line_tables;
  std::optional<LineSums> sums;                                    // read when first needed
  std::unordered_map<std::string_view, std::uint32_t> last_lines;  // by file, of units with has_last_lines
  std::deque<SingleSplit> singles;
  std::uint64_t single_bytes = std::uint64_t{1} << 30;  // bytes of object files that may still be copied

  void note_missing(std::string what) {
    if (missing_reason.empty()) missing_reason = std::move(what);
  }
  void note_left_out(std::string what) {
    note_missing(std::move(what));
    left_out = true;
  }

  std::string_view split_name(Unit& unit) const {
    const std::string_view name = dwarf.text(unit.die, DW_AT_dwo_name);
    return name.empty() ? dwarf.text(unit.die, DW_AT_GNU_dwo_name) : name;
  }

  // The paths at which libdw looks for the .dwo file: in the file's folder, then where it was compiled.
  std::array<std::string, 2> dwo_paths(Unit& unit) const {
    const auto joined = [](std::string_view before, std::string_view after) {
      return after.starts_with('/') ? std::string(after) : std::string(before) + "/" + std::string(after);
    };
    const std::string_view name = split_name(unit);
    return {joined(folder, name), joined(joined(folder, dwarf.text(unit.die, DW_AT_comp_dir)), name)};
  }

  // Whether libdw would find the .dwo file, which it opens itself, and opens nothing unsafe: the paths come
  // from an untrusted file.
  bool may_open_dwo(Unit& unit) const {
    if (split_name(unit).empty() || folder.empty()) return false;
    const auto [beside, built] = dwo_paths(unit);
    const PathCheck checks[] = {check_path(beside, root), check_path(built, root)};
    return std::ranges::count(checks, PathCheck::Unsafe) == 0 &&
           std::ranges::count(checks, PathCheck::Safe) > 0;
  }

  std::optional<Dwarf_Die> split_part(Unit& unit) {
    if (!unit.is_skeleton) return std::nullopt;
    if (!may_open_dwo(unit)) {
      note_missing("its .dwo file " + std::string(split_name(unit)) +
                   " is neither in its folder nor where it was compiled");
      return std::nullopt;
    }
    if (!path_dwarf) {
      path_elf.reset(elf_begin(file.get(), ELF_C_READ, nullptr));
      if (path_elf) path_dwarf.reset(dwarf_begin_elf(path_elf.get(), DWARF_C_READ, nullptr));
    }
    Dwarf_Die same{}, split{};
    if (!path_dwarf || !dwarf_offdie(path_dwarf.get(), dwarf_dieoffset(&unit.die), &same))
      return std::nullopt;
    const int found = dwarf_cu_info(same.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr);
    if (found == 0 && split.addr != nullptr) return split;
    if (const auto single = single_part(unit)) return single;
    note_missing("its .dwo file " + std::string(split_name(unit)) +
                 " belongs to another unit or cannot be read");
    return std::nullopt;
  }

  std::optional<Dwarf_Die> single_part(Unit& unit) {
    for (const std::string& path : dwo_paths(unit))
      if (check_path(path, root) == PathCheck::Safe)
        if (const auto found = open_single(unit, path)) return found;
    return std::nullopt;
  }

  std::optional<Dwarf_Die> open_single(Unit& unit, const std::string& path) {
    const format::Fd object(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    const auto whole = object ? DebugImage::read(object) : Result<DebugImage>(Error{"no longer exists"});
    if (!whole || whole->size() > single_bytes) return std::nullopt;
    single_bytes -= whole->size();
    const auto number = [&](unsigned name) { return number_of(unit.die, name).value_or(0); };
    const Dwarf_Word address_base =
        number(dwarf_hasattr(&unit.die, DW_AT_addr_base) ? DW_AT_addr_base : DW_AT_GNU_addr_base);
    const auto linked = [&](std::string_view name, Dwarf_Word from) {
      const format::Bytes all = dwarf.image().section(name);
      return all.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(from, all.size())));
    };
    std::vector<DebugImage::Section> sections;
    for (const char* const name : {".debug_info", ".debug_abbrev", ".debug_str", ".debug_str_offsets",
                                   ".debug_line", ".debug_rnglists"}) {
      const format::Bytes bytes = whole->section(std::string(name) + ".dwo");
      if (!bytes.empty()) sections.push_back({name, bytes});
    }
    sections.push_back({".debug_addr", linked(".debug_addr", address_base)});
    const format::Bytes ranges = linked(".debug_ranges", number(DW_AT_GNU_ranges_base));
    std::vector<std::byte> moved(static_cast<std::size_t>(kBeforeRanges));
    moved.insert(moved.end(), ranges.begin(), ranges.end());
    sections.push_back({".debug_ranges", moved});
    auto image = DebugImage::from_sections(sections, *whole);
    if (!image) return std::nullopt;
    SingleSplit single{std::move(*image), nullptr};
    single.dwarf.reset(dwarf_begin_elf(single.image.elf(), DWARF_C_READ, nullptr));
    if (!single.dwarf) return std::nullopt;
    std::uint64_t wanted = 0, id = 0;
    if (dwarf_cu_info(unit.die.cu, nullptr, nullptr, nullptr, nullptr, &wanted, nullptr, nullptr) != 0)
      return std::nullopt;
    Dwarf_CU* cu = nullptr;
    Dwarf_Die die{};
    while (dwarf_get_units(single.dwarf.get(), cu, &cu, nullptr, nullptr, &die, nullptr) == 0) {
      if (dwarf_cu_info(cu, nullptr, nullptr, nullptr, nullptr, &id, nullptr, nullptr) != 0 || id != wanted)
        continue;
      if (dwarf_lowpc(&unit.die, &unit.base) != 0) unit.base = 0;
      unit.single = &singles.emplace_back(std::move(single));
      return die;
    }
    return std::nullopt;
  }

  // Maps addresses to units; the first unit that claims an address has it.
  void index() {
    is_indexed = true;
    Dwarf_CU* cu = nullptr;
    std::uint8_t type = 0;
    Dwarf_Die die{};
    int status = 0;
    while ((status = dwarf_get_units(dwarf.get(), cu, &cu, nullptr, &type, &die, nullptr)) == 0) {
      const int tag = dwarf_tag(&die);
      if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit) continue;
      if (units.size() == budget.units) {
        note_left_out("compilation units are left out: more than a file of its size may have");
        break;
      }
      Unit& unit = units.emplace_back();
      unit.die = die;
      unit.is_skeleton = type == DW_UT_skeleton;
    }
    if (status < 0) note_missing("its .debug_info is damaged: " + libdw_error().what);
    if (std::ranges::none_of(units, &Unit::is_skeleton)) file = format::Fd();
    std::vector<RankedRange> ranges;
    for (std::uint32_t i = 0; i < units.size(); ++i) {
      Unit& unit = units[i];
      const auto add_scratch = [&] {
        for (const auto& [start, end] : scratch) ranges.push_back({start, end, i, i});
      };
      read_ranges(&unit.die, budget, scratch);
      add_scratch();
      if (!scratch.empty()) continue;
      read(unit);  // the unit has no ranges; use those of its functions
      for (Function& function : unit.functions) {
        if (function.is_inlined) continue;
        read_ranges(&function.die, budget, scratch, unit.single, unit.base);
        add_scratch();
      }
    }
    by_address = RangeIndex(std::move(ranges));
  }

  void read(Unit& unit) {
    unit.is_read = true;
    unit.functions_die = unit.die;
    if (const auto split = split_part(unit)) unit.functions_die = *split;
    if (!may_read_lines(unit)) {
      unit.line_count = 0;
    } else if (dwarf_getsrclines(&unit.die, &unit.lines, &unit.line_count) != 0) {
      unit.line_count = 0;
      if (dwarf_hasattr(&unit.die, DW_AT_stmt_list))
        note_missing("its .debug_line is damaged: " + libdw_error().what);
    }
    read_functions(unit);
  }

  // Checked before libdw reads the table, since libdw has no limit.
  bool may_read_lines(Unit& unit) {
    const auto offset = number_of(unit.die, DW_AT_stmt_list);
    if (!offset) return true;
    const std::uint64_t rows = line_tables.rows_to_read(*offset);
    if (rows > budget.rows) {
      note_left_out("a table of " + std::to_string(rows) +
                    " source lines and files is left out: more than a file of its size may have");
      return false;
    }
    budget.rows -= rows;
    line_tables.set_read(*offset);
    return true;
  }

  void read_functions(Unit& unit) {
    std::vector<std::uint32_t>
        inside;  // by depth: the innermost function around the entry, or the entry itself
    std::vector<RankedRange> ranges;
    DieIterator walk(unit.functions_die);
    while (walk.next_die()) {
      const std::uint32_t around = walk.depth() == 0 ? kNone : inside[walk.depth() - 1];
      inside.resize(walk.depth());
      inside.push_back(around);
      const int tag = dwarf_tag(&walk.die());
      std::size_t attributes = 0;
      if (tag != DW_TAG_invalid) dwarf_getattrcnt(walk.die().abbrev, &attributes);
      budget.attributes -= std::min(budget.attributes, attributes);
      if (budget.functions == 0 || budget.ranges == 0 || budget.attributes == 0) {
        note_left_out("functions are left out: more than a file of its size may have");
        break;
      }
      if (!is_function(tag)) continue;
      --budget.functions;
      inside.back() = static_cast<std::uint32_t>(unit.functions.size());
      add_function(unit, walk.die(), around, ranges);
    }
    if (walk.is_too_deep())
      note_left_out("the rest of it is left out: a unit nests deeper than any compiler's");
    if (walk.has_cycle()) note_missing("its .debug_info is damaged: a unit leads back into itself");
    unit.by_address = RangeIndex(std::move(ranges));
  }

  void add_function(Unit& unit, Dwarf_Die& die, std::uint32_t around, std::vector<RankedRange>& ranges) {
    const auto number = static_cast<std::uint32_t>(unit.functions.size());
    Function& function = unit.functions.emplace_back();
    function.die = die;
    function.is_inlined = dwarf_tag(&die) == DW_TAG_inlined_subroutine;
    if (function.is_inlined) function.caller = around;
    read_ranges(&die, budget, scratch, unit.single, unit.base);
    if (scratch.empty()) return;
    function.start = scratch[0].first;
    for (const auto& [start, end] : scratch) ranges.push_back({start, end, end - start, number});
  }

  // Finds the name of a function: linkage name before DW_AT_name, abstract instance before concrete one.
  // `left` limits all entries together, since each may refer to two more.
  void read_name(Dwarf_Die die, Function& function, int& left) const {
    if (left-- <= 0) return;
    for (const unsigned reference : {DW_AT_abstract_origin, DW_AT_specification}) {
      Dwarf_Die target{};
      if (dwarf.follow(die, reference, target)) read_name(target, function, left);
    }
    if (function.name.empty()) {
      function.name = dwarf.text(die, DW_AT_name);
      Dwarf_Die unit_die{};
      if (!function.name.empty() && dwarf_diecu(&die, &unit_die, nullptr, nullptr) &&
          has_unmangled_names(dwarf_srclang(&unit_die))) {
        function.is_linkage_name = true;
      }
    }
    for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
      const std::string_view found = dwarf.text(die, name);
      if (found.empty()) continue;
      function.name = found;
      function.is_linkage_name = true;
    }
  }

  Function& named(Unit& unit, std::uint32_t number) const {
    Function& function = unit.functions[number];
    if (function.is_named) return function;
    function.is_named = true;
    int left = kLongestReference;
    read_name(function.die, function, left);
    function.call_line = static_cast<std::uint32_t>(number_of(function.die, DW_AT_call_line).value_or(0));
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    // A split unit without a file table uses the skeleton's.
    const auto has_files = [&] {
      return dwarf_getsrcfiles(&unit.functions_die, &files, &count) == 0 ||
             (unit.single != nullptr && dwarf_getsrcfiles(&unit.die, &files, &count) == 0);
    };
    if (const auto call_file = number_of(function.die, DW_AT_call_file);
        call_file && has_files() && *call_file < count)
      function.call_file = view_of(dwarf_filesrc(files, *call_file, nullptr, nullptr));
    return function;
  }

  // The last row at or before `address`, unless it ends a sequence. libdw sorts rows by address, end_sequence
  // first.
  Dwarf_Line* line_at(const Unit& unit, std::uint64_t address) const {
    // Rows before `low` are at or before the address, rows from `high` on after it.
    std::size_t low = 0, high = unit.line_count;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      Dwarf_Addr at = 0;
      if (dwarf_lineaddr(dwarf_onesrcline(unit.lines, middle), &at) != 0) return nullptr;
      if (at <= address)
        low = middle + 1;
      else
        high = middle;
    }
    if (low == 0) return nullptr;
    Dwarf_Line* const row = dwarf_onesrcline(unit.lines, low - 1);
    bool is_end = true;
    return dwarf_lineendsequence(row, &is_end) == 0 && !is_end ? row : nullptr;
  }
};

DwarfLines::DwarfLines(std::unique_ptr<State> state) : state_(std::move(state)) {}
DwarfLines::DwarfLines(DwarfLines&&) noexcept = default;
DwarfLines& DwarfLines::operator=(DwarfLines&&) noexcept = default;
DwarfLines::~DwarfLines() = default;

Result<DwarfLines> DwarfLines::open(format::Fd file, std::string root) {
  auto dwarf = DwarfFile::open(file);
  if (!dwarf) return std::move(dwarf.error());
  auto state = std::make_unique<State>(std::move(*dwarf));
  state->budget = DwarfBudget::of(state->dwarf.image().size());
  state->line_tables = LineTables(state->dwarf.image());
  state->root = std::move(root);
  state->folder = folder_of(file.get());
  state->file = std::move(file);
  DwarfLines lines(std::move(state));
  // libdw would open the supplementary file itself, at the path in the link, as soon as a name needs it.
  const auto part = lines.supplementary_file();
  const std::string path = part && !part->path.starts_with('/') ? lines.state_->folder : std::string();
  if (part && check_path(path + part->path, "") == PathCheck::Unsafe) {
    return Error{"its .gnu_debugaltlink names no regular file"};
  }
  return lines;
}

std::optional<SupplementaryFile> DwarfLines::supplementary_file() const {
  return state_->dwarf.supplementary_file();
}
Result<> DwarfLines::use_supplementary_file(format::Fd file) {
  return state_->dwarf.use_supplementary_file(file);
}

const std::string& DwarfLines::missing_reason() const { return state_->missing_reason; }
bool DwarfLines::left_out() const { return state_->left_out; }

std::optional<DwarfLines::LineInfo> DwarfLines::line_info(format::ElfAddress address) {
  if (!state_->is_indexed) {
    if (const auto part = supplementary_file(); part && !state_->dwarf.has_supplementary_file())
      state_->note_missing("its supplementary file " + part->path + " is missing");
    state_->index();
  }
  const auto found = state_->by_address.find_range(address.value);
  if (!found) return std::nullopt;
  Unit& unit = state_->units[*found];
  if (!unit.is_read) state_->read(unit);
  LineInfo info;
  if (Dwarf_Line* const row = state_->line_at(unit, address.value)) {
    int line = 0;
    if (dwarf_lineno(row, &line) == 0) info.line = static_cast<std::uint32_t>(line);
    info.file = view_of(dwarf_linesrc(row, nullptr, nullptr));
  }
  info.unit = *found;
  if (const auto number = unit.by_address.find_range(address.value)) info.function = *number;
  if (info.function == kNone && info.file.empty()) return std::nullopt;
  return info;
}

std::vector<Md5> DwarfLines::sums_of(std::string_view file) {
  if (!state_->sums) {
    const DebugImage& image = state_->dwarf.image();
    state_->sums.emplace(LineSums::Sections{.lines = image.section(".debug_line"),
                                            .line_texts = image.section(".debug_line_str"),
                                            .texts = image.section(".debug_str"),
                                            .order = image.order()});
  }
  return state_->sums->sums_of(file);
}

std::uint32_t DwarfLines::last_line_of(std::string_view file) {
  for (Unit& unit : state_->units) {
    if (!unit.is_read || std::exchange(unit.has_last_lines, true)) continue;
    std::unordered_map<const char*, std::uint32_t> of_unit;  // libdw has one text for all lines of a file
    for (std::size_t i = 0; i < unit.line_count; ++i) {
      Dwarf_Line* const row = dwarf_onesrcline(unit.lines, i);
      int line = 0;
      if (dwarf_lineno(row, &line) != 0 || line <= 0) continue;
      std::uint32_t& last = of_unit[dwarf_linesrc(row, nullptr, nullptr)];
      last = std::max(last, static_cast<std::uint32_t>(line));
    }
    for (const auto& [name, line] : of_unit) {
      std::uint32_t& last = state_->last_lines[view_of(name)];
      last = std::max(last, line);
    }
  }
  const auto found = state_->last_lines.find(file);
  return found == state_->last_lines.end() ? 0 : found->second;
}

InlineFunction& DwarfLines::function(std::uint32_t unit, std::uint32_t number) {
  return state_->named(state_->units[unit], number);
}

}  // namespace tacho::symbolize
