#include "record/now/awaited_locks.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tacho::record {
namespace {

using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t kOwner = 4711;
constexpr std::uint32_t kWaiters = 0x80000000, kRobust = 0x10, kShared = 0x80;

CurrentCall call(std::uint64_t operation, std::uint64_t value) {
  return {.number = SYS_futex, .arguments = {0x1000, operation, value, 0, 0, 0}, .file = {}};
}

std::uint32_t owner(std::uint32_t value, const Words& from, const Words& before = {},
                    bool is_private = true) {
  const auto found = owner_in({.address = 0x1000, .value = value, .is_private = is_private}, {before, from});
  return found ? found->tid : 0;
}

TEST(AwaitedLocks, AWaitHasItsOperation) {
  const auto wait = futex_wait_in(call(0x80, 2));
  ASSERT_TRUE(wait);
  EXPECT_TRUE(wait->is_private);
  EXPECT_FALSE(wait->locks);
  EXPECT_EQ(wait->value, 2U);
  EXPECT_TRUE(futex_wait_in(call(0x189, 2)));  // FUTEX_WAIT_BITSET with a clock, as pthread_mutex_timedlock
  EXPECT_TRUE(futex_wait_in(call(0x86, 0))->locks);  // FUTEX_LOCK_PI
  EXPECT_FALSE(futex_wait_in(call(0x81, 1)));        // FUTEX_WAKE
  EXPECT_FALSE(futex_wait_in({.number = SYS_read, .arguments = {}, .file = {}}));
}

// lock, count, owner, nusers, kind
TEST(AwaitedLocks, AMutexOfGlibcHasItsOwnerTwoWordsLater) {
  EXPECT_EQ(owner(2, {2, 0, kOwner, 1, 0}), kOwner);
  EXPECT_EQ(owner(2, {2, 3, kOwner, 1, 1}), kOwner) << "recursive";
  EXPECT_EQ(owner(2, {2, 0, kOwner, 1, 2}), kOwner) << "error checking";
  EXPECT_EQ(owner(2, {2, 0, kOwner, 1, kShared}, {}, false), kOwner);
}

TEST(AwaitedLocks, AnotherFutexIsNoMutex) {
  EXPECT_EQ(owner(2, {1, 0, kOwner, 1, 0}), 0U) << "it was unlocked meanwhile";
  EXPECT_EQ(owner(1, {1, 0, kOwner, 1, 0}), 0U);
  EXPECT_EQ(owner(2, {2, 0, 0, 1, 0}), 0U) << "the lock was taken, its owner is not written yet";
  EXPECT_EQ(owner(2, {2, 0, kOwner, 0, 0}), 0U) << "no users";
  EXPECT_EQ(owner(2, {2, 1, kOwner, 1, 0}), 0U) << "a count without being recursive";
  EXPECT_EQ(owner(2, {2, 0, kOwner, 1, 1}), 0U) << "recursive without a count";
  EXPECT_EQ(owner(2, {2, 0, kOwner, 1, 0x4000}), 0U) << "no such kind";
  EXPECT_EQ(owner(2, {2, 0, kOwner, 1, kShared}), 0U) << "shared, but waited for as private";
  EXPECT_EQ(owner(2, {2, 0, kOwner, 1}), 0U) << "the memory ends";
  EXPECT_EQ(owner(2, {}), 0U);
}

TEST(AwaitedLocks, ARobustMutexHasItsOwnerInTheFutex) {
  EXPECT_EQ(owner(kWaiters | kOwner, {kWaiters | kOwner, 0, kOwner, 1, kRobust}), kOwner);
  EXPECT_EQ(owner(kWaiters | kOwner, {kWaiters | kOwner, 0, kOwner, 1, 0}), 0U);
  EXPECT_EQ(owner(kWaiters | kOwner, {kWaiters | 1, 0, kOwner, 1, kRobust}), 0U) << "another owner by now";
}

TEST(AwaitedLocks, AMutexOfMuslHasAnOwnerUnlessItIsOfTheDefaultType) {
  EXPECT_EQ(owner(kWaiters | kOwner, {kWaiters | kOwner, 1}, {1}), kOwner);
  EXPECT_EQ(owner(kWaiters | 16, {kWaiters | 16, 1}, {0}), 0U) << "16 is EBUSY";
}

TEST(AwaitedLocks, TheKernelNamesTheOwnerOfAMutexWithPriorityInheritance) {
  const auto of = [](std::uint32_t word) {
    const Words from{word};
    const auto found = owner_in({.address = 0x1000, .locks = true}, {{}, from});
    return found ? found->tid : 0;
  };
  EXPECT_EQ(of(kWaiters | kOwner), kOwner);
  EXPECT_EQ(of(kWaiters | 0x40000000 | kOwner), kOwner);
  EXPECT_EQ(of(kOwner), 0U) << "nobody waits any more";
}

// readers, writers, wrphase_futex, writers_futex, 2 unused, cur_writer, shared
TEST(AwaitedLocks, AReadWriteLockHasItsWriter) {
  const auto reader = owner_in({.address = 0x1000, .value = 3, .is_private = true},
                               {Words{0, 3, 0}, Words{3, 1, 0, 0, kOwner, 0, 0}});
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->tid, kOwner);
  EXPECT_EQ(reader->kind, LockKind::ReadWriteLock);
  EXPECT_EQ(owner(3, {3, 0, 0, kOwner, 0, 0, 0}, {2, 1, 1}), kOwner) << "awaited by a writer";
  EXPECT_EQ(owner(3, {3, 0, 0, kOwner, 0, 0, 0}, {0, 1, 1}), 0U) << "no writer has it";
  EXPECT_EQ(owner(3, {3, 0, 0, 0, 0, 0, 0}, {2, 1, 1}), 0U) << "the writer waits for readers";
  EXPECT_EQ(owner(3, {3, 1, 0, 0, kOwner, 1, 0}, {0, 3, 0}), 0U) << "shared, but waited for as private";
}

TEST(AwaitedLocks, ContextSwitchesAreTheSumOfBothKinds) {
  EXPECT_EQ(switches_in("Name:\tx\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n"), 42U);
  EXPECT_EQ(switches_in("Name:\tx\nvoluntary_ctxt_switches:\t40\n"), std::nullopt);
  EXPECT_EQ(switches_in(""), std::nullopt);
}

}  // namespace
}  // namespace tacho::record
