#include "record/session/round.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tacho::record {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{1} << 20;
constexpr std::size_t kRoundBytes = std::size_t{256} << 10;  // contents of one zstd frame
// The longest time that a round stays open. With the loop's longest wait and the writing, a record is on disk
// within half a second.
constexpr std::chrono::milliseconds kLongestRound{200};

}  // namespace

void Round::open_round() {
  if (is_open_) return;
  is_open_ = true;
  began_ = Clock::now();
}

Round::Taken Round::take_ring(PerfRing& ring, RecordCounts& counts, Content content) {
  const std::size_t begin = buffer_.size();
  try {
    ring.drain([&](format::Bytes run) {
      if (content == Content::Samples) ring.gaps().look(run);
      buffer_.insert(buffer_.end(), run.begin(), run.end());
    });
    if (content == Content::Sideband) cut_behind_trailers(buffer_, begin, ring.trailer());
    ring.renamed().apply(buffer_, begin);
  } catch (const std::bad_alloc&) {
    buffer_.resize(begin);
    return Taken::NoMemory;
  }
  note_gap(ring.gaps().take_begin(), counts);
  if (stacks_ != nullptr) stacks_->take_records(ring, buffer_, begin);
  if (filter_ != nullptr) filter_->remove_unwanted(buffer_, begin);
  const std::uint64_t sideband = counts.sideband;
  const Taken taken = count_from(begin, counts);
  if (taken == Taken::Records && pinner_ != nullptr && counts.sideband != sideband)
    pinner_->pin_mapped(format::Bytes(buffer_).subspan(begin));
  return taken;
}

// Samples were lost from `begin` on.
void Round::note_gap(std::uint64_t begin, RecordCounts& counts) {
  counts.lost_first = std::min(counts.lost_first, begin);
  gap_begin_ = std::min(gap_begin_, begin);
}

// Counts the records from `begin` on, or removes them if they are damaged.
Round::Taken Round::count_from(std::size_t begin, RecordCounts& counts) {
  if (buffer_.size() == begin) return Taken::Nothing;
  open_round();
  RecordCounts sum = counts;
  if (!count_records(format::Bytes(buffer_).subspan(begin), sum)) {
    buffer_.resize(begin);
    return Taken::Damage;
  }
  counts = sum;
  return Taken::Records;
}

Round::Taken Round::end_pass(RecordCounts& counts) {
  if (stacks_ == nullptr) return Taken::Nothing;
  const std::size_t begin = buffer_.size();
  stacks_->end_pass(buffer_);
  if (filter_ != nullptr) filter_->remove_unwanted(buffer_, begin);
  return count_from(begin, counts);
}

Round::Taken Round::take_channel_rings(ChannelRings& rings, RecordCounts& counts) {
  const std::size_t begin = buffer_.size();
  const bool is_fine = rings.take_samples(buffer_);
  const Taken taken = count_from(begin, counts);
  return taken == Taken::Damage || is_fine ? taken : Taken::NoMemory;
}

Round::Taken Round::take_summaries(Summaries& summaries, RecordCounts& counts) {
  const std::size_t begin = buffer_.size();
  try {
    summaries.take_samples(buffer_, kBatchBytes);
  } catch (const std::bad_alloc&) {
    buffer_.resize(begin);
    return Taken::NoMemory;
  }
  return count_from(begin, counts);
}

Round::Taken Round::take_snapshot(std::span<const PerfRing> rings, RecordCounts& counts) {
  try {
    std::vector<std::byte> records;
    for (const PerfRing& ring : rings) {
      if (ring.kind() != RingKind::Backward) continue;
      const std::size_t begin = records.size();
      ring.copy_records(records);
      RingGaps gaps;  // the ring's start is another one each time
      gaps.look(format::Bytes(records).subspan(begin));
      note_gap(gaps.take_begin(), counts);
      ring.renamed().apply(records, begin);
      if (stacks_ != nullptr) stacks_->take_copied_records(records, begin);
    }
    if (filter_ != nullptr) filter_->remove_unwanted(records, 0);
    buffer_.insert(buffer_.end(), records.begin(), records.end());
    return count_from(buffer_.size() - records.size(), counts);
  } catch (const std::bad_alloc&) {
    return Taken::NoMemory;
  }
}

bool Round::is_large() const { return buffer_.size() >= kBatchBytes; }

bool Round::is_due() const {
  return is_open_ && (buffer_.size() >= kRoundBytes || Clock::now() - began_ >= kLongestRound);
}

Batch Round::hand_over(bool ends_round, const RecordCounts& counts, std::vector<std::byte> next) {
  if (ends_round) is_open_ = false;
  return Batch{.records = std::exchange(buffer_, std::move(next)),
               .ends_round = ends_round,
               .counts = counts,
               .gap_begin = std::exchange(gap_begin_, RingGaps::kNone)};
}

}  // namespace tacho::record
