#include <gtest/gtest.h>

#include <cstdio>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/extensions/attachment.h"
#include "format/records/perf_abi.h"
#include "report/decode/coded_values.h"
#include "report/decode/instructions.h"
#include "report/perf_text/frame_lines.h"
#include "report/perf_text/frame_text.h"
#include "report/perf_text/line_start.h"
#include "report/samples/session.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint64_t kKernelText = 0xffffffff81000000;
constexpr Fields kFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso};

// Code of a perf map, of a file that is not there, and of the kernel with aliases in its kallsyms.
test::CaptureBuilder capture() {
  test::CaptureBuilder capture;
  capture.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  capture.comm(5, 5, "java").mmap(5, 0x1000, 0x1000, 0, "//anon").mmap(5, 0x8000, 0x1000, 0, "/bin/none");
  capture.mmap(~0U, kKernelText, 0x10000, kKernelText, "[kernel.kallsyms]_text", abi::kCpumodeKernel);
  const std::string map = "1000 100 one\n1100 80 two\n1200 100 three\n1210 10 inner\n";
  std::string kallsyms = "ffffffff81000000 T _text\n";
  std::mt19937 random(3);
  for (std::uint64_t at = 0; at < 0x4000; at += random() % 3 * 0x20) {
    char line[64];
    std::snprintf(line, sizeof line, "%llx T name%u\n", static_cast<unsigned long long>(kKernelText + at),
                  static_cast<unsigned>(random() % 50));
    kallsyms += line;
  }
  format::ByteWriter attachments;
  const auto pack = [](const char* name, const std::string& text) {
    return *format::pack_attachment(name, "/tmp/x", std::as_bytes(std::span(text)));
  };
  format::write_attachments(
      attachments, std::vector{pack("perf-map/5", map), pack(format::kKallsymsAttachment.data(), kallsyms)});
  capture.feature(abi::kFeatureAttachments, std::move(attachments).take_bytes());
  for (std::uint64_t i = 1; i <= 4000; ++i) {
    test::SampleFields fields;
    fields.id = 1;
    fields.pid = fields.tid = 5;
    fields.time = 1000 + i;
    fields.period = 1;
    const std::uint64_t kernel = kKernelText + random() % 0x6000;
    fields.callchain = {abi::kContextKernel,
                        kernel,
                        kKernelText + random() % 0x6000 / 0x20 * 0x20,
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
    return Flow::Continue;
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
    for (const LocationId number : stack->frames) lines.write(out, read.session->resolver().location(number));
  return std::string(out.view());
}

class Frames : public testing::TestWithParam<symbolize::Callers> {};

TEST_P(Frames, HaveTheLinesThatTheResolverGives) {
  Read read(GetParam());
  ASSERT_EQ(read.sink.stacks.size(), 4000u);
  const std::string found = lines(read, nullptr);
  TextBuffer expected;
  for (const Stack* const stack : read.sink.stacks)
    for (const LocationId number : stack->frames)
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

namespace {

TEST(PageSize, IsDividedOnlyWhileMoreThanOneUnitIsLeft) {
  EXPECT_EQ(page_size_text(0), "N/A");
  EXPECT_EQ(page_size_text(1), "1B");
  EXPECT_EQ(page_size_text(1536), "1536B");
  EXPECT_EQ(page_size_text(4096), "4K");
  EXPECT_EQ(page_size_text(2 << 20), "2M");
  EXPECT_EQ(page_size_text(1 << 30), "1024M");
  EXPECT_EQ(page_size_text(~std::uint64_t{0}), "17179869183G");
}

TEST(RegisterNames, AreThoseOfTheRecordingMachine) {
  EXPECT_EQ(register_name("x86_64", 8), "IP");
  EXPECT_EQ(register_name("x86_64", 24), "unknown");
  EXPECT_EQ(register_name("x86_64", 33), "XMM0") << "both halves have one name";
  EXPECT_EQ(register_name("x86_64", 63), "XMM15");
  EXPECT_EQ(register_name("aarch64", 30), "lr");
  EXPECT_EQ(register_name("armv7l", 13), "sp");
  EXPECT_EQ(register_name("ppc64le", 32), "nip");
  EXPECT_EQ(register_name("s390x", 33), "PC");
  EXPECT_EQ(register_name("mips", 28), "$28");
  EXPECT_EQ(register_name("", 0), "unknown");
}

TEST(DataSource, NamesEachPartAndIsCutAtPerfsLength) {
  EXPECT_EQ(data_source_text(0x68100142),
            "        68100142 |OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A");
  EXPECT_EQ(data_source_text(0), "               0 |OP No|LVL N/A|SNP N/A|TLB N/A|LCK No|BLK  N/A");
  EXPECT_EQ(data_source_text(~std::uint64_t{0}).size(), 99u) << "hops without a name read no other memory";
}

TEST(Synth, TooFewBytesAreNoText) {
  format::ByteWriter raw;
  raw.u32(1).u64(0x6f6c6c6568);
  TextBuffer out;
  write_synth(out, 0, raw.view(), std::endian::native);
  EXPECT_EQ(out.view(), " IP: 1 payload: 0x6f6c6c6568 hello ");
  out.clear();
  write_synth(out, 0, raw.view().first(11), std::endian::native);
  write_synth(out, 99, raw.view(), std::endian::native);
  EXPECT_EQ(out.view(), "");
}

TEST(Synth, TraceEventsStopWhereTheirBytesEnd) {
  format::ByteWriter raw;
  raw.u32(1U | 0xffffU << 16).u64(0).u64(5).u64(9);
  TextBuffer out;
  write_synth(out, 7, raw.view(), std::endian::native);
  EXPECT_EQ(out.view(), " cfe: INTR IP: 0 vector: 0 PFA: 0x5");
}

TEST(Times, CountFromTheFirstLineOrTheLineBefore) {
  TextBuffer out;
  TimeText since_first(TimeDigits::Microseconds, TimeBase::FirstLine, {});
  TimeText since_before(TimeDigits::Nanoseconds, TimeBase::LineBefore, {});
  for (const std::uint64_t time : {5'000'000'000, 5'000'001'999, 6'500'000'000}) {
    since_first.write(out, time);
    since_before.write(out, time);
  }
  EXPECT_EQ(out.view(),
            "    0.000000:     0.000000000:     0.000001:     0.000001999:     1.500000:     1.499998001: ");
}

TEST(Times, OfTheDayNeedTheInstantThatTheClockStoodFor) {
  TextBuffer out;
  TimeText(TimeDigits::Microseconds, TimeBase::Clock, {}).write_of_day(out, 1);
  EXPECT_EQ(out.view(), "");
  const format::ClockData clock{1, 1'700'000'000'000'000'000, 5'000'000'000};
  TimeText(TimeDigits::Nanoseconds, TimeBase::Clock, clock).write_of_day(out, 4'999'999'999);
  EXPECT_EQ(out.view().substr(out.size() - 11), ".999999999 ") << "before that instant as well";
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

TEST(Instructions, KnowTheirSizeAndWhetherTheyMayJump) {
  const Disassembler wide("x86_64", WordSize::Bits64), narrow("x86_64", WordSize::Bits32);
  EXPECT_EQ(wide.first_of(bytes({0x48, 0x89, 0xe5, 0x90})).size, 3u);
  EXPECT_EQ(narrow.first_of(bytes({0x48, 0x89, 0xe5, 0x90})).size, 1u) << "48 is an instruction there";
  EXPECT_TRUE(wide.first_of(bytes({0xe8, 0, 0, 0, 0})).is_branch);
  EXPECT_TRUE(wide.first_of(bytes({0xc3})).is_branch);
  EXPECT_FALSE(wide.first_of(bytes({0x90})).is_branch);
  EXPECT_EQ(wide.first_of(bytes({0x48})).size, 0u) << "cut short";
  EXPECT_EQ(wide.first_of({}).size, 0u);
  EXPECT_EQ(Disassembler("aarch64", WordSize::Bits64).first_of(bytes({0xc0, 0x03, 0x5f, 0xd6})).size, 4u);
  EXPECT_EQ(Disassembler("riscv64", WordSize::Bits64).first_of(bytes({0x90})).size, 0u);
}

}  // namespace

}  // namespace tacho::report
