#include "symbolize/address_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "format/perf_abi.h"
#include "format/seeded_hash.h"
#include "symbolize/mapping_list.h"
#include "tsl/robin_map.h"

namespace tacho::symbolize {
namespace {

namespace abi = format::abi;

constexpr std::uint32_t kNobody = static_cast<std::uint32_t>(-1);  // a pid or tid
constexpr std::uint32_t kProtExec = 4;
constexpr std::uint32_t kMapHugetlb = 0x40000;
constexpr std::string_view kKernelName = "[kernel.kallsyms]";
constexpr std::string_view kKernelPrefix = "[kernel.kallsyms";  // the record adds "]_text" or "]_stext"
constexpr std::uint16_t kUnregister = 1;                        // KSYMBOL flag

template <class Value>
using ByNumber = tsl::robin_map<std::uint32_t, Value, format::SeededHash>;

struct Thread {
  std::uint32_t pid = kNobody;
  bool is_exec_named = false;
  const std::string* comm = nullptr;  // null: no record named it
};

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Memory without a file: the code in it, if any, was made at run time.
bool is_anonymous(const format::MmapRecord& record) {
  return starts_with_any(record.filename,
                         {"//anon", "/dev/zero", "/anon_hugepage", "[stack", "/SYSV", "[heap]"}) ||
         (record.flags & kMapHugetlb) != 0;
}

bool is_vdso(std::string_view name) { return name == "[vdso]" || name == "[vdso32]" || name == "[vdsox32]"; }

std::string_view last_part(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

// "/lib/modules/6.1/kernel/fs/ext4/ext4-extra.ko.xz" -> "[ext4_extra]", as the kernel itself calls it.
std::string kernel_module_name(std::string_view path) {
  if (path.starts_with('[')) return std::string(path);
  std::string_view name = last_part(path);
  const auto suffix = name.find(".ko");
  if (suffix == std::string_view::npos) return std::string(path);
  std::string result = fmt::format("[{}]", name.substr(0, suffix));
  std::ranges::replace(result, '-', '_');
  return result;
}

std::uint64_t end_of(std::uint64_t start, std::uint64_t length) {
  return start + std::min(length, std::numeric_limits<std::uint64_t>::max() - start);
}

}  // namespace

struct AddressSpaces::State {
  std::deque<Module> modules;
  std::unordered_map<std::string, Module*> modules_by_identity;      // path, NUL, build id
  std::unordered_map<std::string, format::BuildId> build_ids;        // by path, from the header
  std::unordered_map<std::string, std::string> kernel_module_paths;  // by "[name]", from the header
  std::deque<Mapping> mappings;
  format::SeededHash priority;  // of a mapping in its list, by its start
  ByNumber<MappingList> processes;
  ByNumber<Thread> threads;  // by tid
  MappingList kernel;
  const Mapping* kernel_map = nullptr;  // of the kernel's own text
  std::optional<KernelText> kernel_text;
  std::unordered_set<std::string> comms;
  std::unordered_map<std::uint32_t, std::string, format::SeededHash> unnamed;  // tid -> ":tid"

  Module* module(ModuleKind kind, std::string path, std::string short_name, format::BuildId id);
  void add(MappingList& maps, const Mapping& mapping);
  void insert(MappingList& maps, const Mapping& mapping);
  void erase(MappingList& maps, std::uint64_t start, std::uint64_t end);

  void apply(const format::MmapRecord& record, std::uint16_t misc);
  void apply(const format::CommRecord& record, std::uint16_t misc);
  void apply(const format::TaskRecord& record, std::uint16_t misc);
  void apply(const format::KsymbolRecord& record, std::uint16_t misc);
  void apply(const format::BuildIdRecord& record, std::uint16_t misc);
  void apply_kernel_mmap(const format::MmapRecord& record);
  void apply_user_mmap(const format::MmapRecord& record);
  Thread& thread(std::uint32_t pid, std::uint32_t tid);
  void add_build_id(const std::string& path, const format::BuildId& id);
  format::BuildId known_id(std::string_view path) const {
    const auto known = build_ids.find(std::string(path));
    return known == build_ids.end() ? format::BuildId{} : known->second;
  }
};

// One Module for each (path, build id). An id the record does not tell is looked up by path.
Module* AddressSpaces::State::module(ModuleKind kind, std::string path, std::string short_name,
                                     format::BuildId id) {
  if (id.empty()) id = known_id(path);
  std::string identity = path + '\0' + id.hex();
  const auto [entry, is_new] = modules_by_identity.try_emplace(std::move(identity), nullptr);
  if (is_new) entry->second = &modules.emplace_back(Module{kind, std::move(path), std::move(short_name), id});
  return entry->second;
}

// Over no other mapping of the list.
void AddressSpaces::State::add(MappingList& maps, const Mapping& mapping) {
  maps.add(&mappings.emplace_back(mapping), static_cast<std::uint32_t>(priority(mapping.start)));
}

// Cuts [start, end) out; what remains of a mapping on either side becomes a mapping of its own.
void AddressSpaces::State::erase(MappingList& maps, std::uint64_t start, std::uint64_t end) {
  for (const Mapping* const old : maps.take(start, end)) {
    if (old->start < start) {
      Mapping before = *old;
      before.end = start;
      add(maps, before);
    }
    if (old->end > end) {
      Mapping after = *old;
      after.page_offset += end - after.start;
      after.start = end;
      add(maps, after);
    }
  }
}

void AddressSpaces::State::insert(MappingList& maps, const Mapping& mapping) {
  if (mapping.start >= mapping.end) return;
  const Mapping* const old = maps.find(mapping.start);
  const bool is_same = old && old->module == mapping.module && old->start == mapping.start &&
                       old->end == mapping.end && old->page_offset == mapping.page_offset;
  if (is_same) return;  // told twice: by the kernel, and by the recorder's look at /proc
  erase(maps, mapping.start, mapping.end);
  add(maps, mapping);
}

void AddressSpaces::State::apply(const format::MmapRecord& record, std::uint16_t misc) {
  switch (misc & abi::kCpumodeMask) {
    case abi::kCpumodeKernel:
      return apply_kernel_mmap(record);
    case abi::kCpumodeUser:
    case abi::kCpumodeUnknown:
      return apply_user_mmap(record);
    default:
      return;  // a guest's: perf does not look into guests unless told to
  }
}

void AddressSpaces::State::apply_kernel_mmap(const format::MmapRecord& record) {
  Mapping mapping{.start = record.start,
                  .end = end_of(record.start, record.length),
                  .page_offset = record.page_offset,
                  .protection = kProtExec,
                  .pid = kNobody,
                  .is_identity = true};
  if (!record.filename.starts_with(kKernelPrefix)) {
    const bool is_named = record.filename.starts_with('/') || record.filename.starts_with('[');
    if (!is_named) return;
    const std::string name = kernel_module_name(record.filename);
    // As in perf: a module that the capture's table of build ids lists goes by the path it has there.
    const auto listed = kernel_module_paths.find(name);
    Module* const loaded = module(
        ModuleKind::KernelModule, listed == kernel_module_paths.end() ? name : listed->second,
        std::string(last_part(name)), record.build_id.empty() ? known_id(record.filename) : record.build_id);
    if (record.filename.starts_with('/')) loaded->file = record.filename;
    mapping.module = loaded;
    return insert(kernel, mapping);
  }
  // Some recorders wrote a kernel of no size: everything else in kernel space is its.
  if (mapping.start == 0 && mapping.end == 0) mapping.end = std::numeric_limits<std::uint64_t>::max();
  mapping.module =
      module(ModuleKind::Kernel, std::string(kKernelName), std::string(kKernelName), record.build_id);
  if (kernel_map && (kernel_map->start != mapping.start || kernel_map->end != mapping.end)) {
    for (const Mapping* const old : kernel.all()) {
      if (old->module == kernel_map->module) kernel.take(old->start, old->end);
    }
  }
  insert(kernel, mapping);
  kernel_map = kernel.find(mapping.start);
  kernel_text = KernelText{mapping.start, mapping.end, {}, 0};
  // Zero: the recorder was not permitted to see kernel addresses.
  if (record.page_offset != 0) {
    std::string_view symbol = record.filename.substr(kKernelPrefix.size());
    if (symbol.starts_with(']')) symbol.remove_prefix(1);
    kernel_text->reference_symbol = symbol;
    kernel_text->reference_address = record.page_offset;
  }
}

void AddressSpaces::State::apply_user_mmap(const format::MmapRecord& record) {
  // MMAP has no protection; perf takes what is not marked as data for code.
  const std::uint32_t protection = record.is_mmap2 ? record.protection : record.is_data ? 0 : kProtExec;
  Mapping mapping{.start = record.start,
                  .end = end_of(record.start, record.length),
                  .page_offset = record.page_offset,
                  .protection = protection,
                  .pid = record.pid};
  if (is_vdso(record.filename)) {
    mapping.page_offset = 0;
    mapping.module = module(ModuleKind::Vdso, std::string(record.filename), std::string(record.filename), {});
  } else if (is_anonymous(record)) {
    mapping.is_identity = true;
    const auto pid = static_cast<std::int32_t>(record.pid);
    mapping.module = (protection & kProtExec) != 0
                         ? module(ModuleKind::Anonymous, fmt::format("/tmp/perf-{}.map", pid),
                                  fmt::format("[JIT] tid {}", pid), {})
                         : module(ModuleKind::Anonymous, std::string(record.filename),
                                  std::string(last_part(record.filename)), {});
  } else {
    mapping.module = module(ModuleKind::User, std::string(record.filename),
                            std::string(last_part(record.filename)), record.build_id);
  }
  insert(processes[record.pid], mapping);
}

// perf knows a thread by its tid alone.
Thread& AddressSpaces::State::thread(std::uint32_t pid, std::uint32_t tid) {
  Thread& found = threads[tid];
  if (found.pid == kNobody) found.pid = pid;
  return found;
}

void AddressSpaces::State::apply(const format::CommRecord& record, std::uint16_t /*misc*/) {
  Thread& named = thread(record.pid, record.tid);
  named.comm = &*comms.emplace(record.name).first;
  // The old program's mappings stay until the new one's cover them: until execve returns, the user addresses
  // of its call chains are the old program's.
  if (record.is_exec) named.is_exec_named = true;
}

void AddressSpaces::State::apply(const format::TaskRecord& record, std::uint16_t misc) {
  if (record.is_exit) return;  // its samples may come a little later
  // A parent of another process: the record that ended it was lost, and its tid was given out anew.
  Thread parent = thread(record.parent_pid, record.parent_tid);
  if (parent.pid != record.parent_pid) {
    parent = threads[record.parent_tid] = Thread{record.parent_pid, false, nullptr};
    if (record.parent_pid == record.parent_tid) processes.erase(record.parent_pid);
  }
  threads[record.tid] = Thread{record.pid, false, parent.comm};
  if (record.pid == record.parent_pid) return;  // a thread: it shares
  // The recorder's own FORK records, for what already runs, are marked; the MMAP records of each process
  // follow.
  const bool is_synthesized = (misc & abi::kMiscForkExec) != 0;
  MappingList copy;
  if (const auto from = processes.find(record.parent_pid); from != processes.end() && !is_synthesized) {
    copy = from->second;
  }
  if (copy.is_empty())
    processes.erase(record.pid);
  else
    processes[record.pid] = std::move(copy);
}

void AddressSpaces::State::apply(const format::KsymbolRecord& record, std::uint16_t /*misc*/) {
  const std::uint64_t end = end_of(record.address, record.length);
  if ((record.flags & kUnregister) != 0) {
    const Mapping* const old = kernel.find(record.address);
    if (old && old->module->kind == ModuleKind::Bpf) erase(kernel, old->start, old->end);
    return;
  }
  const std::string name(record.name);
  insert(kernel, Mapping{.module = module(ModuleKind::Bpf, name, name, {}),
                         .start = record.address,
                         .end = end,
                         .protection = kProtExec,
                         .pid = kNobody,
                         .is_identity = true});
}

void AddressSpaces::State::add_build_id(const std::string& path, const format::BuildId& id) {
  if (id.empty()) return;
  build_ids.emplace(path, id);
  // A pipe tells the ids at its end, after the mappings.
  if (const auto known = modules_by_identity.find(path + '\0'); known != modules_by_identity.end()) {
    known->second->build_id = id;
    modules_by_identity.emplace(path + '\0' + id.hex(), known->second);
  }
}

void AddressSpaces::State::apply(const format::BuildIdRecord& record, std::uint16_t /*misc*/) {
  add_build_id(std::string(record.filename), record.build_id);
}

AddressSpaces::AddressSpaces() : state_(std::make_unique<State>()) {
  // The idle task is never named by a record.
  state_->threads[0] = Thread{0, false, &*state_->comms.emplace("swapper").first};
}
AddressSpaces::AddressSpaces(AddressSpaces&&) noexcept = default;
AddressSpaces& AddressSpaces::operator=(AddressSpaces&&) noexcept = default;
AddressSpaces::~AddressSpaces() = default;

void AddressSpaces::apply(const format::Record& record, std::uint16_t misc) {
  std::visit(
      [&](const auto& one) {
        if constexpr (requires { state_->apply(one, misc); }) state_->apply(one, misc);
      },
      record);
}

void AddressSpaces::add_build_id(const format::BuildIdEntry& entry) {
  const bool is_kernels = (entry.misc & abi::kCpumodeMask) == abi::kCpumodeKernel;
  if (is_kernels && entry.filename.find(".ko") != std::string::npos)
    state_->kernel_module_paths.emplace(kernel_module_name(entry.filename), entry.filename);
  state_->add_build_id(entry.filename, entry.build_id);
}

Stretch AddressSpaces::stretch_at(std::uint32_t pid, format::RuntimeAddress ip, std::uint8_t cpumode) const {
  const auto in_user = [&] {
    const auto process = state_->processes.find(pid);
    return process == state_->processes.end() ? Stretch() : process->second.stretch_at(ip.value);
  };
  switch (cpumode) {
    case abi::kCpumodeKernel:
      return state_->kernel.stretch_at(ip.value);
    case abi::kCpumodeUser:
      return in_user();
    case abi::kCpumodeUnknown: {
      const Stretch user = in_user(), kernel = state_->kernel.stretch_at(ip.value);
      const Stretch& nearer = user.mapping != nullptr ? user : kernel;
      return {std::max(user.first, kernel.first), std::min(user.last, kernel.last), nearer.mapping};
    }
    default:
      return {};  // hypervisor and guests
  }
}

std::string_view AddressSpaces::comm(std::uint32_t /*pid*/, std::uint32_t tid) const {
  const auto known = state_->threads.find(tid);
  if (known != state_->threads.end() && known->second.comm) return *known->second.comm;
  std::string& name = state_->unnamed[tid];
  if (name.empty()) name = fmt::format(":{}", static_cast<std::int32_t>(tid));
  return name;
}

bool AddressSpaces::knows_thread(std::uint32_t tid) const {
  const auto known = state_->threads.find(tid);
  return known != state_->threads.end() && known->second.is_exec_named;
}

const std::optional<AddressSpaces::KernelText>& AddressSpaces::kernel_text() const {
  return state_->kernel_text;
}

const Mapping* KernelSpace::find(format::RuntimeAddress ip) const {
  return spaces_->find(kNobody, ip, abi::kCpumodeKernel);
}

}  // namespace tacho::symbolize
