// One recording in several files, and recordings that end before the disk is full.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "live_test_case.h"

namespace tacho::live {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Rotation : public LiveTest {
 protected:
  Program start(std::vector<std::string> words) {
    words.insert(words.begin(), tacho_record());
    return Program::start(words, folder);
  }
  // The captures of the test, oldest first; the one that is being written is last.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("perf.data.")) names.push_back(name);
    }
    std::ranges::sort(names);
    if (fs::exists(folder + "/perf.data")) names.emplace_back("perf.data");
    return names;
  }
  bool come_to_be(std::size_t count) const {
    for (int i = 0; i < 1000 && files().size() < count; ++i) std::this_thread::sleep_for(milliseconds(20));
    return files().size() >= count;
  }
  static bool says(const Program& run, std::string_view text) {
    for (int i = 0; i < 500 && run.errors().find(text) == std::string::npos; ++i)
      std::this_thread::sleep_for(milliseconds(20));
    return run.errors().find(text) != std::string::npos;
  }
  // Every file is whole by itself, and all of them have every call once. Gives the samples.
  std::size_t expect_whole(bool with_stacks) const {
    std::size_t samples = 0;
    for (const std::string& name : files()) {
      const CaptureSeen seen = capture(name);
      EXPECT_TRUE(seen.is_closed && !seen.has_damage) << name;
      // The names of what was hit, or all names of the kernel.
      EXPECT_TRUE(!seen.features.symbol_pack.empty() || seen.features.attachment("kallsyms") != nullptr)
          << name;
      const bool has_mapping = std::ranges::find(seen.mapped, getppid_load()) != seen.mapped.end();
      EXPECT_TRUE(!with_stacks || seen.samples.empty() || has_mapping) << name;
      samples += seen.samples.size() + seen.lost;
    }
    return samples;
  }
};

TEST_F(Rotation, ASignalBeginsAnotherFileAndNothingIsLostBetween) {
  Program run = start({"--switch-output", "-g", "-e", kGetppid, getppid_load(), "8000", "4", "1000"});
  ASSERT_TRUE(says(run, "Recording has begun"));
  for (std::size_t finished = 1; finished <= 3; ++finished) {
    run.send(SIGUSR2);
    ASSERT_TRUE(come_to_be(finished + 1)) << run.errors();
  }
  EXPECT_EQ(run.wait(60), 0) << run.errors();
  EXPECT_GE(files().size(), 4u);
  EXPECT_FALSE(fs::exists(folder + "/perf.data")) << "the last one is named by its time, too";
  EXPECT_EQ(expect_whole(true), 8000u);
  EXPECT_NE(run.errors().find("files perf.data.* (8000 samples, 0 lost)"), std::string::npos) << run.errors();
}

TEST_F(Rotation, LossesStandInTheFileOfTheirTime) {
  const std::size_t calls = scaled(2'000'000);
  Program run =
      start({"--switch-output=1M", "-m", "4", "-e", kGetppid, "-g", getppid_load(), std::to_string(calls)});
  EXPECT_EQ(run.wait(120), 0) << run.errors();
  EXPECT_GE(files().size(), 2u);
  EXPECT_EQ(expect_whole(false), calls) << run.errors();
}

// It grew to 28 MB until processes were read on a busy machine.
TEST_F(Rotation, TheFirstFileEndsAtItsSizeToo) {
  Program run = start(
      {"--switch-output=1M", "--no-pack", "-z0", "-m", "64K", "-e", kGetppid, getppid_load(), "300000"});
  EXPECT_EQ(run.wait(60), 0) << run.errors();
  const auto names = files();
  ASSERT_GE(names.size(), 3u) << run.errors();
  EXPECT_LT(fs::file_size(folder + "/" + names.front()), 5u << 20);
}

TEST_F(Rotation, ShortProcessesAreNamedInTheFileOfTheirSamples) {
  // A copy: other tests run the program meanwhile.
  const std::string load = folder + "/short_load";
  fs::copy_file(getppid_load(), load);
  Program run = start({"--switch-output=100ms", "-a", "-g", "-e", kGetppid, "sh", "-c",
                       "i=0; while [ $i -lt 1500 ]; do i=$((i+1)); " + load + " 5; done"});
  EXPECT_EQ(run.wait(120), 0) << run.errors();
  EXPECT_GE(files().size(), 2u);
  // Others on the machine make this call as well, and those that were forked and ran nothing map nothing.
  std::set<std::uint32_t> loads;
  for (const std::string& name : files()) {
    for (const auto& [process, file] : capture(name).mapped_by)
      if (file == load) loads.insert(process);
  }
  EXPECT_EQ(loads.size(), 1500u);
  std::size_t of_load = 0;
  for (const std::string& name : files()) {
    const CaptureSeen seen = capture(name);
    std::set<std::uint32_t> named;
    for (const auto& [process, file] : seen.mapped_by) named.insert(process);
    for (const SampleSeen& sample : seen.samples) {
      if (!loads.contains(sample.pid)) continue;
      of_load += sample.has_user_frames ? 1 : 0;
      ASSERT_TRUE(named.contains(sample.pid)) << name << ": process " << sample.pid << " has no mapping";
    }
  }
  EXPECT_GE(of_load, 1500 * 5u);
}

TEST_F(Rotation, OnlyTheLastFilesAreKept) {
  Program run = start({"--switch-output=200ms", "--switch-max-files", "2", "-a", "-e", kGetppid});
  ASSERT_TRUE(says(run, "Finished")) << run.errors();
  std::this_thread::sleep_for(milliseconds(1500));
  // A file that is too many is there for a moment: it goes when the next has begun.
  for (int i = 0; i < 100 && files().size() > 2; ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_LE(files().size(), 2u);
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 0) << run.errors();
  EXPECT_EQ(files().size(), 2u);
  expect_whole(false);
}

TEST_F(Rotation, AKilledRecorderLeavesEveryFileReadable) {
  for (const int delay_ms : {250, 300, 350, 400}) {
    Program run = start({"--switch-output=100ms", "-a", "-e", kGetppid});
    ASSERT_TRUE(says(run, "Recording has begun"));
    std::this_thread::sleep_for(milliseconds(delay_ms));
    run.send(SIGKILL);
    run.wait();
    for (const std::string& name : files()) EXPECT_FALSE(capture(name).has_damage) << name;
    for (const std::string& name : files()) fs::remove(folder + "/" + name);
  }
}

TEST_F(Rotation, AnEventBeginsAnotherFile) {
  ASSERT_EQ(record({"-e", "syscalls:sys_enter_getppid", "--switch-output-event", "syscalls:sys_enter_getpgid",
                    "sh", "-c", "sleep 0.2"}),
            0)
      << errors;
  EXPECT_EQ(files().size(), 1u) << "it did not happen; " << errors;
  for (const std::string& name : files()) fs::remove(folder + "/" + name);
  // The event is that of a process that the recording follows.
  Program run = start({"-e", "dummy", "--switch-output-event", "syscalls:sys_enter_getpgid", "python3", "-c",
                       "import os, time\nfor i in range(2): os.getpgid(0); time.sleep(2)"});
  ASSERT_EQ(run.wait(60), 0) << run.errors();
  EXPECT_EQ(files().size(), 3u) << run.errors();
  for (const std::string& name : files()) {
    const CaptureSeen seen = capture(name);
    EXPECT_TRUE(seen.is_closed && !seen.has_damage) << name;
  }
  for (const std::string& name : files()) fs::remove(folder + "/" + name);
  // Requests that come while a file is begun are counted, and no event is lost.
  Program many = start({"-e", "dummy", "--switch-output-event", "syscalls:sys_enter_getpgid", "python3", "-c",
                        "import os, time\nfor i in range(40): os.getpgid(0)\ntime.sleep(2)"});
  ASSERT_EQ(many.wait(60), 0) << many.errors();
  ASSERT_GE(files().size(), 2u) << many.errors();
  const std::string counted = "40 events, " + std::to_string(40 - (files().size() - 1)) + " of them while";
  EXPECT_NE(many.errors().find(counted), std::string::npos) << many.errors();
  EXPECT_EQ(record({"--switch-output-event", "nosuch", "-e", "dummy", "true"}), 1) << errors;
  EXPECT_EQ(record({"--switch-output-event", "./x.bpf.c", "-e", "dummy", "true"}), 1) << errors;
  EXPECT_TRUE(said("is a BPF program, which only -e records")) << errors;
}

TEST_F(Rotation, AFileMayHaveItsTimeInItsName) {
  ASSERT_EQ(record({"--timestamp-filename", "-e", "dummy", "true"}), 0) << errors;
  ASSERT_EQ(files().size(), 1u);
  EXPECT_TRUE(said(files().front())) << errors;
}

TEST_F(Rotation, ASizeEndsTheRecordingAndSparesTheCommand) {
  const fs::path done = fs::path(folder) / "done";
  Program run = start({"--max-size", "2M", "-z0", "-g", "-e", "raw_syscalls:sys_enter", "sh", "-c",
                       "dd if=/dev/zero of=/dev/null bs=1 count=300000; touch " + done.string()});
  EXPECT_EQ(run.wait(60), 0) << run.errors();
  EXPECT_NE(run.errors().find("--max-size"), std::string::npos) << run.errors();
  EXPECT_NE(run.errors().find("is no longer recorded"), std::string::npos) << run.errors();
  EXPECT_TRUE(capture().is_closed);
  EXPECT_LE(fs::file_size(folder + "/perf.data"), 2u << 20);
  EXPECT_GE(fs::file_size(folder + "/perf.data"), (2u << 20) - (128u << 10)) << "but for its end it is full";
  EXPECT_NE(run.errors().find("samples that did not fit are dropped"), std::string::npos) << run.errors();
  for (int i = 0; i < 1000 && !fs::exists(done); ++i) std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(fs::exists(done)) << "the command goes on";
}

TEST_F(Rotation, ASizeWithoutRoomForASampleIsRefused) {
  EXPECT_EQ(record({"--max-size", "10K", "-e", "dummy", "true"}), 1) << errors;
  EXPECT_TRUE(said("--max-size: the capture takes")) << errors;
  EXPECT_TRUE(files().empty());
}

TEST_F(Rotation, ADiskThatFillsEndsTheRecording) {
  EXPECT_EQ(record({"--min-free", "900000T", "-a", "-e", kGetppid}), 4);
  EXPECT_TRUE(said("--min-free")) << errors;
  EXPECT_EQ(files().size(), 0u) << "nothing is begun";
}

}  // namespace
}  // namespace tacho::live
