#include "report/views/convert/unwound_chains.h"

#include <span>
#include <string_view>
#include <utility>

#include "format/byte_writer.h"
#include "report/samples/session.h"
#include "report/worker.h"

namespace tacho::report {
namespace {

constexpr std::size_t kDeepest = 1024;                    // frames
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // from the worker
constexpr std::uint8_t kGathered = 1, kFailed = 2;

std::string_view text_of_bytes(format::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Writes {key, number of its stack} of each sample, and each stack once.
class Gatherer : public Sink {
 public:
  explicit Gatherer(const format::SeededTextHash& hash) : hash_(hash) {}

  Flow on_sample(const ResolvedSample& sample) override {
    if (sample.stack == nullptr || sample.raw->user_stack.empty()) return Flow::GoOn;
    samples_.u64(hash_(text_of_bytes(sample.record->bytes))).u64(sample.stack->number);
    if (sample.stack->number >= stacks_.size()) stacks_.resize(sample.stack->number + 1);
    stacks_[sample.stack->number] = sample.stack;
    return Flow::GoOn;
  }

  std::vector<std::byte> finish(Resolver& resolver) const {
    format::ByteWriter out;
    out.u8(kGathered).u64(stacks_.size());
    for (const Stack* const stack : stacks_) {
      std::vector<std::uint64_t> unwound;
      if (stack != nullptr)
        for (const std::uint32_t frame : stack->frames)
          if (const Location& place = resolver.location(frame); place.is_unwound)
            unwound.push_back(place.ip.value);
      out.u64(unwound.size());
      for (const std::uint64_t ip : unwound) out.u64(ip);
    }
    return std::move(out.u64(samples_.size() / (2 * sizeof(std::uint64_t))).bytes(samples_.view())).take();
  }

 private:
  const format::SeededTextHash& hash_;
  std::vector<const Stack*> stacks_;  // by number; as long as the session
  format::ByteWriter samples_;
};

}  // namespace

std::vector<std::byte> UnwoundChains::gather(const std::string& input, const format::ReadOptions& options,
                                             symbolize::FileGate& gate) const {
  SessionOptions reading;
  reading.input = input;
  reading.capture = options;
  reading.max_stack = kDeepest;
  reading.keeps_addresses = true;
  reading.symbols.gate = &gate;
  auto session = Session::open(std::move(reading));
  if (!session) {
    format::ByteWriter out;
    out.u8(kFailed).bytes(std::as_bytes(std::span(session.error().what)));
    return std::move(out).take();
  }
  Gatherer gatherer(hash_);
  session->run(gatherer);
  return gatherer.finish(session->resolver());
}

Result<> UnwoundChains::parse(format::Bytes told) {
  format::Cursor in(told);
  const std::uint8_t outcome = in.u8();
  if (outcome == kFailed) return Error{std::string(text_of_bytes(in.rest()))};
  const std::uint64_t chains = in.u64();
  if (outcome != kGathered || chains > in.left() / sizeof(std::uint64_t))
    return Error{"the process that unwinds gave something else"};
  chains_.resize(static_cast<std::size_t>(chains));
  for (auto& chain : chains_) {
    const format::U64Array words = in.words(in.u64());
    for (std::size_t i = 0; i < words.size(); ++i) chain.push_back(words[i]);
  }
  const format::U64Array samples = in.words(in.u64(), 2);
  if (in.failed() || in.left() != 0) return Error{"the process that unwinds gave something else"};
  for (std::size_t i = 0; i + 1 < samples.size(); i += 2)
    if (samples[i + 1] < chains_.size()) by_sample_[samples[i]] = static_cast<std::uint32_t>(samples[i + 1]);
  return Done{};
}

Result<UnwoundChains> UnwoundChains::read(const std::string& input, const format::ReadOptions& options) {
  UnwoundChains chains;
  const auto unwind = [&](WorkPlace& place, const std::vector<WorkDone::Death>& deaths) {
    WorkGate gate(place, deaths);
    return chains.gather(input, options, gate);
  };
  const auto done = work_apart(unwind, Reach::Files, {.most_bytes = kMostBytes});
  if (!done) return done.error();
  if (auto parsed = chains.parse(done->bytes); !parsed) return std::move(parsed.error());
  for (const WorkDone::Death& death : done->deaths)
    chains.lacks_.push_back(death.path +
                            ": call chains end in it: the process that read it died: " + death.how);
  return chains;
}

std::span<const std::uint64_t> UnwoundChains::of(format::Bytes sample) const {
  const auto found = by_sample_.find(hash_(text_of_bytes(sample)));
  return found == by_sample_.end() ? std::span<const std::uint64_t>() : chains_[found->second];
}

}  // namespace tacho::report
