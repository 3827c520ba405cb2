#include "report/samples/session.h"

#include <algorithm>
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
#include "report/samples/text_lane.h"
#include "report/samples/text_view.h"
#include "symbolize/files/file_access.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Checks --symfs and --kallsyms. Through FileAccess, since a network file system may hang.
Result<> check_symbol_paths(const symbolize::SymbolOptions& symbols) {
  std::error_code ignored;
  symbolize::FileAccess* const access = symbols.name_access != nullptr ? symbols.name_access : symbols.access;
  const std::string& first = symbols.symfs.empty() ? symbols.kallsyms : symbols.symfs;
  const symbolize::ScopedRead looking(first.empty() ? nullptr : access, first);
  if (looking.is_refused()) return Error{first + ": " + access->refusal(first)};
  if (!symbols.symfs.empty() && symbols.symfs != symbolize::kNoFiles &&
      !std::filesystem::is_directory(symbols.symfs, ignored))
    return use_error("--symfs: " + symbols.symfs + " is not a directory");
  if (!symbols.kallsyms.empty() && !std::filesystem::exists(symbols.kallsyms, ignored))
    return use_error("--kallsyms: there is no file " + symbols.kallsyms);
  if (!symbols.kallsyms.empty() && !std::filesystem::is_regular_file(symbols.kallsyms, ignored))
    return use_error("--kallsyms: " + symbols.kallsyms +
                     " is not a regular file; write the symbols to a file and name that");
  return Done{};
}

}  // namespace

struct Session::State {
  State(SessionOptions given, std::unique_ptr<format::Diagnostics> found, format::CaptureReader reader)
      : options(std::move(given)),
        reading_diagnostics(std::move(found)),
        capture(std::move(reader)),
        batches(capture, options.symbols, *reading_diagnostics),
        lane(capture, options.symbols, batches.jit(), batches.cgroups(), found_in_samples),
        resolver(options.symbols, capture.features(), batches.spaces(), batches.jit(),
                 location_table.locations()) {}

  SessionOptions options;
  format::Diagnostics diagnostics;  // what Session::diagnostics() returns
  // Used by the thread that makes batches; then what other threads use.
  alignas(format::kApart) std::unique_ptr<format::Diagnostics> reading_diagnostics;
  format::CaptureReader capture;
  BatchReader batches;
  alignas(format::kApart) format::Diagnostics found_in_samples;
  LocationTable location_table;
  StackTable stacks{location_table};
  HookFunctions hooks;
  bool knows_hooks = false;
  SampleLane lane;
  SerialLane serial{lane, location_table, stacks};
  Resolver resolver;
  std::optional<format::WorkerPool> pool;
  bool has_run = false;
  std::shared_ptr<SampleCondition> condition;  // until bind_condition(), which moves it to the filter
  FunctionMerging merging;
  alignas(format::kApart) std::mutex symbols_mutex;
  alignas(format::kApart) FunctionMerging shared_merging;  // `merging` for lanes, with the mutex
  std::optional<LaneFilter> filter;                        // of the run, for `lane`
  BatchOptions batch_options;
  // The current and the next batch. Of a pipe, a run that stops after the header leaves the rest of its batch
  // to the next run.
  Batch batch, next_batch;
  std::size_t next_item = 0;
  bool was_given = false;  // the next item, to the sink that stopped there

  unsigned jobs() const {
    const bool is_serial = options.in_step || capture.fixed_header() == nullptr || capture.follows();
    return is_serial ? 1 : options.jobs != 0 ? options.jobs : format::usual_workers();
  }
  // A thread of a parallel view. The first one uses the session's SampleLane.
  struct Lane {
    SampleLane* samples = nullptr;
    const format::Diagnostics* found = nullptr;
    std::uint64_t first_found = ~std::uint64_t{0};  // first item of the earliest chunk with a finding
    format::Diagnostics own_diagnostics;
    std::optional<SampleLane> own_samples;
    std::optional<LaneFilter> own_filter;
    // Of a TextView.
    std::unique_ptr<Pen> pen;
    std::optional<TextLane> text;
    // Call it after each chunk. `item`: index of the chunk's first item.
    void note_findings(std::uint64_t item) {
      if (first_found == ~std::uint64_t{0} && !found->findings().empty()) first_found = item;
    }
  };
  std::vector<std::unique_ptr<Lane>> lanes;

  bool can_run_parallel() const;
  void find_hooks();
  void make_lanes();
  void take_findings();
  template <class Add, class Collect, class Consume, class IsFull>
  bool read_batches(const RunControl& control, std::size_t size, Add&& add, Collect&& collect,
                    Consume&& consume, IsFull&& is_full);
  bool run_sums(SumView& view, const RunControl& control);
  bool run_ordered(TextView& view, const RunControl& control);
  bool run_ordered(Sink& sink, const RunControl& control);
  void begin(bool wants_others);
  void end(bool is_at_end);
  void set_merging(Sink::MergeBy merge_by, bool has_stacks, bool is_sum);
};

Result<Session> Session::open(SessionOptions options) {
  auto found = std::make_unique<format::Diagnostics>();
  auto capture = format::CaptureReader::open(options.input, *found, options.capture);
  if (!capture) return std::move(capture.error());
  auto& symbols = options.symbols;
  if (auto checked = check_symbol_paths(symbols); !checked) return std::move(checked.error());
  Filter& filter = options.filter;
  if (!filter.time_text.empty()) {
    const format::EventSet& events = capture->events();
    const auto has_time = [](const format::Event& event) { return event.attr.samples(abi::kSampleTime); };
    if (!events.empty() && std::ranges::none_of(events, has_time))
      return use_error("--time: the samples of this capture have no times");
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
  state->diagnostics.take_findings(*state->reading_diagnostics);
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
  state_->options.filter.condition = std::move(state_->condition);
  state_->condition = nullptr;
  return Done{};
}

Result<> Session::check_events() const {
  const auto& asked = state_->options.filter.events;
  if (asked.empty()) return Done{};
  const std::vector<std::string> names = event_names(events());
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
void Session::use_last_names() { state_->batches.use_last_names(); }

void Session::State::begin(bool wants_others) {
  const bool is_pipe = capture.fixed_header() == nullptr;
  batch_options = {.filter = &options.filter,
                   .leaves_out_guests = options.leaves_out_guests,
                   .wants_others = wants_others};
  // The header of a pipe grows between its records.
  if (is_pipe) batch_options.max_items = 1;
  batches.begin(batch_options);
  if (options.keeps_addresses) location_table.keep_addresses();
  stacks.reader().use(options, options.symbols);
  location_table.merge_by_name(&merging);
  filter.emplace(options.filter, resolver, &symbols_mutex);
  lane.begin(options, hooks, *filter);
}

void Session::State::end(bool is_at_end) {
  const bool is_pipe = capture.fixed_header() == nullptr;
  if (is_at_end || !is_pipe) batches.report_losses();
  if (is_at_end) batches.end_replay();
  location_table.end_lookups();
  stacks.end_lookups();
  batches.use_last_names();
  diagnostics.take_findings(*reading_diagnostics);
  diagnostics.take_findings(found_in_samples);
}

// Once the kernel's mapping is known. Not while another thread looks up names.
void Session::State::find_hooks() {
  if (options.keeps_hooks || !options.wants_stacks || knows_hooks || !resolver.knows_kernel()) return;
  knows_hooks = true;
  const bool has_any = std::ranges::any_of(capture.events(), [this](const format::Event& event) {
    const bool has_chain = event.attr.samples(abi::kSampleCallchain) ||
                           (options.wants_payload_stacks && event.attr.is_bpf_output());
    return has_chain && is_taken_by_hook(event.attr);
  });
  if (has_any) hooks = HookFunctions(resolver.kernel_functions(is_hook_function));
}

// Whether samples are independent of each other: no differences of counter values.
bool Session::State::can_run_parallel() const {
  return !options.in_step && capture.fixed_header() != nullptr && !capture.follows() &&
         std::ranges::none_of(capture.events(), [](const format::Event& event) {
           return event.attr.samples(abi::kSampleRead);
         });
}

// Only one lane if stack copies are unwound: the unwinder's tables are not thread-safe.
void Session::State::make_lanes() {
  const bool unwinds = std::ranges::any_of(
      capture.events(), [](const format::Event& event) { return event.attr.samples(abi::kSampleRegsUser); });
  const unsigned count = unwinds && options.wants_stacks ? 1 : jobs();
  lanes.clear();
  for (unsigned i = 0; i < count; ++i) {
    Lane& made = *lanes.emplace_back(std::make_unique<Lane>());
    made.found = i == 0 ? &found_in_samples : &made.own_diagnostics;
    made.samples = i == 0 ? &lane
                          : &made.own_samples.emplace(capture, options.symbols, batches.jit(),
                                                      batches.cgroups(), made.own_diagnostics);
    if (i == 0) continue;
    made.own_filter.emplace(options.filter, resolver, &symbols_mutex);
    made.samples->begin(options, hooks, *made.own_filter);
  }
}

// Collects the lanes' diagnostics in the order of the samples.
void Session::State::take_findings() {
  lanes[0]->own_diagnostics.take_findings(found_in_samples);
  std::ranges::sort(lanes, {}, &Lane::first_found);
  for (const auto& one : lanes) found_in_samples.take_findings(one->own_diagnostics);
}

// Reads the capture batch by batch, to its end (true) or until the run is stopped. One thread makes the next
// batch while lanes process this one, in chunks of `size`: add(lane, samples, index of the first one, index
// of the chunk). When all have stopped, collect() takes their results; while they are at the next batch,
// consume() processes these results on the calling thread. If is_full(), lanes stop in the middle of a batch,
// and go on with it after collect(). Results that were collected before a stop and not consumed are left to
// the caller. Without lanes, consume() processes the batch itself.
template <class Add, class Collect, class Consume, class IsFull>
bool Session::State::read_batches(const RunControl& control, std::size_t size, Add&& add, Collect&& collect,
                                  Consume&& consume, IsFull&& is_full) {
  format::WorkerPool workers(jobs());
  const auto stops = [&] { return consume() == Sink::Flow::Stop || control.cancel.stop_requested(); };
  if (!was_given) batches.fill(batch);
  bool has_next = false;
  std::size_t done = 0;  // items of the batch
  for (;;) {
    find_hooks();
    const bool reads_on = workers.workers() > 1 && !batch.is_last && !batch.ends_before_change;
    const std::span<const BatchRecord> items = std::span(batch.items).subspan(done);
    const std::size_t chunks = (items.size() + size - 1) / size;
    std::atomic<std::size_t> next_chunk{0};
    const auto run_lane = [&](std::size_t lane_index) {
      while (!is_full()) {
        const std::size_t chunk = next_chunk++;
        if (chunk >= chunks) break;
        const std::size_t begin = chunk * size;
        add(lane_index, items.subspan(begin, std::min(size, items.size() - begin)),
            batch.first + done + begin, chunk);
      }
    };
    // Task 0 is the longest: the next batch.
    auto forked = workers.fork(1 + lanes.size(), [&](std::size_t task, unsigned) -> Result<> {
      if (task > 0) run_lane(task - 1);
      if (task == 0 && reads_on && !has_next) batches.fill(next_batch);
      return Done{};
    });
    if (control.progress && batch.bytes_read != 0)
      control.progress({batch.bytes_read, capture.layout().file_size});
    const bool is_stopped = stops();   // of the first batch of lanes: nothing
    static_cast<void>(forked.join());  // no error
    if (is_stopped || control.cancel.stop_requested()) return false;
    collect();
    has_next = reads_on;
    done += lanes.empty() ? items.size() : std::min(items.size(), std::min(next_chunk.load(), chunks) * size);
    if (done < batch.items.size()) continue;
    if (batch.is_last) return true;
    if (!reads_on) {
      // The next record may change kernel mappings or JIT code: samples before it are symbolized first.
      if (stops()) return false;
      batches.fill(next_batch);
    }
    std::swap(batch, next_batch);
    next_item = done = 0;
    has_next = false;
  }
}

bool Session::State::run_sums(SumView& view, const RunControl& control) {
  make_lanes();
  const SumShape shape = view.shape();
  shared_merging = merging;
  shared_merging.mutex = &symbols_mutex;
  std::vector<std::unique_ptr<SumLane>> sums;
  for (const auto& one : lanes)
    sums.push_back(std::make_unique<SumLane>(*one->samples, options.symbols, options, shape, shared_merging));
  const bool lanes_look_up_names = shape.merge_by != Sink::MergeBy::Address || lane.tests_samples();
  SumJoin join(sums, location_table, stacks, view, lanes_look_up_names ? &symbols_mutex : nullptr);
  constexpr std::size_t kChunk = 512;  // items
  const bool is_at_end = read_batches(
      control, kChunk,
      [&](std::size_t lane_index, std::span<const BatchRecord> items, std::uint64_t first, std::size_t) {
        sums[lane_index]->add_samples(items, first);
        lanes[lane_index]->note_findings(first);
      },
      [&] { join.collect(); },
      [&] {
        join.add_groups();
        return Sink::Flow::Continue;
      },
      [] { return false; });
  batch = {};  // a view may run long after the last sample
  next_batch = {};
  join.end();
  take_findings();
  return is_at_end;
}

bool Session::State::run_ordered(TextView& view, const RunControl& control) {
  make_lanes();
  for (const auto& one : lanes) {
    one->pen = view.fork(lanes.size() > 1 ? &symbols_mutex : nullptr);
    one->text.emplace(*one->samples, *one->pen);
    one->text->reader().use(options, options.symbols);
  }
  // The text of each chunk.
  struct Piece {
    std::size_t lane = 0, begin = 0, end = 0;
  };
  std::vector<Piece> pieces(batch_options.max_items), collected;
  // Bounds memory: a sample may have a megabyte of text.
  constexpr std::size_t kChunk = 64, kMaxTextSize = std::size_t{8} << 20;  // items, bytes
  std::atomic<std::size_t> chunks{0}, text_size{0};
  const auto consume = [&] {
    for (const Piece& piece : std::exchange(collected, {}))
      if (view.put(*lanes[piece.lane]->pen, piece.begin, piece.end) == Sink::Flow::Stop)
        return Sink::Flow::Stop;
    return Sink::Flow::Continue;
  };
  const bool is_at_end = read_batches(
      control, kChunk,
      [&](std::size_t lane_index, std::span<const BatchRecord> items, std::uint64_t first,
          std::size_t chunk) {
        Lane& one = *lanes[lane_index];
        const std::size_t begin = one.pen->size();
        for (const BatchRecord& item : items) one.text->give(item);
        one.note_findings(first);
        pieces[chunk] = {lane_index, begin, one.pen->size()};
        chunks.fetch_add(1);
        text_size.fetch_add(one.pen->size() - begin);
      },
      [&] {
        collected.assign(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(chunks.exchange(0)));
        for (const auto& one : lanes) one->pen->swap_buffers();
        text_size = 0;
      },
      consume, [&] { return text_size.load() > kMaxTextSize; });
  static_cast<void>(consume());  // of the last batch
  take_findings();
  return is_at_end;
}

// One lane, on the calling thread.
bool Session::State::run_ordered(Sink& sink, const RunControl& control) {
  serial.begin(options, sink, merging);
  lanes.clear();
  const auto give_batch = [&] {
    for (; next_item < batch.items.size(); ++next_item) {
      if (control.cancel.stop_requested()) return Sink::Flow::Stop;
      if (serial.give(batch.items[next_item], std::exchange(was_given, false)) == Sink::Flow::Stop)
        return Sink::Flow::Stop;
    }
    return Sink::Flow::Continue;
  };
  const bool is_at_end = read_batches(
      control, 1, [](auto&&...) {}, [] {}, give_batch, [] { return false; });
  const bool is_pipe = capture.fixed_header() == nullptr;
  was_given = !is_at_end && is_pipe && next_item < batch.items.size();
  return is_at_end;
}

// Addresses are merged by function as the view allows: its own form (sums) does it for samples with stacks
// too.
void Session::State::set_merging(Sink::MergeBy merge_by, bool has_stacks, bool is_sum) {
  merging = {};
  if (merge_by == Sink::MergeBy::Function && has_stacks && !is_sum) merge_by = Sink::MergeBy::Address;
  merging.merge_by = merge_by;
  if (merge_by != Sink::MergeBy::Address)
    merging.symbols_of = [this](const symbolize::Mapping& mapping) { return resolver.names_of(mapping); };
  if (merges_frames(merge_by) && !is_sum) stacks.merge_by_frames();
}

void Session::run(Sink& view, const RunControl& control) {
  State& state = *state_;
  // Of a file, a second run would give no samples. Of a pipe, one run reads the header and another one the
  // rest.
  if (std::exchange(state.has_run, true) && !layout().is_pipe)
    throw std::logic_error("a capture is read once by a session; another one reads it again");
  const Sink::MergeBy merge_by = view.merge_by();
  const bool has_stacks =
      state.options.wants_stacks && std::ranges::any_of(events(), [](const format::Event& event) {
        return event.attr.samples(abi::kSampleCallchain);
      });
  if (has_stacks || merge_by != Sink::MergeBy::Address) state.resolver.expect_samples();
  SumView* const sums = state.can_run_parallel() ? view.sum_view() : nullptr;
  TextView* const text = state.can_run_parallel() ? view.text_view() : nullptr;
  state.set_merging(merge_by, has_stacks, sums != nullptr);
  state.begin(sums == nullptr && text == nullptr && view.takes_non_samples());
  bool is_at_end = false;
  if (sums != nullptr)
    is_at_end = state.run_sums(*sums, control);
  else if (text != nullptr)
    is_at_end = state.run_ordered(*text, control);
  else
    is_at_end = state.run_ordered(view, control);
  state.end(is_at_end);
}

std::uint64_t Session::lost_samples() const { return state_->batches.lost_samples(); }

void Session::report_missing_symbols() {
  if (const std::uint64_t count = state_->lane.unwinder().unsupported_samples(); count > 0)
    state_->diagnostics.add_line(
        format::Damage::Note,
        std::to_string(count) +
            " samples with a copied stack are of a machine whose stacks are not unwound "
            "(those of x86-64, i386 and arm64 are)");
  state_->resolver.report_missing(state_->diagnostics, state_->lane.unwinder().ended_chains());
}

}  // namespace tacho::report
