#include "symbolize/symbolizer.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <unordered_map>
#include <utility>

#include "format/file.h"
#include "format/perf_abi.h"
#include "symbolize/debug_files.h"
#include "symbolize/demangle.h"
#include "symbolize/elf_file.h"
#include "symbolize/kallsyms.h"
#include "symbolize/perf_map.h"
#include "tsl/robin_map.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kLargestText = std::uint64_t{1} << 28;  // bytes of a kallsyms or a perf map

struct Place {
  const Mapping* mapping;
  std::uint64_t ip;
  std::uint8_t cpumode;
  bool operator==(const Place&) const = default;
};
struct PlaceHash {
  std::size_t operator()(const Place& place) const noexcept {
    // Multiplication spreads the low bits upwards, the rotation brings them back to where the map looks.
    const std::uint64_t mixed =
        (place.ip ^ (reinterpret_cast<std::uintptr_t>(place.mapping) * 31)) + place.cpumode;
    return static_cast<std::size_t>(std::rotl(mixed * 0x9E3779B97F4A7C15, 32));
  }
};

// What one module's names come from, opened when the first address needs it.
struct Source {
  SymbolTable own;
  SymbolTable* table = nullptr;  // `own`, or a part of kallsyms; null: no names
  char letter = '!';
  bool is_mangled = false;
  std::string lack;  // why there are no names
};

Source from_table(SymbolTable table, char letter, bool is_mangled) {
  Source source;
  source.own = std::move(table);
  source.letter = letter;
  source.is_mangled = is_mangled;
  return source;
}

Source without_names(std::string reason) {
  Source source;
  source.lack = std::move(reason);
  return source;
}

bool is_perf_map(const Module& module) {
  return module.kind == ModuleKind::Anonymous && module.path.starts_with("/tmp/perf-");
}

}  // namespace

struct Symbolizer::State {
  SymbolOptions options;
  const format::Features& features;
  const AddressSpaces& spaces;
  DebugFiles files;
  Demangler demangler;
  std::optional<Result<Kallsyms>> kallsyms;
  std::unordered_map<const Module*, Source> sources;
  std::deque<const Module*> asked;  // the keys of sources, in the order they were needed
  tsl::robin_map<Place, std::span<const Frame>, PlaceHash> resolved;
  std::deque<Frame> frames;

  State(SymbolOptions given, const format::Features& capture_features, const AddressSpaces& address_spaces)
      : options(std::move(given)), features(capture_features), spaces(address_spaces), files(options.symfs) {}

  Source& source_of(const Module& module);
  Source open_source(const Module& module);
  Source open_kallsyms(const Module& module);
  Source open_elf(const Module& module);
  Source open_vdso(const Module& module);
  Source open_perf_map(const Module& module);
  Source no_source(const Module& module);

  Result<Kallsyms> read_kallsyms() const;
  Result<ElfFile> open_checked(const std::string& path, const format::BuildId& wanted) const;
  Demangler* demangling() { return options.demangle == Demangle::Yes ? &demangler : nullptr; }
  void name(Frame& frame, const Mapping& mapping);
};

// Which source each kind of module has.
Source Symbolizer::State::open_source(const Module& module) {
  struct Row {
    ModuleKind kind;
    Source (State::*open)(const Module&);
  };
  constexpr Row kRows[] = {
      {ModuleKind::User, &State::open_elf},
      {ModuleKind::Kernel, &State::open_kallsyms},
      {ModuleKind::KernelModule, &State::open_kallsyms},
      {ModuleKind::Vdso, &State::open_vdso},
      {ModuleKind::Anonymous, &State::open_perf_map},
      {ModuleKind::Bpf, &State::no_source},
      {ModuleKind::GuestKernel, &State::no_source},
  };
  const auto row = std::ranges::find(kRows, module.kind, &Row::kind);
  return (this->*row->open)(module);
}

Source& Symbolizer::State::source_of(const Module& module) {
  const auto [entry, is_new] = sources.try_emplace(&module);
  Source& source = entry->second;
  if (!is_new) return source;
  asked.push_back(&module);
  source = open_source(module);
  if (!source.table && !source.own.empty()) source.table = &source.own;
  return source;
}

Source Symbolizer::State::no_source(const Module& /*module*/) { return {}; }

// In order: the file the user names, the one in the capture, and this machine's if it runs the recorded
// kernel.
Result<Kallsyms> Symbolizer::State::read_kallsyms() const {
  std::optional<ReferenceSymbol> reference;
  const auto& text = spaces.kernel_text();
  if (text && !text->reference_symbol.empty()) {
    reference = ReferenceSymbol{text->reference_symbol, text->reference_address};
  }
  const auto parse = [&](Result<std::vector<std::byte>> content,
                         const std::string& place) -> Result<Kallsyms> {
    if (!content) return std::move(content.error());
    auto parsed = Kallsyms::parse(std::move(*content), reference);
    return parsed ? std::move(parsed) : Result<Kallsyms>(std::move(parsed.error()).in(place));
  };
  if (!options.kallsyms.empty())
    return parse(format::read_file(options.kallsyms, kLargestText), options.kallsyms);
  if (const auto* attached = features.attachment(format::kKallsymsAttachment)) {
    return parse(format::unpack_attachment(*attached, kLargestText), "the attached kallsyms");
  }
  const Mapping* const kernel = text ? spaces.find(0, {text->start}, format::abi::kCpumodeKernel) : nullptr;
  if (options.symfs.empty() && kernel && !kernel->module->build_id.empty()) {
    const auto notes = format::read_file("/sys/kernel/notes", kLargestText);
    const auto running = notes ? format::build_id_in_notes(*notes) : std::nullopt;
    if (running == kernel->module->build_id)
      return parse(format::read_file("/proc/kallsyms", kLargestText), "/proc/kallsyms");
  }
  return Error{"no kallsyms in the capture; give the recorded kernel's with --kallsyms FILE"};
}

Source Symbolizer::State::open_kallsyms(const Module& module) {
  if (!kallsyms) kallsyms = read_kallsyms();
  if (!*kallsyms) return without_names(kallsyms->error().what);
  Source source;
  source.table =
      module.kind == ModuleKind::Kernel ? &(*kallsyms)->kernel() : (*kallsyms)->module(module.path);
  if (!source.table) return without_names("kallsyms has no symbols of it");
  source.letter = 'k';
  return source;
}

// The file at `path` if it is the wanted one.
Result<ElfFile> Symbolizer::State::open_checked(const std::string& path,
                                                const format::BuildId& wanted) const {
  const std::string place = files.place(path);
  auto file = files.open(path);
  if (!file) return std::move(file.error());
  auto elf = ElfFile::open(std::move(*file));
  if (!elf) return std::move(elf.error()).in(place);
  if (wanted.empty()) return elf;
  const format::BuildId seen = elf->build_id();
  if (seen == wanted) return elf;
  return Error{seen.empty() ? "has no build id" : "has another build id, " + seen.hex()}.in(place);
}

// As perf: names from a debug file if one matches, places from the file that ran.
Source Symbolizer::State::open_elf(const Module& module) {
  if (!module.path.starts_with('/')) return without_names("it was not mapped from a file");
  const auto own = open_checked(module.path, module.build_id);
  const format::BuildId id = own ? own->build_id() : module.build_id;
  for (const Candidate& candidate : DebugFiles::candidates(module.path, id, own ? own->debuglink() : "")) {
    const auto debug = open_checked(candidate.path, id);
    if (!debug || !debug->has_full_symbols()) continue;
    auto table = read_symbols(*debug, own ? *own : *debug, demangling());
    if (table) return from_table(std::move(*table), candidate.source, true);
  }
  if (!own && module.build_id.empty()) return without_names(own.error().what);
  if (!own)
    return without_names("no file with build id " + module.build_id.hex() + " (" + own.error().what + ")");
  auto table = read_symbols(*own, *own, demangling());
  if (!table) return without_names(std::move(table.error()).in(files.place(module.path)).what);
  return from_table(std::move(*table), 'd', true);
}

// The kernel's gift to every process is no file; the recorder attaches it.
Source Symbolizer::State::open_vdso(const Module& /*module*/) {
  const auto* const attached = features.attachment("vdso");
  if (!attached) return without_names("it is not attached to the capture");
  auto image = format::unpack_attachment(*attached, kLargestText);
  if (!image) return without_names(image.error().what);
  auto elf = ElfFile::in_memory(*image);
  auto table = elf ? read_symbols(*elf, *elf, demangling()) : Result<SymbolTable>(std::move(elf.error()));
  if (!table) return without_names("the attached vdso: " + table.error().what);
  return from_table(std::move(*table), 'd', true);
}

// In order: the folder the user names, the map in the capture, and the recording host's /tmp.
Source Symbolizer::State::open_perf_map(const Module& module) {
  if (!is_perf_map(module)) return {};
  const std::string name = module.path.substr(module.path.rfind('/') + 1);  // "perf-PID.map"
  const std::string pid = name.substr(5, name.size() - 9);
  const auto read = [&]() -> Result<std::vector<std::byte>> {
    auto text = options.perf_map_dir.empty()
                    ? Result<std::vector<std::byte>>(Error{})
                    : format::read_file(options.perf_map_dir + "/" + name, kLargestText);
    if (text) return text;
    if (const auto* attached = features.attachment("perf-map/" + pid)) {
      return format::unpack_attachment(*attached, kLargestText);
    }
    return options.perf_map_dir.empty() ? files.read(module.path, kLargestText) : std::move(text);
  };
  auto text = read();
  if (!text) return without_names(text.error().what);
  auto table = parse_perf_map(std::move(*text));
  if (!table) return without_names(table.error().what);
  return from_table(std::move(*table), 'j', false);
}

void Symbolizer::State::name(Frame& frame, const Mapping& mapping) {
  const Module& module = *mapping.module;
  if (module.kind == ModuleKind::Bpf) {  // the mapping is the function
    frame.function = module.path;
    frame.function_start = mapping.start;
    frame.function_end = mapping.end;
    return;
  }
  Source& source = source_of(module);
  if (!source.table) return;
  frame.source = source.letter;
  const Symbol* const symbol = source.table->find(frame.shown_address);
  if (!symbol) return;
  const bool demangles = source.is_mangled && options.demangle == Demangle::Yes;
  frame.function = demangles ? demangler.shown(symbol->name) : symbol->name;
  frame.function_start = symbol->start;
  frame.function_end = symbol->end;
}

Symbolizer::Symbolizer(SymbolOptions options, const format::Features& features, const AddressSpaces& spaces)
    : state_(std::make_unique<State>(std::move(options), features, spaces)) {}
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;
Symbolizer::~Symbolizer() = default;

std::span<const Frame> Symbolizer::resolve(const Mapping* mapping, format::RuntimeAddress ip,
                                           std::uint8_t cpumode) {
  const Place place{mapping, ip.value, cpumode};
  if (const auto known = state_->resolved.find(place); known != state_->resolved.end()) return known->second;
  Frame& frame = state_->frames.emplace_back();
  frame.ip = ip;
  frame.cpumode = cpumode;
  frame.shown_address = ip.value;
  if (mapping) {
    frame.module = mapping->module;
    frame.shown_address = mapping->shown_address(ip);
    state_->name(frame, *mapping);
  }
  return state_->resolved.emplace(place, std::span<const Frame>(&frame, 1)).first->second;
}

void Symbolizer::report_missing(format::Diagnostics& diagnostics) const {
  for (const Module* module : state_->asked) {
    const std::string& lack = state_->sources.at(module).lack;
    if (!lack.empty()) diagnostics.add_line(format::Damage::NoSymbols, module->path + ": " + lack);
  }
}

}  // namespace tacho::symbolize
