// The mmap ring buffer of perf events, with what it keeps about its records: gaps, and ids of events that
// were opened again.
#pragma once

#include <linux/perf_event.h>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::record {

// Ids of events of a CPU that came back online: they are new, and their records get the ids that the
// capture's header has.
class RenamedIds {
 public:
  // Replaces `id` by `as` in records. The rule is kept after the event is closed, since its records may be in
  // the ring for long; the kernel never reuses an id.
  void add_rule(std::uint64_t id, std::uint64_t as) { as_[id] = as; }
  bool empty() const { return as_.empty(); }

  // Renames ids in `records` from `begin` on: whole records of events with abi::kSampleIdentifier and
  // abi::kSampleIdAll. Stops at damaged bytes.
  void apply(std::vector<std::byte>& records, std::size_t begin) const;

 private:
  void rename(std::byte* word) const;

  std::unordered_map<std::uint64_t, std::uint64_t> as_;
};

// Finds where samples are missing in the records of one ring. The kernel writes LOST only when the ring has
// room again, so a gap begins at the sample before it.
class RingGaps {
 public:
  // Takes the next bytes of the ring. A record may end in the bytes of the next call, but not its header.
  // Records are those of planned events: IDENTIFIER, IP, TID and TIME come first in a sample.
  void look(format::Bytes records);
  // The time of the last sample before the first gap since the last call; kNone: there was no gap.
  std::uint64_t take_begin() { return std::exchange(begin_, kNone); }

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

 private:
  std::uint64_t last_time_ = kNone, begin_ = kNone;
  std::size_t missing_ = 0;  // bytes of the last record, which come with the next call
};

// The behaviour of a full ring: drop new records, or overwrite the oldest (from the end of the ring to its
// start, so that the newest record is found first).
enum class RingKind : std::uint8_t { Forward, Backward };

// The mmap ring buffer of the events of one CPU. The kernel writes at data_head; the reader frees up to
// data_tail.
class PerfRing {
 public:
  // `pages`: a power of two. The error carries the errno (EPERM: more than this user may lock).
  static Result<PerfRing> map(const format::Fd& event, std::size_t pages, std::size_t page_size,
                              RingKind kind = RingKind::Forward);
  // For tests: memory laid out like the kernel's, control page first.
  explicit PerfRing(format::Mapping memory, RingKind kind = RingKind::Forward)
      : memory_(std::move(memory)), kind_(kind) {}

  RingKind kind() const { return kind_; }

  // Adds a RenamedIds rule for a reopened event that writes to this ring.
  void rename(std::uint64_t id, std::uint64_t as) {
    if (id != as) renamed_.add_rule(id, as);
  }
  const RenamedIds& renamed() const { return renamed_; }

  // The size in bytes of the sample_id trailer (abi::kSampleIdAll) of records other than samples.
  void set_trailer(std::size_t trailer) { trailer_ = trailer; }
  std::size_t trailer() const { return trailer_; }

  // Of the records that were drained; the caller of drain() passes them on.
  RingGaps& gaps() { return gaps_; }

  // For a paused backward ring: appends its whole records, oldest first. They stay in the ring.
  void copy_records(std::vector<std::byte>& out) const;

  // For a forward ring: passes each run of new bytes to `sink` (a run that wraps comes as two), then frees
  // the space. The kernel moves data_head by whole records, so the bytes of one call are whole records.
  // Returns the number of bytes.
  template <std::invocable<format::Bytes> Sink>
  std::uint64_t drain(Sink&& sink) {
    auto* page = reinterpret_cast<perf_event_mmap_page*>(memory_.bytes().data());
    const auto data = memory_.bytes().subspan(page->data_offset, page->data_size);
    // Acquire: the records that the kernel wrote before it moved head must be visible before they are read.
    const std::uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
    const std::uint64_t begin = page->data_tail;
    for (std::uint64_t tail = begin; tail != head;) {
      const std::uint64_t at = tail & (data.size() - 1);
      const std::uint64_t run = std::min<std::uint64_t>(head - tail, data.size() - at);
      sink(format::Bytes(data.subspan(at, run)));
      tail += run;
    }
    // Release: only after the sink has copied may the kernel write over these bytes.
    std::atomic_ref(page->data_tail).store(head, std::memory_order_release);
    return head - begin;
  }

 private:
  format::Mapping memory_;
  RingKind kind_;
  RenamedIds renamed_;
  std::size_t trailer_ = 0;
  RingGaps gaps_;
};

}  // namespace tacho::record
