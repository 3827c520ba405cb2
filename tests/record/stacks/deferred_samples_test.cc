#include "record/stacks/deferred_samples.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "bpf/programs/stack_maps.h"
#include "format/records/perf_abi.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kId = 77, kCopy = 3;
constexpr std::uint32_t kProcess = 1;
constexpr std::chrono::seconds kPatience{30};

class DeferredSamplesTest : public testing::Test {
 protected:
  DeferredSamplesTest()
      : deferred_(copies(), 100, nullptr, [this](const MappedFile& file) { return image_of(file); }) {
    format::EventAttr attr{};
    attr.sample_type = abi::kSampleIdentifier | abi::kSampleCallchain;
    merger_.add_event(kId, attr);
    MappedFile file;
    file.name = "/nowhere/hanging";
    file.inode = 5;
    maps_.map(kProcess, {0x1000, 0x2000, 0, 0, deferred_.number_of(file)}, 1);
  }
  ~DeferredSamplesTest() override { answer_.set_value(); }

  DeferredSamples::Copies copies() {
    return {[] {},
            [this](const std::function<void(format::Bytes)>& sink) {
              for (const auto& each : std::exchange(written_, {}))
                sink(std::as_bytes(std::span(&each, 1)).first(offsetof(tacho_stack_copy, bytes) + 16));
            }};
  }
  Result<unwind::ElfImage> image_of(const MappedFile&) const {
    answered_.wait();
    return Error{"gone", kNotOpened};
  }

  // A sample of the process, its stack copied.
  void sample() {
    CallchainMerger::Deferred made;
    const std::array<std::uint64_t, 3> words{std::uint64_t{24} << 48 | abi::kRecordSample, kId, 0};
    const auto bytes = std::as_bytes(std::span(words));
    made.record.assign(bytes.begin(), bytes.end());
    made.walk.frames = {0x1500};
    made.walk.end = TACHO_END_NO_TABLE;
    made.walk.copy = kCopy;
    made.process = kProcess;
    made.time = 5;
    deferred_.fresh().push_back(made);
    tacho_stack_copy copy{};
    copy.number = kCopy;
    copy.sp = 0x7000;
    copy.frames = 1;
    written_.push_back(copy);
  }

  std::promise<void> answer_;
  std::shared_future<void> answered_ = answer_.get_future().share();
  std::vector<tacho_stack_copy> written_;
  DeferredSamples deferred_;
  CodeMaps maps_;
  CallchainMerger merger_;
};

TEST_F(DeferredSamplesTest, ASecondIsTheMostThatAFileWithoutAnswerCosts) {
  ASSERT_TRUE(deferred_.start());
  sample();
  const std::uint64_t pass = deferred_.last_pass() + 1;
  std::vector<std::byte> records;
  const auto begin = steady_clock::now();
  while (records.empty() && steady_clock::now() - begin < kPatience) {
    deferred_.end_pass(maps_, merger_, records);
    EXPECT_EQ(deferred_.holds_until(pass), records.empty());
    std::this_thread::sleep_for(milliseconds(5));
  }
  const auto waited = steady_clock::now() - begin;
  ASSERT_FALSE(records.empty()) << "it waits for ever";
  EXPECT_GT(waited, milliseconds(900)) << "others are slow, too";
  EXPECT_EQ(merger_.counts().ends[TACHO_END_NO_TABLE], 1u);
  EXPECT_EQ(records.size(), 24 + 16u) << "with the frame that was known";
}

}  // namespace

}  // namespace tacho::record
