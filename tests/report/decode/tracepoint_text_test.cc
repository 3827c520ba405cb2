#include "report/decode/tracepoint_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "format/base/byte_writer.h"
#include "report/decode/payload.h"

namespace tacho::report {

namespace {

using format::ByteWriter;
using std::string_literals::operator""s;

std::string format_file(int id, std::string_view fields, std::string_view print_format) {
  return "name: made_up\nID: " + std::to_string(id) +
         "\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
         "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
         "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
         "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n" +
         std::string(fields) + "\nprint fmt: " + std::string(print_format) + "\n";
}

std::optional<std::string> text_of(const std::string& format, const ByteWriter& record,
                                   std::uint64_t id = 7) {
  format::TracingData tracing;
  tracing.formats.push_back({"test", format});
  TracepointText texts(tracing, {});
  const auto text = texts.text_of(id, record.view(), 0, std::endian::native);
  return text ? std::optional(std::string(*text)) : std::nullopt;
}

ByteWriter record_of(std::uint16_t id = 7) {
  ByteWriter record;
  record.u16(id).u16(0).u32(0);
  return record;
}

TEST(TracepointText, EvaluatesThePrintFormat) {
  const std::string format =
      format_file(7,
                  "\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:char "
                  "comm[4];\toffset:12;\tsize:4;\tsigned:0;\n",
                  R"("pid=%d comm=%s %s", REC->pid, REC->comm, __print_symbolic(REC->pid, { 3, "three" }))");
  ByteWriter record = record_of();
  record.u32(3).padded_text("ls", 4);
  EXPECT_EQ(text_of(format, record), "pid=3 comm=ls three");
}

TEST(TracepointText, ReadsTextsOfVaryingLength) {
  const std::string format =
      format_file(7, "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n",
                  R"("filename=%s", __get_str(filename))");
  ByteWriter record = record_of();
  record.u32(12 | 4 << 16).padded_text("sh", 4);
  EXPECT_EQ(text_of(format, record), "filename=sh");
}

TEST(TracepointText, ATextThatLiesOutsideTheRecordIsEmpty) {
  const std::string format =
      format_file(7, "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n",
                  R"("filename=%s", __get_str(filename))");
  ByteWriter record = record_of();
  record.u32(0xffff | 0xffffU << 16);
  EXPECT_EQ(text_of(format, record), "filename=");
}

TEST(TracepointText, WhatOneRecordHeldIsNotSeenInTheNext) {
  const std::string format =
      format_file(7, "\tfield:char comm[4];\toffset:8;\tsize:4;\tsigned:0;\n", R"("%s", REC->comm)");
  format::TracingData tracing;
  tracing.formats.push_back({"test", format});
  TracepointText texts(tracing, {});
  ByteWriter whole = record_of();
  whole.padded_text("abc", 4);
  EXPECT_EQ(texts.text_of(7, whole.view(), 0, std::endian::native), "abc");
  EXPECT_EQ(texts.text_of(7, record_of().view(), 0, std::endian::native), "");
}

TEST(TracepointText, ShowsConstantStringsByTheirAddress) {
  const std::string format = format_file(7, "\tfield:const char * s;\toffset:8;\tsize:8;\tsigned:0;\n",
                                         R"("%s|%5s|%s", REC->s, REC->s, REC->s ? REC->s : "none")");
  format::TracingData tracing;
  tracing.formats.push_back({"test", format});
  tracing.printk_formats =
      "0xffffffff82000010 : \"Start\\n\"\n0xffffffff82000020 : \"End\"\n"s
      "0xffffffff82000030 : \"\"\n0xffffffff82000040 : \"x\"\n"s
      "0xffffffff82000050 : \"\0y\"\n"s;
  for (const auto evaluation : {TracepointText::Evaluation::Fast, TracepointText::Evaluation::Library}) {
    TracepointText texts(tracing, {}, evaluation);
    const auto text = [&](std::uint64_t address) {
      ByteWriter record = record_of();
      record.u64(address);
      return std::string(texts.text_of(7, record.view(), 0, std::endian::native).value_or("nothing"));
    };
    EXPECT_EQ(text(0xffffffff82000010), "Start|Start|Start");
    EXPECT_EQ(text(0xffffffff82000020), "End|End|End");
    EXPECT_EQ(text(0xffffffff82000030), "||");
    EXPECT_EQ(text(0xffffffff82000040), "x|x|x");
    EXPECT_EQ(text(0xffffffff82000050), "||") << "a zero byte ends a string";
    EXPECT_EQ(text(0xffffffff82000021), "ffffffff82000021|ffffffff82000021|ffffffff82000021");
    EXPECT_EQ(texts.is_compiled(7), evaluation == TracepointText::Evaluation::Fast);
  }
}

TEST(TracepointText, APrecisionMayComeFromTheRecord) {
  const std::string format = format_file(
      7,
      "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n"
      "\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n",
      R"("<%.*s> <%.*s> %d", REC->n, __get_str(name), REC->n, REC->n ? __get_str(name) : ((void *)0), REC->n)");
  const auto text = [&](std::int32_t length) {
    ByteWriter record = record_of();
    record.u32(static_cast<std::uint32_t>(length)).u32(16 | 8 << 16).padded_text("hello", 8);
    return text_of(format, record);
  };
  EXPECT_EQ(text(3), "<hel> <hel> 3");
  EXPECT_EQ(text(0), "<> <> 0");
  EXPECT_EQ(text(100), "<hello> <hello> 100");
  EXPECT_EQ(text(-1), "<hello> <hello> -1") << "none, as in C";
}

TEST(TracepointText, AFormatMayHoldATab) {
  const std::string format = format_file(7, "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n",
                                         "\"a\tb %d\xc3\xa4%p\", REC->n, (void *) REC->n");
  ByteWriter record = record_of();
  record.u32(3);
  EXPECT_EQ(text_of(format, record), "a\tb 3\\xc3\\xa40x3");
  EXPECT_EQ(text_of(format_file(7, "\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n", "\"a\tb %d\", REC->n"),
                    record),
            "a\tb 3");
}

TEST(TracepointText, AnUnknownTracepointHasNone) {
  EXPECT_FALSE(text_of(format_file(7, "", R"("x")"), record_of(8), 8));
  EXPECT_FALSE(text_of(format_file(7, "", R"("x")"), record_of(9), 7))
      << "the record says that it is another one's";
}

TEST(TracepointText, FormatsThatCouldDoHarmAreNotEvaluated) {
  const std::string field =
      "\tfield:unsigned int n;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:u8 "
      "a[4];\toffset:12;\tsize:4;\tsigned:0;\n";
  ByteWriter record = record_of();
  record.u32(0).u32(0);
  EXPECT_FALSE(text_of(format_file(7, field, R"("%d", 10 / REC->n)"), record)) << "a divisor from the record";
  EXPECT_FALSE(text_of(format_file(7, field, R"("%d", 10 % REC->n)"), record));
  EXPECT_TRUE(text_of(format_file(7, field, R"("%d", REC->n / 10)"), record));
  EXPECT_FALSE(text_of(format_file(7, field, R"("%999999999d", REC->n)"), record)) << "gigabytes of blanks";
  EXPECT_FALSE(text_of(format_file(7, field, R"("%*d", REC->n, REC->n)"), record));
  EXPECT_FALSE(text_of(format_file(7, field, R"("%l.*s", REC->n, REC->a)"), record))
      << "a precision from the record, for the library";
  EXPECT_FALSE(text_of(
      format_file(7, "\tfield:int n;\toffset:99999999;\tsize:4;\tsigned:1;\n", R"("%d", REC->n)"), record))
      << "a field far outside any record";
}

TEST(TracepointText, ALengthBeyondTheRecordIsNotFollowed) {
  const std::string format = format_file(7,
                                         "\tfield:unsigned int n;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:u8 "
                                         "a[4];\toffset:12;\tsize:4;\tsigned:0;\n",
                                         R"("%s", __print_hex(REC->a, REC->n))");
  ByteWriter good = record_of();
  good.u32(2).u32(0x0201);
  EXPECT_EQ(text_of(format, good), "01 02");
  ByteWriter bad = record_of();
  bad.u32(~0U).u32(0);
  EXPECT_FALSE(text_of(format, bad));
}

}  // namespace

// The fast way to a tracepoint's text must give what libtraceevent gives, byte for byte, whatever the record
// holds.

namespace {

using Evaluation = TracepointText::Evaluation;

std::string program_format(std::string_view fields, std::string_view print_format) {
  return "name: made_up\nID: 7\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
         "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n" +
         std::string(fields) + "\nprint fmt: " + std::string(print_format) + "\n";
}

constexpr std::string_view kFields =
    "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned long b;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:u8 c;\toffset:24;\tsize:1;\tsigned:0;\n"
    "\tfield:short d;\toffset:26;\tsize:2;\tsigned:1;\n"
    "\tfield:char name[8];\toffset:28;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[] path;\toffset:36;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long list[3];\toffset:40;\tsize:24;\tsigned:0;\n";

// Random bytes, with numbers that tests like: small ones, all ones, texts with ends.
std::vector<std::byte> random_record(std::mt19937& random, std::uint16_t id, std::size_t size) {
  std::vector<std::byte> record(size);
  for (std::size_t at = 0; at < size; ++at) {
    static constexpr std::uint8_t kUsual[] = {0, 0, 1, 2, 4, 8, 16, 0x41, 0x7a, 0xff};
    const auto pick = random() % 16;
    record[at] = static_cast<std::byte>(pick < 10 ? kUsual[pick] : random());
  }
  record[0] = static_cast<std::byte>(id & 0xff);
  record[1] = static_cast<std::byte>(id >> 8);
  return record;
}

struct Agreement {
  std::size_t compiled = 0, others = 0;
};

// The formats of one capture, with records read in either way.
class Comparison {
 public:
  explicit Comparison(const format::TracingData& tracing)
      : fast_(tracing, {}), library_(tracing, {}, Evaluation::Library) {}

  void compare(const std::string& format, std::size_t records, Agreement& agreement) {
    const auto id = format::tracepoint_id(format);
    if (!id || *id > 0xffff) return;
    std::mt19937 random(static_cast<unsigned>(*id));
    for (std::size_t i = 0; i < records; ++i) {
      const auto record = random_record(random, static_cast<std::uint16_t>(*id), 8 + random() % 200);
      const auto text = fast_.text_of(*id, record, 0, std::endian::native);
      if (!fast_.is_compiled(*id)) {
        ++agreement.others;
        return;
      }
      // The library takes a negative "%.*s" for a format without that argument.
      if (format.find("%.*s") != std::string::npos) continue;
      const auto wanted = library_.text_of(*id, record, 0, std::endian::native);
      ASSERT_TRUE(text && wanted) << format;
      ASSERT_EQ(*text, *wanted) << format;
    }
    ++agreement.compiled;
  }

 private:
  TracepointText fast_, library_;
};

void compare(const std::string& format, std::size_t records, Agreement& agreement) {
  format::TracingData tracing;
  tracing.formats.push_back({"test", format});
  Comparison(tracing).compare(format, records, agreement);
}

TEST(PrintProgram, MakesTheLibrarysText) {
  constexpr std::string_view kFormats[] = {
      R"("nothing but words 100%%")",
      R"("%d %u %x %lu %lx %ld %5d|%-5d|%05d %#x %llx %hd %hhu %o", REC->a, REC->a, REC->a, REC->b, REC->b, REC->b, REC->d, REC->c, REC->a, REC->a, REC->b, REC->a, REC->a, REC->c)",
      R"("%s|%10s|%-10s|%.3s", REC->name, REC->name, REC->name, REC->name)",
      R"("%s", __get_str(path))",
      R"("%s %s", __print_flags(REC->a, "|", { 1, "ONE" }, { 2, "TWO" }, { 0x10, "SIXTEEN" }), __print_symbolic(REC->c, { 0, "none" }, { 1, "one" }, { 0xff, "all" }))",
      R"("%s %d", REC->a & 1 ? "odd" : "even", REC->a ? REC->c : REC->d)",
      R"("%s%s", (REC->b & (((0x1 | 0x2) + 1) << 1)) ? __print_flags(REC->b & 7, "|", { 1, "S" }, { 2, "D" }) : "R", REC->b & 8 ? "+" : "")",
      R"("%lx %lx %lu", REC->list[0], REC->list[2], REC->list[1] / 3)",
      R"("%u %d %x %llu", (u8)REC->a, (int)REC->d, (u16)REC->a, (unsigned long long)REC->b)",
      R"("%d %d %d %d %d", REC->a == REC->c, REC->a != 0 && REC->c, REC->a > REC->d || REC->b <= 4, !REC->c, ~REC->a)",
      R"("lines\n and\ttabs \\ %d\n", REC->a)",
      R"("%s", REC->b)",
      R"("%u:%u", ((unsigned int) ((REC->a) >> 20)), ((unsigned int) ((REC->a) & ((1U << 20) - 1))))",
  };
  Agreement agreement;
  for (const std::string_view format : kFormats) compare(program_format(kFields, format), 400, agreement);
  // Casts to int stay with the library.
  EXPECT_GE(agreement.compiled, 9u);
  EXPECT_EQ(agreement.compiled + agreement.others, std::size(kFormats));
}

TEST(PrintProgram, LeavesToTheLibraryWhatItDoesNotCover) {
  constexpr std::string_view kFormats[] = {
      R"("%pS", (void *)REC->b)",
      R"("%s", __print_hex(REC->name, 8))",
      R"("%*d", REC->a, REC->d)",
      R"("%d", REC->a % REC->d)",
  };
  Agreement agreement;
  for (const std::string_view format : kFormats) compare(program_format(kFields, format), 1, agreement);
  EXPECT_EQ(agreement.compiled, 0u);
  EXPECT_EQ(agreement.others, std::size(kFormats));
}

TEST(PrintProgram, AgreesOnEveryTracepointOfThisKernel) {
  namespace fs = std::filesystem;
  const fs::path events = "/sys/kernel/tracing/events";
  std::error_code error;
  if (!fs::is_directory(events / "sched", error)) GTEST_SKIP() << "needs readable tracefs, " << events;
  format::TracingData tracing;
  for (const auto& system : fs::directory_iterator(events, error)) {
    for (const auto& event : fs::directory_iterator(system.path(), error)) {
      std::ifstream file(event.path() / "format");
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (!text.empty()) tracing.formats.push_back({system.path().filename(), text});
    }
  }
  Agreement agreement;
  Comparison comparison(tracing);
  for (const auto& format : tracing.formats) {
    comparison.compare(format.text, 12, agreement);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(agreement.compiled, agreement.others);
  RecordProperty("compiled", static_cast<int>(agreement.compiled));
  RecordProperty("others", static_cast<int>(agreement.others));
}

}  // namespace

}  // namespace tacho::report
