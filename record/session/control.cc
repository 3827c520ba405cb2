#include "record/session/control.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "format/base/trusted_path.h"
#include "format/extensions/tracing_data.h"
#include "format/records/perf_abi.h"
#include "record/host/probes.h"
#include "record/kernel/perf_event.h"
#include "record/messages.h"
#include "record/output/record_counts.h"
#include "record/parse_text.h"
#include "record/plan/requests.h"

namespace tacho::record {
namespace {

constexpr std::size_t kLongestLine = 1024;

struct KindName {
  std::string_view name;
  ControlCommand::Kind kind;
  bool takes_argument;
};
using Kind = ControlCommand::Kind;
constexpr std::array<KindName, 6> kKinds{{{"enable", Kind::Enable, true},
                                          {"disable", Kind::Disable, true},
                                          {"evlist", Kind::EventList, true},
                                          {"snapshot", Kind::Snapshot, false},
                                          {"stop", Kind::Stop, false},
                                          {"ping", Kind::Ping, false}}};

// Duplicates an inherited descriptor.
Result<format::Fd> open_descriptor(const std::string& text) {
  format::Fd fd(fcntl(parse_descriptor(text).value_or(-1), F_DUPFD_CLOEXEC, 3));
  if (!fd) return use_error("--control: descriptor " + text + " is not open");
  struct stat info {};
  const bool can_be_awaited = fstat(fd.get(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
  if (!can_be_awaited) return use_error("--control: descriptor " + text + " is neither pipe nor socket");
  return fd;
}

// Opened for reading and writing, so that there is no end of file when its first writer closes it.
Result<format::Fd> open_fifo(const std::string& path) {
  if (geteuid() == 0) {
    if (auto trusted = format::check_trusted_path(path); !trusted && trusted.error().code == EPERM)
      return std::move(trusted.error()).in("--control");
  }
  format::Fd fd(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd && errno == ENOENT)
    return use_error("--control: there is no " + path + "; make it with: mkfifo " + path);
  if (!fd) return system_error("--control: " + path, errno);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || !S_ISFIFO(info.st_mode))
    return use_error("--control: " + path + " is not a FIFO; make one with: mkfifo " + path);
  return fd;
}

}  // namespace

ControlCommand parse_command(std::string_view line) {
  std::string_view rest = line;
  const std::string_view word = take_until(rest, ' ');
  for (const KindName& row : kKinds) {
    if (row.name == word && (row.takes_argument || rest.empty())) return {row.kind, std::string(rest)};
  }
  return {Kind::Unknown, std::string(line)};
}

Result<Control> Control::open(const ControlChannel& place) {
  const auto open_one = [&](const std::string& name) {
    return place.is_fifo ? open_fifo(name) : open_descriptor(name);
  };
  Control control;
  auto commands = open_one(place.commands);
  if (!commands) return std::move(commands.error());
  control.commands_ = std::move(*commands);
  if (place.answers.empty()) return control;
  auto answers = open_one(place.answers);
  if (!answers) return std::move(answers.error());
  control.answers_ = std::move(*answers);
  return control;
}

std::vector<ControlCommand> Control::take_commands() {
  std::vector<ControlCommand> commands;
  std::array<char, 4096> bytes{};
  // Poll before each read, since an inherited descriptor may block, and limit the number of reads, since a
  // writer may never stop.
  int reads_left = 64;
  for (pollfd news{commands_.get(), POLLIN, 0}; !is_closed_ && reads_left-- > 0 && poll(&news, 1, 0) > 0;) {
    const ssize_t count = read(commands_.get(), bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) break;
    is_closed_ = count <= 0;
    for (ssize_t i = 0; i < count; ++i) {
      const char letter = bytes.at(static_cast<std::size_t>(i));
      if (letter != '\n' && letter != '\0') {
        if (line_.size() < kLongestLine) line_ += letter;
        continue;
      }
      if (!line_.empty()) commands.push_back(parse_command(line_));
      line_.clear();
    }
  }
  return commands;
}

void Control::acknowledge() { answer("ack\n"); }
void Control::refuse(std::string_view why) { answer("error: " + std::string(why) + "\n"); }

void Control::answer(std::string_view line) {
  if (answers_) write_patiently(answers_.get(), line, patience_);
}

void ControlHandler::handle_commands() {
  for (const ControlCommand& command : control_.take_commands()) {
    const auto done = execute(command);
    if (!done) {
      callbacks_.say("--control: " + done.error().what);
      control_.refuse(done.error().what);
    } else if (command.kind != Kind::Snapshot) {
      control_.acknowledge();
    }
  }
}

void ControlHandler::snapshot_begun() { begun_snapshots_ = snapshots_; }

void ControlHandler::snapshot_done() {
  for (; begun_snapshots_ > 0; --begun_snapshots_, --snapshots_) control_.acknowledge();
}

void ControlHandler::answer_waiting(const std::optional<Error>& failure) {
  snapshot_begun();
  if (!failure) return snapshot_done();
  for (; snapshots_ > 0; --snapshots_) control_.refuse(failure->what);
}

Result<> ControlHandler::execute(const ControlCommand& command) {
  switch (command.kind) {
    case Kind::Enable:
      return events_.set_samples(Sampling::On, command.argument);
    case Kind::Disable:
      return events_.set_samples(Sampling::Off, command.argument);
    case Kind::EventList:
      list_events(command.argument);
      return Done{};
    case Kind::Snapshot:
      if (auto begun = callbacks_.snapshot(); !begun) return begun;
      ++snapshots_;
      return Done{};
    case Kind::Stop:
      callbacks_.stop();
      return Done{};
    case Kind::Ping:
      return Done{};
    case Kind::Unknown:
      break;
  }
  return Error{"unknown command '" + command.argument +
               "'; known: enable [EVENT], disable [EVENT], snapshot, evlist [-v|-F], ping, stop"};
}

void ControlHandler::list_events(const std::string& flags) const {
  for (const format::Event& event : events_.event_set()) {
    const char* const rate = event.attr.has(format::abi::kFreq) ? "sample_freq" : "sample_period";
    std::string line = event.name;
    if (flags == "-F") line += fmt::format(": {}={}", rate, event.attr.sample_period);
    if (flags == "-v") {
      line += fmt::format(": type={}, config={:#x}, {}={}, ids={}", event.attr.type, event.attr.config, rate,
                          event.attr.sample_period, event.ids.size());
    }
    callbacks_.say(line);
  }
}

namespace {

constexpr std::string_view kOption = "--switch-output-event";

// The options without those of recorded events and their rings.
RecordOptions without_details(const RecordOptions& options) {
  RecordOptions plain = options;
  plain.sampling = SamplingOptions{};
  plain.files.overwrite = false;
  plain.ring_bytes.reset();
  plain.ring_budget.reset();
  plain.ring_pages = 1;
  return plain;
}

}  // namespace

Result<Plan> plan_switch_events(const RecordOptions& options, const PlanTarget& target, const Host& host) {
  for (const EventRequest& request : options.switch_events) {
    const auto refused = [&request](std::string_view why) {
      return use_error(fmt::format("{}: '{}' {}", kOption, request.text, why));
    };
    if (request.object() != nullptr)
      return refused("is a BPF program, which only -e records; name an event of the kernel, or a probe");
    if (request.sum)
      return refused(
          "counts in a map and has no samples while recording; name the probe or tracepoint itself");
  }
  auto requests = find_probes(options.switch_events);
  if (!requests) return std::move(requests.error()).in(kOption);
  format::TracingData unused;  // the events are not decoded
  requests = resolve_tracepoints(*requests, unused);
  if (!requests) return std::move(requests.error()).in(kOption);
  if (may_exclude_kernel(options) && is_kept_out_of_kernel(host)) exclude_kernel(*requests);
  auto plan = make_plan(without_details(options), *requests, {}, {target.threads, target.command}, host);
  if (!plan) return std::move(plan.error()).in(kOption);
  if (plan->events.back().is_sideband) plan->events.pop_back();
  for (PlannedEvent& event : plan->events) event.attr.wakeup = 1;  // a watermark of 1 byte
  return plan;
}

Result<SwitchEvents> SwitchEvents::open(const Plan& plan, const Host& host,
                                        const std::function<bool()>& stop) {
  auto events = KernelEvents::open(plan, host, stop);
  if (!events) return std::move(events.error()).in(kOption);
  return SwitchEvents(std::move(*events));
}

std::vector<int> SwitchEvents::fds() const {
  std::vector<int> all;
  for (const OpenEvent& event : events_.open_events()) all.push_back(event.fd.get());
  return all;
}

std::uint64_t SwitchEvents::take_events() {
  std::uint64_t happened = 0;
  for (PerfRing& ring : events_.rings()) {
    std::vector<std::byte> records;  // one buffer: records that wrap come in two pieces
    ring.drain([&records](format::Bytes run) { records.insert(records.end(), run.begin(), run.end()); });
    RecordCounts counts;
    if (count_records(records, counts)) happened += counts.samples + counts.lost;
  }
  return happened;
}

}  // namespace tacho::record
