#!/usr/bin/env python3
"""Tokens planted into the arguments, the environment, the name, the folder and the memory of a program that is recorded are
in no byte of the capture that tacho redact makes; names of functions and counts are as before, and perf reads it."""
import os
import resource
import shlex
import subprocess
import unittest

import bytes_of
import programs

TOKEN = "pl4nted"
LIMIT = 6 << 20  # bytes, of a limit or disk that is too small for the recording
PLACES = ("argument", "environment", "comm", "folder", "payload", "stack")
LOAD = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) static int work(const char *memory) {
  for (int i = 0; i < 2000000; ++i) sink += memory[i % 7];
  return sink;
}
__attribute__((noinline)) static int outer(void) {
  char memory[64];
  snprintf(memory, sizeof memory, "%s-stack", "pl4nted");
  return work(memory) + memory[3];
}
int main(int argc, char **argv) {
  prctl(PR_SET_NAME, "pl4nted-comm");
  int sum = 0;
  for (int i = 0; i < 40; ++i) sum += outer();
  if (fork() == 0) {
    execl("./pl4nted-payload", "x", (char *)0);
    _exit(0);
  }
  wait(0);
  return sum == 1 && argc == 77;
}
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Redact(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {"load": LOAD})

    def setUp(self):
        super().setUp()
        folder = self.folder / f"{TOKEN}-folder"
        folder.mkdir()
        self.load = folder / "load"
        self.load.write_bytes((self.built / "load").read_bytes())
        self.load.chmod(0o755)
        payload = self.folder / f"{TOKEN}-payload"
        payload.symlink_to("/bin/true")

    def record(self, *options):
        # Small, so that the stack copy includes it.
        environment = {"PATH": os.environ["PATH"], "SECRET": f"{TOKEN}-environment"}
        words = [programs.BIN / "tacho-record", "-e", "cpu-clock,sched:sched_process_exec", *options, "-o", "x.data", "--",
                 self.load, f"{TOKEN}-argument"]
        done = subprocess.run(words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stderr.decode()

    def view(self, name, *words):
        empty = () if words[0] == "header" else ("--symfs", self.folder / "none")
        (self.folder / "none").mkdir(exist_ok=True)
        return self.tacho(*words, "-i", name, *empty, status=None).stdout.decode()

    @staticmethod
    def names(text):
        """Names of frames without addresses, which redaction changes in the kernel."""
        return "\n".join(line.split(maxsplit=1)[-1] if line.strip() else "" for line in text.splitlines()).encode()

    def test_no_private_text_is_left(self):
        self.record("--call-graph", "dwarf,16384")
        before = bytes_of.capture(self.folder / "x.data")
        for place in PLACES:
            self.assertIn(f"{TOKEN}-{place}".encode(), before)
        self.tacho("redact", "x.data", "y.data")
        self.assertNotIn(TOKEN.encode(), bytes_of.capture(self.folder / "y.data"))
        self.assertIn("stacks (dropped)", self.view("y.data", "header"))
        # The stack copies are call chains now, with the same names.
        chains = [self.names(self.tacho("script", "--no-inline", "-F", "ip,sym", "-i", name, status=None).stdout.decode())
                  for name in ("x.data", "y.data")]
        self.assertIn(b"outer", chains[1])
        self.assert_same_text(chains[1], chains[0])
        said = self.tacho("doctor", "y.data", status=None).stdout.decode()
        self.assertNotIn(TOKEN, said)

    def test_views_agree_on_what_was_kept(self):
        self.record("-g")
        self.tacho("redact", "x.data", "y.data")
        self.assertNotIn(TOKEN.encode(), bytes_of.capture(self.folder / "y.data"))
        for words in (("script", "-F", "pid,tid,cpu,time,event,period"), ("report", "--stdio", "--sort", "sym", "-g", "caller")):
            before, after = (self.view(name, *words) for name in ("x.data", "y.data"))
            if words[0] == "report":
                before, after = ("\n".join(line for line in text.splitlines() if not line.startswith("#"))
                                 for text in (before, after))
            self.assert_same_text(after.encode(), before.encode())
        names = self.names(self.view("y.data", "script", "-F", "ip,sym"))
        self.assert_same_text(names, self.names(self.view("x.data", "script", "-F", "ip,sym")))
        for name in (b"work", b"main"):
            self.assertIn(name, names)
        # Kernel functions have their names at other addresses.
        self.assertIn(b"do_syscall_64", names)
        place = lambda name: [line for line in self.view(name, "script", "-F", "ip,sym").splitlines() if "do_syscall_64" in line][0]
        self.assertRegex(place("y.data"), r"ffffffff8[0-9a-f]{7} do_syscall_64")

    @programs.needs_perf
    def test_perf_reads_it(self):
        self.record("-g")
        self.tacho("redact", "x.data", "y.data")
        fields = ("-F", "pid,tid,cpu,time,event,period")
        theirs = [self.perf("script", *fields, "-i", name).stdout for name in ("x.data", "y.data")]
        self.assertEqual(*theirs)
        self.assertIn(b"work", self.perf("report", "--stdio", "--sort", "sym", "-i", "y.data", "--symfs", "/", status=None).stdout
                      + self.tacho("report", "-i", "y.data", "--sort", "sym").stdout)

    def test_a_recording_is_redacted_at_its_end(self):
        said = self.record("-g", "--redact")
        self.assertIn("Redacted: cmdline (dropped)", said)
        self.assertNotIn(TOKEN.encode(), bytes_of.capture(self.folder / "x.data"))
        self.assertIn(" work+0x", self.view("x.data", "script"))
        self.record("-g", "--redact=cmdline,payload")  # the payload's token is also a thread name
        rest = bytes_of.capture(self.folder / "x.data")
        for place, is_there in (("argument", False), ("comm", True), ("folder", True)):
            self.assertEqual(f"{TOKEN}-{place}".encode() in rest, is_there, place)

    def test_the_file_of_a_failed_recording_is_redacted_or_reported(self):
        words = ["-z0", "-e", "minor-faults", "-c", "1", "--call-graph", "dwarf,16384", "--redact"]
        # Some thousand samples of 16 KB.
        command = ["sh", "-c", f"for i in $(seq 50); do /bin/true {TOKEN}-argument; done"]
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
        said = self.run_program(programs.BIN / "tacho-record", *words, "-o", "x.data", "--", *command, status=4,
                                preexec_fn=small).stderr.decode()
        self.assertIn("the capture ends there", said)
        self.assertIn("Redacted: ", said)
        self.assertNotIn("is not redacted", said)
        self.assertNotIn(TOKEN.encode(), bytes_of.capture(self.folder / "x.data"))
        (self.folder / "disk").mkdir()
        words = shlex.join(map(str, [programs.BIN / "tacho-record", *words, "-o", "disk/x.data", "--", *command]))
        said = self.run_program("unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size={LIMIT},mode=700 none disk && {words}", status=4)
        self.assertIn("disk/x.data: is not redacted: there is no space for a second copy beside it; "
                      "tacho redact disk/x.data OUT redacts it", said.stderr.decode())

    def test_a_redaction_that_cannot_be_done_is_reported(self):
        for words, text in ((("--redact=nothing",), "there is no class 'nothing'"),
                            (("--redact", "--switch-output"), "--redact: only one file"),
                            (("--redact", "-o", "-"), "--redact: only one file")):
            said = self.run_program(programs.BIN / "tacho-record", *words, "--", "true", status=1).stderr.decode()
            self.assertIn(text, said)
        (self.folder / "bin").mkdir()
        program = self.folder / "bin" / "tacho-record"
        program.write_bytes((programs.BIN / "tacho-record").read_bytes())
        program.chmod(0o755)
        said = self.run_program(program, "--redact", "-o", "z.data", "--", "true", status=2).stderr.decode()
        self.assertIn("needs tacho-report, which is not installed beside", said)
        other = self.folder / "bin" / "tacho-report"
        other.write_text("#!/bin/sh\n[ $1 = pack ] || { echo broken >&2; exit 2; }\n")
        other.chmod(0o755)
        said = self.run_program(program, "--redact", "-o", "z.data", "--", "true", status=4).stderr.decode()
        self.assertIn("z.data: is not redacted: see above; tacho redact z.data OUT redacts it", said)


if __name__ == "__main__":
    programs.main()
