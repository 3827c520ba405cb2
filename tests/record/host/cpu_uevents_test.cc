#include "record/host/cpu_uevents.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tacho::record {
namespace {

// As the kernel sends them: words, each with a NUL behind it.
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

TEST(CpuUevents, OtherMessagesAreOfNobody) {
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

TEST(CpuUevents, WhatSomebodyHadTheKernelSendIsNoNews) {
  EXPECT_EQ(heard("online@/devices/system/cpu/cpu1 ACTION=online SUBSYSTEM=cpu SYNTH_UUID=0 SEQNUM=832 "),
            std::nullopt);
}

TEST(CpuUevents, NobodyCameMeanwhile) { EXPECT_TRUE(CpuUevents::open().came().empty()); }

}  // namespace
}  // namespace tacho::record
