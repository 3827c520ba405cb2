#include "report/perf_text/host_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tacho::report {
namespace {

using format::Environment;
using format::MemoryNode;

void add_siblings(std::string& text, const char* label, const std::vector<std::string>& lists, Names names) {
  for (const std::string& list : lists) text += fmt::format("# {}: {}\n", label, printable(list, names));
}

// "24G": the largest unit that leaves at least 2.
std::string short_size(std::uint64_t bytes) {
  constexpr std::string_view kUnits = "BKMG";
  std::size_t unit = 0;
  for (; bytes / 1024 > 1 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

// "0-23,32-199": the bits that are set. perf cuts the list to 99 characters.
std::string bit_list(const MemoryNode& node) {
  constexpr std::size_t kLongest = 99;
  const std::uint64_t bits = std::min<std::uint64_t>(node.bits, node.bitmap.size() * 64);
  const auto is_set = [&](std::uint64_t bit) { return (node.bitmap[bit / 64] >> bit % 64 & 1) != 0; };
  std::string list;
  for (std::uint64_t bit = 0; bit < bits && list.size() <= kLongest; ++bit) {
    if (!is_set(bit)) continue;
    std::uint64_t last = bit;
    while (last + 1 < bits && is_set(last + 1)) ++last;
    if (!list.empty()) list += ',';
    list += last == bit ? fmt::format("{}", bit) : fmt::format("{}-{}", bit, last);
    bit = last;
  }
  return list.substr(0, kLongest);
}

}  // namespace

std::string cpu_topology_text(const Environment& environment, Names names) {
  if (!environment.cpu_topology) return {};
  const format::CpuTopology& topology = *environment.cpu_topology;
  const bool has_dies = !topology.dies.empty();
  std::string text;
  add_siblings(text, "sibling sockets ", topology.packages, names);
  add_siblings(text, "sibling dies    ", topology.dies, names);
  add_siblings(text, "sibling threads ", topology.cores, names);
  if (topology.cpus.empty())
    return text + (has_dies ? "# Core ID, Die ID and Socket ID information is not available\n"
                            : "# Core ID and Socket ID information is not available\n");
  for (std::size_t i = 0; i < topology.cpus.size(); ++i) {
    const format::CpuTopologyEntry& cpu = topology.cpus[i];
    const std::string die = has_dies ? fmt::format("Die ID {}, ", cpu.die.value_or(0)) : "";
    text += fmt::format("# CPU {}: Core ID {}, {}Socket ID {}\n", i, static_cast<std::int32_t>(cpu.core), die,
                        static_cast<std::int32_t>(cpu.socket));
  }
  return text;
}

std::string numa_text(const Environment& environment, Names names) {
  std::string text;
  for (const format::NumaNode& node : environment.numa_nodes)
    text += fmt::format("# node{0} meminfo  : total = {1} kB, free = {2} kB\n# node{0} cpu list : {3}\n",
                        node.node, node.total_kib, node.free_kib, printable(node.cpus, names));
  return text;
}

std::string cache_text(const Environment& environment, Names names) {
  std::string text = "# CPU cache info:\n";
  for (const format::CacheLevel& cache : environment.caches)
    text += fmt::format("#  L{} {:<15} {:>8} [{}]\n", cache.level, printable(cache.type, names),
                        printable(cache.size, names), printable(cache.cpus, names));
  return text;
}

std::string memory_text(const Environment& environment) {
  const std::uint64_t block = environment.memory_block_size.value_or(0);
  std::string text =
      fmt::format("# memory nodes (nr {}, block size {:#x}):\n", environment.memory_nodes.size(), block);
  for (const MemoryNode& node : environment.memory_nodes) {
    std::uint64_t blocks = 0;
    for (const std::uint64_t word : node.bitmap) blocks += static_cast<std::uint64_t>(std::popcount(word));
    text += fmt::format("#  {:3} [{}]: {}\n", node.node, short_size(block * blocks), bit_list(node));
  }
  return text;
}

}  // namespace tacho::report
