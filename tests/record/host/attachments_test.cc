#include "record/host/attachments.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tacho::record {

namespace {

namespace fs = std::filesystem;

// /sys/class/block of a host with disks of up to one partition.
class Disks : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-disks-XXXXXX").string();
    root = mkdtemp(pattern.data());
    fs::create_directories(root / "class");
  }
  void TearDown() override { fs::remove_all(root); }

  // By names as the kernel's folders have them.
  void add(const std::string& disk, const std::string& partition = "") {
    fs::create_directories(root / "devices" / disk / partition);
    fs::create_directory_symlink(root / "devices" / disk, root / "class" / disk);
    if (partition.empty()) return;
    std::ofstream(root / "devices" / disk / partition / "partition") << "1\n";
    fs::create_directory_symlink(root / "devices" / disk / partition, root / "class" / partition);
  }
  std::vector<BlockDevice> devices(const std::string& lines) {
    return block_devices("major minor  #blocks  name\n\n" + lines, (root / "class").string());
  }

  fs::path root;
};

TEST_F(Disks, PartitionsKnowTheirDisk) {
  add("sda", "sda1");
  const auto found = devices("   8        0  268435456 sda\n   8        1  268434432 sda1\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "sda");
  EXPECT_EQ(found[0].disk, "");
  EXPECT_EQ(found[1].dev, 8u << 20 | 1u);
  EXPECT_EQ(found[1].disk, "sda");
}

TEST_F(Disks, AreFoundByName) {
  add("sda", "sda1");
  const auto all = devices("8 0 9 sda\n8 1 8 sda1\n");
  const auto disk = disk_named(all, "sda"), by_path = disk_named(all, "/dev/sda");
  ASSERT_TRUE(disk && by_path);
  EXPECT_EQ(disk->dev, 8u << 20);
  EXPECT_EQ(by_path->dev, 8u << 20);
  const auto unknown = disk_named(all, "sdb");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().what, "there is no disk 'sdb'; did you mean 'sda'?");
}

TEST_F(Disks, APartitionIsAnsweredWithItsDisk) {
  add("nvme0n1", "nvme0n1p1");
  const auto refused = disk_named(devices("259 0 9 nvme0n1\n259 1 8 nvme0n1p1\n"), "/dev/nvme0n1p1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "'nvme0n1p1' is a partition, whose requests count as its disk's: disk=nvme0n1");
}

TEST_F(Disks, NamesWithASlashAreFound) {
  add("cciss!c0d0", "cciss!c0d0p1");
  const auto all = devices("104 0 9 cciss/c0d0\n104 1 8 cciss/c0d0p1\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].disk, "cciss/c0d0");
  EXPECT_TRUE(disk_named(all, "/dev/cciss/c0d0"));
}

TEST_F(Disks, ManyAreAllKnown) {
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "65 " + std::to_string(i) + " 9 sd" + std::to_string(i) + "\n";
  const auto last = disk_named(devices(lines), "sd199");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->dev, 65u << 20 | 199u);
}

}  // namespace

}  // namespace tacho::record
