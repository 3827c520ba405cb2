// Each process over time: which file was mapped at an address when a sample was taken.
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

// Mapping, and MappingList: the mappings of one address space by address, without overlaps.
//
// A persistent search tree: copies share nodes, and a write copies the path to the changed node only. A fork
// costs nothing, a change in the child some hundred bytes.

// A mapping: a range of a process's or the kernel's addresses.

// Lives as long as the AddressSpaces it came from, also after it was unmapped, and its address (the pointer)
// is its identity: one lookup result can be kept per (mapping, ip).
struct Mapping {
  const Module* module = nullptr;
  std::uint64_t start = 0, end = 0;  // runtime addresses, end is past the last
  std::uint64_t page_offset = 0;     // bytes into the file
  std::uint32_t protection = 0;      // PROT_*
  std::uint32_t pid = 0;             // of the process (perf maps are named by it); -1: the kernel
  bool is_identity = false;          // kernel, BPF: shown addresses are runtime addresses

  // perf's "map-relative" address, which perf prints: an offset in the file.
  std::uint64_t shown_address(format::RuntimeAddress ip) const {
    return is_identity ? ip.value : ip.value - start + page_offset;
  }
  // What a report shows of an address without a name: code of a kernel module counts from where it was
  // loaded.
  std::uint64_t nameless_address(format::RuntimeAddress ip) const {
    const bool is_module = module->kind == ModuleKind::KernelModule;
    return is_module ? ip.value - start + page_offset : shown_address(ip);
  }
};

// A range of a process's addresses, first and last, inside one mapping or between two.
struct AddressRange {
  std::uint64_t first = 0, last = ~std::uint64_t{0};
  const Mapping* mapping = nullptr;
};

class MappingList {
 public:
  // The mapping that covers `address`; null when there is none.
  const Mapping* find(std::uint64_t address) const { return range_at(address).mapping; }
  // The same, and the range of addresses for which the result is valid.
  AddressRange range_at(std::uint64_t address) const;
  // Removes every mapping that overlaps [start, end), and returns them in ascending order.
  std::vector<const Mapping*> take(std::uint64_t start, std::uint64_t end);
  // Adds a mapping over none of the others. `priority` keeps the tree flat: any number that depends on
  // mapping->start alone, as long as makers of captures cannot foresee it.
  void add(const Mapping* mapping, std::uint32_t priority);
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
    Node& own();  // to be written: a copy of its own when others hold it too

   private:
    Node* node_ = nullptr;
  };
  static std::pair<NodeRef, NodeRef> split(NodeRef tree, std::uint64_t start);
  static NodeRef join(NodeRef low, NodeRef high);
  static void list(const Node* tree, std::vector<const Mapping*>& out);

  NodeRef root_;
};

// Each process over time: COMM, MMAP, FORK, EXIT, KSYMBOL records in, in time order; (pid, address) to
// mapping and (tid) to name out, as of the last record applied.

// What the addresses of one process stand for at one time, and those of the kernel now. The process's part
// never changes, so other threads may look into it while further records are applied.
class SpaceVersion {
 public:
  // `kernel` must outlive it.
  SpaceVersion(std::uint32_t number, std::uint32_t kernel_number, MappingList user, const MappingList& kernel)
      : number_(number), kernel_number_(kernel_number), user_(std::move(user)), kernel_(&kernel) {}

  // No two versions of one AddressSpaces have the same.
  std::uint32_t number() const { return number_; }
  // Versions with the same one have the same mappings of the kernel.
  std::uint32_t kernel_number() const { return kernel_number_; }
  // As AddressSpaces has them.
  const Mapping* find(format::RuntimeAddress ip, std::uint8_t cpumode) const {
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

  // Before the first record: code that a process made in a memfd or an unlinked file is that file's, as perf
  // has it, and not code made at run time, which a perf map names.
  void keep_memory_files();

  // Records that say nothing about processes or mappings are ignored.
  void apply(const format::Record& record, std::uint16_t misc);
  // A build id known from the header's BUILD_ID section, for mappings whose records carry none.
  void add_build_id(const format::BuildIdEntry& entry);

  // `cpumode` is the record's or the call chain mark's. Null when nothing is mapped there. When cpumode is
  // unknown, the address says whether it is the kernel's, as in perf.
  const Mapping* find(std::uint32_t pid, format::RuntimeAddress ip, std::uint8_t cpumode) const {
    return range_at(pid, ip, cpumode).mapping;
  }
  // The same, and for which other addresses of the process the answer holds as well, until a record changes
  // it.
  AddressRange range_at(std::uint32_t pid, format::RuntimeAddress ip, std::uint8_t cpumode) const;
  // The process as it is now. Every change of its mappings, or of the kernel's, makes another version.
  // Processes without mappings share one.
  const SpaceVersion& version(std::uint32_t pid);
  // The versions that others took the place of since the last call. As long as they are held they may be
  // looked into; they are given up where records are applied.
  using Versions = std::vector<std::unique_ptr<const SpaceVersion>>;
  Versions take_replaced();
  // The thread's name now: "dd"; ":1234" when no record named it; ":-1" without a tid. Its bytes live as long
  // as this, and equal names share them.
  std::string_view comm(std::uint32_t pid, std::uint32_t tid) const;

  // Gives back what only further records and look-ups of processes' addresses would need. Mappings, names and
  // what all processes share stay.
  void end_replay();

  // Where the recording kernel's text lay: start, end, and the reference symbol with its address, from the
  // MMAP record of [kernel.kallsyms]; kallsyms of another boot are moved by it.
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

// Of the address spaces, what all processes share: all that is asked when an address gets its names. One
// thread may have this while another applies records that change single processes.
class KernelSpace {
 public:
  KernelSpace(const AddressSpaces& spaces) : spaces_(&spaces) {}  // `spaces` must outlive this

  const Mapping* find(format::RuntimeAddress ip) const;
  const std::optional<AddressSpaces::KernelText>& text() const { return spaces_->kernel_text(); }
  // The mapping of the kernel's own text; null when no record has it.
  const Mapping* text_mapping() const { return text() ? find({text()->start}) : nullptr; }

 private:
  const AddressSpaces* spaces_;
};

}  // namespace tacho::symbolize
