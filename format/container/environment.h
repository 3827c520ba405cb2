// The host and the recording, as the feature sections of a capture's header describe them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/records/build_id.h"

namespace tacho::format {

using StringPairs = std::vector<std::pair<std::string, std::string>>;

struct BuildIdEntry {
  std::int32_t pid = -1;   // -1: the host
  std::uint16_t misc = 0;  // cpumode: kernel or user
  BuildId build_id;
  std::string filename;
};

struct CpuTopologyEntry {
  std::uint32_t core = 0, socket = 0;
  std::optional<std::uint32_t> die;
};
struct CpuTopology {
  std::vector<std::string> packages, cores, dies;  // sibling lists
  std::vector<CpuTopologyEntry> cpus;
};
struct NumaNode {
  std::uint32_t node = 0;
  std::uint64_t total_kib = 0, free_kib = 0;
  std::string cpus;
};
struct CacheLevel {
  std::uint32_t level = 0, line_size = 0, sets = 0, ways = 0;
  std::string type, size, cpus;
};
struct EventGroup {
  std::string name;
  std::uint32_t leader = 0, members = 0;
};
struct MemoryNode {
  std::uint64_t node = 0;
  std::uint64_t bits = 0;  // valid ones of the bitmap
  std::vector<std::uint64_t> bitmap;
};
struct ClockData {
  static constexpr std::uint32_t kPerfClock = 0xffffffff;  // no clockid: the perf clock, as tacho marks it
  std::uint32_t clockid = 0;
  std::uint64_t wall_ns = 0, clock_ns = 0;  // one point in time on both clocks
};
struct CompressionInfo {
  std::uint32_t type = 1;  // 1 zstd
  std::uint32_t level = 0;
  std::uint32_t ratio = 0;
  std::uint32_t record_limit = 0;  // a compressed record inflates to at most this many bytes
};
struct BpfProgramInfo {
  std::vector<std::byte> info;  // the kernel's struct bpf_prog_info
  std::uint64_t arrays = 0;     // a bit for each pointer in it that is an offset into data
  std::vector<std::byte> data;
};
struct BtfBlob {
  std::uint32_t id = 0;
  std::vector<std::byte> bytes;
};
struct PmuCaps {
  StringPairs caps;
  std::string pmu;
};

// A BPF program that ran while recording (tacho's feature kFeatureAttachedPrograms).
struct AttachedProgram {
  std::string name;      // of the function
  std::string section;   // "kretprobe/vfs_read"
  std::string object;    // path as the user gave it
  std::uint32_t id = 0;  // the kernel's, at that time
  std::string state;     // "attached", or why not
  bool operator==(const AttachedProgram&) const = default;
};

// A map of a BPF program (tacho's feature kFeatureBpfMaps): the main fields of struct bpf_map_info.
struct BpfMap {
  std::uint32_t id = 0;
  std::uint32_t type = 0;                        // enum bpf_map_type
  std::uint32_t key_bytes = 0, value_bytes = 0;  // of one element
  std::uint32_t most_entries = 0;
  std::string name;  // the kernel's: 15 letters at most
  bool operator==(const BpfMap&) const = default;
};

// Samples that one event lost on one CPU, for one cgroup (tacho's feature kFeatureLosses).
struct EventLoss {
  std::string event;   // its name, not checked
  std::string cgroup;  // for which it was opened; empty: for none
  int cpu = -1;        // -1: any CPU, it followed threads
  std::uint64_t lost = 0;
  bool operator==(const EventLoss&) const = default;
};

struct RecordingLosses {
  std::vector<EventLoss> events;
  // Times of the last sample before the first loss, and of the last LOST record, in ns after the first
  // sample. The kernel writes LOST when the ring has room again. nullopt: no LOST record, as for samples lost
  // at the end of the recording.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> interval;
  // Of several files of a recording: the first LOST records count this many samples that the file before has
  // counted already, in its LOST_SAMPLES.
  std::uint64_t counted_before = 0;
  bool operator==(const RecordingLosses&) const = default;
};

inline constexpr std::string_view kAsRecorded = "as recorded";
// The state of one class of sensitive content (format/container/content_classes.h).
struct ContentClass {
  std::string name;   // "comm"
  std::string state;  // kAsRecorded, or what redaction did to it: "hashed"
  bool operator==(const ContentClass&) const = default;
};

struct Environment {
  std::optional<std::string> hostname, os_release, version, arch, cpu_description, cpu_id;
  std::optional<std::uint32_t> cpus_available, cpus_online;
  std::optional<std::uint64_t> total_memory_kib;
  std::vector<std::string> command_line;
  std::optional<CpuTopology> cpu_topology;
  std::vector<NumaNode> numa_nodes;
  bool has_branch_stack = false;
  bool is_stat = false;
  std::vector<std::pair<std::uint32_t, std::string>> pmu_mappings;
  std::vector<EventGroup> groups;
  std::vector<CacheLevel> caches;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> sample_time;  // first and last, ns
  std::optional<std::uint64_t> memory_block_size;                      // of the memory topology
  std::vector<MemoryNode> memory_nodes;
  std::optional<std::uint64_t> clock_resolution_ns;
  std::optional<std::uint64_t> directory_format;
  std::vector<BpfProgramInfo> bpf_programs;
  std::vector<BtfBlob> btf;
  std::optional<CompressionInfo> compression;
  StringPairs cpu_pmu_caps;
  std::optional<ClockData> clock_data;
  StringPairs hybrid_pmus;
  std::vector<PmuCaps> pmu_caps;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> elf_machine;  // e_machine, e_flags
  std::optional<std::uint32_t> cache_line_size;
  std::vector<BuildIdEntry> build_ids;
  std::vector<AttachedProgram> attached_programs;
  std::vector<ContentClass> content;  // tacho's feature kFeatureContent; empty: unknown
  // How user stacks were recorded, and how many were whole (tacho's feature kFeatureUserStacks).
  StringPairs user_stacks;
  // CPUs that went offline or came online during the recording, and when (tacho's feature
  // kFeatureCpuChanges).
  StringPairs cpu_changes;
  std::vector<BpfMap> bpf_maps;  // of the programs in bpf_programs, sorted by id
  // A program's id in decimal digits, and where it is attached (tacho's feature kFeatureBpfPlaces).
  StringPairs bpf_places;
  RecordingLosses losses;  // samples that this file lost; empty: none, or unknown
};

}  // namespace tacho::format
