#!/usr/bin/env python3
"""Recorders that are killed, signalled, or have a full disk at any step: the file has every call up to some
point without gaps, and the loss at the end is reported.

By default a few of each; TACHO_KILLS, TACHO_SIGNALS (of each signal) and TACHO_DISK_STEPS are the numbers (script/torture)."""
import os
import random
import re
import signal
import subprocess
import time
import unittest
from pathlib import Path

import programs

KILLS = int(os.environ.get("TACHO_KILLS", 2))
SIGNALS = int(os.environ.get("TACHO_SIGNALS", 1))
DISK_STEPS = int(os.environ.get("TACHO_DISK_STEPS", 6))
LONGEST = float(os.environ.get("TACHO_KILL_WITHIN", 1.5))  # seconds after the first sample
EVENT = "syscalls:sys_enter_getpriority"
LOAD = programs.BIN / "numbered_load"
PAGE = 4096


@programs.needs_root
class SuddenEnds(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.seed = random.randrange(1 << 30)
        self.random = random.Random(self.seed)

    def start(self, *options, work=()):
        """Starts a recorder in the background, with its messages in the file log."""
        words = [programs.BIN / "tacho-record", "-o", self.folder / "one.data", "-k", "CLOCK_MONOTONIC", *options, "-e", EVENT, *work]
        with open(self.folder / "log", "wb") as log:
            run = subprocess.Popen([str(word) for word in words], cwd=self.folder, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(lambda: run.poll() is None and (run.kill(), run.wait()))
        return run

    def start_load(self, rest):
        load = subprocess.Popen([LOAD, "100000000", str(rest)])
        self.addCleanup(lambda: (load.kill(), load.wait()))
        return load

    def wait_until_begun(self, run):
        for _ in range(1200):
            if b"begun" in (self.folder / "log").read_bytes():
                return
            self.assertIsNone(run.poll(), (self.folder / "log").read_text())
            time.sleep(0.05)
        self.fail("did not begin")

    def calls(self, capture, status=(0, 3)):
        """Numbers of the calls in a capture, and the times in ns of the first and last one."""
        done = self.run_program(programs.BIN / "tacho-report", "script", "-i", capture, "--ns", "-F", "time,trace", status=None)
        self.assertIn(done.returncode, status, done.stderr)
        rows = re.findall(rb"(?m)^ *(\d+)\.(\d{9}):.* who: 0x([0-9a-f]+)", done.stdout)
        self.assertEqual(len(rows), done.stdout.count(b"\n"))
        times = [int(seconds) * 10**9 + int(rest) for seconds, rest, _ in rows]
        return [int(number, 16) for _, _, number in rows], times, done.stderr.decode()

    def assert_contiguous(self, numbers):
        self.assertTrue(numbers, "nothing was kept")
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))), "calls are missing in between")

    def test_killed(self):
        oldest = 0
        load = self.start_load(1000)
        for number in range(KILLS):
            options = ["-z1"] if number % 2 else ["-z0"]
            run = self.start(*options, "-p", load.pid)
            self.wait_until_begun(run)
            time.sleep(1.2 + self.random.random() * LONGEST)  # events older than a second have been written
            killed_at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            run.kill()
            run.wait()
            numbers, times, messages = self.calls("one.data")
            self.assert_contiguous(numbers)
            self.assertIn("not closed", messages, "the missing end is reported")
            oldest = max(oldest, killed_at - times[-1])
        print(f"{KILLS} recorders killed (seed {self.seed}): the newest call kept was {oldest / 1e6:.0f} ms old at most")
        # The recorder writes at least once a second, later on a busy machine.
        self.assertLess(oldest, 2 * 10**9)

    def wait_until_gone(self, child, seconds=10):
        for _ in range(seconds * 20):
            if not Path(f"/proc/{child}").exists():
                return
            time.sleep(0.05)
        self.fail("the command is left")

    def test_signalled(self):
        slowest = 0
        for name in ("INT", "TERM", "HUP", "QUIT", "PIPE"):
            for count in [1, 2] * SIGNALS:
                with self.subTest(signal=name, count=count):
                    run = self.start(work=["--", LOAD, "100000000", "1000"])
                    self.wait_until_begun(run)
                    child = programs.wait_for_child(run.pid, "numbered_load")
                    time.sleep(self.random.random() * 0.3)
                    began = time.monotonic()
                    for _ in range(count):
                        run.send_signal(getattr(signal, f"SIG{name}"))
                        time.sleep(self.random.random() * 0.02)
                    run.wait(20)
                    slowest = max(slowest, time.monotonic() - began)
                    # After the second signal the recorder does not wait for the command, which was signalled.
                    self.wait_until_gone(child)
                    numbers, _, messages = self.calls("one.data", status=[0])
                    self.assertEqual(numbers, list(range(len(numbers))), "calls are missing")
                    self.assertNotIn("not closed", messages)
        print(f"{10 * SIGNALS} recorders signalled (seed {self.seed}): ended within {slowest:.2f} s")
        self.assertLess(slowest, 5, "a busy machine has a say")

    def record_on_disk_of(self, pages, *options):
        """A recording of 2,000 calls, in several rounds, to a disk of so many pages: exit status, messages, numbers of the calls kept."""
        place = self.folder / "disk"
        place.mkdir(exist_ok=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={pages * PAGE},mode=700", "none", place], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("may not mount a file system")
        try:
            done = self.run_program(programs.BIN / "tacho-record", "-z0", "-o", "disk/one.data", "-e", EVENT, *options, "--", LOAD, "2000", "200",
                                    status=None)
            file = place / "one.data"
            numbers = self.calls(file, status=[0])[0] if file.exists() else None
            return done.returncode, done.stderr.decode(), numbers, file.stat().st_size if file.exists() else 0
        finally:
            subprocess.run(["umount", place], check=True)

    def test_disk_full(self):
        status, _, whole, size = self.record_on_disk_of(64 << 8)
        self.assertEqual((status, whole), (0, list(range(2000))))
        enough = size // PAGE + 1
        steps = sorted({1 + round(i * (enough - 2) / (DISK_STEPS - 1)) for i in range(DISK_STEPS)})
        kept = []
        for pages in steps:
            status, messages, numbers, _ = self.record_on_disk_of(pages)
            with self.subTest(pages=pages):
                self.assertEqual(status, 4, messages)
                self.assertEqual(messages.count("tacho record: "), messages.count("\n"), messages)
                self.assertIn("one.data", messages)
                if numbers is None:
                    continue  # no room even for the header, and no file is left
                self.assertEqual(numbers, list(range(len(numbers))), "calls are missing in between")
                self.assertIn(f"has the first {len(numbers)} samples" if numbers else "has no samples", messages)
                kept.append(len(numbers))
        print(f"{len(steps)} disks full, of {PAGE} to {(enough - 1) * PAGE} bytes: {len(kept)} captures, of {min(kept, default=0)} "
              f"to {max(kept, default=0)} samples")


    def test_files_of_a_flood_have_the_requested_size(self):
        """Not packed, with stacks: a hundred megabytes a second and more."""
        self.run_program(programs.BIN / "tacho-record", "-z0", "-m", "256", "--switch-output=3M", "-g", "-o", "x.data", "-e",
                         "syscalls:sys_enter_getppid", "--", programs.BIN / "getppid_load", "400000", "30")
        sizes = sorted(file.stat().st_size for file in self.folder.glob("x.data.*"))
        print(f"{len(sizes)} files, {sizes[0]} to {sizes[-1]} bytes")
        self.assertGreater(len(sizes), 10)
        self.assertLess(sizes[-1], 12 << 20, sizes)

    def test_disk_full_of_a_snapshot(self):
        """With --overwrite, which writes only snapshots: a readable capture without samples, or no file."""
        seen = set()
        for pages in (1, 2, 4, 16, 64, 300):
            status, messages, numbers, size = self.record_on_disk_of(pages, "--overwrite", "-m", "64")
            with self.subTest(pages=pages, messages=messages):
                if status == 0:
                    break
                self.assertEqual(status, 4)
                self.assertRegex(messages, r"; \d+ samples are lost")
                self.assertIn("; no capture was made; " if numbers is None else "it has no samples (", messages)
                self.assertIn(numbers, (None, []))
                seen.add(numbers is None)
        self.assertIn(True, seen, "the smallest disk has no room for the head")


if __name__ == "__main__":
    programs.main()
