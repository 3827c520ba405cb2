// A walk that goes on from a copy of the stack.

#include "record/stacks/deferred_unwinder.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"

namespace tacho::record {

namespace {

using Words = std::vector<std::uint64_t>;
constexpr std::uint64_t kSp = 0x7000;

class FinishUnwindTest : public testing::Test {
 protected:
  FinishUnwindTest() {
    copy_.sp = kSp;
    copy_.bp = 0;
    copy_.frames = 1;
    copy_.is_bp_known = true;
    walk_.frames = {0x1000};
    walk_.end = TACHO_END_NO_TABLE;
  }
  void stack(const Words& words) {
    const auto bytes = std::as_bytes(std::span(words));
    copy_.bytes.assign(bytes.begin(), bytes.end());
  }
  void row(std::uint64_t address, int kind, int cfa = 0, int rbp = 0, int rbx = 0) {
    rows_[address] = {
        {0, static_cast<std::int16_t>(cfa), static_cast<std::int8_t>(rbp), static_cast<std::uint8_t>(kind)},
        static_cast<std::int8_t>(rbx)};
  }
  // Frames, and how it ends after them.
  Words walked(std::size_t most = 100) {
    finish_unwind(walk_, copy_, most, [this](std::uint64_t address, bool is_return, std::uint16_t& end) {
      const auto found = rows_.find(address - (is_return ? 1 : 0));
      if (found == rows_.end()) end = end_;
      return found == rows_.end() ? std::nullopt : std::optional(found->second);
    });
    Words result = walk_.frames;
    result.push_back(walk_.end);
    return result;
  }

  StackCopy copy_;
  CallchainMerger::Walk walk_;
  std::map<std::uint64_t, unwind::RowFinder::Found> rows_;
  std::uint16_t end_ = TACHO_END_NO_MAPPING;
};

TEST_F(FinishUnwindTest, GoesByRowsToTheFirstFunction) {
  stack({0, 0x2001, 0x7028, 0x3001, 1, 0x7777, 0x4001});
  row(0x1000, TACHO_UNWIND_RSP, 2);
  row(0x2000, TACHO_UNWIND_RSP, 2, -2);  // its caller's rbp is 0x7028
  row(0x3000, TACHO_UNWIND_RBP, 2, TACHO_UNWIND_RBP_AT_RBP);
  row(0x4000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (Words{0x1000, 0x2001, 0x3001, 0x4001, TACHO_END_WHOLE}));
}

TEST_F(FinishUnwindTest, WhatTheKernelGuessedAfterTheCopyGoes) {
  walk_.frames = {0x500, 0x1000, 0xbad, 0xbad0};
  copy_.frames = 2;
  stack({0x2001});
  row(0x1000, TACHO_UNWIND_RSP, 1);
  row(0x2000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (Words{0x500, 0x1000, 0x2001, TACHO_END_WHOLE}));
}

TEST_F(FinishUnwindTest, AFrameThatIsAReturnIsLookedUpBeforeIt) {
  copy_.is_return = true;
  copy_.frames = 2;
  walk_.frames = {0x500, 0x1000};
  stack({0});
  row(0x0fff, TACHO_UNWIND_RSP, 1);
  EXPECT_EQ(walked(), (Words{0x500, 0x1000, TACHO_END_WHOLE})) << "nobody stands above";
}

TEST_F(FinishUnwindTest, TheSampledFunctionWasCalled) {
  stack({0});
  row(0x1000, TACHO_UNWIND_RSP, 1);
  EXPECT_EQ(walked(), (Words{0x1000, TACHO_END_NO_RULE}));
}

// As the dynamic linker does when a function is called for the first time.
TEST_F(FinishUnwindTest, FramesThatRbxLeadsToAreFoundWhileItIsKnown) {
  stack({1, 0x7028, 0x2001, 2, 3, 4, 0x3001});
  row(0x1000, TACHO_UNWIND_RSP, 3, 0, -2);  // saved two words below what is above its frame
  row(0x2000, 3, 2);                        // 16 above rbx
  row(0x3000, TACHO_UNWIND_END);
  copy_.is_rbx_known = true;
  EXPECT_EQ(walked(), (Words{0x1000, 0x2001, 0x3001, TACHO_END_WHOLE}));
  walk_.frames = {0x1000};
  row(0x1000, TACHO_UNWIND_RSP, 3);  // still the sampled function's
  copy_.rbx = 0x7028;
  EXPECT_EQ(walked(), (Words{0x1000, 0x2001, 0x3001, TACHO_END_WHOLE}));
  walk_.frames = {0x1000};
  copy_.is_rbx_known = false;
  EXPECT_EQ(walked(), (Words{0x1000, 0x2001, TACHO_END_ODD_RULE}));
}

TEST_F(FinishUnwindTest, SignalFramesTablesOfCallsAndChangedStacks) {
  Words words(64, 0);
  words[TACHO_UNWIND_SIGNAL_RIP] = 0x2000;
  words[TACHO_UNWIND_SIGNAL_RSP] = kSp + 8 * 30;
  words[TACHO_UNWIND_SIGNAL_RBP] = 0x99;
  words[30] = 0x4444;  // the entry has pushed a word
  words[31] = 0x300c;
  words[33] = kSp + 8 * 40;  // another stack, with what is returned to on top
  words[40] = 0x4001;
  stack(words);
  row(0x1000, TACHO_UNWIND_SIGNAL);
  row(0x2000, TACHO_UNWIND_PLT, 1, 0);
  row(0x300b, TACHO_UNWIND_AT_RSP, 1);
  row(0x4000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (Words{0x1000, TACHO_INTERRUPTED, 0x2000, 0x300c, 0x4001, TACHO_END_WHOLE}))
      << "what follows the mark was interrupted, and is no return address";
}

TEST_F(FinishUnwindTest, ItEndsWhereTheCopyDoes) {
  stack({1, 2});
  row(0x1000, TACHO_UNWIND_RSP, 9);
  EXPECT_EQ(walked(), (Words{0x1000, TACHO_END_COPY}));
}

TEST_F(FinishUnwindTest, TheCopyOfADeepStackHasParts) {
  stack({0, 1});
  copy_.number = 7;
  StackCopy part = copy_;
  part.sp = kSp + 8;
  EXPECT_FALSE(add_part(copy_, part)) << "it begins elsewhere";
  part.sp = kSp + 16;
  part.number = 8;
  EXPECT_FALSE(add_part(copy_, part));
  part.number = 7;
  part.bytes.assign(8, std::byte{0});
  part.bytes[0] = std::byte{1};
  part.bytes[1] = std::byte{0x20};
  ASSERT_TRUE(add_part(copy_, part));
  row(0x1000, TACHO_UNWIND_RSP, 3);
  row(0x2000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (Words{0x1000, 0x2001, TACHO_END_WHOLE}));
}

TEST_F(FinishUnwindTest, LoopsAndOddRulesEndIt) {
  stack({0x2001, 1, 2, 3});
  row(0x1000, TACHO_UNWIND_RSP, 0);
  EXPECT_EQ(walked(), (Words{0x1000, TACHO_END_LOOP}));
  walk_.frames = {0x1000};
  row(0x1000, TACHO_UNWIND_OTHER);
  EXPECT_EQ(walked(), (Words{0x1000, TACHO_END_ODD_RULE}));
  walk_.frames = {0x1000};
  row(0x1000, 10, 2);  // above r10, which no copy holds
  EXPECT_EQ(walked(), (Words{0x1000, TACHO_END_ODD_RULE}));
  walk_.frames = {0x1000};
  row(0x1000, TACHO_UNWIND_RSP, -2);
  EXPECT_EQ(walked(), (Words{0x1000, TACHO_END_LOOP}));
}

TEST_F(FinishUnwindTest, CodeWithoutRowsGoesByFramePointers) {
  const auto again = [this](std::uint64_t bp) {
    walk_.frames = {0x500, 0x1000};
    copy_.bp = bp;
    return walked();
  };
  copy_.frames = 2;
  stack({0, 0, 0, 0x2001});
  row(0x1000, TACHO_UNWIND_NOTHING);
  row(0x2000, TACHO_UNWIND_END);
  EXPECT_EQ(again(kSp + 16), (Words{0x500, 0x1000, 0x2001, TACHO_END_WHOLE}));
  EXPECT_EQ(again(kSp + 17), (Words{0x500, 0x1000, TACHO_END_NO_RULE}));
  EXPECT_EQ(again(0), (Words{0x500, 0x1000, TACHO_END_FRAME_ZERO}));
  copy_.is_bp_known = false;
  EXPECT_EQ(again(kSp + 16), (Words{0x500, 0x1000, TACHO_END_NO_RULE}));
}

// It may be anything that lay on the stack, and is nobody's to write down.
TEST_F(FinishUnwindTest, AGuessedWordThatIsNoCodeIsNoFrame) {
  copy_.frames = 2;
  walk_.frames = {0x500, 0x1000};
  copy_.bp = kSp + 16;
  stack({0, 0, 0, 0xdead});
  row(0x1000, TACHO_UNWIND_NOTHING);
  EXPECT_EQ(walked(), (Words{0x500, 0x1000, TACHO_END_NO_RULE}));
}

TEST_F(FinishUnwindTest, NoMoreFramesThanAskedFor) {
  Words words;
  for (int i = 0; i < 50; ++i) words.push_back(0x1001);
  stack(words);
  row(0x1000, TACHO_UNWIND_RSP, 1);
  const Words found = walked(7);
  EXPECT_EQ(found.size(), 8u);
  EXPECT_EQ(found.back(), std::uint64_t{TACHO_END_CUT});
}

TEST_F(FinishUnwindTest, AFileThatIsGoneLeavesWhatTheKernelFound) {
  walk_.frames = {0x1000, 0x2001, 0x3001};
  end_ = TACHO_END_NO_TABLE;
  EXPECT_EQ(walked(), (Words{0x1000, 0x2001, 0x3001, TACHO_END_NO_TABLE}));
}

TEST_F(FinishUnwindTest, ACopyOfAnotherWalkIsNotUsed) {
  copy_.frames = 2;
  row(0x1000, TACHO_UNWIND_END);
  EXPECT_EQ(walked(), (Words{0x1000, TACHO_END_NO_TABLE}));
  copy_.frames = 0;
  EXPECT_EQ(walked(), (Words{0x1000, TACHO_END_NO_TABLE}));
}

TEST(StackCopyOf, TakesApartWhatTheProgramWrote) {
  format::ByteWriter out;
  out.u64(5).u64(kSp).u64(0x7100).u64(0x7200).u32(3).u8(1).u8(0).u8(1).u8(0).u64(0xabc);
  const auto copy = stack_copy_of(out.view());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->number, 5u);
  EXPECT_EQ(copy->sp, kSp);
  EXPECT_EQ(copy->bp, 0x7100u);
  EXPECT_EQ(copy->frames, 3u);
  EXPECT_TRUE(copy->is_return);
  EXPECT_FALSE(copy->is_bp_known);
  EXPECT_TRUE(copy->is_rbx_known);
  EXPECT_EQ(copy->rbx, 0x7200u);
  EXPECT_EQ(copy->bytes.size(), 8u);
  EXPECT_EQ(sizeof(tacho_stack_copy) - sizeof(tacho_stack_copy::bytes), 40u)
      << "what stands before the bytes";
  EXPECT_FALSE(stack_copy_of(out.view().first(39)));
}

}  // namespace

// Samples that wait for the rest of their stacks.

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
    copy.sp = kSp;
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

// Stacks that wait to be finished, and those that nobody waits for any longer.

namespace {

using Stacks = DeferredUnwinder::Stacks;

Stacks stacks_of_pass(std::uint64_t pass, std::size_t count) {
  Stacks stacks(count);
  for (DeferredUnwinder::Stack& stack : stacks) {
    stack.pass = pass;
    stack.sample.walk.frames = {0x1000, 0x2000};
    stack.sample.walk.end = TACHO_END_NO_TABLE;
  }
  return stacks;
}

// Its thread does not run: nothing is ever finished.
TEST(DeferredUnwinder, MoreThanMayWaitAreDoneAsTheyAre) {
  const auto finisher = std::make_shared<DeferredUnwinder>(100, nullptr);
  finisher->give(stacks_of_pass(1, DeferredUnwinder::kMostWaiting - 1));
  EXPECT_TRUE(finisher->take_done().empty());
  finisher->give(stacks_of_pass(2, 3));
  const Stacks done = finisher->take_done();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done.front().pass, 2u);
  EXPECT_EQ(done.front().sample.walk.frames.size(), 2u);
}

TEST(DeferredUnwinder, WhatIsGivenUpIsDoneAsItIs) {
  const auto finisher = std::make_shared<DeferredUnwinder>(100, nullptr);
  finisher->give(stacks_of_pass(1, 5));
  finisher->give_up();
  const Stacks done = finisher->take_done();
  ASSERT_EQ(done.size(), 5u);
  EXPECT_EQ(done.front().sample.walk.end, TACHO_END_NO_TABLE);
  finisher->give_up();
  EXPECT_TRUE(finisher->take_done().empty()) << "each once";
}

// From a thread of its own, which gives up rights for good.
TEST(DeferredUnwinder, EachIsDoneOnceHoweverOftenItIsGivenUp) {
  const auto finisher = std::make_shared<DeferredUnwinder>(100, nullptr);
  ASSERT_TRUE(finisher->start());
  constexpr std::size_t kRounds = 200, kStacks = 20;
  std::size_t done = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    finisher->give(stacks_of_pass(round, kStacks));
    if (round % 3 == 0) finisher->give_up();
    done += finisher->take_done().size();
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (done < kRounds * kStacks && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    done += finisher->take_done().size();
  }
  EXPECT_EQ(done, kRounds * kStacks);
  finisher->end();
  EXPECT_TRUE(finisher->take_done().empty());
}

// A file of a file system whose server hangs: whoever reads it waits, and for how long nobody knows.
class HangingFile {
 public:
  ~HangingFile() { answer(); }
  DeferredUnwinder::ImageOf opener() {
    return [state = state_](const MappedFile&) -> Result<unwind::ElfImage> {
      std::unique_lock lock(state->mutex);
      ++state->asked;
      state->changed.notify_all();
      state->changed.wait(lock, [&] { return state->answers; });
      return Error{"gone", kNotOpened};
    };
  }
  void wait_until_asked() {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->asked != 0; });
  }
  void answer() {
    const std::lock_guard lock(state_->mutex);
    state_->answers = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    int asked = 0;
    bool answers = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();  // the thread may outlive us
};

TEST(DeferredUnwinder, AFileThatNeverAnswersKeepsNoStackAndNoRecorder) {
  HangingFile hanging;
  const auto finisher = std::make_shared<DeferredUnwinder>(100, nullptr, hanging.opener());
  ASSERT_TRUE(finisher->start());
  MappedFile file;
  file.name = "/nowhere/hanging";
  file.inode = 5;
  const std::uint32_t number = finisher->number_of(file);
  Stacks stacks = stacks_of_pass(1, 3);
  for (DeferredUnwinder::Stack& stack : stacks) {
    stack.copy.frames = 2;
    stack.maps.ranges = std::make_shared<CodeMaps::Ranges>(CodeMaps::Ranges{{0x1000, 0x3000, 0, 0, number}});
  }
  finisher->give(std::move(stacks));
  hanging.wait_until_asked();
  EXPECT_TRUE(finisher->take_done().empty());
  finisher->give_up();
  const Stacks done = finisher->take_done();
  ASSERT_EQ(done.size(), 3u) << "the one under way, too";
  EXPECT_EQ(done.front().sample.walk.end, TACHO_END_NO_TABLE);
  EXPECT_EQ(done.front().sample.walk.frames.size(), 2u);

  finisher->give(stacks_of_pass(2, 1));
  const auto begin = std::chrono::steady_clock::now();
  finisher->end();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << "it waits for ever";
  finisher->give_up();
  EXPECT_EQ(finisher->take_done().size(), 1u);
  const std::weak_ptr<DeferredUnwinder> left = finisher;
  EXPECT_GT(left.use_count(), 1) << "the thread that was left behind holds what it uses";
  hanging.answer();
}

}  // namespace

}  // namespace tacho::record
