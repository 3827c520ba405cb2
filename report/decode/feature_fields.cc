#include "report/decode/feature_fields.h"

#include <algorithm>
#include <span>
#include <string>

#include "format/base/digest.h"
#include "format/extensions/symbol_pack.h"
#include "report/decode/record_fields.h"

namespace tacho::report {

namespace {

using namespace format;

void content(FieldSink& to, Bytes bytes) {
  to.number("bytes", bytes.size());
  to.hex("hash", format::digest(bytes));
}

void content(FieldSink& to, std::string_view text) { content(to, std::as_bytes(std::span(text))); }

void strings(FieldSink& to, std::string_view name, const std::vector<std::string>& list) {
  to.begin_list(name);
  for (const std::string& text : list) to.text({}, text);
  to.end_list();
}

template <class List, class Each>
void objects(FieldSink& to, std::string_view name, const List& list, Each&& each) {
  to.begin_list(name);
  for (const auto& item : list) {
    to.begin_object({});
    each(item);
    to.end_object();
  }
  to.end_list();
}

void pairs(FieldSink& to, std::string_view name,
           const std::vector<std::pair<std::string, std::string>>& list) {
  objects(to, name, list, [&](const auto& pair) {
    to.text("name", pair.first);
    to.text("value", pair.second);
  });
}

template <std::optional<std::string> Environment::*Member>
void one_text(FieldSink& to, const Features& from) {
  to.text("value", (from.environment.*Member).value_or(""));
}
template <std::optional<std::uint64_t> Environment::*Member>
void one_number(FieldSink& to, const Features& from) {
  to.number("value", (from.environment.*Member).value_or(0));
}

void tracing(FieldSink& to, const Features& from) {
  to.flag("big_endian", from.tracing.is_big_endian);
  to.number("page_size", from.tracing.page_size);
  objects(to, "formats", from.tracing.formats, [&](const TracepointFormat& format) {
    to.text("system", format.system);
    content(to, format.text);
  });
}

void build_ids(FieldSink& to, const Features& from) {
  objects(to, "build_ids", from.environment.build_ids, [&](const BuildIdEntry& entry) {
    to.signed_number("pid", entry.pid);
    to.number("cpumode", entry.misc & abi::kCpumodeMask);
    to.text("build_id", entry.build_id.hex());
    to.text("filename", entry.filename);
  });
}

void cpus(FieldSink& to, const Features& from) {
  to.number("available", from.environment.cpus_available.value_or(0));
  to.number("online", from.environment.cpus_online.value_or(0));
}

void command_line(FieldSink& to, const Features& from) {
  strings(to, "arguments", from.environment.command_line);
}

void event_descriptions(FieldSink& to, const Features& from) {
  objects(to, "events", from.event_descriptions, [&](const Event& event) {
    to.text("name", event.name);
    describe_attr(to, event.attr);
    to.begin_list("ids");
    for (const std::uint64_t id : event.ids) to.number({}, id);
    to.end_list();
  });
}

void cpu_topology(FieldSink& to, const Features& from) {
  const CpuTopology& topology = *from.environment.cpu_topology;
  strings(to, "packages", topology.packages);
  strings(to, "cores", topology.cores);
  strings(to, "dies", topology.dies);
  objects(to, "cpus", topology.cpus, [&](const CpuTopologyEntry& cpu) {
    to.number("core", cpu.core);
    to.number("socket", cpu.socket);
    if (cpu.die) to.number("die", *cpu.die);
  });
}

void numa(FieldSink& to, const Features& from) {
  objects(to, "nodes", from.environment.numa_nodes, [&](const NumaNode& node) {
    to.number("node", node.node);
    to.number("total_kib", node.total_kib);
    to.number("free_kib", node.free_kib);
    to.text("cpus", node.cpus);
  });
}

void no_fields(FieldSink&, const Features&) {}

void pmus(FieldSink& to, const Features& from) {
  objects(to, "pmus", from.environment.pmu_mappings, [&](const auto& pmu) {
    to.number("type", pmu.first);
    to.text("name", pmu.second);
  });
}

void groups(FieldSink& to, const Features& from) {
  objects(to, "groups", from.environment.groups, [&](const EventGroup& group) {
    to.text("name", group.name);
    to.number("leader", group.leader);
    to.number("members", group.members);
  });
}

void caches(FieldSink& to, const Features& from) {
  objects(to, "caches", from.environment.caches, [&](const CacheLevel& cache) {
    to.number("level", cache.level);
    to.number("line_size", cache.line_size);
    to.number("sets", cache.sets);
    to.number("ways", cache.ways);
    to.text("type", cache.type);
    to.text("size", cache.size);
    to.text("cpus", cache.cpus);
  });
}

void sample_time(FieldSink& to, const Features& from) {
  to.number("first", from.environment.sample_time->first);
  to.number("last", from.environment.sample_time->second);
}

void memory(FieldSink& to, const Features& from) {
  to.number("block_size", from.environment.memory_block_size.value_or(0));
  objects(to, "nodes", from.environment.memory_nodes, [&](const MemoryNode& node) {
    to.number("node", node.node);
    to.number("bits", node.bits);
    to.begin_list("bitmap");
    for (const std::uint64_t word : node.bitmap) to.hex({}, word);
    to.end_list();
  });
}

void bpf_programs(FieldSink& to, const Features& from) {
  objects(to, "programs", from.environment.bpf_programs, [&](const BpfProgramInfo& program) {
    to.hex("arrays", program.arrays);
    content(to, program.info);
    to.number("data_bytes", program.data.size());
    to.hex("data_hash", format::digest(program.data));
  });
}

void btf(FieldSink& to, const Features& from) {
  objects(to, "btf", from.environment.btf, [&](const BtfBlob& blob) {
    to.number("id", blob.id);
    content(to, blob.bytes);
  });
}

void compressed(FieldSink& to, const Features& from) {
  const CompressionInfo& info = *from.environment.compression;
  to.number("type", info.type);
  to.number("level", info.level);
  to.number("ratio", info.ratio);
  to.number("record_limit", info.record_limit);
}

void cpu_pmu_caps(FieldSink& to, const Features& from) {
  pairs(to, "capabilities", from.environment.cpu_pmu_caps);
}

void clock_data(FieldSink& to, const Features& from) {
  to.number("clockid", from.environment.clock_data->clockid);
  to.number("wall_ns", from.environment.clock_data->wall_ns);
  to.number("clock_ns", from.environment.clock_data->clock_ns);
}

void hybrid(FieldSink& to, const Features& from) { pairs(to, "pmus", from.environment.hybrid_pmus); }

void pmu_caps(FieldSink& to, const Features& from) {
  objects(to, "pmus", from.environment.pmu_caps, [&](const PmuCaps& pmu) {
    to.text("name", pmu.pmu);
    pairs(to, "capabilities", pmu.caps);
  });
}

void machine(FieldSink& to, const Features& from) {
  to.number("machine", from.environment.elf_machine->first);
  to.number("flags", from.environment.elf_machine->second);
}

void line_size(FieldSink& to, const Features& from) {
  to.number("value", from.environment.cache_line_size.value_or(0));
}

void schemas(FieldSink& to, const Features& from) {
  objects(to, "payloads", from.schemas, [&](const PayloadSchema& schema) {
    to.text("event", schema.event);
    to.text("struct", schema.type_name);
    to.number("size", schema.size);
    objects(to, "fields", schema.fields, [&](const PayloadField& field) {
      to.text("name", field.name);
      to.number("kind", static_cast<std::uint64_t>(field.kind));
      to.number("bit_offset", field.bit_offset);
      to.number("bit_size", field.bit_size);
      to.number("count", field.count);
      to.text("unit", field.unit);
      to.text("role", field.role);
      to.text("format", field.format);
    });
  });
}

void attachments(FieldSink& to, const Features& from) {
  objects(to, "attachments", from.attachments, [&](const Attachment& attachment) {
    to.text("name", attachment.name);
    to.text("origin", attachment.origin);
    to.number("raw_size", attachment.raw_size);
    content(to, attachment.packed);
  });
}

// Which modules have names; the names themselves are what every view shows.
void symbol_pack(FieldSink& to, const Features& from) {
  const auto pack = format::parse_symbol_pack(from.symbol_pack);
  if (!pack) return;
  to.number("level", static_cast<std::uint64_t>(pack->level));
  objects(to, "modules", pack->modules, [&](const format::PackedModule& module) {
    to.number("kind", module.kind);
    to.text("path", pack->texts[module.path]);
    if (!module.build_id.empty()) to.text("build_id", module.build_id.hex());
    to.number("addresses", module.addresses.size());
    to.number("symbols", module.symbols.size());
    if (!module.code.empty()) to.number("code_bytes", module.code_bytes.size());
  });
}

void cpu_changes(FieldSink& to, const Features& from) { pairs(to, "changes", from.environment.cpu_changes); }
void user_stacks(FieldSink& to, const Features& from) { pairs(to, "facts", from.environment.user_stacks); }

void losses(FieldSink& to, const Features& from) {
  const format::RecordingLosses& losses = from.environment.losses;
  if (losses.interval) {
    to.number("first_ns", losses.interval->first);
    to.number("last_ns", losses.interval->second);
  }
  objects(to, "losses", losses.events, [&](const format::EventLoss& loss) {
    to.text("event", loss.event);
    if (!loss.cgroup.empty()) to.text("cgroup", loss.cgroup);
    if (loss.cpu >= 0) to.number("cpu", static_cast<std::uint64_t>(loss.cpu));
    to.number("lost", loss.lost);
  });
}

void programs(FieldSink& to, const Features& from) {
  objects(to, "programs", from.environment.attached_programs, [&](const AttachedProgram& program) {
    to.number("id", program.id);
    to.text("name", program.name);
    to.text("section", program.section);
    to.text("object", program.object);
    to.text("state", program.state);
  });
}

void content_classes(FieldSink& to, const Features& from) {
  objects(to, "classes", from.environment.content, [&](const format::ContentClass& one) {
    to.text("name", one.name);
    to.text("state", one.state);
  });
}

struct FeatureFieldsRow {
  std::uint32_t feature;
  void (*describe)(FieldSink& to, const Features& from);
};

using Env = Environment;
constexpr FeatureFieldsRow kFeatureFields[] = {
    {abi::kFeatureTracingData, tracing},
    {abi::kFeatureBuildId, build_ids},
    {abi::kFeatureHostname, one_text<&Env::hostname>},
    {abi::kFeatureOsRelease, one_text<&Env::os_release>},
    {abi::kFeatureVersion, one_text<&Env::version>},
    {abi::kFeatureArch, one_text<&Env::arch>},
    {abi::kFeatureNrCpus, cpus},
    {abi::kFeatureCpuDesc, one_text<&Env::cpu_description>},
    {abi::kFeatureCpuId, one_text<&Env::cpu_id>},
    {abi::kFeatureTotalMem, one_number<&Env::total_memory_kib>},
    {abi::kFeatureCmdline, command_line},
    {abi::kFeatureEventDesc, event_descriptions},
    {abi::kFeatureCpuTopology, cpu_topology},
    {abi::kFeatureNumaTopology, numa},
    {abi::kFeatureBranchStack, no_fields},
    {abi::kFeaturePmuMappings, pmus},
    {abi::kFeatureGroupDesc, groups},
    {abi::kFeatureStat, no_fields},
    {abi::kFeatureCache, caches},
    {abi::kFeatureSampleTime, sample_time},
    {abi::kFeatureMemTopology, memory},
    {abi::kFeatureClockid, one_number<&Env::clock_resolution_ns>},
    {abi::kFeatureDirFormat, one_number<&Env::directory_format>},
    {abi::kFeatureBpfProgInfo, bpf_programs},
    {abi::kFeatureBpfBtf, btf},
    {abi::kFeatureCompressed, compressed},
    {abi::kFeatureCpuPmuCaps, cpu_pmu_caps},
    {abi::kFeatureClockData, clock_data},
    {abi::kFeatureHybridTopology, hybrid},
    {abi::kFeaturePmuCaps, pmu_caps},
    {abi::kFeatureEMachine, machine},
    {abi::kFeatureClnSize, line_size},
    {abi::kFeaturePayloadSchemas, schemas},
    {abi::kFeatureAttachments, attachments},
    {abi::kFeatureAttachedPrograms, programs},
    {abi::kFeatureSymbolPack, symbol_pack},
    {abi::kFeatureContent, content_classes},
    {abi::kFeatureUserStacks, user_stacks},
    {abi::kFeatureLosses, losses},
    {abi::kFeatureCpuChanges, cpu_changes},
};

}  // namespace

void describe_layout(FieldSink& to, const CaptureLayout& layout) {
  to.flag("pipe", layout.is_pipe);
  to.flag("closed", layout.is_closed);
  to.text("byte_order", layout.order == std::endian::little ? "little" : "big");
  to.number("data_offset", layout.data_offset);
  to.number("data_size", layout.data_size);
}

void describe_event(FieldSink& to, std::size_t index, const EventSet& events) {
  const Event& event = events[index];
  to.number("index", index);
  to.text("name", event.name);
  describe_attr(to, event.attr);
  to.begin_list("ids");
  for (const std::uint64_t id : event.ids) to.number({}, id);
  to.end_list();
}

void describe_feature(FieldSink& to, std::uint32_t feature, const Features& features) {
  if (!features.present[feature]) return;
  const auto raw = std::ranges::find(features.raw, feature, &RawSection::feature);
  if (raw != features.raw.end()) return to.bytes("section", raw->bytes);
  const auto row = std::ranges::find(kFeatureFields, feature, &FeatureFieldsRow::feature);
  if (row != std::end(kFeatureFields)) row->describe(to, features);
}

}  // namespace tacho::report
