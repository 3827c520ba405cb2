// A round, as in perf's PERF_RECORD_FINISHED_ROUND: the records of one pass over all rings, or of several
// passes with few records. It is written to the file completely or not at all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "record/kernel/perf_ring.h"
#include "record/objects/channel_rings.h"
#include "record/objects/channels.h"
#include "record/objects/summaries.h"
#include "record/output/record_counts.h"
#include "record/output/record_queue.h"
#include "record/session/pinned_files.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {

class Round {
 public:
  // `target_filter`: filters records; may be null. `stacks`: adds user stacks to samples; `pinner`: gets mmap
  // records. All must outlive this.
  explicit Round(TargetFilter* target_filter, StackUnwinding* stacks = nullptr, FilePinner* pinner = nullptr)
      : filter_(target_filter), stacks_(stacks), pinner_(pinner) {}

  enum class Taken : std::uint8_t { Nothing, Records, Damage, NoMemory };

  // The content of a ring.
  enum class Content : std::uint8_t { Samples, Sideband };
  // Drains a ring and adds its records to `counts`. A damaged ring is emptied. If an allocation fails, the
  // records stay in the ring.
  Taken take_ring(PerfRing& ring, RecordCounts& counts, Content content = Content::Samples);
  // Drains the ring buffers of BPF objects.
  Taken take_channel_rings(ChannelRings& rings, RecordCounts& counts);
  // Adds the records made from summary maps, piece by piece.
  Taken take_summaries(Summaries& summaries, RecordCounts& counts);
  // All rings were drained: adds records that earlier passes held back.
  Taken end_pass(RecordCounts& counts);
  // Copies the contents of overwritten rings, which keep them.
  Taken take_snapshot(std::span<const PerfRing> rings, RecordCounts& counts);

  bool is_open() const { return is_open_; }
  bool is_empty() const { return buffer_.empty(); }
  // Whether to hand over the bytes in the middle of a pass.
  bool is_large() const;
  // Whether the round is large or old enough to end.
  bool is_due() const;

  // Returns the bytes so far; the next ones go to `next`.
  Batch hand_over(bool ends_round, const RecordCounts& counts, std::vector<std::byte> next);
  // Frees an empty buffer, so that a larger one can be allocated.
  void free_room() { buffer_ = {}; }

 private:
  using Clock = std::chrono::steady_clock;
  void open_round();
  Taken count_from(std::size_t begin, RecordCounts& counts);
  void note_gap(std::uint64_t begin, RecordCounts& counts);

  TargetFilter* filter_;
  StackUnwinding* stacks_;
  FilePinner* pinner_;
  std::vector<std::byte> buffer_;
  std::uint64_t gap_begin_ = RingGaps::kNone;
  bool is_open_ = false;
  Clock::time_point began_;
};

}  // namespace tacho::record
