#include "report/views/summary/capture_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/records/perf_abi.h"
#include "report/profile/function.h"
#include "report/profile/function_table.h"
#include "report/profile/weight.h"
#include "report/profile/weight_unit.h"
#include "report/query/waits.h"
#include "report/samples/sum_view.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// The scheduler's functions: their caller is the function that waits.
constexpr std::string_view kScheduler[] = {"schedule",
                                           "__schedule",
                                           "schedule_timeout",
                                           "schedule_hrtimeout",
                                           "preempt_schedule",
                                           "io_schedule",
                                           "io_schedule_timeout",
                                           "__traceiter_sched_switch",
                                           "__traceiter_sched_waking"};

EventSummary::Kind kind_of(const format::EventAttr& attr) {
  using Kind = EventSummary::Kind;
  if (attr.type == abi::kTracepoint) return Kind::Tracepoint;
  if (attr.type == abi::kSoftware && attr.config <= 1) return Kind::Clock;  // cpu-clock, task-clock
  if (attr.is_bpf_output()) return Kind::Payload;
  return attr.type == abi::kHardware || attr.type == abi::kRaw ? Kind::Counter : Kind::Other;
}

constexpr std::uint64_t kFew = 20;  // samples of a clock or counter: with fewer it is not chosen

bool is_kernel(const Location& location) { return location.cpumode == abi::kCpumodeKernel; }

// A field of a payload, and what its values add up to.
struct SummedField {
  const PayloadField* field = nullptr;
  ValueOfMany how;
  FieldSummary summary;
};

// Samples of an event: of a thread, or in a function.
struct ThreadSum {
  std::uint32_t event = 0;
  const Thread* thread = nullptr;
  SummaryWeight weight;
};
constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};
struct PlaceSum {
  std::uint32_t event = 0;
  LocationId location{};
  bool is_caller = false;  // a frame of call chains, not where samples were taken
  SummaryWeight weight;
};

// What a sample adds to: indices of a ThreadSum and a PlaceSum, and its frames.
struct SampleSums {
  std::uint32_t event = 0, thread = 0, place = kNoPlace;
  bool has_stack = false;
  LocationId location{};
  std::span<const LocationId> frames;
};

// An event, with the fields of its payload.
struct SummedEvent {
  SummaryWeight weight;
  const PayloadSchema* schema = nullptr;
  const PayloadField* count = nullptr;  // the number of values in a sample
  bool has_stacks = false;
  std::vector<SummedField> fields;
};

class Summarizer : public Sink, private SumView {
 public:
  Summarizer(Session& session, CountedAddresses counted)
      : session_(session),
        counted_(counted),
        schemas_(session.events(), session.features()),
        periods_(schemas_),
        weights_({}, session.events().size(), schemas_),
        functions_(session) {
    for (std::size_t event = 0; event < session.events().size(); ++event)
      events_.push_back(summed_event(event));
    find_waits();
  }

  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override {
    return has_sums() && counted_ == CountedAddresses::Frames ? MergeBy::FrameName : MergeBy::Address;
  }
  SumView* sum_view() override { return has_sums() ? this : nullptr; }

  Flow on_sample(const ResolvedSample& sample) override {
    const std::uint64_t time = sample.fields->time;
    const bool has_time = sample.event().attr.samples(abi::kSampleTime);
    totals_ += has_time ? SumTotals{1, time, time} : SumTotals{.samples = 1};
    // In a pipe, an event may be described after the first sample.
    if (sample.event_index >= events_.size()) {
      ++summary_.late;
      return Flow::Continue;
    }
    add(sums_of(sample.event_index, sample.thread, sample.location_id, sample.stack),
        {.samples = 1, .period = weights_.of(sample).value_or(0)});
    SummedEvent& event = events_[sample.event_index];
    periods_.see(sample);
    if (!event.fields.empty()) {
      const std::uint64_t count = count_of(event.count, sample);
      for (SummedField& one : event.fields)
        add_values(one.summary.values, one.how, value_in_sample(*one.field, sample), count, sample);
    }
    if (!waits_) return Flow::Continue;
    if (const auto wait = waits_->take_sample(sample)) add_wait(*wait);
    return Flow::Continue;
  }

  CaptureSummary finish(std::size_t most) {
    summary_.samples = totals_.samples;
    if (totals_.first_time <= totals_.last_time) summary_.time.emplace(totals_.first_time, totals_.last_time);
    summary_.names = hits_.count_named(session_.resolver());
    summary_.is_packed = !session_.features().symbol_pack.empty();
    summary_.lost = all_lost_samples(session_);
    list_events();
    choose_event();
    if (summary_.chosen) {
      list_processes(most);
      list_functions(most);
    }
    functions_.show_parameters();
    list_waits(most);
    return std::move(summary_);
  }

 private:
  struct WaitRow {
    std::uint64_t waits = 0, time = 0;
  };

  // Whether nothing is read of single samples: events of a clock or counter, without payloads and waits.
  // Others have no samples.
  bool has_sums() const {
    return !waits_ && weights_.is_of_sums() &&
           std::ranges::all_of(session_.events(), [](const format::Event& event) {
             const EventSummary::Kind kind = kind_of(event.attr);
             return kind == EventSummary::Kind::Clock || kind == EventSummary::Kind::Counter ||
                    event.attr.is_dummy();
           });
  }
  SumShape shape() const override { return {.by_comm = false, .by_thread = true, .merge_by = merge_by()}; }
  RowId row_of(const SumGroup& group) override {
    if (std::exchange(were_counted_, false)) groups_.clear();
    groups_.push_back(sums_of(group.event, group.thread, group.location, group.stack));
    return id_of<RowId>(groups_.size() - 1);
  }
  void count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) override {
    were_counted_ = true;
    add(groups_[index_of(row)], {.samples = samples, .period = weights_.of_sum(event, period, samples)});
  }
  void end(const SumTotals& totals) override { totals_ = totals; }

  SampleSums sums_of(std::size_t event, const Thread* thread, LocationId location, const Stack* stack) {
    SampleSums sums{.event = static_cast<std::uint32_t>(event),
                    .has_stack = stack != nullptr,
                    .location = location,
                    .frames = stack == nullptr ? std::span<const LocationId>() : stack->frames};
    events_[event].has_stacks |= !sums.frames.empty();
    sums.thread = by_thread_.find_or_make(
        by_thread_.hash(event, reinterpret_cast<std::uintptr_t>(thread)),
        [&](std::uint32_t known) {
          return threads_[known].event == event && threads_[known].thread == thread;
        },
        [&] {
          threads_.push_back({.event = sums.event, .thread = thread, .weight = {}});
          return static_cast<std::uint32_t>(threads_.size() - 1);
        });
    const bool has_address = stack != nullptr || session_.resolver().location(location).ip.value != 0;
    if (!has_address) return sums;
    const std::optional<LocationId> caller = caller_in(event, stack);
    const LocationId place = caller.value_or(location);
    sums.place = by_place_.find_or_make(
        by_place_.hash(event, place, caller.has_value()),
        [&](std::uint32_t known) {
          const PlaceSum& one = places_[known];
          return one.event == event && one.location == place && one.is_caller == caller.has_value();
        },
        [&] {
          places_.push_back(
              {.event = sums.event, .location = place, .is_caller = caller.has_value(), .weight = {}});
          return static_cast<std::uint32_t>(places_.size() - 1);
        });
    return sums;
  }
  void add(const SampleSums& sums, const SummaryWeight& weight) {
    events_[sums.event].weight += weight;
    threads_[sums.thread].weight += weight;
    if (sums.place != kNoPlace) places_[sums.place].weight += weight;
    sums.has_stack ? hits_.add_stack(Stack{.id = {}, .frames = sums.frames}, weight.samples)
                   : hits_.add_location(session_.resolver().location(sums.location), weight.samples);
  }
  // The innermost user function of the call chain, for events that happen in the kernel or in a library: its
  // callers tell more. nullopt: the function in which the sample was taken counts.
  std::optional<LocationId> caller_in(std::size_t event, const Stack* stack) {
    const EventSummary::Kind kind = kind_of(session_.events()[event].attr);
    if (stack == nullptr || kind == EventSummary::Kind::Clock || kind == EventSummary::Kind::Counter)
      return std::nullopt;
    std::uint32_t& kernel_frames = kernel_frames_[stack->id];
    if (kernel_frames == kNotCounted) {
      const auto user = std::ranges::find_if(stack->frames, [this](LocationId location) {
        return !is_kernel(session_.resolver().location(location));
      });
      kernel_frames = static_cast<std::uint32_t>(user - stack->frames.begin());
    }
    return kernel_frames < stack->frames.size() ? std::optional(stack->frames[kernel_frames]) : std::nullopt;
  }
  SummedEvent summed_event(std::size_t event) {
    SummedEvent made;
    made.schema = schemas_.schema_of(event);
    if (made.schema == nullptr) return made;
    if (kind_of(session_.events()[event].attr) != EventSummary::Kind::Payload) return made;
    const CountedFields counted = counted_fields(*made.schema);
    made.count = counted.count;
    for (const PayloadField& field : made.schema->fields) {
      const bool is_number = field.kind != format::FieldKind::Text && field.kind != format::FieldKind::Enum &&
                             field.kind != format::FieldKind::Bool && !is_list(field);
      if (!is_number || field.unit.empty() || is_shown_in_hex(field)) continue;
      SummedField one;
      one.field = &field;
      if (has_slots(field)) one.how.slots = &field;
      if (has_slots(field)) one.how.sum = counted.sum;
      one.how.is_total = is_total(*made.schema, field);
      one.summary.name = field.name;
      one.summary.unit = field.unit;
      one.summary.is_counted = counted.count != nullptr;
      one.summary.has_slots = has_slots(field);
      one.summary.is_value = field.role == "value" || has_slots(field);
      made.fields.push_back(std::move(one));
    }
    return made;
  }

  void find_waits() {
    for (const unsigned wakers : {1U, 0U}) {
      WaitOptions options;
      options.wakers = wakers;
      waits_.emplace(session_, options);
      if (!waits_->find_events()) continue;
      summary_.waits.emplace().has_wakers = wakers > 0;
      return;
    }
    waits_.reset();
  }

  void add_wait(const Wait& wait) {
    WaitsSummary& all = *summary_.waits;
    ++all.waits;
    all.time += wait.weight;
    all.longest = std::max(all.longest, wait.duration);
    const auto [where, is_new] = where_.try_emplace(wait.stack->id);
    if (is_new) where->second = waiting_function(*wait.stack);
    WaitRow& row = wait_rows_[{wait.comm, where->second}];
    ++row.waits;
    row.time += wait.weight;
  }

  FunctionId waiting_function(const Stack& stack) {
    std::optional<FunctionId> of_kernel;
    for (const LocationId location : stack.frames) {
      const FunctionId function = functions_.of_frame(location).front();
      if (!is_kernel(session_.resolver().location(location))) return row_of(function);
      const bool is_scheduler = std::ranges::count(kScheduler, functions_[function].name()) != 0;
      if (!of_kernel && !is_scheduler) of_kernel = row_of(function);
    }
    return of_kernel.value_or(kNo<FunctionId>);
  }

  // The first function with the same symbol: functions with one symbol are one row.
  FunctionId row_of(FunctionId function) {
    return rows_.try_emplace(functions_[function].symbol, function).first->second;
  }
  // The events with samples, most samples first, and the fields of their payloads.
  void list_events() {
    struct Listed {
      std::size_t event;
      EventSummary summary;
    };
    std::vector<Listed> listed;
    for (std::size_t event = 0; event < events_.size(); ++event) {
      EventSummary one;
      one.samples = events_[event].weight.samples;
      one.period = events_[event].weight.period;
      if (one.samples == 0) continue;
      const format::Event& described = session_.events()[event];
      one.name = described.name;
      one.kind = kind_of(described.attr);
      one.unit = one.period == 0 ? "samples" : unit_of(event);
      if (one.period == 0) one.period = one.samples;
      if (described.attr.has(abi::kFreq)) one.frequency = described.attr.sample_period;
      one.has_stacks = events_[event].has_stacks;
      listed.push_back({event, std::move(one)});
    }
    std::ranges::stable_sort(listed, std::greater(), [](const Listed& one) { return one.summary.samples; });
    for (Listed& one : listed) {
      for (SummedField& field : events_[one.event].fields) {
        if (field.summary.values.count() == 0) continue;
        field.summary.event = summary_.events.size();
        summary_.fields.push_back(std::move(field.summary));
      }
      event_of_.push_back(one.event);
      summary_.events.push_back(std::move(one.summary));
    }
  }

  void choose_event() {
    if (summary_.events.empty()) return;
    using Kind = EventSummary::Kind;
    summary_.chosen = 0;
    for (const Kind kind : {Kind::Clock, Kind::Counter}) {
      const auto event = std::ranges::find(summary_.events, kind, &EventSummary::kind);
      if (event == summary_.events.end() || event->samples < std::min(kFew, summary_.events[0].samples))
        continue;
      summary_.chosen = static_cast<std::size_t>(event - summary_.events.begin());
      return;
    }
    summary_.functions_are_callers = summary_.events[0].has_stacks;
  }

  void list_processes(std::size_t most) {
    struct Process {
      ProcessSummary shown;
      std::unordered_set<std::uint32_t> threads;
    };
    std::map<std::uint32_t, Process> processes;
    const bool has_period = summary_.events[*summary_.chosen].unit != "samples";
    for (const ThreadSum& row : threads_) {
      if (row.thread == nullptr) continue;
      Process& process = processes[row.thread->pid];
      process.shown.pid = row.thread->pid;
      if (process.threads.empty() || row.thread->tid == row.thread->pid)
        process.shown.comm = row.thread->comm;
      process.threads.insert(row.thread->tid);
      if (row.event != event_of_[*summary_.chosen]) continue;
      process.shown.samples += row.weight.samples;
      process.shown.period += has_period ? row.weight.period : row.weight.samples;
    }
    std::vector<ProcessSummary>& heaviest = summary_.heaviest_processes;
    for (auto& [pid, process] : processes) {
      process.shown.threads = process.threads.size();
      if (process.shown.samples > 0) heaviest.push_back(process.shown);
    }
    summary_.processes = processes.size();
    std::ranges::stable_sort(heaviest, [](const ProcessSummary& a, const ProcessSummary& b) {
      return std::tie(b.period, b.samples) < std::tie(a.period, a.samples);
    });
    heaviest.resize(std::min(heaviest.size(), most));
  }

  void list_functions(std::size_t most) {
    std::map<FunctionId, SummaryWeight> weights;
    const EventSummary& chosen = summary_.events[*summary_.chosen];
    const bool has_period = chosen.unit != "samples";
    // Without stacks a tracepoint or a BPF event of the kernel always has the same function.
    using Kind = EventSummary::Kind;
    const bool has_one_place =
        !chosen.has_stacks && (chosen.kind == Kind::Tracepoint || chosen.kind == Kind::Payload);
    for (const PlaceSum& place : places_) {
      if (place.event != event_of_[*summary_.chosen]) continue;
      if (has_one_place && is_kernel(session_.resolver().location(place.location))) continue;
      const FunctionId function = place.is_caller ? functions_.of_frame(place.location).front()
                                                  : functions_.of_location(place.location);
      const std::uint64_t samples = place.weight.samples;
      weights[row_of(function)] += {.samples = samples, .period = has_period ? place.weight.period : samples};
    }
    std::vector<std::pair<FunctionId, SummaryWeight>> heaviest(weights.begin(), weights.end());
    summary_.functions = heaviest.size();
    std::ranges::stable_sort(heaviest,
                             [](const auto& a, const auto& b) { return a.second.period > b.second.period; });
    heaviest.resize(std::min(heaviest.size(), most));
    functions_.show_parameters();
    for (const auto& [function, weight] : heaviest) {
      const symbolize::Module* const module = functions_[function].module;
      summary_.heaviest_functions.push_back(
          {name_of(function), module == nullptr ? std::string_view() : std::string_view(module->short_name),
           weight});
    }
  }

  std::string name_of(FunctionId function) const {
    const Function& one = functions_[function];
    return one.name().empty() ? fmt::format("{:#x}", one.start) : std::string(one.shown_name());
  }
  void list_waits(std::size_t most) {
    if (!summary_.waits) return;
    std::vector<WaitSummary>& heaviest = summary_.waits->heaviest;
    for (const auto& [key, row] : wait_rows_)
      heaviest.push_back(
          {key.first, key.second == kNo<FunctionId> ? "" : name_of(key.second), row.waits, row.time});
    std::ranges::stable_sort(heaviest, [](const WaitSummary& a, const WaitSummary& b) {
      return std::tie(b.time, a.comm, a.function) < std::tie(a.time, b.comm, b.function);
    });
    heaviest.resize(std::min(heaviest.size(), most));
  }

  std::string unit_of(std::size_t event) const {
    return weight_unit({}, session_.events()[event], events_[event].schema, periods_.field_of(event));
  }

  Session& session_;
  CountedAddresses counted_;
  SumTotals totals_;
  EventSchemas schemas_;
  PeriodFields periods_;
  WeightChoice weights_;  // the default of report --weight
  AddressHits hits_;
  std::vector<ThreadSum> threads_;  // in the order of their first samples, as places_
  std::vector<PlaceSum> places_;
  IndexTable<> by_thread_, by_place_;
  std::vector<SampleSums> groups_;  // by RowId, until SumJoin empties its tables
  bool were_counted_ = false;       // groups_
  static constexpr std::uint32_t kNotCounted = ~std::uint32_t{0};
  IdMap<StackId, std::uint32_t> kernel_frames_{kNotCounted};  // at the leaf of a stack
  FunctionTable functions_;
  std::unordered_map<SymbolId, FunctionId> rows_;  // the first function
  std::vector<SummedEvent> events_;
  std::vector<std::size_t> event_of_;  // by event of the summary: its index in the session
  std::optional<Waits> waits_;
  std::map<std::pair<std::string_view, FunctionId>, WaitRow> wait_rows_;  // by thread's name
  std::unordered_map<StackId, FunctionId> where_;                         // the function that waits
  CaptureSummary summary_;
};

}  // namespace

CaptureSummary summarize(Session& session, std::size_t most, CountedAddresses counted,
                         const std::function<void(Sink&)>& run) {
  Summarizer summarizer(session, counted);
  run(summarizer);
  return summarizer.finish(most);
}

}  // namespace tacho::report
