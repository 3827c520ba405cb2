#include "record/host/user_arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::record {
namespace {

using Source = bpf::ProbeArgument::Source;
using Shape = bpf::ProbeArgument::Shape;

std::string refused(std::string_view lines, std::vector<std::string> names = {"a"}) {
  const auto found = parse_user_arguments(lines, names);
  return found ? "" : found.error().what;
}

TEST(UserArguments, AreWhatTheLinesSay) {
  const std::vector<std::string> names{"size", "at.y", "request->text", "name"};
  const auto found = parse_user_arguments(
      "value rdx 0 4 signed register 0\nvalue rcx 32 4 signed register 0\nvalue rdi 0 8 text address 20 40\n"
      "value rsp 0 8 pointer memory 16\n",
      names);
  ASSERT_TRUE(found) << found.error().what;
  ASSERT_EQ(found->size(), 4U);
  const bpf::ProbeArgument& size = (*found)[0].value;
  EXPECT_TRUE((*found)[0].source == "size" && size.place == 12 * 8 && size.size == 4 && size.is_signed);
  EXPECT_EQ((*found)[1].value.shift, 32);
  const bpf::ProbeArgument& text = (*found)[2].value;
  EXPECT_TRUE(text.source == Source::Address && text.shape == Shape::UserText && text.displacement == 20);
  EXPECT_EQ(text.pointers, std::vector<std::int32_t>{40});
  const bpf::ProbeArgument& name = (*found)[3].value;
  EXPECT_TRUE(name.source == Source::Memory && name.shape == Shape::Hex && name.displacement == 16);
}

TEST(UserArguments, AReasonIsHandedOn) {
  EXPECT_EQ(refused("error 'x': there is no such argument\n"), "'x': there is no such argument");
}

// The lines come from a process that read a file of others.
TEST(UserArguments, WhatIsNoAnswerIsRefused) {
  EXPECT_NE(refused(""), "");
  EXPECT_NE(refused("value rdi 0 8 pointer register 0\n", {"a", "b"}), "") << "one is missing";
  EXPECT_NE(refused("value rdi 0 8 pointer register 0\nvalue rdi 0 8 pointer register 0\n"), "");
  for (const char* line :
       {"value xmm0 0 8 pointer register 0", "value edi 0 4 signed register 0",
        "value rdi 64 8 signed register 0", "value rdi 0 3 signed register 0",
        "value rdi 0 8 signed memory 99999999999", "value rdi 0 8 signed",
        "value rdi 0 8 signed memory 1 2 3 4 5 6 7 8 9 10", "value rdi 0 8 signed memory 1 x", "hello"})
    EXPECT_NE(refused(line), "") << line;
}

}  // namespace
}  // namespace tacho::record
