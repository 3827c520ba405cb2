#include "report/samples/session.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "format/base/large_pages.h"
#include "report/samples/event_choice.h"
#include "report/samples/name_filter.h"
#include "symbolize/files/file_gate.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// Hands everything on at once, on the thread that reads.
class InStep : public Outlet {
 public:
  InStep(Sink& sink, std::uint64_t bytes_total, const RunControl& control)
      : sink_(&sink), needs_(sink.needs()), bytes_total_(bytes_total), control_(&control) {}

  Needs needs() const override { return needs_; }
  Reads reads() const override { return sink_->reads(); }
  Stacks stacks() const override { return sink_->stacks(); }
  Flow on_sample(const ResolvedSample& sample) override {
    return control_->cancel.stop_requested() ? Flow::Stop : sink_->on_sample(sample);
  }
  Flow on_other(const OtherEvent& event) override {
    return needs_ == Needs::Everything ? sink_->on_other(event) : Flow::GoOn;
  }
  Flow on_progress(std::uint64_t bytes) override {
    if (control_->progress) control_->progress({bytes, bytes_total_});
    return control_->cancel.stop_requested() ? Flow::Stop : Flow::GoOn;
  }
  void wait_until_shown() override {}

 private:
  Sink* sink_;
  Needs needs_;
  std::uint64_t bytes_total_;
  const RunControl* control_;
};

// A folder of a file system that does not answer keeps whoever looks at it.
Result<> check_places(const symbolize::SymbolOptions& symbols) {
  std::error_code ignored;
  symbolize::FileGate* const gate = symbols.name_gate != nullptr ? symbols.name_gate : symbols.gate;
  const std::string& first = symbols.symfs.empty() ? symbols.kallsyms : symbols.symfs;
  const symbolize::AtFile looking(first.empty() ? nullptr : gate, first);
  if (looking.is_refused()) return Error{first + ": " + gate->lack(first)};
  if (!symbols.symfs.empty() && symbols.symfs != symbolize::kNoFiles &&
      !std::filesystem::is_directory(symbols.symfs, ignored))
    return use_error("--symfs: " + symbols.symfs + " is no folder");
  if (!symbols.kallsyms.empty() && !std::filesystem::exists(symbols.kallsyms, ignored))
    return use_error("--kallsyms: there is no file " + symbols.kallsyms);
  return Done{};
}

}  // namespace

struct Session::State {
  explicit State(SessionOptions given) : options(std::move(given)), spaces(options.symbols) {}

  SessionOptions options;
  format::Diagnostics diagnostics;  // the caller's
  // What the reading threads have of their own, and what they share as the types say.
  alignas(format::kApart) format::Diagnostics found_by_reading;
  alignas(format::kApart) format::Diagnostics found_by_replaying;
  SharedSpaces spaces;
  std::optional<SampleReader> reader;
  alignas(format::kApart) std::optional<Resolver> resolver;
  std::uint64_t lost_samples = 0;
  std::optional<format::WorkerPool> pool;
  bool has_run = false;
  std::shared_ptr<SampleCondition> condition;  // until it is bound to the events: then it is the filter's

  bool can_run_ahead(const Sink& sink) const;
};

Result<Session> Session::open(SessionOptions options) {
  auto state = std::make_unique<State>(std::move(options));
  auto capture =
      format::CaptureReader::open(state->options.input, state->found_by_reading, state->options.capture);
  if (!capture) return std::move(capture.error());
  auto& symbols = state->options.symbols;
  if (auto checked = check_places(symbols); !checked) return std::move(checked.error());
  Filter& filter = state->options.filter;
  if (!filter.time_text.empty()) {
    auto times = parse_times(filter.time_text, capture->features().environment);
    if (!times) return std::move(times.error());
    filter.times = std::move(*times);
  }
  const char* const home = std::getenv("HOME");
  if (symbols.build_id_dir.empty() && symbols.symfs.empty() && home != nullptr) {
    symbols.build_id_dir = std::string(home) + "/.debug";  // where perf puts what it records
  }
  state->condition = std::move(filter.condition);
  filter.condition = nullptr;
  state->reader.emplace(std::move(*capture), symbols, state->spaces, state->found_by_reading,
                        state->found_by_replaying);
  state->spaces.use(state->reader->capture().features());
  state->resolver.emplace(symbols, state->reader->capture().features(), state->spaces.kernel(),
                          state->spaces.jit(), state->reader->locations());
  state->diagnostics.take(state->found_by_reading);
  Session session(std::move(state));
  if (session.layout().is_pipe) return session;
  if (auto checked = session.check_events(); !checked) return std::move(checked.error());
  return session;
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const format::EventSet& Session::events() const { return state_->reader->capture().events(); }
const format::Features& Session::features() const { return state_->reader->capture().features(); }
const format::CaptureLayout& Session::layout() const { return state_->reader->capture().layout(); }
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

bool Session::follows() const { return state_->reader->capture().follows(); }

const symbolize::JitCode& Session::jit_code() const { return state_->spaces.jit(); }

format::WorkerPool& Session::pool() {
  if (!state_->pool)
    state_->pool.emplace(state_->options.jobs != 0 ? state_->options.jobs : format::usual_workers());
  return *state_->pool;
}

Resolver& Session::resolver() { return *state_->resolver; }

// A pipe has no fixed header, so it is read in step; so is what grows, whose reader waits on the showing
// thread. So are samples without call chains: handing one over costs as much as showing it.
bool Session::State::can_run_ahead(const Sink& sink) const {
  const format::CaptureReader& capture = reader->capture();
  const bool has_stacks = std::ranges::any_of(
      capture.events(), [](const format::Event& event) { return event.attr.samples(abi::kSampleCallchain); });
  return !options.in_step && !options.condition_asks_for_names && sink.needs() == Sink::Needs::Names &&
         has_stacks && options.wants_stacks && capture.fixed_header() != nullptr && !capture.follows() &&
         std::thread::hardware_concurrency() > 1;
}

void Session::run(Sink& view, const RunControl& control) {
  // A second run of a file would give nothing, as if it had no samples. A pipe's head is one run, its rest
  // another.
  if (std::exchange(state_->has_run, true) && !layout().is_pipe)
    throw std::logic_error("a capture is read once by a session; another one reads it again");
  SampleReader& reader = *state_->reader;
  const Filter& filter = state_->options.filter;
  std::optional<NameFilter> names;
  if (filter.looks_at_names()) names.emplace(filter, *state_->resolver, view);
  Sink& named = names ? *names : view;
  std::optional<NamedCondition> condition;
  if (filter.condition != nullptr && filter.condition->asks_for_names())
    condition.emplace(*filter.condition, *state_->resolver, named);
  Sink& sink = condition ? static_cast<Sink&>(*condition) : named;
  const bool can_run_ahead = state_->can_run_ahead(sink);
  if (can_run_ahead || sink.places() != Sink::Places::Addresses) state_->resolver->expect_samples();
  NamesOf names_of;
  const Sink::Places places = sink.places();
  if (places == Sink::Places::Names || (places == Sink::Places::Functions && !can_run_ahead))
    names_of.ask = [this](const symbolize::Mapping& mapping) { return state_->resolver->names_of(mapping); };
  names_of.of_chains = names_of.joins_unknown = places == Sink::Places::Names;
  bool ran_ahead = false;
  if (can_run_ahead) {
    std::optional<Resolver::Loan> loan;
    if (places == Sink::Places::Names) loan.emplace(*state_->resolver);
    ran_ahead = run_ahead(reader, reader.capture().fixed_header(), state_->options, sink, control, names_of);
  }
  if (!ran_ahead) {
    InStep outlet(sink, layout().file_size, control);
    reader.read(state_->options, outlet, std::move(names_of));
  }
  reader.settle_names();
  state_->lost_samples = reader.lost_samples();
  state_->diagnostics.take(state_->found_by_reading);
  state_->diagnostics.take(state_->found_by_replaying);
}

std::uint64_t Session::lost_samples() const { return state_->lost_samples; }

void Session::report_missing_symbols() {
  if (const std::uint64_t count = state_->reader->not_unwound(); count > 0)
    state_->diagnostics.add_line(
        format::Damage::Note,
        std::to_string(count) +
            " samples with a copied stack are of a machine whose stacks are not unwound "
            "(those of x86-64, i386 and arm64 are)");
  state_->resolver->report_missing(state_->diagnostics, state_->reader->ended_chains());
}

}  // namespace tacho::report
