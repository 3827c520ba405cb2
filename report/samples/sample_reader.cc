#include "report/samples/sample_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "format/container/loss_text.h"
#include "report/samples/counter_values.h"
#include "report/samples/known_threads.h"
#include "report/samples/lbr_stack.h"
#include "report/samples/leaf_caller.h"
#include "report/samples/payload_stack.h"
#include "report/samples/record_effects.h"
#include "report/samples/records_ahead.h"
#include "report/samples/samples_ahead.h"
#include "report/samples/stack_table.h"
#include "symbolize/unwind/unwind.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Damage;
using format::RecordView;
using Flow = Sink::Flow;

// Whether the sample's own place is the first of its call chain, as nearly always: then it need not be looked
// up.
bool begins_stack(const format::Sample& sample, const Stack* stack, std::uint8_t cpumode) {
  if (stack == nullptr || stack->frames.empty() || sample.callchain.size() < 2) return false;
  const std::uint64_t mark = sample.callchain[0];
  const bool is_same_mode = (mark == abi::kContextKernel && cpumode == abi::kCpumodeKernel) ||
                            (mark == abi::kContextUser && cpumode == abi::kCpumodeUser);
  return is_same_mode && sample.callchain[1] == sample.ip;
}

bool is_guest(std::uint8_t cpumode) {
  return cpumode == abi::kCpumodeGuestKernel || cpumode == abi::kCpumodeGuestUser;
}

// What jitdumps tell is in the time of CLOCK_MONOTONIC; as perf, ask all events to be.
symbolize::JitClock clock_of(const format::EventSet& events) {
  constexpr std::int32_t kMonotonic = 1;
  const bool is_monotonic = std::ranges::all_of(events, [](const format::Event& event) {
    return event.attr.has(abi::kUseClockid) && event.attr.clockid == kMonotonic;
  });
  return is_monotonic ? symbolize::JitClock::Monotonic : symbolize::JitClock::Other;
}

}  // namespace

struct SampleReader::State : public PlaceFinder {
  State(format::CaptureReader reader, const symbolize::SymbolOptions& symbols, SharedSpaces& shared,
        format::Diagnostics& read_here, format::Diagnostics& replayed_here)
      : capture(std::move(reader)),
        spaces(&shared),
        records(capture, read_here),
        diagnostics(&replayed_here),
        unwinder(symbols, capture.features(), shared.spaces()),
        payload_stacks(capture.features()) {
    if (symbols.callers == symbolize::Callers::ByCall) stacks.tell_callers();
  }

  format::CaptureReader capture;
  SharedSpaces* spaces;
  OrderedRecords records;  // belongs to whichever thread reads, as what it found does
  format::Diagnostics* diagnostics;
  symbolize::Unwinder unwinder;
  PayloadStacks payload_stacks;
  CgroupNames cgroups;
  SamplesAhead ahead;
  PlaceTable place_table;
  StackTable stacks{place_table};
  LbrStack lbr_stack;
  LeafCaller leaf_caller;
  Threads threads;
  CounterValues counters;
  // Of a pipe: the sample at which somebody stopped who only wanted the head. It comes again.
  std::optional<OrderedRecord> again;
  bool is_given_again = false;
  std::vector<CounterValues::Moved> moved;  // scratch: of the sample at hand
  std::size_t build_ids_seen = 0;
  std::uint64_t lost_samples = 0, lost_records = 0, told_losses = 0;

  // Of the read() that runs.
  const SampleOptions* options = nullptr;
  EventFilter taken_events;  // of the filter: values of groups
  NamesOf names_of;
  Outlet* outlet = nullptr;
  bool is_pipe = false;
  format::Sample plain;           // the sample at hand, of which no more is set than SampleStart has
  PlaceFinder* places = nullptr;  // this, for an outlet that needs it

  const format::EventSet& events() const { return capture.events(); }
  const Location& find(const ResolvedSample& sample, std::uint64_t address) override;
  const Location& find_in(const ResolvedSample& sample, std::uint64_t address, std::uint8_t cpumode) override;
  const Location& locate(std::uint32_t pid, std::uint64_t ip, std::uint8_t cpumode);
  std::uint32_t place_of(const format::Sample& sample, std::uint8_t cpumode);

  void take_build_ids();
  void apply(const format::Record& record, std::uint16_t misc);
  void count_losses(const format::Record& record);
  void tell_losses();

  Flow read_from(RecordFeed& feed);
  Flow take(const OrderedRecord& record);
  void take_user_record(const RecordView& view);
  const format::Sample* sample_of(const OrderedRecord& record, const format::EventAttr& attr);
  Flow deliver_sample(const OrderedRecord& record);
  bool condition_holds(const ResolvedSample& sample, bool has_values);
  std::optional<format::U64Array> payload_chain(const ResolvedSample& resolved);
  std::optional<format::U64Array> lbr_chain(const format::Sample& sample, const format::EventAttr& attr);
  const Stack& chain_stack(const format::Sample& sample, const format::EventAttr& attr, std::endian order);
  void add_places(ResolvedSample& resolved, const format::EventAttr& attr);
  void take_values(const format::Sample& sample, const format::EventAttr& attr);
  Flow deliver_values(ResolvedSample& resolved);
  Flow deliver_other(const RecordView& view, std::size_t event);
};

const Location& SampleReader::State::locate(std::uint32_t pid, std::uint64_t ip, std::uint8_t cpumode) {
  return place_table.locations()[place_table.find(spaces->spaces(), pid, ip, cpumode)];
}

// Of the sample itself.
std::uint32_t SampleReader::State::place_of(const format::Sample& sample, std::uint8_t cpumode) {
  const bool is_named = names_of.ask && !names_of.of_chains;  // with these nobody asks for its name
  return is_named ? place_table.find_function(spaces->spaces(), sample.pid, sample.ip, cpumode)
                  : place_table.find(spaces->spaces(), sample.pid, sample.ip, cpumode);
}

const Location& SampleReader::State::find(const ResolvedSample& sample, std::uint64_t address) {
  const auto cpumode = static_cast<std::uint8_t>(sample.raw->misc & abi::kCpumodeMask);
  const Location& location = locate(sample.pid(), address, cpumode);
  // The kernel touches a process's memory as well: then the address itself tells whose it is.
  const auto by_address = static_cast<std::uint8_t>(
      static_cast<std::int64_t>(address) < 0 ? abi::kCpumodeKernel : abi::kCpumodeUser);
  if (location.mapping != nullptr || by_address == cpumode) return location;
  return locate(sample.pid(), address, by_address);
}

const Location& SampleReader::State::find_in(const ResolvedSample& sample, std::uint64_t address,
                                             std::uint8_t cpumode) {
  return locate(sample.pid(), address, cpumode);
}

void SampleReader::State::take_build_ids() {
  const auto& entries = capture.features().environment.build_ids;
  for (; build_ids_seen < entries.size(); ++build_ids_seen)
    spaces->add_build_id(entries[build_ids_seen], *outlet);
}

void SampleReader::State::apply(const format::Record& record, std::uint16_t misc) {
  const Change change = spaces->apply(record, misc, clock_of(events()), *outlet);
  if (change.kernel) {
    place_table.kernel_changed();
    stacks.kernel_changed();
  }
  if (change.pid) {
    place_table.mappings_changed(*change.pid);
    stacks.mappings_changed(*change.pid);
  }
  if (change.parent) place_table.mappings_changed(*change.parent);
  threads.apply(change, spaces->spaces());
  if (const auto* const cgroup = std::get_if<format::CgroupRecord>(&record))
    cgroups.add(cgroup->id, cgroup->path);
  count_losses(record);
}

// The same losses may be told twice: by the kernel in a ring as soon as there is room again (LOST), and by
// the recorder at the end, from the events' counters (LOST_SAMPLES). What is told is the larger sum of the
// two.
void SampleReader::State::count_losses(const format::Record& record) {
  if (const auto* lost = std::get_if<format::LostSamplesRecord>(&record)) lost_samples += lost->lost;
  if (const auto* lost = std::get_if<format::LostRecord>(&record)) lost_records += lost->lost;
}

// In the end: a pipe says behind these records where and when it was.
void SampleReader::State::tell_losses() {
  const std::uint64_t all = std::max(lost_records, lost_samples);
  const std::uint64_t more = all - std::exchange(told_losses, all);
  if (more == 0) return;
  const std::string where = format::where_and_when_lost(capture.features().environment.losses);
  diagnostics->add(Damage::Lost, format::Diagnostics::kNoOffset,
                   "events that are not in the capture" + (where.empty() ? "" : ": " + where), more);
}

Flow SampleReader::State::take(const OrderedRecord& record) {
  // Of a file they all stand in the header; a pipe tells more of them while it is read.
  if (is_pipe) take_build_ids();
  if (record.view.type >= abi::kRecordUserStart) {
    take_user_record(record.view);
    return Flow::GoOn;
  }
  if (record.time != 0 && spaces->has_due_code(record.time)) {
    while (const auto mapping = spaces->due_code(record.time)) apply(*mapping, abi::kCpumodeUser);
  }
  return record.view.type == abi::kRecordSample ? deliver_sample(record)
                                                : deliver_other(record.view, record.event);
}

void SampleReader::State::take_user_record(const RecordView& view) {
  if (view.type != abi::kRecordBuildId || events().empty()) return;
  const auto record = format::parse_record(view, events()[0].attr);
  if (!record) return;
  if (const auto* entry = std::get_if<format::BuildIdRecord>(&*record))
    spaces->add_build_id({entry->pid, entry->misc, entry->build_id, std::string(entry->filename)}, *outlet);
}

// Null when the record is shorter than its fields say.
const format::Sample* SampleReader::State::sample_of(const OrderedRecord& record,
                                                     const format::EventAttr& attr) {
  if (record.start != nullptr) {
    record.start->copy_to(plain);
    plain.time = record.time;
    return &plain;
  }
  const format::Sample* const sample = ahead.parse(record.view, attr);
  if (sample == nullptr) {
    diagnostics->add(Damage::BadRecord, record.view.offset, "a sample that is shorter than its fields");
  } else if (sample->unread != 0) {
    diagnostics->add(Damage::BadRecord, record.view.offset, "a sample with bytes behind its last field");
  }
  return sample;
}

Flow SampleReader::State::deliver_sample(const OrderedRecord& record) {
  const std::size_t event = record.event;
  const format::EventAttr& attr = events()[event].attr;
  const format::Sample* const sample = sample_of(record, attr);
  if (sample == nullptr) return Flow::GoOn;
  const bool has_values = attr.samples(abi::kSampleRead);
  if (has_values && !is_given_again) take_values(*sample, attr);
  if (options->leaves_out_guests && is_guest(sample->misc & abi::kCpumodeMask)) return Flow::GoOn;
  if (has_values && (moved.empty() || !options->filter.accepts_start(*sample))) return Flow::GoOn;
  const KnownThread& thread = threads.find(sample->pid, sample->tid, spaces->spaces());
  if (!options->filter.accepts_comm(threads.comm(thread))) return Flow::GoOn;

  ResolvedSample resolved;
  resolved.raw = sample;
  resolved.record = &record.view;
  resolved.block = record.block;
  resolved.events = &events();
  resolved.event_index = resolved.record_event = event;
  resolved.period = sample->period;
  resolved.thread = &thread.shown;
  resolved.comm = threads.comm(thread);
  resolved.order = record.view.order;
  resolved.places = places;
  resolved.cgroups = &cgroups;
  if (!condition_holds(resolved, has_values)) return Flow::GoOn;
  add_places(resolved, attr);
  return has_values ? deliver_values(resolved) : outlet->on_sample(resolved);
}

// What --where asks for, as far as no names are asked for. Each value of a group is a sample of its own, of
// its own event and period: those that are refused go.
bool SampleReader::State::condition_holds(const ResolvedSample& sample, bool has_values) {
  SampleCondition* const condition = options->filter.condition.get();
  if (condition == nullptr || condition->asks_for_names()) return true;
  if (!has_values) return condition->holds(sample, nullptr);
  ResolvedSample one_value = sample;
  std::erase_if(moved, [&](const CounterValues::Moved& one) {
    one_value.event_index = one.event;
    one_value.period = one.by;
    return !condition->holds(one_value, nullptr);
  });
  return !moved.empty();
}

std::optional<format::U64Array> SampleReader::State::payload_chain(const ResolvedSample& resolved) {
  if (!options->wants_stacks || !options->wants_payload_stacks || !resolved.event().attr.is_bpf_output())
    return std::nullopt;
  return payload_stacks.chain_of(resolved.event(), resolved.event_index, *resolved.raw, resolved.order);
}

std::optional<format::U64Array> SampleReader::State::lbr_chain(const format::Sample& sample,
                                                               const format::EventAttr& attr) {
  if (!options->wants_stacks || !attr.samples(abi::kSampleCallchain)) return std::nullopt;
  return lbr_stack.chain_of(sample, attr, options->max_stack);
}

const Stack& SampleReader::State::chain_stack(const format::Sample& sample, const format::EventAttr& attr,
                                              std::endian order) {
  if (symbolize::Unwinder::can_unwind(attr)) {
    const auto unwound = unwinder.unwind(sample, options->max_stack, order);
    return stacks.stack_of(spaces->spaces(), sample, unwound, options->max_stack, ahead.given());
  }
  if (const auto chain = leaf_caller.chain_of(sample, attr, unwinder, order)) {
    format::Sample with_chain = sample;
    with_chain.callchain = *chain;
    return stacks.stack_of(spaces->spaces(), with_chain, {},
                           options->max_stack + 1);  // perf counts those recorded
  }
  return stacks.stack_of(spaces->spaces(), sample, {}, options->max_stack, ahead.given());
}

void SampleReader::State::add_places(ResolvedSample& resolved, const format::EventAttr& attr) {
  const format::Sample& sample = *resolved.raw;
  bool is_first = false;  // of the stack: the sample's own place
  const auto cpumode = static_cast<std::uint8_t>(sample.misc & abi::kCpumodeMask);
  if (const auto chain = payload_chain(resolved)) {
    format::Sample with_chain = sample;
    with_chain.callchain = *chain;
    resolved.stack = &stacks.stack_of(spaces->spaces(), with_chain, {}, options->max_stack);
    resolved.has_payload_stack = true;
    is_first = !resolved.stack->frames.empty();
  } else if (const auto calls = lbr_chain(sample, attr)) {
    format::Sample with_chain = sample;
    with_chain.callchain = *calls;
    resolved.stack = &stacks.stack_of(spaces->spaces(), with_chain, {}, calls->size());
    is_first = begins_stack(with_chain, resolved.stack, cpumode);
  } else if (options->wants_stacks && attr.samples(abi::kSampleCallchain)) {
    resolved.stack = &chain_stack(sample, attr, resolved.order);
    const bool may_lack_first = options->keeps_callers && sample.callchain.size() > options->max_stack;
    is_first = !may_lack_first && begins_stack(sample, resolved.stack, cpumode);
  }
  if (resolved.stack != nullptr) resolved.stack_memory = stacks.memory();
  resolved.place = is_first ? resolved.stack->frames[0] : place_of(sample, cpumode);
  resolved.location = &place_table.locations()[resolved.place];
}

// What the sample's counters moved by, of the events that are wanted, into `moved`.
void SampleReader::State::take_values(const format::Sample& sample, const format::EventAttr& attr) {
  const std::size_t unknown = counters.take(sample, attr, events(), moved);
  if (unknown > 0) {
    diagnostics->add(Damage::UnknownEvent, format::Diagnostics::kNoOffset, "a value in a group's sample",
                     unknown);
  }
  std::erase_if(moved,
                [this](const CounterValues::Moved& one) { return !taken_events.takes(events(), one.event); });
}

// A sample with counter values stands for one sample of each member of its group, whose period is what the
// counter grew by since the last time; members that did not move are left out.
Flow SampleReader::State::deliver_values(ResolvedSample& resolved) {
  for (const CounterValues::Moved& one : moved) {
    resolved.event_index = one.event;
    resolved.period = one.by;
    if (outlet->on_sample(resolved) == Flow::Stop) return Flow::Stop;
  }
  return Flow::GoOn;
}

Flow SampleReader::State::deliver_other(const RecordView& view, std::size_t event) {
  const format::EventAttr& attr = events()[event].attr;
  auto record = format::parse_record(view, attr);
  if (!record) {
    diagnostics->add(Damage::BadRecord, view.offset, record.error().what);
    return Flow::GoOn;
  }
  const bool is_exit = view.type == abi::kRecordExit;
  if (!is_exit) apply(*record, view.misc);

  if (outlet->needs() == Sink::Needs::Names) {  // nobody is told, so nobody is looked up
    if (is_exit) apply(*record, view.misc);
    return Flow::GoOn;
  }
  OtherEvent other;
  other.view = &view;
  other.record = &*record;
  other.event_index = event;
  if (attr.has(abi::kSampleIdAll)) other.id = format::parse_sample_id(view, attr);
  SubjectOf::Pair subject = std::visit(SubjectOf{}, *record);
  if (!subject) subject = std::pair(other.id.pid, other.id.tid);
  if (subject->second != ~0U) {
    const KnownThread& thread = threads.find(subject->first, subject->second, spaces->spaces());
    other.thread = &thread.shown;
    other.comm = threads.comm(thread);
  }
  const Flow flow = outlet->on_other(other);
  if (is_exit) apply(*record, view.misc);
  return flow;
}

Flow SampleReader::State::read_from(RecordFeed& feed) {
  take_build_ids();
  OrderedRecord record;
  for (;;) {
    is_given_again = again.has_value();
    if (is_given_again) record = *std::exchange(again, std::nullopt);
    const RecordFeed::Step step = is_given_again ? RecordFeed::Step::Record : feed.next(record);
    if (step == RecordFeed::Step::End) return Flow::GoOn;
    if (step == RecordFeed::Step::Record && !is_given_again) ahead.record_given(feed, events(), stacks);
    const Flow flow =
        step == RecordFeed::Step::Progress ? outlet->on_progress(feed.bytes_read()) : take(record);
    if (flow != Flow::Stop) continue;
    const bool is_sample = step == RecordFeed::Step::Record && record.view.type == abi::kRecordSample;
    if (is_pipe && is_sample) again = record;
    return flow;
  }
}

SampleReader::SampleReader(format::CaptureReader capture, const symbolize::SymbolOptions& symbols,
                           SharedSpaces& spaces, format::Diagnostics& found_by_reading,
                           format::Diagnostics& found_by_replaying)
    : state_(std::make_unique<State>(std::move(capture), symbols, spaces, found_by_reading,
                                     found_by_replaying)) {}
SampleReader::SampleReader(SampleReader&&) noexcept = default;
SampleReader& SampleReader::operator=(SampleReader&&) noexcept = default;
SampleReader::~SampleReader() = default;

const format::CaptureReader& SampleReader::capture() const { return state_->capture; }
const StableArray<Location>& SampleReader::locations() const { return state_->place_table.locations(); }
const CgroupNames& SampleReader::cgroups() const { return state_->cgroups; }

void SampleReader::read(const SampleOptions& options, Outlet& outlet, NamesOf names_of) {
  state_->options = &options;
  state_->names_of = std::move(names_of);
  state_->place_table.tell_by_functions(&state_->names_of);
  if (state_->names_of.of_chains) {
    state_->stacks.tell_by_frames();
  } else if (outlet.stacks() == Sink::Stacks::Passing) {
    state_->stacks.let_pass();
  }
  if (options.keeps_addresses) state_->place_table.keep_addresses();
  if (options.keeps_callers) state_->stacks.keep_callers();
  state_->outlet = &outlet;
  const bool finds_places = outlet.needs() == Sink::Needs::Everything || options.condition_asks_for_names;
  state_->places = finds_places ? state_.get() : nullptr;
  OrderedRecords& records = state_->records;
  records.use(options.filter);
  state_->taken_events = EventFilter(options.filter.events);
  // A pipe's header grows while it is read, so its records are read in step.
  auto header = capture().fixed_header();
  state_->is_pipe = header == nullptr;
  const bool reads_start =
      outlet.reads() != Sink::Reads::All && !options.wants_stacks && options.filter.condition == nullptr;
  std::unique_ptr<RecordsAhead> ahead;
  if (header != nullptr && std::thread::hardware_concurrency() > 1 && !capture().follows()) {
    ahead = RecordsAhead::start(
        records, std::move(header),
        reads_start ? RecordsAhead::Samples::TakenApart : RecordsAhead::Samples::AsTheyAre);
  }
  RecordFeed& feed = ahead ? static_cast<RecordFeed&>(*ahead) : records;
  // What a pipe tells at its end counts as well.
  const bool is_at_end = state_->read_from(feed) == Flow::GoOn;
  if (is_at_end && state_->is_pipe) state_->take_build_ids();
  if (is_at_end || !state_->is_pipe) state_->tell_losses();
  if (is_at_end) {
    state_->threads.end_lookups();
    state_->spaces->end_replay();
  }
  state_->place_table.end_lookups();
  state_->stacks.end_lookups();
}

void SampleReader::settle_names() { state_->threads.settle_names(); }
std::uint64_t SampleReader::lost_samples() const { return state_->lost_samples; }
std::uint64_t SampleReader::not_unwound() const { return state_->unwinder.other_machines(); }
std::vector<symbolize::ModuleLack> SampleReader::ended_chains() const {
  return state_->unwinder.ended_chains();
}

}  // namespace tacho::report
