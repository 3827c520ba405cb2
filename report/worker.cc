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

#include "format/file.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMostDeaths = 8;
constexpr std::size_t kLongestPath = 4096;
constexpr int kRefused = 125;  // exit status of the worker
constexpr std::chrono::milliseconds kLookEvery(500);

struct Ended {
  std::vector<std::byte> bytes;
  int status = 0;  // as waitpid() gives it
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
                            Reach reach, int to, pid_t parent) {
  if (const auto done = become_worker(reach, parent); !done) {
    const std::string& what = done.error().what;
    (void)send(to, std::as_bytes(std::span(what)));
    ::_exit(kRefused);
  }
  int status = kNoMemory;
  try {
    status = send(to, work(place, deaths)) ? 0 : kRefused;
  } catch (const std::bad_alloc&) {
    // The status tells.
  }
  std::fflush(stderr);
  ::_exit(status);
}

// All that comes until the worker has closed its end.
void receive(int from, pid_t worker, const WorkPlace& place, const WorkLimits& limits, Ended& ended) {
  std::array<std::byte, std::size_t{1} << 16> piece;
  Patience patience(limits.at_one_file, kLookEvery);
  for (;;) {
    pollfd news{from, POLLIN, 0};
    if (::poll(&news, 1, static_cast<int>(kLookEvery.count())) == 0) {
      if (!ended.took_too_long && patience.is_over(place)) {
        ended.took_too_long = true;
        kill_group(worker);
      }
      continue;
    }
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const auto size = static_cast<std::size_t>(got);
    ended.said_too_much = ended.said_too_much || size > limits.most_bytes - ended.bytes.size();
    if (ended.said_too_much) continue;  // read on, so that it can end
    ended.bytes.insert(ended.bytes.end(), piece.begin(), piece.begin() + got);
  }
}

Result<Ended> run_worker(const Work& work, WorkPlace& place, const std::vector<WorkDone::Death>& deaths,
                         Reach reach, const WorkLimits& limits) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("a process that reads the files", errno);
  const format::Fd from(ends[0]);
  format::Fd to(ends[1]);
  std::fflush(nullptr);
  std::signal(SIGCHLD, SIG_DFL);  // ignored by whoever started us, its end would not be told
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return system_error("a process that reads the files", errno);
  if (child == 0) be_worker(work, place, deaths, reach, to.get(), parent);
  (void)::setpgid(child, child);  // whichever of the two comes first
  to = format::Fd();
  Ended ended;
  StoppedTogether stops(child);
  receive(from.get(), child, place, limits, ended);
  const auto status = wait_for_worker(child, stops);
  if (!status) return status.error();
  ended.status = *status;
  return ended;
}

}  // namespace

bool Patience::is_over(const WorkPlace& place) {
  const std::uint64_t turn = place.turn();
  seen_ = turn == turn_ ? seen_ + 1 : 0;
  turn_ = turn;
  return place.is_at_file() && seen_ > looks_;
}

// At a terminal its group is one in the background, which may write and gets no answer when it reads.
Result<> become_worker(Reach reach, pid_t parent) {
  (void)::setpgid(0, 0);
  for (const int signal : {SIGTTOU, SIGTTIN}) std::signal(signal, SIG_IGN);
  // When memory runs out, it is this one that shall go.
  if (const format::Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score)
    (void)!::write(score.get(), "1000", 4);
  // It ends with whoever waits for it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return Error{"whoever waits for it has ended"};
  return confine(reach);
}

void kill_group(pid_t worker) {
  ::kill(-worker, SIGKILL);
  ::kill(worker, SIGKILL);
}

// Until its status is taken, the number of its group is nobody else's.
Result<int> wait_for_worker(pid_t worker, StoppedTogether& stops) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(worker), &info, WEXITED | WNOWAIT) < 0)
    if (errno != EINTR) return system_error("the process that reads the files", errno);
  kill_group(worker);
  stops.end();
  int status = 0;
  while (::waitpid(worker, &status, 0) < 0)
    if (errno != EINTR) return system_error("the process that reads the files", errno);
  return status;
}

std::string how_it_died(int status) {
  if (WIFSIGNALED(status)) return ::strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status) == kNoMemory) return "there was not enough memory";
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

struct WorkPlace::Shared {
  // The worker writes. The process that waits reads the numbers at any time, and the path when the worker is
  // dead.
  std::atomic<std::uint64_t> turn;  // counts the files
  std::atomic<std::size_t> size;    // of the path
  std::array<char, kLongestPath> path;
};

WorkPlace::WorkPlace() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) shared_ = ::new (memory) Shared{};
}

WorkPlace::~WorkPlace() {
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

void WorkPlace::begin() {
  if (shared_ == nullptr) return;
  shared_->turn.store(0);
  shared_->size.store(0);
}

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
  return death == deaths_.end() ? std::string() : "the process that read it died: " + death->how;
}

Result<WorkDone> work_apart(const Work& work, Reach reach, const WorkLimits& limits) {
  WorkDone done;
  for (;;) {
    WorkPlace place;
    auto ended = run_worker(work, place, done.deaths, reach, limits);
    if (!ended) return std::move(ended.error());
    if (ended->said_too_much) return Error{"the process that reads the files gives too much", EFBIG};
    const int exit = WIFEXITED(ended->status) ? WEXITSTATUS(ended->status) : -1;
    if (exit == 0) {
      done.bytes = std::move(ended->bytes);
      return done;
    }
    const std::string path = place.path();
    if (exit == kNoMemory && path.empty()) return Error{"there is not enough memory", ENOMEM};
    if (exit == kRefused)
      return Error{"the process that reads the files cannot give up its rights: " +
                   std::string(reinterpret_cast<const char*>(ended->bytes.data()), ended->bytes.size())};
    // The sanitizers' end is an exit status.
    const std::string how = ended->took_too_long
                                ? "it took more than " + std::to_string(limits.at_one_file.count()) + " s"
                                : how_it_died(ended->status);
    const bool is_known = std::ranges::find(done.deaths, path, &WorkDone::Death::path) != done.deaths.end();
    if (path.empty()) return Error{"the process that reads the files died: " + how};
    if (is_known || done.deaths.size() == kMostDeaths)
      return Error{"the processes that read the files die, the last one at " + path + ": " + how};
    done.deaths.push_back({path, how});
  }
}

}  // namespace tacho::report
