// Joins user stacks to their samples. The kernel writes a sample with the kernel part of the call chain; the
// user part is in a record that tacho's BPF program wrote just before (bpf/programs/stack_walk.bpf.c). Both
// become one sample with a complete call chain.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "bpf/programs/stack_maps.h"
#include "format/base/cursor.h"
#include "format/records/event_attr.h"

namespace tacho::record {

struct StackCounts {
  std::array<std::uint64_t, TACHO_END_COUNT>
      ends{};                  // walks by the reason of their end (enum tacho_stack_end)
  std::uint64_t frames = 0;    // user frames of all walks
  std::uint64_t without = 0;   // samples in user code without a walk
  std::uint64_t unused = 0;    // walks whose sample was not written
  std::uint64_t finished = 0;  // complete walks that the recorder finished
};

class CallchainMerger {
 public:
  // Samples with this id get the user part.
  void add_event(std::uint64_t id, const format::EventAttr& attr);
  // Samples with this id are walks. Losses that the kernel reports before a walk are reported for `sample_id`
  // instead, because readers do not know the event of walks.
  void add_walks(std::uint64_t id, const format::EventAttr& attr, std::uint64_t sample_id);

  // A user stack that the BPF program walked.
  struct Walk {
    std::uint32_t tid = 0;
    std::uint16_t end = 0;
    std::vector<std::uint64_t> frames;
    std::uint64_t copy = 0;  // number of the copy of a stack that can be finished (struct tacho_stack_copy)
  };
  // A sample whose stack can be finished: the record as the kernel wrote it.
  struct Deferred {
    std::vector<std::byte> record;
    Walk walk;
    std::uint32_t process = 0;
    std::uint64_t time = 0;  // 0: the event has no time
  };
  // The walks of one ring whose samples have not come yet.
  using Waiting = std::vector<Walk>;

  // Rewrites `records` from `begin` on: samples get their stacks, and walks are removed. False, without a
  // change: these are not whole records. `lost_walks`: walks among the records counted by LOST records, up to
  // this maximum. `deferred` gets the samples whose stacks are to be finished; null: they are written as they
  // are.
  bool merge(std::vector<std::byte>& records, std::size_t begin, Waiting& waiting,
             const std::function<std::uint64_t(std::uint64_t)>& lost_walks,
             std::vector<Deferred>* deferred = nullptr);
  // Appends the sample with its walk's stack.
  void write_finished(const Deferred& sample, std::vector<std::byte>& records);

  // Only removes walks; allocates nothing.
  void drop_walks(std::vector<std::byte>& records, std::size_t begin) const;

  const StackCounts& counts() const { return counts_; }

 private:
  struct Event {
    format::EventAttr attr;
    bool is_walk = false;
    std::uint64_t sample_id = 0;  // for walks
  };
  void take_walk(format::Bytes body, const Event& event, Waiting& waiting);
  void put_sample(format::Bytes record, const Event& event, Waiting& waiting);
  void put_with_stack(format::Bytes record, std::size_t chain_offset, Walk& walk);
  void put_lost(format::Bytes record, const std::function<std::uint64_t(std::uint64_t)>& lost_walks);
  void put_bytes(format::Bytes bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void put_word(std::uint64_t word);

  std::unordered_map<std::uint64_t, Event> events_;
  StackCounts counts_;
  std::vector<Deferred>* deferred_ = nullptr;  // of the current call
  std::vector<std::byte> out_;                 // kept, so that steady merging allocates nothing
};

// The offset of the call chain in the body of a sample; nullopt: the body is too short.
std::optional<std::size_t> callchain_offset(format::Bytes body, const format::EventAttr& attr);

}  // namespace tacho::record
