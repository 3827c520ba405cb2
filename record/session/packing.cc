#include "record/session/packing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/exit_status.h"
#include "cli/message_text.h"
#include "format/base/file.h"
#include "record/host/report_program.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

constexpr int kNiceness = 10;
// Free disk space that packing needs: bytes for symbols and other writers, and a share of the capture's size.
// If the disk fills up nevertheless, the capture is not changed.
constexpr std::uint64_t kLeastMargin = 1 << 22, kMarginPart = 8;
constexpr std::size_t kMostMessages = 1 << 16;  // bytes of messages of tacho-report
constexpr int kLookEvery = 20;                  // ms; for kernels without pidfds (before 5.3)

// Why the capture cannot be rewritten; empty: it can. `most_bytes`: of the capture.
std::string reason_against(const Packing& packing,
                           std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max()) {
  struct stat file {};
  struct statvfs system {};
  if (::stat(packing.capture.c_str(), &file) != 0 || ::statvfs(packing.capture.c_str(), &system) != 0)
    return std::system_category().message(errno);
  const auto size = static_cast<std::uint64_t>(file.st_size);
  if (size > most_bytes) return "it is larger than 1 GB";
  const std::uint64_t free = std::uint64_t{system.f_bavail} * system.f_frsize;
  if (free < size + std::max(kLeastMargin, size / kMarginPart) + packing.least_free)
    return "there is no space for a second copy beside it";
  return {};
}

// tacho-report as a child.
struct Child {
  pid_t pid = -1;
  format::Fd output;  // a pipe with its messages, so that it never waits for the reader of standard error
};

Result<Child> start(std::vector<std::string> words, const Packing& packing) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe", errno);
  (void)::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  Child started;
  started.output = format::Fd(ends[0]);
  const format::Fd to(ends[1]);
  if (packing.is_quiet && words[1] != "convert") words.insert(words.begin() + 2, "--quiet");
  PinnedArguments pinned;
  if (packing.pinned != nullptr)
    if (auto made = arguments_for(*packing.pinned)) pinned = std::move(*made);
  words.insert(words.begin() + 2, pinned.words.begin(), pinned.words.end());
  const auto child = start_report_program(std::move(words), to.get(), to.get(), pinned.inherited);
  if (!child) return child.error();
  started.pid = *child;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(started.pid), kNiceness);
  return started;
}

struct End {
  int status = 0;
  bool is_interrupted = false;  // a signal to this process ended it
  bool is_too_late = false;
  std::string messages;
};

// A progress line on a terminal.
class WaitLine {
 public:
  explicit WaitLine(bool is_wanted) : is_wanted_(is_wanted && ::isatty(STDERR_FILENO) != 0) {}
  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;
  ~WaitLine() {
    if (is_shown_) put("");
  }
  void at(std::chrono::seconds passed) {
    constexpr std::chrono::seconds kShownAfter{3};
    if (!is_wanted_ || passed < kShownAfter) return;
    put(fmt::format("[ tacho record: Packing symbols for {} s; Ctrl-C skips it ]", passed.count()));
    is_shown_ = true;
  }

 private:
  static void put(std::string_view line) {
    std::chrono::milliseconds patience{0};
    write_patiently(STDERR_FILENO, fmt::format("\r\033[K{}", line), patience);
  }
  bool is_wanted_, is_shown_ = false;
};

// Reads the messages that have come. More than the limit is dropped.
void read_messages(const Child& child, std::string& messages) {
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t got = ::read(child.output.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    if (messages.size() < kMostMessages) messages.append(piece.data(), static_cast<std::size_t>(got));
  }
}

// Waits for the child's end. A first signal sends SIGTERM, which it blocks between writing its file and
// renaming it; a second one kills it, and a temporary file may stay. When its time is over, it gets some more
// seconds, then SIGTERM, then SIGKILL; then it is abandoned, since a file system that does not answer can
// block it.
End wait_for(const Child& child, const Packing& packing, std::optional<std::chrono::seconds> longest,
             const StopSignals& signals) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kGrace{10};
  constexpr int kShowEvery = 500;  // ms
  End end;
  WaitLine line(!packing.is_quiet);
  const auto began = Clock::now();
  int steps = 0;  // of ending a late child
  const format::Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  for (;;) {
    const pid_t got = ::waitpid(child.pid, &end.status, WNOHANG);
    read_messages(child, end.messages);
    if (got == child.pid || (got < 0 && errno != EINTR)) return end;
    const auto passed = Clock::now() - began;
    line.at(std::chrono::duration_cast<std::chrono::seconds>(passed));
    if (longest && passed > *longest + (steps + 1) * kGrace) {
      end.is_too_late = true;
      end.status = SIGKILL;  // reported, though it may still be blocked
      if (++steps > 2) return end;
      ::kill(child.pid, steps == 1 ? SIGTERM : SIGKILL);
    }
    // After its end of file, poll() would report the pipe forever.
    std::array<pollfd, 3> news{
        {{signals.fd(), POLLIN, 0}, {ended.get(), POLLIN, 0}, {child.output.get(), POLLIN, 0}}};
    (void)::poll(news.data(), news.size(), ended ? kShowEvery : kLookEvery);
    if ((news[2].revents & (POLLIN | POLLHUP)) == POLLHUP) ::usleep(kLookEvery * 1000);
    while (const auto signal = signals.take()) {
      if (signal->is_snapshot()) continue;
      ::kill(child.pid, end.is_interrupted ? SIGKILL : SIGTERM);
      end.is_interrupted = true;
    }
  }
}

// Prints lines of tacho-report as messages of this program.
void relay(std::string_view lines, const Messages& messages) {
  constexpr std::string_view kBegin = "[ tacho record: ", kEnd = " ]", kName = "tacho: ";
  while (!lines.empty()) {
    std::string_view line = take_until(lines, '\n');
    if (line.ends_with(kEnd) && take_prefix(line, kBegin)) {
      messages.bracketed(line.substr(0, line.size() - kEnd.size()));
    } else if (!line.empty()) {
      take_prefix(line, kName);
      messages.warn(line);
    }
  }
}

// Runs tacho-report to its end. Returns why it failed; empty: it did not.
std::string run(std::vector<std::string> words, const Packing& packing,
                std::optional<std::chrono::seconds> longest, const StopSignals& signals,
                const Messages& messages) {
  const auto child = start(std::move(words), packing);
  if (!child) return child.error().what;
  const End end = wait_for(*child, packing, longest, signals);
  relay(end.messages, messages);
  const int exit = WIFEXITED(end.status) ? WEXITSTATUS(end.status) : -1;
  if (exit == cli::kWhole || exit == cli::kIncomplete) return {};
  if (end.is_interrupted) return "a signal stopped it";
  if (end.is_too_late) return fmt::format("it took longer than {} s (--max-pack-time)", longest->count());
  return exit < 0 ? fmt::format("tacho-report died of signal {}", WTERMSIG(end.status)) : "see above";
}

}  // namespace

void pack_symbols(const Packing& packing, const StopSignals& signals, const Messages& messages) {
  const auto not_packed = [&](const std::string& why) {
    messages.note(fmt::format("{}: symbols are not packed into it: {}; tacho pack {} packs them",
                              packing.capture, why, cli::shell_word(packing.capture)));
  };
  const auto program = report_program();
  if (!program)
    return messages.detail("symbols are not packed: tacho-report is not installed beside tacho-record");
  if (const std::string why = reason_against(packing, kMostPackedBytes); !why.empty()) return not_packed(why);
  if (packing.pinned != nullptr && !packing.pinned->failure.empty())
    messages.detail("no file was held open while it recorded: " + packing.pinned->failure);
  else if (packing.pinned != nullptr)
    messages.detail(fmt::format("files held open while it recorded: {}; refused: {}",
                                packing.pinned->files.size(), packing.pinned->refused));
  const std::string why = run({*program, "pack", "--brief", "--max-file-time",
                               std::to_string(packing.longest.count()), "-i", packing.capture},
                              packing, packing.longest, signals, messages);
  if (!why.empty()) not_packed(why);
}

void unwind_copies(const Packing& packing, const StopSignals& signals, const Messages& messages) {
  const auto program = report_program();
  std::string why =
      program ? reason_against(packing, kMostPackedBytes) : "tacho-report is not installed here";
  if (why.empty())
    why = run({*program, "convert", "--unwind", "--in-place", "--max-file-time",
               std::to_string(packing.longest.count()), "-i", packing.capture},
              packing, packing.longest, signals, messages);
  if (!why.empty())
    messages.note(
        fmt::format("{}: copies of stacks stay as they are, and are unwound by readers on this host: {}",
                    packing.capture, why));
}

Result<> check_redaction() {
  if (report_program()) return Done{};
  return Error{
      "--redact needs tacho-report, which is not installed beside tacho-record; record without --redact, "
      "and run tacho redact on another machine"};
}

Result<> redact_capture(const Packing& packing, const std::string& classes, const StopSignals& signals,
                        const Messages& messages) {
  const auto fail = [&](const std::string& why) {
    return output_error(fmt::format("{}: is not redacted: {}; tacho redact {} OUT redacts it",
                                    packing.capture, why, cli::shell_word(packing.capture)));
  };
  const auto program = report_program();
  if (!program) return fail("tacho-report is not installed beside tacho-record");
  if (const std::string why = reason_against(packing); !why.empty()) return fail(why);
  std::vector<std::string> words{*program, "redact", "--brief", "--in-place"};
  if (!classes.empty()) words.insert(words.end(), {"--keep", "all", "--hide", classes});
  words.insert(words.end(), {"--", packing.capture});
  const std::string why = run(std::move(words), packing, {}, signals, messages);
  return why.empty() ? Result<>(Done{}) : fail(why);
}

}  // namespace tacho::record
