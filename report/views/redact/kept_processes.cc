#include "report/views/redact/kept_processes.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <optional>
#include <variant>

#include "format/extensions/attachment.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/sample.h"
#include "report/decode/bpf_instructions.h"
#include "symbolize/files/decompress.h"
#include "symbolize/frame.h"
#include "symbolize/jit/jitdump.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::EventAttr;
using format::Features;
using format::RecordView;
using symbolize::ModuleKind;

constexpr std::uint32_t kKernel = ~std::uint32_t{0};  // its pid in mappings

// perf's own records that may be about several processes.
constexpr std::uint32_t kOfAllProcesses[] = {abi::kRecordThreadMap, abi::kRecordBuildId, abi::kRecordAuxtrace,
                                             abi::kRecordAuxtraceInfo, abi::kRecordAuxtraceError};

std::string_view without_deleted(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return path;
}

// The pid in "perf-map/1234" or "/tmp/perf-1234.map"; nullopt: the name has another form.
std::optional<std::uint32_t> pid_in(std::string_view name, std::string_view before, std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() < before.size() + after.size())
    return std::nullopt;
  name.remove_prefix(before.size());
  name.remove_suffix(after.size());
  std::uint32_t pid = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return failed == std::errc{} && end == name.data() + name.size() ? std::optional(pid) : std::nullopt;
}

}  // namespace

void KeptProcesses::see(const RecordView& record, const format::EventSet& events) {
  const bool is_mapping = record.type == abi::kRecordMmap || record.type == abi::kRecordMmap2;
  if (pids_.empty() || (!is_mapping && record.type != abi::kRecordFork)) return;
  const auto event = events.event_of(record);
  if (!event) return;
  const auto parsed = format::parse_record(record, events[*event].attr);
  if (!parsed) return;
  if (const auto* const task = std::get_if<format::TaskRecord>(&*parsed))
    // A recorder describes processes that run already with time 0; they have mappings of their own.
    if (task->pid != task->parent_pid && task->time != 0) forks_.push_back(*task);
  if (const auto* const mapping = std::get_if<format::MmapRecord>(&*parsed)) {
    const std::uint64_t time = format::record_time(record, events[*event].attr).value_or(0);
    const auto [first, is_new] =
        files_.try_emplace({mapping->pid, std::string(without_deleted(mapping->filename))}, time);
    if (!is_new) first->second = std::min(first->second, time);
  }
}

void KeptProcesses::finish() {
  std::ranges::stable_sort(forks_, std::ranges::greater(), &format::TaskRecord::time);
  for (const format::TaskRecord& fork : forks_)  // the last one of each parent is the first here
    if (lends(fork.pid, fork.time)) lent_until_.try_emplace(fork.parent_pid, fork.time);
  for (const auto& [file, time] : files_)
    if (file.first == kKernel || lends(file.first, time)) mapped_.insert(file.second);
}

bool KeptProcesses::keeps(const RecordView& record, const format::EventSet& events) const {
  if (pids_.empty()) return true;
  if (record.type >= abi::kRecordUserStart)
    return std::ranges::find(kOfAllProcesses, record.type) == std::end(kOfAllProcesses);
  const auto event = events.event_of(record);
  if (!event) return false;
  const EventAttr& attr = events[*event].attr;
  switch (record.type) {
    case abi::kRecordSample: {
      const auto sample = format::parse_sample(record, attr);
      return sample && attr.samples(abi::kSampleTid) && is_kept(sample->pid);
    }
    case abi::kRecordMmap:
    case abi::kRecordMmap2: {
      const std::uint32_t pid = record.body().u32();
      return pid == kKernel || lends(pid, format::record_time(record, attr).value_or(0));
    }
    case abi::kRecordComm:
      return lends(record.body().u32(), format::record_time(record, attr).value_or(0));
    case abi::kRecordFork:
    case abi::kRecordExit:
    case abi::kRecordNamespaces:
    case abi::kRecordRead:
      return is_kept(record.body().u32());
    case abi::kRecordSwitch:
    case abi::kRecordSwitchCpuWide:
      return attr.samples(abi::kSampleTid) && is_kept(format::parse_sample_id(record, attr).pid);
    case abi::kRecordAux:
    case abi::kRecordItraceStart:
    case abi::kRecordAuxOutputHwId:
      return false;
    default:
      return true;
  }
}

Result<> KeptProcesses::reduce(Features& features) const {
  if (pids_.empty()) return Done{};
  std::erase_if(features.attachments, [&](const format::Attachment& attachment) {
    if (const auto pid = pid_in(attachment.name, "perf-map/", "")) return !is_kept(*pid);
    if (attachment.name.starts_with(symbolize::kAttachedJitdump)) {
      const auto pid = pid_in(attachment.name.substr(attachment.name.rfind('/') + 1), "jit-", ".dump");
      return !pid || !is_kept(*pid);
    }
    return attachment.name != "vdso" && attachment.name != format::kKallsymsAttachment &&
           attachment.name != kBpfCallsAttachment;
  });
  std::erase_if(features.environment.build_ids, [&](const format::BuildIdEntry& entry) {
    return (entry.misc & abi::kCpumodeMask) != abi::kCpumodeKernel && !is_mapped(entry.filename);
  });
  features.tracing.saved_cmdlines.clear();
  return reduce_pack(features.symbol_pack);
}

bool KeptProcesses::lends(std::uint32_t pid, std::uint64_t time) const {
  const auto lent = lent_until_.find(pid);
  return is_kept(pid) || (lent != lent_until_.end() && time <= lent->second);
}

bool KeptProcesses::is_mapped(std::string_view path) const {
  return mapped_.contains(std::string(without_deleted(path)));
}

Result<> KeptProcesses::reduce_pack(std::vector<std::byte>& section) const {
  if (section.empty()) return Done{};
  auto pack = format::parse_symbol_pack(section);
  if (!pack) return std::move(pack.error()).in("the symbol pack");
  std::erase_if(pack->modules, [&](const format::PackedModule& module) {
    const std::string_view path = pack->texts[module.path];
    const auto kind = static_cast<ModuleKind>(module.kind);
    if (kind != ModuleKind::User && kind != ModuleKind::Anonymous) return false;
    if (const auto pid = pid_in(path, "/tmp/perf-", ".map")) return !is_kept(*pid);
    return !is_mapped(path);
  });
  auto written = format::write_symbol_pack_section(*pack);
  if (!written) return std::move(written.error());
  section = std::move(*written);
  return Done{};
}

}  // namespace tacho::report
