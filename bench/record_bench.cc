// CPU time of the recorder for one event with a stack of 8 user frames, at full speed: the recorder runs for
// the whole system, a load makes kEvents events, and the recorder's time without any load is taken off.
// Counters: ns_per_event (recorder), load_ns_per_call (traced program), lost. Run as root:
// build-bench/bin/record_bench
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using std::chrono::milliseconds;

constexpr long kEvents = 500000;

pid_t start(std::vector<std::string> command, const std::string& log) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const int errors = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(errors, 2);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(126);
}

// User and system time of a child that ended, ns.
double cpu_time(pid_t pid) {
  rusage usage{};
  int how = 0;
  wait4(pid, &how, 0, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

struct Cost {
  double recorder_ns = 0, load_ns = 0;
  double samples = 0, lost = 0;
};

Cost record_load(const std::vector<std::string>& options, long events) {
  std::string folder = (std::filesystem::temp_directory_path() / "tacho-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return {};
  const std::string output = folder + "/bench.data", log = folder + "/log";
  std::vector<std::string> command{
      TACHO_RECORD, "-a", "-e", std::string(TACHO_LIVE_SOURCES) + "/getppid_channel.bpf.c", "-o", output};
  command.insert(command.end(), options.begin(), options.end());
  const pid_t recorder = start(command, log);
  for (int i = 0; i < 1000 && !std::filesystem::exists(output); ++i)
    std::this_thread::sleep_for(milliseconds(10));
  std::this_thread::sleep_for(milliseconds(300));
  Cost cost;
  cost.load_ns = cpu_time(start({TACHO_GETPPID_LOAD, std::to_string(events), "8"}, folder + "/load"));
  std::this_thread::sleep_for(milliseconds(300));
  kill(recorder, SIGINT);
  cost.recorder_ns = cpu_time(recorder);
  std::stringstream text;
  text << std::ifstream(log).rdbuf();
  const std::string said = text.str();
  if (std::smatch match; std::regex_search(said, match, std::regex("\\((\\d+) samples, (\\d+) lost\\)"))) {
    cost.samples = std::stod(match[1]);
    cost.lost = std::stod(match[2]);
  }
  std::filesystem::remove_all(folder);
  return cost;
}

void record_events(benchmark::State& state, const std::vector<std::string>& options) {
  for (auto _ : state) {
    const Cost idle = record_load(options, 0);
    const Cost busy = record_load(options, kEvents);
    if (busy.samples == 0) {
      state.SkipWithError("nothing was recorded: needs root, BPF and clang");
      return;
    }
    state.SetIterationTime((busy.recorder_ns - idle.recorder_ns) / 1e9);
    state.counters["ns_per_event"] = (busy.recorder_ns - idle.recorder_ns) / (busy.samples + busy.lost);
    state.counters["load_ns_per_call"] = busy.load_ns / static_cast<double>(kEvents);
    state.counters["lost"] = busy.lost;
  }
}

BENCHMARK_CAPTURE(record_events, with_stacks_plain, {"-g", "-z0"})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(record_events, with_stacks_compressed, {"-g"})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(record_events, without_stacks_compressed, {})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
