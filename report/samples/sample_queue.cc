#include "report/samples/sample_queue.h"

#include <algorithm>

namespace tacho::report {

void SampleBatch::add(QueuedSample sample, const format::BlockRef& block) {
  // Records of a few processors take turns, so the block is one of the last.
  auto known = std::find(blocks.rbegin(), blocks.rend(), block);
  if (known == blocks.rend()) {
    blocks.push_back(block);
    known = blocks.rbegin();
  }
  sample.block = static_cast<std::uint16_t>(blocks.rend() - known - 1);
  const std::uint16_t size = sample.size;
  add(sample);
  bytes += size;
  bytes -= sizeof sample;
}

void SampleBatch::add(const QueuedSample& sample) {
  samples.push_back(sample);
  // The other thread looked at this memory last: it is fetched back in time.
  constexpr std::size_t kAhead = 16;
  if (samples.size() + kAhead < samples.capacity())
    __builtin_prefetch(samples.data() + samples.size() + kAhead, 1);
  bytes += sizeof sample;
}

void SampleBatch::clear() {
  samples.clear();
  blocks.clear();
  starts.clear();
  stacks.clear();
  bytes = 0;
  bytes_read = 0;
}

}  // namespace tacho::report
