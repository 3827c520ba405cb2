#include "format/host_sections.h"

#include <algorithm>
#include <string>

#include "format/header_strings.h"

namespace tacho::format {

namespace {

constexpr std::uint32_t kMostCpus = 1U << 20;  // more than any kernel can be built for

// In a pipe perf pads sections with zeros to a multiple of 8 bytes, from 6.12 on. A list of dies, which may
// stand here too, has 8 bytes at least.
void skip_padding(Cursor& in) {
  const Bytes rest = in.rest();
  const bool is_padding =
      rest.size() < 8 && std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; });
  if (is_padding) in.skip(rest.size());
}

}  // namespace

Result<> read_cpus(Cursor& in, Features& out) {
  const std::uint32_t available = in.u32();  // available first, whatever the kernel tree's document says
  const std::uint32_t online = in.u32();
  if (!in.failed() && (available == 0 || available > kMostCpus || online > available))
    return Error{"says that " + std::to_string(online) + " of " + std::to_string(available) +
                 " CPUs are online"};
  out.environment.cpus_available = available;
  out.environment.cpus_online = online;
  return Done{};
}

bool write_cpus(const Features& from, ByteWriter& out) {
  const Environment& env = from.environment;
  if (!env.cpus_available || !env.cpus_online) return false;
  out.u32(*env.cpus_available).u32(*env.cpus_online);
  return true;
}

// Two or three lists of siblings around one {core, socket} for each available CPU, whose number stands in
// NRCPUS.
Result<> read_cpu_topology(Cursor& in, Features& out) {
  CpuTopology topology;
  topology.packages = string_list(in);
  topology.cores = string_list(in);
  const std::uint32_t cpus = out.environment.cpus_available.value_or(0);
  if (in.left() >= std::size_t{cpus} * 8) {
    for (std::uint32_t i = 0; i < cpus; ++i) {
      const std::uint32_t core = in.u32();
      topology.cpus.push_back({core, in.u32(), std::nullopt});
    }
    skip_padding(in);
    if (in.left() > 0) {
      topology.dies = string_list(in);
      for (CpuTopologyEntry& cpu : topology.cpus) cpu.die = in.u32();
    }
    skip_padding(in);
  }
  if (in.left() > 0)
    return Error{"describes another number of CPUs than the " + std::to_string(cpus) + " of section NRCPUS"};
  out.environment.cpu_topology = std::move(topology);
  return Done{};
}

bool write_cpu_topology(const Features& from, ByteWriter& out) {
  const auto& topology = from.environment.cpu_topology;
  if (!topology) return false;
  write_list(out, topology->packages);
  write_list(out, topology->cores);
  for (const CpuTopologyEntry& cpu : topology->cpus) out.u32(cpu.core).u32(cpu.socket);
  if (topology->dies.empty()) return true;
  write_list(out, topology->dies);
  for (const CpuTopologyEntry& cpu : topology->cpus) out.u32(cpu.die.value_or(0));
  return true;
}

Result<> read_numa(Cursor& in, Features& out) {
  out.environment.numa_nodes.clear();
  const std::uint32_t count = checked_count(in, in.u32(), 24);
  for (std::uint32_t i = 0; i < count; ++i) {
    NumaNode node;
    node.node = in.u32();
    node.total_kib = in.u64();
    node.free_kib = in.u64();
    node.cpus = header_string(in);
    out.environment.numa_nodes.push_back(std::move(node));
  }
  return Done{};
}

bool write_numa(const Features& from, ByteWriter& out) {
  const auto& nodes = from.environment.numa_nodes;
  if (nodes.empty()) return false;
  out.u32(static_cast<std::uint32_t>(nodes.size()));
  for (const NumaNode& node : nodes)
    out.u32(node.node).u64(node.total_kib).u64(node.free_kib).header_string(node.cpus);
  return true;
}

Result<> read_pmus(Cursor& in, Features& out) {
  out.environment.pmu_mappings.clear();
  const std::uint32_t count = checked_count(in, in.u32(), 2 * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t type = in.u32();
    out.environment.pmu_mappings.emplace_back(type, header_string(in));
  }
  return Done{};
}

bool write_pmus(const Features& from, ByteWriter& out) {
  const auto& pmus = from.environment.pmu_mappings;
  if (pmus.empty()) return false;
  out.u32(static_cast<std::uint32_t>(pmus.size()));
  for (const auto& [type, name] : pmus) out.u32(type).header_string(name);
  return true;
}

Result<> read_groups(Cursor& in, Features& out) {
  out.environment.groups.clear();
  const std::uint32_t count = checked_count(in, in.u32(), 3 * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count; ++i) {
    EventGroup group;
    group.name = header_string(in);
    group.leader = in.u32();
    group.members = in.u32();
    out.environment.groups.push_back(std::move(group));
  }
  return Done{};
}

bool write_groups(const Features& from, ByteWriter& out) {
  const auto& groups = from.environment.groups;
  if (groups.empty()) return false;
  out.u32(static_cast<std::uint32_t>(groups.size()));
  for (const EventGroup& group : groups) out.header_string(group.name).u32(group.leader).u32(group.members);
  return true;
}

Result<> read_caches(Cursor& in, Features& out) {
  out.environment.caches.clear();
  const std::uint32_t version = in.u32();
  if (version != 1) return Error{"version " + std::to_string(version) + " is not known, 1 is"};
  const std::uint32_t count = checked_count(in, in.u32(), 28);
  for (std::uint32_t i = 0; i < count; ++i) {
    CacheLevel cache;
    cache.level = in.u32();
    cache.line_size = in.u32();
    cache.sets = in.u32();
    cache.ways = in.u32();
    cache.type = header_string(in);
    cache.size = header_string(in);
    cache.cpus = header_string(in);
    out.environment.caches.push_back(std::move(cache));
  }
  return Done{};
}

bool write_caches(const Features& from, ByteWriter& out) {
  const auto& caches = from.environment.caches;
  if (caches.empty()) return false;
  out.u32(1).u32(static_cast<std::uint32_t>(caches.size()));
  for (const CacheLevel& cache : caches) {
    out.u32(cache.level).u32(cache.line_size).u32(cache.sets).u32(cache.ways);
    out.header_string(cache.type).header_string(cache.size).header_string(cache.cpus);
  }
  return true;
}

Result<> read_memory(Cursor& in, Features& out) {
  out.environment.memory_nodes.clear();
  const std::uint64_t version = in.u64();
  if (version != 1) return Error{"version " + std::to_string(version) + " is not known, 1 is"};
  out.environment.memory_block_size = in.u64();
  const std::uint32_t count = checked_count(in, in.u64(), 24);
  for (std::uint32_t i = 0; i < count; ++i) {
    MemoryNode node;
    node.node = in.u64();
    in.u64();  // the bitmap's size, which stands again in its own header
    const std::uint64_t bits = in.u64();
    const U64Array words = in.words(bits / 64 + (bits % 64 != 0 ? 1 : 0));
    for (std::size_t k = 0; k < words.size(); ++k) node.bitmap.push_back(words[k]);
    node.bits = bits;
    out.environment.memory_nodes.push_back(std::move(node));
  }
  return Done{};
}

bool write_memory(const Features& from, ByteWriter& out) {
  if (!from.environment.memory_block_size) return false;
  const auto& nodes = from.environment.memory_nodes;
  out.u64(1).u64(*from.environment.memory_block_size).u64(nodes.size());
  for (const MemoryNode& node : nodes) {
    out.u64(node.node).u64(node.bits).u64(node.bits);
    for (const std::uint64_t word : node.bitmap) out.u64(word);
  }
  return true;
}

Result<> read_pmu_caps(Cursor& in, Features& out) {
  out.environment.pmu_caps.clear();
  const std::uint32_t count = checked_count(in, in.u32(), 2 * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count; ++i) {
    PmuCaps pmu;
    pmu.caps = string_pairs(in);
    pmu.pmu = header_string(in);
    out.environment.pmu_caps.push_back(std::move(pmu));
  }
  return Done{};
}

bool write_pmu_caps(const Features& from, ByteWriter& out) {
  const auto& pmus = from.environment.pmu_caps;
  if (pmus.empty()) return false;
  out.u32(static_cast<std::uint32_t>(pmus.size()));
  for (const PmuCaps& pmu : pmus) {
    write_pairs(out, pmu.caps);
    out.header_string(pmu.pmu);
  }
  return true;
}

Result<> read_clock_data(Cursor& in, Features& out) {
  const std::uint32_t version = in.u32();
  if (version != 1) return Error{"version " + std::to_string(version) + " is not known, 1 is"};
  ClockData clock;
  clock.clockid = in.u32();
  clock.wall_ns = in.u64();
  clock.clock_ns = in.u64();
  out.environment.clock_data = clock;
  return Done{};
}

bool write_clock_data(const Features& from, ByteWriter& out) {
  if (!from.environment.clock_data) return false;
  const ClockData& clock = *from.environment.clock_data;
  out.u32(1).u32(clock.clockid).u64(clock.wall_ns).u64(clock.clock_ns);
  return true;
}

Result<> read_machine(Cursor& in, Features& out) {
  const std::uint32_t machine = in.u32();
  out.environment.elf_machine = std::pair(machine, in.u32());
  return Done{};
}

bool write_machine(const Features& from, ByteWriter& out) {
  if (!from.environment.elf_machine) return false;
  out.u32(from.environment.elf_machine->first).u32(from.environment.elf_machine->second);
  return true;
}

}  // namespace tacho::format
