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

// Timestamps of jitdumps are CLOCK_MONOTONIC. As in perf they are used only if all events have that clock.
symbolize::JitClock clock_of(const format::EventSet& events) {
  constexpr std::int32_t kMonotonic = 1;
  const bool is_monotonic = std::ranges::all_of(events, [](const format::Event& event) {
    return event.attr.has(abi::kUseClockid) && event.attr.clockid == kMonotonic;
  });
  return is_monotonic ? symbolize::JitClock::Monotonic : symbolize::JitClock::Other;
}

// Whether it changes data that all processes share: kernel mappings or JIT code.
bool changes_names(const format::Record& record, std::uint16_t misc) {
  const auto* const mmap = std::get_if<format::MmapRecord>(&record);
  return (mmap != nullptr && symbolize::JitCode::is_mark(*mmap)) || std::visit(ChangeOf{misc}, record).kernel;
}

}  // namespace

void Batch::clear() {
  items.clear();
  places.clear();
  blocks.clear();
  replaced.clear();
  bytes_read = 0;
  ends_before_change = is_last = false;
}

Batches::Batches(format::CaptureReader& capture, const symbolize::SymbolOptions& symbols,
                 format::Diagnostics& diagnostics)
    : capture_(&capture),
      diagnostics_(&diagnostics),
      records_(capture, diagnostics),
      jit_(symbols.jitdump_dir, symbolize::DebugFiles(symbols.symfs, {}, symbols.pinned), symbols.access) {
  if (!symbols.names_memory_files) spaces_.keep_memory_files();
  jit_.use(capture.features());
}

void Batches::begin(const BatchOptions& options) {
  options_ = &options;
  may_change_ = true;
  records_.use(*options.filter);
  is_pipe_ = capture_->fixed_header() == nullptr;
  add_build_ids();
}

void Batches::fill(Batch& batch) {
  constexpr std::size_t kMostBytes = std::size_t{2} << 20;
  batch.clear();
  batch.first = next_item_;
  std::size_t bytes = 0;
  OrderedRecord record;
  while (batch.items.size() < options_->most_items && bytes < kMostBytes) {
    const bool was_pending = pending_.has_value();
    if (was_pending) record = *std::exchange(pending_, std::nullopt);
    const auto step = was_pending ? OrderedRecords::Step::Record : records_.next(record);
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
    if (apply(record, batch) == Applied::WouldChange) {
      pending_ = record;
      batch.ends_before_change = true;
      break;
    }
    bytes += record.view.bytes.size();
  }
  next_item_ += batch.items.size();
  // This batch and the previous one may point to them.
  batch.replaced = spaces_.take_replaced();
  may_change_ = batch.ends_before_change;
}

void Batches::add_build_ids() {
  const auto& entries = capture_->features().environment.build_ids;
  for (; build_ids_seen_ < entries.size(); ++build_ids_seen_) spaces_.add_build_id(entries[build_ids_seen_]);
}

Batches::Applied Batches::apply(const OrderedRecord& record, Batch& batch) {
  // A file has all build ids in its header, a pipe sends them between other records.
  if (is_pipe_ && build_ids_seen_ < capture_->features().environment.build_ids.size()) {
    if (!may_change(batch)) return Applied::WouldChange;
    add_build_ids();
  }
  if (record.view.type >= abi::kRecordUserStart) return apply_user_record(record.view, batch);
  if (record.time != 0 && jit_.is_due(record.time)) {
    while (const auto mapping = jit_.due(record.time)) replay(*mapping, abi::kCpumodeUser);
  }
  if (record.view.type != abi::kRecordSample) return apply_other(record, batch);
  add_sample(record, batch);
  return Applied::Yes;
}

Batches::Applied Batches::apply_user_record(const RecordView& view, const Batch& batch) {
  if (view.type != abi::kRecordBuildId || capture_->events().empty()) return Applied::Yes;
  const auto record = format::parse_record(view, capture_->events()[0].attr);
  if (!record) return Applied::Yes;
  const auto* const entry = std::get_if<format::BuildIdRecord>(&*record);
  if (entry == nullptr) return Applied::Yes;
  if (!may_change(batch)) return Applied::WouldChange;
  spaces_.add_build_id({entry->pid, entry->misc, entry->build_id, std::string(entry->filename)});
  return Applied::Yes;
}

void Batches::replay(const format::Record& record, std::uint16_t misc) {
  if (const auto* const mmap = std::get_if<format::MmapRecord>(&record);
      mmap == nullptr || !jit_.takes(*mmap, clock_of(capture_->events()))) {
    spaces_.apply(record, misc);
    threads_.apply(std::visit(ChangeOf{misc}, record), spaces_);
    recent_.fill({});
  }
  if (const auto* const cgroup = std::get_if<format::CgroupRecord>(&record))
    cgroups_.add(cgroup->id, cgroup->path);
  count_losses(record);
}

Batches::Applied Batches::apply_other(const OrderedRecord& record, Batch& batch) {
  const format::EventAttr& attr = capture_->events()[record.event].attr;
  const auto parsed = format::parse_record(record.view, attr);
  if (!parsed) {
    diagnostics_->add(Damage::BadRecord, record.view.offset, parsed.error().what);
    return Applied::Yes;
  }
  if (!may_change(batch) && changes_names(*parsed, record.view.misc)) return Applied::WouldChange;
  const bool is_exit = record.view.type == abi::kRecordExit;
  if (!is_exit) replay(*parsed, record.view.misc);
  if (options_->wants_others) add_other(record, *parsed, attr, batch);
  if (is_exit) replay(*parsed, record.view.misc);
  return Applied::Yes;
}

BatchItem& Batches::add(const OrderedRecord& record, Batch& batch) {
  // Records of a few CPUs alternate, so the block is one of the last.
  auto known = std::find(batch.blocks.rbegin(), batch.blocks.rend(), *record.block);
  if (known == batch.blocks.rend()) {
    batch.blocks.push_back(*record.block);
    known = batch.blocks.rbegin();
  }
  BatchItem& item = batch.items.emplace_back();
  item.record = record.view.bytes.data();
  item.size = static_cast<std::uint16_t>(record.view.bytes.size());
  item.offset = record.view.offset;
  item.time = record.time;
  item.event = record.event;
  item.block = static_cast<std::uint16_t>(batch.blocks.rend() - known - 1);
  return item;
}

// Of a sample. The parser checks later whether it is long enough.
std::pair<std::uint32_t, std::uint32_t> Batches::pid_and_tid(const OrderedRecord& record,
                                                             const EventFacts& event) {
  constexpr std::uint32_t kNone = ~0U;
  if (event.pid_at == 0) return {kNone, kNone};
  format::Cursor in(record.view.bytes.subspan(std::min(event.pid_at, record.view.bytes.size())),
                    record.view.order);
  const std::uint32_t pid = in.u32(), tid = in.u32();
  return {pid, tid};
}

// The events of a pipe may grow.
const Batches::EventFacts& Batches::facts_of(std::uint32_t event) {
  for (std::size_t i = facts_.size(); i <= event; ++i) {
    const format::EventAttr& attr = capture_->events()[i].attr;
    constexpr std::uint64_t kBefore = abi::kSampleIdentifier | abi::kSampleIp;
    EventFacts facts{.pid_at = 0, .has_values = attr.samples(abi::kSampleRead)};
    if (attr.samples(abi::kSampleTid))
      facts.pid_at =
          format::kRecordHeaderSize +
          static_cast<std::size_t>(std::popcount(attr.sample_type & kBefore)) * sizeof(std::uint64_t);
    facts_.push_back(facts);
  }
  return facts_[event];
}

const symbolize::SpaceVersion& Batches::space_of(std::uint32_t pid) {
  Recent& recent = recent_[pid % recent_.size()];
  if (recent.space == nullptr || recent.pid != pid) recent = {pid, &spaces_.version(pid)};
  return *recent.space;
}

// Samples with counter values are never left out here: SerialLane needs all of them for the differences.
void Batches::add_sample(const OrderedRecord& record, Batch& batch) {
  const EventFacts& event = facts_of(record.event);
  const auto cpumode = static_cast<std::uint8_t>(record.view.misc & abi::kCpumodeMask);
  if (options_->leaves_out_guests && is_guest(cpumode) && !event.has_values) return;
  const auto [pid, tid] = pid_and_tid(record, event);
  const KnownThread& thread = threads_.find(pid, tid, spaces_);
  const std::string_view comm = threads_.comm(thread);
  if (!event.has_values && !options_->filter->accepts_comm(comm)) return;
  BatchItem& item = add(record, batch);
  item.is_sample = true;
  item.thread = &thread.shown;
  item.comm_begin = comm.data();
  item.comm_size = static_cast<std::uint32_t>(comm.size());
  item.space = &space_of(pid);
}

void Batches::add_other(const OrderedRecord& record, const format::Record& parsed,
                        const format::EventAttr& attr, Batch& batch) {
  SubjectOf::Pair subject = std::visit(SubjectOf{}, parsed);
  if (!subject) {
    const format::SampleId id =
        attr.has(abi::kSampleIdAll) ? format::parse_sample_id(record.view, attr) : format::SampleId();
    subject = std::pair(id.pid, id.tid);
  }
  BatchItem& item = add(record, batch);
  if (subject->second == ~0U) return;
  const KnownThread& thread = threads_.find(subject->first, subject->second, spaces_);
  const std::string_view comm = threads_.comm(thread);
  item.thread = &thread.shown;
  item.comm_begin = comm.data();
  item.comm_size = static_cast<std::uint32_t>(comm.size());
}

// A loss may be recorded twice: by the kernel when the ring has room again (LOST), and by the recorder at the
// end from the events' counters (LOST_SAMPLES). The larger of the two sums is reported.
void Batches::count_losses(const format::Record& record) {
  if (const auto* lost = std::get_if<format::LostSamplesRecord>(&record)) lost_samples_ += lost->lost;
  if (const auto* lost = std::get_if<format::LostRecord>(&record)) lost_records_ += lost->lost;
}

// Of a pipe, the place and time of losses follow these records.
void Batches::report_losses() {
  const std::uint64_t all = std::max(lost_records_, lost_samples_);
  const std::uint64_t more = all - std::exchange(reported_losses_, all);
  if (more == 0) return;
  const std::string where = format::where_and_when_lost(capture_->features().environment.losses);
  diagnostics_->add(Damage::Lost, format::Diagnostics::kNoOffset,
                    "events that are not in the capture" + (where.empty() ? "" : ": " + where), more);
}

void Batches::end_replay() {
  threads_.end_lookups();
  spaces_.end_replay();
}

}  // namespace tacho::report
