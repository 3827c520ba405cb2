#include "bpf/attach/function_probes.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

namespace tacho::bpf {

namespace {

TEST(FunctionProbes, AProgramThatNamesFunctionsKnowsThemByOrder) {
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

namespace {

// A kernel that refuses some functions, or something for a while.
struct Kernel {
  std::vector<std::uint64_t> unprobed = {};  // are refused with `code`
  int code = EINVAL;
  int passing = 0, passes = 0;  // this errno the first times
  int calls = 0;
  std::vector<std::uint64_t> probed = {};

  LinkFunctions link() {
    return [this](const ChosenFunctions& some) -> Result<format::Fd> {
      ++calls;
      if (passes > 0) {
        --passes;
        return Error{"disturbed", passing};
      }
      const auto is_refused = [this](std::uint64_t each) { return std::ranges::count(unprobed, each) != 0; };
      if (std::ranges::any_of(some.offsets, is_refused)) return Error{"refused", code};
      probed.insert(probed.end(), some.offsets.begin(), some.offsets.end());
      return format::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    };
  }
};

ChosenFunctions functions(std::size_t count) {
  ChosenFunctions all{std::vector<std::uint64_t>(count), {}};
  std::iota(all.offsets.begin(), all.offsets.end(), std::uint64_t{1});
  return all;
}

TEST(KernelProbes, AFunctionThatIsRefusedIsLeftOut) {
  Kernel kernel{.unprobed = {3, 64}};
  std::vector<format::Fd> links;
  const auto refused = link_functions(functions(100), kernel.link(), links);
  ASSERT_TRUE(refused) << refused.error().what;
  EXPECT_EQ(*refused, 2u);
  EXPECT_EQ(kernel.probed.size(), 98u);
}

TEST(KernelProbes, WhatIsNoFunctionsFaultIsNotLookedForInHalves) {
  for (const int code : {EPERM, EACCES, ENOMEM, E2BIG, EMFILE, ENFILE}) {
    Kernel kernel{.unprobed = {3}, .code = code};
    std::vector<format::Fd> links;
    const auto refused = link_functions(functions(100), kernel.link(), links);
    ASSERT_FALSE(refused) << code;
    EXPECT_EQ(refused.error().code, code);
    EXPECT_EQ(kernel.calls, 1) << code;
    EXPECT_TRUE(links.empty());
  }
}

TEST(KernelProbes, WhatWasDisturbedIsTriedAgainAsItWas) {
  for (const int code : {EINTR, EAGAIN}) {
    Kernel kernel{.passing = code, .passes = 3};
    std::vector<format::Fd> links;
    const auto refused = link_functions(functions(100), kernel.link(), links);
    ASSERT_TRUE(refused) << refused.error().what;
    EXPECT_EQ(*refused, 0u);
    EXPECT_EQ(links.size(), 1u) << "all together";
    Kernel busy{.passing = code, .passes = 1000};
    const auto never = link_functions(functions(100), busy.link(), links);
    ASSERT_FALSE(never) << "no function is to blame";
    EXPECT_EQ(never.error().code, code);
    EXPECT_EQ(busy.calls, 4);
  }
}

}  // namespace

}  // namespace tacho::bpf
