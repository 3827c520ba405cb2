// Views that several threads make: for any number of threads they are given the same as one reads by hand,
// from captures whose mappings, threads and names change under running samples. ThreadSanitizer runs these
// too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/extensions/attachment.h"
#include "format/extensions/payload_schema.h"
#include "report/samples/session.h"
#include "report/samples/sum_view.h"
#include "report/samples/text_view.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using test::CaptureBuilder;

// A record of a made capture.
struct Made {
  enum class Kind : std::uint8_t { Sample, Mmap, KernelMmap, Comm, Exec, Fork, Damaged, Lost } kind{};
  std::uint64_t time = 0;
  std::uint32_t pid = 0, tid = 0, parent = 0;
  std::uint64_t start = 0, size = 0, offset = 0, period = 0;
  std::string name;                  // of a file or a thread
  std::vector<std::uint64_t> chain;  // with marks
  std::uint64_t ip = 0;
  std::uint16_t mode = abi::kCpumodeUser;
};

constexpr std::uint64_t kKernel = 0xffffffff81000000;

class Maker {
 public:
  explicit Maker(std::uint32_t seed) : random_(seed) {}

  std::vector<Made> records(std::size_t count) {
    std::vector<Made> all;
    for (std::size_t i = 0; i < count; ++i) {
      Made made = next();
      made.time = time_ += 1 + below(5);
      all.push_back(std::move(made));
    }
    return all;
  }
  std::uint32_t below(std::uint32_t limit) {
    return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random_);
  }

 private:
  std::uint32_t pid() { return 10 + below(6); }
  Made next() {
    Made made;
    made.pid = pid();
    made.tid = made.pid + (below(3) == 0 ? 100 : 0);
    const std::uint32_t what = below(100);
    if (what < 4) {
      made.kind = Made::Kind::Mmap;
      made.start = 0x1000 * (1 + below(24));
      made.size = 0x1000 * (1 + below(4));
      made.offset = 0x1000 * below(3);
      made.name = "/bin/" + std::string(1, static_cast<char>('a' + below(5)));
    } else if (what < 6) {
      made.kind = below(2) == 0 ? Made::Kind::Comm : Made::Kind::Exec;
      made.name = "name" + std::to_string(below(7));
    } else if (what < 8) {
      made.kind = Made::Kind::Fork;
      made.parent = pid();
      made.tid = made.pid;
      if (made.parent == made.pid) made.kind = Made::Kind::Comm, made.name = "same";
    } else if (what == 8 && below(4) == 0) {
      made.kind = Made::Kind::KernelMmap;
      made.start = kKernel + 0x1000 * below(8);
      made.size = 0x1000;
      made.name = "[module" + std::to_string(below(3)) + "]";
    } else if (what == 9) {
      made.kind = below(2) == 0 ? Made::Kind::Damaged : Made::Kind::Lost;
    } else {
      fill_sample(made);
    }
    return made;
  }
  std::uint64_t address() { return 0x1000 + 0x40 * below(0x6c0); }
  void fill_sample(Made& made) {
    made.period = below(4);
    const bool is_kernel = below(4) == 0;
    made.mode = is_kernel ? abi::kCpumodeKernel : abi::kCpumodeUser;
    made.ip = is_kernel ? kKernel + 0x100 * below(0x90) : address();
    if (is_kernel) made.chain = {abi::kContextKernel, made.ip, kKernel + 0x100 * below(0x90)};
    if (below(10) != 0)
      made.chain.insert(made.chain.end(), {abi::kContextUser, is_kernel ? address() : made.ip});
    for (std::uint32_t more = below(5); more > 0; --more)
      made.chain.push_back(address() & ~std::uint64_t{0x3ff});
    if (below(50) == 0) made.chain = {~std::uint64_t{0} - 7, made.ip};  // an unknown mark: corrupt
    if (below(20) == 0) made.chain.clear();
  }
  std::mt19937 random_;
  std::uint64_t time_ = 1000;
};

void write(CaptureBuilder& capture, const Made& made) {
  format::ByteWriter& data = capture.data();
  const std::size_t trailer = 32;  // of the usual event: pid and tid, time, processor, identifier
  switch (made.kind) {
    case Made::Kind::Sample:
    case Made::Kind::Damaged: {
      test::SampleFields fields;
      fields.id = 1;
      fields.ip = made.ip;
      fields.pid = made.pid;
      fields.tid = made.tid;
      fields.time = made.time;
      fields.period = made.period;
      fields.callchain = made.chain;
      fields.misc = made.mode;
      const std::size_t begin = data.size();
      capture.sample(fields);
      // It says that it has more addresses than it has room for.
      if (made.kind == Made::Kind::Damaged) data.patch<std::uint64_t>(begin + 56, 77);
      return;
    }
    case Made::Kind::Mmap:
      capture.mmap(made.pid, made.start, made.size, made.offset, made.name);
      break;
    case Made::Kind::KernelMmap:
      capture.mmap(~0U, made.start, made.size, 0, made.name, abi::kCpumodeKernel);
      break;
    case Made::Kind::Comm:
    case Made::Kind::Exec:
      format::write_comm(data, {made.pid, made.tid, made.name, made.kind == Made::Kind::Exec}, trailer);
      break;
    case Made::Kind::Fork:
      format::write_fork(data,
                         {.pid = made.pid,
                          .parent_pid = made.parent,
                          .tid = made.tid,
                          .parent_tid = made.parent,
                          .time = made.time},
                         trailer);
      break;
    case Made::Kind::Lost: {
      const std::size_t begin = data.size();
      data.u32(abi::kRecordLost).u16(0).u16(0).u64(1).u64(3).zeros(trailer);
      data.patch<std::uint16_t>(begin + 6, static_cast<std::uint16_t>(data.size() - begin));
      break;
    }
  }
  data.patch<std::uint64_t>(data.size() - 24, made.time);
  data.patch<std::uint64_t>(data.size() - 8, 1);
}

// Each record stands in the round of its time or, late, in the next one, after others or before them.
std::vector<std::byte> capture_of(const std::vector<Made>& records, Maker& maker, std::size_t per_round) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  std::vector<const Made*> late;
  for (std::size_t begin = 0; begin < records.size() || !late.empty(); begin += per_round) {
    std::vector<const Made*> now = std::exchange(late, {});
    for (std::size_t i = begin; i < std::min(begin + per_round, records.size()); ++i)
      (maker.below(8) == 0 ? late : now).push_back(&records[i]);
    const bool is_swapped = maker.below(2) == 0;  // two processors' rings
    const auto middle =
        std::stable_partition(now.begin(), now.end(), [&](const Made*) { return maker.below(2) == 0; });
    if (is_swapped) std::rotate(now.begin(), middle, now.end());
    for (const Made* made : now) write(capture, *made);
    capture.round();
  }
  return capture.file();
}

// Text of a location in these tests.
std::string shown(std::string_view path, std::uint64_t address) {
  return std::string(path) + "+" + std::to_string(address);
}

// Reads made records one by one, with a list of mappings for each process.
class ByHand {
 public:
  struct Sample {
    std::string comm;
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t period = 0;
    std::string location, frames;
  };
  std::vector<Sample> samples;
  std::size_t damaged = 0, lost = 0;

  void take(const Made& made) {
    switch (made.kind) {
      case Made::Kind::Sample:
        samples.push_back(
            {comm(made.tid), made.pid, made.tid, made.period, at(made.pid, made.ip, made.mode), chain(made)});
        break;
      case Made::Kind::Damaged:
        ++damaged;
        break;
      case Made::Kind::Lost:
        lost += 3;
        break;
      case Made::Kind::Mmap:
        thread(made.tid, made.pid);
        map(processes_[made.pid], {made.start, made.start + made.size, made.offset, made.name});
        break;
      case Made::Kind::KernelMmap:
        map(kernel_, {made.start, made.start + made.size, made.start, made.name});
        break;
      case Made::Kind::Comm:
      case Made::Kind::Exec:
        comms_[made.tid] = made.name;
        break;
      case Made::Kind::Fork:
        processes_[made.pid] = processes_[made.parent];
        if (comms_.contains(made.parent))
          comms_[made.tid] = comms_[made.parent];
        else
          comms_.erase(made.tid);
        break;
    }
  }

 private:
  struct Mapping {
    std::uint64_t begin = 0, end = 0, offset = 0;
    std::string path;
  };
  using Mappings = std::vector<Mapping>;
  static void map(Mappings& all, const Mapping& made) {
    Mappings kept;
    for (const Mapping& old : all) {
      if (old.begin < made.begin && old.end > old.begin)
        kept.push_back({old.begin, std::min(old.end, made.begin), old.offset, old.path});
      if (old.end > made.end) {
        const std::uint64_t begin = std::max(old.begin, made.end);
        kept.push_back({begin, old.end, old.offset + (begin - old.begin), old.path});
      }
    }
    kept.push_back(made);
    all = std::move(kept);
  }
  void thread(std::uint32_t, std::uint32_t) {}
  std::string comm(std::uint32_t tid) const {
    const auto known = comms_.find(tid);
    return known == comms_.end() ? ":" + std::to_string(tid) : known->second;
  }
  // `before`: 1 for a return address, which is looked up in the call before it.
  std::string at(std::uint32_t pid, std::uint64_t ip, std::uint16_t mode, std::uint64_t before = 0) {
    const Mappings& all = mode == abi::kCpumodeKernel ? kernel_ : processes_[pid];
    for (const Mapping& one : all)
      if (ip - before >= one.begin && ip - before < one.end)
        return shown(one.path, mode == abi::kCpumodeKernel ? ip : ip - one.begin + one.offset);
    return shown("?", ip);
  }
  std::string chain(const Made& made) {
    std::string text;
    std::uint16_t mode = abi::kCpumodeUser;
    bool is_return = false;
    for (const std::uint64_t word : made.chain) {
      if (word == abi::kContextKernel || word == abi::kContextUser) {
        mode = word == abi::kContextKernel ? abi::kCpumodeKernel : abi::kCpumodeUser;
        is_return = false;
      } else if (word >= abi::kContextMax) {
        return "";
      } else {
        text += at(made.pid, word, mode, is_return ? 1 : 0) + ";";
        is_return = true;
      }
    }
    return text;
  }
  std::map<std::uint32_t, Mappings> processes_;
  std::map<std::uint32_t, std::string> comms_;
  Mappings kernel_;
};

std::string shown(const Location& location) {
  return location.mapping == nullptr
             ? shown("?", location.ip.value)
             : shown(location.mapping->module->path, location.mapping->shown_address(location.ip));
}

struct Total {
  std::uint64_t period = 0, samples = 0;
  bool operator==(const Total&) const = default;
};

// Sums by text, in the order of first samples.
struct Totals {
  std::vector<std::pair<std::string, Total>> rows;
  std::map<std::string, std::size_t> numbers;
  std::size_t of(const std::string& text) {
    const auto [row, is_new] = numbers.try_emplace(text, rows.size());
    if (is_new) rows.push_back({text, {}});
    return row->second;
  }
};

class Summed : public Sink, public SumView {
 public:
  Summed(Session& session, SumShape shape) : session_(&session), shape_(shape) {}
  SumView* sum_view() override { return this; }
  Flow on_sample(const ResolvedSample&) override {
    ++others;
    return Flow::Continue;
  }
  SumShape shape() const override { return shape_; }
  MergeBy merge_by() const override { return shape_.merge_by; }
  RowId row_of(const SumGroup& row) override {
    Resolver& resolver = session_->resolver();
    std::string text;
    if (shape_.by_comm) text += std::string(row.comm) + " ";
    if (shape_.by_thread)
      text += std::to_string(row.thread->pid) + "/" + std::to_string(row.thread->tid) + " ";
    if (shape_.by_location) text += shown(resolver.location(row.location)) + " ";
    if (row.stack != nullptr)
      for (const LocationId frame : row.stack->frames) text += shown(resolver.location(frame)) + ";";
    return id_of<RowId>(totals.of(text));
  }
  void count(RowId row, std::size_t, std::uint64_t period, std::uint64_t samples) override {
    totals.rows[index_of(row)].second.period += period;
    totals.rows[index_of(row)].second.samples += samples;
  }
  Totals totals;
  std::size_t others = 0;

 private:
  Session* session_;
  SumShape shape_;
};

Totals summed_by_hand(const ByHand& read, const SumShape& shape) {
  Totals totals;
  for (const ByHand::Sample& sample : read.samples) {
    std::string text;
    if (shape.by_comm) text += sample.comm + " ";
    if (shape.by_thread) text += std::to_string(sample.pid) + "/" + std::to_string(sample.tid) + " ";
    if (shape.by_location) text += sample.location + " ";
    if (shape.by_stack) text += sample.frames;
    Total& total = totals.rows[totals.of(text)].second;
    total.period +=
        sample.period == 0 && shape.zero_periods == SumShape::ZeroPeriods::Count ? 1 : sample.period;
    ++total.samples;
  }
  return totals;
}

// Each sample's text.
class Written : public Sink, public TextView {
 public:
  class Nib : public Pen {
   public:
    explicit Nib(Session& session) : session_(&session) {}
    Flow on_sample(const ResolvedSample& sample) override {
      written_ += std::string(sample.comm) + " " + std::to_string(sample.fields->time) + " " +
                  shown(*sample.location) + " ";
      if (sample.frames)
        for (const Location& frame : *sample.frames) written_ += shown(frame) + ";";
      if (sample.stack != nullptr)
        for (const LocationId frame : sample.stack->frames)
          written_ += shown(session_->resolver().location(frame)) + ";";
      written_ += "\n";
      return Flow::Continue;
    }
    std::size_t size() const override { return written_.size(); }
    void swap_buffers() override { turned_ = std::exchange(written_, {}); }
    std::string_view turned() const { return turned_; }

   private:
    Session* session_;
    std::string written_, turned_;
  };
  explicit Written(Session& session) : session_(&session) {}
  TextView* text_view() override { return this; }
  bool takes_non_samples() const override { return false; }
  std::unique_ptr<Pen> fork(std::mutex*) override { return std::make_unique<Nib>(*session_); }
  Flow put(Pen& pen, std::size_t begin, std::size_t end) override {
    all += static_cast<Nib&>(pen).turned().substr(begin, end - begin);
    return all.size() < most ? Flow::Continue : Flow::Stop;
  }
  Flow on_sample(const ResolvedSample& sample) override {  // with one job
    if (!one_) one_.emplace(*session_);
    const Flow flow = one_->on_sample(sample);
    one_->swap_buffers();
    all += one_->turned();
    return all.size() < most ? flow : Flow::Stop;
  }
  std::string all;
  std::size_t most = ~std::size_t{0};

 private:
  Session* session_;
  std::optional<Nib> one_;
};

Result<Session> open(const test::TemporaryFile& file, unsigned jobs) {
  SessionOptions options;
  options.input = file.path();
  options.jobs = jobs;
  options.symbols.symfs = "/proc/self/fdinfo";  // a folder without any of the binaries
  return Session::open(options);
}

constexpr unsigned kJobs[] = {1, 2, 3, 8};

class Captures : public testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    Maker maker(GetParam());
    // Most are shorter than a batch, some have several.
    const std::size_t count = GetParam() % 100 == 0 ? 30'000 : 1 + maker.below(3000);
    records_ = maker.records(count);
    for (const Made& made : records_) by_hand_.take(made);
    file_.emplace(capture_of(records_, maker, 1 + maker.below(300)));
  }
  std::vector<Made> records_;
  ByHand by_hand_;
  std::optional<test::TemporaryFile> file_;
};

TEST_P(Captures, SumsAreThoseOfTheRecordsReadByHand) {
  const SumShape shapes[] = {
      {},
      {.by_stack = false},
      {.by_comm = false, .by_thread = true, .zero_periods = SumShape::ZeroPeriods::Count},
      {.by_location = false}};
  for (const SumShape& shape : shapes) {
    const Totals expected = summed_by_hand(by_hand_, shape);
    for (const unsigned jobs : kJobs) {
      auto session = open(*file_, jobs);
      ASSERT_TRUE(session);
      Summed view(*session, shape);
      session->run(view);
      EXPECT_EQ(view.others, 0u);
      ASSERT_EQ(view.totals.rows.size(), expected.rows.size()) << jobs << " jobs";
      for (std::size_t i = 0; i < expected.rows.size(); ++i) {
        ASSERT_EQ(view.totals.rows[i].first, expected.rows[i].first) << i << ", " << jobs << " jobs";
        ASSERT_EQ(view.totals.rows[i].second, expected.rows[i].second) << expected.rows[i].first;
      }
      for (const format::Finding& finding : session->diagnostics().findings()) {
        if (finding.kind == format::Damage::BadRecord) {
          EXPECT_EQ(finding.count, by_hand_.damaged);
        }
        if (finding.kind == format::Damage::Lost) {
          EXPECT_EQ(finding.count, by_hand_.lost);
        }
      }
    }
  }
}

TEST_P(Captures, TextIsThatOfTheRecordsReadByHand) {
  std::string expected;
  auto sample = by_hand_.samples.begin();
  for (const Made& made : records_) {
    if (made.kind != Made::Kind::Sample) continue;
    expected +=
        sample->comm + " " + std::to_string(made.time) + " " + sample->location + " " + sample->frames + "\n";
    ++sample;
  }
  for (const unsigned jobs : kJobs) {
    auto session = open(*file_, jobs);
    ASSERT_TRUE(session);
    Written view(*session);
    session->run(view);
    ASSERT_TRUE(view.all == expected) << jobs << " jobs";
  }
}

// script/test --long: all of them.
std::uint32_t captures() { return std::getenv("TACHO_TEST_SCALE") == nullptr ? 40 : 500; }

INSTANTIATE_TEST_SUITE_P(Random, Captures, testing::Range(0U, captures()));

TEST(ForkedViews, TextEndsWhereNobodyWantsMore) {
  Maker maker(7);
  const test::TemporaryFile file(capture_of(maker.records(60'000), maker, 200));
  std::string whole;
  for (const unsigned jobs : kJobs) {
    auto all = open(file, jobs), some = open(file, jobs);
    ASSERT_TRUE(all && some);
    Written every(*all), few(*some);
    few.most = 100'000;
    all->run(every);
    some->run(few);
    if (whole.empty()) whole = every.all;
    EXPECT_TRUE(every.all == whole);
    EXPECT_GE(few.all.size(), few.most);
    EXPECT_LT(few.all.size(), whole.size() / 2);
    EXPECT_TRUE(whole.starts_with(few.all));
  }
}

// Names of a perf map; what has none, and what is not mapped.
CaptureBuilder capture_with_names(std::uint64_t samples) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  capture.comm(5, 5, "java").mmap(5, 0x1000, 0x1000, 0, "//anon").mmap(5, 0x8000, 0x1000, 0, "/bin/none");
  const std::string map = "1000 100 one\n1100 80 two\n1200 100 three\n";
  format::ByteWriter attachments;
  const auto text = std::as_bytes(std::span(map));
  format::write_attachments(attachments, std::vector{*format::pack_attachment("perf-map/5", "/tmp/x", text)});
  capture.feature(abi::kFeatureAttachments, std::move(attachments).take_bytes());
  for (std::uint64_t i = 1; i <= samples; ++i) {
    test::SampleFields fields;
    fields.id = 1;
    fields.pid = fields.tid = 5;
    fields.time = 1000 + i;
    fields.period = i;
    fields.callchain = {abi::kContextUser, 0x1000 + i * 11 % 0x310, 0x8001 + i % 0x700, 0x20000 + i * 7,
                        0x1001 + i * 5 % 0x80};
    fields.ip = fields.callchain[1];
    capture.sample(fields);
    if (i % 64 == 0) capture.round();
  }
  return capture;
}

// A payload's stack may have no frames, where the kernel could not walk it: then samples differ by their ip.
TEST(ForkedViews, SamplesWithEmptyPayloadStacksAreApartByTheirAddresses) {
  CaptureBuilder capture;
  capture.event(test::software_event(abi::kBpfOutput, abi::kSampleRaw), "op", {1});
  capture.comm(5, 5, "one").mmap(5, 0x1000, 0x1000, 0, "/bin/one");
  format::ByteWriter schemas;
  const format::PayloadField stack{
      .name = "stack", .bit_offset = 0, .bit_size = 64, .count = 2, .is_array = true, .role = "stack"};
  format::write_payload_schemas(schemas, {{"op", "op", 16, {stack}}});
  capture.feature(abi::kFeaturePayloadSchemas, std::move(schemas).take_bytes());
  for (std::uint64_t i = 0; i < 30; ++i) {
    format::ByteWriter raw;
    raw.u64(0).u64(0).u32(0);
    test::SampleFields fields;
    fields.id = 1;
    fields.pid = fields.tid = 5;
    fields.time = 1000 + i;
    fields.ip = 0x1100 + i % 3;
    fields.raw = std::move(raw).take_bytes();
    capture.sample(fields);
  }
  const test::TemporaryFile file(capture.file());
  auto session = open(file, 2);
  ASSERT_TRUE(session);
  Summed view(*session, {});
  session->run(view);
  ASSERT_EQ(view.totals.rows.size(), 3u);
  for (const auto& [text, total] : view.totals.rows) EXPECT_EQ(total.samples, 10u) << text;
}

// More combinations than are kept at a time.
TEST(ForkedViews, MergedLocationsAreFewAndTheirSumsWhole) {
  constexpr std::uint64_t kSamples = 300'000;
  const test::TemporaryFile file(capture_with_names(kSamples).file());
  for (const Sink::MergeBy merge_by : {Sink::MergeBy::Name, Sink::MergeBy::Function}) {
    std::vector<std::pair<std::string, Total>> first;
    for (const unsigned jobs : kJobs) {
      auto session = open(file, jobs);
      ASSERT_TRUE(session);
      const bool has_stacks = merge_by == Sink::MergeBy::Name;
      Summed view(*session, {.by_stack = has_stacks, .by_location = !has_stacks, .merge_by = merge_by});
      session->run(view);
      Total all;
      for (const auto& [text, total] : view.totals.rows)
        all = {all.period + total.period, all.samples + total.samples};
      EXPECT_EQ(all, (Total{kSamples * (kSamples + 1) / 2, kSamples}));
      if (first.empty()) first = view.totals.rows;
      EXPECT_TRUE(view.totals.rows == first) << jobs << " jobs";
      // One, two, three and what has no name; of functions also each address without a name.
      EXPECT_LE(first.size(), has_stacks ? 4u : 0x110u);
    }
  }
}

// Frames without a name in a module are one location; ips of samples without a name stay distinct.
TEST(ForkedViews, IpsWithoutANameStayApartWhereFramesAreMerged) {
  const test::TemporaryFile file(capture_with_names(3000).file());
  auto session = open(file, 2);
  ASSERT_TRUE(session);
  Summed view(*session, {.merge_by = Sink::MergeBy::FrameName});
  session->run(view);
  // Of 0x310 addresses, 0x300 are in three functions; all have the same stacks apart from their own function.
  EXPECT_EQ(view.totals.rows.size(), 0x310u - 0x280u + 3u);
}

struct EvenTimes : SampleCondition {
  Result<> bind(const format::EventSet&, const format::Features&) override { return Done{}; }
  std::unique_ptr<SampleCondition> fork() const override { return std::make_unique<EvenTimes>(); }
  bool holds(const ResolvedSample& sample, Resolver*) override { return sample.fields->time % 2 == 0; }
};

// Lanes filter as the serial view does, one sample after the other.
TEST(ForkedViews, LanesFilterByNamesAndConditions) {
  const test::TemporaryFile file(capture_with_names(20'000).file());
  const auto written = [&](const SessionOptions& filtered, unsigned jobs, bool in_step) {
    SessionOptions options = filtered;
    options.input = file.path();
    options.jobs = jobs;
    options.in_step = in_step;
    auto session = Session::open(options);
    EXPECT_TRUE(session && session->bind_condition());
    Written view(*session);
    session->run(view);
    return view.all;
  };
  SessionOptions by_name, by_address, by_module, by_condition;
  by_name.filter.symbols = {"one", "three"};
  by_address.filter.symbols = {"0x1110", "two"};
  by_module.filter.dsos = {"none"};
  by_condition.filter.condition = std::make_shared<EvenTimes>();
  for (const SessionOptions* const options : {&by_name, &by_address, &by_module, &by_condition}) {
    const std::string expected = written(*options, 1, true);
    EXPECT_EQ(expected.empty(), options == &by_module);
    for (const unsigned jobs : kJobs) EXPECT_TRUE(written(*options, jobs, false) == expected) << jobs;
  }
}

}  // namespace
}  // namespace tacho::report
