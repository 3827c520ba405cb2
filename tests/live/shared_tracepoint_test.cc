// BPF programs and perf events on one tracepoint: what a program returns can cost the events their samples.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "live_test_case.h"

namespace tacho::live {
namespace {

class SharedTracepoint : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (const auto missing = missing_to_compile(); !missing.empty()) GTEST_SKIP() << missing;
  }
  // The line of the capture about the program of this name.
  static std::string state_of(const CaptureSeen& seen, const std::string& program) {
    const auto& programs = seen.features.environment.attached_programs;
    const auto found = std::ranges::find(programs, program, &format::AttachedProgram::name);
    return found == programs.end() ? "not in the capture" : found->state;
  }
};

TEST_F(SharedTracepoint, OurExamplesTakeNothingFromOtherEvents) {
  ASSERT_EQ(
      record({"-a", "-e", std::string(TACHO_EXAMPLES) + "/bigreads.bpf.c", "-e", "syscalls:sys_exit_read",
              "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1000", "count=1000"}),
      0)
      << errors;
  EXPECT_GE(capture().count("syscalls:sys_exit_read"), 1000u);
  EXPECT_FALSE(said("warning")) << errors;
}

TEST_F(SharedTracepoint, AnOwnProgramThatReturnsZeroIsReportedAndWrittenDown) {
  ASSERT_EQ(record({"-a", "-e", source("drops_getppid.bpf.c"), "-e", kGetppid, getppid_load(), "100"}), 0)
      << errors;
  EXPECT_EQ(capture().count(kGetppid), 0u) << "so this kernel does it; else there is nothing to warn of";
  EXPECT_GE(capture().count("calls"), 100u);
  EXPECT_TRUE(said("drops_getppid.bpf.c: program 'drops'") && said("return 1")) << errors;
  EXPECT_NE(state_of(capture(), "drops").find(std::string("drops samples of ") + kGetppid), std::string::npos)
      << state_of(capture(), "drops");
  ASSERT_EQ(record({"-a", "-e", source("drops_getppid.bpf.c"), getppid_load(), "100"}), 0) << errors;
  EXPECT_TRUE(said("other recorders")) << errors;
}

TEST_F(SharedTracepoint, AForeignProgramIsFoundAtTheStartAndAtTheEnd) {
  const std::vector<std::string> other{
      tacho_record(), "-q", "-a", "-o", "other.data", "-e", source("drops_getppid.bpf.c")};
  {
    Program runs = Program::start(other, folder);
    for (int i = 0; i < 500 && samples_in(folder + "/other.data") == 0; ++i) {
      Program::start({getppid_load(), "1"}, folder).wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ASSERT_EQ(record({"-e", kGetppid, getppid_load(), "100"}), 0) << errors;
    EXPECT_EQ(capture().count(kGetppid), 0u);
    EXPECT_TRUE(said("BPF program 'drops'") && said("not ours")) << errors;
    EXPECT_FALSE(said("loaded while recording")) << errors;
    EXPECT_NE(state_of(capture(), "drops").find(kGetppid), std::string::npos);
    runs.send(SIGINT);
    EXPECT_EQ(runs.wait(), 0) << runs.errors();
  }
  const std::string command = "(sleep 0.5; " + other[0] + " -q -a -o late.data -e " + other.back() +
                              " -- sleep 3) > /dev/null 2>&1 & "
                              "for i in $(seq 100); do test -s late.data && exit; sleep 0.1; done";
  ASSERT_EQ(record({"-e", kGetppid, "bash", "-c", command}), 0) << errors;
  EXPECT_TRUE(said("BPF program 'drops'") && said("loaded while recording")) << errors;
  EXPECT_NE(state_of(capture(), "drops").find(kGetppid), std::string::npos);
  // The late recorder runs on in the background: its program would empty the events of tests to come.
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(record({"-e", kGetppid, getppid_load(), "100"}), 0) << errors;
    if (capture().count(kGetppid) == 100) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  FAIL() << "the late recorder does not end: " << errors;
}

}  // namespace
}  // namespace tacho::live
