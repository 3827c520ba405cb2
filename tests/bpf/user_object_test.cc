#include "bpf/user_object.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "tests/bpf/live_support.h"

namespace tacho::bpf {
namespace {

class UserObjectLive : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = live::why_skip(); !why.empty()) GTEST_SKIP() << why;
  }
  // Opens, loads, connects and begins; what was said for -v is in `said`.
  Result<LoadedObject> run(const std::string& path, const std::vector<live::Receiver>& receivers) {
    ObjectOptions options{[this](std::string_view line) { said.append(line) += '\n'; }};
    auto object = UserObject::open(path, options);
    if (!object) return std::move(object.error());
    auto loaded = object->load();
    if (!loaded) return loaded;
    for (const Channel& channel : loaded->channels())
      for (const live::Receiver& receiver : receivers)
        if (auto connected = loaded->connect_channel(channel.map, receiver.cpu(), receiver.fd()); !connected)
          return std::move(connected.error());
    loaded->want_events(true);
    return loaded;
  }
  std::string refusal(const std::string& body) {
    const live::Source source(body);
    const auto object = run(source.path(), {});
    return object ? "" : object.error().what;
  }
  std::string said;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(UserObjectLive, BigreadsReportsWhatTheKernelReturned) {
  const auto receivers = live::receivers();
  const auto object = run(TACHO_EXAMPLES "/bigreads.bpf.c", receivers);
  ASSERT_TRUE(object) << object.error().what;
  ASSERT_EQ(object->channels().size(), 1u);
  const Channel& channel = object->channels()[0];
  EXPECT_EQ(channel.map, "channel");
  EXPECT_EQ(channel.event, "bigread");
  ASSERT_TRUE(channel.schema);
  ASSERT_EQ(channel.schema->fields.size(), 1u);
  EXPECT_EQ(channel.schema->fields[0].name, "bytes");
  EXPECT_EQ(channel.schema->fields[0].unit, "bytes");

  std::vector<char> buffer(2 << 20);
  const format::Fd zero(::open("/dev/zero", O_RDONLY));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(::read(zero.get(), buffer.data(), buffer.size()), 2 << 20);
  ASSERT_EQ(::read(zero.get(), buffer.data(), 1000), 1000);
  const auto numbers = live::received(receivers);
  EXPECT_EQ(std::ranges::count(numbers, 2u << 20), 3);
  EXPECT_EQ(std::ranges::count(numbers, 1000u), 0);

  const auto programs = object->programs();
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(std::ranges::count(programs, "attached", &format::AttachedProgram::state), 1);
  EXPECT_CONTAINS(said, "alternatives 'read'");
  EXPECT_EQ(object->recursion_misses(), 0u);
  EXPECT_GT(object->btf().size(), 100u);
}

TEST_F(UserObjectLive, WhatOthersCouldChangeIsNotLoaded) {
  const live::Source source("SEC(\"raw_tp/sys_enter\") int a(void *ctx) { return OUT(1); }\n");
  ASSERT_EQ(::chown(source.path().c_str(), 54321, 0), 0);
  const auto object = UserObject::open(source.path(), {});
  ASSERT_FALSE(object);
  EXPECT_CONTAINS(object.error().what, "belongs to user 54321");
  EXPECT_CONTAINS(object.error().what, "copy it to a folder of your own");
}

TEST_F(UserObjectLive, EveryExampleRuns) {
  for (const char* name : {"/bitehist.bpf.c", "/syscall_latency.bpf.c"}) {
    const auto receivers = live::receivers();
    const auto object = run(std::string(TACHO_EXAMPLES) + name, receivers);
    ASSERT_TRUE(object) << object.error().what;
    EXPECT_TRUE(object->channels().at(0).schema) << name;
  }
}

TEST_F(UserObjectLive, SyscallLatencyMeasuresOthersAndNotItsRecorder) {
  const auto receivers = live::receivers();
  const auto object = run(TACHO_EXAMPLES "/syscall_latency.bpf.c", receivers);
  ASSERT_TRUE(object) << object.error().what;
  const pid_t child = ::fork();
  if (child == 0) {
    ::usleep(20'000);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto arrivals = live::arrivals(receivers);
  EXPECT_EQ(std::ranges::count(arrivals, ::getpid(), &live::Arrival::process), 0);
  const auto slept = [&](const live::Arrival& each) {
    return each.process == child && each.number >= 20'000'000;
  };
  EXPECT_EQ(std::ranges::count_if(arrivals, slept), 1);
}

TEST_F(UserObjectLive, EachKindOfHookDelivers) {
  const struct {
    const char* section;
    std::uint64_t number;
  } cases[] = {{"tracepoint/syscalls/sys_enter_getppid", 11},
               {"syscalls:sys_enter_getppid", 12},
               {"raw_tp/sys_enter", 13},
               {"tp_btf/sys_enter", 14}};
  for (const auto& each : cases) {
    const live::Source source("SEC(\"" + std::string(each.section) + "\") int a(void *ctx) { return OUT(" +
                              std::to_string(each.number) + "); }\n");
    const auto receivers = live::receivers();
    const auto object = run(source.path(), receivers);
    ASSERT_TRUE(object) << object.error().what;
    ::syscall(SYS_getppid);
    EXPECT_GE(std::ranges::count(live::received(receivers), each.number), 1) << each.section;
  }
}

extern "C" __attribute__((noinline, used)) void tacho_probed_function() { asm volatile(""); }

TEST_F(UserObjectLive, AnUprobeDelivers) {
  char self[4096] = "";
  ASSERT_GT(::readlink("/proc/self/exe", self, sizeof self - 1), 0);
  const live::Source source("SEC(\"uprobe/" + std::string(self) +
                            ":tacho_probed_function\") int a(void *ctx) { return OUT(21); }\n");
  const auto receivers = live::receivers();
  const auto object = run(source.path(), receivers);
  ASSERT_TRUE(object) << object.error().what;
  tacho_probed_function();
  EXPECT_EQ(std::ranges::count(live::received(receivers), 21u), 1);
}

TEST_F(UserObjectLive, APerfEventProgramRunsOnTheEventItIsGiven) {
  const live::Source source("SEC(\"perf_event\") int a(void *ctx) { return OUT(31); }\n");
  const auto receivers = live::receivers();
  auto object = run(source.path(), receivers);
  ASSERT_TRUE(object) << object.error().what;
  const auto opened = UserObject::open(source.path(), {});
  ASSERT_TRUE(opened) << opened.error().what;
  const std::vector<std::string> programs = opened->perf_event_programs();
  ASSERT_EQ(programs.size(), 1u);
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = 1'000'000;
  attr.disabled = 1;
  const format::Fd clock(static_cast<int>(::syscall(SYS_perf_event_open, &attr, ::getpid(), -1, -1, 0)));
  ASSERT_TRUE(clock);
  const std::string& program = programs.front();
  auto attached = object->attach_to_perf_event(program, clock.get());
  ASSERT_TRUE(attached) << attached.error().what;
  if (*attached) {
    EXPECT_FALSE(object->attach_to_perf_event(program, clock.get())) << "there is one already";
    *attached = format::Fd();  // nothing else holds it there
    attached = object->attach_to_perf_event(program, clock.get());
    ASSERT_TRUE(attached) << attached.error().what;
  }
  EXPECT_EQ(live::received(receivers).size(), 0u) << "attaching must not enable the event";
  ASSERT_EQ(::ioctl(clock.get(), PERF_EVENT_IOC_ENABLE, 0), 0);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (live::received(receivers).empty() && std::chrono::steady_clock::now() < until)
    ::syscall(SYS_getppid);
  EXPECT_GE(std::ranges::count(live::received(receivers), 31u), 1);
}

TEST_F(UserObjectLive, AnObjectWithoutEventDeclarationsStillHasItsChannel) {
  const live::Source source(
      "SEC(\"tracepoint/syscalls/sys_enter_getppid\") int a(void *ctx) { return OUT(1); }\n");
  const auto object = UserObject::open(source.path(), {});
  ASSERT_TRUE(object) << object.error().what;
  ASSERT_EQ(object->channels().size(), 1u);
  EXPECT_EQ(object->channels()[0].event, "channel");
  EXPECT_FALSE(object->channels()[0].schema);
}

TEST_F(UserObjectLive, TheFirstAlternativeThatThisKernelCanRunWins) {
  const live::Source source(
      "SEC(\"raw_tp/no_such_tracepoint\") ALTERNATIVE(g) int a(void *ctx) { return OUT(1); }\n"
      "SEC(\"tp_btf/sys_enter\") ALTERNATIVE_SET(g, pair) int b(void *ctx) { return OUT(2); }\n"
      "SEC(\"tp_btf/no_such_tracepoint\") ALTERNATIVE_SET(g, pair) int c(void *ctx) { return OUT(3); }\n"
      "SEC(\"tracepoint/no/such\") ALTERNATIVE(g) int d(void *ctx) { return OUT(4); }\n"
      "SEC(\"tracepoint/syscalls/sys_enter_getppid\") ALTERNATIVE(g) int e(void *ctx) { return OUT(5); }\n"
      "SEC(\"raw_tp/sys_enter\") ALTERNATIVE(g) int f(void *ctx) { return OUT(6); }\n");
  const auto receivers = live::receivers();
  const auto object = run(source.path(), receivers);
  ASSERT_TRUE(object) << object.error().what;
  ::syscall(SYS_getppid);
  const auto numbers = live::received(receivers);
  EXPECT_GE(std::ranges::count(numbers, 5u), 1);
  EXPECT_EQ(std::ranges::count(numbers, 5u), static_cast<std::ptrdiff_t>(numbers.size()))
      << "only one may run";
  EXPECT_CONTAINS(said, "e (tracepoint/syscalls/sys_enter_getppid): attached");
  EXPECT_CONTAINS(said,
                  "a (raw_tp/no_such_tracepoint): this kernel has no raw tracepoint 'no_such_tracepoint'");
  EXPECT_CONTAINS(said, "b (tp_btf/sys_enter): its companion c (tp_btf/no_such_tracepoint) cannot be used");
  EXPECT_CONTAINS(said, "f (raw_tp/sys_enter): not needed: e");
}

TEST_F(UserObjectLive, WhenNoAlternativeCanRunEveryReasonIsReported) {
  const std::string text = refusal(
      "SEC(\"raw_tp/no_such\") ALTERNATIVE(g) int a(void *ctx) { return 0; }\n"
      "SEC(\"tracepoint/no/such\") ALTERNATIVE(g) int b(void *ctx) { return 0; }\n");
  EXPECT_CONTAINS(text, "none of the alternatives 'g' can run");
  EXPECT_CONTAINS(text, "a (raw_tp/no_such): this kernel has no raw tracepoint 'no_such'");
  EXPECT_CONTAINS(text, "b (tracepoint/no/such): this kernel has no tracepoint 'no/such'");
}

TEST_F(UserObjectLive, AnOptionalProgramMayBeMissing) {
  const live::Source source(
      "SEC(\"?tracepoint/no/such\") int a(void *ctx) { return 0; }\n"
      "SEC(\"?tracepoint/syscalls/sys_enter_getppid\") int b(void *ctx) { return OUT(7); }\n");
  const auto receivers = live::receivers();
  const auto object = run(source.path(), receivers);
  ASSERT_TRUE(object) << object.error().what;
  ::syscall(SYS_getppid);
  EXPECT_GE(std::ranges::count(live::received(receivers), 7u), 1) << "an optional program that can run does";
  EXPECT_EQ(object->programs()[0].id, 0u);
  EXPECT_GT(object->programs()[1].id, 0u);
}

TEST_F(UserObjectLive, TheVerifiersLastLinesAreShown) {
  const std::string text = refusal(
      "SEC(\"tracepoint/syscalls/sys_enter_read\") int bad(struct trace_event_raw_sys_enter *ctx)"
      "{ return *(char *)ctx->args[1]; }\n");
  EXPECT_CONTAINS(text,
                  "program bad (tracepoint/syscalls/sys_enter_read): the kernel's verifier refused it "
                  "(Permission denied)");
  EXPECT_CONTAINS(text, "invalid mem access");
  EXPECT_EQ(text.find("ulimit"), std::string::npos) << text;
  EXPECT_LE(std::ranges::count(text, '\n'), 20);
}

TEST_F(UserObjectLive, AFaultyAlternativeIsNotHiddenByTheNext) {
  EXPECT_CONTAINS(
      refusal("SEC(\"tracepoint/syscalls/sys_enter_read\") ALTERNATIVE(g) int bad(struct "
              "trace_event_raw_sys_enter *ctx) { return *(char *)ctx->args[1]; }\n"
              "SEC(\"tracepoint/syscalls/sys_enter_write\") ALTERNATIVE(g) int b(void *ctx) { return 0; }\n"),
      "invalid mem access");
}

TEST_F(UserObjectLive, WhatCannotBeAttachedIsSaidInWords) {
  EXPECT_CONTAINS(refusal("SEC(\"tracepoint/syscalls/sys_enter_raed\") int a(void *ctx) { return 0; }\n"),
                  "program a (tracepoint/syscalls/sys_enter_raed): this kernel has no tracepoint");
  EXPECT_CONTAINS(refusal("SEC(\"xdp\") int a(void *ctx) { return 2; }\n"),
                  "not a section that can be attached");
  EXPECT_CONTAINS(refusal("SEC(\"kprobe\") int a(void *ctx) { return 0; }\n"), "has no target");
  EXPECT_CONTAINS(refusal("SEC(\"func=do_sys_open name\") int a(void *ctx) { return 0; }\n"),
                  "SEC(\"kprobe/do_sys_open\")");
  EXPECT_CONTAINS(refusal("SEC(\"uprobe//bin/sh:no_such_function\") int a(void *ctx) { return 0; }\n"),
                  "no such function");
  EXPECT_CONTAINS(refusal(""), "has no BPF program");
}

TEST_F(UserObjectLive, ConnectNamesTheMapsThatExist) {
  const live::Source source(
      "SEC(\"tracepoint/syscalls/sys_enter_getppid\") int a(void *ctx) { return OUT(1); }\n");
  auto object = run(source.path(), {});
  ASSERT_TRUE(object) << object.error().what;
  const auto wrong = object->connect_channel("chanel", 0, 0);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().fault, Fault::Use);
  EXPECT_CONTAINS(wrong.error().what, "no perf event array 'chanel'; it has channel");
  EXPECT_FALSE(object->connect_channel("channel", 0, 0)) << "standard input is no event";
}

TEST_F(UserObjectLive, DestroyingItDetaches) {
  const live::Source source(
      "SEC(\"tracepoint/syscalls/sys_enter_getppid\") int a(void *ctx) { return OUT(41); }\n");
  const auto receivers = live::receivers();
  {
    const auto object = run(source.path(), receivers);
    ASSERT_TRUE(object) << object.error().what;
    ::syscall(SYS_getppid);
  }
  const auto before = live::received(receivers).size();
  EXPECT_GE(before, 1u);
  ::syscall(SYS_getppid);
  EXPECT_EQ(live::received(receivers).size(), before);
}

TEST_F(UserObjectLive, WithoutPermissionTheCapabilitiesAreNamed) {
  const live::Source source(
      "SEC(\"tracepoint/syscalls/sys_enter_getppid\") int a(void *ctx) { return OUT(1); }\n");
  auto object = UserObject::open(source.path(), {});
  ASSERT_TRUE(object) << object.error().what;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(3);
    const auto loaded = object->load();
    ::_exit(!loaded && loaded.error().what.find("CAP_BPF") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(UserObject, SaysWhatIsWrongWithAFile) {
  const auto folder = PrivateFolder::create();
  ASSERT_TRUE(folder);
  const std::string text = folder->path() + "/text.bpf.o";
  std::ofstream(text) << "hello";
  EXPECT_CONTAINS(UserObject::open(text, {}).error().what, text + ": not an ELF object");
  EXPECT_CONTAINS(UserObject::open("/proc/self/exe", {}).error().what, "not for BPF");
  EXPECT_CONTAINS(UserObject::open("/no/such.bpf.o", {}).error().what, "/no/such.bpf.o: No such file");
}

TEST(UserObject, ADamagedObjectEndsAChildAndNotUs) {
  for (const char* name : {"/damaged-1.bpf.o", "/damaged-2.bpf.o"}) {
    const auto object = UserObject::open(std::string(TACHO_TEST_DATA) + name, {});
    ASSERT_FALSE(object) << "libbpf 1.1 dies of it; a newer one may refuse it";
    EXPECT_CONTAINS(object.error().what, name);
  }
}

TEST_F(UserObjectLive, NamesWithControlCharactersAreRefused) {
  EXPECT_CONTAINS(refusal("SEC(\"raw_tp/sys\\033[2Jenter\") int a(void *ctx) { return OUT(1); }\n"),
                  "control characters");
}

TEST_F(UserObjectLive, AnObjectFromElsewhereIsTriedAndRuns) {
  const live::Source source("SEC(\"raw_tp/sys_enter\") int a(void *ctx) { return OUT(7); }\n");
  const auto made = compile(source.path(), {});
  ASSERT_TRUE(made);
  const std::string path = source.path() + ".o";
  std::ofstream(path).write(reinterpret_cast<const char*>(made->data()),
                            static_cast<std::streamsize>(made->size()));
  const auto receivers = live::receivers();
  const auto object = run(path, receivers);
  ASSERT_TRUE(object) << object.error().what;
  ::syscall(SYS_getppid);
  EXPECT_GE(std::ranges::count(live::received(receivers), 7u), 1);
}

}  // namespace
}  // namespace tacho::bpf
