#include <gtest/gtest.h>

#include "report/perf_text/header_text.h"

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
}  // namespace tacho::report
