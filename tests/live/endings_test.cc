// How a recording ends: signals, a killed recorder, a full disk, refusals. Whatever happens, the file is
// readable.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "live_test_case.h"

namespace tacho::live {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class Endings : public LiveTest {
 protected:
  Program start(std::vector<std::string> words, Program::Limits limits = {}) {
    words.insert(words.begin(), tacho_record());
    return Program::start(words, folder, limits);
  }
  // A recorder whose call `refused` ("epoll_create:1", "write:40:for-ever") the system refuses.
  Program start_refused(const std::string& refused, std::vector<std::string> words) {
    const std::vector<std::string> before{"env", "LD_PRELOAD=" + refusals(), "TACHO_REFUSE=" + refused,
                                          tacho_record()};
    words.insert(words.begin(), before.begin(), before.end());
    return Program::start(words, folder);
  }
  // Until the capture holds as many samples: a busy machine takes its time.
  void wait_for_samples(std::size_t count) const {
    for (int i = 0; i < 1500 && samples_in(folder + "/perf.data") < count; ++i)
      std::this_thread::sleep_for(milliseconds(20));
  }
  // Until the capture is being written.
  void wait_for_capture() const {
    for (int i = 0; i < 500 && !std::filesystem::exists(folder + "/perf.data"); ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    std::this_thread::sleep_for(milliseconds(300));
  }
};

TEST_F(Endings, EverySignalFinishesTheFile) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE, SIGXFSZ}) {
    Program run = start({"-a", "-e", "cpu-clock"});
    wait_for_samples(1);
    run.send(signal);
    EXPECT_EQ(run.wait(), 0) << strsignal(signal);
    const CaptureSeen seen = capture();
    EXPECT_TRUE(seen.is_closed && !seen.has_damage) << strsignal(signal);
    EXPECT_GT(seen.samples.size(), 0u) << strsignal(signal);
    std::filesystem::remove(folder + "/perf.data");
  }
}

TEST_F(Endings, ASignalEndsTheStartAtOnce) {
  if (const auto missing = missing_to_compile(); !missing.empty()) GTEST_SKIP() << missing;
  const std::string clang = folder + "/clang";
  ASSERT_EQ(std::system(("echo older > " + folder + "/perf.data; printf '#!/bin/sh\\ntouch " + folder +
                         "/compiles; sleep 60\\n' > " + clang + "; chmod +x " + clang)
                            .c_str()),
            0);
  for (const int signal : {SIGINT, SIGTERM}) {
    Program run = Program::start({"env", "TACHO_CLANG=" + clang, tacho_record(), "-a", "-e",
                                  source("getppid_channel.bpf.c"), "touch", "ran"},
                                 folder);
    for (int i = 0; i < 500 && !std::filesystem::exists(folder + "/compiles"); ++i)
      std::this_thread::sleep_for(milliseconds(10));
    const auto began = Clock::now();
    run.send(signal);
    EXPECT_EQ(run.wait(), 128 + signal) << run.errors();
    EXPECT_LT(Clock::now() - began, milliseconds(5000)) << "not after the compiler's 60 s";
    EXPECT_NE(run.errors().find("before recording began"), std::string::npos) << run.errors();
    EXPECT_FALSE(std::filesystem::exists(folder + "/ran"));
    EXPECT_FALSE(std::filesystem::exists(folder + "/perf.data.old")) << "the older capture is where it was";
    std::filesystem::remove(folder + "/compiles");
  }
}

TEST_F(Endings, ACommandGetsTheSignalAndIsReaped) {
  Program run = start({"-e", "cpu-clock", "sleep", "60"});
  wait_for_capture();
  run.send(SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
  EXPECT_TRUE(capture().is_closed);
}

TEST_F(Endings, ACommandThatDoesNotEndIsLeftAfterASecondSignal) {
  Program run =
      start({"-e", "cpu-clock", "sh", "-c",
             "trap '' INT; echo $$ > child; i=0; while [ $i -lt 150 ]; do i=$((i+1)); sleep 0.1; done"});
  wait_for_capture();
  run.send(SIGINT);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_TRUE(std::filesystem::exists(folder + "/child"));
  run.send(SIGINT);
  EXPECT_EQ(run.wait(10), 128 + SIGINT) << run.errors();
  EXPECT_NE(run.errors().find("still runs"), std::string::npos) << run.errors();
  EXPECT_TRUE(capture().is_closed);
}

TEST_F(Endings, ACommandThatIgnoresTheFirstSignalDoesNotHoldTheRecordingUp) {
  Program run = start({"-e", "cpu-clock", "sh", "-c",
                       "trap '' INT; i=0; while [ $i -lt 50 ]; do i=$((i+1)); sleep 0.1; done"});
  wait_for_capture();
  const auto began = Clock::now();
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 128 + SIGINT) << run.errors();
  EXPECT_LT(Clock::now() - began, milliseconds(4000))
      << "1.5 s of grace, and the closing; the command takes 5 s";
  EXPECT_NE(run.errors().find("still runs"), std::string::npos) << run.errors();
  EXPECT_TRUE(capture().is_closed);
}

TEST_F(Endings, WhatTheSystemRefusesIsAnErrorBeforeTheCommandRuns) {
  for (const char* refused :
       {"epoll_create:1", "epoll_ctl:1", "eventfd:1", "thread:3", "signalfd:1", "fork:2"}) {
    Program run = start_refused(refused, {"-e", "cpu-clock", "touch", "ran"});
    EXPECT_EQ(run.wait(), 2) << refused << ": " << run.errors();
    EXPECT_NE(run.errors().find("tacho record: "), std::string::npos) << refused;
    EXPECT_FALSE(std::filesystem::exists(folder + "/ran")) << refused;
  }
}

TEST_F(Endings, WithoutAThreadThatHoldsFilesItRecordsAndSaysSo) {
  Program run = start_refused("thread:2", {"-e", "cpu-clock", "touch", "ran"});
  EXPECT_EQ(run.wait(), 0) << run.errors();
  EXPECT_NE(run.errors().find("not kept open"), std::string::npos) << run.errors();
  EXPECT_TRUE(std::filesystem::exists(folder + "/ran"));
}

TEST_F(Endings, WithoutAThreadForTheKernelsSymbolsItReadsThemItself) {
  Program run = start_refused("thread:1", {"-e", "cpu-clock", "touch", "ran"});
  EXPECT_EQ(run.wait(), 0) << run.errors();
  EXPECT_TRUE(std::filesystem::exists(folder + "/ran"));
}

TEST_F(Endings, AHungDiskIsLeftAfterASecondSignal) {
  Program load = Program::start({getppid_load(), "10000000", "4", "1000"}, folder);
  Program run = start_refused("write:60:for-ever", {"-z0", "-e", "cpu-clock,syscalls:sys_enter_getppid", "-p",
                                                    std::to_string(load.pid())});
  wait_for_samples(1);
  std::this_thread::sleep_for(
      milliseconds(4000));  // each round takes several writes, and there are 5 a second
  const auto began = Clock::now();
  run.send(SIGINT);
  std::this_thread::sleep_for(milliseconds(300));
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 4) << run.errors();
  EXPECT_LT(Clock::now() - began, milliseconds(8000)) << "1 s until the signal, 2 s for the write to return";
  EXPECT_NE(run.errors().find("second signal"), std::string::npos) << run.errors();
  EXPECT_FALSE(capture().has_damage);
  EXPECT_GT(capture().samples.size(), 0u);
}

TEST_F(Endings, AFullQueueBeforeAHungDiskServesSignals) {
  Program load = Program::start({"dd", "if=/dev/zero", "of=/dev/null", "bs=1"}, folder);
  Program run = start_refused("write:60:for-ever",
                              {"-z0", "-g", "-e", "raw_syscalls:*", "-p", std::to_string(load.pid())});
  wait_for_samples(1);
  std::this_thread::sleep_for(milliseconds(5000));  // 64 MB of queue are full within 1 s
  run.send(SIGINT);
  std::this_thread::sleep_for(milliseconds(300));
  run.send(SIGINT);
  EXPECT_EQ(run.wait(), 4) << run.errors();
  EXPECT_NE(run.errors().find("second signal"), std::string::npos) << run.errors();
}

TEST_F(Endings, ReadersOfTheMessagesMayLeave) {
  const std::string command =
      tacho_record() + " -v -a -e cpu-clock sleep 0.5 2>&1 | true; test ${PIPESTATUS[0]} = 0";
  Program run = Program::start({"bash", "-c", command}, folder);
  EXPECT_EQ(run.wait(), 0) << run.errors();
  EXPECT_TRUE(capture().is_closed);
  EXPECT_GT(capture().samples.size(), 0u);
}

TEST_F(Endings, ReadersOfTheMessagesMaySleep) {
  // A pipe that is full from the start, whose reader lives and never reads.
  const std::string command = "{ head -c 1000000 /dev/zero >&2 & sleep 1; exec " + tacho_record() +
                              " -v -a -e cpu-clock -- sleep 0.5; } 2> >(exec sleep 30) & wait $!";
  const auto began = Clock::now();
  Program run = Program::start({"bash", "-c", command}, folder);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_LT(Clock::now() - began, milliseconds(8000)) << "1 s is spent on readers, all messages together";
  EXPECT_TRUE(capture().is_closed);
  EXPECT_GT(capture().samples.size(), 0u);
}

TEST_F(Endings, ClosedDescriptorsStayClosedForTheCommand) {
  // Else a line of ours would go into whatever got number 2: the pipe on which the command waits for its
  // start.
  const std::string command = "exec " + tacho_record() +
                              " -v -a -e cpu-clock -- sh -c 'touch ran; (read word) || touch no-input; "
                              "(echo word) || touch no-output' 0<&- 1>&- 2>&-";
  Program run = Program::start({"bash", "-c", command}, folder);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(capture().is_closed);
  for (const char* made : {"/ran", "/no-input", "/no-output"})
    EXPECT_TRUE(std::filesystem::exists(folder + made)) << made;
  Program refused = Program::start(
      {"bash", "-c", "exec " + tacho_record() + " -e no-such-event -- touch wrong 2>&-"}, folder);
  EXPECT_EQ(refused.wait(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder + "/wrong"));
}

TEST_F(Endings, MemoryThatIsRefusedInTheMiddleLosesNothingSilently) {
  int recorded = 0;
  for (const int kilobytes : {30'000, 34'000, 45'000, 64'000, 90'000, 250'000, 500'000}) {
    const std::string command = "ulimit -v " + std::to_string(kilobytes) + "; exec " + tacho_record() +
                                " -a -g -e 'raw_syscalls:*' -- dd if=/dev/zero of=/dev/null bs=1 count=40000";
    Program run = Program::start({"bash", "-c", command}, folder);
    const int status = run.wait(60);
    // Below what the start takes there is no capture.
    if (status == 2 && !std::filesystem::exists(folder + "/perf.data")) continue;
    EXPECT_TRUE(capture().is_closed && !capture().has_damage) << kilobytes;
    // The threads could not be made, or no piece of samples could be kept: the capture is empty, and says
    // why.
    if (status == 2 && capture().samples.empty()) {
      const bool says_why = run.errors().find("a thread that") != std::string::npos ||
                            run.errors().find(
                                "out of memory; the capture ends there: it has no "
                                "sample") != std::string::npos;
      EXPECT_TRUE(says_why) << kilobytes << ": " << run.errors();
      std::filesystem::remove(folder + "/perf.data");
      continue;
    }
    const char* const end = status == 0 ? "Captured and wrote" : "has the first";
    EXPECT_NE(run.errors().find(end), std::string::npos) << kilobytes << ": " << run.errors();
    recorded += 1;
    std::filesystem::remove(folder + "/perf.data");
  }
  EXPECT_GT(recorded, 0) << "none of the limits let it start";
}

TEST_F(Endings, NoRoomForTheHeadLeavesNoFile) {
  ASSERT_EQ(std::system(("echo older > " + folder + "/perf.data").c_str()), 0);
  Program run = start({"-a", "-e", "cpu-clock", "touch", "ran"}, {.file_bytes = 8 << 10});
  EXPECT_EQ(run.wait(), 4) << run.errors();
  // The new capture never had the name, so the older file keeps it.
  EXPECT_EQ(std::filesystem::file_size(folder + "/perf.data"), 6u);
  EXPECT_FALSE(std::filesystem::exists(folder + "/perf.data.old"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/ran"));
}

TEST_F(Endings, RootDoesNotWriteWhereOthersMayReplaceFiles) {
  namespace fs = std::filesystem;
  fs::permissions(folder, fs::perms::all);
  EXPECT_EQ(record({"-a", "-e", "cpu-clock", "touch", "ran"}), 4) << errors;
  EXPECT_TRUE(said("chmod")) << errors;
  EXPECT_FALSE(fs::exists(folder + "/ran") || fs::exists(folder + "/perf.data"));
  fs::permissions(folder, fs::perms::all | fs::perms::sticky_bit);
  EXPECT_EQ(record({"-a", "-e", "cpu-clock", "touch", "ran"}), 0) << errors;
}

TEST_F(Endings, AnObjectWithoutARunningProgramRecordsNothing) {
  if (const auto missing = missing_to_compile(); !missing.empty()) GTEST_SKIP() << missing;
  const std::string object = source("nothing_here.bpf.c");
  EXPECT_EQ(record({"-a", "-e", object, "touch", "ran"}), 2) << errors;
  EXPECT_TRUE(said("on_nothing") && said("nothing to record")) << errors;
  EXPECT_FALSE(std::filesystem::exists(folder + "/ran"));
  EXPECT_EQ(record({"-q", "-a", "-e", object, "-e", "cpu-clock", "true"}), 0) << errors;
  EXPECT_TRUE(said("warning: ") && said("on_nothing")) << errors;
}

TEST_F(Endings, AKilledRecorderCostsTheLastSecondAtMost) {
  if (const auto missing = missing_to_compile(); !missing.empty()) GTEST_SKIP() << missing;
  for (const char* compression : {"-z0", "-z1"}) {
    Program load = Program::start({getppid_load(), "10000000", "4", "300"}, folder);
    Program run = start({compression, "-a", "-g", "-e", source("getppid_channel.bpf.c")});
    wait_for_samples(200);
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    run.send(SIGKILL);
    EXPECT_EQ(run.wait(), 1000 + SIGKILL);
    const CaptureSeen seen = capture();
    EXPECT_FALSE(seen.is_closed);
    EXPECT_FALSE(seen.has_damage);
    ASSERT_GT(seen.samples.size(), 100u) << compression;
    const std::uint64_t killed_at =
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
    std::uint64_t last = 0;
    for (const SampleSeen& sample : seen.samples) last = std::max(last, sample.first_payload_word);
    EXPECT_LT(killed_at - std::min(last, killed_at), 1'000'000'000u) << compression;
    EXPECT_FALSE(seen.features.schemas.empty() && seen.features.attachments.empty())
        << "what is needed to read it";
    std::filesystem::remove(folder + "/perf.data");
  }
}

TEST_F(Endings, AFullDiskKeepsWhatWasWhole) {
  Program run = start({"-a", "-z0", "-e", "raw_syscalls:sys_enter", "--", "dd", "if=/dev/zero",
                       "of=/dev/null", "bs=1", "count=300000"},
                      {.file_bytes = 4 << 20});
  EXPECT_EQ(run.wait(), 4) << run.errors();
  EXPECT_NE(run.errors().find("perf.data"), std::string::npos) << run.errors();
  const CaptureSeen seen = capture();
  EXPECT_FALSE(seen.has_damage);
  const std::string kept = "has the first " + std::to_string(seen.samples.size()) + " samples";
  EXPECT_NE(run.errors().find(kept), std::string::npos) << run.errors();
  EXPECT_GT(seen.samples.size(), 1000u);
}

// Samples and losses add up to what the kernel made, however small the rings are.
class Losses : public Endings, public testing::WithParamInterface<const char*> {};

TEST_P(Losses, AreCountedExactly) {
  if (const auto missing = missing_to_compile(); !missing.empty()) GTEST_SKIP() << missing;
  const std::size_t calls = scaled(500'000);
  std::vector<std::string> words{"-e", source("getppid_channel.bpf.c"), "-a", "-g"};
  if (*GetParam() != '\0') words.insert(words.end(), {"-m", GetParam()});
  words.insert(words.end(), {getppid_load(), std::to_string(calls), "4"});
  ASSERT_EQ(record(words), 0) << errors;
  const CaptureSeen seen = capture();
  EXPECT_EQ(seen.count("channel") + seen.lost, calls);
  EXPECT_TRUE(
      said("(" + std::to_string(seen.count("channel")) + " samples, " + std::to_string(seen.lost) + " lost)"))
      << errors;
  EXPECT_EQ(seen.lost != 0, said("were lost")) << "a loss is never silent";
  if (seen.lost != 0) {
    EXPECT_TRUE(said("  lost: channel " + std::to_string(seen.lost) + " (CPU ")) << errors;
  }
}
INSTANTIATE_TEST_SUITE_P(RingPages, Losses, testing::Values("1", "4", "128", ""));

struct BadCase {
  const char* what;
  std::vector<std::string> words;
  int status;
  const char* says;
};

TEST_F(Endings, EveryRefusalIsOneClearLineAndNothingRuns) {
  const std::string channel = source("getppid_channel.bpf.c");
  const BadCase cases[] = {
      {"unknown option", {"--ouptut", "x", "true"}, 1, "--output"},
      {"unknown event", {"-e", "cpu-clok", "touch", "ran"}, 1, "did you mean 'cpu-clock'"},
      {"unknown tracepoint", {"-e", "sched:sched_swich", "touch", "ran"}, 1, "sched_switch"},
      {"unknown subsystem", {"-e", "shed:sched_switch", "touch", "ran"}, 1, "'sched'"},
      {"unknown term", {"-e", "cpu-clock/perod=1/", "touch", "ran"}, 1, "'period'"},
      {"unknown command", {"-e", "cpu-clock", "no-such-command-here"}, 1, "no such command"},
      {"process that is gone", {"-p", "999999999", "touch", "ran"}, 1, "999999999"},
      {"CPU that is not there", {"-C", "4095", "touch", "ran"}, 1, "4095"},
      {"no such object", {"-e", "./none.bpf.o", "touch", "ran"}, 2, "none.bpf.o"},
      {"object that is no ELF", {"-e", "./text.bpf.o", "touch", "ran"}, 2, "text.bpf.o"},
      {"folder that is not there", {"-o", "none/x.data", "-e", "cpu-clock", "touch", "ran"}, 4, "none"},
  };
  ASSERT_EQ(std::system(("echo hello > " + folder + "/text.bpf.o").c_str()), 0);
  for (const BadCase& bad : cases) {
    EXPECT_EQ(record(bad.words), bad.status) << bad.what << ": " << errors;
    EXPECT_TRUE(said(bad.says)) << bad.what << ": " << errors;
    // One line; where it names a column, the text and a caret below it.
    const std::size_t first = errors.find('\n') + 1;
    const bool has_caret = errors.find(": column ") < first;
    EXPECT_EQ(std::ranges::count(errors, '\n'), has_caret ? 3 : 1) << bad.what << ": " << errors;
    EXPECT_EQ(errors.ends_with(" ^\n"), has_caret) << bad.what << ": " << errors;
    EXPECT_FALSE(std::filesystem::exists(folder + "/ran")) << bad.what;
  }
}

TEST_F(Endings, AnUnknownMapComesWithTheNearest) {
  if (const auto missing = missing_to_compile(); !missing.empty()) GTEST_SKIP() << missing;
  EXPECT_EQ(record({"-e", "bpf-output/no-inherit,name=evt/", "-e",
                    source("getppid_channel.bpf.c") + "/map:chanel.event=evt/", "-a", "touch", "ran"}),
            1);
  EXPECT_TRUE(said("did you mean 'channel'")) << errors;
  EXPECT_FALSE(std::filesystem::exists(folder + "/ran"));
}

class Unprivileged : public Endings {
 protected:
  void SetUp() override {
    Endings::SetUp();
    if (std::system("setpriv --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "needs setpriv";
    if (folder.empty()) return;
    std::filesystem::permissions(folder, std::filesystem::perms::all);
    // The build folder may be closed to others.
    std::filesystem::copy_file(tacho_record(), folder + "/tacho-record");
    std::filesystem::copy_file(getppid_load(), folder + "/getppid_load");
  }
  Program start_as_nobody(std::vector<std::string> words) {
    const std::vector<std::string> before{
        "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", folder + "/tacho-record"};
    words.insert(words.begin(), before.begin(), before.end());
    return Program::start(words, folder);
  }
  static bool paranoid_is_two() {
    return std::system("test \"$(cat /proc/sys/kernel/perf_event_paranoid)\" = 2") == 0;
  }
};

TEST_F(Unprivileged, TheMessageSaysWhatIsNeeded) {
  if (!paranoid_is_two()) GTEST_SKIP() << "needs kernel.perf_event_paranoid = 2";
  Program run = start_as_nobody({"-a", "-e", "cpu-clock", "touch", "ran"});
  EXPECT_EQ(run.wait(), 2) << run.errors();
  EXPECT_NE(run.errors().find("perf_event_paranoid is"), std::string::npos) << run.errors();
  EXPECT_NE(run.errors().find("CAP_PERFMON"), std::string::npos) << run.errors();
  EXPECT_FALSE(std::filesystem::exists(folder + "/ran"));
}

TEST_F(Unprivileged, OnesOwnCodeCanBeRecorded) {
  if (!paranoid_is_two()) GTEST_SKIP() << "needs kernel.perf_event_paranoid = 2";
  Program run = start_as_nobody({"-g", "-e", "cpu-clock:u", folder + "/getppid_load", "400000"});
  EXPECT_EQ(run.wait(), 0) << run.errors();
  EXPECT_EQ(run.errors().find("hidden"), std::string::npos)
      << "nobody asked for the kernel: " << run.errors();
  EXPECT_GT(capture().samples.size(), 5u);
}

}  // namespace
}  // namespace tacho::live
