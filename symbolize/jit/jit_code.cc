#include "symbolize/jit/jit_code.h"

#include <algorithm>
#include <cerrno>

#include "format/base/file.h"
#include "format/base/parse_text.h"
#include "format/records/perf_abi.h"
#include "symbolize/files/decompress.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint32_t kProtExec = 4, kMapShared = 1;
constexpr std::uint64_t kLargestDump = std::uint64_t{1} << 30;  // bytes

// The PID of "jit-PID.dump".
std::optional<std::uint32_t> pid_of_dump(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with("jit-") || !name.ends_with(".dump")) return std::nullopt;
  return format::whole_number<std::uint32_t>(name.substr(4, name.size() - 9));
}

// The path of the file that perf inject would write for the function.
std::string file_of(const std::string& folder, std::uint32_t pid, std::uint64_t index) {
  return folder + "jitted-" + std::to_string(pid) + "-" + std::to_string(index) + ".so";
}

}  // namespace

JitClock clock_of(const format::EventSet& events) {
  constexpr std::int32_t kMonotonic = 1;
  const bool is_monotonic = std::ranges::all_of(events, [](const format::Event& event) {
    return event.attr.has(format::abi::kUseClockid) && event.attr.clockid == kMonotonic;
  });
  return is_monotonic ? JitClock::Monotonic : JitClock::Other;
}

// Reads a jitdump: attached to the capture, pinned, or else by its name (where another process with that pid
// may have written one since).
Result<std::vector<std::byte>> JitCode::read_dump(const std::string& path) const {
  const auto* const attached =
      features_ != nullptr ? features_->attachment(std::string(kAttachedJitdump) + path) : nullptr;
  if (attached != nullptr) return unpack_attached_text(*attached);
  auto pinned = files_.read_pinned(path, {}, kLargestDump);
  return pinned || pinned.error().code != ENOENT ? std::move(pinned) : files_.read_file(path, kLargestDump);
}

Result<Jitdump> JitCode::open_dump(const std::string& path, JitClock clock) const {
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string name_of_dump = folder_.empty() ? files_.local_path(path) : folder_ + "/" + name;
  const ScopedRead reading(access_, path);
  if (reading.is_refused()) return Error{access_->refusal(path)};
  auto bytes = folder_.empty() ? read_dump(path) : format::read_file(name_of_dump, kLargestDump);
  if (!bytes) return std::move(bytes.error());
  auto dump = Jitdump::parse(std::move(*bytes));
  if (!dump) return std::move(dump.error()).in(name_of_dump);
  if (dump->counts_ticks()) return Error{name_of_dump + ": its times are CPU ticks, which no capture has"};
  if (clock == JitClock::Other)
    return Error{
        name_of_dump +
        ": its times are of CLOCK_MONOTONIC and the capture's are not; record with perf record -k mono"};
  if (dump->pid() != pid_of_dump(path))
    return Error{name_of_dump + ": is of another process, " + std::to_string(dump->pid())};
  return dump;
}

bool JitCode::is_jitdump_marker(const format::MmapRecord& record) {
  const bool is_code = !record.is_mmap2 || (record.protection & kProtExec) != 0;
  return is_code && !record.is_data && pid_of_dump(record.filename) == record.pid;
}

bool JitCode::consumes(const format::MmapRecord& record, JitClock clock) {
  if (!is_jitdump_marker(record)) return known_.contains(record.pid) && record.filename.starts_with("//anon");
  const std::string path(record.filename);
  if (!seen_.insert(path).second) return known_.contains(record.pid);
  auto dump = open_dump(path, clock);
  if (!dump) {
    remarks_.push_back(path + ": " + dump.error().what);
    return false;
  }
  if (dump->is_cut_short())
    remarks_.push_back(path + ": its last record is truncated; functions after it have no names");
  known_.insert(record.pid);
  add_dump(record.pid, folder_of(path), dumps_.emplace_back(Opened{path, std::move(*dump)}).dump);
  return true;
}

// A function with the index of an earlier one replaces it, as perf overwrites its file.
void JitCode::add_dump(std::uint32_t pid, const std::string& folder, const Jitdump& dump) {
  for (const JitEvent& event : dump.events()) {
    const std::string path = file_of(folder, pid, event.index);
    if (event.is_move && !functions_.contains(path)) continue;  // the moved function is unknown
    const auto entry = functions_.try_emplace(path).first;
    if (!event.is_move)
      entry->second = {event.name, event.size, event.lines, event.code, event.eh_frame, dump.order()};
    pending_.emplace(event.time, Pending{pid, event.address, event.size, &entry->first});
  }
  if (!pending_.empty()) next_time_ = pending_.begin()->first;
}

std::optional<format::MmapRecord> JitCode::due(std::uint64_t time) {
  if (pending_.empty() || pending_.begin()->first > time) return std::nullopt;
  const Pending next = pending_.begin()->second;
  pending_.erase(pending_.begin());
  next_time_ = pending_.empty() ? ~std::uint64_t{0} : pending_.begin()->first;
  format::MmapRecord record;
  record.pid = record.tid = next.pid;
  record.start = next.address;
  record.length = next.size;
  record.page_offset = kTextOffset;
  record.filename = *next.path;
  record.is_mmap2 = true;
  record.protection = kProtExec;
  record.flags = kMapShared;
  return record;
}

const JitCode::Function* JitCode::find_function(const std::string& path) const {
  const auto found = functions_.find(path);
  return found == functions_.end() ? nullptr : &found->second;
}

std::vector<JitCode::Reduced> JitCode::reduced(
    const std::function<bool(const std::string&)>& is_wanted) const {
  std::vector<Reduced> all;
  for (const auto& [path, dump] : dumps_) {
    std::vector<const JitEvent*> events;
    for (const JitEvent& event : dump.events())
      if (is_wanted(file_of(folder_of(path), dump.pid(), event.index))) events.push_back(&event);
    all.push_back({path, attach_jitdump(path, dump.pid(), events)});
  }
  return all;
}

void JitCode::report(format::Diagnostics& diagnostics) const {
  for (const std::string& remark : remarks_) diagnostics.add_line(format::Damage::NoSymbols, remark);
}

}  // namespace tacho::symbolize
