#!/usr/bin/env python3
"""A worker (sandbox/process.h) and the process that waits for it, as seen by a shell: Ctrl-Z stops both, `fg` continues
both; if the worker dies while it reads a pipe, before any text, one line is printed."""
import contextlib
import os
import signal
import subprocess
import time

import made_capture as made
import programs

UNREADABLE = 2
FINISHED_ROUND = 68


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


class Stopping(programs.Scratch):
    def wait_until(self, condition, what):
        limit = time.monotonic() + programs.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), limit, what)
            time.sleep(0.01)

    def start(self, *words):
        """Starts tacho on a pipe from this process, in its own process group, as a shell does."""
        return subprocess.Popen([programs.BIN / "tacho-report", *words], cwd=self.folder, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0,
                                env=dict(os.environ, LC_ALL="C.UTF-8", ASAN_OPTIONS="detect_leaks=0"))

    def worker_of(self, program):
        self.wait_until(lambda: children_of(program.pid), "it has a worker")
        return children_of(program.pid)[0]

    def piped(self, samples):
        """A capture in the form of a pipe."""
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL)).started()
        pieces = []
        for number in range(samples):
            capture.sample(ip=0x1000 + number)
            if number % 1000 == 999:
                pieces.append(capture.data + made.record(FINISHED_ROUND, 0, b""))
                capture.data = b""  # += would copy it each time
        capture.data = b"".join(pieces) + capture.data
        (self.folder / "file.data").write_bytes(capture.file())
        return self.tacho("convert", "-i", "file.data", "-o", "-").stdout

    def test_ctrl_z_stops_both_and_they_go_on_together(self):
        content = self.piped(1000)
        for words in (["script", "-i", "-"], ["convert", "-i", "-", "-o", "out.data"]):
            with self.subTest(words[0]):
                program = self.start(*words)
                worker = self.worker_of(program)
                for _ in range(2):
                    # It may not have installed its signal handlers yet.
                    self.wait_until(lambda: len(os.listdir(f"/proc/{program.pid}/task")) == 2, "its thread is there")
                    os.kill(program.pid, signal.SIGTSTP)
                    self.wait_until(lambda: state_of(program.pid) == "T", "it is stopped")
                    self.wait_until(lambda: state_of(worker) == "T", "and its worker")
                    os.kill(program.pid, signal.SIGCONT)
                    self.wait_until(lambda: state_of(program.pid) != "T" and state_of(worker) != "T", "both go on")
                text, said = program.communicate(content, timeout=programs.PATIENCE)
                self.assertEqual(program.returncode, 0, said)
                if words[0] == "script":
                    self.assertEqual(len(text.splitlines()), 1000)

    def test_a_copy_of_a_pipe_that_a_signal_ends_is_whole(self):
        """A signal ends a copy: records that arrive within three seconds are included."""
        content = self.piped(20000)
        whole = len(self.tacho("script", "-i", "file.data").stdout.splitlines())
        half = len(content) // 2
        for more in ([], ["--no-worker"]):
            for is_closed in (True, False):
                with self.subTest(more=more, is_closed=is_closed):
                    program = self.start("convert", "-i", "-", "-o", "out.data", *more)
                    program.stdin.write(content[:half])
                    program.stdin.flush()
                    self.wait_until(lambda: (self.folder / "out.data").exists(), "the head came")
                    os.kill(program.pid, signal.SIGTERM)
                    if not is_closed:
                        time.sleep(4)
                        with contextlib.suppress(BrokenPipeError):
                            program.stdin.write(content[half:half + 100_000])
                            program.stdin.flush()
                    else:
                        program.stdin.write(content[half:])
                        program.stdin.close()
                    program.wait(programs.PATIENCE)
                    said = program.stderr.read().decode()
                    program.stderr.close()
                    program.stdout.close()
                    with contextlib.suppress(BrokenPipeError):
                        program.stdin.close()
                    self.assertEqual(program.returncode, 0 if is_closed else 3, said)
                    self.assertEqual("a signal ended the copy: it has the records up to there" in said, not is_closed, said)
                    read = self.tacho("script", "-i", "out.data")
                    self.assertEqual(read.stderr, b"")
                    if is_closed:
                        self.assertEqual(len(read.stdout.splitlines()), whole)
                    else:
                        self.assertTrue(whole // 4 < len(read.stdout.splitlines()) < whole)
                    (self.folder / "out.data").unlink()

    def test_of_nothing_nothing_is_kept(self):
        program = self.start("report", "-i", "-")
        os.kill(self.worker_of(program), signal.SIGKILL)
        text, said = program.communicate(timeout=programs.PATIENCE)
        self.assertEqual((program.returncode, text), (UNREADABLE, b""))
        self.assertEqual(len(said.splitlines()), 1, said)
        self.assertIn(b"what comes through a pipe cannot be read again: put it into a file", said)


if __name__ == "__main__":
    programs.main()
