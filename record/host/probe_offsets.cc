#include "record/host/probe_offsets.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/nearest.h"
#include "format/base/elf.h"
#include "format/base/file.h"
#include "record/host/process_maps.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

constexpr std::size_t kLongestName = 1024;
constexpr int kDeepest = 64;  // nesting of types

// The mangled form of an operator, and its form in the source.
struct OperatorName {
  std::string_view code, name;
};
constexpr OperatorName kOperators[] = {
    {"nw", " new"}, {"na", " new[]"}, {"dl", " delete"}, {"da", " delete[]"}, {"ng", "-"},   {"ad", "&"},
    {"de", "*"},    {"co", "~"},      {"pl", "+"},       {"mi", "-"},         {"ml", "*"},   {"dv", "/"},
    {"rm", "%"},    {"an", "&"},      {"or", "|"},       {"eo", "^"},         {"aS", "="},   {"pL", "+="},
    {"mI", "-="},   {"mL", "*="},     {"dV", "/="},      {"rM", "%="},        {"aN", "&="},  {"oR", "|="},
    {"eO", "^="},   {"ls", "<<"},     {"rs", ">>"},      {"lS", "<<="},       {"rS", ">>="}, {"eq", "=="},
    {"ne", "!="},   {"lt", "<"},      {"gt", ">"},       {"le", "<="},        {"ge", ">="},  {"ss", "<=>"},
    {"nt", "!"},    {"aa", "&&"},     {"oo", "||"},      {"pp", "++"},        {"mm", "--"},  {"cm", ","},
    {"pm", "->*"},  {"pt", "->"},     {"cl", "()"},      {"ix", "[]"}};

class MangledName {
 public:
  explicit MangledName(std::string_view symbol) : rest_(symbol) {}

  std::optional<std::string> read() {
    if (rest_.size() > kLongestName || rest_.find('.') != std::string_view::npos) return std::nullopt;
    if (!accept("_Z")) return std::nullopt;
    if (!accept("N")) {
      if (accept("St")) name_ = "std";
      accept("L");  // internal linkage
      if (!add_name() && !add_operator()) return std::nullopt;
      return !rest_.starts_with('I') || skip_arguments(0) ? std::optional(name_) : std::nullopt;
    }
    while (accept("r") || accept("V") || accept("K")) {  // of a member function: volatile, const
    }
    if (!accept("O")) accept("R");
    if (accept("St")) name_ = "std";
    bool is_function = false;  // the last part is a function
    while (!accept("E")) {
      // Names in the source omit template arguments.
      if (rest_.starts_with('I') && !last_.empty() && skip_arguments(0)) continue;
      is_function = add_name() || add_special() || add_operator();
      if (!is_function) return std::nullopt;
    }
    return is_function ? std::optional(name_) : std::nullopt;
  }

 private:
  bool accept(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void add(std::string_view part) {
    if (!name_.empty()) name_ += "::";
    name_ += part;
    last_ = part;
  }
  // A number, and as many characters; else nothing.
  std::string_view take_identifier() {
    std::size_t size = 0, digits = 0;
    while (digits < rest_.size() && digits < 4 && rest_[digits] >= '0' && rest_[digits] <= '9')
      size = size * 10 + static_cast<std::size_t>(rest_[digits++] - '0');
    if (size == 0 || size > rest_.size() - digits) return {};
    const std::string_view part = rest_.substr(digits, size);
    rest_.remove_prefix(digits + size);
    return part;
  }
  bool add_name() {
    const std::string_view part = take_identifier();
    if (part.empty()) return false;
    add(part.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : part);
    while (accept("B")) {  // an ABI tag, which is not in the source
      if (take_identifier().empty()) return false;
    }
    return true;
  }
  // Constructors and destructors have the name of their class.
  bool add_special() {
    if (last_.empty() || rest_.size() < 2 || rest_[1] < '0' || rest_[1] > '5') return false;
    const bool destroys = rest_.front() == 'D';
    if (!destroys && rest_.front() != 'C') return false;
    rest_.remove_prefix(2);
    add(destroys ? '~' + std::string(last_) : std::string(last_));
    return true;
  }

  bool add_operator() {
    for (const OperatorName& each : kOperators) {
      if (!accept(each.code)) continue;
      add("operator" + std::string(each.name));
      return true;
    }
    return false;
  }

  // Skips a construct of the C++ ABI; false: it is something else, or nested too deeply. Each step of
  // recursion consumes a character, and levels are limited.
  bool skip_arguments(int level) {
    if (level > kDeepest || !accept("I")) return false;
    while (!accept("E"))
      if (!skip_argument(level + 1)) return false;
    return true;
  }
  bool skip_argument(int level) {
    if (level > kDeepest) return false;
    if (accept("J")) {  // several
      while (!accept("E"))
        if (!skip_argument(level + 1)) return false;
      return true;
    }
    if (rest_.starts_with('X')) return false;  // an expression
    return rest_.starts_with('L') ? skip_literal(level) : skip_type(level);
  }
  // "Lj5E", "Lb1E", "L4Kindn1E"
  bool skip_literal(int level) {
    accept("L");
    if (rest_.starts_with('_') || rest_.starts_with('Z') || !skip_type(level + 1)) return false;
    accept("n");
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') rest_.remove_prefix(1);
    return accept("E");
  }
  bool skip_type(int level) {
    if (level > kDeepest || rest_.empty()) return false;
    constexpr std::string_view kQualifiers = "PROKVr";
    while (!rest_.empty() && kQualifiers.find(rest_.front()) != std::string_view::npos)
      rest_.remove_prefix(1);
    if (rest_.empty()) return false;
    const char first = rest_.front();
    if (first >= '0' && first <= '9') return skip_named(level);
    if (first == 'S') return skip_substitution() && skip_arguments_if(level);
    if (first == 'T') return skip_numbered("T") && skip_arguments_if(level);
    if (first == 'N') return skip_nested(level);
    if (first == 'F') return accept("F") && skip_types_to_end(level);
    if (first == 'M') return accept("M") && skip_type(level + 1) && skip_type(level + 1);
    if (first == 'A') return skip_array(level);
    if (first == 'D') return skip_long_name(level);
    rest_.remove_prefix(1);
    return first >= 'a' && first <= 'z' && first != 'u';
  }
  bool skip_arguments_if(int level) { return !rest_.starts_with('I') || skip_arguments(level + 1); }
  bool skip_named(int level) {
    if (take_identifier().empty()) return false;
    while (accept("B"))
      if (take_identifier().empty()) return false;
    return skip_arguments_if(level);
  }
  // "St6vector", "Sa", "S_", "S1A_"
  bool skip_substitution() {
    if (accept("St")) return !take_identifier().empty();
    constexpr std::string_view kShort = "absiod";
    if (rest_.size() >= 2 && kShort.find(rest_[1]) != std::string_view::npos) {
      rest_.remove_prefix(2);
      return true;
    }
    return skip_numbered("S");
  }
  bool skip_numbered(std::string_view letter) {
    constexpr std::size_t kMostDigits = 8;
    const std::size_t end = rest_.find('_');
    if (!rest_.starts_with(letter) || end == std::string_view::npos || end > kMostDigits) return false;
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool skip_nested(int level) {
    accept("N");
    while (accept("r") || accept("V") || accept("K")) {
    }
    while (!accept("E")) {
      const bool is_skipped = rest_.starts_with('I')    ? skip_arguments(level + 1)
                              : rest_.starts_with("St") ? accept("St")
                              : rest_.starts_with('S')  ? skip_substitution()
                              : rest_.starts_with('T')  ? skip_numbered("T")
                                                        : skip_named(level);
      if (!is_skipped) return false;
    }
    return true;
  }
  bool skip_types_to_end(int level) {
    while (!accept("E"))
      if (!skip_type(level + 1)) return false;
    return true;
  }
  bool skip_array(int level) {
    accept("A");
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') rest_.remove_prefix(1);
    return accept("_") && skip_type(level + 1);
  }
  // "Dn", "Di"; "Dp" precedes a type; decltype(), vectors and the like are not supported.
  bool skip_long_name(int level) {
    if (accept("Dp")) return skip_type(level + 1);
    constexpr std::string_view kKnown = "nisuadefhc";
    if (rest_.size() < 2 || kKnown.find(rest_[1]) == std::string_view::npos) return false;
    rest_.remove_prefix(2);
    return true;
  }

  std::string_view rest_;
  std::string name_;
  std::string last_;
};

}  // namespace

std::optional<std::string> source_name(std::string_view symbol) { return MangledName(symbol).read(); }

std::string without_template_arguments(std::string_view name) {
  constexpr std::string_view kOperator = "operator", kOfOperators = "<>=-";
  std::string out;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (depth == 0 && name.substr(0, i).ends_with(kOperator)) {
      for (; i < name.size() && kOfOperators.find(name[i]) != std::string_view::npos; ++i) out += name[i];
      if (i == name.size()) break;
    }
    if (name[i] == '<') {
      ++depth;
    } else if (name[i] == '>' && depth > 0) {
      --depth;
    } else if (depth == 0) {
      out += name[i];
    }
  }
  return depth == 0 ? out : std::string(name);
}

namespace {

using format::Bytes;
using format::Cursor;
using format::ElfSection;
using format::ElfSymbol;
using format::ElfView;

// The number of names that are compared for a suggestion; programs have hundreds of thousands.
constexpr std::size_t kMostCandidates = 50'000;
constexpr std::size_t kLongestSymbolName =
    4096;  // bytes of a symbol's name: in a damaged file it may have no end

Result<ElfView> parse_elf(Bytes file) {
  auto elf = ElfView::parse(file);
  if (!elf) return Error{"it is not an ELF file"};
  if (elf->header().order != std::endian::native)
    return Error{"it is a program for a machine of the other byte order"};
  return std::move(*elf);
}

// Calls `seen` with each symbol, and whether it is in the dynamic symbol table; true stops.
template <class Seen>
void each_symbol_and_kind(const ElfView& elf, Seen&& seen) {
  bool is_over = false;
  for (const ElfSection& table : elf.sections()) {
    if (is_over) return;
    if (table.type != SHT_SYMTAB && table.type != SHT_DYNSYM) continue;
    elf.each_symbol(table, [&](const ElfSymbol& symbol) {
      return is_over = seen(symbol.name, symbol, table.type == SHT_DYNSYM);
    });
  }
}
template <class Seen>
void each_symbol(const ElfView& elf, Seen&& seen) {
  each_symbol_and_kind(
      elf, [&seen](std::string_view name, const ElfSymbol& symbol, bool) { return seen(name, symbol); });
}

bool is_function(const ElfSymbol& symbol) {
  const int kind = symbol.type();
  return (kind == STT_FUNC || kind == STT_GNU_IFUNC) && symbol.section != SHN_UNDEF;
}

// Calls `seen` with name and address of each function of the file; true stops.
template <class Seen>
void each_function(const ElfView& elf, Seen&& seen) {
  each_symbol(elf, [&seen](std::string_view name, const ElfSymbol& symbol) {
    return is_function(symbol) && seen(name, symbol.value);
  });
}

// With the symbol version that a linker appended.
bool throws(std::string_view name) {
  const std::string_view plain = name.substr(0, name.find('@'));
  return plain == "_Unwind_RaiseException" || plain == "__cxa_throw" || plain == "__cxa_rethrow";
}

// Personality routines: functions with one run code when an exception passes (C++, C with cleanups, Rust, Ada
// and others).
bool handles_exceptions(std::string_view name) {
  const std::string_view plain = name.substr(0, name.find('@'));
  return throws(name) || plain.ends_with("_personality_v0") || plain == "rust_eh_personality" ||
         plain == "_Unwind_Resume" || plain == "__cxa_begin_catch";
}

bool switches_stacks(std::string_view name) {
  return name == "swapcontext" || name == "makecontext" || name == "setcontext" || name == "sigaltstack";
}

// One note of .note.stapsdt: three addresses, then provider, name and arguments, each ended by a NUL.
std::optional<UsdtMarker> parse_marker(const ElfView& elf, Bytes description, std::uint64_t base_now) {
  Cursor in(description);
  const std::uint64_t address = elf.header().word(in), base_then = elf.header().word(in),
                      semaphore = elf.header().word(in);
  const auto text = [&in] {
    const std::string_view found = format::text_of(in.rest());
    in.skip(found.size() + 1);
    return std::string(found);
  };
  UsdtMarker marker;
  marker.provider = text();
  marker.name = text();
  marker.arguments = text();
  if (in.failed()) return std::nullopt;
  // Addresses are from before the file was relinked (prelink): .stapsdt.base shows by how much it moved.
  const std::uint64_t moved = base_now == 0 ? 0 : base_now - base_then;
  const auto offset = elf.offset_of(address + moved);
  if (!offset) return std::nullopt;
  marker.offset = *offset;
  if (semaphore != 0) marker.semaphore = elf.offset_of(semaphore + moved).value_or(0);
  return marker;
}

void read_markers(const ElfView& elf, Bytes notes, std::uint64_t base_now, std::vector<UsdtMarker>& out) {
  constexpr std::uint32_t kMarkerType = 3;
  Cursor in(notes);
  while (in.left() > 0 && !in.failed()) {
    const std::uint32_t name_size = in.u32(), size = in.u32(), type = in.u32();
    const auto padded = [](std::uint64_t bytes) { return (bytes + 3) / 4 * 4; };
    const std::string_view name = format::text_of(in.take_bytes(static_cast<std::size_t>(padded(name_size))));
    const Bytes description = in.take_bytes(static_cast<std::size_t>(padded(size)));
    if (in.failed() || type != kMarkerType || name != "stapsdt") continue;
    if (auto marker = parse_marker(elf, description.first(size), base_now)) out.push_back(std::move(*marker));
  }
}

std::string several_of(std::string_view name, const std::map<std::uint64_t, std::string>& functions) {
  constexpr std::size_t kMostNames = 5;
  std::string text =
      fmt::format("it has {} functions '{}'; choose one by the linker's name: ", functions.size(), name);
  std::size_t shown = 0;
  for (const auto& [address, symbol] : functions) {
    if (shown == kMostNames) break;
    text += (shown++ == 0 ? "" : ", ") + symbol;
  }
  return shown < functions.size() ? text + ", ..." : text;
}

}  // namespace

Result<std::uint64_t> function_offset(Bytes file, std::string_view name) {
  const auto elf = parse_elf(file);
  if (!elf) return elf.error();
  std::optional<std::uint64_t> address;
  std::map<std::uint64_t, std::string> by_source;  // ELF symbols by name in the source
  std::vector<std::string> others;
  each_function(*elf, [&](std::string_view candidate, std::uint64_t value) {
    if (candidate == name) address = value;
    if (address) return true;
    const auto in_source = source_name(candidate);
    if (in_source == name && by_source.size() < kMostCandidates) by_source.emplace(value, candidate);
    if (others.size() < kMostCandidates) others.push_back(in_source ? *in_source : std::string(candidate));
    return false;
  });
  if (!address && by_source.size() == 1) address = by_source.begin()->first;
  if (!address && !by_source.empty()) return use_error(several_of(name, by_source));
  if (!address) {
    return use_error(fmt::format("it has no function '{}'{}", name,
                                 others.empty()
                                     ? "; it has no symbols (it was stripped): give an offset, 0x..."
                                     : cli::suggestion(name, others)));
  }
  const auto offset = elf->offset_of(*address);
  if (!offset) return Error{fmt::format("its function '{}' is in no part of the file that is loaded", name)};
  return *offset;
}

Result<std::vector<std::string>> function_names(Bytes file) {
  const auto elf = parse_elf(file);
  if (!elf) return elf.error();
  std::vector<std::string> names;
  each_function(*elf, [&names](std::string_view name, std::uint64_t) {
    if (!name.empty() && name.size() <= kLongestSymbolName) names.emplace_back(name);
    return false;
  });
  return names;
}

Result<std::vector<UsdtMarker>> usdt_markers(Bytes file) {
  const auto elf = parse_elf(file);
  if (!elf) return elf.error();
  std::vector<UsdtMarker> markers;
  std::uint64_t base_now = 0;
  for (const ElfSection& section : elf->sections()) {
    if (elf->name(section) == ".stapsdt.base") base_now = section.address;
  }
  for (const ElfSection& section : elf->sections()) {
    if (elf->name(section) == ".note.stapsdt") read_markers(*elf, elf->content(section), base_now, markers);
  }
  return markers;
}

// Local names of a link-time optimization ("f.lto_priv.0", "f.llvm.4711") match like any other.
bool is_changed_copy(std::string_view name) {
  constexpr std::string_view kChanges[] = {"isra",    "constprop", "part",    "cold",
                                           "argprom", "argelim",   "retelim", "specialized"};
  name = name.substr(0, name.find('@'));
  for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos; dot = name.rfind('.')) {
    const std::string_view what = name.substr(dot + 1);
    if (std::ranges::find(kChanges, what) != std::end(kChanges)) return true;
    const bool is_number = what.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_number && what != "lto_priv" && what != "llvm" && what != "__uniq") return false;
    name = name.substr(0, dot);
  }
  return false;
}

Result<FunctionOffsets> functions_of(Bytes file) {
  const auto elf = parse_elf(file);
  if (!elf) return elf.error();
  FunctionOffsets found;
  for (const ElfSection& section : elf->sections()) found.is_go |= elf->name(section) == ".gopclntab";
  each_symbol(*elf, [&](std::string_view name, const ElfSymbol& symbol) {
    found.throws |= throws(name);
    if (!is_function(symbol) || symbol.value == 0) return false;
    if (const auto offset = elf->offset_of(symbol.value))
      found.functions.push_back({std::string(name), *offset, symbol.type() == STT_GNU_IFUNC});
    return false;
  });
  return found;
}

Result<CallFacts> call_facts(Bytes file) {
  const auto elf = parse_elf(file);
  if (!elf) return elf.error();
  CallFacts facts;
  each_symbol_and_kind(*elf, [&facts](std::string_view name, const ElfSymbol& symbol, bool is_dynamic) {
    facts.handles_exceptions |= handles_exceptions(name);
    if (!is_dynamic || symbol.section != SHN_UNDEF || name.empty()) return false;
    facts.has_libraries = true;
    facts.reports_entries |= name == "mcount" || name == "_mcount" || name == "__fentry__";
    facts.reports_both |= name == "__cyg_profile_func_enter";
    if (switches_stacks(name)) facts.switches_stacks = name;
    return false;
  });
  return facts;
}

namespace {

constexpr std::string_view kFolders =
    "/lib64:/usr/lib64:/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:"
    "/usr/lib/aarch64-linux-gnu:/lib:/usr/lib:/usr/local/lib";

bool is_file(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_regular_file(path, failed);
}

// The path of the first mapped file with that name, as the process sees it. The name of a removed file ends
// with " (deleted)"; it cannot be probed.
std::optional<std::string> mapped_file(std::string_view maps, const std::string& name) {
  MapsReader reader(maps);
  while (const auto line = reader.next_line())
    if (line->mapping.filename.starts_with('/') && line->mapping.filename.ends_with("/" + name))
      return std::string(line->mapping.filename);
  return std::nullopt;
}

std::optional<std::string> in_folders(std::string_view folders, const std::string& name) {
  while (!folders.empty()) {
    const std::string_view folder = take_until(folders, ':');
    std::string path = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && is_file(path)) return path;
  }
  return std::nullopt;
}

constexpr const char* kCache = "/etc/ld.so.cache";
// sysdeps/generic/ldconfig.h of glibc: an ELF library for libc 6, of this machine.
#if defined(__x86_64__)
constexpr std::uint32_t kOfThisMachine = 0x0303;
#elif defined(__aarch64__)
constexpr std::uint32_t kOfThisMachine = 0x0a03;
#else
constexpr std::uint32_t kOfThisMachine = 0x0003;
#endif

std::optional<std::string> in_cache(const std::string& name) {
  const auto cache = format::read_file(kCache);
  if (!cache) return std::nullopt;
  const LibraryPaths libraries = libraries_of_cache(*cache);
  const auto found = libraries.find(name);
  return found != libraries.end() && is_file(found->second) ? std::optional(found->second) : std::nullopt;
}

Result<std::string> file_of_process(const std::string& name, int process) {
  const std::string folder = fmt::format("/proc/{}", process);
  const auto maps = format::read_file(folder + "/maps");
  if (!maps) return use_error(fmt::format("there is no process {}, or its maps may not be read", process));
  const bool is_path = name.find('/') != std::string::npos;
  const auto mapped = is_path ? std::optional(name) : mapped_file(format::as_text(*maps), name);
  if (!mapped) return use_error(fmt::format("process {} has no {} mapped", process, name));
  // The path in the process's root folder.
  const std::string inside = folder + "/root" + (mapped->starts_with('/') ? "" : "/") + *mapped;
  if (mapped->starts_with('/') && is_file(inside)) return inside;
  if (is_file(*mapped)) return *mapped;
  return use_error(fmt::format("{}: no such file", *mapped));
}

}  // namespace

Result<std::string> library_file(const std::string& name, int process) {
  if (name.empty()) return use_error("a file without a name");
  if (process >= 0) return file_of_process(name, process);
  if (name.find('/') != std::string::npos) {
    if (is_file(name)) return name;
    return use_error(fmt::format("{}: no such file", name));
  }
  if (const auto maps = format::read_file("/proc/self/maps"); maps) {
    auto mapped = mapped_file(format::as_text(*maps), name);
    if (mapped && is_file(*mapped)) return std::move(*mapped);
  }
  const auto in_variable = [&name](const char* variable) {
    const char* const folders = std::getenv(variable);
    return folders == nullptr ? std::nullopt : in_folders(folders, name);
  };
  if (auto path = in_variable("LD_LIBRARY_PATH")) return std::move(*path);
  if (auto path = in_cache(name)) return std::move(*path);
  if (auto path = in_folders(kFolders, name)) return std::move(*path);
  if (auto path = in_variable("PATH")) return std::move(*path);
  return use_error(fmt::format("{}: no such library or program", name));
}

// A header (magic, number of entries, bytes of texts, 20 bytes more), entries, texts; offsets of texts
// count from the start of the file.
LibraryPaths libraries_of_cache(format::Bytes cache) {
  constexpr std::string_view kMark = "glibc-ld.so.cache1.1";
  constexpr std::size_t kRestOfHeader = 24;
  LibraryPaths paths;
  format::Cursor in(cache);
  if (format::as_text(in.take_bytes(kMark.size())) != kMark) return paths;
  const std::uint32_t entries = in.u32();
  in.skip(kRestOfHeader);
  const auto text_at = [cache](std::uint32_t offset) {
    return offset < cache.size() ? format::text_of(cache.subspan(offset)) : std::string_view();
  };
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::uint32_t flags = in.u32(), name = in.u32(), path = in.u32();
    in.skip(sizeof(std::uint32_t));                  // version
    const std::uint64_t wanted_hardware = in.u64();  // hwcaps that the library needs
    if (in.failed()) break;
    if (flags == kOfThisMachine && wanted_hardware == 0 && text_at(path).starts_with('/'))
      paths.emplace(text_at(name), text_at(path));
  }
  return paths;
}

std::optional<std::string> own_library(const std::string& name) {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  const auto folder = program.parent_path();
  for (const auto& path : {folder / name, folder.parent_path() / TACHO_LIBRARY_FOLDER / name})
    if (is_file(path)) return path.string();
  return std::nullopt;
}

}  // namespace tacho::record
