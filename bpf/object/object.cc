#include "bpf/object/object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <system_error>

#include "bpf/object/kernel_btf.h"
#include "bpf/support/kernel_support.h"
#include "bpf/support/libbpf_owned.h"
#include "format/base/file.h"
#include "format/base/worker_pool.h"

namespace tacho::bpf {
namespace {

using format::Bytes;
using format::Cursor;

struct MachineRow {
  std::uint16_t machine;
  std::string_view name;
};
constexpr MachineRow kMachines[] = {
    {EM_386, "i386"},      {EM_ARM, "ARM"},       {EM_PPC64, "PowerPC"}, {EM_S390, "s390"},
    {EM_X86_64, "x86-64"}, {EM_AARCH64, "ARM64"}, {EM_RISCV, "RISC-V"},
};

Result<> check_elf_header(const format::ElfHeader& header) {
  if (header.order != std::endian::native)
    return Error{"an ELF object of the other byte order; compile it on or for this machine"};
  if (header.machine != EM_BPF && header.machine != EM_NONE) {
    const auto row = std::ranges::find(kMachines, header.machine, &MachineRow::machine);
    const std::string name =
        row == std::end(kMachines) ? "machine " + std::to_string(header.machine) : std::string(row->name);
    return Error{"an ELF file for " + name +
                 ", not for BPF; compile the program with clang -target bpf -O2 -g -c"};
  }
  if (!header.is_64 || header.type != ET_REL)
    return Error{"not a relocatable 64-bit BPF object; compile the program with clang -target bpf -O2 -g -c"};
  return Done{};
}

std::string map_type_name(std::uint32_t type) {
  constexpr std::string_view kNames[] = {"UNSPEC",           "HASH",        "ARRAY",          "PROG_ARRAY",
                                         "PERF_EVENT_ARRAY", "PERCPU_HASH", "PERCPU_ARRAY",   "STACK_TRACE",
                                         "CGROUP_ARRAY",     "LRU_HASH",    "LRU_PERCPU_HASH"};
  return type < std::size(kNames) ? "BPF_MAP_TYPE_" + std::string(kNames[type]) : std::to_string(type);
}

}  // namespace

const ElfSection* ElfObject::find_section(std::string_view name) const {
  const auto section = std::ranges::find(sections, name, &ElfSection::name);
  return section == sections.end() ? nullptr : &*section;
}

Result<ElfObject> parse_elf_object(Bytes file) {
  const auto elf = format::ElfView::parse(file);
  if (!elf)
    return Error{"not an ELF object (a BPF program is compiled by clang -target bpf; C source ends in .c)"};
  if (auto checked = check_elf_header(elf->header()); !checked) return std::move(checked.error());
  if (elf->sections().empty() || elf->sections().size() != elf->header().section_count)
    return Error{"damaged: its section table is outside the file"};
  ElfObject object;
  for (const format::ElfSection& section : elf->sections()) {
    const Bytes content = elf->content(section);
    const bool has_bytes = section.type != SHT_NULL && section.type != SHT_NOBITS;
    if (has_bytes && content.size() != section.size)
      return Error{"damaged: section " + std::to_string(object.sections.size()) + " is outside the file"};
    object.sections.push_back({elf->name(section), section.type, section.flags, content});
    if (section.type != SHT_SYMTAB || section.link >= elf->sections().size()) continue;
    object.symbols.clear();
    elf->each_symbol(section, [&object](const format::ElfSymbol& symbol) {
      object.symbols.push_back(symbol);
      return false;
    });
  }
  return object;
}

Result<> refuse_legacy_maps(const ElfObject& object) {
  const ElfSection* maps = object.find_section("maps");
  if (maps == nullptr) return Done{};
  const auto index = static_cast<std::uint16_t>(maps - object.sections.data());
  const auto map = std::ranges::find_if(object.symbols, [&](const format::ElfSymbol& symbol) {
    return symbol.section == index && !symbol.name.empty();
  });
  if (map == object.symbols.end())
    return Error{"its maps are in the old section \"maps\"; define them with BTF, in SEC(\".maps\")"};
  Cursor definition(maps->content);
  definition.skip(map->value);
  const std::uint32_t type = definition.u32();
  const std::uint32_t key_size = definition.u32();
  const std::uint32_t value_size = definition.u32();
  const std::uint32_t max_entries = definition.u32();
  // No size for perf event arrays: tacho sets it, and old definitions were often too small.
  const std::string entries = type == BPF_MAP_TYPE_PERF_EVENT_ARRAY
                                  ? ""
                                  : " __uint(max_entries, " + std::to_string(max_entries) + ");";
  return Error{"map '" + std::string(map->name) +
               "' is in the old section \"maps\", which libbpf no longer loads; write instead: struct { "
               "__uint(type, " +
               map_type_name(type) + "); __uint(key_size, " + std::to_string(key_size) +
               "); __uint(value_size, " + std::to_string(value_size) + ");" + entries + " } " +
               std::string(map->name) + " SEC(\".maps\");"};
}

std::string object_name(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  std::string name = file.substr(0, file.find('.'));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name.empty() ? "object" : name;
}

namespace {

constexpr std::uint32_t kUsualRingBytes = 4U << 20;  // of a ring buffer without max_entries

void tell(const Log& log, const LibbpfLog& said) {
  for (const std::string& line : libbpf_lines(said.text()))
    if (!line.ends_with(" .events")) say(log, "libbpf: " + line);  // "skipping": that section is for tacho
}

// libbpf returns errno values, and codes of its own and of the kernel that strerror does not know.
std::string code_in_words(int code) {
  char text[128] = "";
  if (libbpf_strerror(code, text, sizeof text) != 0 || std::string_view(text).starts_with("ERROR"))
    return std::generic_category().message(code);
  return text;
}

// The errno, and libbpf's message with the reason. Its last ones only say that loading failed.
std::string cause(const LibbpfLog& said, const std::string& program, int code) {
  for (std::string line : libbpf_lines(said.text())) {
    const std::string prefix = "prog '" + program + "': ";
    if (!program.empty() && line.starts_with(prefix)) line.erase(0, prefix.size());
    if (line.starts_with("failed to load") || line.starts_with("BPF program load failed")) continue;
    return code_in_words(code) + (line.empty() ? "" : " (" + line + ")");
  }
  return code_in_words(code);
}

Refusal explain_load(const LibbpfLog& said, int code, const std::vector<Program>& programs) {
  Refusal refusal{refused_program(said.text()), code, ""};
  const std::string verifier = verifier_tail(said.text(), kVerifierLines);
  if (!verifier.empty()) {
    refusal.reason =
        "the kernel's verifier refused it (" + code_in_words(code) + "); its last lines:\n" + verifier;
    return refusal;
  }
  const auto program = std::ranges::find(programs, refusal.program, &Program::name);
  if (program != programs.end())
    if (const auto section = parse_section(program->section); section)
      refusal.reason = refusal_in_words(*section, code);
  if (refusal.reason.empty()) refusal.reason = "could not be loaded: " + cause(said, refusal.program, code);
  return refusal;
}

// Names go into messages, events and the kernel; no compiler makes names with control characters.
bool is_plain(std::string_view name) {
  return std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

Result<> check_names(const std::vector<Program>& programs, const std::vector<std::string>& maps) {
  bool all_plain = std::ranges::all_of(maps, is_plain);
  for (const Program& program : programs) all_plain &= is_plain(program.name) && is_plain(program.section);
  if (all_plain) return Done{};
  return Error{"it is damaged: a program, section or map has a name with control characters"};
}

std::vector<std::string> maps_of_type(const bpf_object* object, bpf_map_type type) {
  std::vector<std::string> names;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    if (bpf_map__type(map) == type) names.emplace_back(bpf_map__name(map));
  }
  return names;
}

// Empty: libbpf has none of the program.
std::span<const bpf_insn> instructions_of(const bpf_program* program) {
  const bpf_insn* const instructions = bpf_program__insns(program);
  return {instructions, instructions == nullptr ? 0 : bpf_program__insn_cnt(program)};
}

FunctionEnd end_of(const Program& program) {
  return program.section.starts_with(kFunctionReturns) ? FunctionEnd::Return : FunctionEnd::Entry;
}

// Address of a variable: the map of its data section, and its offset in bytes.
struct Variable {
  bpf_map* data = nullptr;
  std::size_t offset = 0, size = 0;
};

// The map's name is "OBJECT.rodata", truncated to the kernel's limit.
std::optional<Variable> find_variable(bpf_object* object, const char* section_name, std::string_view name) {
  const btf* types = bpf_object__btf(object);
  const int section_id =
      types == nullptr ? -1 : btf__find_by_name_kind(types, section_name, BTF_KIND_DATASEC);
  bpf_map* map = nullptr;
  bpf_map* data = nullptr;
  bpf_object__for_each_map(map, object) {
    if (bpf_map__is_internal(map) && std::string_view(bpf_map__name(map)).ends_with(section_name)) data = map;
  }
  if (section_id < 0 || data == nullptr) return std::nullopt;
  const btf_type* section = btf__type_by_id(types, static_cast<std::uint32_t>(section_id));
  const btf_var_secinfo* variables = btf_var_secinfos(section);
  for (int i = 0; i < btf_vlen(section); ++i) {
    const std::uint64_t end = variables[i].offset + std::uint64_t{variables[i].size};
    if (name_of_type(types, variables[i].type) == name && end <= bpf_map__value_size(data))
      return Variable{data, variables[i].offset, variables[i].size};
  }
  return std::nullopt;
}

Error no_map(const std::string& name) { return Error{"there is no map '" + name + "'", ENOENT}; }

}  // namespace

struct Object::State {
  // Each link waits for RCU grace periods, 40 to 90 ms; in threads most of these waits overlap.
  ~State() {
    constexpr std::size_t kMostWorkers = 16;
    format::WorkerPool pool(static_cast<unsigned>(std::min(links.size(), kMostWorkers)));
    static_cast<void>(pool.run_tasks(links.size(), [this](std::size_t link, unsigned) {
      links[link].reset();
      return Result<>(Done{});
    }));  // no error
  }

  OwnedObject object;
  std::vector<bpf_program*> handles;
  std::vector<Program> programs;
  // Destroyed first: links, then the object.
  std::vector<format::Fd> event_links;
  FunctionTargets functions;
  std::size_t unprobed = 0;
  std::vector<OwnedLink> links;
  std::map<std::size_t, const bpf_link*> iterators;  // of `links`, by program
  KernelProbes kernel_probes;
};

Object::Object(std::unique_ptr<State> state) : state_(std::move(state)) {}
Object::Object(Object&&) noexcept = default;
Object& Object::operator=(Object&&) noexcept = default;
Object::~Object() = default;

Result<Object> Object::open(format::Bytes elf, const std::string& name, const Log& log) {
  LibbpfLog said;
  auto state = std::make_unique<State>();
  state->object = open_object(elf, name.c_str());
  if (state->object == nullptr) {
    const int code = errno;
    const std::string why = last_libbpf_line(said.text());
    return Error{"libbpf cannot open it: " + (why.empty() ? code_in_words(code) : why), code};
  }
  tell(log, said);

  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, state->object.get()) {
    // libbpf takes a function in .text for a program if the object has no other function.
    if (std::string_view(bpf_program__section_name(program)) == ".text") continue;
    // libbpf removed the '?' from the section's name and does not load such a program by default.
    state->programs.push_back(
        {bpf_program__name(program), bpf_program__section_name(program), !bpf_program__autoload(program)});
    state->handles.push_back(program);
    if (const auto section = parse_section(state->programs.back().section);
        section && section->spelling == Spelling::Perf)
      bpf_program__set_type(program, BPF_PROG_TYPE_TRACEPOINT);
    else if (section && section->hook == Hook::Functions) {
      bpf_program__set_type(program, BPF_PROG_TYPE_KPROBE);
      bpf_program__set_expected_attach_type(program, static_cast<bpf_attach_type>(kFunctionsAttachType));
    }
  }
  Object opened(std::move(state));
  if (auto fine = check_names(opened.programs(), opened.perf_event_arrays()); !fine)
    return std::move(fine.error());
  return opened;
}

const std::vector<Program>& Object::programs() const { return state_->programs; }

std::vector<std::string> Object::perf_event_arrays() const {
  return maps_of_type(state_->object.get(), BPF_MAP_TYPE_PERF_EVENT_ARRAY);
}
std::vector<std::string> Object::ring_buffers() const {
  return maps_of_type(state_->object.get(), BPF_MAP_TYPE_RINGBUF);
}
std::vector<std::string> Object::stack_maps() const {
  return maps_of_type(state_->object.get(), BPF_MAP_TYPE_STACK_TRACE);
}

bool Object::may_drop_events(std::size_t program) const {
  const auto instructions = instructions_of(state_->handles[program]);
  return instructions.empty() || bpf::may_drop_events(std::as_bytes(instructions));
}

bool Object::prints(std::size_t program) const {
  constexpr std::int32_t kTraceVprintk = 177;  // since 5.16; older headers lack it
  return std::ranges::any_of(instructions_of(state_->handles[program]), [](const bpf_insn& one) {
    return one.code == (BPF_JMP | BPF_CALL) && one.src_reg == 0 &&
           (one.imm == BPF_FUNC_trace_printk || one.imm == kTraceVprintk);
  });
}

void Object::want(std::size_t program, bool wanted) {
  bpf_program__set_autoload(state_->handles[program], wanted);
}

std::span<std::byte> Object::constant(std::string_view name) {
  const auto variable = find_variable(state_->object.get(), ".rodata", name);
  if (!variable) return {};
  const auto bytes = initial_bytes(variable->data);
  if (variable->offset + variable->size > bytes.size()) return {};
  return bytes.subspan(variable->offset, variable->size);
}

std::optional<std::uint64_t> Object::counter(std::string_view name) const {
  const auto variable = find_variable(state_->object.get(), ".bss", name);
  std::uint64_t value = 0;
  if (!variable || variable->size != sizeof value) return std::nullopt;
  std::vector<std::byte> section(bpf_map__value_size(variable->data));
  const int only = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(variable->data), &only, section.data()) != 0) return std::nullopt;
  std::memcpy(&value, section.data() + variable->offset, sizeof value);
  return value;
}

// By mmap, since programs write to other variables of the section meanwhile.
void Object::set_variable(std::string_view name, std::uint32_t value) {
  const auto variable = find_variable(state_->object.get(), ".bss", name);
  if (!variable || variable->size != sizeof value) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t size = (variable->offset + sizeof value + page - 1) / page * page;
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(variable->data), 0);
  if (at == MAP_FAILED) return;
  const format::Mapping memory(at, size);
  std::memcpy(memory.bytes().data() + variable->offset, &value, sizeof value);
}

std::optional<MapFacts> Object::map_facts(const std::string& map) const {
  const bpf_map* const found = bpf_object__find_map_by_name(state_->object.get(), map.c_str());
  if (found == nullptr) return std::nullopt;
  return MapFacts{bpf_map__type(found), bpf_map__key_size(found), bpf_map__value_size(found),
                  bpf_map__max_entries(found)};
}

Result<MapReader> Object::open_map(const std::string& map) const {
  const auto facts = map_facts(map);
  if (!facts) return no_map(map);
  const auto cpus = possible_cpus();
  if (!cpus) return cpus.error();
  return MapReader(bpf_object__find_map_fd_by_name(state_->object.get(), map.c_str()), *facts, *cpus);
}

Result<Ring> Object::open_ring(const std::string& map) const {
  const bpf_map* const found = bpf_object__find_map_by_name(state_->object.get(), map.c_str());
  if (found == nullptr) return no_map(map);
  auto ring = Ring::open(bpf_map__fd(found), bpf_map__max_entries(found));
  return ring ? std::move(ring) : Result<Ring>(std::move(ring.error()).in("map '" + map + "'"));
}

void Object::set_number(std::string_view name, std::uint64_t value) {
  const auto bytes = constant(name);
  const auto small = static_cast<std::uint32_t>(value);
  if (bytes.size() == sizeof value) std::memcpy(bytes.data(), &value, sizeof value);
  if (bytes.size() == sizeof small && small == value) std::memcpy(bytes.data(), &small, sizeof small);
}

bool Object::has_map(const std::string& name) const {
  return bpf_object__find_map_by_name(state_->object.get(), name.c_str()) != nullptr;
}

Result<> Object::replace_maps(const MapsByName& maps) {
  for (const auto& [name, fd] : maps) {
    bpf_map* const map = bpf_object__find_map_by_name(state_->object.get(), name.c_str());
    if (map == nullptr) return no_map(name);
    if (const int code = bpf_map__reuse_fd(map, fd); code != 0)
      return system_error("map '" + name + "' cannot be replaced", -code);
  }
  return Done{};
}

std::optional<Refusal> Object::load(const Log& log) {
  const auto cpus = possible_cpus();
  if (!cpus) return Refusal{"", cpus.error().code, cpus.error().what};
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, state_->object.get()) {
    if (bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF && bpf_map__max_entries(map) == 0)
      bpf_map__set_max_entries(map, kUsualRingBytes);
    if (bpf_map__type(map) != BPF_MAP_TYPE_PERF_EVENT_ARRAY) continue;
    bpf_map__set_max_entries(map, *cpus);
    if (bpf_map__key_size(map) == 0) bpf_map__set_key_size(map, sizeof(int));
    if (bpf_map__value_size(map) == 0) bpf_map__set_value_size(map, sizeof(int));
  }
  LibbpfLog said;
  const int code = bpf_object__load(state_->object.get());
  if (code != 0) return explain_load(said, -code, state_->programs);
  tell(log, said);
  return std::nullopt;
}

void Object::follow_functions(FunctionTargets targets) {
  state_->functions = std::move(targets);
  if (!state_->functions.in_kernel) return;
  for (bpf_program* const program : state_->handles) {
    const auto section = parse_section(bpf_program__section_name(program));
    if (section && section->hook == Hook::Functions)
      bpf_program__set_expected_attach_type(
          program, state_->functions.one_by_one ? static_cast<bpf_attach_type>(0) : BPF_TRACE_KPROBE_MULTI);
  }
}

std::size_t Object::unprobed_functions() const { return state_->unprobed; }

std::optional<Refusal> Object::attach_to_functions(std::size_t program, const Section& section) {
  const Program& of = state_->programs[program];
  const FunctionTargets& targets = state_->functions;
  if (end_of(of) == FunctionEnd::Return && targets.entries_only) return std::nullopt;
  if (targets.in_kernel) {
    const auto done =
        state_->kernel_probes.add_program(bpf_program__fd(state_->handles[program]), targets, end_of(of));
    state_->unprobed = state_->kernel_probes.refused();
    return done ? std::nullopt : std::optional(Refusal{of.name, done.error().code, done.error().what});
  }
  const ChosenFunctions chosen = chosen_functions(targets, section.target);
  if (chosen.offsets.empty()) return Refusal{of.name, ENOENT, "it needs functions, and none were chosen"};
  std::size_t left_out = 0;
  const int code = probe_in_parts(program, chosen, left_out);
  const auto refused = [&](int why) {
    return Refusal{of.name, why,
                   "cannot be attached to functions of " + targets.path + ": " + code_in_words(why)};
  };
  if (code == 0 && left_out == chosen.offsets.size()) return refused(EOPNOTSUPP);
  state_->unprobed = std::max(state_->unprobed, left_out);
  if (code == 0) return std::nullopt;
  if (code != EINVAL && code != EOPNOTSUPP) return refused(code);
  const LibbpfLog quiet;
  auto links = probe_one_by_one(state_->handles[program], targets, chosen, end_of(of));
  if (!links) return refused(links.error().code);
  std::ranges::move(*links, std::back_inserter(state_->links));
  return std::nullopt;
}

// The kernel refuses a multi link if one of its functions starts with an instruction that cannot be probed.
// Bisects to leave out that function. Returns the kernel's errno, or 0.
int Object::probe_in_parts(std::size_t program, const ChosenFunctions& functions, std::size_t& left_out) {
  auto link = probe_functions(bpf_program__fd(state_->handles[program]), state_->functions, functions,
                              end_of(state_->programs[program]));
  if (link) {
    state_->event_links.push_back(std::move(*link));
    return 0;
  }
  const std::size_t count = functions.offsets.size();
  if (link.error().code != kNotSupportedInKernel) return link.error().code;
  if (count == 1) {
    ++left_out;
    return 0;
  }
  if (const int code = probe_in_parts(program, part_of(functions, 0, count / 2), left_out); code != 0)
    return code;
  return probe_in_parts(program, part_of(functions, count / 2, count), left_out);
}

Result<> Object::run_program(std::size_t program, RunUntil until) const {
  const auto link = state_->iterators.find(program);
  auto done = link != state_->iterators.end() ? run_iterator(bpf_link__fd(link->second), until)
                                              : run_once(bpf_program__fd(state_->handles[program]));
  return done ? done : std::move(done.error()).in("program '" + state_->programs[program].name + "'");
}

std::optional<Refusal> Object::attach(std::size_t program, const Section& section) {
  if (section.hook == Hook::AtEnd) return std::nullopt;
  if (section.hook == Hook::Functions) return attach_to_functions(program, section);
  LibbpfLog said;
  bpf_program* handle = state_->handles[program];
  bpf_link* link = nullptr;
  errno = EOPNOTSUPP;  // libbpf may succeed without a link, for sections that the caller has to attach
  if (section.hook == Hook::Tracepoint) {
    const std::string& target =
        section.target == kNamedTracepoint ? state_->functions.tracepoint : section.target;
    const auto slash = target.find('/');
    link = bpf_program__attach_tracepoint(handle, target.substr(0, slash).c_str(),
                                          target.substr(slash + 1).c_str());
  } else {
    link = bpf_program__attach(handle);
  }
  const int code = errno;
  if (link != nullptr) {
    state_->links.emplace_back(link);
    if (section.hook == Hook::Iterator) state_->iterators[program] = link;
    return std::nullopt;
  }
  Refusal refusal{state_->programs[program].name, code, refusal_in_words(section, code)};
  if (refusal.reason.empty()) refusal.reason = "cannot be attached: " + cause(said, refusal.program, code);
  return refusal;
}

Result<format::Fd> Object::attach_to_event(std::size_t program, int event_fd) {
  const int program_fd = bpf_program__fd(state_->handles[program]);
  const std::string name = "program '" + state_->programs[program].name + "'";
  auto link = link_to_event(program_fd, event_fd);
  if (link) return link;
  if (const int code = link.error().code; code == EEXIST || code == EBUSY)
    return Error{name + ": the event already runs another program", code};
  // Before Linux 5.15 there are no such links, and the program stays until the event is closed.
  if (::ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, program_fd) == 0) return format::Fd();
  return system_error(name + " cannot be attached to the event", errno);
}

Result<> Object::put_entry(const std::string& map, format::Bytes key, format::Bytes value) const {
  const int map_fd = bpf_object__find_map_fd_by_name(state_->object.get(), map.c_str());
  if (map_fd < 0) return no_map(map);
  if (bpf_map_update_elem(map_fd, key.data(), value.data(), BPF_ANY) == 0) return Done{};
  return system_error("map '" + map + "'", errno);
}

Result<> Object::put_event(const std::string& map, int cpu, int event_fd) {
  const int map_fd = bpf_object__find_map_fd_by_name(state_->object.get(), map.c_str());
  if (map_fd < 0) return no_map(map);
  if (bpf_map_update_elem(map_fd, &cpu, &event_fd, BPF_ANY) == 0) return Done{};
  return system_error("the event of CPU " + std::to_string(cpu) + " cannot be put into map '" + map + "'",
                      errno);
}

std::optional<RunningProgram> Object::running(std::size_t program) const {
  const int fd = bpf_program__fd(state_->handles[program]);
  bpf_prog_info info{};
  std::uint32_t size = sizeof info;
  if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) != 0) return std::nullopt;
  return RunningProgram{info.id, info.recursion_misses};
}

}  // namespace tacho::bpf
