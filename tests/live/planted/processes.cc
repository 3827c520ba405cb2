// What other processes, and groups of them, take.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "planted.h"

void start_child(const char* name, void (*body)(int argument), int argument) {
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, name);
  body(argument);
  _exit(0);
}

static void compute_for_ever(int nth) {
  pin_to(nth);
  for (;;) compute(1000);
}

static void handle_request() { compute(500); }

static void serve(Thread& me) {
  if (me.name().find('-') != std::string::npos) pin_to(me.name().back() - '0');
  const Times before = me.now();
  while (!me.is_over()) handle_request();
  me.cause += me.now() - before;
}

// One thread on each CPU, beside two processes.
int neighbour() {
  for (int nth = 0; nth < 2 * cpus(); ++nth) start_child("neighbour", compute_for_ever, nth);
  return run({"runnable", "handle_request", &Times::waiting_for_cpu, {{"by", quoted("neighbour")}}},
             {{"worker", cpus(), serve}});
}

namespace {

// A cgroup that may use a fifth of one CPU, and its parent, in which the program was. Version 1 and 2 have
// files of other names.
class Group {
 public:
  std::string enter() {  // why it cannot
    const bool first = std::filesystem::exists(kFirst + "/cpu.cfs_quota_us");
    above_ = first ? kFirst + own_path("cpu") : "/sys/fs/cgroup" + own_path("");
    // Of version 2 a group with processes has no groups that count CPU time: beside the own one.
    path_ = (first ? above_ : std::filesystem::path(above_).parent_path().string()) + "/planted-" +
            std::to_string(getpid());
    if (mkdir(path_.c_str(), 0755) != 0) return "no cgroup " + path_ + " can be made";
    const bool limited =
        first ? put(path_ + "/cpu.cfs_period_us", "100000") && put(path_ + "/cpu.cfs_quota_us", "20000")
              : put(path_ + "/cpu.max", "20000 100000");
    // Others should not take the CPU before the quota is used up.
    (void)(first ? put(path_ + "/cpu.shares", "262144") : put(path_ + "/cpu.weight", "10000"));
    if (limited && put(path_ + "/cgroup.procs", std::to_string(getpid()))) return "";
    rmdir(path_.c_str());
    return "cgroups limit no CPU time here";
  }
  void leave() const {
    if (!put(above_ + "/cgroup.procs", std::to_string(getpid())) || rmdir(path_.c_str()) != 0)
      fail(path_.c_str());
  }

 private:
  static bool put(const std::string& file, const std::string& text) {
    std::ofstream out(file);
    out << text << std::flush;
    return out.good();
  }
  // Path of the program's group in the hierarchy that has this controller; "" stands for version 2.
  static std::string own_path(const std::string& controller) {
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string number, controllers, path;
      std::getline(fields, number, ':');
      std::getline(fields, controllers, ':');
      std::getline(fields, path);
      if (controller.empty() ? controllers.empty()
                             : ("," + controllers + ",").find("," + controller + ",") != std::string::npos) {
        return path == "/" ? "" : path;
      }
    }
    return "";
  }

  inline static const std::string kFirst = "/sys/fs/cgroup/cpu";
  std::string above_, path_;
};

}  // namespace

// Not running because of the quota and because of other processes is one time here: alone, nearly all is the
// quota's.
int quota() {
  Group group;
  if (const std::string why = group.enter(); !why.empty()) return skip(why);
  const int status =
      run({"throttled", "handle_request", &Times::waiting_for_cpu}, {{"worker", cpus(), serve}});
  group.leave();
  return status;
}

static void spawn_helper() {
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) fail("/bin/true");
}

static void serve_by_helpers(Thread& me) {
  while (!me.is_over()) {
    const Times before = me.now();
    spawn_helper();
    me.cause += me.now() - before;
    compute(50);
  }
}

// The share is the time of fork() and of the waits for the children, whose own time is not in it.
int forks() { return run({"fork", "spawn_helper", &Times::all}, {{"worker", 2, serve_by_helpers}}); }
