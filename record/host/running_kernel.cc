#include "record/host/running_kernel.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "cli/nearest.h"
#include "format/base/file.h"
#include "format/records/record.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;
namespace fs = std::filesystem;

constexpr std::string_view kKernelName = "[kernel.kallsyms]";
constexpr std::uint16_t kBpfSymbol = 1;                   // PERF_RECORD_KSYMBOL_TYPE_BPF
constexpr auto kNobody = static_cast<std::uint32_t>(-1);  // the pid of the kernel's mappings

// A line of /proc/kallsyms.
struct Symbol {
  std::uint64_t address = 0;  // 0: hidden
  char type = '?';
  std::string_view name;
  std::string_view module;  // "[ext4]", "[bpf]"; empty: the kernel
};

// "ffffffffc0a01230 t ext4_read\t[ext4]"; nullopt for a line of another form.
std::optional<Symbol> parse_symbol(std::string_view line) {
  const auto address = take_number<std::uint64_t>(line, 16);
  if (!address || line.size() < 4 || line[0] != ' ' || line[2] != ' ') return std::nullopt;
  Symbol symbol{*address, line[1], {}, {}};
  line.remove_prefix(3);
  symbol.name = take_until(line, '\t');
  symbol.module = line;
  return symbol;
}

bool is_code(const Symbol& symbol) {
  return std::string_view("tTwW").find(symbol.type) != std::string_view::npos;
}

template <class Use>
void for_each_symbol(std::string_view kallsyms, Use use) {
  while (!kallsyms.empty())
    if (const auto symbol = parse_symbol(take_until(kallsyms, '\n'))) use(*symbol);
}

format::BuildId build_id_in_file_of_notes(const std::string& path) {
  const auto notes = format::read_file(path);
  if (!notes) return {};
  return format::build_id_in_notes(*notes).value_or(format::BuildId{});
}

// File names of modules may have '-' instead of '_'.
std::string module_name_of(const fs::path& file) {
  std::string name = file.filename();
  const auto end = name.find(".ko");
  if (end == std::string::npos) return {};
  name.resize(end);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::map<std::string, std::string> module_files() {
  std::map<std::string, std::string> files;
  utsname host{};
  if (uname(&host) != 0) return files;
  std::error_code code;
  const fs::path folder = fs::path("/lib/modules") / host.release;
  for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, code),
       end;
       !code && entry != end; entry.increment(code)) {
    const std::string name = module_name_of(entry->path());
    if (!name.empty()) files.emplace(name, entry->path());
  }
  return files;
}

}  // namespace

std::optional<KernelText> find_kernel_text(std::string_view kallsyms) {
  std::map<std::string_view, std::uint64_t> found;
  constexpr std::array<std::string_view, 4> kWanted{"_text", "_stext", "_etext", "_edata"};
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    if (symbol.module.empty() && std::ranges::find(kWanted, symbol.name) != kWanted.end())
      found.emplace(symbol.name, symbol.address);
  });
  for (const std::string_view reference : {kWanted[0], kWanted[1]}) {
    const auto start = found.find(reference);
    if (start == found.end() || start->second == 0) continue;
    KernelText text{std::string(reference), start->second, 0};
    for (const std::string_view end : {kWanted[3], kWanted[2]}) {
      if (text.end == 0 && found.contains(end)) text.end = found[end];
    }
    return text;
  }
  return std::nullopt;
}

std::vector<BpfImage> find_bpf_images(std::string_view kallsyms, std::size_t page_size) {
  std::vector<BpfImage> symbols;  // all symbols of BPF: each ends the previous one
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    if (symbol.module == "[bpf]" && symbol.address != 0)
      symbols.push_back({std::string(symbol.name), symbol.address, 0});
  });
  std::ranges::stable_sort(symbols, {}, &BpfImage::start);
  std::vector<BpfImage> images;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const bool is_image =
        symbols[i].name.starts_with("bpf_trampoline_") || symbols[i].name.starts_with("bpf_dispatcher_");
    if (!is_image) continue;
    std::uint64_t length = page_size;
    if (i + 1 < symbols.size()) length = std::min(length, symbols[i + 1].start - symbols[i].start);
    if (length == 0) continue;
    images.push_back(std::move(symbols[i]));
    images.back().length = static_cast<std::uint32_t>(length);
  }
  return images;
}

// "ext4 1003520 1 - Live 0xffffffffc0a00000 (E)"
std::optional<KernelModule> parse_module_line(std::string_view line) {
  KernelModule module;
  module.name = take_until(line, ' ');
  module.size = number_at<std::uint64_t>(take_until(line, ' '));
  for (int skipped = 0; skipped < 3; ++skipped) take_until(line, ' ');
  if (take_prefix(line, "0x")) module.start = number_at<std::uint64_t>(line, 16);
  if (module.name.empty() || module.start == 0 || module.size == 0) return std::nullopt;
  module.path = "[" + module.name + "]";
  return module;
}

std::vector<KernelModule> loaded_modules() {
  std::vector<KernelModule> modules;
  const auto text = format::read_file("/proc/modules");
  if (!text) return modules;  // a kernel without modules
  std::string_view rest = format::as_text(*text);
  while (!rest.empty()) {
    if (auto module = parse_module_line(take_until(rest, '\n'))) modules.push_back(std::move(*module));
  }
  if (modules.empty()) return modules;
  const auto files = module_files();
  for (KernelModule& module : modules) {
    if (const auto file = files.find(module.name); file != files.end()) module.path = file->second;
    module.build_id = build_id_in_file_of_notes("/sys/module/" + module.name + "/notes/.note.gnu.build-id");
  }
  std::ranges::sort(modules, {}, &KernelModule::start);
  return modules;
}

std::vector<format::BuildIdEntry> kernel_build_ids(const std::vector<KernelModule>& modules) {
  std::vector<format::BuildIdEntry> out;
  const auto add = [&](const format::BuildId& id, std::string filename) {
    if (!id.empty()) out.push_back({-1, abi::kCpumodeKernel, id, std::move(filename)});
  };
  add(build_id_in_file_of_notes("/sys/kernel/notes"), std::string(kKernelName));
  for (const KernelModule& module : modules) add(module.build_id, module.path);
  return out;
}

void write_kernel_records(format::ByteWriter& out, const std::optional<KernelText>& text,
                          const std::vector<KernelModule>& modules, std::size_t trailer) {
  if (text) {
    const std::string name = std::string(kKernelName) + text->reference;
    format::MmapRecord kernel;
    kernel.pid = kNobody;
    kernel.start = text->start;
    // Without a known end the text extends to the modules, or to the highest address.
    const std::uint64_t limit = modules.empty() ? ~std::uint64_t{0} : modules.front().start;
    const std::uint64_t end = text->end > text->start ? text->end : std::max(limit, text->start);
    kernel.length = end - text->start;
    kernel.page_offset = text->start;
    kernel.filename = name;
    format::write_mmap(out, kernel, abi::kCpumodeKernel, trailer);
  }
  for (const KernelModule& module : modules) {
    format::MmapRecord mapping;
    mapping.pid = kNobody;
    mapping.start = module.start;
    mapping.length = module.size;
    mapping.filename = module.path;
    format::write_mmap(out, mapping, abi::kCpumodeKernel, trailer);
  }
}

void write_image_records(format::ByteWriter& out, const std::vector<BpfImage>& images, std::size_t trailer) {
  for (const BpfImage& image : images)
    format::write_ksymbol(out, {image.start, image.length, kBpfSymbol, 0, image.name}, trailer);
}

void write_program_records(format::ByteWriter& out, const std::vector<bpf::LoadedProgram>& programs,
                           std::size_t trailer) {
  constexpr std::uint16_t kLoad = 1;
  for (const bpf::LoadedProgram& program : programs) {
    for (const bpf::LoadedSymbol& symbol : program.symbols) {
      format::write_ksymbol(out, {symbol.address, symbol.length, kBpfSymbol, 0, symbol.name}, trailer);
    }
    format::write_bpf_event(out, {kLoad, 0, program.id, program.tag}, trailer);
  }
}

namespace {

// Bytes up to the next symbol; 0: unknown.
std::uint64_t length_of(std::string_view kallsyms, std::uint64_t address) {
  std::uint64_t next = ~std::uint64_t{0};
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    if (symbol.address > address) next = std::min(next, symbol.address);
  });
  return next == ~std::uint64_t{0} ? 0 : next - address;
}

// Compares names of similar length only: the list has a hundred thousand.
std::string suggestion_for(std::string_view kallsyms, std::string_view function) {
  std::vector<std::string> names;
  const std::size_t most_away = function.size() / 3;
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    const std::size_t longer = std::max(symbol.name.size(), function.size());
    const std::size_t shorter = std::min(symbol.name.size(), function.size());
    if (is_code(symbol) && longer - shorter <= most_away) names.emplace_back(symbol.name);
  });
  return cli::suggestion(function, names);
}

}  // namespace

void each_kernel_function(std::string_view kallsyms,
                          const std::function<void(std::string_view name, std::uint64_t address)>& use) {
  for_each_symbol(kallsyms, [&use](const Symbol& symbol) {
    if (is_code(symbol)) use(symbol.name, symbol.address);
  });
}

std::vector<std::string> kernel_function_names(std::string_view kallsyms) {
  std::vector<std::string> names;
  each_kernel_function(kallsyms,
                       [&names](std::string_view name, std::uint64_t) { names.emplace_back(name); });
  return names;
}

Result<> check_kernel_function(std::string_view kallsyms, std::string_view function, std::uint64_t offset) {
  std::optional<Symbol> found;
  bool is_data = false;
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    if (symbol.name != function) return;
    if (is_code(symbol) && !found) found = symbol;
    is_data = is_data || !is_code(symbol);
  });
  if (!found) {
    if (is_data) return Error{fmt::format("'{}' is not a function", function)};
    return Error{
        fmt::format("this kernel has no function '{}'{}", function, suggestion_for(kallsyms, function))};
  }
  if (offset == 0 || found->address == 0) return Done{};
  const std::uint64_t length = length_of(kallsyms, found->address);
  if (length == 0 || offset < length) return Done{};
  return Error{fmt::format("'{}' is {} bytes long, and {} is after its end", function, length, offset)};
}

namespace {

// "ffffffff812a0040 vfs_read", "vfs_read", "ext4_read [ext4]".
struct TraceableLine {
  std::uint64_t address = 0;
  std::string_view name;  // empty: another kind of line
};
TraceableLine next_traceable(std::string_view& traceable, bool has_address) {
  std::string_view line = take_until(traceable, '\n');
  TraceableLine out;
  if (has_address) {
    out.address = take_number<std::uint64_t>(line, 16).value_or(0);
    if (!take_prefix(line, " ")) return {};
  }
  out.name = line.substr(0, line.find_first_of(" \t"));
  return out;
}

}  // namespace

std::map<std::string, std::vector<std::uint64_t>> function_places(std::string_view traceable,
                                                                  std::string_view kallsyms,
                                                                  const std::vector<std::string>& names) {
  std::unordered_set<std::string_view> wanted(names.begin(), names.end());
  if (!traceable.empty()) {
    std::unordered_set<std::string_view> listed;
    while (!traceable.empty()) {
      const auto name = next_traceable(traceable, false).name;
      if (wanted.contains(name)) listed.insert(name);
    }
    wanted = std::move(listed);
  }
  std::map<std::string, std::vector<std::uint64_t>> found;
  for_each_symbol(kallsyms, [&](const Symbol& symbol) {
    if (symbol.address != 0 && is_code(symbol) && wanted.contains(symbol.name))
      found[std::string(symbol.name)].push_back(symbol.address);
  });
  for (auto& [name, addresses] : found) {
    std::ranges::sort(addresses);
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  }
  return found;
}

std::vector<std::uint64_t> traceable_functions(std::string_view traceable, bool has_addresses,
                                               std::string_view kallsyms, const std::string& pattern) {
  std::vector<std::uint64_t> addresses;
  std::unordered_set<std::string_view> names;
  while (!traceable.empty()) {
    const auto [address, name] = next_traceable(traceable, has_addresses);
    if (name.empty() || ::fnmatch(pattern.c_str(), std::string(name).c_str(), 0) != 0) continue;
    if (has_addresses && address != 0) addresses.push_back(address);
    if (!has_addresses) names.insert(name);
  }
  if (!has_addresses)
    for_each_symbol(kallsyms, [&](const Symbol& symbol) {
      if (symbol.address != 0 && is_code(symbol) && names.contains(symbol.name))
        addresses.push_back(symbol.address);
    });
  std::ranges::sort(addresses);
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

Result<KernelSymbols> read_kernel_symbols(std::size_t page_size) {
  constexpr const char* kList = "/proc/kallsyms";
  KernelSymbols symbols;
  const auto kallsyms = format::read_file(kList);
  if (!kallsyms) {
    symbols.missing_reason = kallsyms.error().what + ": kernel frames will have no names";
    return symbols;
  }
  symbols.text = find_kernel_text(format::as_text(*kallsyms));
  symbols.images = find_bpf_images(format::as_text(*kallsyms), page_size);
  if (!symbols.text) {
    symbols.missing_reason =
        "kernel symbols are hidden or absent: kernel frames will have no names (run as root; tacho doctor "
        "says what else helps)";
    return symbols;
  }
  auto packed = format::pack_attachment(std::string(format::kKallsymsAttachment), kList, *kallsyms);
  if (!packed) return std::move(packed.error());
  symbols.list = std::move(*packed);
  return symbols;
}

KernelSymbolsAhead::KernelSymbolsAhead(std::size_t page_size) {
  const auto read = [page_size] { return read_kernel_symbols(page_size); };
  try {
    read_ = std::async(std::launch::async, read);
  } catch (const std::system_error&) {
    read_ = std::async(std::launch::deferred, read);  // no thread could be created
  }
}

std::optional<Result<KernelSymbols>> KernelSymbolsAhead::take_symbols() {
  if (!read_.valid()) return std::nullopt;
  return read_.get();
}

}  // namespace tacho::record
