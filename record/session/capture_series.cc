#include "record/session/capture_series.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/container/features.h"
#include "format/records/perf_abi.h"
#include "format/records/record.h"
#include "format/records/record_view.h"
#include "record/host/attachments.h"
#include "record/objects/channel_rings.h"
#include "record/stacks/stack_choice.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// Names of the cgroups that lost events; a cgroup that was removed has its id.
std::map<std::uint64_t, std::string> paths_of_cgroups(const std::vector<Losses>& losses) {
  std::map<std::uint64_t, std::string> paths;
  for (const Losses& loss : losses)
    if (loss.cgroup != 0) paths.emplace(loss.cgroup, "cgroup " + std::to_string(loss.cgroup));
  if (paths.empty()) return paths;
  for (const Cgroup& cgroup : all_cgroups())
    if (const auto wanted = paths.find(cgroup.id); wanted != paths.end()) wanted->second = cgroup.path;
  return paths;
}

// What follows the event's name in the list of losses.
std::string_view suffix_of(LossReason reason) {
  switch (reason) {
    case LossReason::TooDeep:
      return " (nested too deep)";
    case LossReason::UnseenEnd:
      return " (end not traced)";
    case LossReason::InBpf:
      return " (a BPF program ran)";
    case LossReason::NoRoom:
      break;
  }
  return "";
}

}  // namespace

std::vector<DroppingProgram> new_dropping_programs(const OpenedRecording& recording) {
  auto now = dropping_programs(*recording.plan, recording.events, recording.objects);
  std::erase_if(now, [&](const DroppingProgram& each) {
    return std::ranges::any_of(recording.dropping, [&](const DroppingProgram& known) {
      return known.program.id == each.program.id;
    });
  });
  return now;
}

std::vector<Losses> all_losses(const OpenedRecording& recording, const Channels* channels) {
  const KernelEvents& events = recording.events;
  std::vector<Losses> all = attributed_by_programs(events, recording);
  std::vector<bool> is_counted(recording.objects.size());  // by its first event
  for (const Connection& connection : recording.plan->connections) {
    const auto open = std::ranges::find(events.open_events(), connection.event, &OpenEvent::event);
    if (open == events.open_events().end() || is_counted[connection.object]) continue;
    is_counted[connection.object] = true;
    const bpf::UserObject& object = recording.objects[connection.object];
    const auto add = [&](std::uint64_t lost, LossReason reason) {
      add_loss(all, {.event = connection.event, .id = open->id, .lost = lost, .reason = reason});
    };
    add(object.too_deep(), LossReason::TooDeep);
    add(object.unseen_ends(), LossReason::UnseenEnd);
  }
  if (auto due = recording.stacks ? events.due_samples() : std::nullopt) {
    due->lost = recording.stacks->left_out_of(due->lost);
    add_loss(all, *due);
  }
  if (channels == nullptr) return all;
  for (const Losses& loss : channels->losses()) add_loss(all, loss);
  return all;
}

format::RecordingLosses described(const std::vector<Losses>& losses, const RecordCounts& counts,
                                  const OpenedRecording& recording, const std::vector<std::string>& cgroups) {
  format::RecordingLosses found;
  std::map<std::uint64_t, int> cpus;
  std::uint64_t first = counts.lost_first, last = counts.lost_last;
  const auto paths = paths_of_cgroups(losses);
  for (const OpenEvent& open : recording.events.open_events()) cpus.emplace(open.id, open.cpu);
  for (const Losses& loss : losses) {
    const PlannedEvent& event = recording.plan->events[loss.event];
    const auto cpu = cpus.find(loss.id);
    // Others than those of a ring are counted for all CPUs together.
    const int known = cpu == cpus.end() || loss.reason != LossReason::NoRoom ? -1 : cpu->second;
    format::EventLoss at{event.name + std::string(suffix_of(loss.reason)), "",
                         loss.cpu >= 0 ? loss.cpu : known, loss.lost};
    for (std::size_t i = 0; i < std::min(recording.cgroups.size(), cgroups.size()); ++i)
      if (event.cgroup >= 0 && recording.cgroups[i].get() == event.cgroup) at.cgroup = cgroups[i];
    if (loss.cgroup != 0 && at.cgroup.empty()) at.cgroup = paths.at(loss.cgroup);
    found.events.push_back(std::move(at));
    first = std::min(first, loss.first);
    last = std::max(last, loss.last);
  }
  if (last == 0 || counts.samples == 0) return found;
  const auto since_first = [&](std::uint64_t time) { return time - std::min(time, counts.first_time); };
  found.interval = {since_first(first), since_first(last)};
  return found;
}

Result<> CaptureEnd::write(const RecordCounts& counts, CaptureOutput& output) {
  format::ByteWriter records;
  const std::vector<Losses> losses = reported_.news(all_losses(recording_, channels_));
  // Ring buffers of BPF objects have no LOST records. Read after the losses, so that none of them is missing.
  std::uint64_t lost_by_rings = 0;
  for (const Losses& loss : recording_.events.losses()) lost_by_rings += loss.lost;
  in_lost_records_ += counts.lost;
  counted_before_ =
      std::exchange(counted_before_next_, lost_by_rings - std::min(lost_by_rings, in_lost_records_));
  for (const Losses& loss : losses)
    format::write_lost_samples(records, loss.lost, recording_.plan->events[loss.event].attr, loss.id);
  if (!records.empty()) {
    if (auto done = output.write_plain(records.view()); !done) return done;
    if (auto done = output.finish_round(); !done) return done;
  }
  format::Features late;
  if (counts.samples != 0) late.environment.sample_time = {counts.first_time, counts.last_time};
  late.environment.losses = described(losses, counts, recording_, cgroups_);
  late.environment.losses.counted_before = counted_before_;
  if (auto added = new_dropping_programs(recording_); !added.empty()) {
    added.insert(added.begin(), recording_.dropping.begin(), recording_.dropping.end());
    late.environment.attached_programs = attached_programs(recording_.objects, added);
  }
  late.environment.cpu_changes = recording_.events.noted_cpus();
  if (recording_.stacks) {
    const StackCounts now = recording_.stacks->counts();
    late.environment.user_stacks = facts_of_choice(*recording_.plan);
    for (auto& fact : facts_of(now - reported_stacks_))
      late.environment.user_stacks.push_back(std::move(fact));
    reported_stacks_ = now;
  }
  return output.close(late);
}

namespace {

// Types of records that a reader needs to understand later samples.
constexpr std::uint32_t kSideband[] = {abi::kRecordMmap,    abi::kRecordComm,     abi::kRecordExit,
                                       abi::kRecordFork,    abi::kRecordMmap2,    abi::kRecordNamespaces,
                                       abi::kRecordKsymbol, abi::kRecordBpfEvent, abi::kRecordCgroup,
                                       abi::kRecordTextPoke};

constexpr std::size_t kMostCarried = std::size_t{1} << 20;
constexpr std::chrono::seconds kFresh{10};

}  // namespace

void append_sideband(format::Bytes records, std::vector<std::byte>& sideband,
                     std::vector<std::byte>* others) {
  while (records.size() >= format::kRecordHeaderSize) {
    format::Cursor header(records);
    const std::uint32_t type = header.u32();
    header.u16();  // misc
    const std::size_t size = header.u16();
    if (size < format::kRecordHeaderSize || size > records.size()) return;
    const bool is_sideband = std::ranges::find(kSideband, type) != std::end(kSideband);
    if (std::vector<std::byte>* const out = is_sideband ? &sideband : others)
      out->insert(out->end(), records.begin(), records.begin() + static_cast<std::ptrdiff_t>(size));
    records = records.subspan(size);
  }
}

CaptureSeries::CaptureSeries(const std::string& path, std::size_t most_files,
                             std::unique_ptr<CaptureOutput> first, Callbacks callbacks)
    : finished_(path, most_files), current_(std::move(first)), callbacks_(std::move(callbacks)) {}
CaptureSeries::~CaptureSeries() = default;

Result<> CaptureSeries::write_plain(format::Bytes records) { return current_->write_plain(records); }

Result<> CaptureSeries::write_records(format::Bytes records) {
  count_records(records, counts_);
  if (next_.processes) append_sideband(records, next_.carried);
  if (description_.valid()) append_sideband(records, newer_.carried);
  return current_->write_records(records);
}

// Sideband records have rings of their own and are written separately.
Result<> CaptureSeries::write_packed(format::Bytes packed, std::uint64_t inflated,
                                     const RecordCounts& counts) {
  counts_.add(counts);
  return current_->write_packed(packed, inflated, counts);
}

Result<> CaptureSeries::finish_round() { return current_->finish_round(); }

Result<> CaptureSeries::close(const format::Features& late) {
  if (auto done = current_->close(late); !done) return done;
  finished_bytes_ += current_->bytes();
  current_.reset();
  return finished_.add();
}

Result<> CaptureSeries::close_after_failure() {
  if (!current_) return Done{};  // finished files are closed
  return current_->close_after_failure();
}

std::uint64_t CaptureSeries::bytes() const { return current_ ? current_->bytes() : 0; }

Result<> CaptureSeries::prepare_next() {
  const auto now = std::chrono::steady_clock::now();
  if (description_.valid()) return Done{};
  if (next_.processes && next_.carried.size() <= kMostCarried && now - next_.began < kFresh) return Done{};
  newer_ = {.processes = {}, .carried = {}, .began = now};
  try {
    description_ = std::async(std::launch::async, [this]() -> Result<CaptureStart> {
      Result<CaptureStart> processes = Error{"out of memory"};
      try {
        processes = callbacks_.describe();
      } catch (const std::bad_alloc&) {
        // The error says so.
      } catch (const std::exception& bug) {
        processes = Error{bug.what()};
      }
      is_prepared_ = true;
      return processes;
    });
  } catch (const std::system_error& refused) {
    return system_error("a thread that reads the running processes", refused.code().value());
  }
  return Done{};
}

// Takes the description when it is complete; waits for it if there is no earlier one.
Result<> CaptureSeries::take_description() {
  if (!description_.valid())
    return next_.processes ? Result<>(Done{}) : Error{"the next file was not prepared"};
  const bool is_complete = description_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  if (next_.processes && !is_complete) return Done{};
  auto processes = description_.get();
  if (!processes) return std::move(processes.error());
  newer_.processes = std::move(*processes);
  next_ = std::exchange(newer_, {});
  return Done{};
}

Result<> CaptureSeries::begin_next() {
  if (auto done = take_description(); !done) return done;
  if (auto done = finish(); !done) return done;
  finished_.make_room();
  auto opened = callbacks_.open(next_.processes->features);
  if (!opened) return std::move(opened.error());
  current_ = std::move(*opened);
  counts_ = {};
  if (auto done = current_->write_plain(next_.processes->records); !done) return done;
  if (!next_.carried.empty()) {
    if (auto done = current_->write_records(next_.carried); !done) return done;
  }
  return current_->finish_round();
}

Result<> CaptureSeries::finish() { return callbacks_.end(counts_, *this); }

FlightRecorder::FlightRecorder(std::string path, std::size_t most_files, LastName last, CaptureStart now,
                               CaptureSeries::Callbacks callbacks, std::size_t most_log)
    : path_(std::move(path)),
      last_(last),
      most_log_(most_log),
      callbacks_(std::move(callbacks)),
      finished_(path_, most_files) {
  intervals_.push_back({std::move(now.records), {}});
}
FlightRecorder::~FlightRecorder() = default;

Result<> FlightRecorder::write_records(format::Bytes records) {
  append_sideband(records, intervals_.back().log, &samples_);
  if (intervals_.back().log.size() <= most_log_) return Done{};
  auto now = callbacks_.describe();
  if (!now) return std::move(now.error());
  intervals_.push_back({std::move(now->records), {}});
  if (intervals_.size() > 2) intervals_.pop_front();
  return Done{};
}

Result<> FlightRecorder::close_after_failure() {
  return current_ ? current_->close_after_failure() : Result<>(Done{});
}

std::optional<RecordCounts> FlightRecorder::kept(const RecordCounts&) const {
  return current_ || finished_.count() != 0 ? std::optional(finished_counts_) : std::nullopt;
}

std::vector<std::string> FlightRecorder::files() const {
  auto names = finished_.names();
  if (has_last_) names.push_back(path_);
  return names;
}

std::string FlightRecorder::place(const std::string& path) const {
  if (finished_.count() == 0) return path;
  return has_last_ ? path + " and " + finished_.place() : finished_.place();
}

Result<> FlightRecorder::begin_next() {
  finished_.make_room();
  if (auto done = write_capture(); !done) return done;
  return finished_.add();
}

Result<> FlightRecorder::finish() {
  if (last_ == LastName::PathAndTime) return begin_next();
  has_last_ = true;
  return write_capture();
}

Result<> FlightRecorder::write_capture() {
  auto now = callbacks_.describe();
  if (!now) return std::move(now.error());
  auto opened = callbacks_.open(std::move(now->features));
  if (!opened) return std::move(opened.error());
  current_ = std::move(*opened);
  RecordCounts counts;
  count_records(samples_, counts);
  counts.lost_first = std::min(counts.lost_first, std::exchange(gap_begin_, ~std::uint64_t{0}));
  if (auto done = current_->write_plain(intervals_.front().beginning); !done) return done;
  for (const Interval& interval : intervals_) {
    if (interval.log.empty()) continue;
    if (auto done = current_->write_records(interval.log); !done) return done;
  }
  if (!samples_.empty()) {
    if (auto done = current_->write_records(samples_); !done) return done;
  }
  if (auto done = current_->finish_round(); !done) return done;
  samples_ = {};
  if (auto done = callbacks_.end(counts, *current_); !done) return done;
  written_ += current_->bytes();
  finished_counts_.add(counts);
  current_.reset();
  return Done{};
}

}  // namespace tacho::record
