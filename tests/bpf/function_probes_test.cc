#include "bpf/function_probes.h"

#include <gtest/gtest.h>

namespace tacho::bpf {
namespace {

TEST(FunctionProbes, AProgramThatNamesFunctionsIsToldWhichByItsOrder) {
  FunctionTargets targets;
  targets.path = "/lib/libc.so.6";
  targets.names = {"free", "malloc", "pvalloc"};
  targets.offsets = {0x30, 0x10, 0x20};
  const ChosenFunctions chosen = chosen_functions(targets, "malloc,calloc,pvalloc,free");
  EXPECT_EQ(chosen.offsets, (std::vector<std::uint64_t>{0x10, 0x20, 0x30}));
  EXPECT_EQ(chosen.cookies, (std::vector<std::uint64_t>{0, 2, 3}))
      << "calloc is not there, and keeps its number";
  EXPECT_TRUE(chosen_functions(targets, "calloc").offsets.empty());
}

TEST(FunctionProbes, AProgramThatNamesNoneTakesAll) {
  FunctionTargets targets;
  targets.offsets = {0x30, 0x10};
  const ChosenFunctions chosen = chosen_functions(targets, "");
  EXPECT_EQ(chosen.offsets, targets.offsets);
  EXPECT_TRUE(chosen.cookies.empty());
}

}  // namespace
}  // namespace tacho::bpf
