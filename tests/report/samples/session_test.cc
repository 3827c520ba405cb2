#include "report/samples/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "report/views/script/script_text.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using test::CaptureBuilder;
using test::SampleFields;

class Collector : public Sink {
 public:
  Flow on_sample(const ResolvedSample& sample) override {
    std::string text = std::string(sample.comm) + " " + std::to_string(sample.fields->time) + " " +
                       std::to_string(sample.period) + " " + sample.event().name;
    if (sample.stack != nullptr)
      stacks.push_back(sample.stack->id), text += " #" + std::to_string(sample.stack->frames.size());
    lines.push_back(std::move(text));
    return lines.size() == stop_after ? Flow::Stop : Flow::Continue;
  }
  Flow on_non_sample(const NonSampleRecord& event) override {
    others.push_back(std::string(format::record_name(event.view->type)));
    return Flow::Continue;
  }
  std::vector<std::string> lines, others;
  std::vector<StackId> stacks;
  std::size_t stop_after = 0;
};

struct Ran {
  Collector sink;
  std::unique_ptr<Session> session;
};

Ran run(const std::vector<std::byte>& bytes, SessionOptions options = {}) {
  const test::TemporaryFile file(bytes);
  options.input = file.path();
  auto session = Session::open(options);
  EXPECT_TRUE(session);
  Ran ran;
  ran.session = std::make_unique<Session>(std::move(*session));
  ran.session->run(ran.sink);
  return ran;
}

void run_into(Sink& sink, const std::string& path) {
  SessionOptions options;
  options.input = path;
  auto session = Session::open(options);
  ASSERT_TRUE(session);
  session->run(sink);
}

SampleFields at(std::uint64_t time, std::uint32_t tid = 5) {
  SampleFields fields;
  fields.id = 1;
  fields.pid = fields.tid = tid;
  fields.time = time;
  fields.ip = 0x1000;
  return fields;
}

TEST(Session, GivesSamplesInTimeOrderWithinRounds) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.comm(5, 5, "dd");
  capture.sample(at(30)).sample(at(10)).round().sample(at(20)).round();
  const Ran ran = run(capture.file());
  EXPECT_EQ(ran.sink.lines,
            (std::vector<std::string>{"dd 10 1 cpu-clock", "dd 20 1 cpu-clock", "dd 30 1 cpu-clock"}));
  EXPECT_EQ(ran.sink.others, std::vector<std::string>{"COMM"});
  EXPECT_FALSE(ran.session->diagnostics().incomplete());
}

// A second run would give nothing, as if the capture were empty.
TEST(Session, AFileIsReadOnce) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.comm(5, 5, "dd").sample(at(10)).round();
  Ran ran = run(capture.file());
  EXPECT_EQ(ran.sink.lines.size(), 1U);
  EXPECT_THROW(ran.session->run(ran.sink), std::logic_error);
}

TEST(Session, EqualCallChainsAreOneStackUntilTheMappingsChange) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  capture.mmap(5, 0x1000, 0x1000, 0, "/bin/one");
  SampleFields fields = at(10);
  fields.callchain = {abi::kContextKernel, 0xffffffff81000000, abi::kContextUser, 0x1000, 0x1010};
  capture.sample(fields);
  fields.time = 20;
  capture.sample(fields);
  fields.time = 30;
  fields.pid = fields.tid = 6;
  capture.sample(fields);
  const Ran ran = run(capture.file());
  ASSERT_EQ(ran.sink.stacks.size(), 3u);
  EXPECT_EQ(ran.sink.stacks[0], ran.sink.stacks[1]);
  EXPECT_NE(ran.sink.stacks[0], ran.sink.stacks[2]) << "another process's addresses are other locations";
  EXPECT_TRUE(ran.sink.lines[0].ends_with("#3")) << "marks are no frames";
}

TEST(Session, ACallChainIsCutAtTheAskedLengthAndACorruptOneIsEmpty) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  SampleFields fields = at(10);
  fields.callchain = {abi::kContextUser, 1, 2, 3};
  capture.sample(fields);
  fields.time = 20;
  fields.callchain = {abi::kContextUser, 1, abi::kContextGuest, 3};
  capture.sample(fields);
  SessionOptions options;
  options.max_stack = 2;
  const Ran ran = run(capture.file(), options);
  EXPECT_TRUE(ran.sink.lines[0].ends_with("#2"));
  EXPECT_TRUE(ran.sink.lines[1].ends_with("#0"));
}

TEST(Session, OrItsOutermostFramesAreKept) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  SampleFields fields = at(10);
  fields.ip = 0x11;
  fields.misc = abi::kCpumodeKernel;
  fields.callchain = {abi::kContextKernel, 0x11, abi::kContextUser, 0x22, 0x33};
  capture.sample(fields);
  const test::TemporaryFile file(capture.file());
  SessionOptions options;
  options.input = file.path();
  options.max_stack = 2;
  for (const bool keeps_callers : {false, true}) {
    options.keeps_callers = keeps_callers;
    auto session = Session::open(options);
    ASSERT_TRUE(session);
    class Addresses : public Sink {
     public:
      Flow on_sample(const ResolvedSample& sample) override {
        ip = sample.location->ip.value;
        frames.assign(sample.stack->frames.begin(), sample.stack->frames.end());
        return Flow::Continue;
      }
      std::vector<LocationId> frames;
      std::uint64_t ip = 0;
    } sink;
    session->run(sink);
    EXPECT_EQ(sink.ip, 0x11u) << "the sample's own location is no frame that was left out";
    std::vector<std::uint64_t> addresses;
    for (const LocationId frame : sink.frames)
      addresses.push_back(session->resolver().location(frame).ip.value);
    EXPECT_EQ(addresses, keeps_callers ? (std::vector<std::uint64_t>{0x22, 0x33})
                                       : (std::vector<std::uint64_t>{0x11, 0x22}));
  }
}

TEST(Session, AGuestsSamplesAreSamples) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  SampleFields fields = at(10);
  fields.misc = abi::kCpumodeGuestKernel;
  capture.sample(fields);
  fields.time = 15;
  fields.misc = abi::kCpumodeGuestUser;
  capture.sample(fields).sample(at(20));
  EXPECT_EQ(run(capture.file()).sink.lines.size(), 3u);
  SessionOptions as_perf;
  as_perf.leaves_out_guests = true;
  EXPECT_EQ(run(capture.file(), as_perf).sink.lines.size(), 1u);
}

TEST(Session, FiltersByTidCommTimeAndEvent) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.comm(5, 5, "dd").comm(6, 6, "ls");
  capture.sample(at(10, 5)).sample(at(20, 6)).sample(at(30, 6));
  SessionOptions options;
  options.filter.comms = {"ls"};
  EXPECT_EQ(run(capture.file(), options).sink.lines.size(), 2u);
  options.filter.times = {{0, 25}};
  EXPECT_EQ(run(capture.file(), options).sink.lines.size(), 1u);
  options.filter.tids = {5};
  EXPECT_TRUE(run(capture.file(), options).sink.lines.empty());
  capture.event(test::software_event(abi::kPageFaults), "page-faults:u", {2});
  test::SampleFields fault = at(40, 6);
  fault.id = 2;
  capture.sample(fault);
  SessionOptions other;
  other.filter.events = {"page-faults"};
  EXPECT_EQ(run(capture.file(), other).sink.lines, (std::vector<std::string>{"ls 40 1 page-faults:u"}));
  const test::TemporaryFile file(capture.file());
  other.input = file.path();
  other.filter.events = {"nosuch"};
  const auto refused = Session::open(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            file.path() + ": --event: there is no event 'nosuch'; it has cpu-clock, page-faults:u");
}

// A group of two events; `more` are bits of attr.flags.
CaptureBuilder capture_of_a_group(std::uint64_t more = 0) {
  auto attr = test::software_event(abi::kCpuClock, abi::kSampleRead | abi::kSampleCallchain);
  attr.read_format = abi::kReadGroup | abi::kReadId;
  attr.flags |= more;
  CaptureBuilder capture;
  capture.event(attr, "a", {1}).event(attr, "b", {2});
  return capture;
}

SampleFields values_at(std::uint64_t time, std::uint32_t tid, std::uint64_t a, std::uint64_t b) {
  SampleFields fields = at(time, tid);
  fields.values = {{1, a}, {2, b}};
  return fields;
}

TEST(Session, InheritedCountersCountInEachThreadForItself) {
  CaptureBuilder capture = capture_of_a_group(abi::kInherit);
  capture.sample(values_at(10, 5, 100, 7)).sample(values_at(20, 6, 40, 3));
  capture.sample(values_at(30, 5, 160, 7)).sample(values_at(40, 6, 45, 4));
  EXPECT_EQ(run(capture.file()).sink.lines,
            (std::vector<std::string>{":5 10 100 a #0", ":5 10 7 b #0", ":6 20 40 a #0", ":6 20 3 b #0",
                                      ":5 30 60 a #0", ":6 40 5 a #0", ":6 40 1 b #0"}));
}

TEST(Session, CountersThatAreNotInheritedAreOneForAllThreads) {
  CaptureBuilder capture = capture_of_a_group();
  capture.sample(values_at(10, 5, 100, 7)).sample(values_at(20, 6, 140, 8));
  EXPECT_EQ(run(capture.file()).sink.lines,
            (std::vector<std::string>{":5 10 100 a #0", ":5 10 7 b #0", ":6 20 40 a #0", ":6 20 1 b #0"}));
}

TEST(Session, CountersNamesAndMappingsAreFollowedInWhatIsFilteredOut) {
  CaptureBuilder capture = capture_of_a_group();
  capture.comm(5, 5, "dd").comm(6, 6, "ls");
  capture.sample(values_at(10, 5, 100, 7)).sample(values_at(20, 6, 140, 8)).comm(6, 6, "late");
  capture.sample(values_at(30, 6, 150, 8)).sample(values_at(40, 5, 151, 9));
  SessionOptions options;
  options.filter.tids = {6};
  EXPECT_EQ(run(capture.file(), options).sink.lines,
            (std::vector<std::string>{"late 20 40 a #0", "late 20 1 b #0", "late 30 10 a #0"}));
  options.filter.tids.clear();
  options.filter.events = {"b"};
  EXPECT_EQ(run(capture.file(), options).sink.lines,
            (std::vector<std::string>{"dd 10 7 b #0", "late 20 1 b #0", "dd 40 1 b #0"}));
}

TEST(Session, WhatIsLeftOutDoesNotMoveTheEndOfRoundsForOthers) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.sample(at(10, 5)).sample(at(90, 6)).round().sample(at(50, 5)).round().sample(at(40, 5)).round();
  SessionOptions options;
  const Ran all = run(capture.file(), options);
  options.filter.tids = {5};
  const Ran some = run(capture.file(), options);
  std::vector<std::string> expected = all.sink.lines;
  std::erase_if(expected, [](const std::string& line) { return line.starts_with(":6"); });
  EXPECT_EQ(some.sink.lines, expected);
}

TEST(Session, FiltersByTheNamesOfASamplesLocation) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.mmap(5, 0x1000, 0x1000, 0, "/bin/one").mmap(5, 0x2000, 0x1000, 0, "/bin/two");
  SampleFields fields = at(10);
  capture.sample(fields);
  fields.time = 20, fields.ip = 0x2010;
  capture.sample(fields);
  const auto count = [&](auto&& choose) {
    SessionOptions options;
    options.symbols.symfs = "/proc/self/fdinfo";
    choose(options.filter);
    return run(capture.file(), options).sink.lines.size();
  };
  EXPECT_EQ(count([](Filter& f) { f.dsos = {"/bin/one"}; }), 1u);
  EXPECT_EQ(count([](Filter& f) { f.dsos = {"two", "one"}; }), 2u);
  EXPECT_EQ(count([](Filter& f) { f.dsos = {"three"}; }), 0u);
  EXPECT_EQ(count([](Filter& f) { f.symbols = {"2010"}; }), 1u) << "an address";
  EXPECT_EQ(count([](Filter& f) { f.symbols = {"0x2000"}, f.symbol_range = 0x11; }), 1u);
  EXPECT_EQ(count([](Filter& f) { f.symbols = {"0x2000"}, f.symbol_range = 0x10; }), 0u);
  EXPECT_EQ(count([](Filter& f) { f.symbol_part = "x"; }), 0u)
      << "locations without a name have no such part";
}

// What a sink was given of one sample's stack: the addresses.
std::vector<std::uint64_t> lbr_chain(const SampleFields& fields, std::uint64_t branch_sample_type,
                                     std::size_t max_stack = 127) {
  CaptureBuilder capture;
  auto attr = test::software_event(abi::kCpuClock, abi::kSampleCallchain | abi::kSampleBranchStack);
  attr.branch_sample_type = branch_sample_type;
  capture.event(attr, "cpu-clock", {1}).sample(fields);
  const test::TemporaryFile file(capture.file());
  SessionOptions options;
  options.input = file.path();
  options.max_stack = max_stack;
  auto session = Session::open(options);
  class Addresses : public Sink {
   public:
    explicit Addresses(Session& session) : session_(&session) {}
    Flow on_sample(const ResolvedSample& sample) override {
      for (const LocationId number : sample.stack->frames)
        found.push_back(session_->resolver().location(number).ip.value);
      own = sample.location->ip.value;
      return Flow::Continue;
    }
    std::vector<std::uint64_t> found;
    std::uint64_t own = 0;

   private:
    Session* session_;
  } sink(*session);
  session->run(sink);
  EXPECT_EQ(sink.own, fields.ip);
  return sink.found;
}

TEST(Session, TheUserPartOfAChainIsTheCallsThatTheProcessorKept) {
  SampleFields fields = at(10);
  const std::uint64_t kernel = 0xffffffff81000000;
  fields.callchain = {abi::kContextKernel, kernel, kernel + 16, abi::kContextUser, 0x1000, 0x1111};
  fields.branches = {{0x2010, 0x1004}, {0x3010, 0x2000}, {0x4010, 0x3000}};
  const std::vector<std::uint64_t> calls{kernel, kernel + 16, 0x1004, 0x2010, 0x3010, 0x4010};
  const std::vector<std::uint64_t> recorded{kernel, kernel + 16, 0x1000, 0x1111};
  EXPECT_EQ(lbr_chain(fields, abi::kBranchCallStack), calls);
  EXPECT_EQ(lbr_chain(fields, 0), recorded) << "branches that are no calls are no chain";
  EXPECT_EQ(lbr_chain(fields, abi::kBranchCallStack, 4), calls)
      << "perf limits the words before, not the calls";
  EXPECT_EQ(lbr_chain(fields, abi::kBranchCallStack, 2), (std::vector<std::uint64_t>{kernel, kernel + 16}));
  fields.callchain = {abi::kContextUser, 0x1000, 0x1111};
  EXPECT_EQ(lbr_chain(fields, abi::kBranchCallStack),
            (std::vector<std::uint64_t>{0x1004, 0x2010, 0x3010, 0x4010}));
}

TEST(Session, ARecordOfAnUnknownEventMakesTheResultIncomplete) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.event(test::software_event(abi::kPageFaults), "page-faults", {2});
  SampleFields fields = at(10);
  fields.id = 99;
  capture.sample(fields).sample(at(20));
  const Ran ran = run(capture.file());
  EXPECT_EQ(ran.sink.lines.size(), 1u);
  EXPECT_TRUE(ran.session->diagnostics().incomplete());
}

TEST(Session, LossesAreCountedAndTold) {
  CaptureBuilder capture;
  const auto attr = test::software_event(abi::kCpuClock);
  capture.event(attr, "cpu-clock", {1});
  format::write_lost_samples(capture.data(), 7, attr, 1);
  capture.sample(at(20));
  const Ran ran = run(capture.file());
  EXPECT_EQ(ran.session->lost_samples(), 7u);
  ASSERT_EQ(ran.session->diagnostics().findings().size(), 1u);
  EXPECT_EQ(ran.session->diagnostics().findings()[0].kind, format::Damage::Lost);
  EXPECT_EQ(ran.session->diagnostics().findings()[0].count, 7u);
}

// In a pid namespace, the kernel writes pid and tid 0 for all processes outside of it.
CaptureBuilder capture_of_a_namespace() {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  const auto add = [&capture](std::uint64_t time, std::uint32_t pid, std::uint16_t cpumode,
                              std::vector<std::uint64_t> chain) {
    SampleFields fields = at(time, pid);
    fields.misc = cpumode;
    fields.callchain = std::move(chain);
    capture.sample(fields);
  };
  const std::uint64_t kKernelCode = 0xffffffff81000010;
  add(5, 0, abi::kCpumodeKernel, {abi::kContextKernel, kKernelCode});
  capture.comm(0, 0, "alpha").mmap(0, 0x1000, 0x1000, 0, "/bin/alpha");
  capture.comm(0, 0, "beta").mmap(0, 0x1000, 0x1000, 0, "/bin/beta");
  capture.comm(5, 5, "inside").mmap(5, 0x1000, 0x1000, 0, "/bin/inside");
  add(10, 0, abi::kCpumodeUser, {abi::kContextUser, 0x1000});
  add(20, 0, abi::kCpumodeKernel, {abi::kContextKernel, kKernelCode, abi::kContextUser, 0x1000});
  add(30, 0, abi::kCpumodeKernel, {abi::kContextKernel, kKernelCode});
  add(40, 5, abi::kCpumodeUser, {abi::kContextUser, 0x1000});
  return capture;
}

TEST(Session, ProcessesOutsideOfThePidNamespaceAreUnknownAndReported) {
  const Ran ran = run(capture_of_a_namespace().file());
  EXPECT_EQ(ran.sink.lines,
            (std::vector<std::string>{"[idle or outside] 5 1 cpu-clock #1", "[outside] 10 1 cpu-clock #1",
                                      "[outside] 20 1 cpu-clock #2", "[idle or outside] 30 1 cpu-clock #1",
                                      "inside 40 1 cpu-clock #1"}));
  const auto& findings = ran.session->diagnostics().findings();
  const auto found = std::ranges::find(findings, format::Damage::Outside, &format::Finding::kind);
  ASSERT_NE(found, findings.end());
  EXPECT_EQ(found->count, 2u);
  EXPECT_FALSE(ran.session->diagnostics().incomplete());
}

TEST(Session, ProcessesOutsideOfThePidNamespaceHaveTheirLastNameAsInPerfIfItIsKept) {
  SessionOptions options;
  options.symbols.keeps_pid_zero = true;
  const Ran ran = run(capture_of_a_namespace().file(), options);
  ASSERT_EQ(ran.sink.lines.size(), 5u);
  EXPECT_EQ(ran.sink.lines[1], "beta 10 1 cpu-clock #1");
  EXPECT_TRUE(ran.session->diagnostics().findings().empty());
}

TEST(Session, ALossToldByTheKernelAndByTheRecorderIsOneLoss) {
  CaptureBuilder capture;
  const auto attr = test::software_event(abi::kCpuClock);
  capture.event(attr, "cpu-clock", {1});
  const std::size_t start = capture.data().size();
  capture.data().u32(abi::kRecordLost).u16(0).u16(0).u64(1).u64(9).zeros(format::sample_id_size(attr));
  capture.data().patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(capture.data().size() - start));
  format::write_lost_samples(capture.data(), 7, attr, 1);  // two of the nine were no samples
  capture.sample(at(20));
  const Ran ran = run(capture.file());
  EXPECT_EQ(ran.session->lost_samples(), 7u);
  ASSERT_EQ(ran.session->diagnostics().findings().size(), 1u);
  EXPECT_EQ(ran.session->diagnostics().findings()[0].count, 9u);
}

TEST(Session, ASinkCanStopTheReading) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.sample(at(10)).sample(at(20)).sample(at(30));
  const test::TemporaryFile file(capture.file());
  Collector sink;
  sink.stop_after = 2;
  run_into(sink, file.path());
  EXPECT_EQ(sink.lines.size(), 2u);
}

// What session.h does on two threads where there are two processors: samples with call chains, shown by name.
class NamesCollector : public Collector {
 public:
  bool takes_non_samples() const override { return false; }
};

// Rounds of one sample each; a kernel mapping, for which the reading thread waits until all is shown, after
// each `mappings_every`.
CaptureBuilder capture_of_rounds(std::uint64_t samples, std::uint64_t mappings_every) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  SampleFields fields = at(0);
  fields.callchain = {abi::kContextKernel, 0xffffffff81000000, abi::kContextUser, 0x1000};
  for (std::uint64_t i = 1; i <= samples; ++i) {
    fields.time = 10 * i;
    capture.sample(fields).round();
    if (i % mappings_every == 0)
      capture.mmap(~0U, 0xffffffffc0000000 + 0x1000 * i, 0x1000, 0, "[module]", abi::kCpumodeKernel);
  }
  return capture;
}

TEST(Session, KernelMappingsInTheMiddleMakeNewStacksInTheOrderOfTime) {
  const test::TemporaryFile file(capture_of_rounds(4000, 500).file());
  NamesCollector sink;
  run_into(sink, file.path());
  ASSERT_EQ(sink.lines.size(), 4000u);
  EXPECT_EQ(sink.lines.front(), ":5 10 1 cpu-clock #2");
  EXPECT_EQ(sink.lines.back(), ":5 40000 1 cpu-clock #2");
  EXPECT_TRUE(std::ranges::is_sorted(sink.stacks));
  EXPECT_EQ(index_of(sink.stacks.back()), 8u) << "one stack for each state of the kernel's mappings";
}

TEST(Session, ASinkCanStopWhileTheReaderWaitsForWhatIsShown) {
  const test::TemporaryFile file(capture_of_rounds(20'000, 100).file());
  for (const std::size_t stop_after : {1U, 99U, 100U, 101U, 1024U, 19'999U}) {
    NamesCollector sink;
    sink.stop_after = stop_after;
    run_into(sink, file.path());
    EXPECT_EQ(sink.lines.size(), stop_after);
  }
}

TEST(Session, ANameThatChangesInTheMiddleOfAFileIsNotReadWhileItChanges) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor: one thread, in step";
  CaptureBuilder capture = capture_of_rounds(3000, 3001);
  const std::size_t start = capture.data().size();
  capture.data().u32(abi::kRecordEventUpdate).u16(0).u16(0).u64(2).u64(1);
  capture.data().padded_text("a name that is longer than the one before it", 8);
  capture.data().patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(capture.data().size() - start));
  const test::TemporaryFile file(capture.file());
  NamesCollector sink;
  run_into(sink, file.path());
  ASSERT_EQ(sink.lines.size(), 3000u);
  for (const std::string& line : sink.lines) ASSERT_NE(line.find(" cpu-clock "), std::string::npos) << line;
}

TEST(Session, APipesEventsAreKnownByTheFirstSample) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "clock", {1});
  capture.comm(5, 5, "dd").sample(at(10));
  EXPECT_EQ(run(capture.pipe()).sink.lines, std::vector<std::string>{"dd 10 1 clock"});
}

TEST(Session, AMissingFileIsAnErrorThatNamesIt) {
  SessionOptions options;
  options.input = "/nonexistent/capture.data";
  const auto session = Session::open(options);
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().what.find("/nonexistent/capture.data"), std::string::npos);
  EXPECT_EQ(session.error().fault, Fault::Input);
}

// One line as perf prints it, put together from a capture in view.
TEST(ScriptText, PrintsALineWithoutCallChain) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.comm(5, 5, "evil\x1b[0m").sample(at(1'409'539'822'999));
  const test::TemporaryFile file(capture.file());
  SessionOptions options;
  options.input = file.path();
  auto session = Session::open(options);
  ASSERT_TRUE(session);
  FieldChoice fields;
  ASSERT_TRUE(fields.settle(session->events(), {"cpu-clock"}, CallChains::Show, Origin::File));
  class Writer : public Sink {
   public:
    explicit Writer(ScriptText text) : text_(std::move(text)) {}
    Flow on_sample(const ResolvedSample& sample) override {
      text_.write(out, sample);
      return Flow::Continue;
    }
    TextBuffer out;

   private:
    ScriptText text_;
  } writer(ScriptText(*session, fields, Names::Safe,
                      TimeText(TimeDigits::Microseconds, TimeBase::Clock, std::nullopt)));
  session->run(writer);
  EXPECT_EQ(writer.out.view(),
            "     evil\\x1b[0m     5 [000]  1409.539822:          1 cpu-clock:              1000 [unknown] "
            "([unknown])\n");
}

TEST(BpfOutput, DumpsEightBytesALineAndTheTextIfItIsOne) {
  TextBuffer out;
  const std::string_view text("plain str\0\0\0", 12);
  write_bpf_output(out, std::as_bytes(std::span(text)), Names::Safe);
  EXPECT_EQ(out.view(),
            "\n      BPF output: 0000: 70 6c 61 69 6e 20 73 74  plain st\n"
            "                  0008: 72 00 00 00              r...    \n"
            "      BPF string: \"plain str\"\n");
}

TEST(BpfOutput, HighBytesGoThroughOnlyWhenAskedFor) {
  const std::string_view bytes("\xc4\x80", 2);
  TextBuffer safe, raw;
  write_bpf_output(safe, std::as_bytes(std::span(bytes)), Names::Safe);
  write_bpf_output(raw, std::as_bytes(std::span(bytes)), Names::Raw);
  EXPECT_NE(safe.view().find("  ..      \n"), std::string_view::npos);
  EXPECT_NE(raw.view().find("  \xc4.      \n"), std::string_view::npos);
}

}  // namespace
}  // namespace tacho::report
