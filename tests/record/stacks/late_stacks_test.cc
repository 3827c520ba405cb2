// Samples that wait for the rest of their stacks.
#include "record/stacks/late_stacks.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <future>
#include <span>
#include <thread>

#include "format/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kId = 77, kCopy = 3, kSp = 0x7000;
constexpr std::uint32_t kProcess = 1;
constexpr std::chrono::seconds kPatience{30};

class LateStacksTest : public testing::Test {
 protected:
  LateStacksTest() : late_(copies(), 100, [this](const MappedFile& file) { return image_of(file); }) {
    format::EventAttr attr{};
    attr.sample_type = abi::kSampleIdentifier | abi::kSampleCallchain;
    splice_.add_event(kId, attr);
    MappedFile file;
    file.name = "/nowhere/hanging";
    file.inode = 5;
    maps_.map(kProcess, {0x1000, 0x2000, 0, 0, late_.number_of(file)}, 1);
  }
  ~LateStacksTest() override { answer_.set_value(); }

  LateStacks::Copies copies() {
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
    StackSplice::Unfinished made;
    const std::array<std::uint64_t, 3> words{std::uint64_t{24} << 48 | abi::kRecordSample, kId, 0};
    const auto bytes = std::as_bytes(std::span(words));
    made.record.assign(bytes.begin(), bytes.end());
    made.walk.frames = {0x1500};
    made.walk.end = TACHO_END_NO_TABLE;
    made.walk.copy = kCopy;
    made.process = kProcess;
    made.time = 5;
    late_.fresh().push_back(made);
    tacho_stack_copy copy{};
    copy.number = kCopy;
    copy.sp = kSp;
    copy.frames = 1;
    written_.push_back(copy);
  }

  std::promise<void> answer_;
  std::shared_future<void> answered_ = answer_.get_future().share();
  std::vector<tacho_stack_copy> written_;
  LateStacks late_;
  CodeMaps maps_;
  StackSplice splice_;
};

TEST_F(LateStacksTest, ASecondIsTheMostThatAFileWithoutAnswerCosts) {
  ASSERT_TRUE(late_.start());
  sample();
  const std::uint64_t pass = late_.last_pass() + 1;
  std::vector<std::byte> records;
  const auto begin = steady_clock::now();
  while (records.empty() && steady_clock::now() - begin < kPatience) {
    late_.end_pass(maps_, splice_, records);
    EXPECT_EQ(late_.holds_until(pass), records.empty());
    std::this_thread::sleep_for(milliseconds(5));
  }
  const auto waited = steady_clock::now() - begin;
  ASSERT_FALSE(records.empty()) << "it waits for ever";
  EXPECT_GT(waited, milliseconds(900)) << "others are slow, too";
  EXPECT_EQ(splice_.counts().ends[TACHO_END_NO_TABLE], 1u);
  EXPECT_EQ(records.size(), 24 + 16u) << "with the frame that was known";
}

}  // namespace
}  // namespace tacho::record
