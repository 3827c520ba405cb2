#include "record/session/packing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
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
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "cli/message_text.h"
#include "format/base/file.h"
#include "record/host/report_program.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;

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
  for (const std::string& file : packing.silent) words.insert(words.begin() + 2, {"--skip-file", file});
  PinnedArguments pinned;
  if (packing.pinned != nullptr)
    if (auto made = arguments_for(*packing.pinned)) pinned = std::move(*made);
  words.insert(words.begin() + 2, pinned.words.begin(), pinned.words.end());
  const auto child = start_report_program(std::move(words), to.get(), to.get(), pinned.inherited);
  if (!child) return child.error();
  started.pid = *child;
  return started;
}

// For a child that works while the recording goes on: it runs when no other process wants the CPU.
void make_idle(const Child& child) {
  constexpr int kLowest = 19;
  const sched_param none{};
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(child.pid), kLowest);
  (void)::sched_setscheduler(child.pid, SCHED_IDLE, &none);
}

struct End {
  int status = 0;
  bool is_interrupted = false;  // a signal to this process ended it
  bool is_too_late = false;
  std::string messages;
};

// Says that the wait is for names: once, or on a terminal with the seconds, until it ends.
class WaitLine {
 public:
  WaitLine(std::string_view what, bool is_wanted)
      : what_(what), is_wanted_(is_wanted), is_terminal_(::isatty(STDERR_FILENO) != 0) {}
  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;
  ~WaitLine() {
    if (is_shown_ && is_terminal_) put("\r\033[K");
  }
  void show() {
    constexpr std::chrono::milliseconds kShownAfter{500};
    const auto passed = Clock::now() - began_;
    if (!is_wanted_ || passed < kShownAfter || (is_shown_ && !is_terminal_)) return;
    const std::string line = fmt::format("[ tacho record: {}, Ctrl-C skips it ", what_);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(passed).count();
    put(is_terminal_ ? fmt::format("\r\033[K{}({} s) ]", line, seconds) : line + "]\n");
    is_shown_ = true;
  }

 private:
  static void put(std::string_view text) {
    std::chrono::milliseconds patience{0};
    write_patiently(STDERR_FILENO, text, patience);
  }
  std::string what_;
  bool is_wanted_, is_terminal_, is_shown_ = false;
  Clock::time_point began_ = Clock::now();
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
// renaming it; a second one kills it, and a temporary file may stay. After `longest` and ten seconds more it
// gets SIGTERM, ten seconds later SIGKILL; then it is abandoned, since a file system that does not answer can
// block it.
End wait_for(const Child& child, WaitLine& line, std::optional<std::chrono::seconds> longest,
             const StopSignals& signals) {
  constexpr std::chrono::seconds kGrace{10};
  constexpr int kShowEvery = 250;  // ms
  End end;
  const auto began = Clock::now();
  int steps = 0;  // of ending a late child
  const format::Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  for (;;) {
    const pid_t got = ::waitpid(child.pid, &end.status, WNOHANG);
    read_messages(child, end.messages);
    if (got == child.pid || (got < 0 && errno != EINTR)) return end;
    const auto passed = Clock::now() - began;
    line.show();
    if (longest && passed > *longest + (steps + 1) * kGrace) {
      end.is_too_late = true;
      end.status = SIGKILL;  // reported, though it may still be blocked
      if (++steps > 2) return end;
      ::kill(child.pid, steps == 1 ? SIGTERM : SIGKILL);
    }
    std::array<pollfd, 3> news{
        {{signals.fd(), POLLIN, 0}, {ended.get(), POLLIN, 0}, {child.output.get(), POLLIN, 0}}};
    (void)::poll(news.data(), news.size(), ended ? kShowEvery : kLookEvery);
    // After the pipe's end of file, poll() returns at once.
    if ((news[2].revents & (POLLIN | POLLHUP)) == POLLHUP) ::usleep(kLookEvery * 1000);
    while (const auto signal = signals.take_signal()) {
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

// Why a child did not do its work; empty: it did.
struct Outcome {
  std::string why;
  bool is_interrupted = false;
};

Outcome outcome_of(const End& end, std::chrono::seconds longest) {
  const int exit = WIFEXITED(end.status) ? WEXITSTATUS(end.status) : -1;
  if (exit == cli::kWhole || exit == cli::kIncomplete) return {{}, end.is_interrupted};
  if (end.is_interrupted) return {"a signal stopped it", true};
  if (end.is_too_late) return {fmt::format("it took longer than {} s (--max-pack-time)", longest.count())};
  return {exit < 0 ? fmt::format("tacho-report died of signal {}", WTERMSIG(end.status)) : "see above"};
}

// Runs tacho-report to its end.
Outcome run(std::vector<std::string> words, const Packing& packing,
            std::optional<std::chrono::seconds> longest, WaitLine& line, const StopSignals& signals,
            const Messages& messages) {
  const auto child = start(std::move(words), packing);
  if (!child) return {child.error().what};
  const End end = wait_for(*child, line, longest, signals);
  relay(end.messages, messages);
  return outcome_of(end, longest.value_or(std::chrono::seconds(0)));
}

std::vector<std::string> words_to_pack(const std::string& program, const Packing& packing) {
  return {program, "pack",         "--brief", "--max-file-time", std::to_string(packing.longest.count()),
          "-i",    packing.capture};
}
std::vector<std::string> words_to_unwind(const std::string& program, const Packing& packing) {
  return {program,      "convert",         "--unwind",
          "--in-place", "--max-file-time", std::to_string(packing.longest.count()),
          "-i",         packing.capture};
}

constexpr std::string_view kPackingNames = "Packing names";

Outcome pack(const std::string& program, const Packing& packing, WaitLine& line, const StopSignals& signals,
             const Messages& messages) {
  if (std::string why = reason_against(packing, kMostPackedBytes); !why.empty()) return {std::move(why)};
  return run(words_to_pack(program, packing), packing, packing.longest, line, signals, messages);
}

Outcome unwind(const std::string& program, const Packing& packing, WaitLine& line, const StopSignals& signals,
               const Messages& messages) {
  if (std::string why = reason_against(packing, kMostPackedBytes); !why.empty()) return {std::move(why)};
  return run(words_to_unwind(program, packing), packing, packing.longest, line, signals, messages);
}

void say_not_unwound(const std::string& capture, const std::string& why, const Messages& messages) {
  messages.note(fmt::format(
      "{}: copies of stacks stay as they are, and are unwound by readers on this host: {}", capture, why));
}

void describe_pinned(const PinnedFiles* pinned, const Messages& messages) {
  if (pinned == nullptr) return;
  messages.detail(pinned->failure.empty() ? fmt::format("files held open while it recorded: {}; refused: {}",
                                                        pinned->files.size(), pinned->refused)
                                          : "no file was held open while it recorded: " + pinned->failure);
}

}  // namespace

void pack_symbols(const Packing& packing, const StopSignals& signals, const Messages& messages) {
  pack_files({packing.capture}, Copies::None, packing, signals, messages);
}

void unwind_copies(const Packing& packing, const StopSignals& signals, const Messages& messages) {
  const auto program = report_program();
  WaitLine line(kPackingNames, !packing.is_quiet);
  const Outcome done = program ? unwind(*program, packing, line, signals, messages)
                               : Outcome{"tacho-report is not installed here"};
  if (!done.why.empty()) say_not_unwound(packing.capture, done.why, messages);
}

void pack_files(const std::vector<std::string>& captures, Copies copies, const Packing& packing,
                const StopSignals& signals, const Messages& messages) {
  constexpr std::size_t kMostNamed = 3;
  if (captures.empty()) return;
  const auto program = report_program();
  if (!program)
    return messages.bracketed(
        "Names are not packed, as tacho-report is not installed here: read the capture where tacho-report "
        "and the same files are");
  describe_pinned(packing.pinned, messages);
  const auto until = Clock::now() + packing.longest;
  WaitLine line(captures.size() == 1 ? std::string(kPackingNames)
                                     : fmt::format("{} into {} files", kPackingNames, captures.size()),
                !packing.is_quiet);
  std::size_t not_packed = 0;
  bool is_interrupted = false;
  for (const std::string& capture : captures) {
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(until - Clock::now());
    Packing one = packing;
    one.capture = capture;
    one.longest = std::max(left, std::chrono::seconds(1));
    Outcome done;
    if (is_interrupted)
      done.why = "a signal stopped it";
    else if (left.count() < 0)
      done.why = fmt::format("it took longer than {} s (--max-pack-time)", packing.longest.count());
    if (done.why.empty() && copies == Copies::Unwound) {
      const Outcome unwound = unwind(*program, one, line, signals, messages);
      if (!unwound.why.empty()) say_not_unwound(capture, unwound.why, messages);
      if (unwound.is_interrupted) done = {"a signal stopped it", true};
    }
    if (done.why.empty()) done = pack(*program, one, line, signals, messages);
    is_interrupted |= done.is_interrupted;
    if (!done.why.empty() && ++not_packed <= kMostNamed)
      messages.note(fmt::format("{}: symbols are not packed into it: {}; tacho pack {} packs them", capture,
                                done.why, cli::shell_word(capture)));
  }
  if (not_packed > kMostNamed)
    messages.note(fmt::format("symbols are not packed into {} of {}, up to {}",
                              cli::counted(not_packed - kMostNamed, "more file"), captures.size(),
                              captures.back()));
}

// Packs files one by one, in the order in which they were finished, each in a child.
class FilePacker::Work {
 public:
  Work(FileSeries& series, FilePinner* pinner, Packing packing, Copies copies, Messages messages)
      : series_(series),
        pinner_(pinner),
        packing_(std::move(packing)),
        copies_(copies),
        messages_(std::move(messages)) {}

  void add(const std::string& capture) { waiting_.push_back(capture); }

  void step() {
    if (child_) {
      if (!has_ended()) return;
      finish_child();
    }
    while (!child_ && !waiting_.empty()) {
      packing_.capture = waiting_.front();
      waiting_.pop_front();
      // A file that was removed already needs no names.
      if (series_.begin_rewrite(packing_.capture)) begin(copies_);
    }
  }

  std::vector<std::string> stop() {
    constexpr int kTries = 50;
    if (child_) {
      // It blocks SIGTERM between writing its file and renaming it.
      ::kill(child_->pid, SIGTERM);
      bool is_ended = false;
      for (int i = 0; i < kTries && !(is_ended = has_ended()); ++i) {
        if (i == kTries / 2) ::kill(child_->pid, SIGKILL);
        ::usleep(kLookEvery * 1000);
      }
      // Whatever its status is: pack_files() does the whole work.
      is_unwinding_ = false;
      end_.status = SIGTERM;
      finish_child();
    }
    failed_.insert(failed_.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    return std::exchange(failed_, {});
  }

 private:
  void begin(Copies copies) {
    is_unwinding_ = copies == Copies::Unwound;
    end_ = {};
    began_ = Clock::now();
    const auto program = report_program();
    std::string why =
        program ? reason_against(packing_, kMostPackedBytes) : "tacho-report is not installed here";
    if (why.empty()) {
      const auto words =
          is_unwinding_ ? words_to_unwind(*program, packing_) : words_to_pack(*program, packing_);
      const auto start_with = [&](const PinnedFiles* pinned) {
        packing_.pinned = pinned;
        auto started = record::start(words, packing_);
        if (!started) return;
        make_idle(*started);
        child_.emplace(std::move(*started));
      };
      if (pinner_ != nullptr)
        pinner_->use([&](const PinnedFiles& pinned) { start_with(&pinned); });
      else
        start_with(nullptr);
      packing_.pinned = nullptr;
    }
    if (child_) return;
    series_.end_rewrite();
    failed_.push_back(packing_.capture);
  }

  bool has_ended() {
    const pid_t got = ::waitpid(child_->pid, &end_.status, WNOHANG);
    read_messages(*child_, end_.messages);
    if (got == child_->pid || (got < 0 && errno != EINTR)) return true;
    if (Clock::now() - began_ > packing_.longest) ::kill(child_->pid, SIGKILL);
    return false;
  }

  // A file whose child failed is packed again at the end; only then messages say why.
  void finish_child() {
    child_.reset();
    const bool is_done = outcome_of(end_, packing_.longest).why.empty();
    for (std::string_view lines = end_.messages; is_done && !lines.empty();)
      messages_.detail(take_until(lines, '\n'));
    if (std::exchange(is_unwinding_, false)) return begin(Copies::None);
    series_.end_rewrite();
    if (!is_done) failed_.push_back(packing_.capture);
  }

  FileSeries& series_;
  FilePinner* pinner_;
  Packing packing_;
  Copies copies_;
  Messages messages_;
  std::deque<std::string> waiting_;
  std::vector<std::string> failed_;
  std::optional<Child> child_;  // of packing_.capture
  End end_;
  Clock::time_point began_;
  bool is_unwinding_ = false;
};

FilePacker::FilePacker(FileSeries& series, FilePinner* pinner, Packing packing, Copies copies,
                       Messages messages)
    : work_(std::make_unique<Work>(series, pinner, std::move(packing), copies, std::move(messages))) {}
FilePacker::~FilePacker() { (void)stop(); }
void FilePacker::add_capture(const std::string& capture) { work_->add(capture); }
void FilePacker::step() { work_->step(); }
std::vector<std::string> FilePacker::stop() { return work_->stop(); }

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
  WaitLine line("Redacting", !packing.is_quiet);
  const std::string why = run(std::move(words), packing, {}, line, signals, messages).why;
  return why.empty() ? Result<>(Done{}) : fail(why);
}

}  // namespace tacho::record
