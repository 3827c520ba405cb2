// Programs with one known cause of their slowness: each runs some seconds as a small service would, and ends
// by writing its truth, as it measured it itself, which tests of `tacho why` compare with the answer.
#pragma once

#include <string>
#include <utility>
#include <vector>

// Where the time of a thread went, in ns. What is neither on a CPU nor waiting for one was blocked. A thread
// that another CPU wakes enters its run queue when its own CPU has got the interrupt: until then it is
// blocked here.
struct Times {
  long wall = 0, cpu = 0, runnable = 0;
  long blocked() const { return wall - cpu - runnable; }
  long without_runnable() const { return wall - runnable; }
  long on_cpu() const { return cpu; }
  long waiting_for_cpu() const { return runnable; }
  long all() const { return wall; }
};
Times operator-(Times end, Times begin);
void operator+=(Times& sum, Times part);

// A thread of the program, and what it measures of itself around its operations.
class Thread {
 public:
  explicit Thread(std::string name) : name_(std::move(name)) {}
  void begin();  // in the thread: takes its name
  Times now() const;
  void end();
  bool is_over() const;  // time to stop

  const std::string& name() const { return name_; }
  Times life() const { return life_; }
  long system() const { return system_; }  // its CPU time in the kernel
  Times idle;                              // it waited for work
  Times cause;                             // in the operation that is the planted cause
  Times second;                            // in another one, if the truth names two

 private:
  std::string name_;
  int schedstat_ = -1;
  Times begin_, life_;
  long system_ = 0;
};

using Body = void (*)(Thread&);
struct Role {
  const char* name;  // of the thread; several threads of one name are NAME-0, NAME-1 ...
  int count;
  Body body;
};

// What the first finding has to be, in the words of tacho why --json.
struct Truth {
  const char* cause = nullptr;
  const char* function = nullptr;             // where the time is spent or waited for
  long (Times::*kind)() const = &Times::all;  // which time of the operation is the cause's
  std::vector<std::pair<const char*, std::string>> more =
      {};                        // members of the JSON object: name, value as JSON
  const char* second = nullptr;  // function whose time is in Thread::second
};

// The whole run: starts the threads, waits for them, and writes the truth.
int run(const Truth& truth, const std::vector<Role>& roles);
int skip(const std::string& why);  // says why, and returns the exit status of skipped tests
[[noreturn]] void fail(const char* what);

void compute(int microseconds);  // about so long on a CPU of today; the work is always the same
void pin_to(int nth);            // the thread, to the nth CPU that the program may use
int cpus();                      // that it may use: one or two
long now_ms();
std::string quoted(const std::string& text);

bool is_on_disk();  // the current folder
// A file of random bytes in it, not in the page cache, which is removed in the end.
const std::string& big_file();
inline constexpr long kBigFile = 32 << 20;

// A process that does `body` until the program ends. Children start before threads.
void start_child(const char* name, void (*body)(int argument), int argument);

int hot();
int two_hot();
int spin();
int yield();
int syscalls();
int convoy();
int fsync_lock();
int lock_chain();
int rwlock();
int disk();
int faults();
int peer();
int pool();
int few_connections();
int healthy();
int neighbour();
int quota();
int forks();
