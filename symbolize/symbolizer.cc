#include "symbolize/symbolizer.h"

#include <sys/utsname.h>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "format/file.h"
#include "format/perf_abi.h"
#include "symbolize/elf/elf_file.h"
#include "symbolize/elf/module_files.h"
#include "symbolize/elf/running_vdso.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/names/demangle.h"
#include "symbolize/names/kallsyms.h"
#include "symbolize/names/perf_map.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kLargestText = std::uint64_t{1} << 28;  // bytes of a kallsyms or a perf map

// What one module's names come from, opened when the first address needs it.
struct Source {
  SymbolTable own;
  SymbolTable* table = nullptr;         // `own`, or a part of kallsyms; null: no names
  std::optional<SymbolTable> embedded;  // asked where `own` knows nothing
  LoadMap loads;
  std::uint64_t moved = 0;  // a vmlinux: its kernel's addresses less the file's
  bool is_vmlinux = false;
  bool is_kernel_module = false;  // from its file: `loads` counts from the module's base
  char letter = '!';
  bool is_mangled = false;
  bool has_full_symbols = false;
  std::string lack;          // why there are no names, or no lines
  std::string_view lacking;  // what, before the reason
  const JitCode::Function* jit = nullptr;

  std::optional<DwarfLines> lines;  // read when the first address needs them
  bool lines_were_read = false;

  // Where this module's file has what stands at `frame`, and its symbols: by file offset.
  std::uint64_t offset_of(const Frame& frame) const {
    if (!is_vmlinux) return frame.shown_address;
    const auto offset = loads.offset_of({frame.ip.value - moved});
    return offset ? offset->value : ~std::uint64_t{0};
  }
  std::uint64_t elf_address_of(const Frame& frame, std::uint64_t offset) const {
    if (is_vmlinux) return frame.ip.value - moved;
    const auto address = loads.address_of({offset});
    return address ? address->value : frame.shown_address;
  }
};

Source from_table(SymbolTable table, char letter, bool is_mangled) {
  Source source;
  source.own = std::move(table);
  source.letter = letter;
  source.is_mangled = is_mangled;
  return source;
}

Source from_file(ModuleSymbols symbols) {
  Source source = from_table(std::move(symbols.table), symbols.letter, true);
  source.embedded = std::move(symbols.embedded);
  source.loads = std::move(symbols.loads);
  source.has_full_symbols = symbols.is_full;
  return source;
}

Source from_jit(const JitCode::Function& function) {
  SymbolTable table;
  const std::uint64_t start = JitCode::kTextOffset, most = ~std::uint64_t{0} - start;
  table.add({.start = start, .end = start + std::min(function.size, most), .name = function.name});
  table.finish();
  Source source = from_table(std::move(table), 'd', true);
  source.has_full_symbols = true;
  source.jit = &function;
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
  const JitCode* jit;
  DebugFiles files;
  Demangler demangler;
  std::vector<std::string> refusals;  // what was asked for and cannot be had, for no one module
  std::optional<Debuginfod> servers;
  ModuleFiles module_files;
  std::optional<Result<Kallsyms>> kallsyms;
  std::unordered_map<const Module*, Source> sources;
  std::deque<const Module*> asked;  // the keys of sources, in the order they were needed
  Frame frame;                      // the one that was returned last
  std::vector<Frame> inlined;       // and those, where one address takes several
  std::vector<Call> calls;          // scratch

  State(SymbolOptions given, const format::Features& capture_features, const AddressSpaces& address_spaces,
        const JitCode* jit_code)
      : options(std::move(given)),
        features(capture_features),
        spaces(address_spaces),
        jit(jit_code),
        files(options.symfs, options.build_id_dir),
        demangler(options.demangle == Demangle::Whole ? NameForm::Whole : NameForm::Short),
        servers(connect()),
        module_files(files, servers ? &*servers : nullptr, demangling()) {}

  Source& source_of(const Module& module);
  Source open_source(const Module& module);
  Source open_kallsyms(const Module& module);
  Source open_kernel(const Module& module);
  Source open_kernel_module(const Module& module);
  const Mapping* kernel_beyond_its_text(format::RuntimeAddress ip);
  Source open_elf(const Module& module);
  Source open_vdso(const Module& module);
  Source open_perf_map(const Module& module);
  Source no_source(const Module& module);

  bool runs_recorded_kernel() const;
  Result<Kallsyms> read_kallsyms() const;
  std::optional<Debuginfod> connect();
  Demangler* demangling() { return options.demangle == Demangle::No ? nullptr : &demangler; }
  std::string_view shown(const Source& source, std::string_view name) {
    return source.is_mangled && options.demangle != Demangle::No ? demangler.shown(name) : name;
  }
  DwarfLines* lines_of(const Module& module, Source& source);
  const Symbol* name(const Mapping& mapping);
  std::span<const Frame> add_lines(const Symbol* symbol, bool has_inlines);
  std::span<const Frame> add_calls(const Source& source);
  std::string missing_of(const Module& module, std::string_view ended) const;
};

// Which source each kind of module has.
Source Symbolizer::State::open_source(const Module& module) {
  struct Row {
    ModuleKind kind;
    Source (State::*open)(const Module&);
  };
  constexpr Row kRows[] = {
      {ModuleKind::User, &State::open_elf},
      {ModuleKind::Kernel, &State::open_kernel},
      {ModuleKind::KernelModule, &State::open_kernel_module},
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
  if (!source.table && (!source.own.empty() || source.embedded)) source.table = &source.own;
  return source;
}

Source Symbolizer::State::no_source(const Module& /*module*/) { return {}; }

// By its build id, or where the capture has none (no sample lay in the kernel) by the names of host and
// kernel. Never with
// --symfs, which names another machine.
bool Symbolizer::State::runs_recorded_kernel() const {
  const auto& text = spaces.kernel_text();
  const Mapping* const kernel = text ? spaces.find(0, {text->start}, format::abi::kCpumodeKernel) : nullptr;
  if (!options.symfs.empty()) return false;
  if (kernel && !kernel->module->build_id.empty()) {
    const auto notes = format::read_file("/sys/kernel/notes", kLargestText);
    return notes && format::build_id_in_notes(*notes) == kernel->module->build_id;
  }
  utsname running{};
  return ::uname(&running) == 0 && features.environment.hostname == running.nodename &&
         features.environment.os_release == running.release;
}

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
  if (runs_recorded_kernel()) {
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

// kallsyms knows where each function lies; the file only how the kernel would have laid them out.
Source Symbolizer::State::open_kernel_module(const Module& module) {
  Source source = open_kallsyms(module);
  if (source.table || module.file.empty()) return source;
  auto symbols = module_files.kernel_module_symbols(module);
  if (!symbols) {
    source.lack += "; " + symbols.error().what;
    return source;
  }
  source = from_file(std::move(*symbols));
  source.is_kernel_module = true;
  return source;
}

// The file the user names has more than kallsyms: sizes, and lines.
Source Symbolizer::State::open_kernel(const Module& module) {
  if (options.vmlinux.empty()) return open_kallsyms(module);
  const auto& text = spaces.kernel_text();
  auto kernel = text ? module_files.kernel_symbols(options.vmlinux, module.build_id, text->reference_symbol,
                                                   text->reference_address)
                     : Result<KernelSymbols>(Error{"the capture does not say where the kernel lay"});
  if (!kernel) {
    refusals.push_back(kernel.error().what + "; names come from kallsyms");
    return open_kallsyms(module);
  }
  Source source = from_file(std::move(kernel->symbols));
  source.is_vmlinux = true;
  source.moved = kernel->moved;
  return source;
}

Source Symbolizer::State::open_elf(const Module& module) {
  if (const auto* const function = jit ? jit->find(module.path) : nullptr) return from_jit(*function);
  auto symbols = module_files.symbols(module);
  return symbols ? from_file(std::move(*symbols)) : without_names(std::move(symbols.error().what));
}

std::optional<Debuginfod> Symbolizer::State::connect() {
  if (options.debuginfod == Servers::NotAsked) return std::nullopt;
  auto connected = Debuginfod::connect();
  if (connected) return std::move(*connected);
  refusals.push_back(connected.error().what);
  return std::nullopt;
}

// The kernel's gift to every process is no file; the recorder attaches it.
// In order: the one in the capture, and this machine's if it runs the recorded kernel.
Source Symbolizer::State::open_vdso(const Module& module) {
  const auto* const attached = features.attachment("vdso");
  if (!attached && !files.root().empty()) return without_names("it is not attached to the capture");
  auto image = attached ? format::unpack_attachment(*attached, kLargestText)
               : module.build_id.empty() && runs_recorded_kernel() ? running_vdso()
                                                                   : running_vdso(module.build_id);
  if (!image)
    return without_names((attached ? "" : "it is not attached to the capture; ") + image.error().what);
  auto elf = ElfFile::in_memory(*image);
  auto table = elf ? read_symbols(*elf, *elf, demangling()) : Result<SymbolTable>(std::move(elf.error()));
  if (!table) return without_names("the vdso: " + table.error().what);
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

// Recorders give the kernel's range from _text to _etext; its symbols go on behind (the code of its start,
// where idle tasks' stacks begin). As in perf, the kernel reaches as far as its symbols do.
const Mapping* Symbolizer::State::kernel_beyond_its_text(format::RuntimeAddress ip) {
  const auto& text = spaces.kernel_text();
  const Mapping* const kernel = text ? spaces.find(0, {text->start}, format::abi::kCpumodeKernel) : nullptr;
  if (!kernel) return nullptr;
  const Source& source = source_of(*kernel->module);
  return source.table && !source.is_vmlinux && source.table->find(ip.value) ? kernel : nullptr;
}

// The symbol that the frame was named after, if it has one in a table.
const Symbol* Symbolizer::State::name(const Mapping& mapping) {
  const Module& module = *mapping.module;
  if (module.kind == ModuleKind::Bpf) {  // the mapping is the function
    frame.function = module.path;
    frame.function_start = mapping.start;
    frame.function_end = mapping.end;
    return nullptr;
  }
  Source& source = source_of(module);
  if (!source.table) return nullptr;
  frame.source = source.letter;
  std::uint64_t offset = source.offset_of(frame);
  if (source.is_kernel_module) {
    const auto place = source.loads.offset_of({frame.ip.value - mapping.start + mapping.page_offset});
    if (!place) return nullptr;
    offset = place->value;
  }
  const Symbol* symbol = source.table->find(offset);
  if (!symbol && source.embedded) symbol = source.embedded->find(offset);
  if (!symbol) return nullptr;
  frame.function = shown(source, symbol->name);
  frame.function_start = frame.shown_address - (offset - symbol->start);
  frame.function_end = frame.function_start + symbol->size();
  return symbol;
}

DwarfLines* Symbolizer::State::lines_of(const Module& module, Source& source) {
  if (!source.lines_were_read) {
    source.lines_were_read = true;
    if (source.jit) return nullptr;  // they stand in the jitdump
    auto read = source.is_vmlinux ? module_files.kernel_lines(options.vmlinux, module.build_id)
                : module.kind == ModuleKind::User ? module_files.lines(module)
                                                  : std::optional<DwarfLines>{};
    if (read)
      source.lines = std::move(*read);
    else if (source.lack.empty()) {
      source.lack = read.error().what;
      source.lacking = "its source lines cannot be read: ";
    }
  }
  return source.lines ? &*source.lines : nullptr;
}

// What DWARF knows of the frame: its line, and with `has_inlines` a frame for each inlined call.
std::span<const Frame> Symbolizer::State::add_lines(const Symbol* symbol, bool has_inlines) {
  Source& source = source_of(*frame.module);
  if (source.is_kernel_module) return {&frame, 1};  // its DWARF was never linked
  const std::uint64_t offset = source.offset_of(frame);
  frame.elf_address = source.elf_address_of(frame, offset);
  // Entries of the PLT stand in no symbol table: their names are made up. For a file with dynamic symbols
  // alone perf forgets --symfs, and so finds nothing.
  const bool has_symbols = source.has_full_symbols || (options.symfs.empty() && !source.own.empty());
  const bool is_listed = has_symbols && !(symbol && symbol->name.ends_with("@plt"));
  frame.line_state = is_listed ? LineState::Unknown : LineState::NoSource;
  calls.clear();
  const JitLine* const jit_line =
      source.jit && symbol ? line_at(source.jit->lines, offset - symbol->start) : nullptr;
  if (jit_line) {
    calls.push_back({symbol->name, jit_line->file, jit_line->line});
  } else if (DwarfLines* const lines = lines_of(*frame.module, source)) {
    LinkerSymbol linkers{};
    if (symbol) linkers = {symbol->name, {frame.elf_address - (offset - symbol->start)}};
    lines->find({frame.elf_address}, linkers, calls);
  }
  if (calls.empty() && symbol && is_listed) calls.push_back({symbol->name, {}, 0});
  if (has_inlines && symbol && !calls.empty()) return add_calls(source);
  if (!calls.empty()) frame.line_state = calls[0].file.empty() ? LineState::Unknown : LineState::Known;
  if (frame.line_state == LineState::Known) {
    frame.file = calls[0].file;
    frame.line = calls[0].line;
  }
  return {&frame, 1};
}

// perf takes every frame of such a place from DWARF, and for inlined all whose names are not the symbol's.
std::span<const Frame> Symbolizer::State::add_calls(const Source& source) {
  inlined.clear();
  for (const Call& call : calls) {
    Frame& one = inlined.emplace_back(frame);
    const std::string_view name = call.function.empty() ? "??" : shown(source, call.function);
    one.is_inlined = name != frame.function;
    one.function = name;
    one.line_state = LineState::Known;
    one.file = call.file.empty() ? "??" : call.file;
    one.line = call.file.empty() ? 0 : call.line;
  }
  return inlined;
}

Symbolizer::Symbolizer(SymbolOptions options, const format::Features& features, const AddressSpaces& spaces,
                       const JitCode* jit)
    : state_(std::make_unique<State>(std::move(options), features, spaces, jit)) {}
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;
Symbolizer::~Symbolizer() = default;

std::span<const Frame> Symbolizer::resolve(const Mapping* mapping, format::RuntimeAddress ip,
                                           std::uint8_t cpumode, Origin origin) {
  State& state = *state_;
  const Inlines inlines = state.options.inlines;
  const bool has_inlines = (origin == Origin::Unwound && inlines != Inlines::No) ||
                           (origin == Origin::Chain && inlines == Inlines::All);
  Frame& frame = state.frame;
  frame = {};
  frame.ip = ip;
  frame.cpumode = cpumode;
  frame.shown_address = ip.value;
  if (!mapping && cpumode == format::abi::kCpumodeKernel) mapping = state.kernel_beyond_its_text(ip);
  if (!mapping) return {&frame, 1};
  frame.module = mapping->module;
  frame.shown_address = mapping->shown_address(ip);
  const Symbol* const symbol = state.name(*mapping);
  const bool asks_dwarf = has_inlines || state.options.source_lines == SourceLines::Yes;
  return asks_dwarf ? state.add_lines(symbol, has_inlines) : std::span<const Frame>(&frame, 1);
}

// One line for all that is missing of a module. `ended` is why call chains end in it, or empty.
std::string Symbolizer::State::missing_of(const Module& module, std::string_view ended) const {
  constexpr std::string_view kEnded = "call chains end there: ";
  const auto known = sources.find(&module);
  const Source* const source = known == sources.end() ? nullptr : &known->second;
  std::string lack = source ? source->lack : "";
  if (lack.empty() && source && source->lines) lack = source->lines->lack();
  if (lack.empty()) return ended.empty() ? "" : files.told(module.path, std::string(ended), kEnded);
  std::string line = files.told(module.path, lack, source->lacking);
  if (ended.empty() || lack.starts_with(ended)) return line;
  const std::string here = files.place(module.path) + ": ";
  if (ended.starts_with(here)) ended.remove_prefix(here.size());
  return line + "; " + std::string(kEnded) + std::string(ended);
}

void Symbolizer::report_missing(format::Diagnostics& diagnostics,
                                std::span<const ModuleLack> ended_chains) const {
  for (const std::string& refusal : state_->refusals) {
    diagnostics.add_line(format::Damage::NoSymbols, refusal);
  }
  std::unordered_map<const Module*, std::string_view> ended;
  std::vector<const Module*> modules(state_->asked.begin(), state_->asked.end());
  for (const ModuleLack& lack : ended_chains) {
    ended.emplace(lack.module, lack.reason);
    if (!state_->sources.contains(lack.module)) modules.push_back(lack.module);
  }
  for (const Module* module : modules) {
    const std::string line = state_->missing_of(*module, ended[module]);
    if (!line.empty()) diagnostics.add_line(format::Damage::NoSymbols, line);
  }
}

}  // namespace tacho::symbolize
