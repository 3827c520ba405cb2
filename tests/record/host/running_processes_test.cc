#include "record/host/running_processes.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>

#include "format/records/perf_abi.h"
#include "format/records/record_view.h"
#include "record/host/process_maps.h"

namespace tacho::record {
namespace {

namespace fs = std::filesystem;

TEST(ProcessTable, NumbersAreThoseOfEachNamespace) {
  EXPECT_EQ(numbers_in_namespaces("Name:\tx\nNSpid:\t812\t7\t1\nNSpgid:\t812\n"), "812,7,1");
  EXPECT_EQ(numbers_in_namespaces("Name:\tx\nNSpid:\t812\n"), "812");
  EXPECT_EQ(numbers_in_namespaces("Name:\tx\n"), "") << "kernels before 4.1";
  EXPECT_EQ(numbers_in_namespaces("Name:\tx\nNSpid:\t8;rm\n"), "");
}

TEST(ProcessTable, AStartIsFoundAfterANameOfAnyKind) {
  const std::string middle = " S 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 ";
  EXPECT_EQ(start_of("812 (a) b) (c)" + middle + "1234 99 5", 100), 12'340'000'000ULL);
  EXPECT_EQ(start_of("812 (a)" + middle + "18446744073709551615 99", 100), 0U) << "too large to be true";
  EXPECT_EQ(start_of("812 (a) S", 100), 0U);
  EXPECT_EQ(start_of("", 100), 0U);
}

TEST(ProcessTable, TheCgroupIsThatOfPerfEvents) {
  EXPECT_EQ(cgroup_path("0::/system.slice/x.service\n"), "/system.slice/x.service");
  EXPECT_EQ(cgroup_path("5:cpu:/a\n4:net_cls,perf_event:/docker/4f:1\n0::/b\n"), "/docker/4f:1");
  EXPECT_EQ(cgroup_path("garbage"), "");
}

TEST(ProcessTable, WhatNamesHoldStaysInItsField) {
  std::string pattern = (fs::temp_directory_path() / "tacho-proc-XXXXXX").string();
  const fs::path root = mkdtemp(pattern.data());
  fs::create_directories(root / "42");
  std::ofstream(root / "42/status") << "Name:\tx\nNSpid:\t42\t3\n";
  std::ofstream(root / "42/cgroup") << "0::/a\tb\\c\n";
  fs::create_symlink("/bin/od\nd", root / "42/exe");
  ProcessTable table(nullptr, root.string());
  table.add_process(42);
  table.add_process(43);  // ended
  const std::string& text = table.text();
  EXPECT_EQ(text.substr(text.find('\n') + 1), "42\t42,3\t0\t0\t0\t/a\\011b\\134c\t/bin/od\\012d\n");
  fs::remove_all(root);
}

}  // namespace

namespace {

namespace abi = format::abi;
namespace fs = std::filesystem;

TEST(RunningProcesses, AMapsLineIsTakenApart) {
  const auto line = parse_maps_line(
      "7f00aa000000-7f00aa021000 r-xp 00002000 fe:01 1234                      /usr/lib/a b.so");
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->is_executable);
  EXPECT_EQ(line->mapping.start, 0x7f00aa000000u);
  EXPECT_EQ(line->mapping.length, 0x21000u);
  EXPECT_EQ(line->mapping.page_offset, 0x2000u);
  EXPECT_EQ(line->mapping.major, 0xfeu);
  EXPECT_EQ(line->mapping.inode, 1234u);
  EXPECT_EQ(line->mapping.protection, unsigned{PROT_READ | PROT_EXEC});
  EXPECT_EQ(line->mapping.flags, unsigned{MAP_PRIVATE});
  EXPECT_EQ(line->mapping.filename, "/usr/lib/a b.so");
}

TEST(RunningProcesses, AnonymousMappingsHaveTheKernelsName) {
  const auto line = parse_maps_line("1000-2000 rwxs 00000000 00:00 0 ");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->mapping.filename, "//anon");
  EXPECT_EQ(line->mapping.flags, unsigned{MAP_SHARED});
  for (const char* wrong : {"", "x", "2000-1000 r-xp 0 0:0 0 ", "1000-2000", "1000-2000 r-xp 0 0:0"}) {
    EXPECT_FALSE(parse_maps_line(wrong)) << wrong;
  }
}

// A /proc of one process with two threads.
class FakeProc : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-proc-XXXXXX").string();
    root = mkdtemp(pattern.data());
    file("42/status", "Name:\tserver\nState:\tS (sleeping)\nPPid:\t7\n");
    file("42/task/42/comm", "server\n");
    file("42/task/43/comm", "worker\n");
    file("42/maps",
         "1000-2000 r--p 00000000 00:00 0 /bin/server\n"
         "2000-3000 r-xp 00001000 00:00 0 /bin/odd\\012name\n");
    fs::create_directories(root / "sys");
  }
  void TearDown() override { fs::remove_all(root); }
  void file(const std::string& name, std::string_view text) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
  fs::path root;
};

std::vector<format::Record> records_in(format::Bytes bytes) {
  std::vector<format::Record> out;
  format::EventAttr attr;
  format::Cursor in(bytes);
  while (in.left() > 0) {
    format::RecordView view;
    const format::Bytes rest = in.rest();
    view.type = in.u32();
    view.misc = in.u16();
    const std::uint16_t size = in.u16();
    view.bytes = rest.first(size);
    in.skip(size - format::kRecordHeaderSize);
    auto record = format::parse_record(view, attr);
    EXPECT_TRUE(record);
    if (record) out.push_back(std::move(*record));
  }
  return out;
}

TEST_F(FakeProc, BecomesForkCommAndMapRecords) {
  RunningProcesses running(root.string(), 0, ForeignReader::start());
  EXPECT_EQ(running.all(), std::vector<int>{42});
  format::ByteWriter out;
  running.describe_process(42, out);
  const auto records = records_in(out.view());
  ASSERT_EQ(records.size(), 5u) << "fork and name of two threads, one executable mapping";
  const auto* fork = std::get_if<format::TaskRecord>(&records[0]);
  ASSERT_NE(fork, nullptr);
  EXPECT_EQ(fork->parent_pid, 7u);
  const auto* thread = std::get_if<format::TaskRecord>(&records[2]);
  ASSERT_NE(thread, nullptr);
  EXPECT_EQ(thread->tid, 43u);
  EXPECT_EQ(thread->parent_pid, 42u);
  const auto* comm = std::get_if<format::CommRecord>(&records[3]);
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(comm->name, "worker");
  const auto* mapping = std::get_if<format::MmapRecord>(&records[4]);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(mapping->filename, "/bin/odd\nname") << "as the kernel's own records have it";
}

TEST_F(FakeProc, WhenTheFirstThreadHasEndedAnotherOneHasTheMappings) {
  EXPECT_EQ(folder_of_process(42, root.string()), root.string() + "/42");
  file("42/maps", "");
  file("43/maps", "2000-3000 r-xp 00001000 00:00 0 /bin/server\n");
  fs::create_symlink("/bin/server", root / "43/exe");
  EXPECT_EQ(folder_of_process(42, root.string()), root.string() + "/43");
  RunningProcesses running(root.string(), 0, ForeignReader::start());
  format::ByteWriter out;
  running.describe_process(42, out);
  const auto records = records_in(out.view());
  const auto* mapping = std::get_if<format::MmapRecord>(&records.back());
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(mapping->filename, "/bin/server");
  EXPECT_EQ(mapping->pid, 42u);
}

TEST_F(FakeProc, TheBusiestProcessesComeFirst) {
  const auto stat = [&](int process, char state, int user, int system, int start) {
    file(std::to_string(process) + "/stat",
         std::to_string(process) + " (a) b) " + state + " 1 1 1 0 -1 0 0 0 0 0 " + std::to_string(user) +
             " " + std::to_string(system) + " 0 0 20 0 1 0 " + std::to_string(start) + " 0\n");
  };
  stat(50, 'S', 10, 10, 1);  // a long life
  stat(60, 'S', 200, 0, 1);  // ten times as much
  stat(70, 'S', 100, 150, 1);
  stat(80, 'R', 0, 0, 1);  // now
  EXPECT_EQ(RunningProcesses(root.string(), 0).busiest_first(), (std::vector<int>{80, 70, 60, 50, 42}));
}

TEST_F(FakeProc, MappingsCanBeLeftOut) {
  RunningProcesses running(root.string(), 0);
  format::ByteWriter out;
  running.describe_process(42, out, RunningProcesses::Describe::AllButMappings);
  const auto records = records_in(out.view());
  ASSERT_EQ(records.size(), 4u) << "fork and name of two threads";
  EXPECT_EQ(std::get_if<format::MmapRecord>(&records.back()), nullptr);
}

TEST_F(FakeProc, AProcessThatEndedLeavesNothing) {
  RunningProcesses running(root.string(), 0);
  format::ByteWriter out;
  running.describe_process(99, out);
  EXPECT_TRUE(out.empty());
}

}  // namespace

}  // namespace tacho::record
