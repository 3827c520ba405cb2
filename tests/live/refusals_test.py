#!/usr/bin/env python3
"""Fault injection: every file, thread, map, event and allocation that a short
recording or a report asks for is refused once (tests/support/refusals.c). They end by themselves, with an exit status of
ours and a line that says why; or they do without, and then the result is the same, or the loss is reported.

By default a sample of the calls is tried: one of each kind, 3 with script/test --long. TACHO_REFUSALS_EACH=N tries N of each; 1000000 is all of them,
which takes hours. TACHO_REFUSALS_PART=K/N tries every Nth of these, beginning with the Kth (from 1), so that N processes that run
at once have tried them all."""
import collections
import os
import subprocess
import sys
import sysconfig
import unittest

import programs

LIBRARY = programs.BIN / "refusals.so"
EACH = int(os.environ.get("TACHO_REFUSALS_EACH", programs.scaled(3)))
PART, PARTS = (int(number) for number in os.environ.get("TACHO_REFUSALS_PART", "1/1").split("/"))
assert 1 <= PART <= PARTS, "TACHO_REFUSALS_PART=K/N"
PATIENCE = 20  # seconds
STATUSES = {0, 1, 2, 3, 4}
CAPTURE = programs.ROOT / "tests" / "data" / "bigreads.data"


def some_of(count, most):
    """Some numbers from 1 to count: both ends, and others evenly between them."""
    if count <= most:
        return range(1, count + 1)
    if most == 1:
        return [1 + count // 2]
    return sorted({1 + round(i * (count - 1) / (most - 1)) for i in range(most)})


@unittest.skipUnless(LIBRARY.exists(), "needs the library that refuses calls (build it with tests)")
class Refusals(programs.Scratch):
    def run_with(self, words, **environment):
        environment = dict(os.environ, LD_PRELOAD=str(LIBRARY), HOME=str(self.folder), LC_ALL="C.UTF-8", TZ="UTC",
                           **environment)
        environment.pop("DEBUGINFOD_URLS", None)
        return subprocess.run([str(word) for word in words], cwd=self.folder, env=environment, capture_output=True,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL)

    def counted(self, words):
        """Runs the program without a failure, and counts its calls."""
        counts = self.folder / "counts"
        whole = self.run_with(words, TACHO_REFUSALS=str(counts))
        self.assertEqual(whole.returncode, 0, whole.stderr.decode())
        calls = {name: int(count) for name, count in (line.split() for line in counts.read_text().splitlines())}
        return whole, {name: count for name, count in calls.items() if count}

    def try_all(self, words, judge, most=EACH, spared=()):
        """Makes one call of `words` fail in each run. judge(whole, done) returns what is wrong with a run, or None."""
        whole, calls = self.counted(words)
        self.assertIn("memory", calls)
        wrong, tried = [], 0
        for name, count in calls.items():
            if name in spared:
                continue
            for call in list(some_of(count, most))[PART - 1::PARTS]:
                tried += 1
                try:
                    done = self.run_with(words, TACHO_REFUSE=f"{name}:{call}")
                    fault = self.outcome(done) or judge(whole, done)
                except subprocess.TimeoutExpired as late:
                    done, fault = None, f"still ran after {PATIENCE} s: {late.stderr}"
                if fault:
                    wrong.append(f"{name}:{call} of {count}: {fault}")
        if wrong:
            self.fail(f"{' '.join(map(str, words))}: {len(wrong)} of {tried} refusals\n" + "\n".join(wrong))
        print(f"{' '.join(map(str, words[1:]))}: {tried} of {sum(calls.values())} calls refused, nothing wrong",
              file=sys.stderr)
        return collections.Counter(calls)

    @staticmethod
    def outcome(done):
        if done.returncode not in STATUSES:
            return f"status {done.returncode}: {done.stderr.decode()[-300:]}"
        if done.returncode != 0 and not done.stderr.strip():
            return f"status {done.returncode} without a word"
        return None

    def view_is_whole(self, whole, done):
        if done.returncode == 0 and done.stdout != whole.stdout and done.stderr == whole.stderr:
            return "another text, status 0, and not a word"
        return None

    def test_views(self):
        for command in (["script", "-F", "+payload"], ["report"], ["folded"], ["hist"], ["dump", "--json"]):
            with self.subTest(command=command[0]):
                self.try_all([programs.BIN / "tacho-report", *command, "-i", CAPTURE], self.view_is_whole)

    @programs.needs_root
    def test_tracepoint_texts(self):
        capture = self.folder / "tracepoints.data"
        self.run_program(programs.BIN / "tacho-record", "-q", "-e", "sched:sched_switch,sched:sched_process_exec", "-o",
                         capture, "--", "sleep", "0.01")
        # libtraceevent 1.7 uses the null pointer of a failed allocation.
        self.try_all([programs.BIN / "tacho-report", "script", "-i", capture], self.view_is_whole, spared=["memory"])

    def capture_is_readable(self, _whole, done):
        if done.returncode != 0:
            return None
        read = self.run_program(programs.BIN / "tacho-report", "evlist", "-i", "out.data", status=None)
        return None if read.returncode == 0 else "status 0, but: " + read.stderr.decode()

    @programs.needs_root
    def test_recording(self):
        record = [programs.BIN / "tacho-record", "-q", "-o", "out.data"]
        self.try_all([*record, "-g", "-e", "cpu-clock", "--", "true"], self.capture_is_readable)
        self.try_all([*record, "-a", "-e", "sched:sched_switch", "--", "true"], self.capture_is_readable)

    def newest_is_readable(self, _whole, done):
        """For captures with a time in their names, or with a plain name."""
        captures = sorted(self.folder.glob("out.data*"), key=lambda path: path.stat().st_mtime_ns)
        fault = None
        if done.returncode == 0 and not captures:
            fault = "status 0, and no capture"
        elif done.returncode == 0:
            read = self.run_program(programs.BIN / "tacho-report", "evlist", "-i", captures[-1], status=None)
            fault = None if read.returncode == 0 else f"status 0, but {captures[-1].name}: " + read.stderr.decode()
        for capture in captures:
            capture.unlink()
        return fault

    def pipe_is_readable(self, _whole, done):
        if done.returncode != 0:
            return None
        (self.folder / "pipe.data").write_bytes(done.stdout)
        read = self.run_program(programs.BIN / "tacho-report", "script", "-i", "pipe.data", status=None)
        return None if read.returncode == 0 else "status 0, but: " + read.stderr.decode()

    @programs.needs_root
    def test_recording_to_other_places(self):
        record = [programs.BIN / "tacho-record", "-q", "-e", "cpu-clock"]
        self.try_all([*record, "--switch-output", "-o", "out.data", "--", "true"], self.newest_is_readable)
        self.try_all([*record, "--overwrite", "-o", "out.data", "--", "true"], self.newest_is_readable)
        self.try_all([*record, "-o", "-", "--", "true"], self.pipe_is_readable)

    @programs.needs_root
    @programs.needs_clang
    @programs.needs_btf
    def test_recording_with_a_program(self):
        record = [programs.BIN / "tacho-record", "-q", "-o", "out.data"]
        program = programs.ROOT / "tests" / "live" / "getppid_channel.bpf.c"
        self.run_program("clang", "-target", "bpf", "-O2", "-g", f"-I/usr/include/{sysconfig.get_config_var('MULTIARCH')}",
                         "-c", program, "-o", "channel.bpf.o")
        self.try_all([*record, "-a", "-e", "./channel.bpf.o", "--", "true"], self.capture_is_readable)


if __name__ == "__main__":
    programs.main()
