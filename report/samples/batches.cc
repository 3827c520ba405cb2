#include "report/samples/batches.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <variant>

#include "format/container/loss_text.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Damage;
using format::RecordView;

// Whether the record is of a user process with tid 0.
bool is_of_tid_zero(const format::Record& record, std::uint16_t misc) {
  if (const auto* const mmap = std::get_if<format::MmapRecord>(&record))
    return mmap->pid == 0 && (misc & abi::kCpumodeMask) == abi::kCpumodeUser;
  if (const auto* const task = std::get_if<format::TaskRecord>(&record)) return task->tid == 0;
  const auto* const comm = std::get_if<format::CommRecord>(&record);
  return comm != nullptr && comm->tid == 0 && !comm->name.starts_with("swapper");
}

// Whether the record changes kernel mappings or JIT code, which all processes share.
bool changes_shared_data(const format::Record& record, std::uint16_t misc) {
  const auto* const mmap = std::get_if<format::MmapRecord>(&record);
  return (mmap != nullptr && symbolize::JitCode::is_jitdump_marker(*mmap)) ||
         std::visit(ChangeVisitor{misc}, record).kernel;
}

}  // namespace

void Batch::clear() {
  items.clear();
  blocks.clear();
  replaced.clear();
  bytes_read = 0;
  ends_before_change = is_last = false;
}

BatchReader::BatchReader(format::CaptureReader& capture, const symbolize::SymbolOptions& symbols,
                         format::Diagnostics& diagnostics)
    : capture_(&capture),
      diagnostics_(&diagnostics),
      records_(capture, diagnostics),
      jit_(symbols.jitdump_dir, symbolize::DebugFiles(symbols.symfs, {}, symbols.pinned), symbols.access),
      keeps_pid_zero_(symbols.keeps_pid_zero) {
  if (!symbols.names_memory_files) spaces_.keep_memory_files();
  if (keeps_pid_zero_) spaces_.keep_pid_zero();
  jit_.use(capture.features());
}

void BatchReader::begin(const BatchOptions& options) {
  options_ = &options;
  previous_is_finished_ = true;
  records_.use(*options.filter);
  is_pipe_ = capture_->fixed_header() == nullptr;
  add_build_ids();
}

void BatchReader::fill(Batch& batch) {
  constexpr std::size_t kMaxBytes = std::size_t{2} << 20;
  batch.clear();
  batch.first = next_item_;
  std::size_t bytes = 0;
  OrderedRecord record;
  while (batch.items.size() < options_->max_items && bytes < kMaxBytes) {
    auto step = OrderedRecords::Step::Record;
    if (pending_)
      record = *std::exchange(pending_, std::nullopt);
    else
      step = records_.next(record);
    if (step == OrderedRecords::Step::End) {
      // A pipe may send build ids at its end.
      if (is_pipe_) add_build_ids();
      batch.is_last = true;
      break;
    }
    if (step == OrderedRecords::Step::Progress) {
      batch.bytes_read = records_.bytes_read();
      if (is_pipe_ || capture_->follows()) break;
      continue;
    }
    if (process(record, batch) == Outcome::Postponed) {
      pending_ = record;
      batch.ends_before_change = true;
      break;
    }
    bytes += record.view.bytes.size();
  }
  next_item_ += batch.items.size();
  // Old versions of address spaces live as long as this batch: items of it and of the previous one may point
  // to them.
  batch.replaced = spaces_.take_replaced();
  previous_is_finished_ = batch.ends_before_change;
}

void BatchReader::add_build_ids() {
  const auto& entries = capture_->features().environment.build_ids;
  for (; build_ids_seen_ < entries.size(); ++build_ids_seen_) spaces_.add_build_id(entries[build_ids_seen_]);
}

BatchReader::Outcome BatchReader::process(const OrderedRecord& record, Batch& batch) {
  // A file has all build ids in its header; a pipe sends them between other records.
  if (is_pipe_ && build_ids_seen_ < capture_->features().environment.build_ids.size()) {
    if (!can_change_shared(batch)) return Outcome::Postponed;
    add_build_ids();
  }
  if (record.view.type == abi::kRecordBuildId) return process_build_id(record.view, batch);
  if (record.view.type >= abi::kRecordUserStart) return Outcome::Applied;
  if (record.time != 0 && jit_.is_due(record.time)) {
    while (const auto mapping = jit_.due(record.time)) replay(*mapping, abi::kCpumodeUser);
  }
  if (record.view.type != abi::kRecordSample) return process_other(record, batch);
  add_sample(record, batch);
  return Outcome::Applied;
}

BatchReader::Outcome BatchReader::process_build_id(const RecordView& view, const Batch& batch) {
  if (capture_->events().empty()) return Outcome::Applied;
  const auto record = format::parse_record(view, capture_->events()[0].attr);
  const auto* const entry = record ? std::get_if<format::BuildIdRecord>(&*record) : nullptr;
  if (entry == nullptr) return Outcome::Applied;
  if (!can_change_shared(batch)) return Outcome::Postponed;
  spaces_.add_build_id({entry->pid, entry->misc, entry->build_id, std::string(entry->filename)});
  return Outcome::Applied;
}

void BatchReader::replay(const format::Record& record, std::uint16_t misc) {
  // A jitdump of an unknown process has pids of another namespace.
  if (!keeps_pid_zero_ && is_of_tid_zero(record, misc)) return note_outside();
  if (const auto* const mmap = std::get_if<format::MmapRecord>(&record);
      mmap == nullptr || !jit_.consumes(*mmap, symbolize::clock_of(capture_->events()))) {
    spaces_.apply(record, misc);
    threads_.apply(std::visit(ChangeVisitor{misc}, record), spaces_);
    recent_spaces_.fill({});
  }
}

BatchReader::Outcome BatchReader::process_other(const OrderedRecord& record, Batch& batch) {
  const format::EventAttr& attr = capture_->events()[record.event].attr;
  const auto parsed = format::parse_record(record.view, attr);
  if (!parsed) {
    diagnostics_->add_finding(Damage::BadRecord, record.view.offset, parsed.error().what);
    return Outcome::Applied;
  }
  if (!can_change_shared(batch) && changes_shared_data(*parsed, record.view.misc)) return Outcome::Postponed;
  if (const auto* const cgroup = std::get_if<format::CgroupRecord>(&*parsed))
    cgroups_.add_path(cgroup->id, cgroup->path);
  count_losses(*parsed);
  // A view gets an EXIT before it takes effect (Sink::on_non_sample()).
  const bool is_exit = record.view.type == abi::kRecordExit;
  if (!is_exit) replay(*parsed, record.view.misc);
  if (options_->wants_others) add_other(record, *parsed, attr, batch);
  if (is_exit) replay(*parsed, record.view.misc);
  return Outcome::Applied;
}

BatchRecord& BatchReader::add_record(const OrderedRecord& record, Batch& batch) {
  // Records of a few rings alternate, so search from the block added last.
  if (std::find(batch.blocks.rbegin(), batch.blocks.rend(), *record.block) == batch.blocks.rend())
    batch.blocks.push_back(*record.block);
  BatchRecord& item = batch.items.emplace_back();
  item.record = record.view.bytes.data();
  item.size = static_cast<std::uint16_t>(record.view.bytes.size());
  item.offset = record.view.offset;
  item.time = record.time;
  item.event = record.event;
  return item;
}

void BatchReader::set_thread(BatchRecord& item, const KnownThread& thread) {
  const std::string_view comm = thread.comm();
  item.thread = &thread.thread;
  item.comm_data = comm.data();
  item.comm_size = static_cast<std::uint32_t>(comm.size());
}

// A sample's pid and tid. A record that is too short reads as 0 here; SampleLane::parse_sample() rejects it
// later.
std::pair<std::uint32_t, std::uint32_t> BatchReader::pid_and_tid(const OrderedRecord& record,
                                                                 const SampleLayout& event) {
  constexpr std::uint32_t kNone = ~0U;
  if (event.pid_tid_offset == 0) return {kNone, kNone};
  format::Cursor in(record.view.bytes.subspan(std::min(event.pid_tid_offset, record.view.bytes.size())),
                    record.view.order);
  const std::uint32_t pid = in.u32(), tid = in.u32();
  return {pid, tid};
}

// A pipe may announce more events between its records.
const BatchReader::SampleLayout& BatchReader::layout_of_event(std::uint32_t event) {
  for (std::size_t i = layouts_.size(); i <= event; ++i) {
    const format::EventAttr& attr = capture_->events()[i].attr;
    constexpr std::uint64_t kFieldsBeforeTid = abi::kSampleIdentifier | abi::kSampleIp;
    SampleLayout facts{.pid_tid_offset = 0, .has_values = attr.samples(abi::kSampleRead)};
    if (attr.samples(abi::kSampleTid))
      facts.pid_tid_offset = format::kRecordHeaderSize +
                             static_cast<std::size_t>(std::popcount(attr.sample_type & kFieldsBeforeTid)) *
                                 sizeof(std::uint64_t);
    layouts_.push_back(facts);
  }
  return layouts_[event];
}

const symbolize::SpaceVersion& BatchReader::space_of(std::uint32_t pid) {
  RecentSpace& recent = recent_spaces_[pid % recent_spaces_.size()];
  if (recent.space == nullptr || recent.pid != pid) recent = {pid, &spaces_.version(pid)};
  return *recent.space;
}

// Samples with counter values are never left out here: SerialLane needs every one of them to compute the
// increase of the counters.
void BatchReader::add_sample(const OrderedRecord& record, Batch& batch) {
  const SampleLayout& event = layout_of_event(record.event);
  const auto cpumode = static_cast<std::uint8_t>(record.view.misc & abi::kCpumodeMask);
  if (options_->leaves_out_guests && is_guest(cpumode) && !event.has_values) return;
  const auto [pid, tid] = pid_and_tid(record, event);
  const bool is_outside = pid == 0 && event.pid_tid_offset != 0 && !keeps_pid_zero_ && is_of_outside(record);
  const KnownThread& thread = is_outside ? outside_ : threads_.find_thread(pid, tid, spaces_);
  const std::string_view comm = thread.comm();
  if (!event.has_values && !options_->filter->accepts_comm(comm)) return;
  BatchRecord& item = add_record(record, batch);
  item.is_sample = true;
  set_thread(item, thread);
  item.space = &space_of(pid);
  if (is_outside) ++of_outside_;
}

// Whether a sample with pid 0 was taken in a user process. An idle task has no user code: no user ip, call
// chain or registers.
bool BatchReader::is_of_outside(const OrderedRecord& record) {
  const auto cpumode = static_cast<std::uint8_t>(record.view.misc & abi::kCpumodeMask);
  const format::EventAttr& attr = capture_->events()[record.event].attr;
  bool is_outside = cpumode == abi::kCpumodeUser;
  constexpr std::uint64_t kStacks = abi::kSampleCallchain | abi::kSampleRegsUser;
  if (cpumode == abi::kCpumodeKernel && (attr.sample_type & kStacks) != 0) {
    const format::Sample* const sample = outside_parser_.parse(record.view, attr);
    if (sample == nullptr) return false;
    is_outside = sample->user_registers.abi != 0;
    for (std::size_t i = 0; i < sample->callchain.size() && !is_outside; ++i)
      is_outside = sample->callchain[i] == abi::kContextUser;
  }
  if (is_outside) note_outside();
  return is_outside;
}

// Without user code, a sample with pid 0 may be of an idle task or of a process outside.
void BatchReader::note_outside() {
  if (std::exchange(has_outside_, true)) return;
  spaces_.name_tid_zero("[idle or outside]");
  threads_.apply({.kernel = false, .renamed = 0, .forked = {}}, spaces_);
}

void BatchReader::add_other(const OrderedRecord& record, const format::Record& parsed,
                            const format::EventAttr& attr, Batch& batch) {
  SubjectVisitor::PidTid subject = std::visit(SubjectVisitor{}, parsed);
  if (!subject) {
    const format::SampleId id =
        attr.has(abi::kSampleIdAll) ? format::parse_sample_id(record.view, attr) : format::SampleId();
    subject = std::pair(id.pid, id.tid);
  }
  BatchRecord& item = add_record(record, batch);
  if (subject->second == ~0U) return;
  set_thread(item, threads_.find_thread(subject->first, subject->second, spaces_));
}

// A loss may be recorded twice: by the kernel when the ring has room again (LOST), and by the recorder at the
// end from the events' counters (LOST_SAMPLES). The larger of the two sums is reported. Of several files of a
// recording, the first LOST records may report losses that the file before has counted.
void BatchReader::count_losses(const format::Record& record) {
  if (const auto* lost = std::get_if<format::LostSamplesRecord>(&record)) lost_samples_ += lost->lost;
  if (const auto* lost = std::get_if<format::LostRecord>(&record)) lost_records_ += lost->lost;
}

// In a pipe, the section that says where and when events were lost comes after the LOST records.
void BatchReader::report_losses() {
  if (const std::uint64_t outside = of_outside_ - std::exchange(reported_outside_, of_outside_); outside > 0)
    diagnostics_->add_finding(
        Damage::Outside, format::Diagnostics::kNoOffset,
        "recorded in a pid namespace, processes outside of it all have pid 0, and their code has no names; "
        "record on the host, or in a container with its pid namespace (docker: --pid=host)",
        outside);
  const std::uint64_t before = capture_->features().environment.losses.counted_before;
  const std::uint64_t all = std::max(lost_records_ - std::min(lost_records_, before), lost_samples_);
  const std::uint64_t more = all - std::exchange(reported_losses_, all);
  if (more == 0) return;
  const std::string where = format::where_and_when_lost(capture_->features().environment.losses);
  diagnostics_->add_finding(Damage::Lost, format::Diagnostics::kNoOffset,
                            "events that are not in the capture" + (where.empty() ? "" : ": " + where), more);
}

void BatchReader::end_replay() {
  threads_.end_lookups();
  spaces_.end_replay();
}

}  // namespace tacho::report
