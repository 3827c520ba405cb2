#include "report/views/summary/next_commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/shell_word.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMost = 3;
constexpr double kEnoughNames = 0.95;  // of all frames: with fewer a picture says little

using Kind = EventSummary::Kind;

bool has_kind(const CaptureSummary& summary, Kind kind) {
  return std::ranges::find(summary.events, kind, &EventSummary::kind) != summary.events.end();
}

class Chooser {
 public:
  Chooser(const CaptureSummary& summary, const std::string& input)
      : summary_(summary), file_(input == "-" ? "FILE" : cli::shell_word(input)) {}

  std::vector<NextCommand> choose() {
    if (!summary_.chosen) {
      add(fmt::format("tacho header -i {}", file_), "what the capture says about itself: no sample is in it");
      add(fmt::format("tacho dump -i {}", file_), "its records, one by one");
      return std::move(commands_);
    }
    add_picture();
    if (summary_.names.share() < kEnoughNames)
      add(fmt::format("tacho pack {}", file_),
          "on the host that was recorded: puts missing names into the file");
    add_fields();
    const EventSummary& chosen = summary_.events[*summary_.chosen];
    if (summary_.functions > 0)
      add(fmt::format("tacho report -i {} --no-children{}", file_, of_event(chosen)),
          "every function by its share");
    add(fmt::format("tacho script -i {}{}", file_, of_event(chosen)), "every sample, one by one");
    add(fmt::format("tacho header -i {}", file_), "what the capture says about itself");
    commands_.resize(std::min(commands_.size(), kMost));
    return std::move(commands_);
  }

 private:
  void add(std::string command, std::string why) {
    commands_.push_back({std::move(command), std::move(why)});
  }

  std::string of_event(const EventSummary& event) const {
    return summary_.events.size() == 1 ? "" : " --event " + cli::shell_word(event.name);
  }

  void add_picture() {
    const EventSummary& chosen = summary_.events[*summary_.chosen];
    const bool has_waits = summary_.waits && summary_.waits->waits > 0;
    if (has_waits && has_kind(summary_, Kind::Clock))
      return add(fmt::format("tacho flamegraph -i {} --wall -o wall.svg", file_),
                 "all time of threads: on the CPU, runnable, blocked");
    if (has_waits)
      return add(fmt::format("tacho flamegraph -i {} --off-cpu{} -o waits.svg", file_,
                             summary_.waits->has_wakers ? " --wakers" : ""),
                 "where threads wait, and for how long");
    if (chosen.has_stacks)
      return add(fmt::format("tacho flamegraph -i {}{} -o graph.svg", file_, of_event(chosen)),
                 chosen.unit == "ns" ? "where time goes, with callers" : "which calls lead there");
    const auto stacks = std::ranges::find(summary_.events, true, &EventSummary::has_stacks);
    if (stacks != summary_.events.end())
      add(fmt::format("tacho flamegraph -i {}{} -o graph.svg", file_, of_event(*stacks)),
          "which calls lead there");
  }

  // The value that a view shows where nobody names one comes before other fields.
  void add_fields() {
    const FieldSummary* shown = nullptr;
    for (const FieldSummary& field : summary_.fields)
      if (shown == nullptr || (field.is_value && !shown->is_value)) shown = &field;
    if (shown != nullptr) {
      const EventSummary& event = summary_.events[shown->event];
      add(fmt::format("tacho {} -i {} --event {} --field {}", shown->is_counted ? "hist" : "heatmap", file_,
                      cli::shell_word(event.name), cli::shell_word(shown->name)),
          shown->is_counted ? "how its values are spread" : "how its values are spread over time");
    }
    const auto payload = std::ranges::find(summary_.events, Kind::Payload, &EventSummary::kind);
    if (payload != summary_.events.end())
      add(fmt::format("tacho table -i {} --event {}", file_, cli::shell_word(payload->name)),
          "its payload in groups: counts, sums, percentiles");
    const auto tracepoint = std::ranges::find(summary_.events, Kind::Tracepoint, &EventSummary::kind);
    if (payload == summary_.events.end() && tracepoint != summary_.events.end())
      add(fmt::format("tacho table -i {} --event {} --by comm", file_, cli::shell_word(tracepoint->name)),
          "who runs into it, and how often");
  }

  const CaptureSummary& summary_;
  std::string file_;
  std::vector<NextCommand> commands_;
};

}  // namespace

std::vector<NextCommand> next_commands(const CaptureSummary& summary, const std::string& input) {
  return Chooser(summary, input).choose();
}

}  // namespace tacho::report
