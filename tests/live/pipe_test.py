#!/usr/bin/env python3
"""A recording into a pipe, read by tacho and perf while it runs."""
import subprocess
import unittest

import programs

EVENT = "syscalls:sys_enter_getppid"
FIELDS = ["-F", "comm,tid,cpu,time,event,ip,sym"]


@programs.needs_root
class Pipe(programs.Scratch):
    def record_into(self, reader, *words):
        """A reader's output for a piped recording, and the recorder's messages."""
        recorder = subprocess.Popen([programs.BIN / "tacho", "record", *words], cwd=self.folder, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
        done = subprocess.run(reader, cwd=self.folder, stdin=recorder.stdout, capture_output=True, timeout=60)
        recorder.stdout.close()
        said = recorder.stderr.read().decode()
        recorder.stderr.close()
        return done, recorder.wait(timeout=60), said

    def load(self, calls):
        return ["--", programs.BIN / "getppid_load", str(calls)]

    def test_tacho_reads_along(self):
        for level in ["-z0", "-z3"]:
            with self.subTest(level=level):
                done, status, said = self.record_into([programs.BIN / "tacho", "script", "-i", "-"], level, "-g", "-e", EVENT,
                                                      "-o", "-", *self.load(40))
                self.assertEqual((done.returncode, status), (0, 0), said)
                self.assertEqual(done.stdout.count(EVENT.encode()), 40, said)
                self.assertIn(b"call_at_depth+", done.stdout)

    def test_a_pipe_is_read_when_no_file_is_named(self):
        """Also if there is a perf.data, as in perf."""
        (self.folder / "perf.data").write_bytes(b"another one")
        for view in (["script"], ["report", "--stdio"]):
            done, status, said = self.record_into([programs.BIN / "tacho", *view], "-e", EVENT, "-o", "-", *self.load(9))
            self.assertEqual((done.returncode, status), (0, 0), said + done.stderr.decode())
            self.assertIn(EVENT.encode(), done.stdout)
        refused = self.tacho("script", status=2)  # standard input is not a pipe here
        self.assertIn(b"perf.data", refused.stderr)

    def test_nothing_of_a_recording_is_damage(self):
        """Records written again at the end (results of unwinding) replace the first ones."""
        for options in (["-g"], ["-g", "-a"], ["-g", "-z0", "-e", f"{EVENT},sched:sched_switch"]):
            done, status, said = self.record_into(["tee", "copy.pipe"], *options, "-o", "-", *self.load(30))
            self.assertEqual(status, 0, said)
            for words in (["script"], ["report", "--stdio"], ["header"], ["dump"], ["convert", "-o", "copy.data"]):
                done = self.tacho(*words, "-i", "copy.pipe")
                self.assertNotIn(b"left out", done.stderr, (options, words))
            header = self.tacho("header", "-i", "copy.data").stdout.decode()
            self.assertEqual("user stacks : whole: " in header, "unwound in the kernel" in header, header)

    def test_control_by_a_descriptor_that_is_not_open(self):
        for where in ("fd:9", "fd:0,9"):
            done = subprocess.run(["sh", "-c", 'exec "$@" 9>&-', "sh", programs.BIN / "tacho", "record", "--control", where, "-e", "cpu-clock",
                                   "-o", "no.data", "--", "true"], cwd=self.folder, stdin=subprocess.PIPE, capture_output=True, timeout=30)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(b"--control: descriptor 9 is not open", done.stderr)

    def test_who_writes_commands_without_an_end_stops_nothing(self):
        done = subprocess.run(["sh", "-c", 'yes ping | timeout 20 "$@"', "sh", programs.BIN / "tacho", "record", "--control", "fd:0", "-q", "-e",
                               "cpu-clock", "-o", "much.data", "--", "sleep", "1"], cwd=self.folder, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    @programs.needs_perf
    def test_perf_reads_the_same(self):
        for level in ["-z0", "-z1", "-z3"]:
            with self.subTest(level=level):
                done, status, said = self.record_into(["tee", "copy.pipe"], level, "-g", "-e", f"{EVENT},sched:sched_switch",
                                                      "-o", "-", *self.load(30))
                self.assertEqual(status, 0, said)
                theirs = self.perf("script", "-i", "copy.pipe", *FIELDS).stdout
                self.assertEqual(theirs.count(EVENT.encode()), 30)
                self.assert_same_text(self.tacho("script", "--as-perf", "-i", "copy.pipe", *FIELDS).stdout, theirs)

    def test_a_pipe_is_taken_when_no_file_is_named(self):
        done, status, said = self.record_into([programs.BIN / "tacho", "script", "-i", "-"], "-e", "dummy", "--", "echo", "word")
        self.assertEqual((done.returncode, status), (0, 0), said)
        self.assertIn("Standard output is a pipe", said)
        self.assertIn("\nword\n", said, "the command's output is not in the capture")
        self.assertFalse((self.folder / "perf.data").exists())

    def test_a_pipe_for_the_messages_is_not_taken(self):
        recorder = programs.BIN / "tacho"
        done = subprocess.run([recorder, "record", "-e", "dummy", "--", "true"], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(b"Captured and wrote", done.stdout)
        self.assertTrue((self.folder / "perf.data").exists())

    def test_a_reader_that_leaves_ends_the_recording(self):
        done, status, said = self.record_into(["head", "-c", "100"], "-a", "-e", "cpu-clock", "-o", "-")
        self.assertEqual(done.stdout[:8], b"PERFILE2")
        self.assertEqual(status, 0, said)
        self.assertNotIn("Broken pipe", said)
        self.assertLessEqual(said.count("tacho"), 1, f"nothing after the line that it has begun: {said}")

    def test_a_reader_that_leaves_before_the_command_starts_is_reported(self):
        ran = self.folder / "ran"
        _, status, said = self.record_into(["true"], "-e", "cpu-clock", "-o", "-", "--", "touch", ran)
        self.assertEqual(status == 4, not ran.exists(), said)  # it may start before the reader ends
        if not ran.exists():
            self.assertIn("the reader of the capture ended before the command started", said)


if __name__ == "__main__":
    programs.main()
