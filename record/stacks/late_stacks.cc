#include "record/stacks/late_stacks.h"

#include <new>
#include <utility>

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;
// Then a round ends in spite of a file that is slow, or was made to be.
constexpr std::chrono::milliseconds kPatience{1000};

}  // namespace

Result<> LateStacks::start() {
  if (auto done = finisher_->start(); !done) return done;
  source_.begin();
  return Done{};
}

void LateStacks::take_copies() {
  source_.take([this](format::Bytes written) {
    auto copy = stack_copy_of(written);
    if (!copy || bytes_ + copy->bytes.size() > kMostBytes) return;  // its sample is written as it is
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

// What was told of mappings before these samples has been read by now.
void LateStacks::give_ripe(const CodeMaps& maps) {
  StackFinisher::Stacks stacks(ripe_.size());  // all memory at once: no sample gets lost between two places
  auto next = stacks.begin();
  for (StackSplice::Unfinished& sample : ripe_) {
    StackFinisher::Stack& stack = *next++;
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
  finisher_->give(std::move(stacks));
  if (const auto held = held_.find(pass_ - 1); held != held_.end() && !held->second.given)
    held->second.given = Clock::now();
  // Of samples that were lost, or that somebody sorted out.
  std::erase_if(copies_, [this](const auto& each) {
    if (each.second.pass + 1 >= pass_) return false;
    bytes_ -= each.second.stack.bytes.size();
    return true;
  });
}

void LateStacks::put_done(StackSplice& splice, std::vector<std::byte>& records) {
  done_.splice(done_.end(), finisher_->take_done());
  while (!done_.empty()) {
    const StackFinisher::Stack& stack = done_.front();
    splice.put_finished(stack.sample, records);
    bytes_ -= stack.copied_bytes;
    const auto held = held_.find(stack.pass);
    if (held != held_.end() && --held->second.samples == 0) held_.erase(held);
    done_.pop_front();
  }
}

bool LateStacks::waits_too_long() const {
  if (held_.empty()) return false;
  const auto& given = held_.begin()->second.given;
  return given && Clock::now() - *given > kPatience;
}

void LateStacks::end_pass(const CodeMaps& maps, StackSplice& splice, std::vector<std::byte>& records) {
  try {
    take_copies();
    give_ripe(maps);
    if (!fresh_.empty()) held_[pass_].samples = fresh_.size();
    ripe_ = std::exchange(fresh_, {});
    ++pass_;
    put_done(splice, records);
    if (waits_too_long()) {
      give_up();
      put_done(splice, records);
    }
  } catch (const std::bad_alloc&) {
    // The rest waits for the next pass.
  }
}

bool LateStacks::end_round() {
  constexpr std::uint64_t kPasses = 2;
  if (round_end_ && !held_.empty() && held_.begin()->first < *round_end_ + kPasses) return false;
  round_end_ = pass_ - 1;
  return true;
}

}  // namespace tacho::record
