#include "record/session/cpu_hotplug.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::record {

namespace {

class CpuWatchTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file); }
  std::string seen(CpuWatch& watch, const char* online, const std::vector<int>& came = {}) const {
    std::ofstream(file) << online;
    std::string text;
    for (const CpuWatch::Change& change : watch.take_changes(came))
      text += (change.is_online ? "+" : "-") + std::to_string(change.cpu);
    return text;
  }
  std::string file =
      (std::filesystem::temp_directory_path() / ("tacho-online-" + std::to_string(getpid()))).string();
};

TEST_F(CpuWatchTest, ReportsEachChangeOnce) {
  CpuWatch watch({3, 0, 1, 1, 2}, {}, file);
  EXPECT_EQ(seen(watch, "0-3\n"), "");
  EXPECT_EQ(seen(watch, "0,2-3\n"), "-1");
  EXPECT_EQ(seen(watch, "0,2-3\n"), "");
  EXPECT_EQ(seen(watch, "0-1\n"), "+1-2-3");
  EXPECT_EQ(seen(watch, "0-7\n"), "+2+3") << "those that are not recorded are nobody's business";
}

TEST_F(CpuWatchTest, OfflineCpusAreReportedWhenTheyCome) {
  CpuWatch watch({0, 1}, {2, 3}, file);
  EXPECT_EQ(seen(watch, "0-1\n"), "");
  EXPECT_EQ(seen(watch, "0-1,3\n"), "+3");
  EXPECT_EQ(seen(watch, "1\n"), "-0-3");
  EXPECT_EQ(seen(watch, "0-3\n"), "+0+2+3");
}

TEST_F(CpuWatchTest, WhoCameWithoutBeingSeenAwayWentAndCame) {
  CpuWatch watch({0, 1}, {2}, file);
  EXPECT_EQ(seen(watch, "0-1\n", {1}), "-1+1");
  EXPECT_EQ(seen(watch, "0-1\n", {0, 1, 1, 3}), "-0+0-1+1") << "once for each, and for nobody else";
  EXPECT_EQ(seen(watch, "0-2\n", {2}), "+2");
  EXPECT_EQ(seen(watch, "0\n", {1}), "-1-2") << "it came, and went again";
  EXPECT_EQ(seen(watch, "0-2\n", {1, 1, 2}), "+1+2");
}

TEST_F(CpuWatchTest, ALateUeventIsTheSameComing) {
  CpuWatch watch({0, 1}, {}, file);
  EXPECT_EQ(seen(watch, "0\n"), "-1");
  EXPECT_EQ(seen(watch, "0-1\n"), "+1");
  EXPECT_EQ(seen(watch, "0-1\n", {1}), "");
  EXPECT_EQ(seen(watch, "0-1\n", {1}), "-1+1");
  EXPECT_EQ(seen(watch, "0\n"), "-1");
  EXPECT_EQ(seen(watch, "0-1\n"), "+1");
  EXPECT_EQ(seen(watch, "0-1\n", {1, 1}), "-1+1") << "the one that was seen, and another";
}

TEST_F(CpuWatchTest, WithoutTheFileNothingChanges) {
  CpuWatch watch({0, 1}, {}, file);
  EXPECT_EQ(seen(watch, ""), "");
  EXPECT_EQ(seen(watch, "all of them"), "");
  CpuWatch threads({-1}, {}, file);
  EXPECT_EQ(seen(threads, "0"), "");
  CpuWatch nowhere({0, 1}, {}, file + "-not-there");
  EXPECT_TRUE(nowhere.take_changes().empty());
}

}  // namespace

namespace {

// As the kernel sends them: words, each with a NUL after it.
std::optional<int> heard(std::string_view words) {
  std::string message(words);
  for (char& c : message)
    if (c == ' ') c = '\0';
  return cpu_that_came(std::as_bytes(std::span(message)));
}

TEST(CpuUevents, ACpuThatComes) {
  EXPECT_EQ(
      heard("online@/devices/system/cpu/cpu1 ACTION=online DEVPATH=/devices/system/cpu/cpu1 SUBSYSTEM=cpu "
            "SEQNUM=831 "),
      1);
  EXPECT_EQ(heard("online@/devices/system/cpu/cpu1023 SUBSYSTEM=cpu"), 1023);
}

TEST(CpuUevents, OtherMessagesAreIgnored) {
  for (const char* message :
       {"", " ", "offline@/devices/system/cpu/cpu1 SUBSYSTEM=cpu ",
        "online@/devices/system/memory/memory3 SUBSYSTEM=memory ",
        "online@/devices/system/cpu/cpu1 SUBSYSTEM=memory ", "online@/devices/system/cpu/cpu1 ",
        "online@/devices/system/cpu/cpu SUBSYSTEM=cpu ", "online@/devices/system/cpu/cpu1x SUBSYSTEM=cpu ",
        "online@/devices/system/cpu/cpu-1 SUBSYSTEM=cpu ",
        "online@/devices/system/cpu/cpu99999999999 SUBSYSTEM=cpu ",
        "libudev online@/devices/system/cpu/cpu1 SUBSYSTEM=cpu "})
    EXPECT_EQ(heard(message), std::nullopt) << message;
}

TEST(CpuUevents, TriggeredUeventsAreIgnored) {
  EXPECT_EQ(heard("online@/devices/system/cpu/cpu1 ACTION=online SUBSYSTEM=cpu SYNTH_UUID=0 SEQNUM=832 "),
            std::nullopt);
}

TEST(CpuUevents, NoCpuCameMeanwhile) { EXPECT_TRUE(CpuUevents::open().came().empty()); }

}  // namespace

}  // namespace tacho::record
