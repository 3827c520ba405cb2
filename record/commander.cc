#include "record/commander.h"

#include <fmt/format.h>

#include <utility>

#include "format/perf_abi.h"

namespace tacho::record {

using Kind = ControlCommand::Kind;

void Commander::obey() {
  for (const ControlCommand& command : control_.take()) {
    const auto done = carry_out(command);
    if (!done) {
      means_.say("--control: " + done.error().what);
      control_.refuse(done.error().what);
    } else if (command.kind != Kind::Snapshot) {
      control_.acknowledge();
    }
  }
}

void Commander::snapshot_begun() { begun_snapshots_ = snapshots_; }

void Commander::snapshot_done() {
  for (; begun_snapshots_ > 0; --begun_snapshots_, --snapshots_) control_.acknowledge();
}

void Commander::end(const std::optional<Error>& failure) {
  snapshot_begun();
  if (!failure) return snapshot_done();
  for (; snapshots_ > 0; --snapshots_) control_.refuse(failure->what);
}

Result<> Commander::carry_out(const ControlCommand& command) {
  switch (command.kind) {
    case Kind::Enable:
      return events_.set_samples(Sampling::On, command.argument);
    case Kind::Disable:
      return events_.set_samples(Sampling::Off, command.argument);
    case Kind::EventList:
      list_events(command.argument);
      return Done{};
    case Kind::Snapshot:
      if (auto begun = means_.snapshot(); !begun) return begun;
      ++snapshots_;
      return Done{};
    case Kind::Stop:
      means_.stop();
      return Done{};
    case Kind::Ping:
      return Done{};
    case Kind::Unknown:
      break;
  }
  return Error{"unknown command '" + command.argument +
               "'; known: enable [EVENT], disable [EVENT], snapshot, evlist [-v|-F], ping, stop"};
}

void Commander::list_events(const std::string& flags) const {
  for (const format::Event& event : events_.event_set()) {
    const char* const rate = event.attr.has(format::abi::kFreq) ? "sample_freq" : "sample_period";
    std::string line = event.name;
    if (flags == "-F") line += fmt::format(": {}={}", rate, event.attr.sample_period);
    if (flags == "-v") {
      line += fmt::format(": type={}, config={:#x}, {}={}, ids={}", event.attr.type, event.attr.config, rate,
                          event.attr.sample_period, event.ids.size());
    }
    means_.say(line);
  }
}

}  // namespace tacho::record
