#include "report/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <utility>

#include "format/base/file.h"
#include "report/output/printable.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMostDeaths = 8;
constexpr std::size_t kLongestPath = 4096;
constexpr int kRefused = 125;                      // exit status of the worker
constexpr std::chrono::seconds kMostAfterKill(3);  // until a process is gone
constexpr std::string_view kCannotEnd = "its file system does not answer, and the process cannot be ended";
constexpr std::uint64_t kNever = ~std::uint64_t{0};

struct Ended {
  std::vector<std::byte> bytes;
  std::optional<int> status;  // as waitpid() gives it; nothing: it cannot be ended
  bool said_too_much = false;
  bool took_too_long = false;
};

bool send(int to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::write(to, bytes.data(), bytes.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

[[noreturn]] void be_worker(const Work& work, WorkPlace& place, const std::vector<WorkDone::Death>& deaths,
                            Reach reach, std::vector<int> kept, int to, pid_t parent) {
  kept.push_back(to);
  if (const auto done = become_worker(reach, parent, kept); !done) {
    const std::string& what = done.error().what;
    (void)send(to, std::as_bytes(std::span(what)));
    ::_exit(kRefused);
  }
  int status = kNoMemory;
  try {
    status = send(to, work(place, deaths)) ? 0 : kRefused;
    if (status == 0) place.finish();
  } catch (const std::bad_alloc&) {
    // The status tells.
  }
  std::fflush(stderr);
  ::_exit(status);
}

// All that comes until the worker has closed its end, or is to be ended.
void receive(int from, FileWatch& watch, const WorkerErrors& errors, std::size_t most_bytes, Ended& ended) {
  std::array<std::byte, std::size_t{1} << 16> piece;
  for (;;) {
    errors.pass_on();
    if (watch.look() != nullptr) {
      ended.took_too_long = true;
      return;
    }
    pollfd news{from, POLLIN, 0};
    if (::poll(&news, 1, static_cast<int>(FileWatch::kLookEvery.count())) <= 0) continue;
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const auto size = static_cast<std::size_t>(got);
    ended.said_too_much = ended.said_too_much || size > most_bytes - ended.bytes.size();
    if (ended.said_too_much) continue;  // read on, so that it can end
    ended.bytes.insert(ended.bytes.end(), piece.begin(), piece.begin() + got);
  }
}

Result<Ended> run_worker(const Work& work, WorkPlace& place, const std::vector<WorkDone::Death>& deaths,
                         Reach reach, const WorkLimits& limits, FileWatch& watch) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("a process that reads the files", errno);
  const format::Fd from(ends[0]);
  format::Fd to(ends[1]);
  WorkerErrors errors = WorkerErrors::make();
  watch.begin();
  std::fflush(nullptr);
  std::signal(SIGCHLD, SIG_DFL);  // ignored by whoever started us, its end would not be told
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return system_error("a process that reads the files", errno);
  if (child == 0) {
    errors.be_worker();
    be_worker(work, place, deaths, reach, limits.kept, to.get(), parent);
  }
  (void)::setpgid(child, child);  // whichever of the two comes first
  errors.be_parent();
  to = format::Fd();
  Ended ended;
  StoppedTogether stops(child);
  receive(from.get(), watch, errors, limits.most_bytes, ended);
  ended.status = end_worker(child, stops);
  errors.pass_on();
  return ended;
}

}  // namespace

FileWatch::FileWatch(const FileTimes& times, std::span<WorkPlace> places)
    : times_(times), places_(places), at_(places.size()), progress_(STDERR_FILENO, {}) {
  // One that does not answer leaves time for the others.
  if (times_.at_all.count() != 0) times_.at_one = std::min(times_.at_one, times_.at_all * 2 / 5);
}

void FileWatch::begin() {
  for (WorkPlace& place : places_) place.begin();
  at_.assign(places_.size(), {});
  last_ = Clock::now();
}

WorkPlace* FileWatch::look() {
  const auto now = Clock::now();
  if (now - last_ < kLookEvery) return nullptr;
  const auto passed = std::min<Clock::duration>(now - std::exchange(last_, now), 2 * kLookEvery);
  const WorkPlace* busy = nullptr;
  WorkPlace* stuck = nullptr;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::uint64_t turn = places_[i].turn();
    at_[i].since = turn == at_[i].turn ? at_[i].since + passed : Clock::duration::zero();
    at_[i].turn = turn;
    if (!places_[i].is_at_file()) continue;
    busy = &places_[i];
    if (at_[i].since > times_.at_one) stuck = &places_[i];
  }
  if (busy == nullptr) {
    progress_.erase();
    return nullptr;
  }
  at_all_ += passed;
  if (times_.at_all.count() != 0 && at_all_ > times_.at_all)
    for (WorkPlace& place : places_) place.close();
  show(*busy);
  return stuck;
}

void FileWatch::show(const WorkPlace& place) {
  constexpr int kShownAfter = 3;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_all_).count();
  if (seconds < kShownAfter) return;
  progress_.show([&] {
    constexpr std::size_t kLongest = 60;  // bytes of a path on the line: its end
    const std::string path = place.path();
    return "tacho: files are read for names: " + std::to_string(seconds) + " s, " +
           printable(path.size() > kLongest ? "..." + path.substr(path.size() - kLongest) : path);
  });
}

WorkerErrors WorkerErrors::make() {
  WorkerErrors errors;
  std::array<int, 2> ends{-1, -1};
  if (::isatty(STDERR_FILENO) != 0 || ::pipe2(ends.data(), O_CLOEXEC) != 0) return errors;
  errors.from_ = format::Fd(ends[0]);
  errors.to_ = format::Fd(ends[1]);
  (void)::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return errors;
}

void WorkerErrors::be_worker() {
  if (to_) (void)::dup2(to_.get(), STDERR_FILENO);
  to_ = format::Fd();
  from_ = format::Fd();
}

void WorkerErrors::pass_on() const {
  std::array<std::byte, 4096> piece{};
  for (;;) {
    const ssize_t got = from_ ? ::read(from_.get(), piece.data(), piece.size()) : 0;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    (void)send(STDERR_FILENO, std::span(piece).first(static_cast<std::size_t>(got)));
  }
}

// At a terminal its group is one in the background, which may write and gets no answer when it reads.
Result<> become_worker(Reach reach, pid_t parent, std::span<const int> kept) {
  (void)::setpgid(0, 0);
  for (const int signal : {SIGTTOU, SIGTTIN}) std::signal(signal, SIG_IGN);
  // When memory runs out, it is this one that shall go.
  if (const format::Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score)
    (void)!::write(score.get(), "1000", 4);
  // It ends with whoever waits for it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return Error{"whoever waits for it has ended"};
  return confine(reach, kept);
}

void kill_group(pid_t worker) {
  ::kill(-worker, SIGKILL);
  ::kill(worker, SIGKILL);
}

// Until its status is taken, the number of its group is nobody else's.
std::optional<int> end_worker(pid_t worker, StoppedTogether& stops) {
  kill_group(worker);
  const auto until = std::chrono::steady_clock::now() + kMostAfterKill;
  int status = 0, pause = 1;  // milliseconds
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(worker), &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
         info.si_pid != worker && std::chrono::steady_clock::now() < until) {
    (void)::poll(nullptr, 0, pause);
    pause = std::min(2 * pause, 20);
  }
  kill_group(worker);  // what it started meanwhile
  stops.end();
  while (::waitpid(worker, &status, WNOHANG) != worker)
    if (errno != EINTR || info.si_pid != worker) return std::nullopt;
  return status;
}

std::string how_it_died(int status) {
  if (WIFSIGNALED(status)) return ::strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status) == kNoMemory) return "there was not enough memory";
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

std::string how_it_ended(std::optional<int> status, bool took_too_long, const FileTimes& times) {
  std::string how;
  if (took_too_long) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(times.at_one);
    how = "it took more than " + std::to_string(seconds.count()) + " s";
  }
  if (!status) return (how.empty() ? how : how + "; ") + std::string(kCannotEnd);
  return took_too_long ? how : how_it_died(*status);
}

std::string out_of_time(const std::string& input, const FileTimes& times) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(times.at_all);
  return "tacho: " + printable(input) + ": after " + std::to_string(seconds.count()) +
         " s at files no further one was read, and what needs it has no name; --max-file-time SECONDS gives "
         "more\n";
}

struct WorkPlace::Shared {
  // The worker writes. The process that waits reads the numbers at any time, and the path when the worker is
  // dead.
  std::atomic<std::uint64_t> turn;  // counts the files
  std::atomic<std::size_t> size;    // of the path
  std::atomic<bool> is_closed, has_refused, is_finished;
  std::atomic<std::uint64_t> closed_from;  // the first turn that asked when it was closed
  std::array<char, kLongestPath> path;
};

WorkPlace::WorkPlace() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  shared_ = ::new (memory) Shared{};
  shared_->closed_from.store(kNever);
}

WorkPlace::~WorkPlace() {
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

void WorkPlace::begin() {
  if (shared_ == nullptr) return;
  // The worker before ended at its last turn, and asked no more when it was closed.
  if (shared_->is_closed.load() && shared_->closed_from.load() == kNever)
    shared_->closed_from.store(shared_->turn.load() + 1);
  shared_->turn.store(0);
  shared_->size.store(0);
  shared_->is_finished.store(false);
}

void WorkPlace::close() {
  if (shared_ != nullptr) shared_->is_closed.store(true);
}

bool WorkPlace::is_closed() {
  if (shared_ == nullptr || !shared_->is_closed.load()) return false;
  if (shared_->closed_from.load() == kNever) shared_->closed_from.store(shared_->turn.load());
  if (shared_->turn.load() < shared_->closed_from.load()) return false;
  shared_->has_refused.store(true);
  return true;
}

void WorkPlace::finish() {
  if (shared_ != nullptr) shared_->is_finished.store(true);
}
bool WorkPlace::is_finished() const { return shared_ != nullptr && shared_->is_finished.load(); }
bool WorkPlace::has_refused() const { return shared_ != nullptr && shared_->has_refused.load(); }

void WorkPlace::at(std::string_view path) {
  if (shared_ == nullptr) return;
  const std::size_t size = std::min(path.size(), kLongestPath);
  path.copy(shared_->path.data(), size);
  shared_->size.store(size);
  shared_->turn.fetch_add(1);
}

std::uint64_t WorkPlace::turn() const { return shared_ == nullptr ? 0 : shared_->turn.load(); }
bool WorkPlace::is_at_file() const { return shared_ != nullptr && shared_->size.load() != 0; }

std::string WorkPlace::path() const {
  if (shared_ == nullptr) return {};
  return {shared_->path.data(), std::min(shared_->size.load(), kLongestPath)};
}

std::string WorkGate::lack(std::string_view path) const {
  const auto death = std::ranges::find(deaths_, path, &WorkDone::Death::path);
  if (death != deaths_.end()) return "the process that read it died: " + death->how;
  return std::string(place_.is_closed() ? kOutOfTime : std::string_view());
}

Result<WorkDone> work_apart(const Work& work, Reach reach, const WorkLimits& limits) {
  WorkDone done;
  WorkPlace place;
  FileWatch watch(limits.times, {&place, 1});
  for (;;) {
    auto ended = run_worker(work, place, done.deaths, reach, limits, watch);
    if (!ended) return std::move(ended.error());
    if (ended->said_too_much) return Error{"the process that reads the files gives too much", EFBIG};
    const int exit = ended->status && WIFEXITED(*ended->status) ? WEXITSTATUS(*ended->status) : -1;
    if (exit == 0 || (!ended->status && place.is_finished())) {
      done.bytes = std::move(ended->bytes);
      done.is_out_of_time = place.has_refused();
      return done;
    }
    const std::string path = place.path();
    if (exit == kNoMemory && path.empty()) return Error{"there is not enough memory", ENOMEM};
    if (exit == kRefused)
      return Error{"the process that reads the files cannot give up its rights: " +
                   std::string(reinterpret_cast<const char*>(ended->bytes.data()), ended->bytes.size())};
    const std::string how = how_it_ended(ended->status, ended->took_too_long, watch.times());
    const bool is_known = std::ranges::find(done.deaths, path, &WorkDone::Death::path) != done.deaths.end();
    if (path.empty()) return Error{"the process that reads the files died: " + how};
    if (is_known || done.deaths.size() == kMostDeaths)
      return Error{"the processes that read the files die, the last one at " + path + ": " + how};
    done.deaths.push_back({path, how});
  }
}

}  // namespace tacho::report
