#include "record/cpu_returns.h"

#include <fmt/format.h>

#include <utility>

namespace tacho::record {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};

// Of events of tasks as well: these go on by themselves when their CPU is back, but what walks their stacks
// does not.
std::vector<int> recorded_cpus(const KernelEvents& events) {
  std::vector<int> cpus;
  for (const OpenEvent& event : events.open_events()) cpus.push_back(event.cpu);
  return cpus;
}

}  // namespace

CpuReturns::CpuReturns(KernelEvents& events, std::vector<int> later, OpenAgain open_again, Say say)
    : events_(events),
      watch_(recorded_cpus(events), std::move(later)),
      uevents_(CpuUevents::open()),
      open_again_(std::move(open_again)),
      say_(std::move(say)) {}

Result<> CpuReturns::look(News& news, std::chrono::milliseconds since_start) {
  if (since_start < next_look_) return Done{};
  next_look_ = since_start + kBetweenLooks;
  for (const CpuWatch::Change& change : watch_.look(uevents_.came())) {
    const std::string when =
        fmt::format("{:.1f} s after the beginning", static_cast<double>(since_start.count()) / 1000);
    if (change.is_online) {
      if (auto done = take_in(change.cpu, when, news); !done) return done;
      continue;
    }
    events_.note_cpu(change.cpu, fmt::format("off line {}", when));
    say_(fmt::format("CPU {} went off line ({}): nothing of it is recorded until it comes back", change.cpu,
                     when));
  }
  return Done{};
}

// One that cannot be recorded does not end the recording of the others.
Result<> CpuReturns::take_in(int cpu, const std::string& when, News& news) {
  const auto open = open_again_ ? open_again_(cpu)
                                : Result<KernelEvents::Reopened>(Error{"only another recording takes it"});
  if (!open) {
    events_.note_cpu(cpu, fmt::format("on line {}, not recorded: {}", when, open.error().what));
    say_(fmt::format("CPU {} came on line ({}), and is not recorded: {}", cpu, when, open.error().what));
    return Done{};
  }
  for (const OpenEvent& event : open->events)
    if (auto done = news.watch_again(event); !done) return done;
  const std::string but = open->left_out.empty() ? "" : " but for " + open->left_out;
  events_.note_cpu(cpu, fmt::format("on line {}, recorded{}", when, but));
  say_(fmt::format("CPU {} came on line ({}), and is recorded{}", cpu, when, but));
  return Done{};
}

}  // namespace tacho::record
