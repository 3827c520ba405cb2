// The flight recorder: samples stay in the kernel's rings until somebody wants them.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "live_test_case.h"

namespace tacho::live {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Flight : public LiveTest {
 protected:
  Program start(std::vector<std::string> words) {
    words.insert(words.begin(), tacho_record());
    return Program::start(words, folder);
  }
  std::vector<std::string> snapshots() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("perf.data.") && name != "perf.data.old") names.push_back(name);
    }
    std::ranges::sort(names);
    return names;
  }
  static bool says(const Program& run, std::string_view text) {
    for (int i = 0; i < 500 && run.errors().find(text) == std::string::npos; ++i)
      std::this_thread::sleep_for(milliseconds(20));
    return run.errors().find(text) != std::string::npos;
  }
};

TEST_F(Flight, TheLastSamplesAreKeptAndNamed) {
  // More than 4 pages hold, by processes that are gone when the capture is made.
  ASSERT_EQ(record({"--overwrite", "-m", "4", "-g", "-e", kGetppid, "sh", "-c",
                    "i=0; while [ $i -lt 60 ]; do i=$((i+1)); " + getppid_load() + " 20; done"}),
            0)
      << errors;
  const CaptureSeen seen = capture();
  EXPECT_TRUE(seen.is_closed && !seen.has_damage);
  EXPECT_GT(seen.samples.size(), 20u) << errors;
  EXPECT_LT(seen.samples.size(), 1200u) << "16 KiB of each CPU";
  EXPECT_EQ(seen.lost, 0u) << "what was written over is no loss";
  std::set<std::uint32_t> named;
  for (const auto& [process, file] : seen.mapped_by) named.insert(process);
  for (const SampleSeen& sample : seen.samples) ASSERT_TRUE(named.contains(sample.pid)) << sample.pid;
}

TEST_F(Flight, EverySignalMakesACaptureThatIsWholeByItself) {
  Program run = start({"--overwrite", "-g", "-e", kGetppid, getppid_load(), "4000", "4", "1000"});
  ASSERT_TRUE(says(run, "Recording into memory has begun"));
  EXPECT_FALSE(fs::exists(folder + "/perf.data"));
  for (std::size_t count = 1; count <= 2; ++count) {
    std::this_thread::sleep_for(milliseconds(500));
    run.send(SIGUSR2);
    for (int i = 0; i < 500 && snapshots().size() < count; ++i) std::this_thread::sleep_for(milliseconds(20));
    ASSERT_EQ(snapshots().size(), count) << run.errors();
  }
  EXPECT_EQ(run.wait(60), 0) << run.errors();
  std::size_t before = 0;
  std::string by_cpu;  // of all captures
  for (const std::string& name : {snapshots()[0], snapshots()[1], std::string("perf.data")}) {
    const CaptureSeen seen = capture(name);
    std::map<std::uint32_t, std::size_t> counts;
    for (const SampleSeen& sample : seen.samples) ++counts[sample.cpu];
    by_cpu += name + ":";
    for (const auto& [cpu, count] : counts)
      by_cpu += " " + std::to_string(count) + " on CPU " + std::to_string(cpu);
    by_cpu += "\n";
    EXPECT_TRUE(seen.is_closed && !seen.has_damage) << name;
    EXPECT_GT(seen.samples.size(), before) << name << ": the rings had room for all\n" << by_cpu;
    EXPECT_TRUE(std::ranges::find(seen.mapped, getppid_load()) != seen.mapped.end()) << name;
    before = seen.samples.size() + seen.lost;
  }
  EXPECT_GE(before, 3900u) << "but for those of the moments when the rings were read: " << by_cpu
                           << run.errors();
}

TEST_F(Flight, PerfReadsTheSameSamples) {
  if (std::system("perf --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs perf";
  ASSERT_EQ(record({"--overwrite", "-g", "-e", kGetppid, getppid_load(), "70"}), 0) << errors;
  EXPECT_EQ(capture().count(kGetppid), 70u);
  const std::string count =
      "test \"$(cd " + folder + " && perf script -F event 2>/dev/null | grep -c getppid)\" = 70";
  EXPECT_EQ(std::system(count.c_str()), 0);
}

TEST_F(Flight, APathThatWillNotDoIsReportedAtTheStart) {
  fs::create_directory(folder + "/open");
  fs::permissions(folder + "/open", fs::perms::all);
  EXPECT_EQ(record({"--overwrite", "-a", "-o", "open/x.data", "true"}), 4);
  EXPECT_TRUE(said("root does not write where other users may replace files")) << errors;
  EXPECT_EQ(record({"--overwrite", "-a", "-o", "nowhere/x.data", "true"}), 4);
}

}  // namespace
}  // namespace tacho::live
