#include "report/views/folded/waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "report/decode/event_name.h"
#include "report/perf_text/frame_text.h"
#include "report/query/value_field.h"

namespace tacho::report {
namespace {

constexpr Fields kLineFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso};
constexpr std::string_view kMarker = "-- waker --", kInterrupt = "[irq]";
// Threads that are known at a time; a capture that names more makes them up.
constexpr std::size_t kMostThreads = std::size_t{1} << 20;

// Of prev_state: what the kernel shows as letters. None of them: the thread was put aside while it could run.
constexpr std::int64_t kStates = 0xff, kDead = 0x30, kIdle = 0x80;

// Where the kernel begins to serve an interrupt: what is below was interrupted, and woke nobody.
constexpr std::string_view kInterruptEntries[] = {
    "asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi", "el1h_64_irq", "el0t_64_irq", "el1_irq", "el0_irq",
};

const PayloadField* field_called(const PayloadSchema& schema, std::string_view name) {
  const auto field = std::ranges::find(schema.fields, name, &PayloadField::name);
  return field == schema.fields.end() ? nullptr : &*field;
}

const PayloadField* field_with(const PayloadSchema& schema, std::string_view role) {
  const auto field = std::ranges::find(schema.fields, role, &PayloadField::role);
  return field == schema.fields.end() ? nullptr : &*field;
}

}  // namespace

void add_wait_options(std::vector<cli::Option>& rows, WaitOptions& options) {
  rows.push_back(
      {"--off-cpu", cli::Takes::Nothing, "",
       "waits by their time in nanoseconds: those of -e offcpu, or those between two sched:sched_switch "
       "(with -g); idle CPUs and threads that could run are left out. --comm, -C and --where choose by the "
       "thread that waits, when it goes to sleep",
       [&options](std::string_view) -> Result<> {
         options.is_asked_for = true;
         return Done{};
       }});
  rows.push_back(
      {"--wakers", cli::Takes::Optional, "N",
       "--off-cpu, and behind a frame '-- waker --' the stack that ended the wait, leaf first (-e "
       "offcpu,waking, or sched:sched_waking with -g), [irq] where an interrupt did; =N: and who woke "
       "that one, N wakers at most",
       [&options](std::string_view text) -> Result<> {
         const auto number =
             text.empty() ? Result<std::uint64_t>(1) : cli::parse_number("--wakers", text, 1, kMostWakers);
         if (!number) return number.error();
         options.is_asked_for = true;
         options.wakers = static_cast<unsigned>(*number);
         return Done{};
       }});
}

Filter take_who(Filter& filter) {
  Filter who;
  who.pids = std::exchange(filter.pids, {});
  who.tids = std::exchange(filter.tids, {});
  who.cpus = std::exchange(filter.cpus, {});
  who.comms = std::exchange(filter.comms, {});
  return who;
}

Result<Shown> show_waits(Session& session, TextOutput& out, const WaitOptions& options,
                         const FoldOptions& fold, Names names) {
  WaitOptions wanted = options;
  wanted.who.condition = std::exchange(session.filter().condition, nullptr);
  read_head(session);
  WaitSink sink(session, wanted, fold, names);
  if (auto found = sink.find_events(); !found) return std::move(found.error());
  run_with_progress(session, sink, out);
  sink.write(out);
  Shown shown(Symbols::Used);
  for (const std::string& note : sink.notes()) shown.notes.push_back("tacho folded: " + note);
  return shown;
}

WaitSink::WaitSink(Session& session, const WaitOptions& options, const FoldOptions& fold, Names names)
    : session_(&session),
      options_(options),
      fold_(fold),
      schemas_(session.events(), session.features()),
      folded_(names),
      marker_(folded_.name(kMarker)),
      interrupt_(folded_.name(kInterrupt)) {}

WaitSink::EventFacts WaitSink::facts_of(std::size_t event, const std::string& name) {
  EventFacts facts;
  const PayloadSchema* const schema = schemas_.of(event);
  if (schema == nullptr) return facts;
  if (name == "sched:sched_switch") {
    facts.what = What::Switch;
    facts.state = field_called(*schema, "prev_state");
    facts.thread = field_called(*schema, "next_pid");
    if (facts.state == nullptr || facts.thread == nullptr) facts = {};
    return facts;
  }
  const auto wakes = std::ranges::find(schema->fields, "wakes", &PayloadField::role);
  if (wakes != schema->fields.end()) {
    facts.what = What::Wake;
    facts.thread = &*wakes;
    facts.waker = field_with(*schema, "waker");
    return facts;
  }
  if (name == "sched:sched_waking" || name == "sched:sched_wakeup") {
    facts.what = What::Wake;
    facts.thread = field_called(*schema, "pid");
    return facts.thread != nullptr ? facts : EventFacts();
  }
  // Recorders make a payload's stack the sample's own.
  const bool is_wait = field_with(*schema, "stack") != nullptr || field_with(*schema, "queued") != nullptr;
  const PayloadField* const time = value_field(*schema);
  if (is_wait && time != nullptr && time->unit == "ns") {
    facts.what = What::Wait;
    facts.time = time;
  }
  return facts;
}

Result<> WaitSink::find_events() {
  bool has_waits = false, has_wakers = false, has_waking = false;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < session_->events().size(); ++i) {
    names.push_back(event_name(session_->events()[i], session_->features()));
    events_.push_back(facts_of(i, names.back()));
    has_switches_ = has_switches_ || events_.back().what == What::Switch;
    has_waits = has_waits || events_.back().what == What::Switch || events_.back().what == What::Wait;
    has_wakers = has_wakers || events_.back().what == What::Wake;
    has_waking = has_waking || names.back() == "sched:sched_waking";
  }
  for (std::size_t i = 0; i < events_.size(); ++i) {
    // The kernel tells of a wake-up at the thread's new CPU, perhaps in an interrupt there; of the waking
    // where it happens.
    if (has_waking && names[i] == "sched:sched_wakeup") events_[i] = {};
    // Each wait once.
    if (has_switches_ && events_[i].what == What::Wait) events_[i] = {};
  }
  if (!has_waits)
    return use_error(
        "--off-cpu: no event of the capture is a wait; record with -e offcpu, or with -g -e "
        "sched:sched_switch");
  if (has_switches_ && session_->filter().looks_at_names())
    return use_error(
        "--off-cpu: of sched:sched_switch every sample is taken in the scheduler, whatever waits; leave "
        "--dsos, --symbols and --symbol-filter out");
  if (options_.wakers > 0 && !has_wakers)
    return use_error(
        "--wakers: no event of the capture tells who woke; record with -e offcpu,waking, or with -g -e "
        "sched:sched_switch,sched:sched_waking");
  return Done{};
}

std::optional<std::int64_t> WaitSink::number(const PayloadField* field, const ResolvedSample& sample) const {
  return field == nullptr ? std::nullopt : read_number(*field, sample.raw->raw, sample.order);
}

Sink::Flow WaitSink::on_sample(const ResolvedSample& sample) {
  const EventFacts& facts = events_[sample.event_index];
  if (facts.what == What::Nothing) return Flow::GoOn;
  const auto thread = number(facts.thread, sample);
  switch (facts.what) {
    case What::Switch:
      leave(sample, facts);
      if (thread) arrive(static_cast<std::uint32_t>(*thread), sample.raw->time);
      break;
    case What::Wake:
      if (thread && options_.wakers > 0) wake(sample, static_cast<std::uint32_t>(*thread));
      break;
    case What::Wait:
      take_wait(sample, facts);
      break;
    case What::Nothing:
      break;
  }
  return Flow::GoOn;
}

bool WaitSink::is_wanted(const ResolvedSample& sample) const {
  const Filter& who = options_.who;
  return who.accepts_start(*sample.raw) && who.accepts_comm(sample.comm) &&
         (who.condition == nullptr || who.condition->holds(sample));
}

void WaitSink::take_wait(const ResolvedSample& sample, const EventFacts& facts) {
  const auto duration = number(facts.time, sample);
  if (!duration || *duration <= 0) return;
  if (!is_wanted(sample)) {
    // Whoever ended this wait has not ended the next one.
    if (const auto old = woken_.find(sample.tid()); old != woken_.end()) old->second.is_new = false;
    return;
  }
  if (sample.stack == nullptr) {
    ++without_stack_;
    return;
  }
  add(sample.tid(), waiting_stack(sample), static_cast<std::uint64_t>(*duration));
}

void WaitSink::leave(const ResolvedSample& sample, const EventFacts& facts) {
  const std::uint32_t thread = sample.tid();
  const auto state = number(facts.state, sample);
  if (const auto old = woken_.find(thread); old != woken_.end()) old->second.is_new = false;
  asleep_.erase(thread);
  const bool sleeps = state && (*state & kStates) != 0 && (*state & (kDead | kIdle)) == 0;
  if (thread == 0 || !sleeps || !is_wanted(sample)) return;
  if (sample.stack == nullptr) {
    ++without_stack_;
    return;
  }
  if (asleep_.size() < kMostThreads) asleep_[thread] = {sample.raw->time, waiting_stack(sample)};
}

void WaitSink::arrive(std::uint32_t thread, std::uint64_t time) {
  const auto wait = asleep_.find(thread);
  if (wait == asleep_.end()) return;
  Asleep slept = std::move(wait->second);
  asleep_.erase(wait);
  if (time > slept.since) add(thread, std::move(slept.stack), time - slept.since);
}

// Between two switches the first to wake is who woke: a thread that is awake is not woken.
void WaitSink::wake(const ResolvedSample& sample, std::uint32_t thread) {
  if (woken_.size() >= kMostThreads && !woken_.contains(thread)) return;
  const auto old = woken_.find(thread);
  if (has_switches_ && old != woken_.end() && old->second.is_new) return;
  Woken woken;
  woken.is_new = true;
  bool is_interrupt = false;
  woken.by.push_back(waking_stack(sample, is_interrupt));
  // An interrupt comes by itself.
  const auto before = woken_.find(sample.tid());
  if (!is_interrupt && before != woken_.end()) {
    const auto& by = before->second.by;
    const auto more = std::min<std::size_t>(by.size(), options_.wakers - 1);
    woken.by.insert(woken.by.end(), by.begin(), by.begin() + static_cast<std::ptrdiff_t>(more));
  }
  woken_[thread] = std::move(woken);
}

void WaitSink::add(std::uint32_t thread, Frames stack, std::uint64_t duration) {
  ++waits_;
  const auto woken = woken_.find(thread);
  if (woken != woken_.end() && woken->second.is_new) {
    ++with_waker_;
    woken->second.is_new = false;
    for (const Frames& by : woken->second.by) {
      stack.push_back(marker_);
      stack.insert(stack.end(), by.begin(), by.end());
    }
  }
  folded_.add(folded_.row_of(stack), duration);
}

std::uint32_t WaitSink::name_of_thread(const ResolvedSample& sample, const PayloadField* told) {
  std::string name(sample.comm);
  const auto value = told != nullptr ? read_field(*told, sample.raw->raw, sample.order) : std::nullopt;
  if (value && std::holds_alternative<std::string_view>(*value)) name = std::get<std::string_view>(*value);
  std::ranges::replace(name, ' ', '_');
  if (fold_.shows_tid) {
    name += fmt::format("-{}/{}", static_cast<std::int32_t>(sample.pid()),
                        static_cast<std::int32_t>(sample.tid()));
  } else if (fold_.shows_pid) {
    name += fmt::format("-{}", static_cast<std::int32_t>(sample.pid()));
  }
  return folded_.name(name);
}

WaitSink::Frames WaitSink::waiting_stack(const ResolvedSample& sample) {
  Frames frames{name_of_thread(sample)};
  const auto stack = sample.stack->frames;
  for (auto number = stack.rbegin(); number != stack.rend(); ++number) {
    const Frames& names = names_of(*number);
    frames.insert(frames.end(), names.begin(), names.end());
  }
  return frames;
}

// The other way round: what woke stands next to what was woken, and its thread's name at the end.
WaitSink::Frames WaitSink::waking_stack(const ResolvedSample& sample, bool& is_interrupt) {
  Frames frames;
  if (sample.stack != nullptr) {
    for (const std::uint32_t number : sample.stack->frames) {
      const Frames& names = names_of(number);
      frames.insert(frames.end(), names.rbegin(), names.rend());
      is_interrupt = is_interrupt_entry(number);
      if (is_interrupt) break;
    }
  }
  frames.push_back(is_interrupt ? interrupt_ : name_of_thread(sample, events_[sample.event_index].waker));
  return frames;
}

const WaitSink::Frames& WaitSink::names_of(std::uint32_t location) {
  Place& place = places_[location];
  if (place.is_named) return place.names;
  place.is_named = true;
  const auto frames = session_->resolver().frames(session_->resolver().location(location));
  for (const symbolize::Frame& frame : frames) {
    place.is_interrupt_entry =
        place.is_interrupt_entry || std::ranges::any_of(kInterruptEntries, [&](std::string_view entry) {
          return frame.function.starts_with(entry);
        });
    TextBuffer line;
    write_frame(line, frame, kLineFields, Names::Raw);
    Frames names;
    for (const std::string& name : fold_frame(line.view(), fold_, false)) names.push_back(folded_.name(name));
    place.names.insert(place.names.begin(), names.begin(), names.end());
  }
  return place.names;
}

bool WaitSink::is_interrupt_entry(std::uint32_t location) {
  names_of(location);
  return places_[location].is_interrupt_entry;
}

std::vector<std::string> WaitSink::notes() const {
  std::vector<std::string> notes;
  if (waits_ == 0) notes.emplace_back("no wait has an end in the capture");
  if (without_stack_ > 0)
    notes.push_back(
        fmt::format("{} waits have no stack and are left out; record with -g to have them", without_stack_));
  if (options_.wakers > 0 && waits_ > 0)
    notes.push_back(fmt::format("{} of {} waits have a waker", with_waker_, waits_));
  return notes;
}

}  // namespace tacho::report
