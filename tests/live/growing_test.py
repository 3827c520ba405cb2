#!/usr/bin/env python3
"""Captures that are shown while they are recorded: --follow of a file, and tacho live. Which files are opened, and when, is
controlled by the test, without assumptions about durations."""
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import programs

# Opens the files named on its standard input.
# The shell opens the files itself: dash forgets a SIGINT that comes while it starts a program (in its handler, between
# vfork() and exec()), and would wait for the next name for ever.
LOOP = 'while read name; do true < "$name"; done 2>/dev/null; exit 7'
EVENT = "open/path='/nosuch'/"


class Lines:
    """The lines of a program's output, as they arrive."""

    def __init__(self, stream):
        self.lines, self.is_over, self.news = [], False, threading.Condition()
        threading.Thread(target=self.read, args=(stream,), daemon=True).start()

    def read(self, stream):
        for line in stream:
            with self.news:
                self.lines.append(line.decode().rstrip())
                self.news.notify_all()
        with self.news:
            self.is_over = True
            self.news.notify_all()

    def wait_for(self, text):
        with self.news:
            found = self.news.wait_for(lambda: any(text in line for line in self.lines) or self.is_over, programs.PATIENCE)
            assert found and any(text in line for line in self.lines), f"{text!r} never came: {self.lines}"

    def to_the_end(self):
        with self.news:
            assert self.news.wait_for(lambda: self.is_over, programs.PATIENCE), self.lines
            return self.lines


@programs.needs_root
@programs.needs_btf
class Growing(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.need_recorder()
        self.errors = open(self.folder / "errors", "wb")
        self.addCleanup(self.errors.close)

    def start(self, *words, **more):
        """Starts a program in its own session, whose processes are killed at the end of the test."""
        program = subprocess.Popen([str(programs.BIN / "tacho"), *words], cwd=self.folder, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=self.errors, start_new_session=True, **more)
        self.addCleanup(self.end, program)
        return program

    def end(self, program):
        try:
            os.killpg(program.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for stream in (program.stdin, program.stdout):
            try:
                stream.close()
            except OSError:
                pass
        program.wait()

    def said(self):
        return (self.folder / "errors").read_text()

    def wait_for(self, program):
        return program.wait(programs.PATIENCE)

    def left_of(self, program):
        """Running processes of its session, without zombies."""
        left = []
        for folder in Path("/proc").iterdir():
            try:
                state, _, _, session = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:4]
            except (OSError, IndexError, ValueError):
                continue
            if folder.name.isdigit() and int(session) == program.pid and state != "Z":
                left.append(folder.name)
        return left

    def assert_nothing_left(self, program):
        until = time.monotonic() + programs.PATIENCE
        while left := self.left_of(program):
            if time.monotonic() > until:
                self.fail("processes are left behind: " + "; ".join(map(self.reported, left)))
            time.sleep(0.05)

    @staticmethod
    def reported(process):
        """Command and state of a process, for messages."""
        folder = Path("/proc") / process
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            return f"{process} {words}({(folder / 'wchan').read_text()}, {(folder / 'stat').read_text().rsplit(')', 1)[1][:20]})"
        except OSError:
            return process + " (just gone)"

    def open_file(self, recorder, name):
        recorder.stdin.write(f"/nosuch/{name}\n".encode())
        recorder.stdin.flush()

    def recorder(self):
        """A recording into a file that is there."""
        started = self.start("record", "-o", "grows.data", "-e", EVENT, "--", "sh", "-c", LOOP)
        until = time.monotonic() + programs.PATIENCE
        while not (self.folder / "grows.data").exists():
            self.assertIsNone(started.poll(), self.said())
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        return started

    def follower(self, command, *words):
        return subprocess.Popen([str(programs.BIN / "tacho"), command, "--follow", "-i", "grows.data", *words],
                                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def read_rest(self, follower, lines):
        """Its exit status and messages."""
        lines.to_the_end()
        with follower.stderr, follower.stdout:
            said = follower.stderr.read().decode()
        return self.wait_for(follower), said

    def test_events_come_while_the_recorder_runs_and_the_end_is_reported(self):
        recorder = self.recorder()
        follower = self.follower("script", "--columns", "comm,error,path")
        lines = Lines(follower.stdout)
        for name in ("one", "two", "three"):
            self.open_file(recorder, name)
            lines.wait_for("/nosuch/" + name)
        self.assertIsNone(recorder.poll())
        recorder.stdin.close()
        self.assertEqual(self.wait_for(recorder), 7)
        status, said = self.read_rest(follower, lines)
        self.assertEqual((status, said), (0, "tacho: grows.data: its recorder has finished it\n"))
        self.assertEqual([line.split() for line in lines.lines],
                         [["comm", "error", "path"]] + [["sh", "ENOENT", "/nosuch/" + name] for name in ("one", "two", "three")])
        # The same for a finished capture.
        done = self.tacho("script", "--follow", "-i", "grows.data", "--columns", "comm,error,path")
        self.assertEqual(len(done.stdout.splitlines()), 4)

    def test_ctrl_c_ends_the_view_and_not_the_recorder(self):
        recorder = self.recorder()
        follower = self.follower("table", "--by", "path", "--columns", "count", "--interval", "0.1", "--csv")
        lines = Lines(follower.stdout)
        for name in ("one", "one", "two"):
            self.open_file(recorder, name)
        lines.wait_for("/nosuch/two")
        follower.send_signal(signal.SIGINT)
        status, said = self.read_rest(follower, lines)
        self.assertEqual((status, said), (0, "tacho: grows.data: stopped; its recorder may go on\n"))
        # The last rows are totals, without a start time.
        self.assertEqual(sorted(line for line in lines.lines if line.startswith(",")), [",/nosuch/one,2", ",/nosuch/two,1"])
        self.assertIsNone(recorder.poll())
        recorder.stdin.close()
        self.assertEqual(self.wait_for(recorder), 7)

    def test_a_recorder_that_was_killed_is_not_waited_for(self):
        recorder = self.recorder()
        follower = self.follower("script", "--columns", "path")
        lines = Lines(follower.stdout)
        self.open_file(recorder, "one")
        lines.wait_for("/nosuch/one")
        recorder.kill()
        status, said = self.read_rest(follower, lines)
        self.assertEqual(status, 3)
        self.assertIn("tacho: grows.data: not closed by its recorder: it was killed", said)

    def test_a_recorder_that_was_killed_before_is_not_waited_for(self):
        recorder = self.recorder()
        follower = self.follower("script", "--columns", "path")
        lines = Lines(follower.stdout)
        self.open_file(recorder, "one")
        lines.wait_for("/nosuch/one")
        recorder.kill()
        self.read_rest(follower, lines)
        self.wait_for(recorder)
        late = self.tacho("script", "--follow", "-i", "grows.data", "--columns", "path", status=3)
        self.assertEqual(late.stdout.split(), [b"path", b"/nosuch/one"])
        self.assertIn("tacho: grows.data: not closed by its recorder: it was killed", late.stderr.decode())

    def test_live_shows_events_and_ends_with_its_command(self):
        live = self.start("live", "--view", "script --columns error,path", EVENT, "--", "sh", "-c", LOOP)
        lines = Lines(live.stdout)
        for name in ("one", "two"):
            self.open_file(live, name)
            lines.wait_for("/nosuch/" + name)
        live.stdin.close()
        self.assertEqual(lines.to_the_end()[1:], ["ENOENT /nosuch/one", "ENOENT /nosuch/two"])
        self.assertEqual(self.wait_for(live), 7)
        self.assert_nothing_left(live)
        self.assertEqual(self.said(), "")

    def test_live_tables_have_the_whole_at_the_end_and_ctrl_c_leaves_nothing(self):
        live = self.start("live", "--interval", "0.1", EVENT, "--", "sh", "-c", LOOP)
        lines = Lines(live.stdout)
        for name in ("one", "two"):
            self.open_file(live, name)
            lines.wait_for("/nosuch/" + name)
        self.open_file(live, "one")
        os.killpg(live.pid, signal.SIGINT)  # as a terminal does
        text = "\n".join(lines.to_the_end())
        whole = text.rsplit("open: ", 1)[1]
        self.assertNotIn(" from ", whole.splitlines()[0])
        self.assertIn("/nosuch/one", whole)
        self.assertIn("/nosuch/two", whole)
        self.assertEqual(self.wait_for(live), 128 + signal.SIGINT)  # its command's
        self.assert_nothing_left(live)

    def test_live_histograms_come_meanwhile_and_whole_at_the_end(self):
        live = self.start("live", "--view", "hist --field path --by none", "--interval", "100ms", EVENT, "--", "sh", "-c", LOOP)
        lines = Lines(live.stdout)
        for name in ("one", "two", "one"):
            self.open_file(live, name)
            lines.wait_for("/nosuch/" + name)
        live.stdin.close()
        headings = [line for line in lines.to_the_end() if line.startswith("open: ")]
        self.assertGreater(len(headings), 1)
        self.assertTrue(all(" from " in line for line in headings[:-1]), headings)
        self.assertEqual(headings[-1], "open: path, 3 values")
        self.assertEqual([line.split()[::2] for line in lines.lines[-2:]], [["2", "/nosuch/one"], ["1", "/nosuch/two"]])
        self.assertEqual(self.wait_for(live), 7)

    def test_live_ends_when_nobody_reads(self):
        live = self.start("live", "--view", "script --columns path", EVENT, "--", "sh", "-c", LOOP)
        self.open_file(live, "one")
        while b"/nosuch/one" not in live.stdout.readline():
            self.assertIsNone(live.poll(), self.said())
        live.stdout.close()
        try:
            for _ in range(10 * programs.PATIENCE):  # it is noticed at the next line
                self.open_file(live, "two")
                if live.poll() is not None:
                    break
                time.sleep(0.1)
        except BrokenPipeError:
            pass
        self.wait_for(live)
        live.stdin.close()  # its command goes on: it was not to be ended
        self.assert_nothing_left(live)

    def test_wrong_use_is_answered(self):
        for words, said in [((), "no event is given"), (("-a", "open"), "'-a'"), (("open", "-o", "x", "--", "true"), "nothing is kept here"),
                            (("--view", "report", "open", "--", "true"), "'report' cannot print while recording"),
                            (("opne", "--", "true"), "opne")]:
            done = self.run_program(programs.BIN / "tacho", "live", *words, status=None)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(said, done.stderr.decode())
            self.assertEqual(done.stdout, b"")

    def test_a_refused_event_prints_the_refusal_only(self):
        done = self.run_program(programs.BIN / "tacho", "live", "open", "-p", "2147483647", status=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.decode().splitlines()), 1, done.stderr.decode())


if __name__ == "__main__":
    programs.main()
