#include "format/extensions/map_owner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>

namespace tacho::format {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000, kBegan = 1'700'000'000 * kSecond;

struct stat map_of(uid_t user, std::int64_t written, std::int64_t changed = 0) {
  struct stat file {};
  file.st_mode = S_IFREG | 0644;
  file.st_uid = user;
  file.st_mtim.tv_sec = written / kSecond;
  file.st_ctim.tv_sec = (changed != 0 ? changed : written) / kSecond;
  return file;
}

std::string verdict(const struct stat& file, const MapOwner& process) {
  const auto trust = check_map(file, process);
  if (!trust) return trust.error().what;
  return *trust == MapTrust::Its ? "its" : "unsure";
}

TEST(MapOwner, AMapIsItsProcessesOrRootsAndMadeWhileItRan) {
  const MapOwner running{.runs = true, .user = 1000, .began = kBegan, .ended = {}};
  EXPECT_EQ(verdict(map_of(1000, kBegan + kSecond), running), "its");
  EXPECT_EQ(verdict(map_of(0, kBegan + kSecond), running), "its");
  EXPECT_EQ(verdict(map_of(1001, kBegan + kSecond), running), "is of another user");
  EXPECT_EQ(verdict(map_of(1000, kBegan - kSecond), running), "its") << "clocks tick";
  EXPECT_EQ(verdict(map_of(1000, kBegan - 9 * kSecond), running),
            "is older than the process: it is of an earlier process with this pid");
  MapOwner over = running;
  over.runs = false;
  over.ended = kBegan + 60 * kSecond;
  EXPECT_EQ(verdict(map_of(1000, kBegan + kSecond), over), "its");
  EXPECT_EQ(verdict(map_of(1000, kBegan + 90 * kSecond), over), "was changed after the process had ended");
  EXPECT_EQ(verdict(map_of(1000, kBegan + kSecond, kBegan + 90 * kSecond), over),
            "was changed after the process had ended")
      << "its time of writing was set back";
}

TEST(MapOwner, OnlyFilesThatOthersMayReadAreMaps) {
  const MapOwner running{.runs = true, .user = 1000, .began = kBegan, .ended = {}};
  struct stat file = map_of(0, kBegan);
  file.st_mode = S_IFREG | 0600;
  EXPECT_EQ(verdict(file, running), "is not for that user");
  file.st_mode = S_IFLNK | 0777;
  EXPECT_EQ(verdict(file, running), "is not a regular file");
}

TEST(MapOwner, WhatCannotBeKnownIsUnsure) {
  const MapOwner running{.runs = true, .user = 1000, .began = kBegan, .ended = {}};
  EXPECT_EQ(verdict(map_of(1000, kBegan), MapOwner{}), "unsure");
  MapOwner less = running;
  less.user.reset();
  EXPECT_EQ(verdict(map_of(1000, kBegan), less), "unsure") << "whose it was";
  less = running;
  less.began.reset();
  EXPECT_EQ(verdict(map_of(1000, kBegan), less), "unsure") << "when it began";
  less = running;
  less.runs = false;
  EXPECT_EQ(verdict(map_of(1000, kBegan), less), "unsure") << "when it ended";
}

std::uint64_t monotonic() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec * kSecond + time.tv_nsec);
}

TEST(MapOwner, AProcessThatRanWhenTheCaptureEndedIsKnown) {
  const auto self = static_cast<std::uint32_t>(::getpid());
  const MapOwner known = owner_of_map(self, 0, monotonic());
  EXPECT_TRUE(known.runs);
  EXPECT_EQ(known.user, ::getuid());
  const MapOwner other = owner_of_map(self, 0, 1);
  EXPECT_FALSE(other.runs) << "this one began when the capture was over";
  EXPECT_FALSE(other.user);
  EXPECT_TRUE(other.ended);
  EXPECT_FALSE(owner_of_map(self, 0, 0).runs) << "no time is known";
}

}  // namespace
}  // namespace tacho::format
