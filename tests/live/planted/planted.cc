// planted CAUSE [SECONDS [TRUTH_FILE]]: a service with the cause named, for 3 seconds unless said otherwise,
// on two CPUs at most. Writes its truth, one line of JSON, to the file, or to standard output. Exit status
// 77: it cannot be had here.
#include "planted.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

struct Run {
  double seconds = 3;
  long end = 0;  // by the monotonic clock
  const char* truth_file = nullptr;
  std::vector<int> cpus;
};
Run the_run;

struct Cause {
  const char* name;
  int (*run)();
  const char* what;
};
constexpr Cause kCauses[] = {
    {"hot", hot, "one function takes most of the CPU time"},
    {"two-hot", two_hot, "two functions behind one caller do"},
    {"spin", spin, "threads spin on a flag whose owner sleeps"},
    {"yield", yield, "the same, with sched_yield()"},
    {"syscalls", syscalls, "reads files by single bytes"},
    {"convoy", convoy, "threads queue for a lock that is held while computing"},
    {"fsync", fsync_lock, "a lock is held over fsync()"},
    {"chain", lock_chain, "a lock is held by a thread that waits for another lock"},
    {"rwlock", rwlock, "writers wait for readers that come one after another"},
    {"disk", disk, "reads from the disk"},
    {"faults", faults, "touches mapped pages that are on the disk"},
    {"peer", peer, "a peer answers after 20 ms"},
    {"pool", pool, "all workers of a pool wait for a backend, so its callers wait for a worker"},
    {"connections", few_connections, "threads wait for one of few connections, which they give back"},
    {"healthy", healthy, "a server that waits for work"},
    {"neighbour", neighbour, "other processes take its CPUs; the truth is of this process only"},
    {"quota", quota, "the quota of its cgroup is used up"},
    {"forks", forks, "starts processes that do nothing; the truth is of this process only"},
};

long clock_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000L + time.tv_nsec;
}

void take_two_cpus() {
  cpu_set_t allowed;
  cpu_set_t taken;
  CPU_ZERO(&taken);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) fail("sched_getaffinity");
  for (int cpu = 0; cpu < CPU_SETSIZE && the_run.cpus.size() < 2; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &taken);
    the_run.cpus.push_back(cpu);
  }
  if (sched_setaffinity(0, sizeof taken, &taken) != 0) fail("sched_setaffinity");
}

struct Started {
  Thread* thread;
  Body body;
};

void* start(void* argument) {
  const Started* started = static_cast<Started*>(argument);
  started->thread->begin();
  started->body(*started->thread);
  started->thread->end();
  return nullptr;
}

std::string number(const char* name, long value) {
  return ",\"" + std::string(name) + "\":" + std::to_string(value);
}

std::string share(long part, long whole) {
  char text[40];
  std::snprintf(text, sizeof text, ",\"share\":%.4f", static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

void write_truth(const Truth& truth, const std::vector<Thread>& threads) {
  Times life, idle, cause, second;
  std::string each;
  for (const Thread& thread : threads) {
    life += thread.life();
    idle += thread.idle;
    cause += thread.cause;
    second += thread.second;
    each += (each.empty() ? "" : ",") + quoted(thread.name()) +
            ":{\"wall_ns\":" + std::to_string(thread.life().wall) + number("cpu_ns", thread.life().cpu) +
            number("runnable_ns", thread.life().runnable) + number("blocked_ns", thread.life().blocked()) +
            number("idle_ns", thread.idle.wall) + number("system_ns", thread.system()) +
            number("cause_ns", (thread.cause.*truth.kind)()) + "}";
  }
  const long wall = life.wall - idle.wall;
  std::string text = "{\"cause\":" + quoted(truth.cause);
  if (truth.function) {
    const long time = (cause.*truth.kind)();
    text += ",\"function\":" + quoted(truth.function) + share(time, wall) + number("cause_ns", time);
  }
  if (truth.second) {
    text += ",\"second\":{\"function\":" + quoted(truth.second) + share((second.*truth.kind)(), wall) + "}";
  }
  for (const auto& [name, value] : truth.more) text += ",\"" + std::string(name) + "\":" + value;
  text += number("wall_ns", wall) + number("runnable_ns", life.runnable - idle.runnable) +
          number("idle_ns", idle.wall) + ",\"per_thread\":{" + each + "}}\n";
  FILE* file = the_run.truth_file ? std::fopen(the_run.truth_file, "w") : stdout;
  if (file == nullptr || std::fputs(text.c_str(), file) < 0 || std::fflush(file) != 0) fail("truth");
}

}  // namespace

Times operator-(Times end, Times begin) {
  return {end.wall - begin.wall, end.cpu - begin.cpu, end.runnable - begin.runnable};
}

void operator+=(Times& sum, Times part) {
  sum.wall += part.wall;
  sum.cpu += part.cpu;
  sum.runnable += part.runnable;
}

void Thread::begin() {
  pthread_setname_np(pthread_self(), name_.c_str());
  schedstat_ = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (schedstat_ < 0) fail("/proc/thread-self/schedstat");
  begin_ = now();
}

Times Thread::now() const {
  char text[100] = "";
  if (pread(schedstat_, text, sizeof text - 1, 0) <= 0) fail("/proc/thread-self/schedstat");
  char* rest = nullptr;
  std::strtol(text, &rest, 10);  // its CPU time, but only up to the last tick
  return {clock_of(CLOCK_MONOTONIC), clock_of(CLOCK_THREAD_CPUTIME_ID), std::strtol(rest, nullptr, 10)};
}

void Thread::end() {
  life_ = now() - begin_;
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  system_ = used.ru_stime.tv_sec * 1'000'000'000L + used.ru_stime.tv_usec * 1000L;
  close(schedstat_);
}

bool Thread::is_over() const { return clock_of(CLOCK_MONOTONIC) >= the_run.end; }

int run(const Truth& truth, const std::vector<Role>& roles) {
  std::vector<Thread> threads;
  std::vector<Started> started;
  for (const Role& role : roles) {
    for (int i = 0; i < role.count; ++i) {
      threads.emplace_back(role.name + (role.count > 1 ? "-" + std::to_string(i) : ""));
      started.push_back({nullptr, role.body});
    }
  }
  the_run.end = clock_of(CLOCK_MONOTONIC) + static_cast<long>(the_run.seconds * 1e9);
  std::vector<pthread_t> handles(threads.size());
  for (std::size_t i = 0; i < threads.size(); ++i) {
    started[i].thread = &threads[i];
    if (pthread_create(&handles[i], nullptr, start, &started[i]) != 0) fail("pthread_create");
  }
  for (const pthread_t handle : handles) pthread_join(handle, nullptr);
  write_truth(truth, threads);
  return 0;
}

int skip(const std::string& why) {
  std::fprintf(stderr, "planted: %s\n", why.c_str());
  return 77;
}

void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void compute(int microseconds) {
  unsigned value = 1;
  for (int i = 0; i < microseconds * 750; ++i) {
    value = value * 1664525 + 1013904223;
    asm volatile("" : "+r"(value));
  }
}

void pin_to(int nth) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(the_run.cpus[static_cast<std::size_t>(nth) % the_run.cpus.size()], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

int cpus() { return static_cast<int>(the_run.cpus.size()); }

long now_ms() { return clock_of(CLOCK_MONOTONIC) / 1'000'000; }

std::string quoted(const std::string& text) { return '"' + text + '"'; }

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (argc > 2) the_run.seconds = std::atof(argv[2]);
  the_run.truth_file = argc > 3 ? argv[3] : nullptr;
  for (const Cause& cause : kCauses) {
    if (name != cause.name) continue;
    take_two_cpus();
    return cause.run();
  }
  std::fprintf(stderr, "usage: planted CAUSE [SECONDS [TRUTH_FILE]]\n");
  for (const Cause& cause : kCauses) std::fprintf(stderr, "  %-10s %s\n", cause.name, cause.what);
  return 2;
}
