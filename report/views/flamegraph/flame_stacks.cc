#include "report/views/flamegraph/flame_stacks.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "format/base/parse_text.h"
#include "report/output/text_output.h"
#include "report/profile/stack_events.h"
#include "report/profile/stack_sums.h"
#include "report/profile/thread_stacks.h"
#include "report/profile/unit_count.h"
#include "report/profile/weight_unit.h"
#include "report/samples/event_choice.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// The names of folded stacks, as frames of a graph.
class FlameNames : public StackNames {
 public:
  FlameNames(Session& session, FlameFrames& frames)
      : frames_(frames),
        code_(session, FrameNames::Of::Functions,
              [this](const symbolize::Frame& frame, const FrameAddress& address,
                     std::vector<std::uint32_t>& numbers) {
                numbers.push_back(number_of_code(frame));
                addresses_.keep(numbers.back(), address);
              }) {}

  FrameNames& code_below(std::string_view /*root*/) override { return code_; }
  std::uint32_t number_of(std::string_view text, FrameKind kind) override {
    return frames_.number_of(text.empty() ? "[unnamed]" : printable(text), "", kind);
  }
  void make_wakers(std::span<std::uint32_t> code) override {
    for (std::uint32_t& frame : code) {
      const FrameAddress address = addresses_.address_of(frame);
      frame = frames_.as_kind(frame, FrameKind::Waker);
      addresses_.keep(frame, address);
    }
  }
  FrameAddresses take_addresses() { return std::move(addresses_); }
  ModuleBuilds take_builds() { return std::move(builds_); }

 private:
  std::uint32_t number_of_code(const symbolize::Frame& frame) {
    const std::string module = frame.module == nullptr ? "" : printable(frame.module->short_name);
    if (frame.module != nullptr) builds_[module].insert(frame.module->build_id);
    const std::string_view linker = linker_name_of(frame);
    const std::string name = printable(name_of_frame(frame, {}));
    return frames_.number_of(name, module, kind_of_code(frame), linker == frame.function ? name : linker);
  }

  FlameFrames& frames_;
  FrameAddresses addresses_;
  ModuleBuilds builds_;
  FrameNames code_;
};

using EventUnits = std::map<std::size_t, std::string>;  // of weights, by event with stacks

// Counts of several events have one unit: they can be added up.
EventUnits units_of_events(Session& session, const std::string& weight, const StackSums& sums,
                           EventSchemas& schemas, const PeriodFields& periods) {
  EventUnits units;
  for (const StackSums::Roots& roots : sums.roots())
    units.try_emplace(roots.event,
                      weight_unit(weight, session.events()[roots.event], schemas.schema_of(roots.event),
                                  periods.field_of(roots.event)));
  std::vector<std::string*> counts;
  std::set<std::string> counted;
  for (auto& [i, unit] : units) {
    const format::Event& event = session.events()[i];
    const std::uint32_t type = event.attr.type;
    const bool is_of_events = type == abi::kTracepoint || type == abi::kSoftware || type == abi::kBreakpoint;
    if (!is_of_events || (unit != printable(event.name) && unit != "samples")) continue;
    counts.push_back(&unit);
    counted.insert(unit);
  }
  if (counted.size() > 1)
    for (std::string* const unit : counts) *unit = "events";
  return units;
}

// The stacks of samples: a graph for each unit.
Result<FlameFacts> read_samples(Session& session, const FlameSource& source, FlameNames& names,
                                const RunSession& run, const StackCallback& take) {
  EventSchemas schemas(session.events(), session.features());
  PeriodFields periods(schemas);
  NamedStacks stacks;
  StackSums sums(session, source, {.periods = &periods}, names, stacks);
  if (auto sound = sums.read(run); !sound) return std::move(sound.error());
  EventUnits units = units_of_events(session, source.weight, sums, schemas, periods);
  std::map<std::string_view, std::set<std::uint32_t>> events;  // names of events, by unit
  for (const StackSums::Roots& roots : sums.roots()) events[units[roots.event]].insert(roots.names.front());
  FlameFacts facts{.has_samples = sums.has_samples()};
  std::set<std::string_view> taken;
  for (const auto& unit_of_event : units) {
    const auto& unit = unit_of_event.second;
    facts.events.push_back({session.events()[unit_of_event.first].name, unit});
    if (!taken.insert(unit).second) continue;
    // Where several events have one unit, their names are root frames of its graph.
    const std::size_t skipped = events[unit].size() > 1 ? 0 : 1;
    sums.each([&](const StackSums::Sum& sum) {
      if (units[sum.event] == unit)
        take(stacks[sum.stack].subspan(skipped),
             {static_cast<double>(sum.other), static_cast<double>(sum.weight)}, unit);
    });
  }
  facts.notes = sums.notes(events.size() > 1 ? StackEvents::Several::Apart : StackEvents::Several::Together);
  if (sums.slow()) facts.legend = sums.slow()->legend();
  return facts;
}

// The waits of threads, or all their time.
Result<FlameFacts> read_waiting(Session& session, const FlameSource& source, FlameNames& names,
                                const RunSession& run, const StackCallback& take) {
  const auto give = [&take](std::span<const std::uint32_t> stack, auto ns) {
    take(stack, {0, static_cast<double>(ns)}, "ns");
    return true;
  };
  auto times = source.is_wall ? read_times(session, source, names, run, give)
                              : read_waits(session, source, names, run, give);
  if (!times) return std::move(times.error());
  return FlameFacts{
      .events = {{times->what, "ns"}}, .notes = std::move(times->notes), .has_samples = times->has_any};
}

}  // namespace

Result<FlameFacts> read_flame_samples(Session& session, const FlameSource& source, FlameFrames& frames,
                                      const RunSession& run, const StackCallback& take) {
  std::optional<UnitCount> units;
  if (!source.per.empty()) {
    auto found = UnitCount::of(session, source.per);
    if (!found) return std::move(found.error());
    units.emplace(std::move(*found));
  }
  const RunSession run_counted = [&](Sink& sink) { units ? units->run(sink, run) : run(sink); };
  std::vector<std::uint32_t> reversed;
  const StackCallback take_reversed = [&](std::span<const std::uint32_t> stack, FlameWeight weight,
                                          std::string_view unit) {
    reversed.assign(stack.rbegin(), stack.rend());
    take(reversed, weight, unit);
  };
  FlameNames names(session, frames);
  const auto read = source.is_of_times() ? read_waiting : read_samples;
  auto facts = read(session, source, names, run_counted, source.is_reversed ? take_reversed : take);
  if (!facts) return facts;
  if (units) {
    facts->per = units->name();
    facts->units = units->count();
  }
  facts->addresses = names.take_addresses();
  facts->builds = names.take_builds();
  return facts;
}

namespace {

// More than any count of 64 bits; sums of such weights are finite.
constexpr double kMostFolded = 2e19;

// The number at the end of a line, after a blank; it is cut off.
std::optional<double> take_weight(std::string_view& line) {
  const auto blank = line.find_last_of(" \t");
  if (blank == std::string_view::npos) return std::nullopt;
  const std::string_view number = line.substr(blank + 1);
  double weight = 0;
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), weight);
  const bool is_number = fault == std::errc() && end == number.data() + number.size();
  if (!is_number || !(weight >= 0 && weight <= kMostFolded)) return std::nullopt;
  line = line.substr(0, blank);
  return weight;
}

// The name of a frame of folded stacks without the escapes that tacho folded adds to printable() names.
std::string unfolded_name(std::string_view text) {
  constexpr std::pair<std::string_view, char> kEscapes[] = {{"\\x20", ' '}, {"\\x23", '#'}, {"\\x3b", ';'}};
  std::string name = printable(text);
  for (const auto& [escape, letter] : kEscapes)
    for (auto at = name.find(escape); at != std::string::npos; at = name.find(escape, at + 1))
      name.replace(at, escape.size(), 1, letter);
  return name;
}

std::uint32_t folded_frame(std::string_view text, FlameFrames& frames) {
  FrameKind kind = FrameKind::User;
  constexpr std::pair<std::string_view, FrameKind> kEndings[] = {{"_[k]", FrameKind::Kernel},
                                                                 {"_[i]", FrameKind::Inlined},
                                                                 {"_[j]", FrameKind::Jit},
                                                                 {"_[w]", FrameKind::Waker}};
  if (text == kWakerMark || text == "--") return frames.number_of(printable(text), "", FrameKind::Mark);
  if (text.size() > 2 && text.starts_with('[') && text.ends_with(']')) kind = FrameKind::Unnamed;
  for (const auto& [ending, of_ending] : kEndings) {
    if (!text.ends_with(ending) || text.size() == ending.size()) continue;
    text.remove_suffix(ending.size());
    kind = of_ending;
    break;
  }
  return frames.number_of(unfolded_name(text), "", kind);
}

}  // namespace

FoldedText read_folded_text(std::istream& in, bool is_reversed, FlameFrames& frames,
                            const FoldedCallback& take,
                            const std::function<void(std::uint64_t bytes)>& before_stack) {
  constexpr std::size_t kDeepest = std::size_t{1} << 18, kFramesAlways = 100'000, kBytesOfFrame = 128;
  FoldedText read;
  std::uint64_t bytes = 0;
  std::string whole;
  std::vector<std::uint32_t> stack;
  while (std::getline(in, whole)) {
    ++read.lines;
    bytes += whole.size() + 1;
    std::string_view line = whole;
    if (read.lines == 1) format::take_prefix(line, "\xef\xbb\xbf");  // a byte order mark
    if (line.find_first_not_of(" \t\r") == std::string_view::npos || line.starts_with('#')) continue;
    while (line.ends_with(' ') || line.ends_with('\t') || line.ends_with('\r')) line.remove_suffix(1);
    const auto last = take_weight(line);
    if (!last) {
      if (read.faults++ == 0) read.first_fault = read.lines;
      continue;
    }
    FlameWeight weight{0, *last};
    std::string_view shorter = line;
    if (const auto first = take_weight(shorter)) {
      read.has_two_weights = true;
      weight = {*first, *last};
      line = shorter;
    }
    stack.clear();
    const std::size_t most_frames = kFramesAlways + bytes / kBytesOfFrame;
    bool is_whole = true;
    for (std::size_t at = 0; at <= line.size();) {
      is_whole = stack.size() < kDeepest && frames.size() < most_frames;
      if (!is_whole) break;
      const auto end = std::min(line.find(';', at), line.size());
      stack.push_back(folded_frame(line.substr(at, end - at), frames));
      at = end + 1;
    }
    if (is_reversed) std::ranges::reverse(stack);
    ++read.stacks;
    if (before_stack) before_stack(bytes);
    is_whole &= take(stack, weight);
    read.cut_stacks += is_whole ? 0 : 1;
  }
  return read;
}

}  // namespace tacho::report
