#include "sandbox/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "format/base/file.h"
#include "format/base/parse_text.h"
#include "format/base/printable.h"
#include "sandbox/job.h"
#include "sandbox/network_files.h"

namespace tacho::sandbox {
namespace {

using Clock = std::chrono::steady_clock;
using format::printable;
using format::printable_lines;

constexpr std::size_t kMostDeaths = 8;   // of a task's children while they read files
constexpr std::size_t kMostUnknown = 4;  // of a task's children while they read no file
constexpr std::size_t kLongestPath = 4096;
constexpr std::size_t kMostText = std::size_t{1} << 18;  // bytes of a message
constexpr int kPipeSize = 1 << 20;
constexpr int kNoMemory = 124;  // exit status of a child
constexpr std::chrono::milliseconds kLookEvery(100);
// Until a process is gone, and one that waits for a silent file system.
constexpr std::chrono::milliseconds kMostAfterKill(3000), kMostInSilence(200);
// A file whose reader sleeps so long, and is not woken: its file system counts as silent.
constexpr std::chrono::milliseconds kMostAsleep(3000);
constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::string_view kSilent = "its file system does not answer";
constexpr std::string_view kDied = "the process that reads the files died";

// Why files are read (for symbols, for unwinding); one thread at a time for each.
enum Purpose : std::uint8_t { kNames, kStacks, kPurposes };

// The file that the child reads. The parent reads the numbers at any time, the path after the child's death.
struct CrashMarker {
  std::atomic<std::uint64_t> turn;         // counts files
  std::atomic<std::uint64_t> closed_from;  // turn of the first file that was refused, since time was up
  std::atomic<std::size_t> size;           // of the path; 0: no file is read
  std::atomic<int> thread;                 // that reads it
  std::array<char, kLongestPath> path;

  bool is_at_file() const { return size.load() != 0; }
  std::string name() const { return {path.data(), std::min(size.load(), kLongestPath)}; }
};

// Shared memory of parent and child. The parent trusts nothing in it.
struct Shared {
  std::array<CrashMarker, kPurposes> markers;
  std::atomic<bool> is_closed, has_refused;  // no more files may be read; a file was refused
  std::atomic<bool> has_silence;             // a file was refused, as it did not answer
  std::atomic<bool> is_asked_to_stop, is_reader_gone;
};

struct Unmap {
  void operator()(Shared* shared) const { ::munmap(shared, sizeof(Shared)); }
};
using SharedMemory = std::unique_ptr<Shared, Unmap>;

SharedMemory share_memory() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  SharedMemory shared(::new (memory) Shared{});
  for (CrashMarker& marker : shared->markers) marker.closed_from.store(kNever);
  return shared;
}

// How often a thread has gone to sleep, if it waits for a file system: in state D, or in an interruptible
// wait for a FUSE server. Nothing: it runs, waits for something else, or is gone.
std::optional<std::uint64_t> sleeps_in_file_system(pid_t process, int thread) {
  constexpr std::uint64_t kMostBytes = 1 << 16;
  const std::string folder = "/proc/" + std::to_string(process) + "/task/" + std::to_string(thread);
  const auto status = format::read_file(folder + "/status", kMostBytes);
  if (!status) return std::nullopt;
  const std::string_view text = format::as_text(*status), state = format::field_of_status(text, "State");
  const auto place = format::read_file(folder + "/wchan", kMostBytes);
  const bool is_in_fuse = state.starts_with('S') && place && format::as_text(*place) == "request_wait_answer";
  if (!state.starts_with('D') && !is_in_fuse) return std::nullopt;
  return format::number_at<std::uint64_t>(format::field_of_status(text, "voluntary_ctxt_switches"));
}

// In the child: writes the marker, and refuses files at which earlier children died.
class Access final : public SkippedFiles {
 public:
  Access(Shared& shared, Purpose purpose, const Task& task, const std::vector<Death>& deaths,
         const std::vector<std::string>& silent_mounts, NetworkFiles* tried)
      : SkippedFiles(task.skipped),
        shared_(shared),
        marker_(shared.markers.at(purpose)),
        deaths_(deaths),
        silent_mounts_(silent_mounts),
        tried_(tried) {}
  void set_current(std::string_view path) override {
    // The file that was being read when memory ran out counts as its cause.
    if (path.empty() && std::uncaught_exceptions() > 0) return;
    path = path.substr(0, kLongestPath);
    path.copy(marker_.path.data(), path.size());
    marker_.thread.store(static_cast<int>(::gettid()));
    marker_.size.store(path.size());
    marker_.turn.fetch_add(1);
  }
  std::string refusal(std::string_view path) const override {
    if (std::string why = SkippedFiles::refusal(path); !why.empty()) return why;
    const auto death = std::ranges::find(deaths_, path.substr(0, kLongestPath), &Death::path);
    if (death != deaths_.end()) return "the process that read it died: " + death->how;
    if (!silent_mounts_.empty() && std::ranges::count(silent_mounts_, network_mount_of(path)) != 0)
      return std::string(kSilent);
    if (tried_ != nullptr && !tried_->answers(path)) return std::string(kSilent);
    return is_closed() ? "no more files are read, as the others took longer than --max-file-time allows" : "";
  }

 private:
  // After time was up, a restarted child still reads the files that the previous child read, so that their
  // names do not vanish from the output.
  bool is_closed() const {
    if (!shared_.is_closed.load()) return false;
    if (marker_.closed_from.load() == kNever) marker_.closed_from.store(marker_.turn.load());
    if (marker_.turn.load() < marker_.closed_from.load()) return false;
    shared_.has_refused.store(true);
    return true;
  }

  Shared& shared_;
  CrashMarker& marker_;
  const std::vector<Death>& deaths_;
  const std::vector<std::string>& silent_mounts_;
  NetworkFiles* tried_;  // null: files are not tried before they are read
};

// Measures how long the child takes for each file, and shows on a terminal which file it reads.
class Watch {
 public:
  Watch(const Task& task, Shared& shared)
      : times_(task.times), show_progress_(task.show_progress), shared_(shared) {
    // One file that does not answer must not use up the time of the others.
    if (times_.at_all.count() != 0) times_.at_one = std::min(times_.at_one, times_.at_all * 2 / 5);
  }

  // The child that is looked at.
  void watch(pid_t child) {
    child_ = child;
    is_silent_ = false;
  }
  void begin() {
    for (CrashMarker& marker : shared_.markers) {
      // Time was up, but the previous child ended before a file was refused: this one may read as many files.
      if (shared_.is_closed.load() && marker.closed_from.load() == kNever)
        marker.closed_from.store(marker.turn.load() + 1);
      marker.turn.store(0);
      marker.size.store(0);
    }
    at_ = {};
    last_ = Clock::now();
  }
  // Returns the purpose for which a file takes too long. Call it periodically: a gap of more than two periods
  // is not counted, since both processes were stopped then (Ctrl-Z).
  std::optional<Purpose> look() {
    const auto now = Clock::now();
    if (now - last_ < kLookEvery) return std::nullopt;
    const auto passed = std::min<Clock::duration>(now - std::exchange(last_, now), 2 * kLookEvery);
    const CrashMarker* busy = nullptr;
    std::optional<Purpose> stuck;
    for (const Purpose purpose : {kNames, kStacks}) {
      const CrashMarker& marker = shared_.markers.at(purpose);
      AtFile& at = at_.at(purpose);
      const std::uint64_t turn = marker.turn.load();
      at.since = turn == at.turn ? at.since + passed : Clock::duration::zero();
      at.turn = turn;
      if (!marker.is_at_file()) continue;
      busy = &marker;
      if (at.since > times_.at_one) stuck = purpose;
      // A thread that was not woken since the last look waits for the file.
      const auto sleeps = sleeps_in_file_system(child_, marker.thread.load());
      at.asleep = sleeps && at.sleeps == sleeps ? at.asleep + passed : Clock::duration::zero();
      at.sleeps = sleeps;
      if (at.asleep <= kMostAsleep) continue;
      stuck = purpose;
      is_silent_ = true;
    }
    if (busy != nullptr) {
      at_all_ += passed;
      if (times_.at_all.count() != 0 && at_all_ > times_.at_all) shared_.is_closed.store(true);
    }
    const std::string of_file = busy != nullptr ? line(*busy) : std::string();
    if (show_progress_) show_progress_(of_file.empty() ? of_child_ : of_file);
    return stuck;
  }
  // The child's own progress line.
  void show(std::string_view line) {
    of_child_ = printable(line);
    if (show_progress_) show_progress_(of_child_);
  }
  // From now on the output is on the terminal: no progress lines.
  void be_quiet() {
    if (show_progress_) show_progress_({});
    show_progress_ = {};
  }
  const FileTimes& times() const { return times_; }
  // Whether look() found that a file system does not answer.
  bool is_silent() const { return is_silent_; }

 private:
  struct AtFile {
    std::uint64_t turn = 0;
    Clock::duration since{}, asleep{};
    std::optional<std::uint64_t> sleeps;  // of its thread
  };
  std::string line(const CrashMarker& marker) const {
    constexpr int kShownAfter = 3;           // seconds
    constexpr std::size_t kLongestEnd = 60;  // bytes of a path
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_all_).count();
    if (seconds < kShownAfter) return {};
    const std::string path = marker.name();
    return "tacho: files are read for names: " + std::to_string(seconds) + " s, " +
           printable(path.size() > kLongestEnd ? "..." + path.substr(path.size() - kLongestEnd) : path);
  }

  FileTimes times_;
  ShowProgress show_progress_;
  std::string of_child_;  // its progress line
  Shared& shared_;
  std::array<AtFile, kPurposes> at_{};
  pid_t child_ = -1;
  bool is_silent_ = false;
  Clock::duration at_all_{};
  Clock::time_point last_;
};

// Messages from the child over its pipe: a header, then its bytes.
enum class Kind : std::uint8_t {
  Begin,     // the child is confined; it reads untrusted files from now on
  Open,      // opens the output; answered: whether it is for a person
  Text,      // bytes of the output
  Progress,  // a line about the work, which replaces the last one
  Finish,    // ends the output; answered when all of it is written
  Fail,      // the work failed, with this error
  End,       // the work is done, with this exit status
};
struct Head {
  Kind kind = Kind::End;
  std::uint8_t detail = 0;  // the fault of an error, the exit status of an end
  std::uint16_t unused = 0;
  std::uint32_t size = 0;
};
struct Message {
  Head head;
  std::string_view text;  // until the next message
};

struct Pipe {
  format::Fd from, to;
  bool make() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    from = format::Fd(ends[0]);
    to = format::Fd(ends[1]);
    return true;
  }
};

// Writes all bytes to the pipe. False: the other end is closed.
bool write_all(int to, std::span<iovec> parts) {
  while (!parts.empty()) {
    const ssize_t sent = TEMP_FAILURE_RETRY(::writev(to, parts.data(), static_cast<int>(parts.size())));
    if (sent < 0) return false;
    for (auto left = static_cast<std::size_t>(sent); !parts.empty();) {
      iovec& part = parts.front();
      const std::size_t done = std::min(left, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + done;
      part.iov_len -= done;
      left -= done;
      if (part.iov_len > 0) break;
      parts = parts.subspan(1);
    }
  }
  return true;
}

// The child's ends of the pipes. Any error means that the parent is gone, and ends the child.
class MessageSender {
 public:
  MessageSender(int to, int from) : to_(to), from_(from) {}
  void send(Kind kind, std::uint8_t detail = 0, std::string_view text = {}) const {
    Head head{kind, detail, 0, static_cast<std::uint32_t>(text.size())};
    std::array<iovec, 2> parts{{{&head, sizeof head}, {const_cast<char*>(text.data()), text.size()}}};
    if (!write_all(to_, std::span(parts).first(text.empty() ? 1 : 2))) ::_exit(0);
  }
  bool ask(Kind kind) const {
    send(kind);
    char answer = 0;
    if (TEMP_FAILURE_RETRY(::read(from_, &answer, 1)) != 1) ::_exit(0);
    return answer != 0;
  }

 private:
  int to_, from_;
};

// The parent's end of the pipe.
class MessageReceiver {
 public:
  explicit MessageReceiver(int from) : from_(from), buffer_(sizeof(Head) + kMostText) {}
  // Reads what there is. False: the other end is closed.
  Result<bool> fill() {
    const ssize_t got = ::read(from_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno != EINTR) return system_error("the pipe of the process that reads the files", errno);
    end_ += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    return got != 0;
  }
  // The next complete message, if there is one. An invalid message is an error.
  Result<std::optional<Message>> next() {
    Message message;
    const std::size_t there = end_ - start_;
    if (there >= sizeof(Head)) {
      std::memcpy(&message.head, buffer_.data() + start_, sizeof(Head));
      const Head& head = message.head;
      if (head.kind > Kind::End || head.size > kMostText || head.detail > cli::kLastStatus)
        return Error{"the process that reads the files sent an invalid message"};
      if (there - sizeof(Head) >= head.size) {
        message.text = {buffer_.data() + start_ + sizeof(Head), head.size};
        start_ += sizeof(Head) + head.size;
        return std::optional(message);
      }
    }
    std::memmove(buffer_.data(), buffer_.data() + start_, there);
    start_ = 0;
    end_ = there;
    return std::optional<Message>();
  }

 private:
  int from_;
  std::vector<char> buffer_;
  std::size_t start_ = 0, end_ = 0;
};

// Makes the child's text safe to print: a damaged file may have taken control of the child.
void write_error(std::string_view text) {
  std::string safe = printable_lines(text);
  iovec part{safe.data(), safe.size()};
  if (!safe.empty()) (void)write_all(STDERR_FILENO, {&part, 1});
}

// Whether the child ended. The pipe does not show it while a process started by the child holds the other
// end.
bool has_died(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

void kill_group(pid_t child) {
  ::kill(-child, SIGKILL);
  ::kill(child, SIGKILL);
}

// Kills the child and the processes it started, and waits up to `longest`. Returns the status of
// waitpid(), or nothing when the child does not end because it waits for a file system that does not answer
// (state D).
std::optional<int> end_child(pid_t child, JobControl& job, std::chrono::milliseconds longest) {
  kill_group(child);
  const auto until = Clock::now() + longest;
  int pause = 1;  // milliseconds
  for (; !has_died(child) && Clock::now() < until; pause = std::min(2 * pause, 20))
    (void)::poll(nullptr, 0, pause);
  kill_group(child);  // processes it started meanwhile; the group's number is not reused before waitpid()
  job.end_control();
  int status = 0;
  const bool is_dead = has_died(child);
  while (::waitpid(child, &status, WNOHANG) != child)
    if (errno != EINTR || !is_dead) return std::nullopt;
  return status;
}

std::string how_it_ended(std::optional<int> status, bool took_too_long, std::chrono::milliseconds longest) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest).count();
  const std::string late = "it took more than " + std::to_string(seconds) + " s";
  if (!status)
    return (took_too_long ? late + "; " : "") + std::string(kSilent) + ", and the process cannot be ended";
  if (took_too_long) return late;
  if (WIFSIGNALED(*status)) return ::strsignal(WTERMSIG(*status));
  if (WEXITSTATUS(*status) == kNoMemory) return "there was not enough memory";
  return "exit status " + std::to_string(WEXITSTATUS(*status));
}

enum class End : std::uint8_t { Done, Died, Unconfined };

// Runs a task, restarting the child as often as needed.
class Supervisor {
 public:
  Supervisor(const Task& task, Shared& shared) : task_(task), shared_(shared), watch_(task, shared) {}

  Result<cli::ExitStatus> run(bool& is_confined);
  const std::vector<Death>& deaths() const { return deaths_; }

 private:
  [[noreturn]] void be_child(const MessageSender& sender, std::vector<int> kept, pid_t parent) noexcept;
  Result<> confine_child(std::vector<int> kept, pid_t parent) const;
  void open_for_reading(const std::vector<int>& kept) const;
  void work(const MessageSender& sender);
  Output output_of(const MessageSender& sender);
  Result<End> run_child();
  Result<End> serve(pid_t child, int from, int errors, JobControl& job);
  Result<> take(const Message& message);
  Result<> write(std::string_view text);
  Result<> answer(bool yes) const;
  bool take_errors(int from);
  Result<> close_screen();
  Result<End> after_death(std::optional<int> status, std::optional<Purpose> stuck);
  Result<> end_there(const std::string& path, std::string what);
  void warn(const std::string& what) const {
    std::fprintf(stderr, "tacho: %s: %s\n", printable(task_.input).c_str(), what.c_str());
  }

  const Task& task_;
  Shared& shared_;
  Watch watch_;
  std::vector<Death> deaths_;
  std::vector<std::string> silent_mounts_;
  std::size_t unknown_deaths_ = 0;
  bool is_serial_ = false, is_restarted_ = false;
  bool has_terminal_ = false;  // on standard error
  bool is_confined_ = false;   // a child was confined, so it may have read the capture
  int answers_ = -1;           // pipe to the child
  std::optional<Output> output_;
  bool is_given_ = false;  // bytes were written to the output
  bool is_finished_ = false, is_reader_gone_ = false, is_screen_open_ = false;
  std::string kept_errors_;  // the child's standard error that is not yet printed
  std::optional<cli::ExitStatus> status_;
  std::optional<Error> error_;
};

Output Supervisor::output_of(const MessageSender& sender) {
  const bool is_for_person = sender.ask(Kind::Open);
  const auto is_gone = [this] { return shared_.is_reader_gone.load(); };
  return {
      .write = [is_gone, &sender](std::string_view text) -> Result<Reader> {
        for (; !text.empty() && !is_gone(); text.remove_prefix(std::min(text.size(), kMostText)))
          sender.send(Kind::Text, 0, text.substr(0, kMostText));
        return is_gone() ? Reader::Gone : Reader::There;
      },
      .finish = [&sender]() -> Result<> {
        (void)sender.ask(Kind::Finish);
        return Done{};
      },
      .is_reader_gone = is_gone,
      .is_for_person = is_for_person,
      .show_progress =
          has_terminal_
              ? [&sender](
                    std::string_view line) { sender.send(Kind::Progress, 0, line.substr(0, kLongestPath)); }
              : ShowProgress()};
}

void Supervisor::work(const MessageSender& sender) {
  const auto fail = [&](const Error& error) {
    sender.send(Kind::Fail, static_cast<std::uint8_t>(error.fault),
                std::string_view(error.what).substr(0, kMostText));
  };
  try {
    // No other child can read what comes through a pipe: this one must not wait for a file.
    NetworkFiles files([this](std::string_view path) {
      shared_.has_silence.store(true);
      warn(printable(path) + " was left out: " + std::string(kSilent));
    });
    NetworkFiles* const tried = task_.can_restart ? nullptr : &files;
    Access names(shared_, kNames, task_, deaths_, silent_mounts_, tried),
        stacks(shared_, kStacks, task_, deaths_, silent_mounts_, tried);
    Child child{names,
                stacks,
                is_serial_,
                deaths_,
                [&] { return output_of(sender); },
                [this] { return shared_.is_asked_to_stop.load(); }};
    if (const auto status = task_.work(child); status)
      sender.send(Kind::End, static_cast<std::uint8_t>(*status));
    else
      fail(status.error());
  } catch (const std::bad_alloc&) {
    ::_exit(kNoMemory);
  } catch (const std::exception& fault) {
    // The parent reads from the marker which file the next child has to ignore.
    if (std::ranges::any_of(shared_.markers, &CrashMarker::is_at_file)) std::abort();
    fail(Error{fault.what()});
  }
}

// In the child, before it is confined: those that are O_PATH (pinned files), which may be of another mount
// namespace. A file that cannot be opened stays so: reads of it fail.
void Supervisor::open_for_reading(const std::vector<int>& kept) const {
  Access access(shared_, kNames, task_, deaths_, silent_mounts_, nullptr);
  for (const int one : kept) {
    const int flags = ::fcntl(one, F_GETFL);
    if (flags < 0 || (flags & O_PATH) == 0) continue;
    const std::string link = "/proc/self/fd/" + std::to_string(one);
    std::array<char, kLongestPath> path{};
    const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
    const std::string_view name(path.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    const symbolize::ScopedRead current(&access, name);
    if (current.is_refused()) continue;
    const format::Fd opened(::open(link.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (opened) (void)::dup2(opened.get(), one);
  }
}

// The child's process group is in the background of a terminal: it may write there, but not read.
Result<> Supervisor::confine_child(std::vector<int> kept, pid_t parent) const {
  // The parent handles Ctrl-C, since it may have to wait for a pager; this process ends with the parent.
  for (const int signal : {SIGINT, SIGQUIT, SIGTTOU, SIGTTIN}) std::signal(signal, SIG_IGN);
  (void)::setpgid(0, 0);
  // The OOM killer should choose this process and not its parent.
  if (const format::Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score)
    (void)!::write(score.get(), "1000", 4);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return Error{"its parent has ended"};
  open_for_reading(task_.kept);
  kept.insert(kept.end(), task_.kept.begin(), task_.kept.end());
  if (task_.input == "-") kept.push_back(STDIN_FILENO);
  return confine(task_.policy, task_.kernel_symbols, kept);
}

// Runs the work in the child. Ends with _exit(): no destructors of the parent's objects run.
void Supervisor::be_child(const MessageSender& sender, std::vector<int> kept, pid_t parent) noexcept {
  if (const auto done = confine_child(std::move(kept), parent); done) {
    sender.send(Kind::Begin);
    work(sender);
  } else {
    sender.send(Kind::Fail, 0, std::string_view(done.error().what).substr(0, kMostText));
  }
  std::fflush(stderr);
  ::_exit(0);
}

Result<> Supervisor::answer(bool yes) const {
  const char answer = yes ? 1 : 0;
  if (TEMP_FAILURE_RETRY(::write(answers_, &answer, 1)) < 0 && errno != EPIPE)
    return system_error("the process that reads the files", errno);
  return Done{};
}

Result<> Supervisor::write(std::string_view text) {
  if (is_reader_gone_) return Done{};
  if (is_finished_) return Error{"the process that reads the files sent text after the end of the output"};
  if (output_->is_for_person) watch_.be_quiet();
  is_given_ = true;
  const auto reader = output_->write(text);
  if (!reader) return reader.error();
  is_reader_gone_ = *reader == Reader::Gone;
  if (is_reader_gone_) shared_.is_reader_gone.store(true);
  return Done{};
}

Result<> Supervisor::take(const Message& message) {
  const Kind kind = message.head.kind;
  if ((kind == Kind::Text || kind == Kind::Finish) && !output_)
    return Error{"the process that reads the files sent text before it opened the output"};
  switch (kind) {
    case Kind::Begin:
      is_confined_ = true;
      break;
    case Kind::Open:
      if (!output_) {
        auto output = task_.open_output();
        if (!output) return std::move(output.error());
        output_.emplace(std::move(*output));
      }
      if (task_.is_screen) {
        watch_.be_quiet();
        is_screen_open_ = true;
        is_finished_ = false;
      }
      return answer(output_->is_for_person);
    case Kind::Text:
      return write(message.text);
    case Kind::Progress:
      watch_.show(message.text);
      break;
    case Kind::Finish:
      if (!std::exchange(is_finished_, true))
        if (auto done = output_->finish(); !done) return done;
      is_screen_open_ = false;
      return answer(true);
    case Kind::Fail:
      error_.emplace(Error{std::string(message.text)});
      for (const Fault fault : {Fault::Use, Fault::Output})
        if (message.head.detail == static_cast<std::uint8_t>(fault)) error_->fault = fault;
      break;
    case Kind::End:
      if (output_ && !is_finished_)
        return Error{"the process that reads the files ended before the end of the output"};
      status_ = static_cast<cli::ExitStatus>(message.head.detail);
      break;
  }
  return Done{};
}

// Passes on the child's standard error. A child that a damaged file controls gets no descriptor of a
// terminal, whose input it could write (TIOCSTI) and whose screen it could change; and if it held open a pipe
// of others, their reader would also wait for a child that cannot be killed (state D). While a screen (the
// interactive view) is open, keeps up to 64 kB. False: the child closed its end.
bool Supervisor::take_errors(int from) {
  constexpr std::size_t kMostKept = std::size_t{64} << 10;
  std::array<char, 4096> piece{};
  ssize_t got = -1;
  while (from >= 0 && (got = TEMP_FAILURE_RETRY(::read(from, piece.data(), piece.size()))) > 0) {
    kept_errors_.append(piece.data(), static_cast<std::size_t>(got));
    if (is_screen_open_)
      kept_errors_.resize(std::min(kept_errors_.size(), kMostKept));
    else if (kept_errors_.size() >= kMostKept)
      write_error(std::exchange(kept_errors_, {}));
  }
  if (!is_screen_open_) write_error(std::exchange(kept_errors_, {}));
  return got != 0;
}

// After a child that died or failed: closes the screen before messages are printed.
Result<> Supervisor::close_screen() {
  return std::exchange(is_screen_open_, false) ? output_->finish() : Result<>(Done{});
}

Result<End> Supervisor::serve(pid_t child, int from, int errors, JobControl& job) {
  MessageReceiver receiver(from);
  std::optional<Purpose> stuck;
  std::optional<Error> failure;
  bool is_dead = false, is_open = true;
  while (!status_ && !error_ && !failure) {
    auto message = receiver.next();
    if (message && *message) {
      if (auto done = take(**message); !done) failure = std::move(done.error());
      continue;
    }
    if (!message) {
      failure = std::move(message.error());
      break;
    }
    if (!is_open || (stuck = watch_.look())) break;
    if (task_.is_asked_to_stop && task_.is_asked_to_stop()) shared_.is_asked_to_stop.store(true);
    if (!take_errors(errors)) errors = -1;  // else poll() would return at once, again and again
    std::array<pollfd, 2> news{{{from, POLLIN, 0}, {errors, POLLIN, 0}}};
    const int timeout = is_dead ? 0 : static_cast<int>(kLookEvery.count());
    if (::poll(news.data(), news.size(), timeout) > 0 && news[0].revents != 0) {
      auto more = receiver.fill();
      if (!more) failure = std::move(more.error());
      is_open = more && *more;
    } else if (is_dead) {
      break;  // all of its messages were read
    } else if ((is_dead = has_died(child))) {
      kill_group(child);
    }
  }
  const auto status = end_child(child, job, watch_.is_silent() ? kMostInSilence : kMostAfterKill);
  if (auto closed = close_screen(); !closed && !failure) failure = std::move(closed.error());
  take_errors(errors);
  if (failure) return std::move(*failure);
  // A confined child could claim that it is not.
  if (error_ && !is_confined_) return End::Unconfined;
  return status_ || error_ ? End::Done : after_death(status, stuck);
}

Result<End> Supervisor::run_child() {
  Pipe texts, answers, errors;
  if (!texts.make() || !answers.make() || !errors.make()) return system_error("a pipe for text", errno);
  (void)::fcntl(texts.from.get(), F_SETPIPE_SZ, kPipeSize);
  (void)::fcntl(errors.from.get(), F_SETFL, O_NONBLOCK);
  has_terminal_ = task_.show_progress && ::isatty(STDERR_FILENO) != 0;
  watch_.begin();
  if (std::exchange(is_restarted_, true) && task_.restart)
    if (auto done = task_.restart(); !done) return std::move(done.error());
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) {
    error_ = system_error("a process that reads the files", errno);
    return is_confined_ ? End::Done : End::Unconfined;
  }
  if (child == 0) {
    if (::dup2(errors.to.get(), STDERR_FILENO) < 0) ::_exit(0);
    be_child(MessageSender(texts.to.get(), answers.from.get()), {texts.to.get(), answers.from.get()}, parent);
  }
  (void)::setpgid(child, child);  // in both processes, whichever runs first
  texts.to = format::Fd();
  errors.to = format::Fd();
  answers.from = format::Fd();
  answers_ = answers.to.get();
  JobControl job(child);
  watch_.watch(child);
  return serve(child, texts.from.get(), errors.from.get(), job);
}

Result<End> Supervisor::after_death(std::optional<int> status, std::optional<Purpose> stuck) {
  const bool is_silent = watch_.is_silent();
  const std::string how =
      how_it_ended(status, stuck.has_value(), is_silent ? kMostAsleep : watch_.times().at_one);
  const int signal = status && WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
  const bool at_names = shared_.markers[kNames].is_at_file();
  const bool at_stacks = shared_.markers[kStacks].is_at_file();
  const bool is_known = stuck || at_names != at_stacks;
  const Purpose purpose = stuck.value_or(at_stacks ? kStacks : kNames);
  const std::string path = is_known ? shared_.markers.at(purpose).name() : std::string();
  const std::string at = is_known ? " at " + printable(path) : "";
  const std::string died = std::string(kDied) + at;
  if (signal == SIGTERM || signal == SIGHUP || signal == SIGXCPU)
    return Error{"the process that reads the files was ended" + at + ": " + how};
  if (is_finished_ || !task_.can_restart || (is_given_ && !task_.restart)) {
    auto done = end_there(path, died + (is_finished_ ? " when all was written: " : ": ") + how);
    return done ? Result<End>(End::Done) : std::move(done.error());
  }
  if (!is_known && task_.is_screen && !at_names) return Error{died + ": " + how};
  if (!is_known) {
    if (is_serial_ && status && WIFEXITED(*status) && WEXITSTATUS(*status) == kNoMemory)
      return Error{"there is not enough memory", ENOMEM};
    if (++unknown_deaths_ > kMostUnknown) return Error{std::string(kDied) + " again and again: " + how};
    is_serial_ = true;
    return End::Died;
  }
  if (deaths_.size() == kMostDeaths || std::ranges::find(deaths_, path, &Death::path) != deaths_.end())
    return Error{"the processes that read the files die, the last one" + at + ": " + how};
  deaths_.push_back({path, how});
  if (const std::string mount = is_silent ? network_mount_of(path) : std::string(); !mount.empty())
    silent_mounts_.push_back(mount);
  return End::Died;
}

// Ends an incomplete output with a message.
Result<> Supervisor::end_there(const std::string& path, std::string what) {
  status_ = is_reader_gone_ ? cli::kWhole : cli::kIncomplete;
  if (is_reader_gone_) return Done{};
  if (is_finished_) {
    warn(what);
    return Done{};
  }
  if (!task_.can_restart) what += "; what comes through a pipe cannot be read again";
  const bool has_output = output_ && (task_.restart || is_given_);
  if (!has_output || task_.is_whole_or_nothing) return Error{what + ": put it into a file"};
  is_finished_ = true;
  if (auto done = output_->finish(); !done) return done;
  what += task_.can_restart ? ": the output ends there" : ": the output so far is kept";
  if (task_.can_restart && !path.empty() && !task_.skip_option.empty())
    what += "; " + task_.skip_option + " " + printable(path) + " leaves that file out";
  warn(what);
  return Done{};
}

Result<cli::ExitStatus> Supervisor::run(bool& is_confined) {
  is_confined = true;
  for (;;) {
    const auto end = run_child();
    if (!end) return end.error();
    is_confined = *end != End::Unconfined;
    if (*end == End::Died) continue;
    if (error_) return std::move(*error_);
    return *status_;
  }
}

}  // namespace

std::string SkippedFiles::refusal(std::string_view path) const {
  if (std::ranges::find(paths_, path) != paths_.end()) return "--skip-file leaves it out";
  return access_ == nullptr ? "" : access_->refusal(path);
}

std::string out_of_time(const std::string& input, const FileTimes& times) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(times.at_all);
  return "tacho: " + printable(input) + ": after " + std::to_string(seconds.count()) +
         " s of reading files, no more were read, so some names are missing; --max-file-time SECONDS gives "
         "more\n";
}

Result<cli::ExitStatus> run_view(const Task& task, bool& is_confined) {
  const SharedMemory shared = share_memory();
  if (!shared) return system_error("memory for a process that reads the files", errno);
  Supervisor supervisor(task, *shared);
  auto status = supervisor.run(is_confined);
  if (!status) return status;
  for (const Death& death : supervisor.deaths())
    std::fprintf(stderr, "tacho: %s: %s was left out: the process that read it died: %s\n",
                 printable(task.input).c_str(), printable(death.path).c_str(), death.how.c_str());
  const bool is_out_of_time = shared->has_refused.load();
  if (is_out_of_time) std::fputs(out_of_time(task.input, task.times).c_str(), stderr);
  const bool is_whole = supervisor.deaths().empty() && !is_out_of_time && !shared->has_silence.load();
  return *status == cli::kWhole && !is_whole ? cli::kIncomplete : *status;
}

Result<cli::ExitStatus> run_view_or(const Task& task, const std::function<Result<cli::ExitStatus>()>& here) {
  bool is_confined = false;
  auto status = run_view(task, is_confined);
  if (is_confined) return status;
  const std::string why = "no sandboxed process: " + printable(status.error().what);
  if (::geteuid() == 0)
    return Error{why + "; with --no-worker this process reads the files, with all its rights"};
  std::fprintf(stderr, "tacho: %s; this process reads the files\n", why.c_str());
  return here();
}

Result<JobDone> run_job(const Job& job, Policy policy, const JobLimits& limits) {
  JobDone done;
  Task task;
  task.policy = policy;
  task.times = limits.times;
  task.kept = limits.kept;
  task.show_progress = limits.show_progress;
  task.kernel_symbols = limits.kernel_symbols;
  task.work = [&job](Child& child) -> Result<cli::ExitStatus> {
    const std::vector<std::byte> bytes = job(child);
    const Output output = child.open_output();
    if (auto written = output.write(format::as_text(bytes)); !written) return written.error();
    if (auto finished = output.finish(); !finished) return finished.error();
    return cli::kWhole;
  };
  task.open_output = [&]() -> Result<Output> {
    return Output{.write = [&](std::string_view text) -> Result<Reader> {
                    if (text.size() > limits.most_bytes - done.bytes.size())
                      return Error{"the result of the process that reads the files is too large", EFBIG};
                    const auto bytes = std::as_bytes(std::span(text));
                    done.bytes.insert(done.bytes.end(), bytes.begin(), bytes.end());
                    return Reader::There;
                  },
                  .finish = []() -> Result<> { return Done{}; },
                  .is_reader_gone = [] { return false; }};
  };
  task.restart = [&done]() -> Result<> {
    done.bytes.clear();
    return Done{};
  };
  const SharedMemory shared = share_memory();
  if (!shared) return system_error("memory for a process that reads the files", errno);
  Supervisor supervisor(task, *shared);
  bool is_confined = false;
  if (auto status = supervisor.run(is_confined); !status) {
    if (is_confined) return std::move(status.error());
    return Error{"the process that reads the files cannot drop its rights: " + status.error().what};
  }
  done.deaths = supervisor.deaths();
  done.is_out_of_time = shared->has_refused.load();
  return done;
}

}  // namespace tacho::sandbox
