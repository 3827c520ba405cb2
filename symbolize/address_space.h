// The address spaces of processes over time: which file was mapped at an address when a sample was taken. One
// idea: the mappings of a space, its versions, and the table of all spaces, of which KernelSpace is a part.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/environment.h"
#include "format/records/address.h"
#include "format/records/record.h"
#include "symbolize/frame.h"

namespace tacho::symbolize {

// A mapping: a range of a process's or the kernel's addresses. Lives as long as its AddressSpaces, also after
// it was unmapped, so the pointer is its identity: results can be cached by (mapping, ip).
struct Mapping {
  const Module* module = nullptr;
  std::uint64_t start = 0, end = 0;  // runtime addresses, end is past the last
  std::uint64_t page_offset = 0;     // bytes into the file
  std::uint32_t protection = 0;      // PROT_*
  std::uint32_t pid = 0;             // of the process, for its perf map; -1: the kernel
  bool is_identity = false;          // kernel, BPF: shown addresses are runtime addresses
  // Of anonymous memory directly behind a mapping of a file's data, where variables of that file may be
  // (.bss): the file's mapping as if it went on here. Null: it is not behind such a mapping.
  const Mapping* beyond_file = nullptr;

  // perf's map-relative address: an offset in the file.
  std::uint64_t shown_address(format::RuntimeAddress ip) const {
    return is_identity ? ip.value : ip.value - start + page_offset;
  }
  // The address that a report shows for code without a name: in a kernel module, relative to its load
  // address.
  std::uint64_t nameless_address(format::RuntimeAddress ip) const {
    const bool is_module = module->kind == ModuleKind::KernelModule;
    return is_module ? ip.value - start + page_offset : shown_address(ip);
  }
};

// Addresses [first, last] of a process, inside one mapping or between two.
struct AddressRange {
  std::uint64_t first = 0, last = ~std::uint64_t{0};
  const Mapping* mapping = nullptr;
};

// Whether a pid or tid identifies one task. A capture made in a pid namespace has pid and tid 0 for all tasks
// outside of it, and the idle tasks have 0 as well; tasks that have released their pid have -1.
constexpr bool identifies_task(std::uint32_t pid) { return pid != 0 && pid != ~std::uint32_t{0}; }

// The mappings of one address space by address, without overlaps. A persistent search tree: copies share
// nodes, and a write copies only the path to the changed node. So a fork is free, and a change in the child
// takes a few hundred bytes.
class MappingList {
 public:
  // The mapping that covers `address`; null: none.
  const Mapping* find_mapping(std::uint64_t address) const { return range_at(address).mapping; }
  // The same, and the range of addresses for which the result is valid.
  AddressRange range_at(std::uint64_t address) const;
  // Removes the mappings that overlap [start, end) and returns them in ascending order.
  std::vector<const Mapping*> take_range(std::uint64_t start, std::uint64_t end);
  // Adds a mapping that overlaps no other. `priority`: a hash of mapping->start that authors of captures
  // cannot predict, which keeps the tree balanced.
  void add_mapping(const Mapping* mapping, std::uint32_t priority);
  bool is_empty() const { return root_.get() == nullptr; }
  // All, in ascending order.
  std::vector<const Mapping*> all() const;

 private:
  struct Node;
  // Reference to a node, counted; not atomic, so all lists belong to one thread.
  class NodeRef {
   public:
    NodeRef() = default;
    explicit NodeRef(Node* fresh) : node_(fresh) {}
    NodeRef(const NodeRef& other);
    NodeRef(NodeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    NodeRef& operator=(NodeRef other) noexcept {
      std::swap(node_, other.node_);
      return *this;
    }
    ~NodeRef();
    explicit operator bool() const { return node_ != nullptr; }
    const Node* operator->() const { return node_; }
    const Node* get() const { return node_; }
    Node& own();  // for writing: copies the node if it is shared

   private:
    Node* node_ = nullptr;
  };
  static std::pair<NodeRef, NodeRef> split(NodeRef tree, std::uint64_t start);
  static NodeRef join(NodeRef low, NodeRef high);
  static void list(const Node* tree, std::vector<const Mapping*>& out);

  NodeRef root_;
};

// The address space of one process at one time, and that of the kernel now. The process's part never changes,
// so other threads may read it while further records are applied.
class SpaceVersion {
 public:
  // `kernel` must outlive it.
  SpaceVersion(std::uint32_t number, std::uint32_t kernel_number, MappingList user, const MappingList& kernel)
      : number_(number), kernel_number_(kernel_number), user_(std::move(user)), kernel_(&kernel) {}

  // Unique among the versions of one AddressSpaces.
  std::uint32_t number() const { return number_; }
  // Versions with equal numbers have the same kernel mappings.
  std::uint32_t kernel_number() const { return kernel_number_; }
  // As AddressSpaces::find_mapping() and range_at().
  const Mapping* find_mapping(format::RuntimeAddress ip, std::uint8_t cpumode) const {
    return range_at(ip, cpumode).mapping;
  }
  AddressRange range_at(format::RuntimeAddress ip, std::uint8_t cpumode) const;

 private:
  std::uint32_t number_, kernel_number_;
  MappingList user_;
  const MappingList* kernel_;
};

class AddressSpaces {
 public:
  AddressSpaces();
  AddressSpaces(AddressSpaces&&) noexcept;
  AddressSpaces& operator=(AddressSpaces&&) noexcept;
  ~AddressSpaces();

  // Call it before the first record: generated code in a memfd or an unlinked file belongs to that file, as
  // in perf, and has no names of perf maps.
  void keep_memory_files();
  // Call it before the first record: mappings and names of pid 0 are used as those of one process, as in
  // perf.
  void keep_pid_zero();
  // The name of tid 0; "swapper" if this was not called.
  void name_tid_zero(std::string_view name);

  // Applies COMM, MMAP, FORK, EXIT and KSYMBOL records, in the order of time; others are ignored.
  void apply(const format::Record& record, std::uint16_t misc);
  // A build id from the header's BUILD_ID section, for mappings whose records have none.
  void add_build_id(const format::BuildIdEntry& entry);

  // `cpumode`: of the record or of the call chain's context marker; if unknown, the address decides whether
  // it is the kernel's, as in perf. Null: nothing is mapped there.
  const Mapping* find_mapping(std::uint32_t pid, format::RuntimeAddress ip, std::uint8_t cpumode) const {
    return range_at(pid, ip, cpumode).mapping;
  }
  // The same, with the range of addresses that have this result until the next record.
  AddressRange range_at(std::uint32_t pid, format::RuntimeAddress ip, std::uint8_t cpumode) const;
  // The current version of a process. Each change of its mappings or the kernel's makes a new version.
  // Processes without mappings share one.
  const SpaceVersion& version(std::uint32_t pid);
  // The versions that were replaced since the last call; they stay valid while the caller holds them. Destroy
  // them on the thread that applies records.
  using Versions = std::vector<std::unique_ptr<const SpaceVersion>>;
  Versions take_replaced();
  // The thread's current name: "dd"; ":1234" if no record named it; ":-1" without a tid. Its bytes live as
  // long as this; equal names share them.
  std::string_view comm(std::uint32_t pid, std::uint32_t tid) const;

  // Frees the data for further records and for look-ups in processes. Mappings, names and the kernel's
  // address space are kept.
  void end_replay();

  // The addresses of the recording kernel's text, and its reference symbol, from the MMAP record of
  // [kernel.kallsyms]: kallsyms of another boot is relocated by them.
  struct KernelText {
    std::uint64_t start = 0, end = 0;
    std::string reference_symbol;  // "_text" or "_stext"
    std::uint64_t reference_address = 0;
  };
  const std::optional<KernelText>& kernel_text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The kernel's address space, which naming of addresses needs. One thread may use it while another applies
// records that change single processes.
class KernelSpace {
 public:
  KernelSpace(const AddressSpaces& spaces) : spaces_(&spaces) {}  // `spaces` must outlive this

  const Mapping* find_mapping(format::RuntimeAddress ip) const;
  const std::optional<AddressSpaces::KernelText>& text() const { return spaces_->kernel_text(); }
  // The mapping of the kernel's text; null: no record has it.
  const Mapping* text_mapping() const { return text() ? find_mapping({text()->start}) : nullptr; }

 private:
  const AddressSpaces* spaces_;
};

}  // namespace tacho::symbolize
