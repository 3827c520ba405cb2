#include "record/live/live.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "cli/absent_options.h"
#include "cli/completion.h"
#include "cli/option_rows.h"
#include "format/base/file.h"
#include "record/events/recorders.h"
#include "record/host/event_candidates.h"
#include "record/host/report_program.h"
#include "record/messages.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

// Bytes of the pipe to a view on the screen, which reads nothing while it draws.
constexpr int kScreenPipe = 1 << 20;
constexpr int kBySignal = 128;  // the status of a process that a signal ended, without the signal's number
constexpr std::string_view kEachEvent = "script --columns auto";
// Views that print while the capture grows.
constexpr std::string_view kFollowing[] = {"script", "table", "hist"};

bool has_option(const std::vector<std::string>& words, std::string_view name) {
  return std::ranges::any_of(words, [name](const std::string& word) {
    return word == name || word.starts_with(std::string(name) + "=");
  });
}

cli::CommandLine command_line(LiveOptions& options, std::vector<std::string>& words) {
  cli::CommandLine line;
  line.program = "tacho live";
  line.synopsis = "[--view VIEW] [--interval TIME] EVENT [OPTION]... [-- COMMAND]";
  line.description =
      "Records and prints at the same time: a line for each event, or a table or histograms each second and "
      "totals at the end. EVENT is a recorder (tacho list recorders) or any event of tacho record -e, and "
      "OPTION any option of tacho record: -a, -p PID, -g, --duration. It ends with the COMMAND, or at "
      "Ctrl-C.";
  line.options = {
      cli::text(
          "--view", "VIEW",
          "the view and its options: script, table or hist, as in 'table --by comm' (default: the recorder's "
          "view, else script --columns auto)",
          options.view),
      cli::text(
          "--interval", "TIME",
          "time between tables or histograms, in seconds or with a unit as in 100ms (default: 1); maps of "
          "BPF programs are read at the same interval",
          options.interval),
  };
  static constexpr cli::AbsentOption kAbsent[] = {
      {"-e,--event", cli::Takes::Value, "the first word is the event: tacho live open -a"}};
  cli::add_absent_options(line.options, kAbsent);
  line.stop_at_first_word = true;
  line.words = [&words](std::vector<std::string> given) -> Result<> {
    words = std::move(given);
    return Done{};
  };
  line.epilog =
      "Examples:\n"
      "  tacho live open/failed/ -a                  files that could not be opened\n"
      "  tacho live --view 'table --by call,error' syscall -p 4711\n"
      "  tacho live execsnoop -- make                programs that a build runs\n"
      "\n"
      "Nothing is kept; tacho record writes captures, and --follow reads one that grows.\n"
      "\n"
      "Exit status: that of COMMAND, or of the view when that is not 0; 1 wrong use, 2 when the kernel "
      "refuses.";
  return line;
}

// The event, then options of the recording.
bool complete_live(const cli::ValuePlace& place) {
  if (!place.option.empty()) return false;
  if (place.words.empty()) {
    print_events(place);
    return true;
  }
  std::vector<std::string> arguments{std::string(cli::kCompleteOption), "-e"};
  std::ranges::copy(place.words, std::back_inserter(arguments));
  arguments.push_back(place.text);
  static_cast<void>(parse_options(arguments));
  return true;
}

// In the child: executes the view with the pipe as its input. Without a screen it ignores Ctrl-C: that ends
// the recording, and the end of the pipe ends the view. `failed`: gets errno if it cannot be executed.
[[noreturn]] void become_view(const std::string& program, std::vector<std::string>& words, int input,
                              int failed, bool has_screen, pid_t parent) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (has_screen) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(127);  // it ended before that
  } else {
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::dup2(input, STDIN_FILENO) >= 0) ::execv(program.c_str(), arguments.data());
  const int code = errno;
  static_cast<void>(!::write(failed, &code, sizeof code));
  ::_exit(127);
}

// Values of the options of `tacho top` itself.
struct TopValues {
  std::vector<std::string> view{"top"};
  std::chrono::milliseconds delay{2000}, window{15'000};
  bool is_text = false, wants_no_stacks = false, hides_kernel = false, hides_user = false;
};

cli::Option duration(std::string names, std::string help, std::chrono::milliseconds& to) {
  const std::string last = names.substr(names.rfind(',') + 1);
  return {std::move(names), cli::Takes::Value, "TIME", std::move(help),
          [last, &to](std::string_view text) { return store(to, parse_duration(last, text)); }};
}

CommandShape shape_of_top(TopValues& to) {
  using cli::passed_on;
  using cli::Takes;
  CommandShape shape;
  shape.program = "tacho top";
  shape.synopsis = "[-e EVENT] [-a | -p PID[,PID] | -G CGROUP | COMMAND] [OPTION]...";
  shape.description =
      "Shows the functions that run now, the most expensive first, refreshed every two seconds. Enter opens "
      "a function's callers; with -g, functions count what they call, as in perf top -g. The screen is that "
      "of tacho report. Without -p, -t, -u, -C, -G or a COMMAND it shows the whole system. Samples of the "
      "last 15 to 30 seconds are counted, so memory is bounded. Keys: h help, f freeze, z count anew at each "
      "refresh, w write the samples to a capture, q quit. Without a terminal, rows are printed as text.";
  shape.options = {
      duration("-d,--delay", "Time between refreshes, in seconds or with a unit as in 500ms (default: 2)",
               to.delay),
      duration("--window", "Count the samples of at least the last TIME, at most twice that (default: 15)",
               to.window),
      passed_on("-s,--sort", Takes::Value, "KEYS", "Sort keys, as for tacho report (default: dso,symbol)",
                to.view),
      passed_on("--children", Takes::Nothing, "",
                "Count samples of callees for their callers too (the default with -g or --call-graph)",
                to.view),
      passed_on(
          "--no-children", Takes::Nothing, "",
          "Count samples for the function that ran only; its callers are in its call graph (the default "
          "without -g)",
          to.view),
      passed_on("--percent-limit", Takes::Value, "PERCENT", "Show only rows of at least PERCENT", to.view),
      cli::flag("-U,--hide_user_symbols", "Only kernel mode", to.hides_user),
      cli::flag("-K,--hide_kernel_symbols", "Only user mode", to.hides_kernel),
      passed_on("--show-idle", Takes::Nothing, "",
                "Also count the kernel's idle loop (left out by default, as by perf top)", to.view),
      passed_on("-z,--zero", Takes::Nothing, "", "Count anew at each refresh, like the key z", to.view),
      cli::flag("--no-call-graph", "No call graphs", to.wants_no_stacks),
      passed_on("--kcore", Takes::Value, "FILE",
                "The kernel's memory, for the code of its functions (a): /proc/kcore, as root", to.view),
      {"-o,--output", Takes::Value, "FILE",
       "The capture that the key w writes; gets a number if it exists (default: top.data)",
       [&to](std::string_view text) -> Result<> {
         to.view.push_back("--keep=" + std::string(text));
         return Done{};
       }},
      cli::flag("--stdio", "Print rows as text, also on a terminal", to.is_text),
  };
  shape.epilog =
      "Examples:\n"
      "  tacho top                       the whole system, 99 samples a second of each CPU\n"
      "  tacho top -p 4711 -d 1          a process\n"
      "  tacho top -e offcputime         off-CPU time by stack\n"
      "  tacho top -e syscall -g         a table of system calls with call graphs\n"
      "  tacho top --stdio | head -40    as text\n"
      "\n"
      "Exit status: 0 after q, or that of COMMAND if it ended by itself; 1 for a wrong command line; 2 if "
      "the kernel refuses.";
  return shape;
}

bool is_terminal() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && term != nullptr && std::string_view(term) != "dumb" && *term != 0;
}

// The view of a single recorder among the events; empty: there are other events.
std::string_view suggested_view(const std::vector<EventRequest>& events) {
  if (events.size() != 1) return {};
  if (!events.front().view.empty()) return events.front().view;
  const RecorderRow* const row = find_recorder(events.front().recorder);
  return row != nullptr ? view_of(*row, events.front().constants()) : std::string_view();
}

// Its words, without "tacho".
std::vector<std::string> words_of_view(std::string_view view) {
  auto words = words_of(view);
  if (!words.empty() && words.front() == "tacho") words.erase(words.begin());
  return words;
}

// Options of the view for a table of a single recorder's events, made from its view: `table` and `hist` keep
// their keys, `script` gets default keys. Empty: functions and call graphs are shown instead.
std::vector<std::string> table_of(const std::vector<EventRequest>& events) {
  const auto words = words_of_view(suggested_view(events));
  if (words.empty()) return {};
  const std::string view = words.front();
  if (view == "calls") return {"--table", "--table-by=function"};
  if (view != "table" && view != "hist" && view != "script") return {};
  std::vector<std::string> table{"--table"};
  if (view == "hist") table.emplace_back("--table-buckets");
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    const std::string& option = words[i];
    const std::string& value = words[i + 1];
    if (option == "--where") table.push_back("--table-where=" + value);
    if (option == "--by" && value == "none")
      table.insert(table.end(), {"--table-by=comm", "--table-without-keys"});
    else if (option == "--by")
      table.push_back("--table-by=" + value);
    if (option == "--value" || option == "--field") table.push_back("--table-value=" + value);
    if (option == "--columns" && view == "table") table.push_back("--table-columns=" + value);
  }
  return table;
}

}  // namespace

Result<LiveOptions> parse_live_options(const std::vector<std::string>& arguments) {
  LiveOptions options;
  std::vector<std::string> words;
  const auto outcome = cli::parse_or_complete(command_line(options, words), arguments, complete_live);
  if (!outcome) return outcome.error();
  options.outcome = *outcome;
  if (options.outcome == cli::Parsed::HelpShown) return options;
  if (words.empty())
    return use_error("no event is given, as in tacho live open -a; tacho list recorders lists the recorders");
  if (words.front().starts_with('-'))
    return use_error(fmt::format(
        "'{}' is an option of the recording: write it after the event, as in tacho live EVENT {} ...",
        words.front(), words.front()));
  options.recording = {"-q", "-o", "-"};
  // Maps are read at the same interval as they are shown.
  const std::vector<std::string> own(words.begin(), std::ranges::find(words, "--"));
  if (!has_option(own, "--interval"))
    options.recording.insert(options.recording.end(), {"--interval", options.interval});
  options.recording.emplace_back("-e");
  std::ranges::move(words, std::back_inserter(options.recording));
  return options;
}

Result<ParsedTop> parse_top_options(const std::vector<std::string>& arguments) {
  constexpr std::uint64_t kUsualFrequency = 99;
  TopValues to;
  auto parsed = parse_options(arguments, shape_of_top(to));
  if (!parsed) return std::move(parsed.error());
  ParsedTop out{.recording = std::move(*parsed), .top = {}};
  if (out.recording.outcome == cli::Parsed::HelpShown) return out;
  RecordOptions& options = out.recording.options;
  SamplingOptions& sampling = options.sampling;
  if (to.hides_kernel && to.hides_user)
    return use_error("-K and -U cannot be combined: no samples would be left");
  sampling.all_user |= to.hides_kernel;
  sampling.all_kernel |= to.hides_user;
  if (!sampling.frequency && !sampling.period && !sampling.most_frequent)
    sampling.frequency = kUsualFrequency;
  const bool are_counters = std::ranges::all_of(options.events, &EventRequest::is_counter);
  if (to.wants_no_stacks) {
    sampling.stacks = {};
  } else if (are_counters && sampling.stacks.method == CallGraph::None) {
    sampling.stacks.method = CallGraph::Best;
    // As perf top without -g: first come the functions that run, not their callers.
    if (std::ranges::find(to.view, "--children") == to.view.end()) to.view.emplace_back("--no-children");
  }
  options.time.interval = to.delay;
  options.quiet = true;
  options.output = "-";
  options.files.is_named = true;
  out.top.has_screen = !to.is_text && is_terminal();
  out.top.view = std::move(to.view);
  out.top.view.push_back("--delay=" + std::to_string(to.delay.count()));
  out.top.view.push_back("--window=" + std::to_string(std::max(to.window, to.delay).count()));
  if (!out.top.has_screen) out.top.view.emplace_back("--text");
  const bool is_sorted =
      std::ranges::any_of(out.top.view, [](const std::string& word) { return word.starts_with("--sort"); });
  if (!is_sorted)
    for (std::string& word : table_of(options.events)) out.top.view.push_back(std::move(word));
  return out;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool is_quoted = false, is_open = false;  // is_open: inside of a word
  for (const char letter : text) {
    const bool is_end = letter == ' ' && !is_quoted;
    if (!is_end && !is_open) words.emplace_back();
    is_open = !is_end;
    if (letter == '\'')
      is_quoted = !is_quoted;
    else if (!is_end)
      words.back() += letter;
  }
  return words;
}

Result<std::vector<std::string>> live_view(const LiveOptions& options,
                                           const std::vector<EventRequest>& events) {
  const std::string_view view = options.view.empty() ? suggested_view(events) : options.view;
  auto words = words_of_view(view.empty() ? kEachEvent : view);
  const bool is_following =
      !words.empty() && std::ranges::find(kFollowing, words.front()) != std::end(kFollowing);
  if (!is_following && !options.view.empty())
    return use_error(
        fmt::format("--view: '{}' cannot print while recording; script, table and hist can", options.view));
  // The view `calls` needs all calls to have returned: a table by function is shown instead.
  const bool are_calls = !words.empty() && words.front() == "calls";
  if (!is_following) words = {"table"};
  if (are_calls) words.insert(words.end(), {"--by", "function"});
  if (words.front() != "script") {
    if (const auto at = std::ranges::find(words, "--interval"); at != words.end() && options.view.empty())
      words.erase(at, at + std::min<std::ptrdiff_t>(2, words.end() - at));
    if (!has_option(words, "--interval")) words.insert(words.end(), {"--interval", options.interval});
  }
  words.insert(words.end(), {"--follow", "--no-pager", "-i", "-"});
  return words;
}

Result<LiveView> LiveView::start(std::vector<std::string> words, bool has_screen) {
  const auto program = report_program();
  if (!program) return Error{"tacho live needs tacho-report in the same directory as tacho-record"};
  std::array<int, 2> ends{}, error_ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe", errno);
  const format::Fd input(ends[0]), output(ends[1]);
  if (::pipe2(error_ends.data(), O_CLOEXEC) != 0) return system_error("pipe", errno);
  const format::Fd failure(error_ends[0]);
  format::Fd failed(error_ends[1]);
  words.insert(words.begin(), *program);
  if (has_screen) (void)::fcntl(input.get(), F_SETPIPE_SZ, kScreenPipe);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return system_error("fork", errno);
  if (pid == 0) become_view(*program, words, input.get(), failed.get(), has_screen, parent);
  LiveView view(pid);
  if (has_screen) {
    view.terminal_ = format::Fd(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
    if (view.terminal_ && ::tcgetattr(view.terminal_.get(), &view.modes_) != 0) view.terminal_ = format::Fd();
  }
  failed = format::Fd();
  int code = 0;
  if (TEMP_FAILURE_RETRY(::read(failure.get(), &code, sizeof code)) == sizeof code)
    return system_error(*program, code);
  if (view.ended_ && ::fcntl(output.get(), F_SETFL, O_NONBLOCK) != 0) return system_error("fcntl", errno);
  if (::dup2(output.get(), STDOUT_FILENO) < 0) return system_error("dup2", errno);
  return view;
}

LiveView::LiveView(pid_t pid) : pid_(pid), ended_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

LiveView::LiveView(LiveView&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      ended_(std::move(other.ended_)),
      is_killed_here_(other.is_killed_here_),
      terminal_(std::move(other.terminal_)),
      modes_(other.modes_) {}

LiveView::~LiveView() {
  if (pid_ > 0) static_cast<void>(finish());
}

void LiveView::kill() {
  is_killed_here_ = true;
  static_cast<void>(::kill(pid_, SIGKILL));
}
void LiveView::terminate() { static_cast<void>(::kill(pid_, SIGTERM)); }

// After a view that was killed (by SIGKILL, or when memory ran out) and so could not do it.
void LiveView::restore_terminal() const {
  if (!terminal_) return;
  // xterm's: mouse off, no attributes, plain keys, cursor shown, the screen from before.
  constexpr std::string_view kLeave = "\033[?1006l\033[?1000l\033[m\033[?1l\033>\033[?25h\033[?1049l\r";
  (void)!::write(terminal_.get(), kLeave.data(), kLeave.size());
  const auto before = std::signal(SIGTTOU, SIG_IGN);  // this process may be in the background now
  (void)::tcsetattr(terminal_.get(), TCSANOW, &modes_);
  std::signal(SIGTTOU, before);
}

int LiveView::finish() {
  const format::Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (::dup2(nowhere.get(), STDOUT_FILENO) < 0) ::close(STDOUT_FILENO);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  restore_terminal();
  const int shown = kBySignal + WTERMSIG(status);
  if (is_of_crash(shown) && !is_killed_here_)
    print_failure(Error{fmt::format("the view ended: {}", ::strsignal(WTERMSIG(status)))});
  return shown;
}

bool LiveView::is_of_crash(int status) {
  constexpr std::array kOfUser{SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  return status > kBySignal && std::ranges::find(kOfUser, status - kBySignal) == kOfUser.end();
}

}  // namespace tacho::record
