#include "report/samples/session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "format/base/large_pages.h"
#include "format/base/worker_pool.h"
#include "report/samples/batches.h"
#include "report/samples/event_choice.h"
#include "report/samples/sample_lane.h"
#include "report/samples/sums.h"
#include "report/samples/text_view.h"
#include "symbolize/files/file_access.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Prefetches records, which are in another CPU's cache.
void fetch_ahead(std::span<const BatchItem> items, std::size_t at) {
  constexpr std::size_t kAhead = 10, kLine = 64;  // items, bytes
  if (at + kAhead >= items.size()) return;
  __builtin_prefetch(items[at + kAhead].record);
  __builtin_prefetch(items[at + kAhead].record + kLine);
}

// Access goes through FileAccess, since a network file system may hang.
Result<> check_places(const symbolize::SymbolOptions& symbols) {
  std::error_code ignored;
  symbolize::FileAccess* const access = symbols.name_access != nullptr ? symbols.name_access : symbols.access;
  const std::string& first = symbols.symfs.empty() ? symbols.kallsyms : symbols.symfs;
  const symbolize::ScopedRead looking(first.empty() ? nullptr : access, first);
  if (looking.is_refused()) return Error{first + ": " + access->refusal(first)};
  if (!symbols.symfs.empty() && symbols.symfs != symbolize::kNoFiles &&
      !std::filesystem::is_directory(symbols.symfs, ignored))
    return use_error("--symfs: " + symbols.symfs + " is no folder");
  if (!symbols.kallsyms.empty() && !std::filesystem::exists(symbols.kallsyms, ignored))
    return use_error("--kallsyms: there is no file " + symbols.kallsyms);
  return Done{};
}

// Passes samples whose own address is in the modules and functions of the filter. Looks up each location
// once.
class NameFilter : public Sink {
 public:
  // All three must outlive this.
  NameFilter(const Filter& filter, Resolver& resolver, Sink& sink)
      : filter_(&filter), resolver_(&resolver), sink_(&sink), addresses_(filter) {}

  bool takes_others() const override { return sink_->takes_others(); }
  Flow on_sample(const ResolvedSample& sample) override;
  Flow on_other(const OtherEvent& event) override { return sink_->on_other(event); }

 private:
  enum class Answer : std::uint8_t { NotAsked, No, Yes, ByAddress };
  Answer ask(const Location& location);

  const Filter* filter_;
  Resolver* resolver_;
  Sink* sink_;
  WantedAddresses addresses_;
  ByNumber<Answer> answers_;  // by location
};

// Passes samples for which a condition with names of functions is true.
class NamedCondition : public Sink {
 public:
  // All three must outlive this.
  NamedCondition(SampleCondition& condition, Resolver& resolver, Sink& sink)
      : condition_(&condition), resolver_(&resolver), sink_(&sink) {}

  Flow on_sample(const ResolvedSample& sample) override {
    return condition_->holds(sample, resolver_) ? sink_->on_sample(sample) : Flow::GoOn;
  }
  Flow on_other(const OtherEvent& event) override { return sink_->on_other(event); }

 private:
  SampleCondition* condition_;
  Resolver* resolver_;
  Sink* sink_;
};

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

NameFilter::Answer NameFilter::ask(const Location& location) {
  const symbolize::Frame& frame = resolver_->frame(location);
  const symbolize::Module* const module = frame.module;
  if (!filter_->dsos.empty() &&
      (!module || !(contains(filter_->dsos, module->path) || contains(filter_->dsos, module->short_name))))
    return Answer::No;
  if (frame.function.find(filter_->symbol_part) == std::string_view::npos) return Answer::No;
  if (filter_->symbols.empty()) return Answer::Yes;
  if (!frame.function.empty() && contains(filter_->symbols, frame.function)) return Answer::Yes;
  // Processes that map a file at several addresses share a location, so each sample's address is compared.
  return module != nullptr && !addresses_.empty() ? Answer::ByAddress : Answer::No;
}

Sink::Flow NameFilter::on_sample(const ResolvedSample& sample) {
  Answer& known = answers_[sample.place];
  if (known == Answer::NotAsked) known = ask(*sample.location);
  const Answer answer = known;
  const bool is_wanted =
      answer == Answer::Yes || (answer == Answer::ByAddress && addresses_.has(sample.raw->ip));
  return is_wanted ? sink_->on_sample(sample) : Flow::GoOn;
}

}  // namespace

struct Session::State {
  State(SessionOptions given, std::unique_ptr<format::Diagnostics> found, format::CaptureReader reader)
      : options(std::move(given)),
        found_by_reading(std::move(found)),
        capture(std::move(reader)),
        batches(capture, options.symbols, *found_by_reading),
        lane(capture, options.symbols, found_in_samples),
        resolver(options.symbols, capture.features(), batches.spaces(), batches.jit(), places.locations()) {
    if (options.symbols.callers == symbolize::Callers::ByCall) stacks.reader().mark_callers();
  }

  SessionOptions options;
  format::Diagnostics diagnostics;  // the caller's
  // Of the thread that makes batches; then of the others.
  alignas(format::kApart) std::unique_ptr<format::Diagnostics> found_by_reading;
  format::CaptureReader capture;
  Batches batches;
  alignas(format::kApart) format::Diagnostics found_in_samples;
  PlaceTable places;
  StackTable stacks{places};
  SampleLane lane;
  SerialLane serial{lane, places, stacks, batches.cgroups()};
  Resolver resolver;
  std::optional<format::WorkerPool> pool;
  bool has_run = false;
  std::shared_ptr<SampleCondition> condition;  // until bind_condition(), which moves it to the filter
  NameMerging merging;
  alignas(format::kApart) std::mutex naming;
  alignas(format::kApart) NameMerging shared_merging;  // `merging` for lanes, with `naming` as its lock
  BatchOptions batch_options;
  // The current and the next batch. Of a pipe, a run that read the header leaves the rest of its batch.
  std::array<Batch, 2> two;
  std::size_t next_item = 0;
  bool is_stopped = false;

  unsigned jobs() const {
    const bool is_alone = options.in_step || capture.fixed_header() == nullptr || capture.follows();
    return is_alone ? 1 : options.jobs != 0 ? options.jobs : format::usual_workers();
  }
  // One for each thread of a parallel view.
  struct Lane {
    format::Diagnostics found;
    std::uint64_t first_found =
        ~std::uint64_t{0};  // index of the first item of the first chunk with a finding
    std::optional<SampleLane> samples;
    // Of a TextView.
    std::unique_ptr<Pen> pen;
    std::optional<TextLane> text;
    const format::Diagnostics* findings = &found;
    // After a chunk that begins with this item.
    void note(std::uint64_t item) {
      if (first_found == ~std::uint64_t{0} && !findings->findings().empty()) first_found = item;
    }
  };
  std::vector<std::unique_ptr<Lane>> lanes;

  bool can_fork() const;
  void make_lanes();
  void take_findings();
  template <class Chunk, class Between, class IsFull>
  bool run_forked(const RunControl& control, std::size_t size, Chunk&& chunk, Between&& between,
                  IsFull&& is_full);
  bool run_sums(SumView& view, const RunControl& control);
  bool run_text(TextView& view, const RunControl& control);
  void begin(bool wants_others);
  void end(bool is_at_end);
  Sink::Flow show(const Batch& batch, const RunControl& control);
  bool run(Sink& sink, const RunControl& control);
};

Result<Session> Session::open(SessionOptions options) {
  auto found = std::make_unique<format::Diagnostics>();
  auto capture = format::CaptureReader::open(options.input, *found, options.capture);
  if (!capture) return std::move(capture.error());
  auto& symbols = options.symbols;
  if (auto checked = check_places(symbols); !checked) return std::move(checked.error());
  Filter& filter = options.filter;
  if (!filter.time_text.empty()) {
    auto times = parse_times(filter.time_text, capture->features().environment);
    if (!times) return std::move(times.error());
    filter.times = std::move(*times);
  }
  const char* const home = std::getenv("HOME");
  if (symbols.build_id_dir.empty() && symbols.symfs.empty() && home != nullptr) {
    symbols.build_id_dir = std::string(home) + "/.debug";  // perf's build-id cache
  }
  auto condition = std::exchange(filter.condition, nullptr);
  auto state = std::make_unique<State>(std::move(options), std::move(found), std::move(*capture));
  state->condition = std::move(condition);
  state->diagnostics.take(*state->found_by_reading);
  Session session(std::move(state));
  if (session.layout().is_pipe) return session;
  if (auto checked = session.check_events(); !checked) return std::move(checked.error());
  return session;
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const format::EventSet& Session::events() const { return state_->capture.events(); }
const format::Features& Session::features() const { return state_->capture.features(); }
const format::CaptureLayout& Session::layout() const { return state_->capture.layout(); }
format::Diagnostics& Session::diagnostics() { return state_->diagnostics; }
Filter& Session::filter() { return state_->options.filter; }
bool Session::has_condition() const { return state_->condition != nullptr; }

Result<> Session::bind_condition() {
  if (!has_condition()) return Done{};
  if (auto bound = state_->condition->bind(events(), features()); !bound) return bound;
  state_->options.condition_asks_for_names = state_->condition->asks_for_names();
  state_->options.filter.condition = std::move(state_->condition);
  state_->condition = nullptr;
  return Done{};
}

Result<> Session::check_events() const {
  const auto& asked = state_->options.filter.events;
  if (asked.empty()) return Done{};
  std::vector<std::string> names;
  for (const format::Event& event : events()) names.push_back(event.name);
  const EventChoice choice = choose_events(asked, names);
  if (choice.unknown) return not_one_event("--event", *choice.unknown, names).in(state_->options.input);
  return Done{};
}

bool Session::follows() const { return state_->capture.follows(); }

const symbolize::JitCode& Session::jit_code() const { return state_->batches.jit(); }

format::WorkerPool& Session::pool() {
  if (!state_->pool)
    state_->pool.emplace(state_->options.jobs != 0 ? state_->options.jobs : format::usual_workers());
  return *state_->pool;
}

Resolver& Session::resolver() { return state_->resolver; }

void Session::State::begin(bool wants_others) {
  const bool is_pipe = capture.fixed_header() == nullptr;
  batch_options = {.filter = &options.filter,
                   .leaves_out_guests = options.leaves_out_guests,
                   .wants_others = wants_others};
  // The header of a pipe grows between its records.
  if (is_pipe) batch_options.most_items = 1;
  batches.begin(batch_options);
  if (options.keeps_addresses) places.keep_addresses();
  if (options.keeps_callers) stacks.reader().keep_callers();
  places.merge_by_name(&merging);
  lane.begin(options);
}

void Session::State::end(bool is_at_end) {
  const bool is_pipe = capture.fixed_header() == nullptr;
  if (is_at_end || !is_pipe) batches.report_losses();
  if (is_at_end) batches.end_replay();
  places.end_lookups();
  stacks.end_lookups();
  batches.settle_names();
  diagnostics.take(*found_by_reading);
  diagnostics.take(found_in_samples);
}

Sink::Flow Session::State::show(const Batch& batch, const RunControl& control) {
  if (control.progress && batch.bytes_read != 0)
    control.progress({batch.bytes_read, capture.layout().file_size});
  for (; next_item < batch.items.size(); ++next_item) {
    if (control.cancel.stop_requested()) return Sink::Flow::Stop;
    fetch_ahead(batch.items, next_item);
    if (serial.give(batch, next_item, std::exchange(is_stopped, false)) == Sink::Flow::Stop)
      return Sink::Flow::Stop;
  }
  return control.cancel.stop_requested() ? Sink::Flow::Stop : Sink::Flow::GoOn;
}

// Whether samples are independent of each other: no differences of counter values, no --where, no filter by
// names.
bool Session::State::can_fork() const {
  const Filter& filter = options.filter;
  return !options.in_step && capture.fixed_header() != nullptr && !capture.follows() &&
         filter.condition == nullptr && !filter.looks_at_names() &&
         std::ranges::none_of(capture.events(), [](const format::Event& event) {
           return event.attr.samples(abi::kSampleRead);
         });
}

// The first lane uses the session's SampleLane. There is one lane if stacks are unwound, since one thread
// reads the modules' unwinding tables.
void Session::State::make_lanes() {
  const bool unwinds = std::ranges::any_of(
      capture.events(), [](const format::Event& event) { return event.attr.samples(abi::kSampleRegsUser); });
  const unsigned count = unwinds && options.wants_stacks ? 1 : jobs();
  lanes.clear();
  for (unsigned i = 0; i < count; ++i) {
    Lane& made = *lanes.emplace_back(std::make_unique<Lane>());
    if (i == 0) {
      made.findings = &found_in_samples;
      continue;
    }
    made.samples.emplace(capture, options.symbols, made.found);
    made.samples->begin(options);
  }
}

// In the order in which one lane would find them.
void Session::State::take_findings() {
  lanes[0]->found.take(found_in_samples);
  std::ranges::sort(lanes, {}, &Lane::first_found);
  for (const auto& one : lanes) found_in_samples.take(one->found);
}

// Gives the samples of each batch to the lanes, in chunks of `size`: chunk(lane, samples, index of the first
// one, index of the chunk). Meanwhile one thread makes the next batch, and the calling thread calls
// between(false) to process the results of the previous batch. When all have joined, between(true) collects
// the results of this one. If is_full(), lanes stop in the middle of the batch, and go on after both calls of
// between(). Returns false if the run was stopped before the end of the capture.
template <class Chunk, class Between, class IsFull>
bool Session::State::run_forked(const RunControl& control, std::size_t size, Chunk&& chunk, Between&& between,
                                IsFull&& is_full) {
  format::WorkerPool workers(jobs());
  batches.fill(two[0]);
  bool is_first = true, has_next = false;
  std::size_t done = 0;  // items of the batch
  for (;;) {
    Batch& batch = two[0];
    const bool reads_on = !batch.is_last && !batch.ends_before_change;
    const std::span<const BatchItem> items = std::span(batch.items).subspan(done);
    const std::size_t chunks = (items.size() + size - 1) / size;
    std::atomic<std::size_t> next_chunk{0};
    const auto add = [&](std::size_t number) {
      while (!is_full()) {
        const std::size_t at = next_chunk++;
        if (at >= chunks) break;
        const std::size_t begin = at * size;
        chunk(number, items.subspan(begin, std::min(size, items.size() - begin)), batch.first + done + begin,
              at);
      }
    };
    // Task 0 is the longest: the next batch.
    auto forked = workers.fork(1 + lanes.size(), [&](std::size_t task, unsigned) -> Result<> {
      if (task > 0) add(task - 1);
      if (task == 0 && reads_on && !has_next) batches.fill(two[1]);
      return Done{};
    });
    if (control.progress && batch.bytes_read != 0)
      control.progress({batch.bytes_read, capture.layout().file_size});
    const Sink::Flow flow = is_first ? Sink::Flow::GoOn : between(false);
    is_first = false;
    static_cast<void>(forked.join());  // no error
    if (flow == Sink::Flow::Stop || control.cancel.stop_requested()) return false;
    const Sink::Flow behind = between(true);
    has_next = reads_on;
    done += std::min(items.size(), std::min(next_chunk.load(), chunks) * size);
    if (done < batch.items.size()) {
      if (behind == Sink::Flow::Stop) return false;
      continue;
    }
    if (batch.is_last) return true;
    if (behind == Sink::Flow::Stop) return false;
    if (!reads_on) {
      // The next record changes kernel mappings or JIT code: samples before it are symbolized first.
      if (between(false) == Sink::Flow::Stop) return false;
      batches.fill(two[1]);
    }
    std::swap(two[0], two[1]);
    done = 0;
    has_next = false;
  }
}

bool Session::State::run_sums(SumView& view, const RunControl& control) {
  make_lanes();
  const SumShape shape = view.shape();
  shared_merging = merging;
  shared_merging.naming = &naming;
  std::vector<std::unique_ptr<SumLane>> sums;
  for (std::size_t i = 0; i < lanes.size(); ++i)
    sums.push_back(std::make_unique<SumLane>(i == 0 ? lane : *lanes[i]->samples, options.symbols, options,
                                             shape, shared_merging));
  SumJoin join(sums, places, stacks, view, naming);
  constexpr std::size_t kChunk = 512;  // items
  const bool is_whole = run_forked(
      control, kChunk,
      [&](std::size_t number, std::span<const BatchItem> items, std::uint64_t first, std::size_t) {
        sums[number]->add(items, first);
        lanes[number]->note(first);
      },
      [&](bool is_joined) {
        if (is_joined) {
          join.take_new_groups();
          join.bound();
        } else {
          join.add_rows();
        }
        return Sink::Flow::GoOn;
      },
      [] { return false; });
  two = {};  // a view may run long after the last sample
  join.end();
  take_findings();
  return is_whole;
}

bool Session::State::run_text(TextView& view, const RunControl& control) {
  make_lanes();
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    Lane& one = *lanes[i];
    one.pen = view.fork(lanes.size() > 1 ? &naming : nullptr);
    one.text.emplace(i == 0 ? lane : *one.samples, batches.cgroups(), *one.pen);
    if (options.keeps_callers) one.text->reader().keep_callers();
    if (options.symbols.callers == symbolize::Callers::ByCall) one.text->reader().mark_callers();
  }
  // The text of each chunk.
  struct Part {
    std::size_t lane = 0, begin = 0, end = 0;
  };
  std::vector<Part> parts, ready;
  parts.resize(batch_options.most_items);
  ready.reserve(parts.size());
  // Bounds memory: a sample may have a megabyte of text.
  constexpr std::size_t kChunk = 64, kMostText = std::size_t{8} << 20;  // items, bytes
  std::atomic<std::size_t> chunks{0}, text_size{0};
  const bool is_whole = run_forked(
      control, kChunk,
      [&](std::size_t number, std::span<const BatchItem> items, std::uint64_t first, std::size_t chunk) {
        Lane& one = *lanes[number];
        const std::size_t begin = one.pen->size();
        for (std::size_t i = 0; i < items.size(); ++i) {
          fetch_ahead(items, i);
          one.text->give(items[i]);
        }
        one.note(first);
        parts[chunk] = {number, begin, one.pen->size()};
        chunks.fetch_add(1);
        text_size.fetch_add(one.pen->size() - begin);
      },
      [&](bool is_joined) {
        if (is_joined) {
          ready.assign(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(chunks.exchange(0)));
          for (const auto& one : lanes) one->pen->swap_buffers();
          text_size = 0;
          return Sink::Flow::GoOn;
        }
        for (const Part& part : std::exchange(ready, {}))
          if (view.put(*lanes[part.lane]->pen, part.begin, part.end) == Sink::Flow::Stop)
            return Sink::Flow::Stop;
        return Sink::Flow::GoOn;
      },
      [&] { return text_size.load() > kMostText; });
  for (const Part& part : ready)
    if (view.put(*lanes[part.lane]->pen, part.begin, part.end) == Sink::Flow::Stop) break;
  take_findings();
  return is_whole;
}

// Gives each batch to the sink while the next one is made. Returns whether it came to the end of the capture.
bool Session::State::run(Sink& sink, const RunControl& control) {
  serial.begin(options, sink, merging);
  const bool is_pipe = capture.fixed_header() == nullptr;
  std::optional<format::WorkerPool> reader;
  if (jobs() > 1) reader.emplace(2);
  const bool finds_ahead = can_fork() && !sink.looks_up() && sink.places() != Sink::Places::Functions;
  if (!is_stopped) batches.fill(two[0]);
  for (;;) {
    Batch& batch = two[0];
    const bool reads_on = reader && !batch.is_last && !batch.ends_before_change;
    // Two threads must not use the tables at once, so this batch is resolved before the next one.
    if (finds_ahead && batch.places.empty()) serial.find_places(batch);
    std::optional<format::WorkerPool::Forked> reading;
    if (reads_on) {
      reading.emplace(reader->fork(1, [&](std::size_t, unsigned) -> Result<> {
        batches.fill(two[1]);
        if (finds_ahead) serial.find_places(two[1]);
        return Done{};
      }));
    }
    const Sink::Flow flow = show(batch, control);
    if (reading) static_cast<void>(reading->join());  // no error
    if (flow == Sink::Flow::Stop) {
      is_stopped = is_pipe && next_item < batch.items.size();
      return false;
    }
    if (batch.is_last) return true;
    if (!reads_on) batches.fill(two[1]);
    std::swap(two[0], two[1]);
    next_item = 0;
  }
}

void Session::run(Sink& view, const RunControl& control) {
  State& state = *state_;
  // Of a file, a second run would give no samples. Of a pipe, one run reads the header and another one the
  // rest.
  if (std::exchange(state.has_run, true) && !layout().is_pipe)
    throw std::logic_error("a capture is read once by a session; another one reads it again");
  const Filter& filter = state.options.filter;
  std::optional<NameFilter> names;
  if (filter.looks_at_names()) names.emplace(filter, state.resolver, view);
  Sink& named = names ? *names : view;
  std::optional<NamedCondition> condition;
  if (filter.condition != nullptr && filter.condition->asks_for_names())
    condition.emplace(*filter.condition, state.resolver, named);
  Sink& sink = condition ? static_cast<Sink&>(*condition) : named;
  const Sink::Places places = sink.places();
  const bool has_stacks = std::ranges::any_of(
      events(), [](const format::Event& event) { return event.attr.samples(abi::kSampleCallchain); });
  const bool wants_stacks = state.options.wants_stacks;
  if ((has_stacks && wants_stacks) || places != Sink::Places::Addresses) state.resolver.expect_samples();
  state.merging = {};
  SumView* const sums = state.can_fork() ? view.sums() : nullptr;
  TextView* const text = state.can_fork() ? view.text() : nullptr;
  const bool has_names =
      places == Sink::Places::Names ||
      (places == Sink::Places::Functions && (sums != nullptr || !(has_stacks && wants_stacks)));
  if (has_names)
    state.merging.ask = [&state](const symbolize::Mapping& mapping) {
      return state.resolver.names_of(mapping);
    };
  state.merging.of_chains = places == Sink::Places::Names;
  if (state.merging.of_chains && sums == nullptr) state.stacks.merge_by_frames();
  state.begin(sums == nullptr && text == nullptr && sink.takes_others());
  state.end(sums != nullptr   ? state.run_sums(*sums, control)
            : text != nullptr ? state.run_text(*text, control)
                              : state.run(sink, control));
}

std::uint64_t Session::lost_samples() const { return state_->batches.lost_samples(); }

void Session::report_missing_symbols() {
  if (const std::uint64_t count = state_->lane.unwinder().other_machines(); count > 0)
    state_->diagnostics.add_line(
        format::Damage::Note,
        std::to_string(count) +
            " samples with a copied stack are of a machine whose stacks are not unwound "
            "(those of x86-64, i386 and arm64 are)");
  state_->resolver.report_missing(state_->diagnostics, state_->lane.unwinder().ended_chains());
}

}  // namespace tacho::report
