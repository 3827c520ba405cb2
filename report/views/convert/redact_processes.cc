#include "report/views/convert/redact_processes.h"

#include <charconv>
#include <optional>
#include <utility>
#include <variant>

#include "format/extensions/symbol_pack.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "symbolize/files/attached_text.h"
#include "symbolize/frame.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using symbolize::ModuleKind;

constexpr std::uint32_t kKernel = ~std::uint32_t{0};

std::string_view without_deleted(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return path;
}

// "perf-map/1234", or "/tmp/perf-1234.map": nothing for names of another form.
std::optional<std::uint32_t> pid_in(std::string_view name, std::string_view before, std::string_view behind) {
  if (!name.starts_with(before) || !name.ends_with(behind) || name.size() < before.size() + behind.size())
    return std::nullopt;
  name.remove_prefix(before.size());
  name.remove_suffix(behind.size());
  std::uint32_t pid = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return failed == std::errc{} && end == name.data() + name.size() ? std::optional(pid) : std::nullopt;
}

}  // namespace

bool RedactProcesses::is_mapped(std::string_view path) const {
  return mapped_.contains(std::string(without_deleted(path)));
}

void RedactProcesses::see(const format::RecordView& record, const format::EventSet& events) {
  if (pids_.empty() || (record.type != abi::kRecordMmap && record.type != abi::kRecordMmap2)) return;
  const auto event = events.event_of(record);
  if (!event) return;
  const auto parsed = format::parse_record(record, events[*event].attr);
  const auto* const mapping = parsed ? std::get_if<format::MmapRecord>(&*parsed) : nullptr;
  if (mapping != nullptr && (mapping->pid == kKernel || is_kept(mapping->pid)))
    mapped_.emplace(without_deleted(mapping->filename));
}

bool RedactProcesses::keeps_own_record(const format::RecordView& record) const {
  switch (record.type) {
    case abi::kRecordThreadMap:
    case abi::kRecordBuildId:
    case abi::kRecordAuxtrace:
    case abi::kRecordAuxtraceInfo:
    case abi::kRecordAuxtraceError:
      return false;
    default:
      return true;
  }
}

bool RedactProcesses::keeps(const format::RecordView& record, const format::EventSet& events) const {
  if (pids_.empty()) return true;
  if (record.type >= abi::kRecordUserStart) return keeps_own_record(record);
  const auto event = events.event_of(record);
  if (!event) return false;
  const format::EventAttr& attr = events[*event].attr;
  switch (record.type) {
    case abi::kRecordSample: {
      const auto sample = format::parse_sample(record, attr);
      return sample && attr.samples(abi::kSampleTid) && is_kept(sample->pid);
    }
    case abi::kRecordMmap:
    case abi::kRecordMmap2: {
      const std::uint32_t pid = record.body().u32();
      return pid == kKernel || is_kept(pid);
    }
    case abi::kRecordComm:
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

Result<> RedactProcesses::reduce_pack(std::vector<std::byte>& section) const {
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

Result<> RedactProcesses::reduce(format::Features& features) const {
  if (pids_.empty()) return Done{};
  std::erase_if(features.attachments, [&](const format::Attachment& attachment) {
    if (const auto pid = pid_in(attachment.name, "perf-map/", "")) return !is_kept(*pid);
    if (attachment.name.starts_with(symbolize::kAttachedJitdump)) {
      const auto pid = pid_in(attachment.name.substr(attachment.name.rfind('/') + 1), "jit-", ".dump");
      return !pid || !is_kept(*pid);
    }
    return attachment.name != "vdso" && attachment.name != format::kKallsymsAttachment;
  });
  std::erase_if(features.environment.build_ids, [&](const format::BuildIdEntry& entry) {
    return (entry.misc & abi::kCpumodeMask) != abi::kCpumodeKernel && !is_mapped(entry.filename);
  });
  features.tracing.saved_cmdlines.clear();
  return reduce_pack(features.symbol_pack);
}

}  // namespace tacho::report
