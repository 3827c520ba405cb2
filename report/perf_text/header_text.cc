#include "report/perf_text/header_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "cli/message_text.h"
#include "format/container/loss_text.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/decode/bpf_functions.h"
#include "report/decode/coded_values.h"
#include "report/decode/record_fields.h"

namespace tacho::report {
namespace {

using format::Environment;
using format::MemoryNode;

void add_siblings(std::string& text, const char* label, const std::vector<std::string>& lists, Names names) {
  for (const std::string& list : lists) text += fmt::format("# {}: {}\n", label, printable(list, names));
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

namespace {

constexpr std::size_t kMostShown = 200;

std::string_view take(std::string_view& text, char end) {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Process {
  std::string_view pid, pids, cgroup, executable;
  std::uint64_t start_ns = 0, mount_namespace = 0;
};

std::optional<Process> parse(std::string_view line) {
  Process process;
  process.pid = take(line, '\t');
  process.pids = take(line, '\t');
  const auto start = number(take(line, '\t'));
  take(line, '\t');  // its pid namespace
  const auto mount = number(take(line, '\t'));
  process.cgroup = take(line, '\t');
  process.executable = take(line, '\t');
  if (!number(process.pid) || !start || !mount) return std::nullopt;
  process.start_ns = *start;
  process.mount_namespace = *mount;
  return process;
}

}  // namespace

void write_processes(TextBuffer& out, std::string_view table, Names names) {
  const auto safe = [&](std::string_view text) { return printable(text, names); };
  std::size_t count = 0, inside = 0;
  take(table, '\n');  // names the fields
  while (!table.empty()) {
    const auto process = parse(take(table, '\n'));
    if (!process) continue;
    ++count;
    if (process->pids.find(',') == std::string_view::npos || ++inside > kMostShown) continue;
    out.text(fmt::format(
        "# process : {} ({} inside), {}, started {}.{:03} s after boot, cgroup {}, mount namespace {}\n",
        safe(process->pid), safe(process->pids.substr(process->pids.find(',') + 1)),
        process->executable.empty() ? "no executable" : safe(process->executable),
        process->start_ns / 1'000'000'000, process->start_ns / 1'000'000 % 1000, safe(process->cgroup),
        process->mount_namespace));
  }
  out.text(fmt::format("# processes : {} ran at the start, {} of them in a pid namespace of their own\n",
                       count, inside));
}

namespace {

constexpr std::uint64_t kLargestTable = std::uint64_t{64} << 20;  // bytes of the attachment "processes"

namespace abi = format::abi;

constexpr std::uint64_t kClockSecond = 1'000'000'000;  // ns

struct Source {
  const format::EventSet& events;
  const format::Features& features;
  Names names;

  const Environment& environment() const { return features.environment; }
  std::string safe(std::string_view name) const { return printable(name, names); }
};

std::string text_line(const Source& source, std::string_view label, const std::optional<std::string>& value) {
  return value ? fmt::format("# {} : {}\n", label, source.safe(*value)) : std::string();
}

std::string cpu_lines(const Source& source) {
  const auto& env = source.environment();
  return fmt::format("# nrcpus online : {}\n# nrcpus avail : {}\n", env.cpus_online.value_or(0),
                     env.cpus_available.value_or(0));
}

std::string command_line(const Source& source) {
  std::string line = "# cmdline : ";
  for (const std::string& word : source.environment().command_line) {
    for (const char c : source.safe(word)) {
      if (c == '\'') line += '\\';
      line += c;
    }
    line += ' ';
  }
  return line + '\n';
}

std::string event_lines(const Source& source) {
  std::string lines;
  for (const auto& event : source.features.event_descriptions) {
    lines += fmt::format("# event : name = {}, ", source.safe(event.name));
    if (!event.ids.empty()) lines += fmt::format(", id = {{ {} }}", fmt::join(event.ids, ", "));
    lines += attr_text(event.attr, AttrList::Header) + '\n';
  }
  return lines;
}

std::string pmu_lines(const Source& source) {
  const auto& mappings = source.environment().pmu_mappings;
  if (mappings.empty()) return "# pmu mappings: not available\n";
  std::string line = "# pmu mappings: ";
  for (const auto& [type, name] : mappings) {
    if (&type != &mappings.front().first) line += ", ";
    line += fmt::format("{} = {}", source.safe(name), type);
  }
  return line + '\n';
}

std::string group_lines(const Source& source) {
  std::string lines;
  for (const auto& group : source.environment().groups) {
    const std::size_t end =
        std::min<std::size_t>(source.events.size(), std::uint64_t{group.leader} + group.members);
    if (group.leader >= end) continue;
    lines += "# group: " + (group.name == "{anon_group}" ? std::string() : source.safe(group.name)) + '{';
    for (std::size_t i = group.leader; i < end; ++i) {
      if (i != group.leader) lines += ',';
      lines += source.safe(source.events[i].name);
    }
    lines += "}\n";
  }
  return lines;
}

std::string time_lines(const Source& source) {
  const auto [first, last] =
      source.environment().sample_time.value_or(std::pair<std::uint64_t, std::uint64_t>());
  const auto stamp = [](std::uint64_t time) {
    return fmt::format("{}.{:06}", time / kClockSecond, time % kClockSecond / 1000);
  };
  return fmt::format(
      "# time of first sample : {}\n# time of last sample : {}\n# sample duration : {:10.3f} ms\n",
      stamp(first), stamp(last), static_cast<double>(last - first) / 1e6);
}

std::string clock_lines(const Source& source) {
  static constexpr std::string_view kNames[] = {
      "realtime", "monotonic", "", "", "monotonic_raw", "", "", "boottime", "", "", "", "tai"};
  const auto& clock = source.environment().clock_data;
  if (!clock) return {};
  const std::string_view known = clock->clockid < std::size(kNames) ? kNames[clock->clockid] : "";
  const std::string name(known.empty() ? "(not found)" : known);
  const auto seconds = static_cast<std::time_t>(clock->wall_ns / kClockSecond);
  std::tm local{};
  std::array<char, 64> day{};
  if (localtime_r(&seconds, &local) == nullptr) return {};
  (void)std::strftime(day.data(), day.size(), "%F %T", &local);
  return fmt::format("# clockid: {} ({})\n# reference time: {}.{:06} = {}.{:06} (TOD) = {}.{:09} ({})\n",
                     name, clock->clockid, day.data(), clock->wall_ns % kClockSecond / 1000,
                     clock->wall_ns / kClockSecond, clock->wall_ns % kClockSecond / 1000,
                     clock->clock_ns / kClockSecond, clock->clock_ns % kClockSecond, name);
}

std::string bpf_program_lines(const Source& source) {
  std::string lines;
  BpfFunctions known(source.environment());
  for (const auto& program : source.environment().bpf_programs) {
    const auto functions = known.functions_of(program);
    if (functions.empty()) continue;
    const auto line_of = [&](const BpfFunction& function) {
      return fmt::format("{} addr {:#x} size {}\n", source.safe(function.name), function.address,
                         function.size);
    };
    lines += fmt::format("# bpf_prog_info {}:", BpfFunctions::id(program));
    if (functions.size() == 1) {
      lines += ' ' + line_of(functions[0]);
      continue;
    }
    lines += '\n';
    for (std::size_t i = 0; i < functions.size(); ++i)
      lines += fmt::format("# \tsub_prog {}: {}", i, line_of(functions[i]));
  }
  return lines;
}

std::string btf_lines(const Source& source) {
  std::string lines;
  for (const auto& btf : source.environment().btf) lines += fmt::format("# btf info of id {}\n", btf.id);
  return lines;
}

std::string compression_line(const Source& source) {
  const auto& info = source.environment().compression;
  if (!info) return {};
  return fmt::format("# compressed : {}, level = {}, ratio = {}\n", info->type == 1 ? "Zstd" : "Unknown",
                     info->level, info->ratio);
}

std::string caps_list(const format::StringPairs& caps, const Source& source) {
  std::string list;
  for (const auto& [name, value] : caps)
    list += (list.empty() ? "" : ", ") + source.safe(name) + '=' + source.safe(value);
  return list;
}

std::string pmu_caps_lines(const Source& source) {
  std::string lines;
  for (const auto& pmu : source.environment().pmu_caps) {
    lines += fmt::format("# {} pmu capabilities: {}\n", source.safe(pmu.pmu), caps_list(pmu.caps, source));
  }
  return lines;
}

std::string cpu_caps_line(const Source& source) {
  const auto& caps = source.environment().cpu_pmu_caps;
  return "# cpu pmu capabilities: " + (caps.empty() ? "not available" : caps_list(caps, source)) + '\n';
}

struct FeatureRow {
  std::uint32_t feature;
  std::string (*lines)(const Source&);
  bool is_long = false;  // perf shows the lines only with -I (HeaderDetail::Full), and says so
};

// Sorted by bit, which is the order of the lines.
constexpr FeatureRow kRows[] = {
    {abi::kFeatureHostname,
     [](const Source& s) { return text_line(s, "hostname", s.environment().hostname); }},
    {abi::kFeatureOsRelease,
     [](const Source& s) { return text_line(s, "os release", s.environment().os_release); }},
    {abi::kFeatureVersion,
     [](const Source& s) { return text_line(s, "perf version", s.environment().version); }},
    {abi::kFeatureArch, [](const Source& s) { return text_line(s, "arch", s.environment().arch); }},
    {abi::kFeatureNrCpus, cpu_lines},
    {abi::kFeatureCpuDesc,
     [](const Source& s) { return text_line(s, "cpudesc", s.environment().cpu_description); }},
    {abi::kFeatureCpuId, [](const Source& s) { return text_line(s, "cpuid", s.environment().cpu_id); }},
    {abi::kFeatureTotalMem,
     [](const Source& s) {
       return fmt::format("# total memory : {} kB\n", s.environment().total_memory_kib.value_or(0));
     }},
    {abi::kFeatureCmdline, command_line},
    {abi::kFeatureEventDesc, event_lines},
    {abi::kFeatureCpuTopology, [](const Source& s) { return cpu_topology_text(s.environment(), s.names); },
     true},
    {abi::kFeatureNumaTopology, [](const Source& s) { return numa_text(s.environment(), s.names); }, true},
    {abi::kFeatureBranchStack,
     [](const Source&) { return std::string("# contains samples with branch stack\n"); }},
    {abi::kFeaturePmuMappings, pmu_lines},
    {abi::kFeatureGroupDesc, group_lines},
    {abi::kFeatureAuxtrace,
     [](const Source&) { return std::string("# contains AUX area data (e.g. instruction trace)\n"); }},
    {abi::kFeatureStat, [](const Source&) { return std::string("# contains stat data\n"); }},
    {abi::kFeatureCache, [](const Source& s) { return cache_text(s.environment(), s.names); }, true},
    {abi::kFeatureSampleTime, time_lines},
    {abi::kFeatureMemTopology, [](const Source& s) { return memory_text(s.environment()); }, true},
    {abi::kFeatureClockid,
     [](const Source& s) {
       return fmt::format("# clockid frequency: {} MHz\n",
                          s.environment().clock_resolution_ns.value_or(0) * 1000);
     }},
    {abi::kFeatureDirFormat,
     [](const Source& s) {
       return fmt::format("# directory data version : {}\n", s.environment().directory_format.value_or(0));
     }},
    {abi::kFeatureBpfProgInfo, bpf_program_lines},
    {abi::kFeatureBpfBtf, btf_lines},
    {abi::kFeatureCompressed, compression_line},
    {abi::kFeatureCpuPmuCaps, cpu_caps_line},
    {abi::kFeatureClockData, clock_lines},
    {abi::kFeatureHybridTopology,
     [](const Source& s) {
       std::string lines = "# hybrid cpu system:\n";
       for (const auto& [pmu, cpus] : s.environment().hybrid_pmus) {
         lines += fmt::format("# {} cpu list : {}\n", s.safe(pmu), s.safe(cpus));
       }
       return lines;
     }},
    {abi::kFeaturePmuCaps, pmu_caps_lines},
};
static_assert(std::ranges::is_sorted(kRows, {}, &FeatureRow::feature));

std::string missing_features(const format::Features& features) {
  constexpr std::uint32_t kLastKnownToPerf = abi::kFeaturePmuCaps;  // 6.1
  std::string line = "# missing features: ";
  for (std::uint32_t feature = 1; feature <= kLastKnownToPerf; ++feature) {
    if (!features.present.test(feature)) line += std::string(format::feature_name(feature)) + ' ';
  }
  return line + '\n';
}

std::string modified_line(std::int64_t modified) {
  const auto time = static_cast<std::time_t>(modified);
  std::tm local{};
  std::array<char, 64> text{};
  if (localtime_r(&time, &local) == nullptr || asctime_r(&local, text.data()) == nullptr) return {};
  return fmt::format("# captured on    : {}", text.data());  // ends its line itself
}

}  // namespace

void write_features(TextBuffer& out, const format::EventSet& events, const format::Features& features,
                    Names names, HeaderDetail detail) {
  const Source source{events, features, names};
  for (const FeatureRow& row : kRows) {
    if (!features.present.test(row.feature)) continue;
    const bool is_named_only = row.is_long && detail != HeaderDetail::Full;
    out.text(is_named_only
                 ? fmt::format("# {} info available, use -I to display\n", format::feature_name(row.feature))
                 : row.lines(source));
  }
}

void write_header(TextBuffer& out, const format::CaptureLayout& layout, const format::EventSet& events,
                  const format::Features& features, Names names, HeaderDetail detail) {
  out.text("# ========\n");
  if (!layout.is_pipe || layout.modified != 0) out.text(modified_line(layout.modified));
  out.text(fmt::format(
      "# header version : 1\n# data offset    : {}\n# data size      : {}\n# feat offset    : {}\n",
      layout.is_pipe ? 0 : layout.data_offset, layout.is_pipe ? 0 : layout.data_size,
      layout.is_pipe ? 0 : layout.features_offset));
  if (!layout.is_pipe) {
    write_features(out, events, features, names, detail);
    out.text(missing_features(features));
  }
  out.text("# ========\n#\n");
}

namespace {

void write_symbol_pack(TextBuffer& out, format::Bytes section) {
  const auto pack = format::parse_symbol_pack(section);
  if (!pack) return out.text(fmt::format("# packed symbols : {}\n", pack.error().what));
  std::size_t named = 0;
  for (const format::PackedModule& module : pack->modules) {
    named += static_cast<std::size_t>(std::ranges::count_if(module.addresses, [](const auto& address) {
      return address.symbol != format::PackedFunction::kNone;
    }));
  }
  out.text(fmt::format("# packed symbols : names of {}, in {}, {}, {} bytes\n",
                       cli::counted(named, "address"), cli::counted(pack->modules.size(), "module"),
                       pack->level == format::PackLevel::Names     ? "names"
                       : pack->level == format::PackLevel::Inlines ? "names, inlines, lines"
                                                                   : "names, inlines, lines, code",
                       section.size()));
}

// The sum of all, then a line for each event and CPU, as many as fit a screen.
void write_losses(TextBuffer& out, const format::RecordingLosses& losses, Names names) {
  constexpr std::size_t kMostLines = 20;
  if (losses.events.empty()) return;
  std::uint64_t sum = 0;
  for (const auto& loss : losses.events) sum += loss.lost;
  const std::string when = format::when_lost(losses);
  out.text(fmt::format("# lost samples : {}{}{}\n", sum, when.empty() ? "" : ", ", when));
  for (std::size_t i = 0; i < std::min(losses.events.size(), kMostLines); ++i) {
    const format::EventLoss& loss = losses.events[i];
    const std::string cpu = loss.cpu < 0 ? "" : fmt::format(", CPU {}", loss.cpu);
    const std::string cgroup = loss.cgroup.empty() ? "" : ", cgroup " + printable(loss.cgroup, names);
    out.text(
        fmt::format("# lost samples : {}{}{}: {}\n", printable(loss.event, names), cpu, cgroup, loss.lost));
  }
  if (losses.events.size() > kMostLines)
    out.text(fmt::format("# lost samples : and in {} more places\n", losses.events.size() - kMostLines));
}

}  // namespace

void write_own_features(TextBuffer& out, const format::Features& features, Names names) {
  const auto safe = [&](std::string_view name) { return printable(name, names); };
  for (const auto& program : features.environment.attached_programs) {
    out.text(fmt::format("# bpf program : {} [{}] of {}, id {}, {}\n", safe(program.name),
                         safe(program.section), safe(program.object), program.id, safe(program.state)));
  }
  for (const auto& schema : features.schemas) {
    std::string fields;
    for (const auto& field : schema.fields) {
      fields += (fields.empty() ? "" : ", ") + safe(field.name);
      if (!field.unit.empty()) fields += " (" + safe(field.unit) + ')';
    }
    out.text(fmt::format("# payload : {} is struct {}, {} bytes: {}\n", safe(schema.event),
                         safe(schema.type_name), schema.size, fields));
  }
  for (const auto& attachment : features.attachments) {
    out.text(fmt::format("# attached : {} from {}, {} bytes, {} packed\n", safe(attachment.name),
                         safe(attachment.origin), attachment.raw_size, attachment.packed.size()));
  }
  for (const auto& [what, value] : features.environment.user_stacks)
    out.text(fmt::format("# user stacks : {}: {}\n", safe(what), safe(value)));
  for (const auto& [cpu, what] : features.environment.cpu_changes)
    out.text(fmt::format("# CPUs : {} {}\n", safe(cpu), safe(what)));
  write_losses(out, features.environment.losses, names);
  if (!features.symbol_pack.empty()) write_symbol_pack(out, features.symbol_pack);
  std::string content;
  for (const auto& one : features.environment.content) {
    content += (content.empty() ? "" : ", ") + safe(one.name);
    if (one.state != format::kAsRecorded) content += " (" + safe(one.state) + ')';
  }
  if (!content.empty()) out.text("# sensitive content : " + content + '\n');
  const auto* const processes = features.attachment("processes");
  if (processes == nullptr) return;
  if (const auto table = format::unpack_attachment(*processes, kLargestTable))
    write_processes(out, format::as_text(*table), names);
}

using namespace format;

void RecordCounts::add_record(const RecordView& record) {
  ++by_type_[record.type];
  if (record.type != abi::kRecordSample && record.type != abi::kRecordLostSamples) return;
  const auto event = reader_.events().event_of(record);
  if (!event)
    return diagnostics_.add_finding(Damage::UnknownEvent, record.offset, "a record of no known event");
  by_event_.resize(reader_.events().size());
  const EventAttr& attr = reader_.events()[*event].attr;
  if (record.type == abi::kRecordSample)
    add_sample(record, *event, attr);
  else
    add_lost(record, *event, attr);
}

void RecordCounts::write(TextBuffer& out, Names names, Losses losses) {
  for (const auto type : {abi::kRecordCompressed, abi::kRecordCompressed2})
    if (const auto compressed = reader_.compressed_records(type); compressed != 0)
      by_type_[type] = compressed;
  std::uint64_t total = 0;
  for (const auto& [type, count] : by_type_) total += count;
  out.text("\nAggregated stats:\n");
  out.text(fmt::format("{:>16} events: {:10}\n", "TOTAL", total));
  for (const auto& [type, count] : by_type_) {
    const double share = 100.0 * static_cast<double>(count) / static_cast<double>(total);
    out.text(fmt::format("{:>16} events: {:10}  ({:4.1f}%)\n", record_name(type), count, share));
  }
  for (std::size_t i = 0; i < by_event_.size(); ++i) {
    const EventCounts& counts = by_event_[i];
    const std::uint64_t lost = losses == Losses::Shown ? counts.lost : 0;
    if (counts.samples == 0 && lost == 0) continue;
    const std::string& name = reader_.events()[i].name;
    out.text(printable(name, names) + " stats:\n");
    if (counts.samples != 0) out.text(fmt::format("{:>16} events: {:10}\n", "SAMPLE", counts.samples));
    if (lost != 0) out.text(fmt::format("{:>16} events: {:10}\n", "LOST_SAMPLES", lost));
  }
}

// A sample with counter values counts as one sample of each event of its group whose counter has changed.
void RecordCounts::add_sample(const RecordView& record, std::size_t event, const EventAttr& attr) {
  const auto sample = parse_sample(record, attr);
  if (!sample || sample->unread != 0)
    diagnostics_.add_finding(Damage::BadRecord, record.offset,
                             "a sample whose length is not that of its fields");
  if (!sample || !attr.samples(abi::kSampleRead)) {
    ++by_event_[event].samples;
    return;
  }
  for (std::size_t i = 0; i < sample->read.size(); ++i) {
    const auto entry = sample->read.entry(i);
    const auto member = reader_.events().find_id(entry.id);
    if (!member) continue;
    auto& last = last_value_[entry.id];
    if (entry.value != last) ++by_event_[*member].samples;
    last = entry.value;
  }
}

void RecordCounts::add_lost(const RecordView& record, std::size_t event, const EventAttr& attr) {
  const auto parsed = parse_record(record, attr);
  if (!parsed) return diagnostics_.add_finding(Damage::BadRecord, record.offset, parsed.error().what);
  if (const auto* lost = std::get_if<LostSamplesRecord>(&*parsed)) by_event_[event].lost += lost->lost;
}

void write_stats(TextBuffer& out, CaptureReader& reader, Diagnostics& diagnostics, Names names) {
  RecordCounts counts(reader, diagnostics);
  while (const auto record = reader.next_record()) counts.add_record(*record);
  counts.write(out, names, RecordCounts::Losses::Shown);
}

}  // namespace tacho::report
