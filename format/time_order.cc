#include "format/time_order.h"

#include <algorithm>

namespace tacho::format {

void TimeOrder::push(const RecordView& record, std::uint64_t time, const BlockRef& block,
                     std::uint32_t event) {
  if (blocks_.empty() || blocks_.back().block != block) blocks_.push_back({block, 0});
  ++blocks_.back().waiting;
  waiting_.push_back({time, first_block_ + blocks_.size() - 1, record, event});
  if (time < given_out_) ++out_of_order_;
  highest_ = std::max(highest_, time);
}

void TimeOrder::finished_round() {
  let_out_until(limit_);
  limit_ = highest_;
}

void TimeOrder::flush() { let_out_until(~std::uint64_t{0}); }

void TimeOrder::let_out_until(std::uint64_t time) {
  // What is left in ready_ goes out first; it is older than anything that waits.
  if (next_ready_ == ready_.size()) {
    ready_.clear();
    next_ready_ = 0;
  }
  const auto middle = static_cast<std::ptrdiff_t>(ready_.size());
  const auto later = std::stable_partition(waiting_.begin(), waiting_.end(),
                                           [&](const Entry& entry) { return entry.time <= time; });
  ready_.insert(ready_.end(), waiting_.begin(), later);
  waiting_.erase(waiting_.begin(), later);
  // Stable: records of equal time keep the order of the file.
  std::stable_sort(ready_.begin() + middle, ready_.end(),
                   [](const Entry& a, const Entry& b) { return a.time < b.time; });
}

std::optional<TimeOrder::Item> TimeOrder::pop() {
  drop_done_blocks();
  if (next_ready_ == ready_.size()) return std::nullopt;
  const Entry& entry = ready_[next_ready_++];
  given_out_ = std::max(given_out_, entry.time);
  last_block_of_pop_ = entry.block;
  const Held& held = blocks_[static_cast<std::size_t>(entry.block - first_block_)];
  return Item{entry.record, entry.time, entry.event, &held.block};
}

void TimeOrder::drop_done_blocks() {
  if (last_block_of_pop_) --blocks_[static_cast<std::size_t>(*last_block_of_pop_ - first_block_)].waiting;
  last_block_of_pop_.reset();
  // The newest block stays: more records of it may be pushed.
  while (blocks_.size() > 1 && blocks_.front().waiting == 0) {
    blocks_.pop_front();
    ++first_block_;
  }
}

}  // namespace tacho::format
