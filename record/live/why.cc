#include "record/live/why.h"

#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "bpf/support/kernel_support.h"
#include "cli/completion.h"
#include "cli/exit_status.h"
#include "cli/option_rows.h"
#include "format/base/file.h"
#include "format/base/output.h"
#include "record/events/target.h"
#include "record/host/report_program.h"
#include "record/list/listing.h"
#include "record/messages.h"
#include "record/options/options.h"
#include "record/parse_text.h"
#include "record/session/record_capture.h"
#include "record/session/workload.h"

namespace tacho::record {
namespace {

constexpr std::chrono::seconds kUsualTime{10};
constexpr std::string_view kCapture = "why.data";
// Waits with what they are for, their wakers and the wakers' stacks; and what has the CPU. The rate bounds
// the cost (bench/why_cost.py); operations need all their waits.
constexpr std::string_view kEvents = "cpu-clock,offcpu/preempted=true,rate=500/,waking/rate=500/",
                           kEventsOfOperations = "cpu-clock,offcpu/preempted=true/,waking";
// Without the rights for BPF programs: the stack with which a thread leaves the CPU, as far as the kernel's
// part may be recorded; records of context switches say for how long.
constexpr std::string_view kEventsWithoutBpf = "cpu-clock,context-switches/period=1/";

struct WhyValues {
  std::vector<std::string> view{"why"};
  std::string operation, page;
  std::vector<std::string> cgroups;
  bool may_abort = false, is_system = false;
  std::chrono::milliseconds time{0};
};

struct WhyOptions {
  ParsedOptions recording;        // of one capture with a name of its own, unless -o names it
  std::vector<std::string> view;  // words for tacho-report, without the capture
};

// A folder for a capture that is not kept: in $TMPDIR or /tmp, readable by this user only, removed at the end
// with the capture in it.
class CaptureFolder {
 public:
  static Result<CaptureFolder> make();
  CaptureFolder(CaptureFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  CaptureFolder(const CaptureFolder&) = delete;
  CaptureFolder& operator=(const CaptureFolder&) = delete;
  CaptureFolder& operator=(CaptureFolder&&) = delete;
  ~CaptureFolder();
  std::string capture() const { return fmt::format("{}/{}", path_, kCapture); }

 private:
  explicit CaptureFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

// Whether the kernel lets this user load BPF programs and find tracepoints.
bool may_load_recorders() { return bpf::check_may_load() && bpf::find_tracefs({}); }

// "./srv:handle_request" is a function, "tcp.lat_ns" is not.
bool is_function(std::string_view operation) { return operation.find(':') != std::string_view::npos; }

// "handle_request" is neither, unless an event of -e has that name.
Result<> check_operation(const std::string& operation, const std::vector<EventRequest>& events) {
  const std::string event = operation.substr(0, operation.find('.'));
  const bool is_known =
      event != operation || event.empty() || std::ranges::any_of(events, [&](const EventRequest& one) {
        const bool is_file = one.object() != nullptr && one.recorder.empty();  // its events have any names
        return is_file || one.text.find(event) != std::string::npos;
      });
  if (is_known) return Done{};
  return use_error(
      fmt::format("--of {}: a function is FILE:FUNCTION, as ./srv:handle_request; a field EVENT.FIELD, as "
                  "syscall.lat_ns of -e syscall",
                  operation));
}

// -e for the calls of that function.
std::string calls_of(std::string_view operation) {
  const auto colon = operation.rfind(':');
  return fmt::format("calls/binary='{}',functions='{}'/", operation.substr(0, colon),
                     operation.substr(colon + 1));
}

CommandShape shape_of_why(WhyValues& to) {
  using cli::passed_on;
  using cli::Takes;
  CommandShape shape;
  shape.program = "tacho why";
  shape.synopsis = "-p PID[,PID] | -G CGROUP | -a | COMMAND [--for TIME] [-o FILE]; why -i FILE [options]";
  shape.description =
      "Says where the time of threads goes: which functions have the CPU, for which locks, disks, peers and "
      "CPUs threads wait, and who holds these meanwhile. It records for ten seconds, or until the COMMAND "
      "ends, and prints one screen: the largest share first, each with the call chain that proves it and the "
      "command that shows more. Threads that wait for work (epoll, accept, a condition of a pool) are idle, "
      "and no finding. With -i it reads a capture, also one of perf.";
  shape.options = {
      {"--for", Takes::Value, "TIME", "Record for TIME, in seconds or with a unit as in 500ms (default: 10)",
       [&to](std::string_view text) { return store(to.time, parse_duration("--for", text)); }},
      {"--of", Takes::Value, "FUNCTION",
       "What the slowest 1 % of operations have more of than the others. FUNCTION, whose calls are the "
       "operations: ./srv:handle_request; or EVENT.FIELD of an event of -e: tcp.lat_ns",
       [&to](std::string_view text) -> Result<> {
         to.operation = text;
         return Done{};
       }},
      cli::flag(
          "--may-abort",
          "With --of FUNCTION: record also a program that throws exceptions. One that leaves FUNCTION ends "
          "the program",
          to.may_abort),
      cli::flag("-a,--all-cpus", "The whole system", to.is_system),
      {"-G,--cgroup", Takes::Value, "NAME[,NAME]",
       "The processes that are in these cgroups or below, with the children that they start",
       [&to](std::string_view text) -> Result<> {
         to.cgroups = parse_cgroup_list(text);
         return Done{};
       }},
      passed_on("--json", Takes::Nothing, "",
                "One JSON object with the same facts (docs/why.md). The output of COMMAND is on the same "
                "standard output: "
                "send that elsewhere, or give -p PID",
                to.view),
      {"--page", Takes::Value, "FILE",
       "Also write a page for a browser, which opens on the answer: each finding selects its samples in the "
       "timeline, the flame graph and the values",
       [&to](std::string_view text) -> Result<> {
         if (text.empty()) return use_error("--page: the name of the file is empty");
         to.page = text;
         return Done{};
       }},
      passed_on(
          "--source", Takes::Nothing, "",
          "With --page: also the source and the instructions of the functions with most samples. Who gets "
          "the page sees them",
          to.view),
  };
  shape.epilog =
      "Examples:\n"
      "  tacho why -p 4711                  a service, for ten seconds\n"
      "  tacho why -a --for 30s -o slow.data    the system; the capture is kept, for all other views\n"
      "  tacho why -- ./build.sh            a command, until it ends\n"
      "  tacho why -i slow.data             a capture\n"
      "  tacho why -p 4711 --page slow.html     also a page for a browser\n"
      "\n"
      "Exit status: that of COMMAND, or of the view when that is not 0; 1 wrong use, 2 when the kernel "
      "refuses.";
  return shape;
}

// The processes in a cgroup and below it.
Result<std::vector<int>> processes_of(const std::string& cgroup) {
  const auto mount = mounted_cgroups();
  if (!mount) return mount.error();
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(*mount) / fs::path(cgroup).relative_path();
  std::error_code failed;
  std::vector<int> processes;
  const auto add = [&processes](const fs::path& one) {
    std::ifstream file(one / "cgroup.procs");
    for (int process = 0; file >> process;)
      if (process != 0) processes.push_back(process);
  };
  if (!fs::is_directory(folder, failed))
    return use_error(fmt::format("-G: {}: no such cgroup", folder.string()));
  add(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed))
    if (entry.is_directory(failed)) add(entry.path());
  if (processes.empty())
    return use_error(fmt::format("-G: {}: no process is in this cgroup", folder.string()));
  return processes;
}

Result<> choose_cgroups(const std::vector<std::string>& cgroups, Target& target) {
  for (const std::string& cgroup : cgroups) {
    auto processes = processes_of(cgroup);
    if (!processes) return std::move(processes.error());
    target.watch = Watch::Processes;
    target.ids.insert(target.ids.end(), processes->begin(), processes->end());
  }
  return Done{};
}

// A page that cannot be written is refused before the recording.
Result<> check_page(const std::string& page, const RecordOptions& options) {
  if (page == "-") return use_error("--page -: standard output has the answer; name a file: --page why.html");
  if (options.files.is_named && page == options.output) return use_error("--page and -o name the same file");
  struct stat status {};
  const bool is_device =
      ::stat(page.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
  return is_device ? Result<>(Done{}) : format::check_output(page);
}

// The options of `arguments`, and of what is recorded without them.
Result<ParsedOptions> parse_with(std::string_view events, const std::vector<std::string>& arguments,
                                 WhyValues& to) {
  to = WhyValues();
  if (cli::asks_for_completion(arguments)) return parse_options(arguments, shape_of_why(to));
  std::vector<std::string> words{"-g", "-F", "99", "-e", std::string(events)};
  if (events == kEventsWithoutBpf) words.emplace_back("--switch-events");
  words.insert(words.end(), arguments.begin(), arguments.end());
  return parse_options(words, shape_of_why(to));
}

Result<WhyOptions> parse_why_options(const std::vector<std::string>& arguments) {
  WhyValues to;
  auto parsed = parse_with(kEvents, arguments, to);
  if (parsed && parsed->outcome != cli::Parsed::HelpShown) {
    const std::string_view events = !to.operation.empty()  ? kEventsOfOperations
                                    : may_load_recorders() ? kEvents
                                                           : kEventsWithoutBpf;
    if (events != kEvents) parsed = parse_with(events, arguments, to);
  }
  if (!parsed) return std::move(parsed.error());
  WhyOptions out{.recording = std::move(*parsed), .view = {}};
  if (out.recording.outcome == cli::Parsed::HelpShown) return out;
  RecordOptions& options = out.recording.options;
  if (is_function(to.operation)) {
    if (auto added = add_events(options.events, calls_of(to.operation)); !added)
      return std::move(added.error());
    options.events.back().refuses_exceptions = !to.may_abort;
    to.operation = "call";
  } else if (auto known = check_operation(to.operation, options.events); !known) {
    return std::move(known.error());
  }
  if (to.is_system && !options.target.ids.empty()) return use_error("-a and -p, -t exclude each other");
  if (to.is_system) options.target.watch = Watch::System;
  if (!to.cgroups.empty() && options.target.watch != Watch::System)
    return use_error("give one of -p, -t, -u, -G and a COMMAND");
  if (auto done = choose_cgroups(to.cgroups, options.target); !done) return std::move(done.error());
  if (!to.operation.empty()) to.view.insert(to.view.end(), {"--of", to.operation});
  const bool has_target =
      options.target.watch != Watch::System || !options.target.cpus.empty() || to.is_system;
  if (!has_target)
    return use_error(
        "of what? give -p PID, -G CGROUP, -a for the whole system, or a COMMAND; -i FILE reads a "
        "capture");
  if (options.files.is_named && options.output == "-")
    return use_error("-o -: a capture is written to a file; without -o it is not kept");
  if (to.page.empty() && std::ranges::find(to.view, "--source") != to.view.end())
    return use_error("--source is for the page: --page why.html");
  if (!to.page.empty()) {
    if (auto checked = check_page(to.page, options); !checked) return std::move(checked.error());
    to.view.insert(to.view.end(), {"--page", to.page});
  }
  if (to.time.count() != 0) options.time.duration = to.time;
  if (!options.time.duration && options.command.empty()) options.time.duration = kUsualTime;
  options.quiet = true;
  options.says_losses = false;
  out.view = std::move(to.view);
  return out;
}

Result<CaptureFolder> CaptureFolder::make() {
  const char* const named = std::getenv("TMPDIR");
  std::string path = (named == nullptr || *named == 0 ? std::string("/tmp") : named) + "/tacho-why-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return system_error(path, errno);
  return CaptureFolder(std::move(path));
}

CaptureFolder::~CaptureFolder() {
  if (path_.empty()) return;
  (void)::unlink(capture().c_str());
  (void)::rmdir(path_.c_str());
}

// Runs tacho-report on the capture, and returns its exit status, or 128 + the signal that ended it. A stop
// signal ends it.
Result<int> answer_why(const std::vector<std::string>& view, const std::string& capture,
                       const StopSignals& signals) {
  const auto program = report_program();
  if (!program) return Error{"tacho why needs tacho-report in the same directory as tacho-record", ENOENT};
  std::vector<std::string> words{*program};
  words.insert(words.end(), view.begin(), view.end());
  // No pager: the child is in a process group of its own, which may not read the terminal.
  words.insert(words.end(), {"--no-pager", "-i", capture});
  const auto child = start_report_program(std::move(words), STDOUT_FILENO, STDERR_FILENO);
  if (!child) return child.error();
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(*child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    pollfd one{signals.fd(), POLLIN, 0};
    constexpr int kStep = 20;  // ms
    (void)::poll(&one, 1, kStep);
    if (const auto signal = signals.take_signal(); signal && !signal->is_snapshot())
      (void)::kill(-*child, SIGTERM);
  }
  if (ended < 0) return system_error("waitpid", errno);
  constexpr int kBySignal = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kBySignal + WTERMSIG(status);
}

// Also one that its parent has not waited for.
bool has_exited(pid_t process) {
  const format::Fd exit(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!exit) return errno == ESRCH;
  pollfd one{exit.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) > 0;
}

// Whether the processes to be recorded have ended, so that there is less of them than was meant.
bool has_ended(const RecordOptions& options) {
  const Target& target = options.target;
  return target.watch == Watch::Processes && options.command.empty() && !target.ids.empty() &&
         std::ranges::all_of(target.ids, has_exited);
}

}  // namespace

int run_why(const std::vector<std::string>& command_line) {
  auto parsed = parse_why_options({command_line.begin() + 2, command_line.end()});
  if (!parsed) return report_failure(parsed.error(), "why");
  if (parsed->recording.outcome == cli::Parsed::HelpShown) return cli::kWhole;
  RecordOptions& options = parsed->recording.options;
  if (const auto status = answer_help_request(options.events, "why")) return *status;
  std::optional<CaptureFolder> folder;
  if (!options.files.is_named) {
    auto made = CaptureFolder::make();
    if (!made) return report_failure(made.error(), "why");
    folder.emplace(std::move(*made));
    options.output = folder->capture();
    options.files.is_named = true;
    parsed->view.emplace_back("--not-kept");
  }
  const int recorded = record_capture(options, command_line);
  if (has_ended(options)) parsed->view.emplace_back("--has-ended");
  if (::access(options.output.c_str(), R_OK) != 0) return recorded;
  auto signals = StopSignals::block();
  if (!signals) return report_failure(signals.error(), "why");
  const auto shown = answer_why(parsed->view, options.output, *signals);
  if (!shown) return report_failure(shown.error(), "why");
  return recorded != cli::kWhole ? recorded : *shown;
}

}  // namespace tacho::record
