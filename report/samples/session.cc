#include "report/samples/session.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "format/large_pages.h"
#include "format/time_order.h"
#include "report/samples/record_effects.h"
#include "report/samples/sample_queue.h"
#include "report/samples/stack_table.h"
#include "symbolize/elf/module_code.h"
#include "symbolize/unwind/unwind.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Damage;

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

struct Session::State {
  class Forward;
  SessionOptions options;
  std::unique_ptr<format::Diagnostics> diagnostics = std::make_unique<format::Diagnostics>();
  std::optional<format::CaptureReader> reader;
  // The events as they were before one thread read ahead: a record that names one changes the reader's own.
  std::optional<format::EventSet> shown_events;
  symbolize::AddressSpaces spaces;
  std::optional<symbolize::JitCode> jit;
  std::optional<symbolize::Symbolizer> symbolizer;
  std::optional<symbolize::Unwinder> unwinder;
  std::optional<symbolize::ModuleCode> code;

  // What is above is looked at by the thread that shows samples too; what is below is written all the time,
  // by the one that reads.
  alignas(format::kApart) format::TimeOrder order;
  format::SampleParser parser;
  StackTable stacks;

  std::unordered_set<std::string> comms;  // the bytes of every name
  std::deque<Thread> threads;
  std::unordered_map<std::uint32_t, Thread*> thread_by_tid;   // the one alive, or last alive
  std::array<Thread*, 256> recent_threads{};                  // some of them, by the low bits of the tid
  std::unordered_map<std::uint64_t, std::uint64_t> counters;  // group reads: id -> value last seen
  std::size_t build_ids_seen = 0;

  // The record whose samples are being given out.
  const format::RecordView* given_record = nullptr;
  std::size_t given_event = 0;
  const format::BlockRef* given_block = nullptr;  // what it lies in

  std::uint64_t lost_samples = 0;

  std::string_view keep_comm(std::string_view comm) { return *comms.emplace(comm).first; }
  Thread& thread_of(std::uint32_t pid, std::uint32_t tid);
  void take_build_ids();
  void apply(const format::Record& record, std::uint16_t misc, Sink& sink);
  void apply_code_made_until(std::uint64_t time, Sink& sink);

  void read_all(Sink& sink);
  Sink::Flow take(const format::RecordView& view, Sink& sink);
  Sink::Flow drain(Sink& sink);
  Sink::Flow deliver(const format::RecordView& view, std::size_t event_index, Sink& sink);
  Sink::Flow deliver_sample(const format::RecordView& view, std::size_t event_index, Sink& sink);
  Sink::Flow deliver_values(ResolvedSample& resolved, Sink& sink);
  Sink::Flow deliver_other(const format::RecordView& view, std::size_t event_index, Sink& sink);
};

// perf keeps a thread's name from its last COMM or FORK on, whatever exits in between.
Thread& Session::State::thread_of(std::uint32_t pid, std::uint32_t tid) {
  Thread*& recent = recent_threads[tid % recent_threads.size()];
  if (recent != nullptr && recent->tid == tid && recent->pid == pid) return *recent;
  Thread*& thread = thread_by_tid[tid];
  if (thread == nullptr || thread->pid != pid) {
    threads.push_back({pid, tid, keep_comm(spaces.comm(pid, tid))});
    thread = &threads.back();
  }
  recent = thread;
  return *thread;
}

void Session::State::take_build_ids() {
  const auto& entries = reader->features().environment.build_ids;
  for (; build_ids_seen < entries.size(); ++build_ids_seen) spaces.add_build_id(entries[build_ids_seen]);
}

// Functions that a JIT compiler had loaded by then.
void Session::State::apply_code_made_until(std::uint64_t time, Sink& sink) {
  while (const auto mapping = jit->due(time)) apply(*mapping, abi::kCpumodeUser, sink);
}

void Session::State::apply(const format::Record& record, std::uint16_t misc, Sink& sink) {
  const auto* const mmap = std::get_if<format::MmapRecord>(&record);
  if (mmap != nullptr) {
    if (symbolize::JitCode::is_mark(*mmap)) sink.before_shared_change();
    if (jit->takes(*mmap, clock_of(reader->events()))) return;
  }
  const Change change = std::visit(ChangeOf{misc}, record);
  if (change.kernel) sink.before_shared_change();
  spaces.apply(record, misc);
  if (change.kernel) stacks.kernel_changed();
  if (change.pid) stacks.mappings_changed(*change.pid);
  if (change.born) {
    thread_by_tid.erase(*change.born);
    recent_threads[*change.born % recent_threads.size()] = nullptr;
  }
  if (change.renamed) {
    if (const auto row = thread_by_tid.find(*change.renamed); row != thread_by_tid.end()) {
      row->second->comm = keep_comm(spaces.comm(row->second->pid, row->second->tid));
    }
  }
  if (const auto* lost = std::get_if<format::LostSamplesRecord>(&record)) {
    lost_samples += lost->lost;
    if (lost->lost > 0) {
      diagnostics->add(Damage::Lost, format::Diagnostics::kNoOffset, "samples that found no room in the ring",
                       lost->lost);
    }
  }
  if (const auto* lost = std::get_if<format::LostRecord>(&record)) {
    diagnostics->add(Damage::Lost, format::Diagnostics::kNoOffset, "records that found no room in the ring",
                     lost->lost);
  }
}

// Records from 64 up act at once, in file position; kernel records wait for their turn in time, those without
// a time act at once too.
Sink::Flow Session::State::take(const format::RecordView& view, Sink& sink) {
  if (view.type == abi::kRecordFinishedRound) {
    order.finished_round();
    return drain(sink);
  }
  take_build_ids();
  if (view.type >= abi::kRecordUserStart) {
    if (view.type != abi::kRecordBuildId || reader->events().empty()) return Sink::Flow::GoOn;
    auto record = format::parse_record(view, reader->events()[0].attr);
    if (!record) return Sink::Flow::GoOn;
    if (const auto* entry = std::get_if<format::BuildIdRecord>(&*record)) {
      sink.before_shared_change();
      spaces.add_build_id({entry->pid, entry->misc, entry->build_id, std::string(entry->filename)});
    }
    return Sink::Flow::GoOn;
  }
  const auto event = reader->events().event_of(view);
  if (!event) {
    diagnostics->add(Damage::UnknownEvent, view.offset, "its id is in no event's list");
    return Sink::Flow::GoOn;
  }
  const auto time = format::record_time(view, reader->events()[*event].attr);
  if (!time || *time == 0 || *time == ~std::uint64_t{0}) {
    given_block = &reader->block();
    return deliver(view, *event, sink);
  }
  order.push(view, *time, reader->block(), static_cast<std::uint32_t>(*event));
  return Sink::Flow::GoOn;
}

Sink::Flow Session::State::drain(Sink& sink) {
  while (const auto item = order.pop()) {
    if (jit->is_due(item->time)) apply_code_made_until(item->time, sink);
    given_block = item->block;
    if (deliver(item->record, item->event, sink) == Sink::Flow::Stop) return Sink::Flow::Stop;
  }
  return Sink::Flow::GoOn;
}

Sink::Flow Session::State::deliver(const format::RecordView& view, std::size_t event_index, Sink& sink) {
  if (view.type == abi::kRecordSample) return deliver_sample(view, event_index, sink);
  return deliver_other(view, event_index, sink);
}

Sink::Flow Session::State::deliver_sample(const format::RecordView& view, std::size_t event_index,
                                          Sink& sink) {
  const format::EventAttr& attr = reader->events()[event_index].attr;
  given_record = &view;
  given_event = event_index;
  const format::Sample* const sample = parser.parse(view, attr);
  if (sample == nullptr) {
    diagnostics->add(Damage::BadRecord, view.offset, "a sample that is shorter than its fields");
    return Sink::Flow::GoOn;
  }
  if (sample->unread != 0) {
    diagnostics->add(Damage::BadRecord, view.offset, "a sample with bytes behind its last field");
  }
  const auto cpumode = static_cast<std::uint8_t>(sample->misc & abi::kCpumodeMask);
  if (is_guest(cpumode)) return Sink::Flow::GoOn;  // another machine's; perf leaves them out as well
  const Thread& thread = thread_of(sample->pid, sample->tid);

  ResolvedSample resolved;
  resolved.raw = sample;
  resolved.events = &reader->events();
  resolved.event_index = event_index;
  resolved.period = sample->period;
  resolved.thread = &thread;
  resolved.comm = thread.comm;
  resolved.order = view.order;
  if (options.wants_stacks && attr.samples(abi::kSampleCallchain)) {
    std::span<const std::uint64_t> unwound;
    if (symbolize::Unwinder::can_unwind(attr))
      unwound = unwinder->unwind(*sample, options.max_stack, view.order);
    resolved.stack = &stacks.stack_of(spaces, *sample, unwound, options.max_stack);
  }
  resolved.location = begins_stack(*sample, resolved.stack, cpumode)
                          ? &stacks.location(resolved.stack->frames[0])
                          : &stacks.locate(spaces, sample->pid, sample->ip, cpumode);
  if (attr.samples(abi::kSampleRead)) return deliver_values(resolved, sink);
  return options.filter.accepts(resolved) ? sink.on_sample(resolved) : Sink::Flow::GoOn;
}

// A sample with counter values stands for one sample of each member of its group, whose period is what the
// counter grew by since the last time; members that did not move are left out.
Sink::Flow Session::State::deliver_values(ResolvedSample& resolved, Sink& sink) {
  const format::ReadValues& read = resolved.raw->read;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const auto entry = read.entry(i);
    const auto event = reader->events().find_id(entry.id);
    std::uint64_t& last = counters[entry.id];
    resolved.period = entry.value - last;
    last = entry.value;
    if (!event) {
      diagnostics->add(Damage::UnknownEvent, format::Diagnostics::kNoOffset, "a value in a group's sample");
      continue;
    }
    if (resolved.period == 0) continue;
    resolved.event_index = *event;
    if (options.filter.accepts(resolved) && sink.on_sample(resolved) == Sink::Flow::Stop)
      return Sink::Flow::Stop;
  }
  return Sink::Flow::GoOn;
}

Sink::Flow Session::State::deliver_other(const format::RecordView& view, std::size_t event_index,
                                         Sink& sink) {
  const format::EventAttr& attr = reader->events()[event_index].attr;
  auto record = format::parse_record(view, attr);
  if (!record) {
    diagnostics->add(Damage::BadRecord, view.offset, record.error().what);
    return Sink::Flow::GoOn;
  }
  const bool is_exit = view.type == abi::kRecordExit;
  if (!is_exit) apply(*record, view.misc, sink);

  OtherEvent other;
  other.view = &view;
  other.record = &*record;
  other.event_index = event_index;
  if (attr.has(abi::kSampleIdAll)) other.id = format::parse_sample_id(view, attr);
  if (const auto subject = std::visit(SubjectOf{}, *record)) {
    if (subject->second != ~0U) other.thread = &thread_of(subject->first, subject->second);
  } else if (other.id.tid != ~0U) {
    other.thread = &thread_of(other.id.pid, other.id.tid);
  }
  const Sink::Flow flow = sink.on_other(other);
  if (is_exit) apply(*record, view.misc, sink);
  return flow;
}

Result<Session> Session::open(SessionOptions options) {
  auto state = std::make_unique<State>();
  auto reader = format::CaptureReader::open(options.input, *state->diagnostics);
  if (!reader) return std::move(reader.error());
  state->reader.emplace(std::move(*reader));
  auto& symbols = options.symbols;
  std::error_code ignored;
  if (!symbols.symfs.empty() && !std::filesystem::is_directory(symbols.symfs, ignored))
    return use_error("--symfs: " + symbols.symfs + " is no folder");
  if (!symbols.kallsyms.empty() && !std::filesystem::exists(symbols.kallsyms, ignored))
    return use_error("--kallsyms: there is no file " + symbols.kallsyms);
  const char* const home = std::getenv("HOME");
  if (symbols.build_id_dir.empty() && symbols.symfs.empty() && home != nullptr) {
    symbols.build_id_dir = std::string(home) + "/.debug";  // where perf puts what it records
  }
  state->jit.emplace(symbols.jitdump_dir, symbolize::DebugFiles(symbols.symfs));
  state->symbolizer.emplace(options.symbols, state->reader->features(), state->spaces, &*state->jit);
  state->unwinder.emplace(options.symbols, state->reader->features(), state->spaces);
  state->code.emplace(symbolize::DebugFiles(symbols.symfs));
  state->options = std::move(options);
  state->take_build_ids();
  return Session(std::move(state));
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const format::EventSet& Session::events() const {
  return state_->shown_events ? *state_->shown_events : state_->reader->events();
}
const format::Features& Session::features() const { return state_->reader->features(); }
const format::CaptureLayout& Session::layout() const { return state_->reader->layout(); }
format::Diagnostics& Session::diagnostics() { return *state_->diagnostics; }
Filter& Session::filter() { return state_->options.filter; }

void Session::State::read_all(Sink& sink) {
  while (const auto next = reader->next()) {
    if (take(*next, sink) == Sink::Flow::Stop) return;
  }
  order.flush();
  if (drain(sink) == Sink::Flow::Stop) return;
  if (const auto late = order.out_of_order(); late > 0) {
    diagnostics->add(Damage::OutOfOrder, format::Diagnostics::kNoOffset, "", late);
  }
}

// Passes samples on to another thread.
class Session::State::Forward : public Sink {
 public:
  Forward(const State& state, SampleQueue& queue) : state_(&state), queue_(&queue) {}
  ~Forward() override {
    queue_->put(batch_);
    queue_->end();
  }
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;

  Flow on_sample(const ResolvedSample& sample) override {
    const format::Bytes bytes = state_->given_record->bytes;
    const QueuedSample queued{.record = bytes.data(),
                              .size = static_cast<std::uint32_t>(bytes.size()),
                              .location = sample.location->number,
                              .period = sample.period,
                              .thread = sample.thread,
                              .comm = sample.comm,
                              .stack = sample.stack,
                              .event_index = static_cast<std::uint32_t>(sample.event_index),
                              .record_event = static_cast<std::uint32_t>(state_->given_event)};
    batch_.add(queued, *state_->given_block);
    constexpr std::size_t kMostSamples = 1024, kMostBytes = std::size_t{1} << 20;
    if (batch_.samples.size() < kMostSamples && batch_.bytes < kMostBytes) return Flow::GoOn;
    return queue_->put(batch_) ? Flow::GoOn : Flow::Stop;
  }

  // The other thread looks into it for the samples before.
  void before_shared_change() override {
    queue_->put(batch_);
    queue_->wait_until_shown();
  }

 private:
  const State* state_;
  SampleQueue* queue_;
  SampleBatch batch_;
};

// Reading, ordering and telling stacks apart on one thread, names and text on the other: about half each.
void Session::run_ahead(Sink& sink) {
  const format::EventSet& events = state_->shown_events.emplace(state_->reader->events());
  SampleQueue queue;
  const std::jthread reader([this, &queue] {
    State::Forward forward(*state_, queue);
    state_->read_all(forward);
  });
  const std::endian order = layout().order;
  format::SampleParser parser;
  SampleBatch batch;
  while (queue.take(batch)) {
    for (const QueuedSample& queued : batch.samples) {
      const format::RecordView view = format::whole_record({queued.record, queued.size}, order);
      const format::Sample* const sample = parser.parse(view, events[queued.record_event].attr);
      if (sample == nullptr) continue;  // cannot be: it was parsed before
      const ResolvedSample resolved{.raw = sample,
                                    .events = &events,
                                    .event_index = queued.event_index,
                                    .period = queued.period,
                                    .thread = queued.thread,
                                    .comm = queued.comm,
                                    .location = &state_->stacks.location(queued.location),
                                    .stack = queued.stack,
                                    .order = order};
      if (sink.on_sample(resolved) == Sink::Flow::Stop) return queue.stop();
    }
  }
}

// The events and header of a pipe grow while it is read, so it is read in step. So are samples without call
// chains: handing one over costs as much as showing it.
bool Session::may_run_ahead(const Sink& sink) const {
  const bool has_stacks = std::ranges::any_of(
      events(), [](const format::Event& event) { return event.attr.samples(abi::kSampleCallchain); });
  return sink.needs() == Sink::Needs::Names && has_stacks && state_->options.wants_stacks &&
         !layout().is_pipe && std::thread::hardware_concurrency() > 1;
}

void Session::run(Sink& sink) { may_run_ahead(sink) ? run_ahead(sink) : state_->read_all(sink); }

std::span<const symbolize::Frame> Session::frames(const Location& location) {
  const auto origin = location.is_unwound ? symbolize::Origin::Unwound : symbolize::Origin::Chain;
  return state_->symbolizer->resolve(location.mapping, location.ip, location.cpumode, origin);
}

const symbolize::Frame& Session::frame(const Location& location) {
  return state_->symbolizer->resolve(location.mapping, location.ip, location.cpumode).front();
}

const Location& Session::locate(const ResolvedSample& sample, std::uint64_t address) {
  const auto cpumode = static_cast<std::uint8_t>(sample.raw->misc & abi::kCpumodeMask);
  const Location& location = state_->stacks.locate(state_->spaces, sample.pid(), address, cpumode);
  // The kernel touches a process's memory as well: then the address itself tells whose it is.
  const auto by_address = static_cast<std::uint8_t>(
      static_cast<std::int64_t>(address) < 0 ? abi::kCpumodeKernel : abi::kCpumodeUser);
  if (location.mapping != nullptr || by_address == cpumode) return location;
  return state_->stacks.locate(state_->spaces, sample.pid(), address, by_address);
}

const Location& Session::location(std::uint32_t number) const { return state_->stacks.location(number); }

std::span<const symbolize::Frame> Session::kernel_frames(std::uint64_t address) {
  const format::RuntimeAddress ip{address};
  return state_->symbolizer->resolve(state_->spaces.find(~0U, ip, abi::kCpumodeKernel), ip,
                                     abi::kCpumodeKernel);
}

format::Bytes Session::code(const Location& location, std::uint64_t address, std::size_t size) {
  const symbolize::Mapping* const mapping = location.mapping;
  if (mapping == nullptr || address < mapping->start || address >= mapping->end) return {};
  return state_->code->read(*mapping->module, mapping->shown_address({address}), size);
}

bool Session::is_64_bit(const Location& location) {
  return location.mapping != nullptr && state_->code->is_64_bit(*location.mapping->module);
}

Result<std::vector<std::byte>> Session::recorded_file(const std::string& path) const {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 26;  // bytes
  return symbolize::DebugFiles(state_->options.symbols.symfs).read(path, kLargest);
}

std::uint64_t Session::lost_samples() const { return state_->lost_samples; }

void Session::report_missing_symbols() {
  state_->jit->report(*state_->diagnostics);
  state_->symbolizer->report_missing(*state_->diagnostics, state_->unwinder->ended_chains());
}

}  // namespace tacho::report
