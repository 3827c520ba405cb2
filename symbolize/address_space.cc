#include "symbolize/address_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>

#include "format/base/seeded_hash.h"
#include "format/base/text_pool.h"
#include "format/records/perf_abi.h"
#include "tsl/robin_map.h"
#include "tsl/robin_set.h"

namespace tacho::symbolize {

// A treap: a binary search tree by start that is also a heap by priority. With random priorities its depth is
// logarithmic for any order of insertions.
struct MappingList::Node {
  NodeRef low, high;  // the mappings before, and after
  const Mapping* mapping = nullptr;
  std::uint64_t start = 0;  // mapping->start
  std::uint32_t priority = 0;
  std::uint32_t holders = 1;
};

MappingList::NodeRef::NodeRef(const NodeRef& other) : node_(other.node_) {
  if (node_ != nullptr) ++node_->holders;
}

MappingList::NodeRef::~NodeRef() {
  if (node_ != nullptr && --node_->holders == 0) delete node_;
}

MappingList::Node& MappingList::NodeRef::own() {
  if (node_->holders > 1) {
    Node* const copy = new Node(*node_);
    copy->holders = 1;
    *this = NodeRef(copy);
  }
  return *node_;
}

// Splits a tree into the mappings that begin before `start`, and the others.
std::pair<MappingList::NodeRef, MappingList::NodeRef> MappingList::split(NodeRef tree, std::uint64_t start) {
  if (!tree) return {};
  Node& node = tree.own();
  if (node.start < start) {
    auto [low, high] = split(std::move(node.high), start);
    node.high = std::move(low);
    return {std::move(tree), std::move(high)};
  }
  auto [low, high] = split(std::move(node.low), start);
  node.low = std::move(high);
  return {std::move(low), std::move(tree)};
}

// Joins two trees; all of `low` must be before all of `high`.
MappingList::NodeRef MappingList::join(NodeRef low, NodeRef high) {
  if (!low) return high;
  if (!high) return low;
  if (low->priority >= high->priority) {
    Node& node = low.own();
    node.high = join(std::move(node.high), std::move(high));
    return low;
  }
  Node& node = high.own();
  node.low = join(std::move(low), std::move(node.low));
  return high;
}

AddressRange MappingList::range_at(std::uint64_t address) const {
  const Node* before = nullptr;  // the last that begins at or before the address
  const Node* after = nullptr;   // the first that begins after it
  for (const Node* node = root_.get(); node != nullptr;) {
    const bool is_before = node->start <= address;
    (is_before ? before : after) = node;
    node = is_before ? node->high.get() : node->low.get();
  }
  const bool is_inside = before != nullptr && address < before->mapping->end;
  if (is_inside) return {before->start, before->mapping->end - 1, before->mapping};
  AddressRange gap;
  if (before != nullptr) gap.first = before->mapping->end;
  if (after != nullptr) gap.last = after->start - 1;
  return gap;
}

std::vector<const Mapping*> MappingList::take_range(std::uint64_t start, std::uint64_t end) {
  // Only the last mapping that begins before the range can overlap it.
  const Mapping* const overlapping = find_mapping(start);
  const std::uint64_t from = overlapping != nullptr ? overlapping->start : start;
  auto [before, rest] = split(std::move(root_), from);
  auto [taken, after] = split(std::move(rest), end);
  root_ = join(std::move(before), std::move(after));
  std::vector<const Mapping*> mappings;
  list(taken.get(), mappings);
  return mappings;
}

void MappingList::add_mapping(const Mapping* mapping, std::uint32_t priority) {
  auto [before, after] = split(std::move(root_), mapping->start);
  NodeRef fresh(new Node{{}, {}, mapping, mapping->start, priority});
  root_ = join(join(std::move(before), std::move(fresh)), std::move(after));
}

void MappingList::list(const Node* tree, std::vector<const Mapping*>& out) {
  if (tree == nullptr) return;
  list(tree->low.get(), out);
  out.push_back(tree->mapping);
  list(tree->high.get(), out);
}

std::vector<const Mapping*> MappingList::all() const {
  std::vector<const Mapping*> mappings;
  list(root_.get(), mappings);
  return mappings;
}

namespace {

namespace abi = format::abi;

constexpr std::uint32_t kNoProcess = static_cast<std::uint32_t>(-1);  // a pid or tid
constexpr std::uint32_t kProtExec = 4;
constexpr std::uint32_t kMapShared = 1, kMapHugetlb = 0x40000;
constexpr std::string_view kKernelName = "[kernel.kallsyms]";
constexpr std::string_view kKernelPrefix = "[kernel.kallsyms";  // the record adds "]_text" or "]_stext"
constexpr std::uint16_t kUnregister = 1;                        // KSYMBOL flag

template <class Value>
using ByNumber = tsl::robin_map<std::uint32_t, Value, format::SeededHash>;

using Text = format::TextPool::Number;
constexpr Text kNoText = format::TextPool::kNone;

struct Thread {
  std::uint32_t pid = kNoProcess;
  Text comm = kNoText;  // kNoText: no record named it
};

// The identity of a module.
struct Identity {
  std::string_view path;
  format::BuildId build_id;
  std::uint64_t file = 0;  // 0: the first file with this path; else the inode of a later one
  bool operator==(const Identity&) const = default;
};
// A module with its identity.
struct KnownModule : Module {
  std::uint64_t file = 0;  // Identity::file
  Identity identity() const { return {path, build_id, file}; }
};
struct IdentityHash {
  using is_transparent = void;
  std::size_t operator()(const Identity& identity) const {
    const auto* const id = reinterpret_cast<const char*>(identity.build_id.bytes.data());
    return texts(identity.path) ^ ids(std::string_view(id, identity.build_id.size)) ^
           (identity.file == 0 ? 0 : files(identity.file));
  }
  std::size_t operator()(const KnownModule* module) const { return (*this)(module->identity()); }
  format::SeededTextHash texts, ids;
  format::SeededHash files;
};
struct SameIdentity {
  using is_transparent = void;
  bool operator()(const KnownModule* one, const KnownModule* other) const { return one == other; }
  bool operator()(const KnownModule* module, const Identity& identity) const {
    return module->identity() == identity;
  }
  bool operator()(const Identity& identity, const KnownModule* module) const {
    return (*this)(module, identity);
  }
};

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Anonymous memory: code in it is generated.
bool is_anonymous(const format::MmapRecord& record) {
  return starts_with_any(record.filename,
                         {"//anon", "/dev/zero", "/anon_hugepage", "[stack", "/SYSV", "[heap]"}) ||
         (record.flags & kMapHugetlb) != 0;
}

// Generated code in a memfd or unlinked file: a JIT maps it twice, for writing and for execution, with shared
// pages; a loader's mapping of an ELF file is private.
bool is_generated_code(const format::MmapRecord& record) {
  const std::string_view name = record.filename;
  return record.is_mmap2 && (record.protection & kProtExec) != 0 && (record.flags & kMapShared) != 0 &&
         record.build_id.empty() &&
         (starts_with_any(name, {"/memfd:", "/dev/shm/"}) || name.ends_with(" (deleted)"));
}

bool is_vdso(std::string_view name) { return name == "[vdso]" || name == "[vdso32]" || name == "[vdsox32]"; }

std::string_view last_part(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

// "/lib/modules/6.1/kernel/fs/ext4/ext4-extra.ko.xz" -> "[ext4_extra]", the kernel's name.
std::string kernel_module_name(std::string_view path) {
  if (path.starts_with('[')) return std::string(path);
  std::string_view name = last_part(path);
  const auto suffix = name.find(".ko");
  if (suffix == std::string_view::npos) return std::string(path);
  std::string result = fmt::format("[{}]", name.substr(0, suffix));
  std::ranges::replace(result, '-', '_');
  return result;
}

// As perf: "/usr/lib/debug/boot/vmlinux-6.1" -> "[kernel.vmlinux]".
std::string_view kernel_short_name(std::string_view path) {
  return path.find("vmlinux") == std::string_view::npos ? last_part(path) : "[kernel.vmlinux]";
}

// `user` is null if the process is unknown.
AddressRange range_in(const MappingList* user, const MappingList& kernel, std::uint64_t ip,
                      std::uint8_t cpumode) {
  const auto in_user = [&] { return user == nullptr ? AddressRange() : user->range_at(ip); };
  switch (cpumode) {
    case abi::kCpumodeKernel:
      return kernel.range_at(ip);
    case abi::kCpumodeUser:
      return in_user();
    case abi::kCpumodeUnknown: {
      const AddressRange of_user = in_user(), of_kernel = kernel.range_at(ip);
      const AddressRange& nearer = of_user.mapping != nullptr ? of_user : of_kernel;
      return {std::max(of_user.first, of_kernel.first), std::min(of_user.last, of_kernel.last),
              nearer.mapping};
    }
    default:
      return {};  // hypervisor and guests
  }
}

}  // namespace

struct AddressSpaces::State {
  format::TextPool texts;  // all names
  std::deque<KnownModule> modules;
  tsl::robin_set<KnownModule*, IdentityHash, SameIdentity> modules_by_identity;
  ByNumber<format::BuildId> build_ids;  // by path, from the header
  ByNumber<Text> kernel_module_paths;   // by "[name]", from the header
  Text kernel_path = kNoText;           // from the header: a vmlinux, if the recorder used one
  std::deque<Mapping> mappings;
  format::SeededHash priority;  // of a mapping in its treap, by its start
  ByNumber<MappingList> processes;
  ByNumber<Thread> threads;       // by tid
  ByNumber<std::uint64_t> forks;  // by pid: when a process was forked, ns
  bool keeps_memory_files = false, keeps_pid_zero = false;
  MappingList kernel;
  ByNumber<std::unique_ptr<const SpaceVersion>> versions;  // by pid, of processes with mappings
  std::unique_ptr<const SpaceVersion> unmapped;            // of all others
  Versions replaced;
  std::uint32_t next_version = 1, kernel_number = 1;
  const Mapping* kernel_map = nullptr;  // of the kernel's text
  std::optional<KernelText> kernel_text;

  // Finds or makes the Module of an identity. A record without a build id gets the one of its path.
  Module* module(ModuleKind kind, std::string_view path, std::string_view short_name, format::BuildId id,
                 std::uint64_t file = 0) {
    if (id.empty()) id = build_id_of_path(path);
    const Identity identity{path, id, file};
    const auto known = modules_by_identity.find(identity);
    if (known != modules_by_identity.end()) return *known;
    const std::string_view kept = texts.keep(path);
    // Usually the end of the path, which needs no memory.
    const bool is_end = kept.ends_with(short_name);
    const std::string_view name =
        is_end ? kept.substr(kept.size() - short_name.size()) : texts.keep(short_name);
    KnownModule* const fresh = &modules.emplace_back(KnownModule{{kind, kept, name, id}, file});
    modules_by_identity.insert(fresh);
    return fresh;
  }

  // If a file is replaced while it runs, two files have one path, and perf's table of build ids, which is
  // made from the paths at the end of the recording, has the id of the new one. Their inodes differ.
  Module* module_of_file(const format::MmapRecord& record) {
    const std::string_view name = last_part(record.filename);
    Module* const first = module(ModuleKind::User, record.filename, name, record.build_id);
    if (!record.is_mmap2 || !record.build_id.empty() || record.inode == 0) return first;
    const MappedFile file{record.major, record.minor, record.inode, record.inode_generation};
    if (first->mapped.inode == 0) first->mapped = file;
    if (!first->mapped.is_other_than(file)) return first;
    Module* const other = module(ModuleKind::User, record.filename, name, {}, record.inode);
    if (other->mapped.inode == 0) other->mapped = file;
    return other;
  }

  // Whether a pid or tid names one task: several processes outside of a pid namespace share 0.
  bool identifies(std::uint32_t pid) const { return keeps_pid_zero || identifies_task(pid); }

  // Adds a mapping that overlaps no other.
  void add(MappingList& maps, const Mapping& mapping) {
    maps.add_mapping(&mappings.emplace_back(mapping), static_cast<std::uint32_t>(priority(mapping.start)));
  }

  void insert(MappingList& maps, const Mapping& mapping) {
    if (mapping.start >= mapping.end) return;
    const Mapping* const old = maps.find_mapping(mapping.start);
    const bool is_same = old && old->module == mapping.module && old->start == mapping.start &&
                         old->end == mapping.end && old->page_offset == mapping.page_offset;
    if (is_same) return;  // recorded twice: by the kernel, and by the recorder from /proc
    replace_version(mapping.pid);
    erase(maps, mapping.start, mapping.end);
    add(maps, mapping);
  }

  // Removes [start, end); the rest of a mapping on either side becomes a new mapping.
  void erase(MappingList& maps, std::uint64_t start, std::uint64_t end) {
    for (const Mapping* const old : maps.take_range(start, end)) {
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

  // Moves the current version of a process to `replaced`. kNoProcess: the kernel's mappings change, which are
  // part of all versions.
  void replace_version(std::uint32_t pid) {
    if (pid == kNoProcess) {
      ++kernel_number;
      for (auto row = versions.begin(); row != versions.end(); ++row)
        replaced.push_back(std::move(row.value()));
      if (unmapped != nullptr) replaced.push_back(std::move(unmapped));
      return versions.clear();
    }
    const auto row = versions.find(pid);
    if (row == versions.end()) return;
    replaced.push_back(std::move(row.value()));
    versions.erase(row);
  }

  void apply(const format::MmapRecord& record, std::uint16_t misc) {
    switch (misc & abi::kCpumodeMask) {
      case abi::kCpumodeKernel:
        return apply_kernel_mmap(record);
      case abi::kCpumodeUser:
      case abi::kCpumodeUnknown:
        return apply_user_mmap(record);
      default:
        return;  // of a guest: perf ignores these by default
    }
  }

  void apply(const format::CommRecord& record, std::uint16_t /*misc*/) {
    // The mappings of the old program are kept until new ones replace them: before execve returns, user
    // addresses of call chains are the old program's.
    // tacho record writes a COMM "[no thread]" of tid -1 for samples without a thread: of summaries and plain
    // ring buffers.
    const bool is_no_thread = record.tid == kNoProcess && record.name == "[no thread]";
    if (!identifies(record.tid) && !is_no_thread) return;
    thread(record.pid, record.tid).comm = texts.add_text(record.name);
  }

  void apply(const format::TaskRecord& record, std::uint16_t misc) {
    if (record.is_exit) return;  // its last samples may come later
    if (!identifies(record.tid)) return;
    if (!identifies(record.parent_tid)) return begin_process(record);
    // The parent's tid belongs to another process now: its EXIT record was lost, and the tid was reused.
    Thread parent = thread(record.parent_pid, record.parent_tid);
    if (parent.pid != record.parent_pid) {
      parent = threads[record.parent_tid] = Thread{record.parent_pid, kNoText};
      if (record.parent_pid == record.parent_tid) {
        processes.erase(record.parent_pid);
        replace_version(record.parent_pid);
      }
    }
    threads[record.tid] = Thread{record.pid, parent.comm};
    if (record.pid == record.parent_pid) return;  // a new thread shares the mappings
    // Synthesized FORK records for running processes are marked; MMAP records of each process follow them.
    const bool is_synthesized = (misc & abi::kMiscForkExec) != 0;
    if (is_synthesized || record.time == 0)
      forks.erase(record.pid);
    else
      forks[record.pid] = record.time;
    MappingList copy;
    if (const auto from = processes.find(record.parent_pid); from != processes.end() && !is_synthesized) {
      copy = from->second;
    }
    replace_version(record.pid);
    if (copy.is_empty())
      processes.erase(record.pid);
    else
      processes[record.pid] = std::move(copy);
  }

  // A process whose parent is not known: without a name and mappings.
  void begin_process(const format::TaskRecord& record) {
    threads[record.tid] = Thread{record.pid, kNoText};
    forks.erase(record.pid);
    replace_version(record.pid);
    processes.erase(record.pid);
  }

  void apply(const format::KsymbolRecord& record, std::uint16_t /*misc*/) {
    const std::uint64_t end = format::end_of_range(record.address, record.length);
    if ((record.flags & kUnregister) != 0) {
      const Mapping* const old = kernel.find_mapping(record.address);
      if (old && old->module->kind == ModuleKind::Bpf) {
        erase(kernel, old->start, old->end);
        replace_version(kNoProcess);
      }
      return;
    }
    insert(kernel, Mapping{.module = module(ModuleKind::Bpf, record.name, record.name, {}),
                           .start = record.address,
                           .end = end,
                           .protection = kProtExec,
                           .pid = kNoProcess,
                           .is_identity = true});
  }

  void apply(const format::BuildIdRecord& record, std::uint16_t /*misc*/) {
    add_build_id(record.filename, record.build_id);
  }

  void apply_kernel_mmap(const format::MmapRecord& record) {
    Mapping mapping{.start = record.start,
                    .end = format::end_of_range(record.start, record.length),
                    .page_offset = record.page_offset,
                    .protection = kProtExec,
                    .pid = kNoProcess,
                    .is_identity = true};
    if (!record.filename.starts_with(kKernelPrefix)) {
      const bool is_named = record.filename.starts_with('/') || record.filename.starts_with('[');
      if (!is_named) return;
      const std::string name = kernel_module_name(record.filename);
      // As in perf: a kernel module has the path in the capture's table of build ids.
      const auto listed = kernel_module_paths.find(texts.find_text(name));
      Module* const loaded = module(
          ModuleKind::KernelModule, listed == kernel_module_paths.end() ? name : texts[listed->second],
          last_part(name), record.build_id.empty() ? build_id_of_path(record.filename) : record.build_id);
      if (record.filename.starts_with('/')) loaded->file = texts.keep(record.filename);
      mapping.module = loaded;
      return insert(kernel, mapping);
    }
    // Some recorders wrote size 0 for the kernel: then it extends to the end of kernel space.
    if (mapping.start == 0 && mapping.end == 0) mapping.end = std::numeric_limits<std::uint64_t>::max();
    const std::string_view path = kernel_path == kNoText ? kKernelName : texts[kernel_path];
    mapping.module = module(ModuleKind::Kernel, path, kernel_short_name(path), record.build_id);
    if (kernel_map && (kernel_map->start != mapping.start || kernel_map->end != mapping.end)) {
      for (const Mapping* const old : kernel.all()) {
        if (old->module == kernel_map->module) kernel.take_range(old->start, old->end);
      }
      replace_version(kNoProcess);
    }
    insert(kernel, mapping);
    kernel_map = kernel.find_mapping(mapping.start);
    kernel_text = KernelText{mapping.start, mapping.end, {}, 0};
    // Zero: the recorder had no right to see kernel addresses.
    if (record.page_offset != 0) {
      std::string_view symbol = record.filename.substr(kKernelPrefix.size());
      if (symbol.starts_with(']')) symbol.remove_prefix(1);
      kernel_text->reference_symbol = symbol;
      kernel_text->reference_address = record.page_offset;
    }
  }

  void apply_user_mmap(const format::MmapRecord& record) {
    if (!identifies(record.pid)) return;
    // An MMAP record has no protection: it is of code, unless it is marked as data.
    const std::uint32_t protection = record.is_mmap2 ? record.protection : record.is_data ? 0 : kProtExec;
    Mapping mapping{.start = record.start,
                    .end = format::end_of_range(record.start, record.length),
                    .page_offset = record.page_offset,
                    .protection = protection,
                    .pid = record.pid};
    if (is_vdso(record.filename)) {
      mapping.page_offset = 0;
      mapping.module = module(ModuleKind::Vdso, record.filename, record.filename, {});
    } else if (is_anonymous(record) || (!keeps_memory_files && is_generated_code(record))) {
      mapping.is_identity = true;
      mapping.module = (protection & kProtExec) != 0
                           ? generated_code(record.pid)
                           : module(ModuleKind::Anonymous, record.filename, last_part(record.filename), {});
      if ((protection & kProtExec) == 0 && !keeps_memory_files)
        mapping.beyond_file = mapping_beyond_file(mapping);
    } else {
      mapping.module = module_of_file(record);
    }
    insert(processes[record.pid], mapping);
  }

  // See Mapping::beyond_file.
  const Mapping* mapping_beyond_file(const Mapping& mapping) {
    const Mapping* before = processes[mapping.pid].find_mapping(mapping.start - 1);
    if (before != nullptr && before->beyond_file != nullptr) before = before->beyond_file;
    if (before == nullptr || before->module->kind != ModuleKind::User ||
        (before->protection & kProtExec) != 0)
      return nullptr;
    Mapping beyond = *before;
    beyond.page_offset += mapping.start - before->start;
    beyond.start = mapping.start;
    beyond.end = mapping.end;
    return &mappings.emplace_back(beyond);
  }

  // All generated code of a process is one module.
  Module* generated_code(std::uint32_t process) {
    const auto pid = static_cast<std::int32_t>(process);
    const std::string path = fmt::format("/tmp/perf-{}.map", pid);
    const bool is_new =
        modules_by_identity.find(Identity{path, build_id_of_path(path)}) == modules_by_identity.end();
    Module* const made = module(ModuleKind::Anonymous, path, fmt::format("[JIT] tid {}", pid), {});
    const auto fork = forks.find(process);
    if (is_new && fork != forks.end()) made->fork_time = fork->second;
    return made;
  }

  // As in perf, a thread is identified by its tid only.
  Thread& thread(std::uint32_t pid, std::uint32_t tid) {
    Thread& found = threads[tid];
    if (found.pid == kNoProcess) found.pid = pid;
    return found;
  }

  void add_build_id(std::string_view path, const format::BuildId& id) {
    if (id.empty()) return;
    build_ids.try_emplace(texts.add_text(path), id);
    // A pipe has the ids at its end, after the mappings.
    const auto known = modules_by_identity.find(Identity{path, {}});
    if (known == modules_by_identity.end()) return;
    KnownModule* const module = *known;
    modules_by_identity.erase(known);
    module->build_id = id;
    modules_by_identity.insert(module);
  }

  format::BuildId build_id_of_path(std::string_view path) const {
    const auto known = build_ids.find(texts.find_text(path));
    return known == build_ids.end() ? format::BuildId{} : known->second;
  }
};

AddressSpaces::AddressSpaces() : state_(std::make_unique<State>()) {
  name_tid_zero("swapper");  // the idle task, which no record names
}
AddressSpaces::AddressSpaces(AddressSpaces&&) noexcept = default;
AddressSpaces& AddressSpaces::operator=(AddressSpaces&&) noexcept = default;
AddressSpaces::~AddressSpaces() = default;

void AddressSpaces::keep_memory_files() { state_->keeps_memory_files = true; }
void AddressSpaces::keep_pid_zero() { state_->keeps_pid_zero = true; }
void AddressSpaces::name_tid_zero(std::string_view name) {
  state_->threads[0] = Thread{0, state_->texts.add_text(name)};
}

void AddressSpaces::apply(const format::Record& record, std::uint16_t misc) {
  std::visit(
      [&](const auto& one) {
        if constexpr (requires { state_->apply(one, misc); }) state_->apply(one, misc);
      },
      record);
}

void AddressSpaces::add_build_id(const format::BuildIdEntry& entry) {
  const bool is_of_kernel = (entry.misc & abi::kCpumodeMask) == abi::kCpumodeKernel;
  if (is_of_kernel && entry.filename.find(".ko") != std::string::npos)
    state_->kernel_module_paths.try_emplace(state_->texts.add_text(kernel_module_name(entry.filename)),
                                            state_->texts.add_text(entry.filename));
  // The table lists the kernel once, by the path of a vmlinux or as [kernel.kallsyms].
  else if (is_of_kernel && entry.filename.starts_with('/') && state_->kernel_path == kNoText)
    state_->kernel_path = state_->texts.add_text(entry.filename);
  state_->add_build_id(entry.filename, entry.build_id);
}

AddressRange SpaceVersion::range_at(format::RuntimeAddress ip, std::uint8_t cpumode) const {
  return range_in(&user_, *kernel_, ip.value, cpumode);
}

AddressRange AddressSpaces::range_at(std::uint32_t pid, format::RuntimeAddress ip,
                                     std::uint8_t cpumode) const {
  const auto process = state_->processes.find(pid);
  return range_in(process == state_->processes.end() ? nullptr : &process->second, state_->kernel, ip.value,
                  cpumode);
}

const SpaceVersion& AddressSpaces::version(std::uint32_t pid) {
  const auto process = state_->processes.find(pid);
  const bool is_mapped = process != state_->processes.end();
  auto& version = is_mapped ? state_->versions[pid] : state_->unmapped;
  if (version == nullptr)
    version =
        std::make_unique<const SpaceVersion>(state_->next_version++, state_->kernel_number,
                                             is_mapped ? process->second : MappingList(), state_->kernel);
  return *version;
}

AddressSpaces::Versions AddressSpaces::take_replaced() { return std::exchange(state_->replaced, {}); }

std::string_view AddressSpaces::comm(std::uint32_t /*pid*/, std::uint32_t tid) const {
  const auto known = state_->threads.find(tid);
  if (known != state_->threads.end() && known->second.comm != kNoText)
    return state_->texts[known->second.comm];
  std::array<char, 16> name{};
  const auto end = fmt::format_to(name.data(), ":{}", static_cast<std::int32_t>(tid));
  return state_->texts.keep({name.data(), static_cast<std::size_t>(end - name.data())});
}

void AddressSpaces::end_replay() {
  ByNumber<MappingList>().swap(state_->processes);
  decltype(state_->versions)().swap(state_->versions);
  state_->unmapped.reset();
  Versions().swap(state_->replaced);
  ByNumber<Thread>().swap(state_->threads);
  ByNumber<std::uint64_t>().swap(state_->forks);
  ByNumber<format::BuildId>().swap(state_->build_ids);
  decltype(state_->modules_by_identity)().swap(state_->modules_by_identity);
  state_->texts.end_lookups();
}

const std::optional<AddressSpaces::KernelText>& AddressSpaces::kernel_text() const {
  return state_->kernel_text;
}

const Mapping* KernelSpace::find_mapping(format::RuntimeAddress ip) const {
  return spaces_->find_mapping(kNoProcess, ip, abi::kCpumodeKernel);
}

}  // namespace tacho::symbolize
