#include "format/container/time_order.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tacho::format {
namespace {

constexpr std::size_t kPrefetched = 24;  // records
// Waiting records may take `floor_` bytes and so many times the bytes of the capture that they came from.
// Uncompressed records of 28 bytes and more never reach that.
constexpr std::size_t kMostTimes = 3;
// Bytes that a record takes besides its own: an Entry, another one while it is sorted, and the arrays' spare
// capacity.
constexpr std::size_t kRecordCost = 56;
// If blocks are inflated again more often than this, on average, their records are too far apart to be
// sorted. A block with the records of one CPU is inflated again once.
constexpr std::uint64_t kMostReopened = 4;
constexpr std::size_t kCopies = std::size_t{256} << 10, kAligned = 8;  // bytes; a record has less than 64 KiB

}  // namespace

void TimeOrder::push(const RecordView& record, std::uint64_t time, const BlockRef& block,
                     std::uint32_t event) {
  const auto place = static_cast<std::size_t>(record.bytes.data() - block->bytes.data());
  Held& from = block_of(record, place, block);
  ++from.waiting;
  if (from.is_plain) {
    from.source += record.bytes.size();
    source_ += record.bytes.size();
    cost_ += record.bytes.size();
  }
  cost_ += kRecordCost;
  waiting_.push_back({.time = time,
                      .at = static_cast<std::uint32_t>(place),
                      .block = static_cast<std::uint32_t>(first_block_ + blocks_.size() - 1),
                      .event = event,
                      .size = static_cast<std::uint16_t>(record.bytes.size()),
                      .is_big_endian = record.order == std::endian::big});
  if (time < latest_popped_) ++out_of_order_;
  highest_ = std::max(highest_, time);
  if (cost_ > memory_limit()) reduce_memory();
}

// The block of the record, split where its offsets would exceed 32 bits: an AUX trace between records can
// make a block longer than 4 GiB.
TimeOrder::Held& TimeOrder::block_of(const RecordView& record, std::size_t place, const BlockRef& block) {
  const std::uint32_t low = static_cast<std::uint32_t>(place);
  const std::uint64_t offset = block->packed == 0 ? record.offset - low : record.offset;
  if (!blocks_.empty()) {
    Held& last = blocks_.back();
    if (last.block == block && last.base == place - low && last.offset == offset) return last;
  }
  return begin_block(block, place - low, offset);
}

TimeOrder::Held& TimeOrder::begin_block(const BlockRef& block, std::size_t base, std::uint64_t offset) {
  const bool is_another = blocks_.empty() || blocks_.back().block != block;
  if (!blocks_.empty() && blocks_.back().waiting == 0) release(blocks_.back());
  Held& held = blocks_.emplace_back();
  held.block = block;
  held.base = base;
  held.begin = block->bytes.data() + base;
  held.offset = offset;
  held.is_plain = block->packed == 0;
  if (!held.is_plain && is_another) {
    held.source = block->packed;
    held.bytes = block->bytes.size();
    source_ += held.source;
    cost_ += held.bytes;
  }
  cost_ += sizeof held;
  return held;
}

std::size_t TimeOrder::memory_limit() const { return floor_ + kMostTimes * source_; }

// Parks blocks, the oldest first and more than is needed now; if that is not enough, emits records early.
void TimeOrder::reduce_memory() {
  const std::uint64_t newest = first_block_ + blocks_.size() - 1;  // more records of it may be pushed
  for (next_to_park_ = std::max(next_to_park_, first_block_);
       next_to_park_ < newest && cost_ > memory_limit() / 4 * 3; ++next_to_park_)
    park(blocks_[next_to_park_ - first_block_]);
  while (cost_ > memory_limit() && close_oldest()) {
  }
  if (cost_ > memory_limit()) emit_early();
}

void TimeOrder::park(Held& from) {
  if (!from.block || from.bytes == 0) return;
  // Another owner still reads records of it: parking would free nothing now.
  if (from.block.use_count() > 1) return;
  from.parked = parking_.pack(from.block->bytes);
  if (!from.parked) return;
  parked_bytes_ += from.bytes;
  cost_ += from.parked->packed.size();
  cost_ -= from.bytes;
  from.block.reset();
}

void TimeOrder::close_parked(Held& from) {
  if (from.opened.empty()) return;
  opened_bytes_ -= from.bytes;
  cost_ -= from.bytes;
  parking_.give_back(std::exchange(from.opened, {}));
}

// Drops the inflated bytes of the parked block that was reopened first. False: none is open.
bool TimeOrder::close_oldest() {
  while (!opened_.empty()) {
    const std::uint32_t place = index_of(opened_.front());
    opened_.pop_front();
    if (place >= blocks_.size() || blocks_[place].opened.empty()) continue;
    close_parked(blocks_[place]);
    return true;
  }
  return false;
}

void TimeOrder::open_parked(Held& from, std::uint32_t number) {
  while (opened_bytes_ + from.bytes > floor_ / 2 + memory_limit() / 4 && close_oldest()) {
  }
  from.opened = parking_.unpack(*from.parked);
  reopened_bytes_ += from.bytes;
  cost_ += from.bytes;
  opened_bytes_ += from.bytes;
  opened_.push_back(number);
}

// A copy of the record of a parked block, so that the caller keeps no whole block in memory.
Bytes TimeOrder::copied(const Entry& entry) {
  Held& from = held(entry.block);
  if (from.opened.empty()) open_parked(from, entry.block);
  if (!copies_ || copies_left_ < entry.size) {
    const auto copies = std::make_shared<Block>();
    copies->bytes.resize(kCopies);
    next_copy_ = copies->bytes.data();
    copies_ = copies;
    copies_left_ = kCopies;
  }
  std::byte* const copy = next_copy_;
  std::memcpy(copy, from.opened.data() + from.base + entry.at, entry.size);
  const std::size_t taken =
      std::min<std::size_t>((entry.size + kAligned - 1) / kAligned * kAligned, copies_left_);
  next_copy_ += taken;
  copies_left_ -= taken;
  return {copy, entry.size};
}

// Frees a block that has no waiting records.
void TimeOrder::release(Held& from) {
  if (from.parked) {
    close_parked(from);
    cost_ -= from.parked->packed.size();
    from.parked.reset();
  } else if (from.block) {
    cost_ -= from.bytes;
    from.block.reset();
  }
  from.bytes = 0;
}

// Emits the older half of the waiting records before all older ones may have come.
void TimeOrder::emit_early() {
  if (waiting_.empty()) return;  // all is in ready_ already
  went_out_early_ = true;
  times_.clear();
  for (const Entry& entry : waiting_) times_.push_back(entry.time);
  const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
  std::ranges::nth_element(times_, middle);
  const std::uint64_t until = *middle;
  decltype(times_)().swap(times_);
  emit_until(until);
}

// Emits ready_ in file order: by time, its records would alternate between blocks that had to be inflated
// again and again.
void TimeOrder::emit_in_file_order() {
  went_out_early_ = in_file_order_ = true;
  const auto place = [this](const Entry& entry) { return std::pair(index_of(entry.block), entry.at); };
  std::sort(ready_.begin() + static_cast<std::ptrdiff_t>(next_ready_), ready_.end(),
            [&](const Entry& a, const Entry& b) { return place(a) < place(b); });
}

void TimeOrder::finished_round() {
  emit_until(limit_);
  limit_ = highest_;
}

// Also frees the buffer that only further rounds would need.
void TimeOrder::flush() {
  emit_until(~std::uint64_t{0});
  std::vector<Entry>().swap(waiting_);
}

void TimeOrder::emit_until(std::uint64_t time) {
  // The rest of ready_ is emitted first: it is older than all waiting records.
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(next_ready_));
  next_ready_ = ready_.size();
  in_file_order_ = false;
  if (ready_.empty() && time >= highest_) {
    ready_.swap(waiting_);
  } else {
    const auto later = std::stable_partition(waiting_.begin(), waiting_.end(),
                                             [&](const Entry& entry) { return entry.time <= time; });
    ready_.insert(ready_.end(), waiting_.begin(), later);
    waiting_.erase(waiting_.begin(), later);
  }
  sort_ready();
  next_ready_ = 0;
  for (std::size_t i = 0; i <= kPrefetched; ++i) prefetch_record(i);
}

// Sorts ready_ from next_ready_ on; records of equal time keep the file's order. A merge sort of runs: each
// CPU's records are in order already.
void TimeOrder::sort_ready() {
  runs_.clear();
  for (std::size_t i = next_ready_; i < ready_.size(); ++i) {
    if (i == next_ready_ || ready_[i].time < ready_[i - 1].time) runs_.push_back(i);
  }
  const auto at = [](std::vector<Entry>& entries, std::size_t index) {
    return entries.begin() + static_cast<std::ptrdiff_t>(index);
  };
  const auto earlier = [](const Entry& a, const Entry& b) { return a.time < b.time; };
  std::vector<Entry> merged;  // not kept: between rounds it would be idle memory
  while (runs_.size() > 1) {
    merged.resize(ready_.size());
    std::copy(ready_.begin(), at(ready_, next_ready_), merged.begin());
    std::size_t kept = 0;
    for (std::size_t run = 0; run < runs_.size(); run += 2) {
      const std::size_t start = runs_[run];
      const std::size_t middle = run + 1 < runs_.size() ? runs_[run + 1] : ready_.size();
      const std::size_t end = run + 2 < runs_.size() ? runs_[run + 2] : ready_.size();
      std::merge(at(ready_, start), at(ready_, middle), at(ready_, middle), at(ready_, end),
                 at(merged, start), earlier);
      runs_[kept++] = start;
    }
    runs_.resize(kept);
    ready_.swap(merged);
  }
}

// Waiting records exceed the L1 cache: without prefetch each would be a cache miss when it is popped.
void TimeOrder::prefetch_record(std::size_t ready) {
  constexpr std::size_t kLine = 64;  // bytes
  if (ready >= ready_.size()) return;
  const Entry& entry = ready_[ready];
  const std::byte* const begin = held(entry.block).begin;
  if (begin == nullptr) return;  // parked
  const std::byte* const bytes = begin + entry.at;
  __builtin_prefetch(bytes);
  __builtin_prefetch(bytes + kLine);
}

std::optional<TimeOrder::Item> TimeOrder::pop() {
  finish_last();
  if (next_ready_ == ready_.size()) {
    parking_.free_spare();
    return std::nullopt;
  }
  // Decided for each round anew: rounds after an unsorted one can be sorted, perhaps without parked blocks.
  if (!in_file_order_ && reopened_bytes_ > kMostReopened * parked_bytes_ && is_closed(ready_[next_ready_]))
    emit_in_file_order();
  const Entry entry = ready_[next_ready_++];
  prefetch_record(next_ready_ + kPrefetched);
  if (in_file_order_ && entry.time < latest_popped_) ++out_of_order_;
  latest_popped_ = std::max(latest_popped_, entry.time);
  last_popped_ = {entry.block, entry.size, true};
  Held& from = held(entry.block);
  const bool is_copied = from.parked.has_value();
  const Bytes bytes = is_copied ? copied(entry) : Bytes(from.begin + entry.at, entry.size);
  Item item{whole_record(bytes, entry.order()), entry.time, entry.event, is_copied ? &copies_ : &from.block};
  item.record.offset = from.offset + (from.is_plain ? entry.at : 0);
  return item;
}

void TimeOrder::report(Diagnostics& diagnostics) const {
  if (out_of_order_ == 0) return;
  diagnostics.add_finding(went_out_early_ ? Damage::OrderGivenUp : Damage::OutOfOrder, Diagnostics::kNoOffset,
                          "", out_of_order_);
}

void TimeOrder::finish_last() {
  if (last_popped_.is_there) {
    Held& from = held(last_popped_.block);
    cost_ -= kRecordCost + (from.is_plain ? last_popped_.size : 0);
    // The newest block is kept: more of its records may be pushed.
    if (--from.waiting == 0 && &from != &blocks_.back()) release(from);
    drop_popped();
  }
  last_popped_.is_there = false;
  while (blocks_.size() > 1 && blocks_.front().waiting == 0) {
    source_ -= blocks_.front().source;
    cost_ -= sizeof(Held);
    if (last_held_ == &blocks_.front()) last_held_ = nullptr;
    blocks_.pop_front();
    ++first_block_;
  }
}

// Frees the entries of popped records: a capture without rounds is in ready_ as a whole.
void TimeOrder::drop_popped() {
  constexpr std::size_t kMany = std::size_t{1} << 17;
  if (next_ready_ < kMany || next_ready_ < ready_.size() - next_ready_) return;
  std::vector<Entry>(ready_.begin() + static_cast<std::ptrdiff_t>(next_ready_), ready_.end()).swap(ready_);
  next_ready_ = 0;
}

}  // namespace tacho::format
