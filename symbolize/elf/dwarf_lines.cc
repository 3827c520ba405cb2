#include "symbolize/elf/dwarf_lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <limits>
#include <utility>

#include "symbolize/elf/debug_image.h"
#include "symbolize/names/range_index.h"

namespace tacho::symbolize {
namespace {

constexpr std::size_t kMostRanges = std::size_t{1} << 22;  // of one unit's functions; beyond is nonsense
constexpr int kLongestReference = 100;                     // DIEs from a concrete function to its name
constexpr std::size_t kDeepestInline = 1024;               // perf's own limit
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

struct ElfEnd {
  void operator()(Elf* elf) const noexcept { elf_end(elf); }
};
struct DwarfEnd {
  void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
};
using OwnedElf = std::unique_ptr<Elf, ElfEnd>;
using OwnedDwarf = std::unique_ptr<Dwarf, DwarfEnd>;

Error libdw_error() {
  const char* const text = dwarf_errmsg(-1);
  return Error{text ? text : "not readable as DWARF"};
}

std::string_view view_of(const char* text) { return text ? std::string_view(text) : std::string_view{}; }

// C and its like write names into DWARF as the linker has them; other languages mangle.
bool names_are_the_linkers(int language) {
  constexpr std::array kPlain = {DW_LANG_C89,     DW_LANG_C,       DW_LANG_C99,           DW_LANG_C11,
                                 DW_LANG_Cobol74, DW_LANG_Cobol85, DW_LANG_Fortran77,     DW_LANG_Pascal83,
                                 DW_LANG_PLI,     DW_LANG_UPC,     DW_LANG_Mips_Assembler};
  return std::ranges::find(kPlain, language) != kPlain.end();
}

bool needs_shared_part(unsigned form) {
  constexpr std::array kForms = {DW_FORM_GNU_ref_alt, DW_FORM_GNU_strp_alt, DW_FORM_ref_sup4,
                                 DW_FORM_ref_sup8, DW_FORM_strp_sup};
  return std::ranges::find(kForms, static_cast<int>(form)) != kForms.end();
}

struct Function {
  Dwarf_Die die{};
  std::uint32_t caller = kNone;  // only of inlined ones: the function around it
  std::uint64_t start = 0;       // of its first range
  bool is_inlined = false;
  bool is_named = false;    // name, call_file and call_line were read
  bool is_linkers = false;  // `name` is, or will for perf's purposes be taken as, the linker's
  std::string_view name;
  std::string_view call_file;
  std::uint32_t call_line = 0;
};

struct Unit {
  Dwarf_Die die{};  // of the file itself; a skeleton's when the rest was split off
  bool is_skeleton = false;
  bool is_read = false;
  Dwarf_Die functions_die{};  // where its functions are
  std::vector<Function> functions;
  RangeIndex by_address;
  Dwarf_Lines* lines = nullptr;
  std::size_t line_count = 0;
};

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// Those that meet become one, as binutils has it: the shortest range decides who an address belongs to.
void add_range(Ranges& ranges, std::uint64_t start, std::uint64_t end) {
  constexpr std::size_t kLookedAt = 64;
  const std::size_t count = std::min(ranges.size(), kLookedAt);
  for (std::size_t i = 0; i < count; ++i) {
    if (start == ranges[i].second) {
      ranges[i].second = end;
      return;
    }
    if (end == ranges[i].first) {
      ranges[i].first = start;
      return;
    }
  }
  ranges.emplace_back(start, end);
}

// At most `limit`.
void read_ranges(Dwarf_Die* die, std::size_t limit, Ranges& ranges) {
  ranges.clear();
  Dwarf_Addr base = 0, start = 0, end = 0;
  std::ptrdiff_t offset = 0;
  for (std::size_t i = 0; i < limit; ++i) {
    const std::ptrdiff_t next = dwarf_ranges(die, offset, &base, &start, &end);
    if (next <= 0 || next <= offset) return;
    offset = next;
    if (start < end) add_range(ranges, start, end);
  }
}

bool is_function(int tag) {
  return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_entry_point;
}

// The folder a file of ours lies in, as libdw finds it out.
std::string folder_of(int fd) {
  std::array<char, PATH_MAX> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  if (size <= 0) return {};
  const std::string path(target.data(), static_cast<std::size_t>(size));
  return path.substr(0, path.rfind('/') + 1);
}

enum class Place : std::uint8_t { Empty, Harmless, Harmful };

// What opening `path` would do: a regular file below `root` does no harm.
Place look_at(const std::string& path, const std::string& root) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return Place::Empty;
  if (!S_ISREG(status.st_mode)) return Place::Harmful;
  if (root.empty()) return Place::Harmless;
  const auto resolved = [](const std::string& name) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(name.c_str(), nullptr), &std::free);
    return std::string(real ? real.get() : "");
  };
  const std::string real_root = resolved(root);
  const bool is_below = !real_root.empty() && resolved(path).starts_with(real_root + "/");
  return is_below ? Place::Harmless : Place::Harmful;
}

}  // namespace

struct DwarfLines::State {
  DebugImage image, shared_image;
  OwnedDwarf shared;
  OwnedDwarf dwarf;  // ended before what it refers to
  // The file once more, opened when a part of it was split off: libdw finds that part by the file's own
  // place.
  format::Fd file;
  OwnedElf placed_elf;
  OwnedDwarf placed;
  std::string root;
  std::string folder;
  bool is_indexed = false;
  std::string lack;  // the first thing that could not be read
  std::vector<Unit> units;
  RangeIndex by_address;
  Ranges scratch;

  void lacks(std::string what) {
    if (lack.empty()) lack = std::move(what);
  }
  bool may_read(unsigned form) const { return shared != nullptr || !needs_shared_part(form); }
  std::string_view text(Dwarf_Die& die, unsigned name) const;
  bool follow(Dwarf_Die& die, unsigned name, Dwarf_Die& target) const;
  std::string_view split_name(Unit& unit) const;
  bool may_be_split(Unit& unit) const;
  std::optional<Dwarf_Die> split_part(Unit& unit);
  void index();
  void read(Unit& unit);
  void read_functions(Unit& unit);
  void add_function(Unit& unit, Dwarf_Die& die, std::uint32_t around, std::vector<RankedRange>& ranges);
  void read_name(Dwarf_Die die, Function& function, int depth) const;
  Function& named(Unit& unit, std::uint32_t number) const;
  Dwarf_Line* line_at(const Unit& unit, std::uint64_t address) const;
};

std::string_view DwarfLines::State::text(Dwarf_Die& die, unsigned name) const {
  Dwarf_Attribute attribute;
  if (!dwarf_attr(&die, name, &attribute) || !may_read(dwarf_whatform(&attribute))) return {};
  return view_of(dwarf_formstring(&attribute));
}

bool DwarfLines::State::follow(Dwarf_Die& die, unsigned name, Dwarf_Die& target) const {
  Dwarf_Attribute attribute;
  return dwarf_attr(&die, name, &attribute) && may_read(dwarf_whatform(&attribute)) &&
         dwarf_formref_die(&attribute, &target);
}

std::string_view DwarfLines::State::split_name(Unit& unit) const {
  const std::string_view name = text(unit.die, DW_AT_dwo_name);
  return name.empty() ? text(unit.die, DW_AT_GNU_dwo_name) : name;
}

// libdw opens the split-off part itself, first beside the file, then in the compiler's folder. Both names
// come from the file, so they are looked at before.
bool DwarfLines::State::may_be_split(Unit& unit) const {
  const std::string_view name = split_name(unit);
  if (name.empty() || folder.empty()) return false;
  const auto joined = [](std::string_view before, std::string_view after) {
    return after.starts_with('/') ? std::string(after) : std::string(before) + "/" + std::string(after);
  };
  const std::string built_in = joined(folder, text(unit.die, DW_AT_comp_dir));
  const Place beside = look_at(joined(folder, name), root), built = look_at(joined(built_in, name), root);
  return beside != Place::Harmful && built != Place::Harmful &&
         (beside == Place::Harmless || built == Place::Harmless);
}

std::optional<Dwarf_Die> DwarfLines::State::split_part(Unit& unit) {
  if (!unit.is_skeleton) return std::nullopt;
  if (!may_be_split(unit)) {
    lacks("its split-off part " + std::string(split_name(unit)) +
          " is not beside it, nor where it was compiled");
    return std::nullopt;
  }
  if (!placed) {
    placed_elf.reset(elf_begin(file.get(), ELF_C_READ, nullptr));
    if (placed_elf) placed.reset(dwarf_begin_elf(placed_elf.get(), DWARF_C_READ, nullptr));
  }
  Dwarf_Die same{}, split{};
  if (!placed || !dwarf_offdie(placed.get(), dwarf_dieoffset(&unit.die), &same)) return std::nullopt;
  const int found = dwarf_cu_info(same.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr);
  if (found == 0 && split.addr != nullptr) return split;
  lacks("its split-off part " + std::string(split_name(unit)) + " is another unit's, or cannot be read");
  return std::nullopt;
}

// Which unit each address belongs to: of those that claim it, the first.
void DwarfLines::State::index() {
  is_indexed = true;
  Dwarf_CU* cu = nullptr;
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  Dwarf_Die die{};
  int status = 0;
  while ((status = dwarf_get_units(dwarf.get(), cu, &cu, &version, &type, &die, nullptr)) == 0) {
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit) continue;
    Unit& unit = units.emplace_back();
    unit.die = die;
    unit.is_skeleton = type == DW_UT_skeleton;
  }
  if (status < 0) lacks("its .debug_info is damaged: " + libdw_error().what);
  if (std::ranges::none_of(units, &Unit::is_skeleton)) file = format::Fd();
  std::vector<RankedRange> ranges;
  for (std::uint32_t i = 0; i < units.size(); ++i) {
    read_ranges(&units[i].die, kMostRanges - std::min(kMostRanges, ranges.size()), scratch);
    if (scratch.empty()) {  // the unit does not say; its functions do
      read(units[i]);
      for (Function& function : units[i].functions) {
        if (function.is_inlined || ranges.size() >= kMostRanges) continue;
        read_ranges(&function.die, kMostRanges - ranges.size(), scratch);
        for (const auto& [start, end] : scratch) ranges.push_back({start, end, i, i});
      }
      continue;
    }
    for (const auto& [start, end] : scratch) ranges.push_back({start, end, i, i});
  }
  by_address = RangeIndex(std::move(ranges));
}

void DwarfLines::State::read(Unit& unit) {
  unit.is_read = true;
  unit.functions_die = unit.die;
  if (const auto split = split_part(unit)) unit.functions_die = *split;
  if (dwarf_getsrclines(&unit.die, &unit.lines, &unit.line_count) != 0) {
    unit.line_count = 0;
    if (dwarf_hasattr(&unit.die, DW_AT_stmt_list)) lacks("its .debug_line is damaged: " + libdw_error().what);
  }
  read_functions(unit);
}

void DwarfLines::State::add_function(Unit& unit, Dwarf_Die& die, std::uint32_t around,
                                     std::vector<RankedRange>& ranges) {
  const auto number = static_cast<std::uint32_t>(unit.functions.size());
  Function& function = unit.functions.emplace_back();
  function.die = die;
  function.is_inlined = dwarf_tag(&die) == DW_TAG_inlined_subroutine;
  if (function.is_inlined) function.caller = around;
  read_ranges(&die, kMostRanges - std::min(kMostRanges, ranges.size()), scratch);
  if (scratch.empty()) return;
  function.start = scratch[0].first;
  for (const auto& [start, end] : scratch) ranges.push_back({start, end, end - start, number});
}

// Walks the whole tree of the unit. Each DIE must lie behind the one before: links that lead back end the
// walk.
void DwarfLines::State::read_functions(Unit& unit) {
  struct Level {
    Dwarf_Die die;
    std::uint32_t around;  // the function that the DIEs of this level stand in
  };
  std::vector<Level> levels;
  std::vector<RankedRange> ranges;
  Dwarf_Die child{};
  if (dwarf_child(&unit.functions_die, &child) != 0) return;
  levels.push_back({child, kNone});
  Dwarf_Off last = 0;
  while (!levels.empty()) {
    Level& level = levels.back();
    const Dwarf_Off offset = dwarf_dieoffset(&level.die);
    if (offset <= last || ranges.size() >= kMostRanges) {
      lacks("its .debug_info is damaged: a unit leads back into itself");
      break;
    }
    last = offset;
    std::uint32_t inside = level.around;
    if (is_function(dwarf_tag(&level.die))) {
      inside = static_cast<std::uint32_t>(unit.functions.size());
      add_function(unit, level.die, level.around, ranges);
    }
    if (dwarf_haschildren(&level.die) > 0 && dwarf_child(&level.die, &child) == 0) {
      levels.push_back({child, inside});
      continue;
    }
    while (!levels.empty()) {
      Dwarf_Die next{};
      if (dwarf_siblingof(&levels.back().die, &next) == 0) {
        levels.back().die = next;
        break;
      }
      levels.pop_back();
    }
  }
  unit.by_address = RangeIndex(std::move(ranges));
}

// The linker's name is better than the language's, and what an abstract instance says comes first.
void DwarfLines::State::read_name(Dwarf_Die die, Function& function, int depth) const {
  if (depth > kLongestReference) return;
  for (const unsigned reference : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Die target{};
    if (follow(die, reference, target)) read_name(target, function, depth + 1);
  }
  if (function.name.empty()) {
    function.name = text(die, DW_AT_name);
    Dwarf_Die unit_die{};
    if (!function.name.empty() && dwarf_diecu(&die, &unit_die, nullptr, nullptr) &&
        names_are_the_linkers(dwarf_srclang(&unit_die))) {
      function.is_linkers = true;
    }
  }
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    const std::string_view found = text(die, name);
    if (found.empty()) continue;
    function.name = found;
    function.is_linkers = true;
  }
}

Function& DwarfLines::State::named(Unit& unit, std::uint32_t number) const {
  Function& function = unit.functions[number];
  if (function.is_named) return function;
  function.is_named = true;
  read_name(function.die, function, 0);
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(&function.die, DW_AT_call_line, &attribute) && dwarf_formudata(&attribute, &value) == 0) {
    function.call_line = static_cast<std::uint32_t>(value);
  }
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_attr(&function.die, DW_AT_call_file, &attribute) && dwarf_formudata(&attribute, &value) == 0 &&
      dwarf_getsrcfiles(&unit.functions_die, &files, &count) == 0 && value < count) {
    function.call_file = view_of(dwarf_filesrc(files, value, nullptr, nullptr));
  }
  return function;
}

// The last row at or before `address`, unless it ends a stretch of code. libdw keeps rows by address, ends
// before beginnings.
Dwarf_Line* DwarfLines::State::line_at(const Unit& unit, std::uint64_t address) const {
  std::size_t low = 0,
              high = unit.line_count;  // rows before `low` are at or before it, those from `high` are not
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

DwarfLines::DwarfLines(std::unique_ptr<State> state) : state_(std::move(state)) {}
DwarfLines::DwarfLines(DwarfLines&&) noexcept = default;
DwarfLines& DwarfLines::operator=(DwarfLines&&) noexcept = default;
DwarfLines::~DwarfLines() = default;

namespace {

Result<> open_dwarf(const format::Fd& file, DebugImage& image, OwnedDwarf& dwarf) {
  auto read = DebugImage::read(file);
  if (!read) return std::move(read.error());
  image = std::move(*read);
  dwarf.reset(dwarf_begin_elf(image.elf(), DWARF_C_READ, nullptr));
  return dwarf ? Result<>(Done{}) : libdw_error();
}

}  // namespace

Result<DwarfLines> DwarfLines::open(format::Fd file, std::string root) {
  auto state = std::make_unique<State>();
  if (auto opened = open_dwarf(file, state->image, state->dwarf); !opened) return std::move(opened.error());
  state->root = std::move(root);
  state->folder = folder_of(file.get());
  state->file = std::move(file);
  DwarfLines lines(std::move(state));
  // libdw looks for a shared part by itself when a name needs it: beside the file, or where the link says.
  const auto part = lines.shared_part();
  const std::string place = part && !part->path.starts_with('/') ? lines.state_->folder : std::string();
  if (part && look_at(place + part->path, "") == Place::Harmful) {
    return Error{"its .gnu_debugaltlink names no regular file"};
  }
  return lines;
}

std::optional<SharedPart> DwarfLines::shared_part() const {
  const char* name = nullptr;
  const void* id = nullptr;
  const std::ptrdiff_t size = dwelf_dwarf_gnu_debugaltlink(state_->dwarf.get(), &name, &id);
  if (size <= 0 || !name || !id) return std::nullopt;
  const format::Bytes bytes(static_cast<const std::byte*>(id), static_cast<std::size_t>(size));
  return SharedPart{name, format::BuildId::from_bytes(bytes)};
}

Result<> DwarfLines::use_shared_part(format::Fd file) {
  DebugImage image;
  OwnedDwarf dwarf;
  if (auto opened = open_dwarf(file, image, dwarf); !opened) return opened;
  state_->shared_image = std::move(image);
  state_->shared = std::move(dwarf);
  dwarf_setalt(state_->dwarf.get(), state_->shared.get());
  return Done{};
}

const std::string& DwarfLines::lack() const { return state_->lack; }

void DwarfLines::find(format::ElfAddress address, const LinkerSymbol& symbol, std::vector<Call>& calls) {
  calls.clear();
  if (!state_->is_indexed) {
    if (const auto part = shared_part(); part && !state_->shared)
      state_->lacks("the part that it shares with others, " + part->path + ", is not there");
    state_->index();
  }
  const auto found = state_->by_address.find(address.value);
  if (!found) return;
  Unit& unit = state_->units[*found];
  if (!unit.is_read) state_->read(unit);

  Call call;
  if (Dwarf_Line* const row = state_->line_at(unit, address.value)) {
    int line = 0;
    if (dwarf_lineno(row, &line) == 0) call.line = static_cast<std::uint32_t>(line);
    call.file = view_of(dwarf_linesrc(row, nullptr, nullptr));
  }
  const auto number = unit.by_address.find(address.value);
  if (!number) {
    if (call.file.empty()) return;
    call.function = symbol.name;
    calls.push_back(call);
    return;
  }
  const Function* function = &state_->named(unit, *number);
  call.function = function->name;
  if (!function->is_linkers && !symbol.name.empty()) {
    // binutils asks the symbol table once for each such function, and keeps the answer only if both start at
    // the same place.
    Function& asked = unit.functions[*number];
    call.function = symbol.name;
    if (symbol.start.value == asked.start) asked.name = symbol.name;
    asked.is_linkers = true;
  }
  calls.push_back(call);
  for (; function->caller != kNone && calls.size() <= kDeepestInline;) {
    const Function& caller = state_->named(unit, function->caller);
    calls.push_back({caller.name, function->call_file, function->call_line});
    function = &caller;
  }
}

}  // namespace tacho::symbolize
