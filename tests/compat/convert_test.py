#!/usr/bin/env python3
"""What tacho convert writes, perf reads as it read the capture before."""
import os
import subprocess
from pathlib import Path

import programs
from programs import BIN, ROOT

BUSY = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=20000"]
WAYS = [["--plain"], ["-z0"], ["-z"], ["--to", "pipe"], ["--to", "pipe", "-z3"]]


@programs.needs_perf
class Convert(programs.Scratch):
    def script(self, capture, *words):
        return self.perf("script", "-f", *words, "-i", capture).stdout

    def check(self, capture, pipes_differ=False):
        """perf prints the same for each form, and for a file converted back."""
        theirs = self.script(capture)
        self.assertNotEqual(theirs, b"")
        for number, way in enumerate(WAYS):
            with self.subTest(way=way):
                other, back = self.folder / f"other{number}", self.folder / f"back{number}"
                self.tacho("convert", "-i", capture, "-o", other, *way)
                if "pipe" not in way or not pipes_differ:
                    self.assert_same_text(self.script(other), theirs)
                self.tacho("convert", "-i", other, "-o", back, "--to", "file")
                self.assert_same_text(self.script(back), theirs)
        return theirs

    def record(self, *words):
        capture = self.folder / "capture.data"
        self.perf("record", "-o", capture, *words)
        return capture

    @programs.needs_root
    def test_samples_with_stacks(self):
        self.check(self.record("-e", "cpu-clock", "-F", "999", "-g", "-a", "--", *BUSY))

    @programs.needs_root
    def test_compressed_by_perf(self):
        self.check(self.record("-z", "-e", "cpu-clock,page-faults", "-g", "--", *BUSY))

    @programs.needs_root
    def test_groups(self):
        self.check(self.record("-e", "{cpu-clock,page-faults}:S", "--", *BUSY))

    @programs.needs_root
    def test_tracepoints(self):
        # Of tracepoints in a pipe perf 6.1 prints stacks with fewer fields, its own pipes included.
        self.check(self.record("-e", "sched:sched_switch", "-a", "-g", "--", "sleep", "0.2"), pipes_differ=True)

    @programs.needs_root
    def test_a_folder_of_several_threads(self):
        folder = self.folder / "folder.data"
        if self.perf("record", "--threads", "-a", "-e", "cpu-clock", "-o", folder, "--", *BUSY, status=None).returncode:
            self.skipTest("this perf has no record --threads")
        self.tacho("convert", "-i", folder, "-o", "one.data")
        self.assert_same_text(self.script("one.data"), self.script(folder))

    @programs.needs_root
    def test_a_part(self):
        capture = self.record("-e", "cpu-clock,page-faults", "-c", "1000000", "-a", "--", *BUSY)
        self.tacho("convert", "-i", capture, "-o", "part.data", "--time", "20%-60%")
        self.assert_same_text(self.script("part.data"), self.script(capture, "--time", "20%-60%"))
        self.tacho("convert", "-i", capture, "-o", "one.data", "--events", "cpu-clock")
        ours = self.script("one.data", "-F", "comm,tid,time,ip")
        self.assertNotEqual(ours, b"")
        wanted = [line for line in self.script(capture, "-F", "comm,tid,time,event,ip").splitlines() if b"cpu-clock" in line]
        self.assertEqual(len(ours.splitlines()), len(wanted))

    def check_unwound(self, capture):
        """Copies of stacks become call chains: the same frames, for us and for perf, in a smaller file."""
        fields = ["--no-inline", "-F", "comm,tid,time,event,ip,sym,dso"]
        ours = self.tacho("script", "-i", capture, *fields).stdout
        self.assertIn(b"deep_recurse", ours)
        self.tacho("convert", "-i", capture, "-o", "chains.data", "--unwind", "--plain")
        self.assertEqual(self.tacho("script", "-i", "chains.data", *fields).stdout, ours)
        self.assertEqual(self.tacho("script", "-i", "chains.data", "--inline=all", *fields[1:]).stdout,
                         self.tacho("script", "-i", capture, "--inline=all", *fields[1:]).stdout)
        self.assert_same_text(self.script("chains.data", *fields), self.script(capture, *fields))
        counts = [sorted(line.split(b"(")[0] for line in self.tacho("report", "--stats", "-i", name).stdout.splitlines()
                         if any(word in line for word in (b"SAMPLE", b"MMAP", b"COMM", b"FORK", b"EXIT")))
                  for name in (capture, "chains.data")]
        self.assertEqual(*counts)
        bits = self.perf("evlist", "-v", "-i", "chains.data").stdout.decode()
        for gone in ("STACK_USER", "REGS_USER", "exclude_callchain_user"):
            self.assertNotIn(gone, bits)
        return "chains.data"

    @programs.needs_root
    def test_unwound_stacks_of_perf(self):
        load = [BIN / "deep_load", "0.5", BIN / "deep_library.so"]
        capture = self.record("-e", "cpu-clock,page-faults", "-F", "99", "--call-graph", "dwarf,32768", "--", *load)
        chains = self.check_unwound(capture)
        self.assertLess(os.path.getsize(self.folder / chains) * 4, os.path.getsize(capture))
        again = self.tacho("convert", "-i", chains, "-o", "again.data", "--unwind", status=None)
        self.assertEqual(again.returncode, 1)
        self.assertIn(b"no event of the capture has copies of stacks", again.stderr)

    @programs.needs_root
    def test_stacks_that_are_cut_off_keep_their_frames(self):
        """The end mark of a stack is not a frame: in a call chain it would be an unknown context, and perf drops such chains."""
        self.tacho("record", "-o", "ours.data", "-F", "499", "-e", "cpu-clock:u", "--call-graph", "dwarf,1024", "--",
                   BIN / "deep_load", "0.5", BIN / "deep_library.so")
        fields = ["--no-inline", "-F", "comm,tid,time,event,ip,sym,dso"]
        self.assertIn(b"ffffffffffffffff [unknown]", self.tacho("script", "-i", "ours.data", *fields).stdout)
        self.tacho("convert", "-i", "ours.data", "-o", "chains.data", "--unwind", "--plain")
        ours = self.tacho("script", "-i", "ours.data", "--truncated-stacks", "none", *fields).stdout
        self.assertEqual(self.tacho("script", "-i", "chains.data", *fields).stdout, ours)
        self.assert_same_text(self.script("chains.data", *fields), ours)

    @programs.needs_root
    def test_unwound_stacks_of_tachos_captures_and_of_pipes(self):
        load = [BIN / "deep_load", "1", BIN / "deep_library.so"]
        self.tacho("record", "-o", "ours.data", "-F", "99", "-e", "{cpu-clock,page-faults}:S", "--call-graph", "dwarf", "--", *load)
        self.check_unwound("ours.data")
        self.tacho("convert", "-i", "ours.data", "-o", "piped.data", "--to", "pipe")
        self.tacho("convert", "-i", "piped.data", "-o", "back.data", "--unwind")
        fields = ["--no-inline", "-F", "comm,tid,time,event,ip,sym,dso"]
        self.assertEqual(self.tacho("script", "-i", "back.data", *fields).stdout,
                         self.tacho("script", "-i", "ours.data", *fields).stdout)

    @programs.needs_root
    def test_perf_reports_from_a_real_pipe(self):
        capture = self.record("-e", "cpu-clock", "-g", "--", *BUSY)
        convert = subprocess.Popen([BIN / "tacho", "convert", "-i", capture, "-o", "-"], stdout=subprocess.PIPE)
        self.addCleanup(convert.stdout.close)
        report = subprocess.run(["perf", "report", "--stdio", "-i", "-"], stdin=convert.stdout, capture_output=True,
                                env=dict(os.environ, HOME=str(self.folder)), timeout=120)
        self.assertEqual(convert.wait(60), 0)
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn(b"dd", report.stdout)

    def test_captures_of_this_repository(self):
        found = sorted(ROOT.glob("tests/data/*.data"))
        self.assertTrue(found)
        for capture in found:
            with self.subTest(capture=capture.name):
                self.check(capture)

    def test_our_own_sections_go_through_a_pipe(self):
        capture = ROOT / "tests/data/bigreads.data"
        self.tacho("convert", "-i", capture, "-o", "pipe", "--to", "pipe")
        self.tacho("convert", "-i", "pipe", "-o", "file")
        layout = [b"# captured on", b"# data ", b"# feat ", b"# compressed "]  # of the file, not of the recording

        def own(path):
            lines = self.tacho("header", "-i", path).stdout.splitlines()
            return [line for line in lines if not any(line.startswith(start) for start in layout)]

        self.assertEqual(own("file"), own(capture))
        self.assertTrue(any(line.startswith(b"# attached : kallsyms") for line in own("file")))
        # perf's report refuses a pipe with a section that it does not know.
        self.perf("report", "-f", "--stdio", "-i", "pipe")

    def test_a_capture_cut_short(self):
        capture = ROOT / "tests/data/bigreads.data"
        whole = Path(capture).read_bytes()
        cut = self.folder / "cut.data"
        cut.write_bytes(whole[: len(whole) - 40])
        self.tacho("convert", "-i", cut, "-o", "whole.data", status=3)
        self.perf("script", "-i", "whole.data")
        self.tacho("script", "-i", "whole.data")


if __name__ == "__main__":
    programs.main()
