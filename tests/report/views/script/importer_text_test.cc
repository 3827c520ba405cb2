#include "report/views/script/importer_text.h"

#include <gtest/gtest.h>

#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

TEST(ImporterText, NamesHoldNothingThatEndsThemEarly) {
  EXPECT_EQ(importer_comm("kworker 12:0"), "kworker_12:0");
  EXPECT_EQ(importer_comm("# no comment"), "__no_comment");
  EXPECT_EQ(importer_comm("x"), "x ") << "a second character for those that ask for two";
  EXPECT_EQ(importer_comm(""), "[unknown]");
  EXPECT_EQ(importer_comm("\n1"), "\\x0a1");
  EXPECT_EQ(importer_event("12: my event"), "_12:_my_event");
  EXPECT_EQ(importer_event(""), "[unknown]");
  EXPECT_EQ(importer_symbol("(anonymous namespace)::run"), "::(anonymous namespace)::run");
  EXPECT_EQ(importer_symbol("operator new(unsigned long)"), "operator new(unsigned long)");
  EXPECT_EQ(importer_module("/tmp/my app (deleted)"), "/tmp/my_app_[deleted]");
}

class Collector : public Sink {
 public:
  explicit Collector(Session& session) : writer_(session) {}
  Flow on_sample(const ResolvedSample& sample) override {
    writer_.write(out, sample);
    return Flow::Continue;
  }
  TextBuffer out;

 private:
  ImporterText writer_;
};

TEST(ImporterText, ASampleIsItsStartItsFramesAndAnEmptyLine) {
  test::CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  capture.event(test::software_event(abi::kPageFaults), "page-faults", {2});
  capture.comm(5, 6, "a").mmap(5, 0x1000, 0x1000, 0x3000, "/nonexistent/a b");
  test::SampleFields fields;
  fields.id = 1;
  fields.pid = 5;
  fields.tid = 6;
  fields.time = 12'000'345'678;
  fields.cpu = 3;
  fields.period = 0;
  fields.callchain = {abi::kContextUser, 0x1010, 0x9000};
  capture.sample(fields);
  fields.id = 2;
  fields.period = 7;
  fields.ip = 0x1020;
  capture.sample(fields, 1);
  const test::TemporaryFile file(capture.file());
  SessionOptions options;
  options.input = file.path();
  auto session = Session::open(options);
  ASSERT_TRUE(session);
  Collector sink(*session);
  session->run(sink);
  EXPECT_EQ(sink.out.view(),
            "a  5/6 [003] 12.000345: 1 cpu-clock: \n"
            "\t            1010 [unknown] (/nonexistent/a_b)\n"
            "\t            9000 [unknown] ([unknown])\n"
            "\n"
            "a  5/6 [003] 12.000345: 7 page-faults: \n"
            "\t            1020 [unknown] (/nonexistent/a_b)\n"
            "\n");
}

}  // namespace
}  // namespace tacho::report
