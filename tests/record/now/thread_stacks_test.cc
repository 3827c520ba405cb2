#include "record/now/thread_stacks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "bpf/thread_list.h"
#include "format/base/byte_writer.h"

namespace tacho::record {
namespace {

using Addresses = std::vector<std::uint64_t>;

std::uint64_t place(std::string_view function) {
  if (function == "futex_wait") return 0xffffffff81000000;
  if (function == "ext4_read") return 0xffffffffc0001000;
  return 0;
}

TEST(ThreadStacks, KernelStacksOfProcBecomeAddresses) {
  const Addresses expected{0xffffffff81000060, 0xffffffffc0001010};
  EXPECT_EQ(parse_kernel_stack("[<0>] futex_wait+0x60/0x90\n[<0>] ext4_read+0x10/0x20 [ext4]\n", place),
            expected);
}

TEST(ThreadStacks, LinesOfAKernelStackThatSayNothingAreLeftOut) {
  EXPECT_EQ(parse_kernel_stack("[<0>] gone+0x1/0x2\n[<0>] \n[<0>] 0xffffffff81000000\nfutex_wait+0x1/0x2\n\n",
                               place),
            Addresses());
  EXPECT_EQ(parse_kernel_stack("[<0>] futex_wait+0x", place), Addresses{0xffffffff81000000});
}

TEST(ThreadStacks, ALineOfASystemCallHasItsArguments) {
  const auto line = parse_call_line("202 0x7f00 0x80 0x2 0x0 0x0 0xffffffff 0x7ffe0010 0x7f0012\n");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->call.number, 202);
  EXPECT_EQ(line->call.arguments[0], 0x7f00U);
  EXPECT_EQ(line->call.arguments[5], 0xffffffffU);
  EXPECT_EQ(line->sp, 0x7ffe0010U);
  EXPECT_EQ(line->pc, 0x7f0012U);
}

TEST(ThreadStacks, AThreadInTheKernelForAnotherReasonIsInNoCall) {
  const auto line = parse_call_line("-1 0x7ffe0010 0x7f0012\n");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->call.number, -1);
  EXPECT_EQ(line->sp, 0x7ffe0010U);
}

TEST(ThreadStacks, OtherLinesAreNone) {
  for (const std::string_view text : {"running\n", "", "202 0x1\n", "202 x 0 0 0 0 0 0 0\n", "-1\n",
                                      "0 0x10000000000000000 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n"})
    EXPECT_FALSE(parse_call_line(text)) << text;
}

void write_thread(format::ByteWriter& out, std::uint32_t tid, std::uint32_t frames) {
  out.u64(7);
  for (std::uint64_t i = 0; i < TACHO_THREAD_REGISTERS; ++i) out.u64(i);
  out.u32(100).u32(tid).u32(1).u32(0).u32(0).u32(1).u32(frames).u32(0);
  out.padded_text("worker", 16);
}

TEST(ThreadRecords, AreReadOneAfterAnother) {
  format::ByteWriter out;
  write_thread(out, 101, 2);
  out.u64(0xffffffff81000060).u64(0xffffffff81000070);
  write_thread(out, 102, 0);
  const auto threads = bpf::parse_thread_records(out.view());
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[0].tid, 101U);
  EXPECT_EQ(threads[0].switches, 7U);
  EXPECT_EQ(threads[0].registers[20], 20U);
  EXPECT_EQ(threads[0].comm, "worker");
  EXPECT_EQ(threads[0].kernel, (Addresses{0xffffffff81000060, 0xffffffff81000070}));
  EXPECT_EQ(threads[1].tid, 102U);
  EXPECT_TRUE(threads[1].kernel.empty());
}

TEST(ThreadRecords, OneThatIsCutShortEndsThem) {
  format::ByteWriter out;
  write_thread(out, 101, 1);
  out.u64(0xffffffff81000060);
  const std::size_t whole = out.size();
  write_thread(out, 102, TACHO_THREAD_FRAMES + 1);
  for (std::size_t size = 0; size < whole; ++size)
    EXPECT_TRUE(bpf::parse_thread_records(out.view().first(size)).empty()) << size;
  for (std::size_t size = whole; size <= out.size(); ++size)
    EXPECT_EQ(bpf::parse_thread_records(out.view().first(size)).size(), 1U) << size;
}

}  // namespace
}  // namespace tacho::record
