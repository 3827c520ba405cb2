#include <gtest/gtest.h>

#include <cstdio>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "format/extensions/attachment.h"
#include "format/records/perf_abi.h"
#include "report/perf_text/sample_text.h"
#include "report/samples/session.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint64_t kKernel = 0xffffffff81000000;
constexpr Fields kFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso};

// Code of a perf map, of a file that is not there, and of the kernel with aliases in its kallsyms.
test::CaptureBuilder capture() {
  test::CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  capture.comm(5, 5, "java").mmap(5, 0x1000, 0x1000, 0, "//anon").mmap(5, 0x8000, 0x1000, 0, "/bin/none");
  capture.mmap(~0U, kKernel, 0x10000, kKernel, "[kernel.kallsyms]_text", abi::kCpumodeKernel);
  const std::string map = "1000 100 one\n1100 80 two\n1200 100 three\n1210 10 inner\n";
  std::string kallsyms = "ffffffff81000000 T _text\n";
  std::mt19937 random(3);
  for (std::uint64_t at = 0; at < 0x4000; at += random() % 3 * 0x20) {
    char line[64];
    std::snprintf(line, sizeof line, "%llx T name%u\n", static_cast<unsigned long long>(kKernel + at),
                  static_cast<unsigned>(random() % 50));
    kallsyms += line;
  }
  format::ByteWriter attachments;
  const auto pack = [](const char* name, const std::string& text) {
    return *format::pack_attachment(name, "/tmp/x", std::as_bytes(std::span(text)));
  };
  format::write_attachments(
      attachments, std::vector{pack("perf-map/5", map), pack(format::kKallsymsAttachment.data(), kallsyms)});
  capture.feature(abi::kFeatureAttachments, std::move(attachments).take());
  for (std::uint64_t i = 1; i <= 4000; ++i) {
    test::SampleFields fields;
    fields.id = 1;
    fields.pid = fields.tid = 5;
    fields.time = 1000 + i;
    fields.period = 1;
    const std::uint64_t kernel = kKernel + random() % 0x6000;
    fields.callchain = {abi::kContextKernel,
                        kernel,
                        kKernel + random() % 0x6000 / 0x20 * 0x20,
                        abi::kContextUser,
                        0x1000 + random() % 0x400,
                        0x1000 + random() % 16 * 0x20,
                        0x8001 + random() % 0xf00,
                        0x20000 + random() % 8};
    fields.ip = kernel;
    fields.misc = abi::kCpumodeKernel;
    capture.sample(fields);
  }
  return capture;
}

class KeepsStacks : public Sink {
 public:
  Flow on_sample(const ResolvedSample& sample) override {
    stacks.push_back(sample.stack);
    return Flow::GoOn;
  }
  std::vector<const Stack*> stacks;
};

struct Read {
  explicit Read(symbolize::Callers callers) : file(capture().file()) {
    SessionOptions options;
    options.input = file.path();
    options.symbols.symfs = "/proc/self/fdinfo";  // a folder without any of the binaries
    options.symbols.callers = callers;
    auto opened = Session::open(std::move(options));
    session.emplace(std::move(*opened));
    session->run(sink);
  }
  test::TemporaryFile file;
  std::optional<Session> session;
  KeepsStacks sink;
};

std::string lines(Read& read, std::mutex* naming) {
  FrameLines lines(read.session->resolver(), {.fields = kFields, .naming = naming});
  TextBuffer out;
  for (const Stack* const stack : read.sink.stacks)
    for (const std::uint32_t number : stack->frames)
      lines.write(out, read.session->resolver().location(number));
  return std::string(out.view());
}

class Frames : public testing::TestWithParam<symbolize::Callers> {};

TEST_P(Frames, HaveTheLinesThatTheResolverGives) {
  Read read(GetParam());
  ASSERT_EQ(read.sink.stacks.size(), 4000u);
  const std::string found = lines(read, nullptr);
  TextBuffer expected;
  for (const Stack* const stack : read.sink.stacks)
    for (const std::uint32_t number : stack->frames)
      for (const symbolize::Frame& frame :
           read.session->resolver().frames(read.session->resolver().location(number)))
        write_frame(expected, frame, kFields, Names::Safe);
  EXPECT_TRUE(found == expected.view());
  for (const char* const name :
       {" name", " one+0x", " inner+0x", " [unknown] (/bin/none)", " [unknown] ([unknown])"})
    EXPECT_NE(found.find(name), std::string::npos) << name;
}

TEST_P(Frames, AreTheSameWhileOtherThreadsWriteThem) {
  Read read(GetParam());
  std::mutex naming;
  std::vector<std::string> texts(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& text : texts) threads.emplace_back([&] { text = lines(read, &naming); });
  }
  for (const std::string& text : texts) EXPECT_TRUE(text == lines(read, nullptr));
}

TEST_P(Frames, StandAloneWithoutAddressAndEndOfLine) {
  Read read(GetParam());
  FrameLines lines(read.session->resolver(), {.fields = kFields});
  TextBuffer out, expected;
  for (const Stack* const stack : read.sink.stacks) {
    const Location& own = read.session->resolver().location(stack->frames[0]);
    lines.write_alone(out, own);
    const symbolize::Frame& frame = read.session->resolver().frame(own);
    expected.character(' ');
    write_symbol(expected, frame, kFields, Names::Safe);
    write_module(expected, frame, Names::Safe);
  }
  EXPECT_TRUE(out.view() == expected.view());
}

INSTANTIATE_TEST_SUITE_P(Callers, Frames,
                         testing::Values(symbolize::Callers::ByCall, symbolize::Callers::ByReturnAddress));

}  // namespace
}  // namespace tacho::report
