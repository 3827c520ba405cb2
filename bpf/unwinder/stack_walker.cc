#include "bpf/unwinder/stack_walker.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bpf/attach/follower.h"
#include "bpf/attach/raw_program.h"
#include "bpf/rings/map_reader.h"
#include "bpf/support/kernel_support.h"
#include "bpf/support/libbpf_owned.h"
#include "format/base/file.h"

namespace tacho::bpf {

namespace {

constexpr std::size_t kMostLinked = std::size_t{64} << 20;
constexpr std::string_view kWalk = "tacho_walk_stack", kStack = "tacho_user_stack";

struct FreeLinker {
  void operator()(bpf_linker* linker) const noexcept { bpf_linker__free(linker); }
};

// A file in memory with a path: libbpf's linker opens files by name.
struct MemoryFile {
  format::Fd fd;
  std::string path;
};
Result<MemoryFile> memory_file(format::Bytes content) {
  MemoryFile file{format::Fd(memfd_create("tacho-object", MFD_CLOEXEC)), ""};
  if (!file.fd) return system_error("memory for a BPF object", errno);
  file.path = "/proc/self/fd/" + std::to_string(file.fd.get());
  if (auto done = format::write_at(file.fd.get(), 0, content); !done) return std::move(done.error());
  return file;
}

std::size_t outputs_in(const ElfSection& code) {
  std::size_t found = 0;
  for (format::Cursor in(code.content); in.left() >= sizeof(bpf_insn);) {
    const std::uint8_t operation = in.u8();
    const bool is_helper = in.u8() == 0;
    in.u16();
    const std::uint32_t number = in.u32();
    if (operation == (BPF_JMP | BPF_CALL) && is_helper && number == BPF_FUNC_perf_event_output) ++found;
  }
  return found;
}

std::size_t uses_of(const ElfObject& object, const ElfSection& relocations, std::string_view symbol) {
  constexpr unsigned kSymbolShift = 32;
  std::size_t found = 0;
  for (format::Cursor in(relocations.content); in.left() >= sizeof(Elf64_Rel);) {
    in.u64();  // where
    const std::uint64_t number = in.u64() >> kSymbolShift;
    if (number < object.symbols.size() && object.symbols[number].name == symbol) ++found;
  }
  return found;
}

}  // namespace

WalkUse walk_use_of(format::Bytes bytes) {
  const auto object = parse_elf_object(bytes);
  if (!object) return {};
  std::size_t outputs = 0, walks = 0, stacks = 0;
  for (const ElfSection& section : object->sections) {
    if (section.type == SHT_PROGBITS && (section.flags & SHF_EXECINSTR) != 0) outputs += outputs_in(section);
    const bool is_of_types = section.name.starts_with(".rel.BTF") || section.name.starts_with(".rel.debug");
    if (section.type != SHT_REL || is_of_types) continue;
    walks += uses_of(*object, section, kWalk);
    stacks += uses_of(*object, section, kStack);
  }
  return {outputs != 0 && walks >= outputs, stacks != 0};
}

Result<> link_walker(LinkedWalk& out, format::Bytes object, MapsByName maps) {
  out = {};
  if (maps.empty()) return Done{};
  const format::Bytes walker = linked_walk_object();
  if (walker.empty()) return Error{"this tacho was built without clang and has no unwinder"};
  // libbpf 1.1's linker crashes on files that are not ELF.
  if (const auto parsed = parse_elf_object(object); !parsed) return parsed.error();
  auto first = memory_file(object), second = memory_file(walker), both = memory_file({});
  for (const auto* file : {&first, &second, &both})
    if (!*file) return file->error();
  LibbpfLog said;
  LIBBPF_OPTS(bpf_linker_opts, options);
  const std::unique_ptr<bpf_linker, FreeLinker> linker(bpf_linker__new(both->path.c_str(), &options));
  const bool is_linked = linker != nullptr &&
                         bpf_linker__add_file(linker.get(), first->path.c_str(), nullptr) == 0 &&
                         bpf_linker__add_file(linker.get(), second->path.c_str(), nullptr) == 0 &&
                         bpf_linker__finalize(linker.get()) == 0;
  if (!is_linked) {
    const std::string why = last_libbpf_line(said.text());
    return Error{"libbpf cannot link it with the unwinder" + (why.empty() ? why : ": " + why)};
  }
  auto elf = format::read_file(both->path, kMostLinked);
  if (!elf) return std::move(elf.error());
  out = {std::move(*elf), std::move(maps)};
  return Done{};
}

namespace {

// Bytes for stack copies: 0.1 s at 6000 stacks a second, or 1600 deep ones.
constexpr std::uint32_t kCopyBytes = std::uint32_t{16} << 20;
constexpr std::array<const char*, kStackHooks> kPrograms{"walk_on_sample", "walk_on_tracepoint",
                                                         "walk_on_probe", "walk_before_reader"};

// Maps whole pages with `size` bytes of a BPF map.
Result<format::Mapping> map_memory(int fd, std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  size = (size + page - 1) / page * page;
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return system_error("memory of a BPF map", errno);
  return format::Mapping(at, size);
}

template <class Item>
std::span<Item> items_of(const format::Mapping& memory) {
  return {reinterpret_cast<Item*>(memory.bytes().data()), memory.bytes().size() / sizeof(Item)};
}

void set_options(bpf_object* object, const tacho_walk_options& options) {
  const auto bytes = initial_bytes(bpf_object__find_map_by_name(object, ".rodata.tacho"));
  if (bytes.size() >= sizeof options) std::memcpy(bytes.data(), &options, sizeof options);
}

// Layout of the kernel's mappings; zeros: unknown, so the recorder writes ranges to maps.
tacho_kernel_layout layout_for(const StackWalkerOptions& options, const Log& log) {
  if (!options.reads_mappings) return {};
  const auto layout = kernel_layout();
  if (layout) return *layout;
  say(log, "stacks: the recorder writes mappings for the unwinder, since " + layout.error().what);
  return {};
}

Error explain(const LibbpfLog& said, int code) {
  return system_error("the kernel refused the unwinder (it needs Linux 5.17)" + refusal_in_log(said.text()),
                      code);
}

}  // namespace

struct StackWalker::State {
  OwnedObject object;
  std::array<int, kPrograms.size()> programs{-1, -1, -1, -1};
  int segments = -1, processes = -1, stacks = -1, files = -1, readers = -1;
  bool reads_mappings = false;
  std::optional<Ring> requests, copies;
  format::Mapping ranges, modules;
  std::size_t range_count = 0;
  format::Mapping variables;  // section .data.tacho
  tacho_walk_variables& walk_variables() const {
    return *reinterpret_cast<tacho_walk_variables*>(variables.bytes().data());
  }
  std::vector<format::Mapping> rows;
};

StackWalker::StackWalker(std::unique_ptr<State> state) : state_(std::move(state)) {}
StackWalker::StackWalker(StackWalker&&) noexcept = default;
StackWalker& StackWalker::operator=(StackWalker&&) noexcept = default;
StackWalker::~StackWalker() = default;

Result<StackWalker> StackWalker::load(const StackWalkerOptions& options, const Log& log) {
  const format::Bytes elf = stack_walk_object();
  if (elf.empty()) return Error{"this tacho was built without clang and has no unwinder"};
  if (auto may = check_may_load(); !may) return std::move(may.error());
  LibbpfLog said;
  auto state = std::make_unique<State>();
  // Without BTF, the kernel's members for pid namespaces cannot be located, and the object's own types, which
  // libbpf then takes, are not used: no namespace is entered.
  const bool has_kernel_types = ::access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  const auto own_types = memory_file(has_kernel_types ? format::Bytes{} : elf);
  if (!own_types) return own_types.error();
  state->object = open_object(elf, "tacho_stacks", has_kernel_types ? nullptr : own_types->path.c_str());
  if (state->object == nullptr) return explain(said, errno);
  bpf_object* const object = state->object.get();
  const auto cpus = possible_cpus();
  if (!cpus) return cpus.error();
  const auto map = [&](const char* name) { return bpf_object__find_map_by_name(object, name); };
  const tacho_kernel_layout layout = layout_for(options, log);
  state->reads_mappings = layout.is_known != 0;
  const std::uint32_t most_ranges = state->reads_mappings ? 1 : options.most_ranges;
  bpf_map__set_max_entries(map("tacho_stacks"), *cpus);
  bpf_map__set_max_entries(map("tacho_readers"), options.most_readers);
  bpf_map__set_max_entries(map("tacho_files"), state->reads_mappings ? TACHO_MOST_FILES : 1);
  bpf_map__set_max_entries(map("tacho_copies"), kCopyBytes);
  bpf_map__set_max_entries(map("tacho_ranges"), most_ranges);
  bpf_map__set_max_entries(map("tacho_processes"), state->reads_mappings ? 1 : options.most_processes);
  set_options(object, {options.most_frames, options.only_recorded_tasks ? 1U : 0U,
                       has_kernel_types ? pid_namespace_inode() : 0, layout});
  for (std::size_t i = 0; i < kPrograms.size(); ++i)
    bpf_program__set_autoload(bpf_object__find_program_by_name(object, kPrograms[i]), options.hooks[i]);
  if (const int code = bpf_object__load(object); code != 0) return explain(said, -code);
  for (const std::string& line : libbpf_lines(said.text())) say(log, "libbpf: " + line);

  for (std::size_t i = 0; i < kPrograms.size(); ++i)
    if (options.hooks[i])
      state->programs[i] = bpf_program__fd(bpf_object__find_program_by_name(object, kPrograms[i]));
  state->segments = bpf_map__fd(map("tacho_segments"));
  state->processes = bpf_map__fd(map("tacho_processes"));
  state->stacks = bpf_map__fd(map("tacho_stacks"));
  state->files = bpf_map__fd(map("tacho_files"));
  state->readers = bpf_map__fd(map("tacho_readers"));
  state->range_count = most_ranges;
  // The kernel's memory of the variables: libbpf's is a copy.
  bpf_map* const variables = map(".data.tacho");
  if (variables == nullptr || bpf_map__value_size(variables) < sizeof(tacho_walk_variables))
    return Error{"the unwinder has no section for its variables"};
  const auto ring = [&](const char* name) {
    return Ring::open(bpf_map__fd(map(name)), bpf_map__max_entries(map(name)));
  };
  const auto memory = [&](const char* name, std::size_t size) {
    return map_memory(bpf_map__fd(map(name)), size);
  };
  for (const auto& done :
       {store(state->requests, ring("tacho_file_requests")), store(state->copies, ring("tacho_copies")),
        store(state->ranges, memory("tacho_ranges", most_ranges * sizeof(tacho_code_range))),
        store(state->modules, memory("tacho_modules", TACHO_MOST_MODULES * sizeof(tacho_unwind_module))),
        store(state->variables, memory(".data.tacho", bpf_map__value_size(variables)))})
    if (!done) return done.error();
  return StackWalker(std::move(state));
}

Result<format::Fd> StackWalker::attach(StackHook hook, int event_fd) {
  const int program = state_->programs[static_cast<std::size_t>(hook)];
  auto link = link_to_event(program, event_fd);
  if (link) return link;
  if (link.error().code == EEXIST || link.error().code == EBUSY) return std::move(link.error());
  if (::ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, program) == 0) return format::Fd();
  return system_error("the unwinder cannot be attached to the event", errno);
}

MapsByName StackWalker::maps() const {
  MapsByName maps;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, state_->object.get()) {
    // Argument readers of probes tail-call only this program.
    if (bpf_map__fd(map) != state_->readers) maps.emplace_back(bpf_map__name(map), bpf_map__fd(map));
  }
  return maps;
}

Result<> StackWalker::set_reader(std::uint32_t number, int program) {
  if (bpf_map_update_elem(state_->readers, &number, &program, BPF_ANY) == 0) return Done{};
  return system_error("the program that the unwinder calls", errno);
}

int StackWalker::program(StackHook hook) const { return state_->programs[static_cast<std::size_t>(hook)]; }

Result<> StackWalker::put_output(int cpu, int event_fd) {
  if (bpf_map_update_elem(state_->stacks, &cpu, &event_fd, BPF_ANY) == 0) return Done{};
  return system_error("stacks of CPU " + std::to_string(cpu) + " cannot be written", errno);
}

std::span<tacho_code_range> StackWalker::ranges() const {
  return items_of<tacho_code_range>(state_->ranges).first(state_->range_count);
}
std::span<tacho_unwind_module> StackWalker::modules() const {
  return items_of<tacho_unwind_module>(state_->modules).first(TACHO_MOST_MODULES);
}
void StackWalker::set_now(std::uint32_t now) {
  std::atomic_ref(state_->walk_variables().now).store(now, std::memory_order_relaxed);
}

void StackWalker::enable_copies() {
  std::atomic_ref(state_->walk_variables().may_copy).store(1, std::memory_order_relaxed);
}
std::uint64_t StackWalker::samples() const {
  return std::atomic_ref(state_->walk_variables().samples).load(std::memory_order_relaxed);
}
bool StackWalker::take_copies(const std::function<void(format::Bytes)>& sink) {
  return state_->copies->drain(sink);
}

Result<std::span<tacho_unwind_block>> StackWalker::add_segment() {
  const auto number = static_cast<std::uint32_t>(state_->rows.size());
  if (number == TACHO_MOST_SEGMENTS) return Error{"the limit of memory for unwind tables is reached"};
  LIBBPF_OPTS(bpf_map_create_opts, options);
  options.map_flags = BPF_F_MMAPABLE;
  const format::Fd segment(bpf_map_create(BPF_MAP_TYPE_ARRAY, "tacho_rows", sizeof(std::uint32_t),
                                          sizeof(tacho_unwind_block), TACHO_SEGMENT_BLOCKS, &options));
  if (!segment) return system_error("memory for unwind tables", errno);
  auto memory = map_memory(segment.get(), TACHO_SEGMENT_BLOCKS * sizeof(tacho_unwind_block));
  if (!memory) return std::move(memory.error());
  const int fd = segment.get();
  if (bpf_map_update_elem(state_->segments, &number, &fd, BPF_ANY) != 0)
    return system_error("memory for unwind tables", errno);
  state_->rows.push_back(std::move(*memory));
  return items_of<tacho_unwind_block>(state_->rows.back());
}

bool StackWalker::reads_mappings() const { return state_->reads_mappings; }
int StackWalker::file_requests_fd() const { return state_->requests->fd(); }
void StackWalker::take_file_requests(const std::function<void(const tacho_file_request&)>& sink) {
  (void)state_->requests->drain([&sink](format::Bytes bytes) {
    tacho_file_request request{};
    if (bytes.size() < sizeof request) return;
    std::memcpy(&request, bytes.data(), sizeof request);
    sink(request);
  });
}
Result<> StackWalker::set_file(const tacho_file_key& file, std::uint32_t module) {
  if (bpf_map_update_elem(state_->files, &file, &module, BPF_ANY) == 0) return Done{};
  return system_error("the unwinder's map of files", errno);
}
void StackWalker::remove_file(const tacho_file_key& file) { bpf_map_delete_elem(state_->files, &file); }

Result<> StackWalker::set_process(std::uint32_t process, tacho_process_ranges ranges) {
  if (bpf_map_update_elem(state_->processes, &process, &ranges, BPF_ANY) == 0) return Done{};
  return system_error("the mappings of process " + std::to_string(process), errno);
}
void StackWalker::remove_process(std::uint32_t process) { bpf_map_delete_elem(state_->processes, &process); }

}  // namespace tacho::bpf
