// A round, as in perf's PERF_RECORD_FINISHED_ROUND: records of one look at every ring, or a few when they
// held little. It is in the file as a whole or not at all.
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
#include "record/output/record_queue.h"
#include "record/session/pinned_files.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {

// A round is one look at every ring, or a few when they held little: it is in the file as a whole.
class Round {
 public:
  // `target_filter`: filters every piece, or null. With `stacks` samples get their stacks on the way, and
  // `pinner` gets the mappings. All must outlive this. `compressor`: where nothing changes samples, a
  // well-filled ring is compressed at once.
  explicit Round(TargetFilter* target_filter, StackUnwinding* stacks = nullptr, FilePinner* pinner = nullptr,
                 std::optional<RingCompressor> compressor = {})
      : filter_(target_filter), stacks_(stacks), pinner_(pinner) {
    if (target_filter == nullptr && stacks == nullptr) compressor_ = std::move(compressor);
  }

  enum class Taken : std::uint8_t { Nothing, Records, Damage, NoMemory };

  // The use of a ring. Sideband is not compressed in place, as it is read once more.
  enum class Content : std::uint8_t { Samples, Sideband };
  // Takes all records of a ring and adds them to `counts`. A ring with anything else than records is emptied;
  // when memory is refused, the records stay in the ring.
  Taken take(PerfRing& ring, RecordCounts& counts, Content content = Content::Samples);
  // The same of the ring buffers of BPF objects.
  Taken take(ChannelRings& rings, RecordCounts& counts);
  // The records made of their maps, piece by piece.
  Taken take(Summaries& summaries, RecordCounts& counts);
  // Every ring was read: takes records held back from earlier looks.
  Taken end_pass(RecordCounts& counts);
  // A copy of the contents of rings that are written over and over; they stay there, for the next one.
  Taken take_snapshot(std::span<const PerfRing> rings, RecordCounts& counts);

  bool is_open() const { return is_open_; }
  bool is_empty() const { return buffer_.empty(); }
  // Worth to be handed over in the middle of a look at the rings.
  bool is_large() const;
  // Large or old enough to end.
  bool is_due() const;

  // Returns the bytes so far; the next ones go to `next`.
  Batch hand_over(bool ends_round, const RecordCounts& counts, std::vector<std::byte> next);
  // Nothing is held, and what room there is may be too small, and in the way of a larger one.
  void free_room() { buffer_ = {}; }

 private:
  using Clock = std::chrono::steady_clock;
  void open();
  void drain(PerfRing& ring, Content content);
  bool count(std::size_t begin, std::size_t first_packed, RecordCounts& counts);

  TargetFilter* filter_;
  StackUnwinding* stacks_;
  FilePinner* pinner_;
  std::optional<RingCompressor> compressor_;
  std::vector<std::byte> buffer_;
  std::vector<CompressedRun> packed_;  // of buffer_
  std::size_t inflated_ = 0;           // bytes of the records in those
  bool is_open_ = false;
  Clock::time_point began_;
};

}  // namespace tacho::record
