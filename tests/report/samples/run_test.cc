// What two threads see while a session runs, progress, and cancelling. ThreadSanitizer runs these too.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "format/extensions/attachment.h"
#include "report/samples/session.h"
#include "report/samples/sum_view.h"
#include "report/samples/text_view.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using test::CaptureBuilder;

enum class Others : std::uint8_t { No, Yes };  // records other than samples

// Counts samples; looks at everything of the header and the names that a view may look at.
class Looker : public Sink {
 public:
  explicit Looker(Session& session, Others which = Others::No, std::size_t most = ~std::size_t{0})
      : session_(&session), others_(which), most_(most) {}
  bool takes_non_samples() const override { return others_ == Others::Yes; }
  Flow on_sample(const ResolvedSample& sample) override {
    const format::Features& features = session_->features();
    found += features.attachment("perf-map/" + std::to_string(samples)) != nullptr ? 1 : 0;
    found += features.tracing.formats.size() + features.environment.hostname.value_or("").size();
    names += sample.event().name.size() + sample.comm.size() + sample.thread->comm.size();
    for (const symbolize::Frame& frame : session_->resolver().frames(*sample.location))
      names += frame.function.size();
    return ++samples == most_ ? Flow::Stop : Flow::Continue;
  }
  Flow on_non_sample(const NonSampleRecord&) override {
    ++others;
    return Flow::Continue;
  }
  std::size_t samples = 0, others = 0, found = 0, names = 0;

 private:
  Session* session_;
  Others others_;
  std::size_t most_;
};

Result<Session> open(const test::TemporaryFile& file) {
  SessionOptions options;
  options.input = file.path();
  options.symbols.symfs = "/proc/self/fdinfo";  // a folder without any of the binaries
  return Session::open(options);
}

test::SampleFields sample_at(std::uint64_t time) {
  test::SampleFields fields;
  fields.id = 1;
  fields.pid = fields.tid = 5;
  fields.time = time;
  fields.ip = 0x1000;
  fields.callchain = {abi::kContextUser, 0x1000, 0x1010};
  return fields;
}

CaptureBuilder capture_with_stacks() {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  capture.comm(5, 5, "dd").mmap(5, 0x1000, 0x1000, 0, "/bin/one");
  return capture;
}

void add_feature_record(CaptureBuilder& capture, std::uint32_t feature, format::Bytes body) {
  capture.data().u32(abi::kRecordHeaderFeature).u16(0);
  capture.data().u16(static_cast<std::uint16_t>(16 + body.size())).u64(feature).bytes(body);
}

// Records in a file's data that would change the header, among the samples: another thread looks at the
// header.
CaptureBuilder capture_that_changes_its_header(std::size_t samples) {
  CaptureBuilder capture = capture_with_stacks();
  format::ByteWriter attachments, host;
  std::vector<format::Attachment> files;
  for (int i = 0; i < 8; ++i)
    files.push_back(*format::pack_attachment("perf-map/" + std::to_string(i), "/tmp/x", {}));
  format::write_attachments(attachments, files);
  host.header_string("a host whose name is long enough to be stored on the heap");
  for (std::size_t i = 1; i <= samples; ++i) {
    capture.sample(sample_at(10 * i)).round();
    add_feature_record(capture, abi::kFeatureAttachments, attachments.view());
    add_feature_record(capture, abi::kFeatureHostname, host.view());
    format::ByteWriter& data = capture.data();
    const std::size_t start = data.size();
    data.u32(abi::kRecordEventUpdate).u16(0).u16(0).u64(2).u64(1);
    data.padded_text("a name that is longer than the one before it", 8);
    data.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(data.size() - start));
    data.u32(abi::kRecordTracingData).u16(0).u16(16).u32(8).u32(0).zeros(8);
  }
  return capture;
}

TEST(Run, NoRecordOfAFileChangesTheHeaderThatIsShown) {
  constexpr std::size_t kSamples = 10'000;
  const test::TemporaryFile file(capture_that_changes_its_header(kSamples).file());
  for (const Others others : {Others::No, Others::Yes}) {
    auto session = open(file);
    ASSERT_TRUE(session);
    Looker sink(*session, others);
    session->run(sink);
    EXPECT_EQ(sink.samples, kSamples);
    EXPECT_EQ(sink.found, 0u) << "features in records are no part of the file's header";
    ASSERT_TRUE(session->diagnostics().incomplete());
    const auto& finding = session->diagnostics().findings()[0];
    EXPECT_EQ(finding.kind, format::Damage::BadFeature);
    EXPECT_EQ(finding.count, 4 * kSamples);
    EXPECT_NE(finding.first.find("record in a file"), std::string::npos) << finding.first;
  }
}

TEST(Run, NamesThatChangeAreThoseOfTheSamplesTimeAndTheLastAfterTheRun) {
  CaptureBuilder capture = capture_with_stacks();
  constexpr std::uint64_t kSamples = 20'000;
  for (std::uint64_t i = 1; i <= kSamples; ++i) {
    capture.sample(sample_at(10 * i)).round();
    if (i % 2 == 0) capture.comm(5, 5, i % 4 == 0 ? "a" : "a name that is not short");
    if (i % 100 == 0) capture.mmap(5, 0x1000, 0x1000, 0, "/bin/" + std::to_string(i % 7));
    if (i % 1000 == 0) capture.mmap(~0U, 0xffffffffc0000000 + i, 64, 0, "[module]", abi::kCpumodeKernel);
  }
  const test::TemporaryFile file(capture.file());
  auto session = open(file);
  ASSERT_TRUE(session);
  class Comms : public Sink {
   public:
    bool takes_non_samples() const override { return false; }
    Flow on_sample(const ResolvedSample& sample) override {
      ++seen[std::string(sample.comm)];
      during = sample.thread->comm;
      thread = sample.thread;
      return Flow::Continue;
    }
    std::map<std::string, std::uint64_t> seen;
    std::string during;
    const Thread* thread = nullptr;
  } sink;
  session->run(sink);
  EXPECT_EQ(sink.seen["a"] + sink.seen["a name that is not short"] + sink.seen["dd"], kSamples);
  EXPECT_GT(sink.seen["a"], 0u);
  EXPECT_EQ(sink.during, "dd") << "while the session runs, a thread has the name it was first met with";
  EXPECT_EQ(sink.thread->comm, "a") << "and afterwards its last";
}

// What a view that shows functions alone gets: equal to what all others get, but for addresses of a function.
class Functions : public Sink {
 public:
  Functions(Session& session, MergeBy merge_by) : session_(&session), merge_by_(merge_by) {}
  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override { return merge_by_; }
  Flow on_sample(const ResolvedSample& sample) override {
    starts.push_back({sample.fields->ip, sample.fields->pid, sample.fields->tid, sample.fields->cpu,
                      sample.period, sample.fields->misc, sample.event_index});
    numbers.push_back(sample.location->id);
    distinct.insert(sample.location->id);
    return Flow::Continue;
  }
  // After the run.
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const symbolize::Frame& frame = session_->resolver().frame(session_->resolver().location(numbers[i]));
      all.push_back(frame.function.empty() ? "at " + std::to_string(frame.ip.value)
                                           : std::string(frame.function));
    }
    return all;
  }
  std::vector<std::array<std::uint64_t, 7>> starts;
  std::vector<LocationId> numbers;
  std::set<LocationId> distinct;

 private:
  Session* session_;
  MergeBy merge_by_;
};

TEST(Run, AViewMergedByFunctionGetsOneLocationForEachAndTheSameNames) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock), "cpu-clock", {1});
  capture.comm(5, 5, "java").mmap(5, 0x1000, 0x2000, 0, "//anon");
  const std::string map = "1000 100 one\n1100 80 two\n1200 100 three\n";
  std::vector<std::byte> text;
  for (const char c : map) text.push_back(static_cast<std::byte>(c));
  format::ByteWriter attachments;
  format::write_attachments(attachments, std::vector{*format::pack_attachment("perf-map/5", "/tmp/x", text)});
  capture.feature(abi::kFeatureAttachments, std::move(attachments).take_bytes());
  constexpr std::uint64_t kSamples = 20'000;
  for (std::uint64_t i = 1; i <= kSamples; ++i) {
    test::SampleFields fields;
    fields.id = 1;
    fields.pid = 5;
    fields.tid = static_cast<std::uint32_t>(5 + i % 3);
    fields.cpu = static_cast<std::uint32_t>(i % 2);
    fields.period = i;
    fields.time = 1000 + (i ^ 3);
    fields.ip = 0x1000 + i * 11 % 0x310;  // some of it in no function
    capture.sample(fields);
    if (i % 64 == 0) capture.round();
    if (i == kSamples / 2) capture.mmap(5, 0x1200, 0x100, 0, "/bin/none");  // "three" is gone
  }
  const test::TemporaryFile file(capture.file());
  auto by_address = open(file), by_function = open(file);
  ASSERT_TRUE(by_address && by_function);
  Functions all(*by_address, Sink::MergeBy::Address);
  Functions few(*by_function, Sink::MergeBy::Function);
  by_address->run(all);
  by_function->run(few);
  ASSERT_EQ(all.starts.size(), kSamples);
  EXPECT_EQ(all.starts, few.starts);
  EXPECT_EQ(all.names(), few.names());
  EXPECT_EQ(std::ranges::count(few.names(), "one"), std::ranges::count(all.names(), "one"));
  EXPECT_GT(std::ranges::count(few.names(), "one"), 100);
  EXPECT_GT(all.distinct.size(), 0x310u);
  EXPECT_LT(few.distinct.size(), 0x230u) << "three functions, and addresses without a name";
}

// Keeps the stacks of samples, for after the run.
class MergedStacks : public Sink {
 public:
  MergedStacks(Session& session, MergeBy merge_by) : session_(&session), merge_by_(merge_by) {}
  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override { return merge_by_; }
  Flow on_sample(const ResolvedSample& sample) override {
    stacks.push_back(sample.stack);
    distinct.insert(sample.stack->id);
    return Flow::Continue;
  }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const Stack* const stack : stacks) {
      std::string& text = all.emplace_back();
      for (const LocationId number : stack->frames) {
        const symbolize::Frame& frame = session_->resolver().frames(session_->resolver().location(number))[0];
        text += frame.function.empty() ? "?;" : std::string(frame.function) + ";";
      }
    }
    return all;
  }
  std::vector<const Stack*> stacks;
  std::set<StackId> distinct;

 private:
  Session* session_;
  MergeBy merge_by_;
};

TEST(Run, AViewOfNamesGetsOneStackForEachChainOfNames) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  capture.comm(5, 5, "java").mmap(5, 0x1000, 0x1000, 0, "//anon").mmap(5, 0x8000, 0x1000, 0, "/bin/none");
  const std::string map = "1000 100 one\n1100 80 two\n1200 100 three\n";
  format::ByteWriter attachments;
  const auto text = std::as_bytes(std::span(map));
  format::write_attachments(attachments, std::vector{*format::pack_attachment("perf-map/5", "/tmp/x", text)});
  capture.feature(abi::kFeatureAttachments, std::move(attachments).take_bytes());
  constexpr std::uint64_t kSamples = 20'000;
  for (std::uint64_t i = 1; i <= kSamples; ++i) {
    test::SampleFields fields = sample_at(1000 + i);
    // In a function or in a gap of the map, in a file without names, and where nothing is mapped.
    fields.callchain = {abi::kContextUser, 0x1000 + i * 11 % 0x310, 0x8001 + i % 0x700, 0x20000 + i * 7,
                        0x1001 + i * 5 % 0x80};
    fields.ip = fields.callchain[1];
    capture.sample(fields);
    if (i % 64 == 0) capture.round();
  }
  const test::TemporaryFile file(capture.file());
  auto by_address = open(file), by_name = open(file);
  ASSERT_TRUE(by_address && by_name);
  MergedStacks all(*by_address, Sink::MergeBy::Address);
  MergedStacks few(*by_name, Sink::MergeBy::Name);
  by_address->run(all);
  by_name->run(few);
  ASSERT_EQ(all.stacks.size(), kSamples);
  EXPECT_EQ(all.names(), few.names());
  EXPECT_GT(std::ranges::count(few.names(), "two;?;?;one;"), 100);
  EXPECT_GT(all.distinct.size(), 10'000u);
  EXPECT_EQ(few.distinct.size(), 4u) << "one, two, three, and what has no name";
}

TEST(Run, ProgressIsToldOnTheCallersThreadAndGrows) {
  CaptureBuilder capture = capture_with_stacks();
  for (std::uint64_t i = 1; i <= 30'000; ++i) capture.sample(sample_at(10 * i)).round();
  const std::vector<std::byte> bytes = capture.file();
  const test::TemporaryFile file(bytes);
  for (const Others others : {Others::No, Others::Yes}) {
    auto session = open(file);
    ASSERT_TRUE(session);
    Looker sink(*session, others);
    std::vector<std::uint64_t> shown;
    const auto here = std::this_thread::get_id();
    RunControl control;
    control.progress = [&](const ReadProgress& progress) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      EXPECT_EQ(progress.bytes_total, bytes.size());
      shown.push_back(progress.bytes_read);
    };
    session->run(sink, control);
    EXPECT_GE(shown.size(), bytes.size() / (2 << 20)) << "with each batch";
    EXPECT_TRUE(std::ranges::is_sorted(shown));
    EXPECT_LE(shown.back(), bytes.size());
  }
}

TEST(Run, CancellingEndsItBeforeTheNextBatch) {
  CaptureBuilder capture = capture_with_stacks();
  constexpr std::uint64_t kSamples = 50'000;
  for (std::uint64_t i = 1; i <= kSamples; ++i) capture.sample(sample_at(10 * i)).round();
  const test::TemporaryFile file(capture.file());
  for (const Others others : {Others::No, Others::Yes}) {
    auto session = open(file);
    ASSERT_TRUE(session);
    Looker sink(*session, others);
    std::stop_source stop;
    RunControl control;
    control.cancel = stop.get_token();
    control.progress = [&](const ReadProgress&) { stop.request_stop(); };
    session->run(sink, control);
    EXPECT_LT(sink.samples, kSamples / 2);
  }
}

}  // namespace
}  // namespace tacho::report
