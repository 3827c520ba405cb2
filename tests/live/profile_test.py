#!/usr/bin/env python3
"""-e profile: clock samples with stacks, alone and with other recorders."""
import re
import unittest

import programs

BUSY = r"""
#include <time.h>
static volatile unsigned long sum;
__attribute__((noinline)) void spins(void) { for (int i = 0; i < 1000000; ++i) sum += i; }
int main(void) {
  struct timespec now;
  do { spins(); clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); } while (now.tv_sec < 1);
  return 0;
}
"""

CALLS = r"""
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  struct timespec now;
  do {
    for (int i = 0; i < 1000; ++i) syscall(SYS_getppid);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (now.tv_sec < 1);
  return 0;
}
"""

# It starts processes, which wait for a CPU where it waits for them; its last line is its own CPU time in ms.
STARTS = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sum;
int main(void) {
  struct timespec now;
  do {
    for (int i = 0; i < 200000; ++i) sum += i;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (now.tv_sec < 1);
  return 0;
}
"""


@programs.needs_root
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
class Profile(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.built = programs.built_once(type(self), {"busy": BUSY, "calls": CALLS, "starts": STARTS})

    def samples_of_calls(self, *options):
        """What the recorder says, and the clock's samples in the capture: a program that calls the kernel for a second of CPU time."""
        said = self.run_program(programs.BIN / "tacho-record", "--no-pack", "-o", "out.data", "-F", "1000", "-e", "cpu-clock", *options, "--",
                                self.built / "calls").stderr.decode()
        return said, self.tacho("script", "-i", "out.data", "-F", "event").stdout.decode().count("cpu-clock")

    def test_samples_that_the_kernel_does_not_take_beside_bpf_are_counted(self):
        said, taken = self.samples_of_calls("-g", "-e", "syscall")
        found = re.search(r"cpu-clock: about (\d+) of (\d+) samples \(\d+ %\) are missing: the kernel takes none while a BPF",
                          said)
        self.assertTrue(found, said)
        lost, due = map(int, found.groups())
        self.assertAlmostEqual(lost + taken, due, delta=1)  # the process that ended has a part of a period left
        self.assertAlmostEqual(due, 1000, delta=100)
        self.assertIn(f"cpu-clock (a BPF program ran): {lost}", self.tacho("header", "-i", "out.data").stdout.decode())
        for options in (["-g"], ["--call-graph", "fp", "-e", "syscall"]):
            said, taken = self.samples_of_calls(*options)
            self.assertNotIn("are missing", said)
            self.assertAlmostEqual(taken, 1000, delta=100)

    def test_a_process_that_starts_short_ones_is_sampled(self):
        for options in (["-g"], ["--call-graph", "fp"]):
            said = self.run_program(programs.BIN / "tacho-record", "--no-pack", "-o", "out.data", "-F", "99", "-e", "cpu-clock", *options, "--",
                                    "taskset", "-c", "0", self.built / "starts").stderr.decode()
            self.assertNotIn("are missing", said)
            taken = self.tacho("script", "-i", "out.data", "-F", "comm").stdout.decode().split()
            self.assertAlmostEqual(taken.count("starts"), 99, delta=20)

    def record(self, event, *options, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", event, *options, "--", self.built / "busy",
                                status=status).stderr.decode()

    def evlist(self):
        return self.tacho("evlist", "-v", "-i", "out.data").stdout.decode().splitlines()[0]

    def test_one_word_tells_where_time_goes(self):
        said = self.record("profile")
        self.assertIn("profile: tacho report -i out.data", said)
        self.assertRegex(self.evlist(), r"^profile: .*sample_freq \}: 99, .*CALLCHAIN")
        folded = self.tacho("folded", "-i", "out.data").stdout.decode()
        self.assertRegex(folded, r"(?m)^busy;.*main;spins[ ;]")
        self.assertIn("spins", self.tacho("report", "-i", "out.data", "--no-children").stdout.decode())
        if programs.shutil.which("perf"):
            self.assertIn("spins", self.run_program("perf", "report", "-i", "out.data", "--stdio", "-g", "none").stdout.decode())

    def test_its_options_are_an_events_options(self):
        self.record("profile/hz=997,call-graph=fp/u")
        self.assertRegex(self.evlist(), r"sample_freq \}: 997, .*exclude_kernel: 1")
        self.record("profile:u")
        self.assertRegex(self.evlist(), r"^profile: .*exclude_kernel: 1")
        self.record("profile/call-graph=no/")
        self.assertNotIn("CALLCHAIN", self.evlist())
        self.record("profile", "--filter", 'comm == "nobody"')
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)
        text = self.run_program(programs.BIN / "tacho-record", "-e", "profile/help/").stdout.decode()
        self.assertIn("Options, as profile/NAME=VALUE,.../:", text)
        self.assertIn("hz", text)

    def test_wrong_use_is_answered(self):
        for event, said in (("profile/hz=0/", "hz: 0 is too small"), ("profile/hz=x/", "hz: 'x' is not a number"),
                            ("profile/herz=9/", "herz"), ("cpu-clock/help/", "recorders have it")):
            with self.subTest(event):
                self.assertIn(said, self.record(event, status=1))

    def test_beside_another_recorder(self):
        self.need_recorder()
        said = self.record("profile,exec")
        self.assertIn("profile: tacho report -i out.data", said)
        self.assertIn("spins", self.tacho("folded", "-i", "out.data", "--event", "profile").stdout.decode())
        self.assertIn("busy", self.tacho("table", "-i", "out.data", "--event", "exec", "--by", "path").stdout.decode())

    def test_twice_they_have_two_names(self):
        said = self.record("profile,profile/hz=49/")
        self.assertIn("profile: tacho report --event profile -i out.data", said)
        self.assertIn("profile: tacho report --event profile.2 -i out.data", said)
        events = self.tacho("evlist", "-v", "-i", "out.data").stdout.decode()
        self.assertRegex(events, r"(?m)^profile\.2: .*sample_freq \}: 49,")


if __name__ == "__main__":
    programs.main()
