// What is recorded: each kind of event and target, on this kernel.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include "live_test_case.h"

namespace tacho::live {
namespace {

class Recording : public LiveTest {};
class BpfRecording : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (const auto missing = missing_to_compile(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_F(BpfRecording, BigreadsOfDdAreThreeSamples) {
  ASSERT_EQ(record({"-e", std::string(TACHO_EXAMPLES) + "/bigreads.bpf.c", "-a", "-g", "-o", "b.data", "--",
                    "dd", "if=/dev/zero", "of=/dev/null", "bs=2M", "count=3"}),
            0)
      << errors;
  const CaptureSeen seen = capture("b.data");
  // Somebody else on this machine may read as much meanwhile.
  ASSERT_GE(seen.samples.size(), 3u);
  const auto is_ours = [](const SampleSeen& sample) {
    return sample.first_payload_word == 2097152 && sample.has_kernel_frames && sample.has_user_frames;
  };
  EXPECT_GE(std::ranges::count_if(seen.samples, is_ours), 3);
  EXPECT_TRUE(said("samples, 0 lost) ]")) << errors;
  EXPECT_FALSE(seen.features.schemas.empty());
  EXPECT_FALSE(seen.features.environment.attached_programs.empty());
  EXPECT_FALSE(seen.features.environment.btf.empty());
  EXPECT_EQ(seen.features.attachment("kallsyms"), nullptr);  // the names of what was hit stand in its place
  EXPECT_FALSE(seen.features.symbol_pack.empty());
}

TEST_F(BpfRecording, PerfPrintsTheSameSamples) {
  if (std::system("perf --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs perf";
  for (const char* compression : {"-z0", "-z1"}) {
    ASSERT_EQ(record({compression, "-e", source("getppid_channel.bpf.c"), "-a", "-g", getppid_load(), "100"}),
              0)
        << errors;
    const std::string count = "test \"$(cd " + folder +
                              " && perf script -i perf.data -F event 2>/dev/null | grep -c channel)\" = 100";
    EXPECT_EQ(std::system(count.c_str()), 0) << compression;
  }
}

TEST_F(BpfRecording, TwoProgramsOnSamplesHaveAnEventEach) {
  const std::string object = source("two_ticks.bpf.c");
  ASSERT_EQ(record({"-v", "-a", "-F", "500", "-e", object, getppid_load(), "1000000"}), 0) << errors;
  const CaptureSeen seen = capture();
  EXPECT_GT(seen.count("on_tick"), 0u) << errors;
  EXPECT_GT(seen.count("on_tock"), 0u) << errors;
  EXPECT_TRUE(said("program on_tick runs on the samples of event on_tick")) << errors;
  EXPECT_EQ(record({"-a", "-e", object, "-e", "cpu-clock,cs", "true"}), 0) << errors;
  EXPECT_EQ(record({"-a", "-e", object, "-e", "cpu-clock", "true"}), 1) << errors;
  EXPECT_TRUE(said("'on_tick'") && said("'on_tock'")) << errors;
}

TEST_F(BpfRecording, TheLongFormBindsAMapToAnEvent) {
  ASSERT_EQ(record({"-e", "bpf-output/no-inherit,name=evt/", "-e",
                    source("getppid_channel.bpf.c") + "/map:channel.event=evt/", "-a", getppid_load(), "50"}),
            0)
      << errors;
  EXPECT_EQ(capture().count("evt"), 50u);
}

TEST_F(BpfRecording, ACommandAloneIsFollowed) {
  ASSERT_EQ(record({"-e", source("getppid_channel.bpf.c"), getppid_load(), "70"}), 0) << errors;
  EXPECT_EQ(capture().count("channel"), 70u);
  EXPECT_FALSE(said("thread")) << errors;
}

TEST_F(Recording, CpuClockOfACommandWithItsMappings) {
  ASSERT_EQ(record({"-g", "-F", "2000", "-e", "cpu-clock", getppid_load(), "400000"}), 0) << errors;
  const CaptureSeen seen = capture();
  EXPECT_GT(seen.count("cpu-clock"), 20u);
  EXPECT_TRUE(std::ranges::find(seen.exec_names, "getppid_load") != seen.exec_names.end());
  EXPECT_TRUE(std::ranges::find(seen.mapped, getppid_load()) != seen.mapped.end());
  EXPECT_GT(seen.mapped_with_build_id, 0u);
  EXPECT_FALSE(seen.has_damage);
  EXPECT_TRUE(seen.is_closed);
}

TEST_F(Recording, EveryTracepointOfACommandIsThere) {
  ASSERT_EQ(
      record({"-e", "syscalls:sys_enter_getppid", "-e", "sched:sched_process_ex*", getppid_load(), "1000"}),
      0)
      << errors;
  const CaptureSeen seen = capture();
  EXPECT_EQ(seen.count("syscalls:sys_enter_getppid"), 1000u);
  EXPECT_EQ(seen.count("sched:sched_process_exec"), 1u) << "the glob stands for every tracepoint it matches";
  EXPECT_EQ(seen.features.tracing.formats.size(), 3u);
}

TEST_F(Recording, PageFaultsOneByOne) {
  ASSERT_EQ(record({"-c", "1", "-e", "page-faults,minor-faults:u", "-e", "context-switches", "ls", "/"}), 0)
      << errors;
  const CaptureSeen seen = capture();
  EXPECT_GT(seen.count("page-faults"), 20u);
  EXPECT_GT(seen.count("page-faults"), seen.count("minor-faults:u"));
}

TEST_F(Recording, AProcessThatRunsAlready) {
  Program load = Program::start({getppid_load(), "100000", "4", "500"}, folder);
  ASSERT_EQ(record({"-p", std::to_string(load.pid()), "-e", "syscalls:sys_enter_getppid", "sleep", "0.3"}), 0)
      << errors;
  const CaptureSeen seen = capture();
  EXPECT_GT(seen.samples.size(), 20u);
  for (const SampleSeen& sample : seen.samples) ASSERT_EQ(sample.pid, static_cast<std::uint32_t>(load.pid()));
  EXPECT_TRUE(std::ranges::find(seen.mapped, getppid_load()) != seen.mapped.end()) << "from /proc";
}

// A process whose second thread works, and that thread's number.
class RecordingThreads : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (IsSkipped()) return;
    load.emplace(Program::start({worker_load(), "500"}, folder));
    for (int i = 0; i < 500 && !(std::ifstream(folder + "/worker-tid") >> worker); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_GT(worker, load->pid());
  }
  std::uint32_t process() const { return static_cast<std::uint32_t>(load->pid()); }
  // Every sample is of the worker, and the process that it names has the mappings that name its code.
  void expect_worker(const CaptureSeen& seen) const {
    EXPECT_GT(seen.samples.size(), 20u);
    for (const SampleSeen& sample : seen.samples) {
      ASSERT_EQ(sample.pid, process());
      ASSERT_EQ(sample.tid, static_cast<std::uint32_t>(worker));
    }
    const std::pair mapping{process(), worker_load()};
    EXPECT_EQ(std::ranges::count(seen.mapped_by, mapping), 1);
    for (const auto& [pid, name] : seen.mapped_by) EXPECT_NE(pid, static_cast<std::uint32_t>(worker)) << name;
  }
  std::optional<Program> load;
  int worker = 0;
};

TEST_F(RecordingThreads, AThreadAloneIsNamedByItsProcess) {
  ASSERT_EQ(record({"-t", std::to_string(worker), "-g", "-e", "syscalls:sys_enter_getppid", "sleep", "0.3"}),
            0)
      << errors;
  expect_worker(capture());
}

TEST_F(RecordingThreads, AProcessIsMeantByAnyOfItsThreads) {
  ASSERT_EQ(record({"-p", std::to_string(worker), "-g", "-e", "syscalls:sys_enter_getppid", "sleep", "0.3"}),
            0)
      << errors;
  expect_worker(capture());
  const std::string both = std::to_string(process()) + "," + std::to_string(worker);
  ASSERT_EQ(record({"-p", both, "-e", "syscalls:sys_enter_getppid", "sleep", "0.3"}), 0) << errors;
  expect_worker(capture());
}

TEST_F(RecordingThreads, AThreadThatIsGoneDoesNotRefuseTheOthers) {
  const std::string both = "999999999," + std::to_string(worker);
  ASSERT_EQ(record({"-t", both, "-e", "syscalls:sys_enter_getppid", "sleep", "0.3"}), 0) << errors;
  EXPECT_TRUE(said("999999999")) << errors;
  expect_worker(capture());
}

TEST_F(Recording, EndsWithTheProcessesItWatches) {
  // Two seconds: a recorder on a loaded machine may need half a second to start.
  Program load = Program::start({getppid_load(), "2000", "4", "1000"}, folder);
  EXPECT_EQ(record({"-p", std::to_string(load.pid()), "-e", "syscalls:sys_enter_getppid"}), 0) << errors;
  EXPECT_EQ(load.wait(), 0);
  EXPECT_FALSE(capture().has_damage);
}

TEST_F(Recording, OneCpuOnly) {
  ASSERT_EQ(record({"-C", "0", "-F", "500", "-e", "cpu-clock", "sleep", "0.2"}), 0) << errors;
  const CaptureSeen seen = capture();
  EXPECT_GT(seen.samples.size(), 5u);
  for (const SampleSeen& sample : seen.samples) ASSERT_EQ(sample.cpu, 0u);
}

TEST_F(Recording, NoFloodOfSamplesCostsAMapping) {
  constexpr int kPrograms = 30;
  ASSERT_EQ(
      record(
          {"-m", "1", "-e", "raw_syscalls:sys_enter,raw_syscalls:sys_exit", "-a", "-g", "--", "sh", "-c",
           "i=0; while [ $i -lt 30 ]; do i=$((i+1)); /bin/true; dd if=/dev/zero of=/dev/null bs=1 count=1000 "
           "2> /dev/null; done"}),
      0)
      << errors;
  const CaptureSeen seen = capture();
  EXPECT_GT(seen.lost, 0u) << "one page cannot hold such a flood";
  const format::RecordingLosses& losses = seen.features.environment.losses;
  std::uint64_t reported = 0;
  for (const format::EventLoss& loss : losses.events) {
    EXPECT_TRUE(loss.event.starts_with("raw_syscalls:sys_e")) << loss.event;
    EXPECT_GE(loss.cpu, 0);
    reported += loss.lost;
  }
  EXPECT_EQ(reported, seen.lost) << "by event and CPU";
  ASSERT_TRUE(losses.interval);
  EXPECT_LE(losses.interval->first, losses.interval->second);
  EXPECT_GE(std::ranges::count(seen.exec_names, "true"), kPrograms);
  EXPECT_GE(std::ranges::count(seen.exec_names, "dd"), kPrograms);
}

TEST_F(Recording, TheCommandsStatusIsOurs) {
  EXPECT_EQ(record({"-q", "-e", "cpu-clock", "sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(errors, "") << "-q says nothing";
  EXPECT_EQ(record({"-e", "cpu-clock", "sh", "-c", "kill -KILL $$"}), 128 + 9);
  EXPECT_TRUE(capture().is_closed);
}

TEST_F(Recording, AnExistingCaptureIsKeptAndTheNewOneIsPrivate) {
  ASSERT_EQ(record({"-e", "dummy", "true"}), 0) << errors;
  ASSERT_EQ(record({"-e", "dummy", "true"}), 0) << errors;
  EXPECT_TRUE(std::filesystem::exists(folder + "/perf.data.old"));
  struct stat info {};
  ASSERT_EQ(stat((folder + "/perf.data").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace tacho::live
