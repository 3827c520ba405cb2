#include "report/decode/tracepoint_text.h"

#include <gtest/gtest.h>

#include "format/base/byte_writer.h"

namespace tacho::report {
namespace {

using format::ByteWriter;

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
  const auto text = texts.of(id, record.view(), 0, std::endian::native);
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
  EXPECT_EQ(texts.of(7, whole.view(), 0, std::endian::native), "abc");
  EXPECT_EQ(texts.of(7, record_of().view(), 0, std::endian::native), "");
}

TEST(TracepointText, ShowsConstantStringsByTheirAddress) {
  const std::string format = format_file(7, "\tfield:const char * s;\toffset:8;\tsize:8;\tsigned:0;\n",
                                         R"("%s|%5s|%s", REC->s, REC->s, REC->s ? REC->s : "none")");
  format::TracingData tracing;
  tracing.formats.push_back({"test", format});
  tracing.printk_formats = "0xffffffff82000010 : \"Start\\n\"\n0xffffffff82000020 : \"End\"\n";
  for (const auto evaluation : {TracepointText::Evaluation::Fast, TracepointText::Evaluation::Library}) {
    TracepointText texts(tracing, {}, evaluation);
    const auto text = [&](std::uint64_t address) {
      ByteWriter record = record_of();
      record.u64(address);
      return std::string(texts.of(7, record.view(), 0, std::endian::native).value_or("nothing"));
    };
    EXPECT_EQ(text(0xffffffff82000010), "Start|Start|Start");
    EXPECT_EQ(text(0xffffffff82000020), "End|End|End");
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
}  // namespace tacho::report
