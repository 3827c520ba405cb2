#include "report/views/folded/command_folded.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <unordered_map>

#include "report/decode/event_name.h"
#include "report/decode/payload.h"
#include "report/filter_options.h"
#include "report/perf_text/frame_text.h"
#include "report/perf_text/line_start.h"
#include "report/samples/address_table.h"
#include "report/samples/by_number.h"
#include "report/samples/filter.h"
#include "report/views/folded/folded.h"
#include "report/views/folded/folded_inlines.h"
#include "report/views/folded/folded_waits.h"
#include "report/wait_options.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::string_view kBlanks = " \t\n\v\f\r";
constexpr Fields kLineFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso};

struct Options {
  ReadingOptions reading;
  FoldOptions fold;
  std::string event_filter;  // empty: the first event met
  std::string weight;        // empty: the field tagged role:weight, else the period
  bool expands_inlines = false;
  WaitOptions waits;
  Context context = Context::None;
};

constexpr std::string_view kNamesAsPerf =
    "Without --inline, inlined functions that have no linker's name (extern \"C\" in C++) are named as in "
    "perf's\n"
    "text: the first one met is called by the function around it.\n\n";

// In place of the general --inline: here every stack's inlined calls are asked for, as with the program whose
// option it is.
void add_inline_options(std::vector<cli::Option>& rows, Options& options) {
  const auto general = std::ranges::find(rows, "--inline", &cli::Option::names);
  *general = {"--inline", cli::Takes::Nothing, "",
              "calls that were inlined, in every stack, and whole names with parameters, as "
              "stackcollapse-perf.pl --inline has them (default: only in stacks that are unwound here)",
              [&options](std::string_view) -> Result<> {
                options.expands_inlines = true;
                options.reading.session.symbols.inlines = symbolize::Inlines::All;
                options.reading.session.symbols.demangle = symbolize::Demangle::Whole;
                return Done{};
              }};
  rows.push_back({"--context", cli::Takes::Nothing, "", "with --inline: names end with their file and line",
                  [&options](std::string_view) -> Result<> {
                    options.context = Context::FileAndLine;
                    return Done{};
                  }});
}

// stackcollapse-perf.pl's --pid and --tid have no value; perf's choose samples by one.
Result<> part_or_choose(std::string_view name, std::string_view text, bool& parts,
                        std::vector<std::uint32_t>& list) {
  if (text.empty()) {
    parts = true;
    return Done{};
  }
  auto numbers = parse_number_list(name, text);
  if (!numbers) return std::move(numbers.error());
  list = std::move(*numbers);
  return Done{};
}

cli::CommandLine describe(Options& options) {
  auto line =
      command_line("folded",
                   "Prints each distinct stack once with its weight, root first, as flamegraph.pl reads it: "
                   "tacho folded -i FILE | flamegraph.pl > flame.svg. The lines are those that "
                   "stackcollapse-perf.pl makes of perf's text.");
  line.epilog = std::string(kNamesAsPerf) + line.epilog;
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  add_inline_options(rows, options);
  FoldOptions& fold = options.fold;
  rows.push_back({"--all", cli::Takes::Nothing, "", "mark kernel frames with _[k] and JIT ones with _[j]",
                  [&fold](std::string_view) -> Result<> {
                    fold.marks_kernel = fold.marks_jit = true;
                    return Done{};
                  }});
  rows.push_back(flag("--kernel", "mark kernel frames with _[k]", fold.marks_kernel));
  rows.push_back(flag("--jit", "mark frames of JIT compilers with _[j]", fold.marks_jit));
  rows.push_back(flag("--addrs", "show the address of frames without a name", fold.shows_addresses));
  Filter& filter = options.reading.session.filter;
  rows.push_back(
      {"--pid", cli::Takes::Optional, "LIST",
       "keep processes apart (as COMM-?: perf's text names threads only); --pid=LIST: only samples "
       "of these processes",
       [&fold, &filter](std::string_view text) {
         return part_or_choose("--pid", text, fold.shows_pid, filter.pids);
       }});
  rows.push_back({"--tid", cli::Takes::Optional, "LIST",
                  "keep threads apart (as COMM-?/TID); --tid=LIST: only samples of these threads",
                  [&fold, &filter](std::string_view text) {
                    return part_or_choose("--tid", text, fold.shows_tid, filter.tids);
                  }});
  rows.push_back({"--event-filter,--event", cli::Takes::Value, "NAME",
                  "which event's samples (default: the first one met, and those of all tracepoints)",
                  [&options](std::string_view text) -> Result<> {
                    options.event_filter = text;
                    return Done{};
                  }});
  add_filter_options(rows, filter, {"--pid", "--tid"});
  rows.push_back(
      {"--weight", cli::Takes::Value, "WHAT",
       "what a stack's number adds up: period (a period of 0 counts 1), samples, or a field of the payload "
       "or tracepoint (default: the payload's field tagged role:weight, else period)",
       [&options](std::string_view text) -> Result<> {
         options.weight = text;
         return Done{};
       }});
  add_wait_options(rows, options.waits);
  return line;
}

class FoldedSink : public Sink {
 public:
  FoldedSink(Session& session, const Options& options)
      : session_(&session),
        options_(&options),
        schemas_(session.events(), session.features()),
        folded_(options.reading.names),
        filter_(options.event_filter) {}

  Needs needs() const override { return Needs::Names; }

  Flow on_sample(const ResolvedSample& sample) override {
    // perf pads the name of a sample without call chain, and a line that begins with a blank is none to fold.
    if (sample.stack == nullptr || !takes_event(sample)) return Flow::GoOn;
    const Start& start = start_of(sample);
    if (!start.is_seen) return Flow::GoOn;
    const auto weight = weight_of(sample);
    if (!weight) return Flow::GoOn;
    const std::uint32_t row = row_of(start, *sample.stack);
    folded_.add(row, *weight);
    return Flow::GoOn;
  }

  const FoldedStacks& folded() const { return folded_; }
  std::uint64_t unreadable_weights() const { return unreadable_weights_; }

  // --event-filter names no event of the capture; known once the capture was read.
  Result<> check_filter() {
    learn_events();
    if (options_->event_filter.empty()) return Done{};
    std::vector<std::string> names;
    for (const EventFacts& facts : facts_) names.push_back(facts.name);
    if (std::ranges::find(names, options_->event_filter) != names.end()) return Done{};
    std::string known;
    for (const std::string& name : names) known.append(known.empty() ? "" : ", ").append(name);
    return use_error("--event-filter: there is no event '" + options_->event_filter +
                     "'; the capture has: " + known);
  }

  // What was decided without being asked for, and why there may be no stacks.
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    std::string taken, left_out, weights;
    std::size_t several = 0;
    for (const EventFacts& facts : facts_) {
      if (!facts.has_stacks) continue;
      const bool is_taken = facts.is_taken.value_or(false);
      std::string& list = is_taken ? taken : left_out;
      list.append(list.empty() ? "'" : ", '").append(printable(facts.name)).append("'");
      several += is_taken ? 1 : 0;
      if (facts.weight != nullptr && is_taken)
        weights.append(weights.empty() ? "" : ", ").append(printable(facts.weight->name));
    }
    const bool is_chosen = options_->event_filter.empty();
    if (folded_.empty() && (!is_chosen || left_out.empty())) {
      notes.push_back(is_chosen ? "no sample has a stack; record with -g to have them"
                                : "no sample of '" + printable(filter_) +
                                      "' has a stack; record with -g to have them");
    }
    if (is_chosen && !left_out.empty() && taken.empty()) {
      notes.push_back("left out the samples of " + left_out +
                      ", which tell who ended waits; --event-filter NAME takes them");
    } else if (is_chosen && !left_out.empty()) {
      notes.push_back("took the samples of " + taken + " and left out those of " + left_out +
                      "; --event-filter NAME takes another event");
    } else if (is_chosen && several > 1) {
      notes.push_back("added up the samples of " + taken + "; --event-filter NAME takes one event");
    }
    if (!weights.empty())
      notes.push_back("stacks are weighed by " + weights +
                      ", as the event says (role:weight); --weight period or samples weighs them otherwise");
    return notes;
  }

 private:
  struct Start {
    bool is_usual = false;  // the name: one that perf's line shows as it is
    bool is_seen = false, is_java = false;
    std::uint32_t name = 0;
  };
  using StartKey = std::pair<const char*, std::uint32_t>;  // the name's bytes, and the tid where it matters
  struct StartHash {
    RowHash hash;
    std::size_t operator()(const StartKey& key) const noexcept {
      return hash(reinterpret_cast<std::uintptr_t>(key.first), key.second);
    }
  };

  // What decides whether an event's samples are taken.
  struct EventFacts {
    std::string name;
    bool is_told_by_line = false;
    const PayloadField* weight = nullptr;  // what stacks are weighed by when nobody says
    bool tells_wakes = false;              // who ended waits, not what was waited for
    std::optional<bool> is_taken;          // once that is known for good
    bool has_stacks = false;
  };

  // The names at a place, outermost first: mostly one, which stands here itself; several stand in several_.
  struct LocationNames {
    static constexpr std::uint32_t kNotMade = ~std::uint32_t{0};
    std::uint32_t count = kNotMade;
    std::uint32_t first = 0;  // the name, or where in several_ they begin
  };

  // A line that ends with the event's name can be told by it; one with text behind (tracepoints) or without a
  // time cannot, and is taken whatever the event.
  void learn_events() {
    while (facts_.size() < session_->events().size()) {
      const format::Event& event = session_->events()[facts_.size()];
      const std::string name = event_name(event, session_->features());
      const bool is_told = event.attr.type != abi::kTracepoint && event.attr.samples(abi::kSampleTime) &&
                           name.find_first_of(kBlanks) == std::string::npos;
      const std::size_t i = facts_.size();
      const bool wakes = is_told && field_with(i, "wakes");
      const bool waits = field_with(i, "queued") || field_with(i, "stack") || field_with(i, "weight");
      has_waits_ |= is_told && waits && !wakes;
      const PayloadField* const weight = options_->weight.empty() ? field_with(i, "weight") : nullptr;
      facts_.push_back({name, is_told, weight, wakes, std::nullopt, false});
    }
  }
  const PayloadField* field_with(std::size_t event, std::string_view role) {
    const PayloadSchema* const schema = schemas_.of(event);
    if (schema == nullptr) return nullptr;
    const auto field = std::ranges::find(schema->fields, role, &PayloadField::role);
    return field == schema->fields.end() ? nullptr : &*field;
  }
  bool takes_event(const ResolvedSample& sample) {
    learn_events();
    EventFacts& facts = facts_[sample.event_index];
    facts.has_stacks = true;
    if (!facts.is_taken) {
      const bool is_first = options_->event_filter.empty() && filter_.empty();
      if (is_first && facts.is_told_by_line && !(facts.tells_wakes && has_waits_)) filter_ = facts.name;
      facts.is_taken = (options_->event_filter.empty() && !facts.is_told_by_line) || facts.name == filter_;
    }
    return *facts.is_taken;
  }

  const Start& start_of(const ResolvedSample& sample) {
    const StartKey key{sample.comm.data(), options_->fold.shows_tid ? sample.tid() : 0};
    RecentStart& recent = recent_starts_[start_hash_(key) % recent_starts_.size()];
    if (recent.start == nullptr || recent.key != key) {
      const auto [entry, is_new] = starts_.try_emplace(key);
      if (is_new) {
        entry->second.is_usual =
            sample.comm.size() >= 2 && sample.comm.find_first_of(kBlanks) == std::string_view::npos;
      }
      recent = {key, &entry->second};
    }
    Start& start = *recent.start;
    const bool is_usual = start.is_usual && static_cast<std::int32_t>(sample.tid()) >= 0;
    if (start.is_seen && is_usual) return start;
    FoldedStart parsed{std::string(sample.comm), std::to_string(sample.tid())};
    // An unusual name is taken apart as it stands in perf's line, with all that follows it.
    const bool is_raw = options_->reading.names == Names::Raw;
    if (!is_usual && !(is_raw ? fold_last_start : fold_start)(first_line(sample), parsed)) {
      start.is_seen = false;
      return start;
    }
    std::string name = parsed.comm;
    if (options_->fold.shows_tid) {
      name += "-?/" + parsed.tid;
    } else if (options_->fold.shows_pid) {
      name += "-?";
    }
    std::ranges::replace(name, ' ', '_');
    start.is_seen = true;
    start.is_java = name.starts_with("java");
    start.name = folded_.name(name);
    return start;
  }

  // A stack that comes again, mostly with the name that it came with first, costs one look into an array.
  std::uint32_t row_of(const Start& start, const Stack& stack) {
    FirstRow& first = first_rows_[stack.number];
    if (first.row == IndexTable::kNone) {
      first = {start.name, make_row(start, stack)};
      return first.row;
    }
    if (first.name == start.name) return first.row;
    return other_rows_.find_or_make(start.name, stack.number, [&] { return make_row(start, stack); });
  }
  std::uint32_t make_row(const Start& start, const Stack& stack) {
    const std::vector<std::uint32_t>& frames = frames_of(stack, start.is_java);
    stack_.assign(1, start.name);
    stack_.insert(stack_.end(), frames.begin(), frames.end());
    return folded_.row_of(stack_);
  }

  std::string first_line(const ResolvedSample& sample) const {
    const auto& attr = sample.event().attr;
    Fields fields{Field::Comm, Field::Tid};
    if (attr.samples(abi::kSampleCpu)) fields.add(Field::Cpu);
    if (attr.samples(abi::kSampleTime)) fields.add(Field::Time);
    LineStart start{sample.comm,      sample.pid(),     sample.tid(),       sample.raw->cpu,
                    sample.raw->time, sample.raw->misc, abi::kRecordSample, false};
    TextBuffer line;
    TimeText times(TimeDigits::Microseconds, TimeBase::Clock, std::nullopt);
    write_line_start(line, fields, start, times);
    if (attr.type != abi::kTracepoint) line.decimal(sample.period, 10);
    line.text(" " + facts_[sample.event_index].name + ": ");
    return std::string(line.view());
  }

  std::optional<std::uint64_t> weight_of(const ResolvedSample& sample) {
    if (options_->weight == "samples") return 1;
    const EventFacts& facts = facts_[sample.event_index];
    if (facts.weight != nullptr) return field_weight(*facts.weight, sample);
    if (options_->weight.empty() || options_->weight == "period") {
      const bool has_period = facts.is_told_by_line && sample.period != 0;
      return has_period ? sample.period : 1;
    }
    const PayloadSchema* schema = schemas_.of(sample.event_index);
    if (schema != nullptr) {
      const auto field = std::ranges::find(schema->fields, options_->weight, &PayloadField::name);
      if (field != schema->fields.end()) return field_weight(*field, sample);
    }
    ++unreadable_weights_;
    return std::nullopt;
  }
  std::optional<std::uint64_t> field_weight(const PayloadField& field, const ResolvedSample& sample) {
    const auto number = read_number(field, sample.raw->raw, sample.order);
    if (number && *number > 0) return static_cast<std::uint64_t>(*number);
    // Flame graphs know no negative widths, and nought has none.
    if (!number) ++unreadable_weights_;
    return std::nullopt;
  }

  // Frame names of a stack, root first.
  const std::vector<std::uint32_t>& frames_of(const Stack& stack, bool is_java) {
    frames_.clear();
    // Leaf first, as perf asks: what some inlined functions are called depends on who was asked for before.
    for (const std::uint32_t number : stack.frames) names_of(number, is_java);
    for (auto number = stack.frames.rbegin(); number != stack.frames.rend(); ++number) {
      const LocationNames names = names_of(*number, is_java);
      const auto all = listed(names);
      frames_.insert(frames_.end(), all.begin(), all.end());
    }
    return frames_;
  }
  LocationNames names_of(std::uint32_t number, bool is_java) {
    LocationNames& entry = locations_[is_java ? 1 : 0][number];
    if (entry.count != LocationNames::kNotMade) return entry;
    const auto frames = session_->resolver().frames(session_->resolver().location(number));
    if (frames.size() == 1) return entry = names_of(frames.front(), is_java);
    std::vector<std::uint32_t> all;
    for (const symbolize::Frame& frame : frames) {
      const LocationNames names = names_of(frame, is_java);
      const auto numbers = listed(names);
      all.insert(all.begin(), numbers.begin(), numbers.end());
    }
    return entry = kept(all);
  }

  // Valid as long as `names`, and until more are kept.
  std::span<const std::uint32_t> listed(const LocationNames& names) const {
    if (names.count == 1) return {&names.first, 1};
    return std::span(several_).subspan(names.first, names.count);
  }
  LocationNames kept(std::span<const std::uint32_t> names) {
    const auto count = static_cast<std::uint32_t>(names.size());
    if (count == 1) return {count, names.front()};
    const auto first = static_cast<std::uint32_t>(several_.size());
    several_.insert(several_.end(), names.begin(), names.end());
    return {count, first};
  }

  // Places in one function have the same names, unless addresses are shown.
  LocationNames names_of(const symbolize::Frame& frame, bool is_java) {
    const bool shows_address = (options_->fold.shows_addresses && frame.function.empty()) ||
                               options_->context == Context::FileAndLine;
    const FunctionKey key{frame.module,
                          frame.function.data(),
                          frame.function.size(),
                          shows_address ? frame.shown_address : 0,
                          shows_address ? frame.ip.value : 0,
                          frame.is_inlined,
                          is_java};
    const auto [entry, is_new] = functions_.try_emplace(key);
    if (!is_new) return entry->second;
    const auto expanded =
        options_->expands_inlines ? expanded_name(frame, options_->context) : std::optional<std::string>();
    if (expanded) return entry->second = {1, folded_.name(*expanded)};
    TextBuffer line;
    write_frame(line, frame, kLineFields, Names::Raw);
    std::vector<std::uint32_t> names;
    for (const std::string& name : fold_frame(line.view(), options_->fold, is_java))
      names.push_back(folded_.name(name));
    return entry->second = kept(names);
  }

  struct FunctionKey {
    const symbolize::Module* module = nullptr;
    const char* function = nullptr;
    std::size_t size = 0;
    std::uint64_t shown_address = 0, ip = 0;
    bool is_inlined = false, is_java = false;
    bool operator==(const FunctionKey&) const = default;
  };
  struct FunctionHash {
    RowHash hash;
    std::size_t operator()(const FunctionKey& key) const noexcept {
      const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
      const std::uint64_t flags = (key.is_inlined ? 1U : 0U) | (key.is_java ? 2U : 0U);
      return hash(bits(key.module), bits(key.function), key.shown_address, flags, key.ip);
    }
  };
  Session* session_;
  const Options* options_;
  EventSchemas schemas_;
  FoldedStacks folded_;
  std::string filter_;
  std::uint64_t unreadable_weights_ = 0;
  bool has_waits_ = false;         // an event that is one
  std::vector<EventFacts> facts_;  // by the event's index
  StartHash start_hash_;
  std::unordered_map<StartKey, Start, StartHash> starts_;
  struct RecentStart {
    StartKey key;
    Start* start = nullptr;
  };
  std::array<RecentStart, 64> recent_starts_{};  // some of them, by their hash
  std::vector<std::uint32_t> several_;
  ByNumber<LocationNames> locations_[2];  // for Java's names and for others
  std::unordered_map<FunctionKey, LocationNames, FunctionHash> functions_;
  struct FirstRow {
    std::uint32_t name = 0;  // of the start
    std::uint32_t row = IndexTable::kNone;
  };
  ByNumber<FirstRow> first_rows_;  // by stack: its row in folded_ with the name it came with
  AddressTable other_rows_;        // start's name and stack's number -> row, for other names
  std::vector<std::uint32_t> frames_, stack_;
};

Result<Shown> show(Session& session, TextOutput& out, const Options& options) {
  if (options.waits.is_asked_for) {
    if (!options.weight.empty() || !options.event_filter.empty())
      return use_error("--off-cpu: stacks are weighed by time; leave --weight and --event out");
    return show_waits(session, out, options.waits, options.fold, options.reading.names);
  }
  FoldedSink sink(session, options);
  run_with_progress(session, sink, out);
  if (auto found = sink.check_filter(); !found) return std::move(found.error());
  if (sink.unreadable_weights() > 0) {
    const std::string field = options.weight.empty() ? "of role:weight" : "named '" + options.weight + "'";
    return use_error("--weight: " + std::to_string(sink.unreadable_weights()) + " samples have no number " +
                     field + "; tacho header lists the fields of payloads");
  }
  sink.folded().write(out);
  Shown shown(Symbols::Used);
  for (const std::string& note : sink.notes()) shown.notes.push_back("tacho folded: " + note);
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_folded(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    if (options.context == Context::FileAndLine && !options.expands_inlines)
      return use_error("--context says where inlined calls stand: it needs --inline");
    // stackcollapse-perf.pl reads perf's text; with --inline it asks addr2line for each address anew.
    if (!options.expands_inlines) options.reading.session.symbols.stand_in = symbolize::StandIn::AtFirst;
    if (options.waits.is_asked_for) options.waits.who = take_who(options.reading.session.filter);
    return show_session(options.reading, [&options](Session& session, TextOutput& out) {
      return show(session, out, options);
    });
  });
}

}  // namespace tacho::report
