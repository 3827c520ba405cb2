#include "record/stacks/deferred_samples.h"

#include <new>
#include <utility>

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;
// The longest time that a slow file delays the end of a round.
constexpr std::chrono::milliseconds kPatience{1000};

}  // namespace

Result<> DeferredSamples::start() {
  if (auto done = unwinder_->start(); !done) return done;
  source_.begin();
  return Done{};
}

void DeferredSamples::take_copies() {
  source_.take([this](format::Bytes written) {
    auto copy = stack_copy_of(written);
    if (!copy || bytes_ + copy->bytes.size() > kMostBytes) return;  // its sample is written unfinished
    const std::uint64_t number = copy->number;
    const std::size_t size = copy->bytes.size();
    if (copy->part != 0) {
      const auto first = copies_.find(number);
      if (first != copies_.end() && add_part(first->second.stack, *copy)) bytes_ += size;
      return;
    }
    if (copies_.try_emplace(number, Copy{std::move(*copy), pass_}).second) bytes_ += size;
  });
}

// The sideband up to these samples has been read.
void DeferredSamples::give_ripe(const CodeMaps& maps) {
  DeferredUnwinder::Stacks stacks(ripe_.size());  // all memory at once: no sample is lost between two lists
  auto next = stacks.begin();
  for (CallchainMerger::Deferred& sample : ripe_) {
    DeferredUnwinder::Stack& stack = *next++;
    const auto copy = copies_.find(sample.walk.copy);
    if (copy != copies_.end()) {
      stack.copy = std::move(copy->second.stack);
      copies_.erase(copy);
    }
    stack.copied_bytes = stack.copy.bytes.size();
    stack.maps = maps.ranges_at(sample.process, sample.time);
    stack.pass = pass_ - 1;
    stack.sample = std::move(sample);
  }
  ripe_.clear();
  unwinder_->give_stacks(std::move(stacks));
  if (const auto held = held_.find(pass_ - 1); held != held_.end() && !held->second.given)
    held->second.given = Clock::now();
  // Copies of samples that were lost or filtered out.
  std::erase_if(copies_, [this](const auto& each) {
    if (each.second.pass + 1 >= pass_) return false;
    bytes_ -= each.second.stack.bytes.size();
    return true;
  });
}

void DeferredSamples::put_done(CallchainMerger& merger, std::vector<std::byte>& records) {
  done_.splice(done_.end(), unwinder_->take_finished());
  while (!done_.empty()) {
    const DeferredUnwinder::Stack& stack = done_.front();
    merger.write_finished(stack.sample, records);
    bytes_ -= stack.copied_bytes;
    const auto held = held_.find(stack.pass);
    if (held != held_.end() && --held->second.samples == 0) held_.erase(held);
    done_.pop_front();
  }
}

bool DeferredSamples::waits_too_long() const {
  if (held_.empty()) return false;
  const auto& given = held_.begin()->second.given;
  return given && Clock::now() - *given > kPatience;
}

void DeferredSamples::end_pass(const CodeMaps& maps, CallchainMerger& merger,
                               std::vector<std::byte>& records) {
  try {
    take_copies();
    give_ripe(maps);
    if (!fresh_.empty()) held_[pass_].samples = fresh_.size();
    ripe_ = std::exchange(fresh_, {});
    ++pass_;
    put_done(merger, records);
    if (waits_too_long()) {
      give_up_stacks();
      put_done(merger, records);
    }
  } catch (const std::bad_alloc&) {
    // The others wait for the next pass.
  }
}

bool DeferredSamples::try_end_round() {
  constexpr std::uint64_t kPasses = 2;
  if (round_end_ && !held_.empty() && held_.begin()->first < *round_end_ + kPasses) return false;
  round_end_ = pass_ - 1;
  return true;
}

}  // namespace tacho::record
