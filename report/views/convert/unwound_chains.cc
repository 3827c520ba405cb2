#include "report/views/convert/unwound_chains.h"

#include <string_view>
#include <utility>

#include "format/base/file.h"

namespace tacho::report {
namespace {

constexpr std::size_t kDeepest = 1024;  // frames

// Which stack each sample has, by a key of its bytes.
class Gatherer : public Sink {
 public:
  Gatherer(const format::SeededTextHash& hash, ChainsBySample& by_sample)
      : hash_(hash), by_sample_(by_sample) {}

  Flow on_sample(const ResolvedSample& sample) override {
    if (sample.stack == nullptr || sample.raw->user_stack.empty()) return Flow::GoOn;
    by_sample_[hash_(format::as_text(sample.record->bytes))] = sample.stack->number;
    if (sample.stack->number >= stacks_.size()) stacks_.resize(sample.stack->number + 1);
    stacks_[sample.stack->number] = sample.stack;
    return Flow::GoOn;
  }

  // The part of each stack that was unwound, by its number.
  std::vector<std::vector<std::uint64_t>> chains(Resolver& resolver) const {
    std::vector<std::vector<std::uint64_t>> chains(stacks_.size());
    for (std::size_t number = 0; number < stacks_.size(); ++number) {
      if (stacks_[number] == nullptr) continue;
      for (const std::uint32_t frame : stacks_[number]->frames)
        if (const Location& place = resolver.location(frame); place.is_unwound)
          chains[number].push_back(place.ip.value);
    }
    return chains;
  }

 private:
  const format::SeededTextHash& hash_;
  ChainsBySample& by_sample_;
  std::vector<const Stack*> stacks_;  // by number; as long as the session
};

}  // namespace

Result<UnwoundChains> UnwoundChains::read(SessionOptions reading) {
  reading.max_stack = kDeepest;
  reading.keeps_addresses = true;
  auto session = Session::open(std::move(reading));
  if (!session) return std::move(session.error());
  UnwoundChains chains;
  Gatherer gatherer(chains.hash_, chains.by_sample_);
  session->run(gatherer);
  chains.chains_ = gatherer.chains(session->resolver());
  return chains;
}

std::span<const std::uint64_t> UnwoundChains::of(format::Bytes sample) const {
  const auto found = by_sample_.find(hash_(format::as_text(sample)));
  return found == by_sample_.end() ? std::span<const std::uint64_t>() : chains_[found->second];
}

}  // namespace tacho::report
