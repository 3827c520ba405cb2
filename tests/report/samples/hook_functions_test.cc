#include "report/samples/hook_functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/records/perf_abi.h"
#include "symbolize/address_space.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

class HookFunctionsTest : public testing::Test {
 protected:
  std::size_t count(const std::vector<std::uint64_t>& words) {
    const symbolize::SpaceVersion& space = spaces_.version(1);
    return hooks_.count_at_leaf({std::as_bytes(std::span(words)), std::endian::native}, space);
  }

  HookFunctions hooks_{{{0x3000, 0x3100}, {0x1000, 0x1100}}};
  symbolize::AddressSpaces spaces_;
};

TEST_F(HookFunctionsTest, FramesAtTheLeafAreCounted) {
  EXPECT_EQ(count({abi::kContextKernel, 0x1000, 0x2000, 0x2100}), 1u);
  EXPECT_EQ(count({abi::kContextKernel, 0x10ff, 0x3000, 0x2000, abi::kContextUser, 0x1000}), 2u);
  EXPECT_EQ(count({abi::kContextKernel, 0x1100, 0x3000, 0x2000}), 0u) << "the leaf is behind the hook";
  EXPECT_EQ(count({abi::kContextKernel, 0x2000, 0x1000, 0x2000}), 0u);
}

TEST_F(HookFunctionsTest, TheOutermostKernelFunctionStays) {
  EXPECT_EQ(count({abi::kContextKernel, 0x1000}), 0u);
  EXPECT_EQ(count({abi::kContextKernel, 0x1000, 0x3000}), 1u);
  EXPECT_EQ(count({abi::kContextKernel, 0x1000, abi::kContextUser, 0x1000, 0x2000}), 0u);
}

TEST_F(HookFunctionsTest, UserCodeIsNoHook) {
  EXPECT_EQ(count({abi::kContextUser, 0x1000, 0x2000}), 0u);
  EXPECT_EQ(count({0x1000, 0x2000}), 0u);
  EXPECT_EQ(count({}), 0u);
}

TEST(HookFunctionNames, AreThoseOfTracepointsAndTheirPrograms) {
  for (const char* name : {"__traceiter_sched_switch", "perf_trace_sched_switch", "perf_syscall_enter",
                           "syscall_trace_enter", "trace_call_bpf", "bpf_trace_run4"})
    EXPECT_TRUE(is_hook_function(name)) << name;
  for (const char* name : {"__schedule", "do_syscall_64", "perf_event_mmap", "syscall", ""})
    EXPECT_FALSE(is_hook_function(name)) << name;
}

TEST(HookFunctionNames, SamplesOfClocksAreNotTakenByHooks) {
  format::EventAttr attr;
  attr.type = abi::kSoftware;
  EXPECT_FALSE(is_taken_by_hook(attr));
  attr.config = abi::kBpfOutput;
  EXPECT_TRUE(is_taken_by_hook(attr));
  attr.type = abi::kTracepoint;
  attr.config = 300;
  EXPECT_TRUE(is_taken_by_hook(attr));
  attr.flags |= abi::kExcludeCallchainKernel;
  EXPECT_FALSE(is_taken_by_hook(attr));
}

}  // namespace
}  // namespace tacho::report
