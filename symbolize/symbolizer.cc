#include "symbolize/symbolizer.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "format/base/file.h"
#include "format/base/parse_text.h"
#include "format/extensions/map_owner.h"
#include "format/records/perf_abi.h"
#include "symbolize/elf/module_files.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/files/debuginfod.h"
#include "symbolize/files/decompress.h"
#include "symbolize/files/file_access.h"
#include "symbolize/files/source_files.h"
#include "symbolize/kernel_names.h"
#include "symbolize/names/demangle.h"
#include "symbolize/names/symbol_lists.h"
#include "symbolize/other_packs.h"
#include "symbolize/packed_names.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kMostReported = 1000;   // limit of lines about modules
constexpr std::string_view kBpfText = "[bpf]";  // of kallsyms: what the kernel made for BPF programs

}  // namespace

struct Symbolizer::State {
  SymbolOptions options;
  const format::Features& features;
  KernelSpace kernel;
  const JitCode* jit;
  DebugFiles files;
  Demangler demangler;
  std::vector<std::string> unusable_files;  // of options, with the reasons: reported at the end
  std::optional<Debuginfod> servers;
  ModuleFiles module_files;
  KernelNames kernel_names;
  PackedNames pack;
  SimpleperfNames simpleperf;
  SymbolSources sources;
  std::unordered_map<const Module*, SymbolSource> in_files;  // of symbol_in_file()
  std::optional<SourceSums> packed_sums;                     // read when first needed
  std::unordered_map<std::string_view, Module> bpf_modules;  // by their names in kallsyms
  std::deque<const Module*> used;                            // the keys of sources, in order of first use
  std::optional<WithModules> left_out;                       // see leave_names_out()
  const Symbol* last_symbol = nullptr;                       // of the last look-up
  Frame frame;                 // result of the last look-up, if it was one frame
  Frame at;                    // the addresses of the last look-up
  std::vector<Frame> inlined;  // result of the last look-up, if there were inlined calls
  std::vector<Call> calls;     // scratch

  State(SymbolOptions given, const format::Features& capture_features, KernelSpace kernel_space,
        const JitCode* jit_code)
      : options(std::move(given)),
        features(capture_features),
        kernel(kernel_space),
        jit(jit_code),
        files(options.symfs, options.build_id_dir, options.pinned,
              options.checks_inodes ? &capture_features : nullptr),
        demangler(options.demangle == Demangle::Whole ? NameForm::Whole : NameForm::Short),
        servers(connect()),
        module_files(files, servers ? &*servers : nullptr, demangling(), options.labels),
        kernel_names(options, features, kernel),
        pack(features.symbol_pack),
        simpleperf(features) {}

  SymbolSources::Entry& known(const Module& module) {
    SymbolSources::Entry& known = sources.entry_of(module);
    if (known.source != nullptr && !SymbolSources::check_late_build_id(known, module)) return known;
    if (known.source == nullptr) used.push_back(&module);
    known.lines_were_read = false;
    SymbolSource source = open_pack_or_files(module);
    name_ranges(source, module);
    source.use_own_table();
    const std::string here = files.local_path(std::string(module.path)) + ": ";
    source.missing.is_of_own_file = source.missing.text.starts_with(here);
    if (source.missing.is_of_own_file) source.missing.text.erase(0, here.size());
    sources.keep(std::move(source), known);
    return known;
  }

  SymbolSource& source_of(const Module& module) { return *known(module).source; }

  SymbolSource open_source(const Module& module) {
    switch (module.kind) {
      case ModuleKind::User:
        return open_elf(module);
      case ModuleKind::Kernel:
        return open_kernel(module);
      case ModuleKind::KernelModule:
        return open_kernel_module(module);
      case ModuleKind::Vdso:
        return open_vdso(module);
      case ModuleKind::Anonymous:
        return open_perf_map(module);
      case ModuleKind::Bpf:
      case ModuleKind::GuestKernel:
        break;
    }
    return {};
  }

  // When a capture is packed again: the file's symbols, if the pack has only exported names (.dynsym) and the
  // file, or its debug file, has a .symtab now.
  std::optional<SymbolSource> completed_source(PackedSource& packed, const Module& module) {
    const bool may_have_more = options.completes_pack && module.kind == ModuleKind::User &&
                               !module.build_id.empty() && !packed.is(format::PackedModule::kHasFullSymbols);
    if (!may_have_more) return std::nullopt;
    SymbolSource source = open_source(module);
    if (!source.has_full_symbols) return std::nullopt;
    return source;
  }

  // The order: files named by options, the capture's symbol pack, the files at the recorded paths, packs of
  // other captures.
  SymbolSource open_pack_or_files(const Module& module) {
    PackedSource* const packed = pack.find_source(module.kind, module.path, module.build_id);
    const bool is_packed = packed && packed->is(format::PackedModule::kHasNames) && !in_jitdump(module);
    if (is_packed && !names_are_given(options, module.kind)) {
      if (auto completed = completed_source(*packed, module)) return std::move(*completed);
      return from_pack(*packed, options.unnamed);
    }
    // Without a build id, the file at this path may be another one.
    if (module.build_id.empty() && !names_are_given(options, module.kind))
      if (auto simpleperf_names = simpleperf.source_of(module)) return std::move(*simpleperf_names);
    SymbolSource source = open_source(module);
    if (source.table || source.own || source.embedded) return source;
    if (auto simpleperf_names = simpleperf.source_of(module)) return std::move(*simpleperf_names);
    if (is_packed) {
      if (module.kind == ModuleKind::Kernel && !options.kallsyms.empty())
        unusable_files.push_back(source.missing.text +
                                 "; names come from the symbols packed into the capture");
      return from_pack(*packed, options.unnamed);
    }
    if (!options.others) return source;
    if (PackedSource* const other = options.others->find_source(module))
      return from_pack(*other, options.unnamed);
    source.missing.text += options.others->other_build_of(module);
    return source;
  }

  // Adds the ranges of functions in .eh_frame, for code without symbols. They are read when first needed,
  // which is seldom.
  void name_ranges(SymbolSource& source, const Module& module) {
    const bool is_enabled = options.unnamed == Unnamed::Functions && module.kind == ModuleKind::User;
    if (!is_enabled || source.origin != SymbolSource::Origin::File || source.table) return;
    const auto open = [this, &module]() -> std::unique_ptr<FunctionRanges> {
      const ScopedRead reading(options.name_access, module.path);
      if (reading.is_refused()) return nullptr;
      return module_files.function_ranges(module);
    };
    std::string prefix = std::string(module.short_name) + "+0x";
    if (SymbolTable* const last = source.embedded ? source.embedded.get() : source.own.get(); last != nullptr)
      return last->add_unnamed(std::move(prefix), open);
    std::unique_ptr<FunctionRanges> functions = open();
    if (functions == nullptr || functions->size() == 0) return;
    source.own = std::make_unique<SymbolTable>();
    source.own->add_unnamed(std::move(prefix), nullptr, std::move(functions));
  }

  SymbolSource open_kallsyms(const Module& module) {
    auto table = kernel_names.table_of(module);
    if (!table) return without_names(std::move(table.error()));
    SymbolSource source;
    source.table = *table;
    source.letter = 'k';
    return source;
  }

  // A vmlinux has more than kallsyms: sizes of functions, and source lines.
  SymbolSource open_kernel(const Module& module) {
    if (options.vmlinux.empty()) return open_kallsyms(module);
    const auto& text = kernel.text();
    auto symbols = text ? module_files.kernel_symbols(options.vmlinux, module.build_id,
                                                      text->reference_symbol, text->reference_address)
                        : Result<KernelSymbols>(Error{"the capture does not have the kernel's address"});
    if (!symbols) {
      unusable_files.push_back(symbols.error().what + "; names come from kallsyms");
      return open_kallsyms(module);
    }
    SymbolSource source = from_file(std::move(symbols->symbols));
    source.origin = SymbolSource::Origin::Vmlinux;
    source.moved = symbols->moved;
    return source;
  }

  // A kernel module's symbols come from kallsyms, with their addresses. The .ko file is only read for code
  // that has no symbol there, since the kernel places its sections differently at each load.
  SymbolSource open_kernel_module(const Module& module) {
    SymbolSource source = open_kallsyms(module);
    if (source.table || module.file.empty()) return source;
    auto symbols = module_files.kernel_module_symbols(module);
    if (!symbols) {
      source.missing.text += "; " + symbols.error().what;
      source.missing.is_left_out = is_left_out(symbols.error());
      return source;
    }
    source = from_file(std::move(*symbols));
    source.origin = SymbolSource::Origin::KernelModuleFile;
    return source;
  }

  // The recorded range of the kernel is _text to _etext; its init code, where stacks of idle tasks begin,
  // comes later. As in perf, the kernel extends to the end of its symbols.
  const Mapping* kernel_beyond_its_text(format::RuntimeAddress ip) {
    const Mapping* const text = kernel.text_mapping();
    if (!text) return nullptr;
    const SymbolSource& source = source_of(*text->module);
    return source.table && !source.is_vmlinux() && source.table->find_symbol(ip.value) ? text : nullptr;
  }

  // BPF trampolines and dispatchers have no mapping if the recorder did not write KSYMBOL records; they are
  // found in the capture's kallsyms.
  void name_bpf_text() {
    SymbolTable* const table = bpf_text();
    const Symbol* const symbol = table ? table->find_symbol(at.ip.value) : nullptr;
    if (!symbol) return;
    const auto [known, is_new] = bpf_modules.try_emplace(symbol->name);
    Module& module = known->second;
    module.kind = ModuleKind::Bpf;
    if (is_new) module.path = module.short_name = symbol->name;
    frame.module = &module;
    frame.function = module.path;
    frame.function_start = symbol->start;
    frame.function_end = symbol->end;
  }

  SymbolSource open_elf(const Module& module) {
    if (const JitCode::Function* const function = in_jitdump(module)) return from_jit(*function);
    auto symbols = module_files.symbols(module);
    return symbols ? from_file(std::move(*symbols)) : without_names(std::move(symbols.error()));
  }

  // The vdso has no file: it is attached by the recorder, or else this machine's is used if it is the same
  // one.
  SymbolSource open_vdso(const Module& module) {
    const auto* const attached = features.attachment("vdso");
    if (!attached && !files.root().empty()) return without_names(Error{kVdsoNotAttached});
    const bool is_running = module.build_id.empty() && kernel_names.runs_recorded_kernel();
    auto image = attached     ? unpack_attached_text(*attached)
                 : is_running ? running_vdso()
                              : running_vdso(module.build_id);
    if (!image)
      return without_names(Error{(attached ? "" : "it is not attached to the capture: ") + image.error().what,
                                 image.error().code});
    return from_vdso(std::move(*image), demangling());
  }

  // A perf-PID.map is looked for in --perf-map-dir, in the capture, and in /tmp of the recording host (below
  // --symfs).
  SymbolSource open_perf_map(const Module& module) {
    std::string_view digits = module.path;  // other memory may be mapped by a name that begins like this
    if (!format::take_prefix(digits, "/tmp/perf-") || !digits.ends_with(".map")) return {};
    digits.remove_suffix(std::string_view(".map").size());
    if (digits.find('/') != std::string_view::npos) return {};
    const std::string pid(digits), name = "perf-" + pid + ".map";
    format::MapTrust trust = format::MapTrust::Its;
    const auto read = [&]() -> Result<std::vector<std::byte>> {
      auto text = options.perf_map_dir.empty()
                      ? Result<std::vector<std::byte>>(Error{})
                      : format::read_file(options.perf_map_dir + "/" + name, kLargestText);
      if (text) return text;
      if (const auto* attached = features.attachment("perf-map/" + pid)) {
        return unpack_attached_text(*attached);
      }
      if (!options.perf_map_dir.empty()) return text;
      auto pinned = files.read_pinned_map(pid, kLargestText);
      if (pinned || pinned.error().code != ENOENT) return pinned;
      if (options.symfs.empty() && !is_this_host(features.environment))
        return Error{
            "the capture is of another host, so this map is another process's; "
            "--perf-map-dir names the folder of the right one"};
      return read_map_in_tmp(module, trust);
    };
    auto text = read();
    if (!text) return without_names(std::move(text.error()));
    auto table = parse_perf_map(std::move(*text));
    if (!table) return without_names(std::move(table.error()));
    SymbolSource source = from_table(std::move(*table), 'j', false);
    source.is_guess = trust == format::MapTrust::Unsure;
    return source;
  }

  // The perf map at /tmp/perf-PID.map, the module's path, if it is of the recorded process.
  Result<std::vector<std::byte>> read_map_in_tmp(const Module& module, format::MapTrust& trust) {
    const std::string path(module.path);
    auto file = files.open_itself(path);
    if (!file) return std::move(file.error());
    // Owner and time are not checked below --symfs, where they differ.
    if (files.root().empty()) {
      struct stat status {};
      if (::fstat(file->get(), &status) != 0) return system_error(path, errno);
      std::string_view digits = module.path;
      format::take_prefix(digits, "/tmp/perf-");
      const auto pid = format::number_at<std::uint32_t>(digits);
      const auto& times = features.environment.sample_time;
      const auto checked =
          format::check_map(status, format::owner_of_map(pid, module.fork_time, times ? times->second : 0));
      if (!checked) return Error{path + ": " + checked.error().what};
      trust = *checked;
    }
    return DebugFiles::read_opened(*file, files.local_path(path), kLargestText);
  }

  SymbolTable* bpf_text() {
    if (!options.kallsyms.empty()) return nullptr;
    PackedSource* const packed = pack.find_source(ModuleKind::KernelModule, kBpfText, {});
    if (packed) return &packed->table(options.unnamed);
    if (!features.attachment(format::kKallsymsAttachment)) return nullptr;
    Result<Kallsyms>& kallsyms = kernel_names.kallsyms();
    return kallsyms ? kallsyms->module(kBpfText) : nullptr;
  }

  std::optional<Debuginfod> connect() {
    if (options.debuginfod == Servers::NotAsked) return std::nullopt;
    auto connected = Debuginfod::connect();
    if (!connected) unusable_files.push_back(connected.error().what);
    return connected ? std::optional(std::move(*connected)) : std::nullopt;
  }

  Demangler* demangling() { return options.demangle == Demangle::No ? nullptr : &demangler; }
  const JitCode::Function* in_jitdump(const Module& module) const {
    return jit != nullptr ? jit->find_function(std::string(module.path)) : nullptr;
  }
  std::string_view shown(const SymbolSource& source, std::string_view name) {
    return source.is_mangled && options.demangle != Demangle::No ? demangler.shown(name) : name;
  }

  LineSource* lines_of(const Module& module) {
    SymbolSources::Entry& of = known(module);
    if (std::exchange(of.lines_were_read, true)) return of.source->lines.get();
    if (of.source->jit) return nullptr;  // lines of JIT code are in the jitdump, not in DWARF
    auto read = of.source->is_vmlinux() ? module_files.kernel_lines(options.vmlinux, module.build_id)
                : module.kind == ModuleKind::User ? module_files.lines(module)
                                                  : std::unique_ptr<LineSource>();
    const bool changes_source = read ? *read != nullptr : of.source->missing.text.empty();
    if (!changes_source) return nullptr;
    SymbolSource& source = sources.own(of);
    if (read) {
      source.lines = std::move(*read);
      return source.lines.get();
    }
    source.missing.text = read.error().what;
    source.missing.is_left_out = is_left_out(read.error());
    source.missing.message_start = "its source lines cannot be read: ";
    return nullptr;
  }

  // Whether a variable of the mapping's file is at an address.
  bool has_variable(const Mapping& mapping, format::RuntimeAddress ip) {
    if (left_out) return false;
    const ScopedRead reading(options.name_access, mapping.module->path);
    if (reading.is_refused()) return false;
    const SymbolSource& source = source_of(*mapping.module);
    const Symbol* const symbol =
        source.table ? source.table->find_symbol(mapping.shown_address(ip)) : nullptr;
    return symbol != nullptr && symbol->is_data;
  }

  // The frame's symbol, if it has one in a table.
  const Symbol* name(const Mapping& mapping) {
    const Module& module = *mapping.module;
    if (module.kind == ModuleKind::Bpf) {  // the mapping is the function
      frame.function = module.path;
      frame.function_start = mapping.start;
      frame.function_end = mapping.end;
      return nullptr;
    }
    SymbolSource& source = source_of(module);
    if (!source.table) return nullptr;
    frame.source = source.letter;
    frame.is_guess = source.is_guess || module.is_unsure();
    std::uint64_t offset = source.offset_of(at);
    if (source.is_kernel_module() && !source.packed) {
      const auto in_file = source.loads.offset_of({at.ip.value - mapping.start + mapping.page_offset});
      if (!in_file) return nullptr;
      offset = in_file->value;
    } else if (at.ip != frame.ip && source.table->caller_address(offset + 1) != offset) {
      at = frame;
      ++offset;
    }
    const Symbol* symbol = source.table->find_symbol(offset);
    if (!symbol && source.embedded) symbol = source.embedded->find_symbol(offset);
    if (!symbol) return nullptr;
    frame.function = shown(source, symbol->name);
    frame.linker_name = symbol->name;
    frame.function_start = at.shown_address - (offset - symbol->start);
    frame.function_end = frame.function_start + symbol->size();
    frame.is_data = symbol->is_data;
    frame.is_unnamed = symbol->is_unnamed();
    return symbol;
  }

  // Adds facts of DWARF to the frame: its line and, with `has_inlines`, a frame in front for each inlined
  // call.
  std::span<const Frame> add_lines(const Symbol* symbol, bool has_inlines) {
    SymbolSource& source = source_of(*frame.module);
    if (source.is_kernel_module()) return {&frame, 1};  // its DWARF has unresolved relocations
    const std::uint64_t offset = source.offset_of(at);
    at.elf_address = source.elf_address_of(at, offset);
    frame.elf_address = at.elf_address + (frame.ip.value - at.ip.value);
    // PLT entries are in no symbol table, and in a file with dynamic symbols only perf ignores --symfs: in
    // both cases it finds no lines.
    const bool has_symbols = source.has_full_symbols || (options.symfs.empty() && source.has_own_table);
    const bool is_listed = has_symbols && !(symbol && symbol->name.ends_with("@plt"));
    frame.line_state = is_listed ? LineState::Unknown : LineState::NoSource;
    calls.clear();
    const JitLine* const jit_line =
        source.jit && symbol ? line_at(source.jit->lines, offset - symbol->start) : nullptr;
    if (jit_line) {
      calls.push_back({symbol->name, jit_line->file, jit_line->line});
    } else {
      LinkerSymbol linkers{};
      if (symbol) linkers = {symbol->name, {at.elf_address - (offset - symbol->start)}};
      if (source.packed && source.packed->is(format::PackedModule::kHasLines))
        source.packed->list_calls_at(offset, linkers, options.use_symbol_name, calls);
      else if (LineSource* const lines = lines_of(*frame.module))
        lines->find_calls({at.elf_address}, linkers, options.use_symbol_name, calls);
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

  // With inlined calls, all frames come from DWARF. All but the outermost are inlined; in perf, those whose
  // name differs from the symbol's.
  std::span<const Frame> add_calls(const SymbolSource& source) {
    inlined.clear();
    for (const Call& call : calls) {
      Frame& one = inlined.emplace_back(frame);
      const std::string_view name = call.function.empty() ? "??" : shown(source, call.function);
      one.is_inlined = options.use_symbol_name == UseSymbolName::Outermost ? inlined.size() < calls.size()
                                                                           : name != frame.function;
      one.function = name;
      one.linker_name = call.function;
      one.line_state = LineState::Known;
      one.file = call.file.empty() ? "??" : call.file;
      one.line = call.file.empty() ? 0 : call.line;
    }
    return inlined;
  }
};

Symbolizer::Symbolizer(SymbolOptions options, const format::Features& features, KernelSpace kernel,
                       const JitCode* jit)
    : state_(std::make_unique<State>(std::move(options), features, kernel, jit)) {}
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;
Symbolizer::~Symbolizer() = default;

std::span<const Frame> Symbolizer::resolve(const Mapping* mapping, format::RuntimeAddress ip,
                                           std::uint8_t cpumode, Origin origin, AddressKind kind) {
  State& state = *state_;
  const Inlines inlines = state.options.inlines;
  const bool has_inlines = (origin == Origin::Unwound && inlines != Inlines::No) ||
                           (origin == Origin::Chain && inlines == Inlines::All);
  Frame& frame = state.frame;
  frame = {};
  frame.ip = ip;
  frame.cpumode = cpumode;
  frame.shown_address = ip.value;
  Frame& at = state.at;
  at = frame;
  if (kind == AddressKind::Return) --at.ip.value;
  const bool may_be_generated = !mapping && cpumode == format::abi::kCpumodeKernel;
  if (may_be_generated && state.left_out != WithModules::No) {
    mapping = state.kernel_beyond_its_text(at.ip);
    if (!mapping) state.name_bpf_text();
  }
  if (!mapping) return {&frame, 1};
  if (mapping->beyond_file != nullptr && state.has_variable(*mapping->beyond_file, ip))
    mapping = mapping->beyond_file;
  frame.module = mapping->module;
  frame.shown_address = mapping->shown_address(ip);
  at.shown_address = mapping->shown_address(at.ip);
  if (state.left_out) return {&frame, 1};
  const ScopedRead reading(state.options.name_access, mapping->module->path);
  if (reading.is_refused()) return {&frame, 1};
  state.last_symbol = state.name(*mapping);
  const bool asks_dwarf = has_inlines || state.options.source_lines == SourceLines::Yes;
  if (!asks_dwarf) return {&frame, 1};
  const ScopedRead reading_lines(state.options.name_access, mapping->module->path);
  return state.add_lines(frame.is_unnamed ? nullptr : state.last_symbol, has_inlines);
}

LocationFacts Symbolizer::facts(const Mapping* mapping, format::RuntimeAddress ip, std::uint8_t cpumode) {
  State& state = *state_;
  state.last_symbol = nullptr;
  const Frame& frame = resolve(mapping, ip, cpumode).front();
  LocationFacts facts;
  facts.module = frame.module;
  facts.shown_address = frame.shown_address;
  if (!frame.module) return facts;
  const bool is_bpf = frame.module->kind == ModuleKind::Bpf;
  facts.is_bpf_text = is_bpf && !mapping;
  if (is_bpf && mapping) return facts;
  if (facts.is_bpf_text || state.last_symbol) {
    const std::string_view name = facts.is_bpf_text ? frame.function : state.last_symbol->name;
    facts.symbol = Symbol{.start = frame.function_start,
                          .end = frame.function_end,
                          .name = name,
                          .binding = frame.is_unnamed ? Binding::Unnamed : Binding::Local,
                          .is_data = frame.is_data};
  }
  if (facts.is_bpf_text) return facts;
  facts.source = &state.source_of(*frame.module);
  const bool is_unlinked = facts.source->is_kernel_module() && !facts.source->packed;
  const std::uint64_t offset = facts.source->offset_of(frame);
  facts.elf_address = is_unlinked ? frame.shown_address : facts.source->elf_address_of(frame, offset);
  const bool has_packed_lines =
      facts.source->packed && facts.source->packed->is(format::PackedModule::kHasLines);
  if (!is_unlinked && !has_packed_lines) facts.lines = state.lines_of(*frame.module);
  facts.source = &state.source_of(*frame.module);
  return facts;
}

std::optional<Symbolizer::SymbolInFile> Symbolizer::symbol_in_file(const Module& module,
                                                                   format::ElfAddress address) {
  if (module.kind != ModuleKind::User) return std::nullopt;
  State& state = *state_;
  const auto [known, is_new] = state.in_files.try_emplace(&module);
  SymbolSource& source = known->second;
  if (is_new) {
    const ScopedRead reading(state.options.name_access, module.path);
    if (reading.is_refused()) return std::nullopt;
    source = state.open_elf(module);
    source.use_own_table();
  }
  // Segments differ in the distance of addresses and offsets: that of data is another one than that of code.
  const auto offset = source.table ? source.loads.offset_of(address) : std::nullopt;
  const Symbol* const symbol = offset ? source.table->find_symbol(offset->value) : nullptr;
  if (symbol == nullptr) return std::nullopt;
  return SymbolInFile{state.shown(source, symbol->name), offset->value - symbol->start};
}

std::optional<Symbolizer::LineInFile> Symbolizer::line_in_file(const Module& module,
                                                               format::ElfAddress address,
                                                               const LinkerSymbol& symbol) {
  State& state = *state_;
  if (module.kind != ModuleKind::User) return std::nullopt;
  const ScopedRead reading(state.options.name_access, module.path);
  LineSource* const lines = reading.is_refused() ? nullptr : state.lines_of(module);
  if (lines == nullptr) return std::nullopt;
  lines->find_calls(address, symbol, state.options.use_symbol_name, state.calls);
  if (state.calls.empty() || state.calls[0].file.empty()) return std::nullopt;
  const Call& call = state.calls[0];
  return LineInFile{.file = call.file,
                    .function = state.shown(state.source_of(module), call.function),
                    .linker_name = call.function,
                    .line = call.line};
}

std::vector<Md5> Symbolizer::source_sums(const Module& module, std::string_view file) {
  State& state = *state_;
  const SymbolSource& source = state.source_of(module);
  const ScopedRead reading(state.options.name_access, module.path);
  if (!source.packed && !reading.is_refused())
    if (LineSource* const lines = state.lines_of(module)) return lines->sums_of(file);
  if (!state.packed_sums) {
    const auto* const attached = state.features.attachment(std::string(kAttachedSums));
    state.packed_sums = attached != nullptr ? sums_in(*attached) : SourceSums();
  }
  const auto found = state.packed_sums->find(file);
  return found == state.packed_sums->end() ? std::vector<Md5>() : found->second;
}

std::uint32_t Symbolizer::last_source_line(const Module& module, std::string_view file) {
  const ScopedRead reading(state_->options.name_access, module.path);
  if (state_->source_of(module).packed || reading.is_refused()) return 0;
  LineSource* const lines = state_->lines_of(module);
  return lines == nullptr ? 0 : lines->last_line_of(file);
}

std::optional<std::int64_t> Symbolizer::program_time(const Module& module) {
  const ScopedRead reading(state_->options.name_access, module.path);
  if (module.kind != ModuleKind::User || reading.is_refused()) return std::nullopt;
  const auto file = state_->module_files.file(module);
  struct stat status {};
  if (!file || ::fstat(file->get(), &status) != 0) return std::nullopt;
  constexpr std::int64_t kSecond = 1'000'000'000;
  return status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec;
}

PackedSource* Symbolizer::packed(const Module& module) {
  PackedSource* const own = state_->pack.find_source(module.kind, module.path, module.build_id);
  return own || !state_->options.others ? own : state_->options.others->find_source(module);
}

void Symbolizer::leave_names_out(WithModules modules) { state_->left_out = modules; }

void Symbolizer::expect_kernel_code() {
  if (!state_->left_out && state_->options.vmlinux.empty() && !state_->pack.has_kernel())
    state_->kernel_names.start_reading();
}

bool Symbolizer::names_are_plain() const {
  const SymbolOptions& options = state_->options;
  return options.inlines != Inlines::All && options.source_lines == SourceLines::No;
}

Symbolizer::Names Symbolizer::names_of(const Mapping& mapping) {
  if (state_->left_out) return {};
  const ScopedRead reading(state_->options.name_access, mapping.module->path);
  if (mapping.module->kind == ModuleKind::Bpf || reading.is_refused()) return {};
  SymbolSource& source = state_->source_of(*mapping.module);
  if (source.is_vmlinux() || source.is_kernel_module() || source.embedded) return {};
  return {source.table, true};
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Symbolizer::functions_of(
    const Mapping& mapping, const std::function<bool(std::string_view name)>& is_wanted) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  if (state_->left_out) return found;
  const ScopedRead reading(state_->options.name_access, mapping.module->path);
  if (reading.is_refused()) return found;
  const SymbolSource& source = state_->source_of(*mapping.module);
  if (!source.table) return found;
  // A file of the kernel has other addresses than the running kernel.
  Frame begin;
  begin.module = mapping.module;
  begin.ip = {mapping.start};
  begin.shown_address = mapping.shown_address(begin.ip);
  const std::uint64_t shift = mapping.start - source.offset_of(begin);
  source.table->each([&](const Symbol& symbol) {
    if (!symbol.is_data && is_wanted(symbol.name))
      found.emplace_back(symbol.start + shift, symbol.end + shift);
  });
  return found;
}

void Symbolizer::report_missing(format::Diagnostics& diagnostics,
                                std::span<const EndedChains> ended_chains) const {
  for (const std::string& unusable : state_->unusable_files)
    diagnostics.add_line(format::Damage::NoSymbols, unusable);
  if (state_->servers && !state_->servers->failure().empty())
    diagnostics.add_line(format::Damage::NoSymbols, state_->servers->failure());
  if (!state_->pack.missing_reason().empty())
    diagnostics.add_line(format::Damage::BadSymbolSource,
                         "the symbols packed into it: " + state_->pack.missing_reason());
  std::unordered_map<const Module*, std::string_view> ended;
  std::vector<const Module*> modules(state_->used.begin(), state_->used.end());
  for (const EndedChains& ended_chain : ended_chains) {
    ended.emplace(ended_chain.module, ended_chain.reason);
    if (state_->sources.find_source(*ended_chain.module) == nullptr) modules.push_back(ended_chain.module);
  }
  // Sorted, since the order of look-ups depends on threads.
  const auto by_path = [](const Module* one, const Module* other) { return one->path < other->path; };
  std::ranges::stable_sort(modules, by_path);
  std::ranges::stable_sort(state_->used, by_path);
  std::uint64_t reported = 0;
  std::map<format::Damage, std::uint64_t> more;  // modules that exceed the limit
  for (const Module* module : modules) {
    const auto end = ended.find(module);
    const SymbolSource* const source = state_->sources.find_source(*module);
    auto message = missing_message(source, state_->files, std::string(module->path),
                                   end == ended.end() ? std::string_view() : end->second);
    if (message.line.empty()) continue;
    if (++reported <= kMostReported)
      diagnostics.add_line(message.kind, std::move(message.line));
    else
      ++more[message.kind];
  }
  for (const auto& [kind, count] : more)
    diagnostics.add_line(kind, (kind == format::Damage::Note ? "call chains end in " : "") +
                                   std::to_string(count) + " more modules");
  state_->sources.report_guesses(state_->used, diagnostics);
}

}  // namespace tacho::symbolize
