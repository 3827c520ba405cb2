#include "record/events/target.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace tacho::record {
namespace {

TEST(Target, CpuListsAreSortedAndEachCpuIsOnce) {
  const auto cpus = parse_cpu_list("6,0-3,2");
  ASSERT_TRUE(cpus);
  EXPECT_EQ(*cpus, (std::vector<int>{0, 1, 2, 3, 6}));
}

TEST(Target, WrongListsAreRefused) {
  for (const char* text : {"", "a", "1-", "3-1", "1,,2", "0-99999999", "-1", "1 2"}) {
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  }
  for (const char* text : {"", "0", "x", "1,", "99999999999"}) EXPECT_FALSE(parse_id_list(text)) << text;
}

TargetOptions everything() {
  TargetOptions options;
  options.all_cpus = true;
  return options;
}
TargetOptions process_one() {
  TargetOptions options;
  options.processes = {1};
  return options;
}

TEST(Target, WithoutOptionsTheCommandIsWatchedOrElseTheSystem) {
  EXPECT_EQ(choose_target({}, true)->watch, Watch::Command);
  EXPECT_EQ(choose_target({}, false)->watch, Watch::System);
  EXPECT_EQ(choose_target(everything(), true)->watch, Watch::System);
  EXPECT_EQ(choose_target(process_one(), true)->watch, Watch::Processes);
}

TEST(Target, OptionsThatExcludeEachOtherAreNamed) {
  TargetOptions both = process_one();
  both.all_cpus = true;
  const auto target = choose_target(both, false);
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().what, "-a and -p exclude each other");
  TargetOptions twice = process_one();
  twice.threads = {1};
  EXPECT_FALSE(choose_target(twice, false));
}

TEST(Target, ThreadsOfOurselvesAreFound) {
  const auto threads = threads_of({Watch::Processes, {}, {static_cast<int>(getpid())}});
  ASSERT_TRUE(threads);
  EXPECT_EQ(threads->front(), getpid());
  EXPECT_FALSE(threads_of({Watch::Processes, {}, {1 << 30}}));
}

}  // namespace
}  // namespace tacho::record
