#include "record/absent_options.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "format/result.h"

namespace tacho::record {
namespace {

using cli::Takes;

struct Row {
  std::string_view names;
  Takes takes;
  std::string_view instead;
};

constexpr std::string_view kTraces = "processor traces (AUX) are not recorded; perf record does that";
constexpr std::string_view kThreads =
    "it changes nothing: one thread reads all rings, and another one packs and writes; where events are "
    "lost, "
    "larger rings help (-m 8M)";
constexpr std::string_view kSoon =
    "it changes nothing: every event is on its way to the file within half a second";
constexpr std::string_view kDescribed =
    "it changes nothing: what runs already is always described at the start, by one thread";
constexpr std::string_view kClang =
    "TACHO_CLANG in the environment names the clang; what needs options of its own is compiled by hand: -e "
    "./PROG.bpf.o";

constexpr Row kRows[] = {
    {"-n,--no-samples", Takes::Nothing, "events are recorded one by one here; perf stat counts them"},
    {"-r,--realtime", Takes::Value,
     "the thread that drains the rings raises its own priority; chrt -f PRIORITY tacho record gives it more"},
    {"-S,--snapshot", Takes::Optional, kTraces},
    {"--aux-sample", Takes::Optional, kTraces},
    {"--clang-opt", Takes::Value, kClang},
    {"--clang-path", Takes::Value, kClang},
    {"--debuginfod", Takes::Optional,
     "nothing is looked up while recording; tacho script and tacho report take it when they read"},
    {"--dry-run", Takes::Nothing, "a recording of nothing tries the rest: -o /tmp/try.data -- true"},
    {"--group", Takes::Nothing, "braces make a group: -e '{cpu-clock,page-faults}'"},
    {"--kcore", Takes::Nothing,
     "the kernel's code is not copied; its names are, with every capture. perf record copies it"},
    {"--no-bpf-event", Takes::Nothing,
     "BPF programs are always told: without that their frames have no names"},
    {"--synth", Takes::Value, "what runs already is always described; without that its frames have no names"},
    {"--running-time", Takes::Nothing, "times of counters are kept with -s, for each thread that ends"},
    {"--wakers", Takes::Optional,
     "-e offcpu,waking -g records waits and who ended them; tacho report and tacho folded take --wakers"},
    {"--vmlinux", Takes::Value,
     "nothing is looked up while recording; tacho script and tacho report take -k FILE"},
};

// How perf does its work, and not what it records: they stand in command lines that were made for perf, and
// are no reason to record nothing.
constexpr Row kWithoutEffect[] = {
    {"--affinity", Takes::Value, kThreads},           {"--aio", Takes::Optional, kThreads},
    {"--threads", Takes::Optional, kThreads},         {"--mmap-flush", Takes::Value, kSoon},
    {"--no-buffering", Takes::Nothing, kSoon},        {"--num-thread-synthesize", Takes::Value, kDescribed},
    {"--proc-map-timeout", Takes::Value, kDescribed}, {"--tail-synthesize", Takes::Nothing, kDescribed},
};

// What these ask for is so in every capture.
constexpr std::string_view kAlways[] = {
    "-T,--timestamp",        "-P,--period",   "--sample-cpu",   "--sample-identifier",
    "-N,--no-buildid-cache", "--buildid-all", "--buildid-mmap", "--timestamp-boundary",
    "--namespaces",          "--all-cgroups",
};

}  // namespace

void add_absent_options(std::vector<cli::Option>& rows, std::vector<std::string>& notes) {
  for (const Row& row : kRows) {
    const auto refuse = [&row](std::string_view) -> Result<> {
      return use_error(std::string(row.names.substr(row.names.find("--"))) + ": " + std::string(row.instead));
    };
    rows.push_back({std::string(row.names), row.takes, "VALUE", "", refuse});
  }
  for (const Row& row : kWithoutEffect) {
    const auto note = [&row, &notes](std::string_view) -> Result<> {
      const std::string line = std::string(row.names) + ": " + std::string(row.instead);
      if (std::ranges::find(notes, line) == notes.end()) notes.push_back(line);
      return Done{};
    };
    rows.push_back({std::string(row.names), row.takes, "VALUE", "", note});
  }
  for (const std::string_view names : kAlways)
    rows.push_back(
        {std::string(names), Takes::Nothing, "", "", [](std::string_view) { return Result<>(Done{}); }});
}

}  // namespace tacho::record
