#include "format/extensions/tracing_data.h"

#include <gtest/gtest.h>

namespace tacho::format {
namespace {

TracingData example() {
  TracingData data;
  data.page_size = 4096;
  data.header_page = "page header";
  data.header_event = "event header";
  data.ftrace_formats = {"name: function\n"};
  data.formats = {
      {"sched", "name: sched_switch\nID: 1\n"}, {"sched", "name: sched_wakeup\nID: 2\n"}, {"irq", "x"}};
  data.printk_formats = "0xffff : \"hello\"\n";
  data.saved_cmdlines = "1 init\n";
  return data;
}

TEST(TracingData, ComesBackAsItWasWritten) {
  ByteWriter out;
  write_tracing_data(out, example());
  const auto back = parse_tracing_data(out.view());
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->page_size, 4096u);
  EXPECT_EQ(back->header_page, "page header");
  EXPECT_EQ(back->header_event, "event header");
  EXPECT_EQ(back->ftrace_formats, example().ftrace_formats);
  ASSERT_EQ(back->formats.size(), 3u);
  EXPECT_EQ(back->formats[1].system, "sched");
  EXPECT_EQ(back->formats[1].text, example().formats[1].text);
  EXPECT_EQ(back->formats[2].system, "irq");
  EXPECT_EQ(back->printk_formats, example().printk_formats);
  EXPECT_EQ(back->saved_cmdlines, "1 init\n");
}

TEST(TracingData, KeepsTheByteOrderItSaysItHas) {
  TracingData data = example();
  data.is_big_endian = true;
  ByteWriter out;
  write_tracing_data(out, data);
  const auto back = parse_tracing_data(out.view());
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_TRUE(back->is_big_endian);
  EXPECT_EQ(back->page_size, 4096u);
  EXPECT_EQ(back->formats.size(), 3u);
}

TEST(TracingData, AnyCutIsAnError) {
  ByteWriter out;
  write_tracing_data(out, example());
  for (std::size_t size = 0; size < out.size(); ++size)
    EXPECT_FALSE(parse_tracing_data(out.view().first(size))) << size;
}

TEST(ConstantStrings, AreFoundByTheirAddress) {
  const ConstantStrings strings(
      "0xffffffff82000010 : \"Start context switch\"\n"
      "0xffffffff82000000 : \"a \\\"quoted\\\" line\\n\"\n"
      "0xffffffff82000010 : \"another of that address\"\n"
      "no address : \"x\"\n"
      "0xffffffff82000030 without a text\n"
      "0x10 : \"last");
  ASSERT_NE(strings.find_string(0xffffffff82000010), nullptr);
  EXPECT_EQ(*strings.find_string(0xffffffff82000010), "Start context switch");
  EXPECT_EQ(*strings.find_string(0xffffffff82000000), "a \\\"quoted\\\" line");
  EXPECT_EQ(*strings.find_string(0x10), "last");
  EXPECT_EQ(strings.find_string(0xffffffff82000030), nullptr);
  EXPECT_EQ(strings.find_string(0), nullptr);
  EXPECT_EQ(strings.rows().size(), 3u);
}

}  // namespace
}  // namespace tacho::format
