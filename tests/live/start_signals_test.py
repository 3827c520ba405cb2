#!/usr/bin/env python3
"""A signal while very many events are being opened ends the recorder at once: nothing is recorded, no file is
left, and the recorded processes are unaffected."""
import os
import resource
import signal
import subprocess
import time
import unittest
from pathlib import Path

import programs

# Number of opened events, of some ten thousand, before the signal.
ENOUGH = 500
THREADS = 200
SLEEPER = f"""
import threading, time
for _ in range({THREADS}): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""


class IgnoredChildren(programs.Scratch):
    def test_a_recorder_started_with_sigchld_ignored_still_learns_how_its_children_end(self):
        """The object is tried in a child, which dies."""
        done = self.run_program(programs.BIN / "tacho-record", "-e", programs.ROOT / "tests/data/damaged-1.bpf.o", "-a",
                                status=2, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertNotIn(b"No child processes", done.stderr)
        self.assertIn(b"damaged-1.bpf.o: ", done.stderr)


@programs.needs_root
class StartSignals(programs.Scratch):
    def watched(self):
        process = subprocess.Popen(["python3", "-c", SLEEPER], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def interrupted(self, number, target):
        """Sends the signal when ENOUGH events are open; None: opening was already complete."""
        log = open(self.folder / "log", "w+b")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [str(programs.BIN / "tacho-record"), "-e", "syscalls:sys_enter_*", "-p", str(target.pid), "-o", "none.data"],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while len(os.listdir(f"/proc/{process.pid}/fd")) < ENOUGH:
            self.assertIsNone(process.poll(), (self.folder / "log").read_text())
            self.assertLess(time.monotonic(), end, "few events are opened")
            time.sleep(0.005)
        process.send_signal(number)
        sent = time.monotonic()
        status = process.wait(timeout=60)
        took = time.monotonic() - sent
        text = (self.folder / "log").read_text()
        if "has begun" in text:
            return None
        return status, took, text

    def test_it_ends_at_once(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if most != resource.RLIM_INFINITY and most < 20 * ENOUGH:
            self.skipTest("needs room for many descriptors")
        target = self.watched()
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                seen = self.interrupted(number, target)
                self.assertIsNotNone(seen, "all events were open before the signal came")
                status, took, text = seen
                self.assertEqual(status, 128 + number, text)
                self.assertIn(f"ended by signal {int(number)} before recording began", text)
                # Closing the events takes the kernel a while.
                self.assertLess(took, 10)
                self.assertEqual([path.name for path in self.folder.glob("none*")], [])
        self.assertIsNone(target.poll(), "the watched process goes on")
        self.assertEqual(len(list(Path(f"/proc/{target.pid}/task").iterdir())), THREADS + 1)


if __name__ == "__main__":
    programs.main()
