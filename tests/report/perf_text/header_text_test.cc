#include "report/perf_text/header_text.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/capture_builder.h"

namespace tacho::report {

namespace {

using format::Environment;

TEST(HostText, TopologyTellsDiesWhenThereAreAny) {
  Environment environment;
  environment.cpu_topology = {{"0-1"}, {"0", "1"}, {}, {{0, 0, {}}, {1, 0, {}}}};
  EXPECT_EQ(cpu_topology_text(environment, Names::Safe),
            "# sibling sockets : 0-1\n# sibling threads : 0\n# sibling threads : 1\n"
            "# CPU 0: Core ID 0, Socket ID 0\n# CPU 1: Core ID 1, Socket ID 0\n");
  environment.cpu_topology->dies = {"0-1"};
  environment.cpu_topology->cpus = {{0, 0, 0}};
  EXPECT_EQ(cpu_topology_text(environment, Names::Safe),
            "# sibling sockets : 0-1\n# sibling dies    : 0-1\n# sibling threads : 0\n# sibling threads : 1\n"
            "# CPU 0: Core ID 0, Die ID 0, Socket ID 0\n");
  environment.cpu_topology->cpus.clear();
  EXPECT_NE(cpu_topology_text(environment, Names::Safe).find("is not available"), std::string::npos);
}

TEST(HostText, MemoryShowsItsSizeAndItsBlocks) {
  Environment environment;
  environment.memory_block_size = 0x8000000;
  environment.memory_nodes = {{0, 70, {0b1011, 1ULL << 5}}};
  EXPECT_EQ(memory_text(environment),
            "# memory nodes (nr 1, block size 0x8000000):\n#    0 [512M]: 0-1,3,69\n");
}

TEST(HostText, ALongListOfBlocksIsCutAsPerfCutsIt) {
  Environment environment;
  environment.memory_block_size = 1;
  environment.memory_nodes = {{1, 64 * 20, std::vector<std::uint64_t>(20, 0x5555555555555555)}};
  const std::string text = memory_text(environment);
  EXPECT_EQ(text.size() - text.find("]: ") - 3 - 1, 99u);
}

TEST(HostText, MoreBitsThanWordsAreNotRead) {
  Environment environment;
  environment.memory_nodes = {{0, ~std::uint64_t{0}, {1}}};
  EXPECT_NE(memory_text(environment).find("]: 0\n"), std::string::npos);
}

TEST(HostText, HostileNamesAreMadeSafe) {
  Environment environment;
  environment.numa_nodes = {{0, 2, 1, "\x1b[2J"}};
  environment.caches = {{1, 64, 64, 8, "Da\nta", "32K", "0"}};
  EXPECT_EQ(numa_text(environment, Names::Safe),
            "# node0 meminfo  : total = 2 kB, free = 1 kB\n# node0 cpu list : \\x1b[2J\n");
  EXPECT_EQ(cache_text(environment, Names::Safe), "# CPU cache info:\n#  L1 Da\\x0ata             32K [0]\n");
}

}  // namespace

namespace {

const std::string kHead = "pid\tpids\tstart_ns\tpid_namespace\tmount_namespace\tcgroup\texecutable\n";

std::string shown(const std::string& table) {
  TextBuffer out;
  write_processes(out, table, Names::Safe);
  return std::string(out.view());
}

TEST(ProcessesText, WhoHasOtherNumbersInsideIsShown) {
  EXPECT_EQ(
      shown(kHead + "1\t1\t0\t5\t6\t/\t/sbin/init\n" +
            "812\t812,7,1\t12345678901\t8\t9\t/docker/4f\t/usr/sbin/nginx\n"),
      "# process : 812 (7,1 inside), /usr/sbin/nginx, started 12.345 s after boot, cgroup /docker/4f, mount "
      "namespace 9\n"
      "# processes : 2 ran at the start, 1 of them in a pid namespace of their own\n");
}

TEST(ProcessesText, DamageIsPassedOver) {
  const std::string none = "# processes : 0 ran at the start, 0 of them in a pid namespace of their own\n";
  for (const std::string& table : {std::string(), kHead, kHead + "x\ty\n\n\t\t\t", std::string("no line end"),
                                   kHead + "1,2\t1,2\t-1\t0\t0\t\t\n"})
    EXPECT_EQ(shown(table), none) << table;
  const std::string hostile = shown(kHead + "8\t8,\x1b[2J\t0\t0\t0\t\x1b]0;x\x07\t\n");
  EXPECT_EQ(hostile.find('\x1b'), std::string::npos) << hostile;
}

TEST(ProcessesText, OfVeryManyTheFirstAreShown) {
  std::string table = kHead;
  for (int i = 0; i < 1000; ++i) table += "8\t8,1\t0\t0\t0\t/\t\n";
  const std::string text = shown(table);
  EXPECT_LT(text.size(), 30'000U);
  EXPECT_NE(text.find("# processes : 1000 ran at the start, 1000 of them"), std::string::npos);
}

}  // namespace

namespace {

using namespace format;

std::string stats(const test::CaptureBuilder& builder, Diagnostics& diagnostics) {
  const test::TemporaryFile file(builder.file());
  auto reader = CaptureReader::open(file.path(), diagnostics);
  EXPECT_TRUE(reader);
  TextBuffer out;
  write_stats(out, *reader, diagnostics, Names::Safe);
  return std::string(out.view());
}

TEST(StatsText, RecordsAreCountedByTypeAndSamplesByEvent) {
  test::CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {1});
  builder.event(test::software_event(abi::kPageFaults), "faults\x1b", {2});
  builder.event(test::software_event(abi::kDummy), "dummy", {3});
  builder.comm(1, 1, "init");
  test::SampleFields sample;
  for (const std::uint64_t id : {1, 2, 1}) {
    sample.id = id;
    builder.sample(sample);
  }
  write_lost_samples(builder.data(), 5, test::software_event(abi::kPageFaults), 2);
  builder.round();
  Diagnostics diagnostics;
  EXPECT_EQ(stats(builder, diagnostics),
            "\nAggregated stats:\n"
            "           TOTAL events:          6\n"
            "            COMM events:          1  (16.7%)\n"
            "          SAMPLE events:          3  (50.0%)\n"
            "    LOST_SAMPLES events:          1  (16.7%)\n"
            "  FINISHED_ROUND events:          1  (16.7%)\n"
            "clock stats:\n"
            "          SAMPLE events:          2\n"
            "faults\\x1b stats:\n"
            "          SAMPLE events:          1\n"
            "    LOST_SAMPLES events:          5\n");
  EXPECT_FALSE(diagnostics.incomplete());
}

TEST(StatsText, ASampleOfNoEventIsCountedAndTold) {
  test::CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {1});
  builder.event(test::software_event(abi::kPageFaults), "faults", {2});
  test::SampleFields sample;
  sample.id = 99;
  builder.sample(sample);
  Diagnostics diagnostics;
  EXPECT_NE(stats(builder, diagnostics).find("SAMPLE events:          1  (100.0%)"), std::string::npos);
  EXPECT_TRUE(diagnostics.incomplete());
}

TEST(StatsText, NothingInTheCaptureIsNoDivision) {
  test::CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {1});
  Diagnostics diagnostics;
  EXPECT_EQ(stats(builder, diagnostics), "\nAggregated stats:\n           TOTAL events:          0\n");
}

}  // namespace

}  // namespace tacho::report
