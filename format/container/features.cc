#include "format/container/features.h"

#include <algorithm>

#include "format/extensions/symbol_pack.h"
#include "format/records/record_view.h"

namespace tacho::format {

namespace {

// Strings and lists in feature sections: u32 length, then so many bytes of text padded with NULs.
std::string header_string(Cursor& in) { return std::string(in.text(in.u32())); }

// Returns `count` if so many entries of at least `entry_size` bytes fit into the rest of the section.
// Otherwise the cursor fails.
std::uint32_t checked_count(Cursor& in, std::uint64_t count, std::size_t entry_size) {
  if (count > in.left() / entry_size) {
    in.fail();
    return 0;
  }
  return static_cast<std::uint32_t>(count);
}

// `count` items, each read by read(), which takes at least `least_size` bytes. The readers below read fields
// in braces, since these are evaluated in order.
template <class Read>
auto list_of(Cursor& in, std::uint64_t count, std::size_t least_size, Read read) {
  std::vector<decltype(read())> list;
  for (std::uint32_t left = checked_count(in, count, least_size); left > 0; --left) list.push_back(read());
  return list;
}

// The sections that begin with a version have version 1 so far.
Result<> check_version(std::uint64_t version) {
  if (version != 1) return Error{"version " + std::to_string(version) + " is not known, 1 is"};
  return Done{};
}

// Writes the number of items and the items. False, and nothing is written, if there are none.
template <class List, class Write>
bool write_list(ByteWriter& out, const List& list, Write write) {
  if (list.empty()) return false;
  out.u32(static_cast<std::uint32_t>(list.size()));
  for (const auto& item : list) write(item);
  return true;
}

// The same, with version 1 first.
template <class List, class Write>
bool write_versioned_list(ByteWriter& out, const List& list, Write write) {
  if (!list.empty()) out.u32(1);
  return write_list(out, list, write);
}

std::vector<std::string> string_list(Cursor& in) {
  return list_of(in, in.u32(), sizeof(std::uint32_t), [&] { return header_string(in); });
}

void write_strings(ByteWriter& out, const std::vector<std::string>& list) {
  out.u32(static_cast<std::uint32_t>(list.size()));
  for (const std::string& text : list) out.header_string(text);
}

StringPairs string_pairs(Cursor& in) {
  return list_of(in, in.u32(), 2 * sizeof(std::uint32_t), [&] {
    return std::pair{header_string(in), header_string(in)};
  });
}

void write_pairs(ByteWriter& out, const StringPairs& pairs) {
  out.u32(static_cast<std::uint32_t>(pairs.size()));
  for (const auto& [first, second] : pairs) out.header_string(first).header_string(second);
}

std::vector<std::byte> bytes_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }
std::vector<std::uint64_t> words_of(const U64Array& words) {
  std::vector<std::uint64_t> copy;
  for (std::size_t i = 0; i < words.size(); ++i) copy.push_back(words[i]);
  return copy;
}

// Sections about the host's hardware, and the groups of events.

constexpr std::uint32_t kMostCpus = 1U << 20;  // more than any kernel can be built for

// perf 6.12 and later pad sections of a pipe with zeros to a multiple of 8 bytes. A list of dies, which may
// follow here, has at least 8 bytes.
void skip_padding(Cursor& in) {
  const Bytes rest = in.rest();
  const bool is_padding =
      rest.size() < 8 && std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; });
  if (is_padding) in.skip(rest.size());
}

Result<> read_cpus(Cursor& in, Features& out) {
  const std::uint32_t available = in.u32();  // first, though the kernel's perf.data-file-format.txt differs
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

// Lists of siblings (cores, threads), then a {core, socket} for each available CPU (their number is in
// NRCPUS), then perhaps a list of dies.
Result<> read_cpu_topology(Cursor& in, Features& out) {
  CpuTopology topology;
  topology.packages = string_list(in);
  topology.cores = string_list(in);
  const std::uint32_t cpus = out.environment.cpus_available.value_or(0);
  if (in.left() >= std::size_t{cpus} * 8) {
    for (std::uint32_t i = 0; i < cpus; ++i) topology.cpus.push_back({in.u32(), in.u32(), std::nullopt});
    skip_padding(in);
    if (in.left() > 0) {
      topology.dies = string_list(in);
      for (CpuTopologyEntry& cpu : topology.cpus) cpu.die = in.u32();
    }
    skip_padding(in);
  }
  if (in.left() > 0)
    return Error{"does not describe the " + std::to_string(cpus) + " CPUs of section NRCPUS"};
  out.environment.cpu_topology = std::move(topology);
  return Done{};
}

bool write_cpu_topology(const Features& from, ByteWriter& out) {
  const auto& topology = from.environment.cpu_topology;
  if (!topology) return false;
  write_strings(out, topology->packages);
  write_strings(out, topology->cores);
  for (const CpuTopologyEntry& cpu : topology->cpus) out.u32(cpu.core).u32(cpu.socket);
  if (topology->dies.empty()) return true;
  write_strings(out, topology->dies);
  for (const CpuTopologyEntry& cpu : topology->cpus) out.u32(cpu.die.value_or(0));
  return true;
}

Result<> read_numa(Cursor& in, Features& out) {
  out.environment.numa_nodes = list_of(in, in.u32(), 24, [&] {
    return NumaNode{in.u32(), in.u64(), in.u64(), header_string(in)};
  });
  return Done{};
}

bool write_numa(const Features& from, ByteWriter& out) {
  return write_list(out, from.environment.numa_nodes, [&](const NumaNode& node) {
    out.u32(node.node).u64(node.total_kib).u64(node.free_kib).header_string(node.cpus);
  });
}

Result<> read_pmus(Cursor& in, Features& out) {
  out.environment.pmu_mappings = list_of(in, in.u32(), 2 * sizeof(std::uint32_t), [&] {
    return std::pair{in.u32(), header_string(in)};
  });
  return Done{};
}

bool write_pmus(const Features& from, ByteWriter& out) {
  return write_list(out, from.environment.pmu_mappings,
                    [&](const auto& pmu) { out.u32(pmu.first).header_string(pmu.second); });
}

Result<> read_groups(Cursor& in, Features& out) {
  out.environment.groups = list_of(in, in.u32(), 3 * sizeof(std::uint32_t), [&] {
    return EventGroup{header_string(in), in.u32(), in.u32()};
  });
  return Done{};
}

bool write_groups(const Features& from, ByteWriter& out) {
  return write_list(out, from.environment.groups, [&](const EventGroup& group) {
    out.header_string(group.name).u32(group.leader).u32(group.members);
  });
}

Result<> read_caches(Cursor& in, Features& out) {
  if (auto known = check_version(in.u32()); !known) return known;
  out.environment.caches = list_of(in, in.u32(), 28, [&] {
    return CacheLevel{in.u32(),          in.u32(),          in.u32(),         in.u32(),
                      header_string(in), header_string(in), header_string(in)};
  });
  return Done{};
}

bool write_caches(const Features& from, ByteWriter& out) {
  return write_versioned_list(out, from.environment.caches, [&](const CacheLevel& cache) {
    out.u32(cache.level).u32(cache.line_size).u32(cache.sets).u32(cache.ways);
    out.header_string(cache.type).header_string(cache.size).header_string(cache.cpus);
  });
}

Result<> read_memory(Cursor& in, Features& out) {
  if (auto known = check_version(in.u64()); !known) return known;
  out.environment.memory_block_size = in.u64();
  out.environment.memory_nodes = list_of(in, in.u64(), 24, [&] {
    MemoryNode node;
    node.node = in.u64();
    in.u64();  // the bitmap's size, repeated in the bitmap's own header
    node.bits = in.u64();
    node.bitmap = words_of(in.words(node.bits / 64 + (node.bits % 64 != 0 ? 1 : 0)));
    return node;
  });
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
  out.environment.pmu_caps = list_of(in, in.u32(), 2 * sizeof(std::uint32_t), [&] {
    return PmuCaps{string_pairs(in), header_string(in)};
  });
  return Done{};
}

bool write_pmu_caps(const Features& from, ByteWriter& out) {
  return write_list(out, from.environment.pmu_caps, [&](const PmuCaps& pmu) {
    write_pairs(out, pmu.caps);
    out.header_string(pmu.pmu);
  });
}

Result<> read_clock_data(Cursor& in, Features& out) {
  if (auto known = check_version(in.u32()); !known) return known;
  out.environment.clock_data = ClockData{in.u32(), in.u64(), in.u64()};
  return Done{};
}

bool write_clock_data(const Features& from, ByteWriter& out) {
  if (!from.environment.clock_data) return false;
  const ClockData& clock = *from.environment.clock_data;
  out.u32(1).u32(clock.clockid).u64(clock.wall_ns).u64(clock.clock_ns);
  return true;
}

Result<> read_machine(Cursor& in, Features& out) {
  out.environment.elf_machine = std::pair{in.u32(), in.u32()};
  return Done{};
}

bool write_machine(const Features& from, ByteWriter& out) {
  if (!from.environment.elf_machine) return false;
  out.u32(from.environment.elf_machine->first).u32(from.environment.elf_machine->second);
  return true;
}

// One feature: its reader returns an error or fails the cursor if the section is damaged; its writer returns
// false if there is nothing to write.
struct FeatureRow {
  std::uint32_t bit;
  std::string_view name;
  Result<> (*read)(Cursor& in, Features& out);
  bool (*write)(const Features& from, ByteWriter& out);
};

// The row of a feature that is one string.
template <std::optional<std::string> Environment::*Member>
constexpr auto read_string = [](Cursor& in, Features& out) -> Result<> {
  out.environment.*Member = header_string(in);
  return Done{};
};
template <std::optional<std::string> Environment::*Member>
constexpr auto write_string = [](const Features& from, ByteWriter& out) {
  if (!(from.environment.*Member)) return false;
  out.header_string(*(from.environment.*Member));
  return true;
};
// The row of a feature that is one number.
template <class T, std::optional<T> Environment::*Member>
constexpr auto read_number = [](Cursor& in, Features& out) -> Result<> {
  out.environment.*Member = in.read<T>();
  return Done{};
};
template <class T, std::optional<T> Environment::*Member>
constexpr auto write_number = [](const Features& from, ByteWriter& out) {
  if (!(from.environment.*Member)) return false;
  out.write(*(from.environment.*Member));
  return true;
};

Result<> read_tracing(Cursor& in, Features& out) {
  auto data = parse_tracing_data(in.rest());
  if (!data) return std::move(data.error());
  out.tracing = std::move(*data);
  return Done{};
}

bool write_tracing(const Features& from, ByteWriter& out) {
  if (from.tracing.empty()) return false;
  write_tracing_data(out, from.tracing);
  return true;
}

// {u32 type, u16 misc, u16 size}, s32 pid, u8 id[20], u8 id size, 3 zeros, file name padded to 64.
// Linux 2.6.32 and 2.6.33 wrote no pid: the name, which begins with / or [, is 4 bytes earlier then.
Result<> read_build_ids(Cursor& in, Features& out) {
  constexpr std::size_t kFixed = 36;
  while (in.left() >= kRecordHeaderSize) {
    BuildIdEntry entry;
    in.u32();
    entry.misc = in.u16();
    const std::uint16_t size = in.u16();
    if (size < kFixed)
      return Error{"a build id of " + std::to_string(size) + " bytes, at least 36 were expected"};
    Cursor body = in.over(in.take_bytes(size - kRecordHeaderSize));
    if (in.failed()) return Done{};  // the caller reports the truncated section
    // As in BUILD_ID records (record.cc).
    constexpr std::size_t kName = 24;
    const char letter = body.left() > kName ? static_cast<char>(body.rest()[kName]) : '\0';
    const bool has_process = letter != '/' && letter != '[';
    entry.pid = has_process ? static_cast<std::int32_t>(body.u32()) : -1;
    const Bytes id = body.take_bytes(20);
    const std::uint8_t id_size = body.u8();
    body.skip(3);
    const bool has_size = (entry.misc & abi::kMiscBuildIdSize) != 0;
    entry.build_id = has_size ? BuildId::from_bytes(id.first(std::min<std::size_t>(id_size, id.size())))
                              : BuildId::from_padded(id);
    entry.filename = body.text(body.left());
    out.environment.build_ids.push_back(std::move(entry));
  }
  return Done{};
}

bool write_build_ids(const Features& from, ByteWriter& out) {
  if (from.environment.build_ids.empty()) return false;
  for (const BuildIdEntry& entry : from.environment.build_ids) {
    const std::size_t start = out.size();
    out.u32(abi::kRecordBuildId).u16(static_cast<std::uint16_t>(entry.misc | abi::kMiscBuildIdSize)).u16(0);
    out.u32(static_cast<std::uint32_t>(entry.pid)).bytes(std::as_bytes(std::span(entry.build_id.bytes)));
    out.u8(entry.build_id.size).zeros(3);
    out.padded_text(std::string_view(entry.filename).substr(0, 4095), 64);
    out.patch<std::uint16_t>(start + 6, static_cast<std::uint16_t>(out.size() - start));
  }
  return true;
}

Result<> read_command_line(Cursor& in, Features& out) {
  out.environment.command_line = string_list(in);
  return Done{};
}

bool write_command_line(const Features& from, ByteWriter& out) {
  if (from.environment.command_line.empty()) return false;
  write_strings(out, from.environment.command_line);
  return true;
}

// u32 count, u32 attr size, then for each: attr, u32 ids, name, ids.
Result<> read_event_desc(Cursor& in, Features& out) {
  out.event_descriptions.clear();
  const std::uint32_t attrs = in.u32();
  const std::uint32_t attr_size = in.u32();
  const std::uint32_t count = checked_count(in, attrs, std::size_t{attr_size} + 2 * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < count; ++i) {
    auto attr = parse_event_attr(in.over(in.take_bytes(attr_size)));
    if (!attr) return std::move(attr.error());
    Event event;
    event.attr = std::move(*attr);
    const std::uint32_t ids = in.u32();
    event.name = header_string(in);
    event.ids = words_of(in.words(ids));
    out.event_descriptions.push_back(std::move(event));
  }
  return Done{};
}

bool write_event_desc(const Features& from, ByteWriter& out) {
  if (from.event_descriptions.empty()) return false;
  std::uint32_t attr_size = kCompatibleAttrSize;
  for (const Event& event : from.event_descriptions)
    attr_size = std::max(attr_size, size_to_write(event.attr));
  out.u32(static_cast<std::uint32_t>(from.event_descriptions.size())).u32(attr_size);
  for (const Event& event : from.event_descriptions) {
    write_event_attr(out, event.attr, attr_size);
    out.u32(static_cast<std::uint32_t>(event.ids.size())).header_string(event.name);
    for (const std::uint64_t id : event.ids) out.u64(id);
  }
  return true;
}

template <bool Environment::*Member>
constexpr auto read_flag = [](Cursor&, Features& out) -> Result<> {
  out.environment.*Member = true;
  return Done{};
};
template <bool Environment::*Member>
constexpr auto write_flag = [](const Features& from, ByteWriter&) { return from.environment.*Member; };

Result<> read_sample_time(Cursor& in, Features& out) {
  const std::uint64_t first = in.u64();
  const std::uint64_t last = in.u64();
  if (!in.failed() && last < first) return Error{"the last sample is earlier than the first"};
  out.environment.sample_time = std::pair(first, last);
  return Done{};
}

bool write_sample_time(const Features& from, ByteWriter& out) {
  if (!from.environment.sample_time) return false;
  out.u64(from.environment.sample_time->first).u64(from.environment.sample_time->second);
  return true;
}

Result<> read_bpf_programs(Cursor& in, Features& out) {
  out.environment.bpf_programs = list_of(in, in.u32(), 16, [&] {
    BpfProgramInfo program;
    const std::uint32_t info_size = in.u32(), data_size = in.u32();
    program.arrays = in.u64();
    program.info = bytes_of(in.take_bytes(info_size));
    program.data = bytes_of(in.take_bytes(data_size));
    return program;
  });
  return Done{};
}

bool write_bpf_programs(const Features& from, ByteWriter& out) {
  return write_list(out, from.environment.bpf_programs, [&](const BpfProgramInfo& program) {
    out.u32(static_cast<std::uint32_t>(program.info.size()))
        .u32(static_cast<std::uint32_t>(program.data.size()));
    out.u64(program.arrays).bytes(program.info).bytes(program.data);
  });
}

Result<> read_btf(Cursor& in, Features& out) {
  out.environment.btf = list_of(in, in.u32(), 2 * sizeof(std::uint32_t), [&] {
    return BtfBlob{in.u32(), bytes_of(in.take_bytes(in.u32()))};
  });
  return Done{};
}

bool write_btf(const Features& from, ByteWriter& out) {
  return write_list(out, from.environment.btf, [&](const BtfBlob& btf) {
    out.u32(btf.id).u32(static_cast<std::uint32_t>(btf.bytes.size())).bytes(btf.bytes);
  });
}

Result<> read_compressed(Cursor& in, Features& out) {
  in.u32();  // version: perf writes 0 and accepts any
  out.environment.compression = CompressionInfo{in.u32(), in.u32(), in.u32(), in.u32()};
  return Done{};
}

bool write_compressed(const Features& from, ByteWriter& out) {
  if (!from.environment.compression) return false;
  const CompressionInfo& info = *from.environment.compression;
  // Version 0, as perf writes it: other readers refuse any other.
  out.u32(0).u32(info.type).u32(info.level).u32(info.ratio).u32(info.record_limit);
  return true;
}

template <StringPairs Environment::*Member>
constexpr auto read_pairs = [](Cursor& in, Features& out) -> Result<> {
  out.environment.*Member = string_pairs(in);
  return Done{};
};
template <StringPairs Environment::*Member>
constexpr auto write_pairs_of = [](const Features& from, ByteWriter& out) {
  if ((from.environment.*Member).empty()) return false;
  write_pairs(out, from.environment.*Member);
  return true;
};

Result<> read_schemas(Cursor& in, Features& out) {
  auto schemas = parse_payload_schemas(in);
  if (!schemas) return std::move(schemas.error());
  out.schemas = std::move(*schemas);
  return Done{};
}

bool write_schemas(const Features& from, ByteWriter& out) {
  if (from.schemas.empty()) return false;
  write_payload_schemas(out, from.schemas);
  return true;
}

Result<> read_attachments(Cursor& in, Features& out) {
  auto attachments = parse_attachments(in);
  if (!attachments) return std::move(attachments.error());
  out.attachments = std::move(*attachments);
  return Done{};
}

bool write_attachment_list(const Features& from, ByteWriter& out) {
  if (from.attachments.empty()) return false;
  write_attachments(out, from.attachments);
  return true;
}

// u32 version, u32 count, then for each: u32 id and four strings.
Result<> read_attached_programs(Cursor& in, Features& out) {
  if (auto known = check_version(in.u32()); !known) return known;
  out.environment.attached_programs = list_of(in, in.u32(), 5 * sizeof(std::uint32_t), [&] {
    const std::uint32_t id = in.u32();
    return AttachedProgram{header_string(in), header_string(in), header_string(in), id, header_string(in)};
  });
  return Done{};
}

bool write_attached_programs(const Features& from, ByteWriter& out) {
  return write_versioned_list(out, from.environment.attached_programs, [&](const AttachedProgram& program) {
    out.u32(program.id).header_string(program.name).header_string(program.section);
    out.header_string(program.object).header_string(program.state);
  });
}

// u32 version, u32 count, then for each: u32 id, type, key bytes, value bytes and entries, string name.
Result<> read_bpf_maps(Cursor& in, Features& out) {
  if (auto known = check_version(in.u32()); !known) return known;
  out.environment.bpf_maps = list_of(in, in.u32(), 6 * sizeof(std::uint32_t), [&] {
    return BpfMap{in.u32(), in.u32(), in.u32(), in.u32(), in.u32(), header_string(in)};
  });
  return Done{};
}

bool write_bpf_maps(const Features& from, ByteWriter& out) {
  return write_versioned_list(out, from.environment.bpf_maps, [&](const BpfMap& map) {
    out.u32(map.id).u32(map.type).u32(map.key_bytes).u32(map.value_bytes).u32(map.most_entries);
    out.header_string(map.name);
  });
}

Result<> read_symbol_pack(Cursor& in, Features& out) {
  if (auto known = check_symbol_pack(in.rest()); !known) return known;
  out.symbol_pack = bytes_of(in.rest());
  return Done{};
}

bool write_symbol_pack(const Features& from, ByteWriter& out) {
  out.bytes(from.symbol_pack);
  return !from.symbol_pack.empty();
}

constexpr std::uint64_t kNoTime = ~std::uint64_t{0};
constexpr std::uint32_t kAnyCpu = ~std::uint32_t{0};

// u32 version, u64 first and last time, u32 count, then for each: two strings, u32 CPU, u64 lost. Then,
// unless it is 0, u64 counted_before.
Result<> read_losses(Cursor& in, Features& out) {
  out.environment.losses = {};
  if (auto known = check_version(in.u32()); !known) return known;
  const std::uint64_t first = in.u64(), last = in.u64();
  if (first != kNoTime) out.environment.losses.interval = {first, last};
  const auto cpu_of = [](std::uint32_t cpu) {
    return cpu == kAnyCpu ? -1 : static_cast<int>(cpu & 0x7fff'ffff);
  };
  out.environment.losses.events = list_of(in, in.u32(), 5 * sizeof(std::uint32_t), [&] {
    return EventLoss{header_string(in), header_string(in), cpu_of(in.u32()), in.u64()};
  });
  if (in.left() != 0) out.environment.losses.counted_before = in.u64();
  return Done{};
}

bool write_losses(const Features& from, ByteWriter& out) {
  const RecordingLosses& losses = from.environment.losses;
  if (losses.events.empty() && losses.counted_before == 0) return false;
  const auto [first, last] = losses.interval.value_or(std::pair{kNoTime, kNoTime});
  out.u32(1).u64(first).u64(last).u32(static_cast<std::uint32_t>(losses.events.size()));
  for (const EventLoss& loss : losses.events) {
    out.header_string(loss.event).header_string(loss.cgroup);
    out.u32(loss.cpu < 0 ? kAnyCpu : static_cast<std::uint32_t>(loss.cpu)).u64(loss.lost);
  }
  if (losses.counted_before != 0) out.u64(losses.counted_before);
  return true;
}

// u32 version, u32 count, then for each two strings.
Result<> read_content(Cursor& in, Features& out) {
  if (auto known = check_version(in.u32()); !known) return known;
  out.environment.content = list_of(in, in.u32(), 2 * sizeof(std::uint32_t), [&] {
    return ContentClass{header_string(in), header_string(in)};
  });
  return Done{};
}

bool write_content(const Features& from, ByteWriter& out) {
  return write_versioned_list(out, from.environment.content, [&](const ContentClass& one) {
    out.header_string(one.name).header_string(one.state);
  });
}

// The row of a feature that is kept as bytes.
constexpr Result<> (*kRawRead)(Cursor&, Features&) = nullptr;
constexpr bool (*kRawWrite)(const Features&, ByteWriter&) = nullptr;

using Env = Environment;
// One row for each optional section. File order is bit order, so rows are sorted.
constexpr FeatureRow kFeatures[] = {
    {abi::kFeatureTracingData, "TRACING_DATA", read_tracing, write_tracing},
    {abi::kFeatureBuildId, "BUILD_ID", read_build_ids, write_build_ids},
    {abi::kFeatureHostname, "HOSTNAME", read_string<&Env::hostname>, write_string<&Env::hostname>},
    {abi::kFeatureOsRelease, "OSRELEASE", read_string<&Env::os_release>, write_string<&Env::os_release>},
    {abi::kFeatureVersion, "VERSION", read_string<&Env::version>, write_string<&Env::version>},
    {abi::kFeatureArch, "ARCH", read_string<&Env::arch>, write_string<&Env::arch>},
    {abi::kFeatureNrCpus, "NRCPUS", read_cpus, write_cpus},
    {abi::kFeatureCpuDesc, "CPUDESC", read_string<&Env::cpu_description>,
     write_string<&Env::cpu_description>},
    {abi::kFeatureCpuId, "CPUID", read_string<&Env::cpu_id>, write_string<&Env::cpu_id>},
    {abi::kFeatureTotalMem, "TOTAL_MEM", read_number<std::uint64_t, &Env::total_memory_kib>,
     write_number<std::uint64_t, &Env::total_memory_kib>},
    {abi::kFeatureCmdline, "CMDLINE", read_command_line, write_command_line},
    {abi::kFeatureEventDesc, "EVENT_DESC", read_event_desc, write_event_desc},
    {abi::kFeatureCpuTopology, "CPU_TOPOLOGY", read_cpu_topology, write_cpu_topology},
    {abi::kFeatureNumaTopology, "NUMA_TOPOLOGY", read_numa, write_numa},
    {abi::kFeatureBranchStack, "BRANCH_STACK", read_flag<&Env::has_branch_stack>,
     write_flag<&Env::has_branch_stack>},
    {abi::kFeaturePmuMappings, "PMU_MAPPINGS", read_pmus, write_pmus},
    {abi::kFeatureGroupDesc, "GROUP_DESC", read_groups, write_groups},
    {abi::kFeatureAuxtrace, "AUXTRACE", kRawRead, kRawWrite},
    {abi::kFeatureStat, "STAT", read_flag<&Env::is_stat>, write_flag<&Env::is_stat>},
    {abi::kFeatureCache, "CACHE", read_caches, write_caches},
    {abi::kFeatureSampleTime, "SAMPLE_TIME", read_sample_time, write_sample_time},
    {abi::kFeatureMemTopology, "MEM_TOPOLOGY", read_memory, write_memory},
    {abi::kFeatureClockid, "CLOCKID", read_number<std::uint64_t, &Env::clock_resolution_ns>,
     write_number<std::uint64_t, &Env::clock_resolution_ns>},
    {abi::kFeatureDirFormat, "DIR_FORMAT", read_number<std::uint64_t, &Env::directory_format>,
     write_number<std::uint64_t, &Env::directory_format>},
    {abi::kFeatureBpfProgInfo, "BPF_PROG_INFO", read_bpf_programs, write_bpf_programs},
    {abi::kFeatureBpfBtf, "BPF_BTF", read_btf, write_btf},
    {abi::kFeatureCompressed, "COMPRESSED", read_compressed, write_compressed},
    {abi::kFeatureCpuPmuCaps, "CPU_PMU_CAPS", read_pairs<&Env::cpu_pmu_caps>,
     write_pairs_of<&Env::cpu_pmu_caps>},
    {abi::kFeatureClockData, "CLOCK_DATA", read_clock_data, write_clock_data},
    {abi::kFeatureHybridTopology, "HYBRID_TOPOLOGY", read_pairs<&Env::hybrid_pmus>,
     write_pairs_of<&Env::hybrid_pmus>},
    {abi::kFeaturePmuCaps, "PMU_CAPS", read_pmu_caps, write_pmu_caps},
    {abi::kFeatureCpuDomainInfo, "CPU_DOMAIN_INFO", kRawRead, kRawWrite},
    {abi::kFeatureEMachine, "E_MACHINE", read_machine, write_machine},
    {abi::kFeatureClnSize, "CLN_SIZE", read_number<std::uint32_t, &Env::cache_line_size>,
     write_number<std::uint32_t, &Env::cache_line_size>},
    {abi::kFeaturePayloadSchemas, "PAYLOAD_SCHEMAS", read_schemas, write_schemas},
    {abi::kFeatureAttachments, "ATTACHMENTS", read_attachments, write_attachment_list},
    {abi::kFeatureAttachedPrograms, "ATTACHED_PROGRAMS", read_attached_programs, write_attached_programs},
    {abi::kFeatureSymbolPack, "SYMBOL_PACK", read_symbol_pack, write_symbol_pack},
    {abi::kFeatureContent, "CONTENT", read_content, write_content},
    {abi::kFeatureUserStacks, "USER_STACKS", read_pairs<&Env::user_stacks>,
     write_pairs_of<&Env::user_stacks>},
    {abi::kFeatureLosses, "LOSSES", read_losses, write_losses},
    {abi::kFeatureCpuChanges, "CPU_CHANGES", read_pairs<&Env::cpu_changes>,
     write_pairs_of<&Env::cpu_changes>},
    {abi::kFeatureBpfMaps, "BPF_MAPS", read_bpf_maps, write_bpf_maps},
    {abi::kFeatureBpfPlaces, "BPF_PLACES", read_pairs<&Env::bpf_places>, write_pairs_of<&Env::bpf_places>},
};
static_assert(std::ranges::is_sorted(kFeatures, {}, &FeatureRow::bit));

const FeatureRow* feature_row(std::uint32_t feature) {
  const auto row = std::ranges::find(kFeatures, feature, &FeatureRow::bit);
  return row == std::end(kFeatures) ? nullptr : row;
}

}  // namespace

const Attachment* Features::attachment(std::string_view name) const {
  const auto found = std::ranges::find(attachments, name, &Attachment::name);
  return found == attachments.end() ? nullptr : &*found;
}

Result<> read_feature(std::uint32_t feature, Cursor section, Features& out) {
  if (feature >= abi::kFeatureCount) return Error{"feature " + std::to_string(feature) + " is out of range"};
  const FeatureRow* row = feature_row(feature);
  if (row == nullptr || row->read == nullptr) {
    keep_section(out, feature, section.rest());
    out.present.set(feature);
    return Done{};
  }
  // Read into a copy, so that a damaged section changes nothing.
  Features scratch;
  scratch.environment.cpus_available = out.environment.cpus_available;
  Cursor trial(section.rest(), section.order());
  auto sound = row->read(trial, scratch);
  if (!sound) return std::move(sound.error()).in(row->name);
  if (trial.failed()) return Error{"cut short"}.in(row->name);
  if (auto read = row->read(section, out); !read) return read;
  out.present.set(feature);
  return Done{};
}

bool write_feature(std::uint32_t feature, const Features& features, ByteWriter& out) {
  const auto raw = std::ranges::find(features.raw, feature, &RawSection::feature);
  if (raw != features.raw.end()) {
    out.bytes(raw->bytes);
    return true;
  }
  const FeatureRow* row = feature_row(feature);
  if (row == nullptr || row->write == nullptr) return false;
  ByteWriter section;  // a writer of its own: alignment counts from the section's start
  if (!row->write(features, section)) return false;
  out.bytes(section.view());
  return true;
}

void keep_section(Features& features, std::uint32_t feature, Bytes bytes) {
  drop_section(features, feature);
  features.raw.push_back({feature, bytes_of(bytes)});
}

void drop_section(Features& features, std::uint32_t feature) {
  std::erase_if(features.raw, [&](const RawSection& section) { return section.feature == feature; });
}

std::string_view feature_name(std::uint32_t feature) {
  const FeatureRow* row = feature_row(feature);
  return row == nullptr ? std::string_view{} : row->name;
}

}  // namespace tacho::format
