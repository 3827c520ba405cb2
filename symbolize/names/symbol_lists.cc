#include "symbolize/names/symbol_lists.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "format/base/file.h"
#include "format/base/large_pages.h"
#include "format/base/parse_text.h"
#include "format/records/address.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kKernelPage = 4096;  // bytes
constexpr std::uint64_t kLargestKernel =
    std::uint64_t{1} << 28;  // bytes of code; a larger size means that its end was unknown
constexpr std::uint64_t kModuleArea = 0xffffffffc0000000;  // x86-64: above the kernel, wherever KASLR put it
constexpr std::size_t kMostModules = std::size_t{1} << 14;
constexpr std::size_t kVerifiedFunctions = 8;  // number of functions by which a module's address is verified
constexpr std::size_t kMost32BitText = std::numeric_limits<std::uint32_t>::max();

struct Line {
  std::uint64_t address = 0;
  std::string_view name;
  std::string_view module;  // "[ext4]"; empty: the kernel itself
  char type = 0;            // as nm prints it
};

// The value of each byte as a hexadecimal digit; 16: it is not a digit.
constexpr std::array<std::uint8_t, 256> kHexDigits = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(16);
  for (std::uint8_t i = 0; i < 10; ++i) digits['0' + i] = i;
  for (std::uint8_t i = 0; i < 6; ++i) digits['a' + i] = digits['A' + i] = static_cast<std::uint8_t>(10 + i);
  return digits;
}();

// Parses "ADDRESS TYPE NAME" or "ADDRESS TYPE NAME<TAB>[MODULE]".
std::optional<Line> parse_symbol_line(std::string_view text) {
  Line line;
  std::size_t at = 0;
  for (; at < text.size() && at <= 16; ++at) {
    const std::uint8_t digit = kHexDigits[static_cast<std::uint8_t>(text[at])];
    if (digit == 16) break;
    line.address = line.address << 4 | digit;
  }
  if (at == 0 || at > 16 || at + 4 > text.size() || text[at] != ' ' || text[at + 2] != ' ')
    return std::nullopt;
  line.type = text[at + 1];
  line.name = text.substr(at + 3);
  const auto tab = line.name.ends_with(']') ? line.name.find('\t') : std::string_view::npos;
  if (tab != std::string_view::npos) {
    line.module = line.name.substr(tab + 1);
    line.name = line.name.substr(0, tab);
  }
  return line;
}

// The types of symbols that perf uses: text, weak, data and bss, global or local.
bool is_wanted(const Line& line) {
  const char type = static_cast<char>(line.type | 0x20);
  return (type == 't' || type == 'w' || type == 'd' || type == 'b') && !line.name.starts_with('$');
}

// A wanted line; its names are copied to a text of their own, in which these are offsets. They stay valid
// while that text grows and moves, and they are small: there are hundreds of thousands.
struct LineRef {
  std::uint64_t address = 0;
  std::uint32_t name = 0, name_size = 0, module_size = 0;  // offset and bytes; the module follows the name
  char type = 0;

  Line line_in(std::string_view names) const {
    return {address, names.substr(name, name_size), names.substr(name + name_size, module_size), type};
  }
};

using LineRefs = std::vector<LineRef, format::LargePages<LineRef>>;

// Real files have about 40 bytes in a line. Much shorter lines are an attack on the memory.
std::size_t most_symbols(std::size_t text_size) { return (std::size_t{1} << 18) + text_size / 64; }

std::uint64_t rounded_to_page(std::uint64_t address) {
  return (address + kKernelPage - 1) / kKernelPage * kKernelPage;
}

// kallsyms has no sizes: a symbol ends at the next one, the last one of the kernel or a module a page later.
std::uint64_t end_of(const Line& line, const Line* next) {
  if (next && next->module == line.module) return next->address;
  return std::max(rounded_to_page(line.address + kKernelPage), line.address);
}

Symbol symbol_of(const Line& line, std::uint64_t end, std::uint64_t moved) {
  const char type = static_cast<char>(line.type | 0x20);
  return {.start = line.address - moved,
          .end = end - moved,
          .name = line.name,
          .binding = Binding::Global,
          .is_data = type != 't' && type != 'w'};
}

// perf before Linux 5.2 recorded the first module's start as the end of the kernel.
bool has_known_end(const ReferenceSymbol& reference) {
  return reference.text_end != 0 && reference.text_end < kModuleArea &&
         reference.text_end - reference.address < kLargestKernel;
}

// The KASLR offset: the kernel's address in this text minus the recorded one.
Result<std::uint64_t> kaslr_offset(const LineRefs& refs, std::string_view text,
                                   const std::optional<ReferenceSymbol>& reference) {
  if (!reference) return std::uint64_t{0};
  const auto found = std::ranges::find_if(refs, [&](const LineRef& ref) {
    const Line line = ref.line_in(text);
    return line.name == reference->name && line.module.empty();
  });
  if (found == refs.end()) {
    return Error{"no symbol " + reference->name +
                 ", so the address of the recorded kernel is unknown; give the " +
                 "kallsyms of the kernel that was recorded"};
  }
  return found->address - reference->address;
}

// Where the kernel's code ends: recorders use one of two symbols. _edata may have a type that symbol tables
// leave out: R on arm64.
struct KernelEnds {
  std::optional<std::uint64_t> text, data;

  void see(const Line& line) {
    if (!line.module.empty()) return;
    if (line.name == "_etext") text = line.address;
    if (line.name == "_edata") data = line.address;
  }
};

// Checks that the kernel's code has the recorded size. Without a symbol for its end in the list nothing can
// be checked.
Result<> check_end(const KernelEnds& ends, const ReferenceSymbol& reference, std::uint64_t moved) {
  for (const auto& end : {ends.text, ends.data}) {
    if (end && (*end - moved == reference.text_end || rounded_to_page(*end - moved) == reference.text_end)) {
      return Done{};
    }
  }
  const auto& seen = ends.text ? ends.text : ends.data;
  if (!seen) return Done{};
  const auto size = [&](std::uint64_t end) { return std::to_string(end - reference.address); };
  return Error{"is of another kernel: from " + reference.name + " its code has " + size(*seen - moved) +
               " bytes, the recorded kernel's " + size(reference.text_end)};
}

}  // namespace

// The wanted lines found so far.
struct Kallsyms::Lines {
  LineRefs refs;
  std::vector<std::byte> names;
  KernelEnds ends;
  std::size_t size = 0;  // bytes of the text so far
  std::string begun;     // the line whose end was not read

  // Parses the lines that end in the next piece of the text; an empty piece ends it, and the last line.
  Result<> add_piece(std::string_view piece) {
    size += piece.size();
    if (size > kMost32BitText) return Error{"is larger than 4 GiB", EFBIG};
    if (piece.empty()) return add_line(begun);
    for (std::size_t newline = piece.find('\n'); newline != std::string_view::npos;
         newline = piece.find('\n')) {
      std::string_view line = piece.substr(0, newline);
      if (!begun.empty()) line = begun.append(line);
      if (auto added = add_line(line); !added) return added;
      begun.clear();
      piece.remove_prefix(newline + 1);
    }
    begun.append(piece);
    return Done{};
  }
  Result<> add_line(std::string_view text) {
    const auto line = parse_symbol_line(text);
    if (line) ends.see(*line);
    if (!line || !is_wanted(*line)) return Done{};
    if (const std::size_t most = most_symbols(size); refs.size() == most)
      return Error{"has more than " + std::to_string(most) + " symbols, too many for its size", EFBIG};
    refs.push_back({line->address, static_cast<std::uint32_t>(names.size()),
                    static_cast<std::uint32_t>(line->name.size()),
                    static_cast<std::uint32_t>(line->module.size()), line->type});
    for (const std::string_view name : {line->name, line->module}) {
      const format::Bytes bytes = std::as_bytes(std::span(name));
      names.insert(names.end(), bytes.begin(), bytes.end());
    }
    return Done{};
  }
  void sort() {
    constexpr auto earlier = [](const LineRef& a, const LineRef& b) { return a.address < b.address; };
    if (!std::ranges::is_sorted(refs, earlier)) std::ranges::stable_sort(refs, earlier);
  }
};

Result<Kallsyms> Kallsyms::parse(std::vector<std::byte> text,
                                 const std::optional<ReferenceSymbol>& reference) {
  return parse([&]() -> Result<std::vector<std::byte>> { return std::exchange(text, {}); }, reference);
}

Result<Kallsyms> Kallsyms::parse(const Pieces& next, const std::optional<ReferenceSymbol>& reference) {
  // Of a usual list; unused pages take no memory.
  constexpr std::size_t kUsualLines = std::size_t{1} << 18, kUsualNames = std::size_t{8} << 20;  // bytes
  Lines lines;
  lines.refs.reserve(kUsualLines);
  lines.names.reserve(kUsualNames);
  for (bool is_end = false; !is_end;) {
    const auto piece = next();
    if (!piece) return piece.error();
    is_end = piece->empty();
    if (auto added = lines.add_piece(format::as_text(*piece)); !added) return std::move(added.error());
  }
  return of_lines(std::move(lines), reference);
}

Result<Kallsyms> Kallsyms::of_lines(Lines lines, const std::optional<ReferenceSymbol>& reference) {
  Kallsyms result;
  result.names_ = std::move(lines.names);
  const std::string_view content = format::as_text(result.names_);
  lines.sort();
  const LineRefs* const refs = &lines.refs;
  if (refs->empty()) return Error{"no line of the form 'ADDRESS TYPE NAME'"};
  if (refs->back().address == 0) {
    return Error{"every address is zero: it was read without the right to see addresses; read it as root"};
  }
  auto moved = kaslr_offset(*refs, content, reference);
  if (!moved) return std::move(moved.error());
  if (reference && has_known_end(*reference))
    if (auto checked = check_end(lines.ends, *reference, *moved); !checked) return std::move(checked.error());
  // After another boot modules are at other addresses, and have moved by another distance than the kernel.
  const bool has_modules = *moved == 0 || (reference && reference->is_of_same_boot);
  result.kernel_.reserve(refs->size());
  Line next = refs->front().line_in(content);
  for (std::size_t i = 0; i < refs->size(); ++i) {
    const Line line = next;
    const bool is_last = i + 1 == refs->size();
    if (!is_last) next = (*refs)[i + 1].line_in(content);
    const std::uint64_t end = end_of(line, is_last ? nullptr : &next);
    // Only the last of several aliases has a size, and perf prefers names with one.
    if (!is_last && next.address == line.address && end == line.address) continue;
    if (line.module.empty()) {
      result.kernel_.add_symbol(symbol_of(line, end, *moved));
    } else if (has_modules) {
      if (result.modules_.size() == kMostModules && !result.modules_.contains(line.module)) {
        return Error{"has more than " + std::to_string(kMostModules) + " modules", EFBIG};
      }
      result.modules_[line.module].add_symbol(symbol_of(line, end, 0));
      auto& functions = result.module_functions_[line.module];
      if ((line.type | 0x20) == 't' && functions.size() < kVerifiedFunctions)
        functions.push_back(line.address);
    }
  }
  result.kernel_.finish();
  for (auto& [name, table] : result.modules_) table.finish();
  return result;
}

std::span<const std::uint64_t> Kallsyms::module_functions(std::string_view name) const {
  const auto found = module_functions_.find(name);
  return found == module_functions_.end() ? std::span<const std::uint64_t>() : found->second;
}

SymbolTable* Kallsyms::module(std::string_view name) {
  const auto found = modules_.find(name);
  return found == modules_.end() ? nullptr : &found->second;
}

namespace {

// Removes a hexadecimal number and a blank from the front.
std::optional<std::uint64_t> take_address(std::string_view& line) {
  if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
  const auto value = format::take_number<std::uint64_t>(line, 16);
  return format::take_prefix(line, " ") ? value : std::nullopt;
}

std::optional<Symbol> parse_map_line(std::string_view line) {
  const auto start = take_address(line);
  const auto size = start ? take_address(line) : std::nullopt;
  if (!size || line.empty()) return std::nullopt;
  return Symbol{
      .start = *start, .end = format::end_of_range(*start, *size), .name = line, .binding = Binding::Global};
}

// Real maps have 50 bytes and more in a line. Much shorter lines are an attack on the memory.
std::size_t most_lines(std::size_t text_size) { return (std::size_t{1} << 18) + text_size / 32; }

}  // namespace

Result<SymbolTable> parse_perf_map(std::vector<std::byte> text) {
  SymbolTable table;
  std::string_view rest = table.own(std::string(format::as_text(text)));
  const std::size_t most = most_lines(rest.size());
  std::size_t count = 0;
  while (!rest.empty()) {
    const auto symbol = parse_map_line(format::take_until(rest, '\n'));
    if (!symbol) continue;
    if (++count > most)
      return Error{"has more than " + std::to_string(most) + " lines, too many for its size", EFBIG};
    table.add_symbol(*symbol);
  }
  table.finish();
  if (table.empty()) return Error{"no line of the form 'START SIZE NAME'"};
  return table;
}

SimpleperfSymbols::SimpleperfSymbols(format::Bytes section) {
  format::Cursor in(section);
  while (in.left() > sizeof(std::uint32_t)) {
    const format::Bytes file = in.take_bytes(in.u32());
    if (in.failed()) return;
    add_file(in.over(file));
  }
}

void SimpleperfSymbols::add_file(format::Cursor in) {
  constexpr std::uint32_t kKernel = 0, kElf = 2, kDex = 3;                                 // types of files
  constexpr std::size_t kLeastSymbol = sizeof(std::uint64_t) + sizeof(std::uint32_t) + 1;  // bytes
  const std::string path(in.terminated());
  const std::uint32_t type = in.u32();
  const std::uint64_t code_address = in.u64();
  File file;
  file.count = in.u32();
  if (in.failed() || file.count > in.left() / kLeastSymbol) return;
  file.symbols = in.rest();
  for (std::uint32_t i = 0; i < file.count; ++i) {
    in.skip(sizeof(std::uint64_t) + sizeof(std::uint32_t));
    (void)in.terminated();
  }
  if (in.failed()) return;
  if (type == kElf) {
    // Needed to convert addresses to file offsets.
    if (in.left() < sizeof(std::uint64_t)) return;
    file.moved = code_address - in.u64();
  } else if (type != kDex && type != kKernel) {
    return;
  }
  files_.try_emplace(path, std::move(file));
}

SymbolTable* SimpleperfSymbols::table_of(std::string_view path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return nullptr;
  File& file = found->second;
  if (!std::exchange(file.was_read, true)) file.table = read_table(file);
  return file.table.empty() ? nullptr : &file.table;
}

SymbolTable SimpleperfSymbols::read_table(const File& file) {
  format::Cursor in(file.symbols);
  SymbolTable table;
  table.reserve(file.count);
  for (std::uint32_t i = 0; i < file.count; ++i) {
    const std::uint64_t start = in.u64() - file.moved, length = in.u32();
    const std::string_view name = in.terminated();
    if (!name.empty())
      table.add_symbol({.start = start,
                        .end = format::end_of_range(start, length),
                        .name = name,
                        .binding = Binding::Global});
  }
  table.finish();
  return table;
}

}  // namespace tacho::symbolize
