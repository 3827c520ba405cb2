#!/usr/bin/env python3
"""Captures of all recorders are read on a machine without files of this one, by a user without
rights: every view prints the same text there and here, and perf reads them too."""
import re
import sys
import unittest
from pathlib import Path

import programs
from other_machine import Travels
from recorder_loads import ASKS, KNOCKS, NET, READS, WAITS, killed_for_memory, loop_disk

PROGRAM = r"""
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) int leaf(int n) { return n + getppid(); }
__attribute__((noinline)) int outer(int n) { char *kept = malloc(1000 + n); return leaf(n) + (kept == 0); }
int main(void) { int sum = 0; for (int i = 0; i < 20; ++i) sum += outer(i); return sum == 1; }
"""
RESOLVES = "import socket\nfor _ in range(3): socket.getaddrinfo('localhost', None)"
READ = ["dd", "if=/dev/urandom", "of=/dev/null", "bs=1M"]
HAS_PROBES = Path("/sys/bus/event_source/devices/kprobe").exists()

# By recorder: the event, and what to record, as {"options": ..., "load": ...}. LOADS are programs built here.
CASES = {
    "exec": ("exec", [], ["sh", "-c", "/bin/true; /nonexistent/program"]),
    "open": ("open", ["-g"], ["cat", "/etc/hostname"]),
    "syscall": ("syscall", ["-g"], ["true"]),
    "syscount": ("syscount", [], ["true"]),
    "stackcount": ("stackcount/name='./known:leaf'/", ["-g"], ["./known"]),
    "runqlat": ("runqlat", [], ["sh", "-c", "seq 20000 | sort -n | wc"]),
    "offcpu": ("offcpu", [], ["./waits"]),
    "offcputime": ("offcputime", [], ["./waits"]),
    "waking": ("waking", [], ["./waits"]),
    "calls": ("calls/binary='./known'/", [], ["./known"]),
    "fastcalls": ("fastcalls/binary='./fast'/", [], ["./fast"]),
    "alloc": ("alloc", ["-g"], ["./known"]),
    "kalloc": ("kalloc", ["-g"], ["cat", "/etc/hostname"]),
    "func": ("func/name='./known:*'/", [], ["./known"]),
    "profile": ("profile/hz=999/", [], [*READ, "count=100"]),
    "bio": ("bio", ["-a"], ["dd", "if=/dev/zero", "of=DISK", "bs=64k", "count=8", "oflag=direct"]),
    "vfsio": ("vfsio", ["-g"], ["./reads"]),
    "pagecache": ("pagecache", ["-g"], ["./reads"]),
    "tcp": ("tcp", [], [sys.executable, "-c", NET]),
    "tcpretrans": ("tcpretrans", ["-a", "-g"], [sys.executable, "-c", KNOCKS]),
    "dns": ("dns", ["-g"], [sys.executable, "-c", RESOLVES]),
    "klock": ("klock", ["-a", "-g"], ["sh", "-c", "for i in 1 2 3; do seq 30000 | sort | wc & done; wait"]),
    "lock": ("lock", ["-g"], ["./asks"]),
    "signals": ("signals", ["-g"], ["./asks"]),
    "oom": ("oom", ["-a"], ["OOM"]),
    "cap": ("cap", ["-g"], ["./asks"]),
    "bpfstat": ("bpfstat,open", ["-a"], ["cat", "/etc/hostname"]),
    "follow": ("follow/type=struct bio,functions=submit_bio*/", ["-a"], ["dd", "if=DISK", "of=/dev/null", "bs=4k", "count=4", "iflag=direct"]),
    "trace": ("trace/probe='uprobe:./known:leaf(n=arg1:s32)'/", ["-g"], ["./known"]),
    "argdist": ("argdist/probe='uprobe:./known:leaf(n=arg1:s32)',value=n/", [], ["./known"]),
}
# May have no events on an idle machine.
MAY_BE_EMPTY = {"klock", "pagecache", "tcpretrans"}
VIEWS = [["script"], ["script", "--columns", "auto"], ["table", "--by", "comm"], ["hist", "--by", "none"], ["folded"],
         ["report", "--stdio", "--no-children"]]


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
class Catalogue(Travels):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = programs.built_once(cls, {"known": PROGRAM, "waits": WAITS, "reads": READS, "asks": ASKS})

    def setUp(self):
        super().setUp()
        self.need_recorder()
        self.bring(self.built)
        self.run_program("cc", "-g", "-finstrument-functions", "-o", "fast", "known.c")

    def rows(self):
        text = self.run_program(programs.BIN / "tacho-record", "--list-events", "recorders").stdout.decode()
        return [line.split()[0] for line in text.splitlines()]

    def test_every_row_of_the_catalogue_is_one_of_these(self):
        """A row that is an alias has the same events."""
        def events(name):
            text = self.run_program(programs.BIN / "tacho-record", "-e", f"{name}/help/").stdout.decode()
            reported = re.search(r"(?s)\nEvents:\n(.*?)\n\n", text)
            return reported.group(1) if reported else name
        known = {events(name) for name in CASES}
        self.assertEqual([name for name in self.rows() if events(name) not in known], [])

    def command_of(self, words):
        if words == ["OOM"]:
            return killed_for_memory(self)
        if any("DISK" in word for word in words):
            disk, _number = loop_disk(self, 1 << 20)
            return [word.replace("DISK", disk) for word in words]
        return words

    def check_elsewhere(self, there, capture):
        place = there.bring(capture)
        for view in VIEWS:
            with self.subTest(view=" ".join(view)):
                here = self.tacho(view[0], "-i", capture, *view[1:], status=None)
                far = self.run_program(*there.command(view[0], "-i", place, *view[1:]), status=None)
                self.assertEqual(far.returncode, here.returncode, far.stderr)
                self.assert_same_text(far.stdout, here.stdout)
                # Only hist reports that an event has no value.
                if view[0] != "hist":
                    self.assertEqual(here.returncode, 0, here.stderr)

    def check_perf(self, capture):
        if not programs.shutil.which("perf"):
            return
        ours = self.tacho("script", "-i", capture, "-F", "comm,tid,time,event").stdout.decode().splitlines()
        theirs = self.perf("script", "-i", capture, "-F", "comm,tid,time,event").stdout.decode().splitlines()
        count = len([line for line in theirs if line.strip()])
        self.assertEqual(count, len([line for line in ours if line.strip()]))
        report = self.perf("report", "--stdio", "-i", capture).stdout.decode()
        self.assertEqual("%" in report, count != 0, report[-500:])

    def check(self, name):
        event, options, words = CASES[name]
        there = self.machine()
        command = self.command_of(words)
        done = self.run_program(programs.BIN / "tacho-record", "-o", "x.data", "-e", event, *options, "--", *command, status=None)
        capture = self.folder / "x.data"
        self.assertTrue(capture.exists(), done.stderr.decode())
        if not self.tacho("script", "-i", capture).stdout and name in MAY_BE_EMPTY:
            self.skipTest("nothing of the kind happened")
        self.assertTrue(self.tacho("script", "-i", capture).stdout, done.stderr.decode())
        self.check_elsewhere(there, capture)
        self.check_perf(capture)


def add_tests():
    """Adds a test for each recorder, so that an unavailable one is skipped alone."""
    for name in CASES:
        def test(self, name=name):
            self.check(name)
        if name == "follow":
            test = unittest.skipUnless(HAS_PROBES, "needs a kernel with kprobes (tests/vm boots one)")(test)
        setattr(Catalogue, f"test_{name}", test)


add_tests()

if __name__ == "__main__":
    programs.main()
