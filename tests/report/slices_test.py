#!/usr/bin/env python3
"""A part of a packed capture (tacho convert --time and --events, tacho redact --pid) keeps the symbols that its
samples need, and no others."""
import re
import shutil
import struct
import subprocess
import unittest

import bytes_of
import made_capture as made
import programs

FIRST, SECOND, MADE = 0x100000000, 0x200000000, 0x300000000
OTHER_PID = 99
SAMPLE_TIME = 21  # SAMPLE_TIME: first and last time
CODE = """__attribute__((noinline)) int %(name)s_early(int x) { return x * 3 + 1; }
__attribute__((noinline)) int %(name)s_late(int x) { return x * 5 + 1; }
int main(int count, char** words) { (void)words; return %(name)s_early(count) + %(name)s_late(count); }
"""
NAMES = ["first_early", "first_late", "second_late", "made_early", "made_late"]
VIEWS = [["script", "--inline=all"], ["script", "-F", "ip,sym,dso,insn"], ["script", "-F", "+srcline"]]


@unittest.skipUnless(shutil.which("cc") and shutil.which("nm"), "needs a C compiler")
class Slices(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "none").mkdir()
        self.where = {}
        for program, base in (("first", FIRST), ("second", SECOND)):
            (self.folder / f"{program}.c").write_text(CODE % {"name": program})
            self.run_program("cc", "-O1", "-g", "-o", program, f"{program}.c")
            for line in self.run_program("nm", program).stdout.decode().splitlines():
                if len(line.split()) == 3:
                    self.where[line.split()[2]] = base + int(line.split()[0], 16)
        self.where.update(made_early=MADE + 0x10, made_late=MADE + 0x110)
        (self.folder / f"perf-{made.PID}.map").write_text(f"{MADE:x} 40 made_early\n{MADE + 0x100:x} 40 made_late\n")
        (self.folder / f"perf-{OTHER_PID}.map").write_text(f"{MADE:x} 400 made_by_another\n")

    def capture(self, features=None):
        """Two halves in time; one event has more functions than the other, and another process has its own function."""
        events = [made.Event(name, made.SOFTWARE, config, made.USUAL) for name, config in (("cpu-clock", 0), ("page-faults", 2))]
        capture = made.Capture(*events, features=features).started()
        for program, base in (("first", FIRST), ("second", SECOND)):
            capture.mapped(made.PID, base, 0x8000, 0, str(self.folder / program))
        for pid in (made.PID, OTHER_PID):
            capture.mapped(pid, MADE, 0x1000, 0, "//anon")
        for name in ("first_early", "made_early"):
            capture.sample(event=0, ip=self.where[name])
        self.half = capture.time
        capture.sample(event=0, ip=self.where["first_late"])
        capture.sample(event=1, ip=self.where["second_late"])
        capture.sample(event=1, ip=self.where["made_late"])
        capture.time += made.STEP
        body = struct.pack("<QQIIQIIQ", 1, MADE + 0x18, OTHER_PID, OTHER_PID, capture.time, 0, 0, 1000)
        capture.data += made.record(9, made.USER, body)
        (self.folder / "in.data").write_bytes(capture.file())

    def pack(self, level):
        for source in self.folder.glob("*.c"):  # --level code packs whole source files, with all names in them
            source.unlink()
        self.tacho("pack", "in.data", "-o", "packed.data", "--level", level, "--perf-map-dir", self.folder, status=None)

    def show(self, view, capture, *more):
        done = self.tacho(view[0], "-i", capture, *view[1:], "--symfs", self.folder / "none", *more, status=None)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertNotEqual(done.stdout, b"")
        return done.stdout.replace(b"packed.data", capture.encode())

    def copies(self, capture):
        """The names of the programs."""
        return sorted(re.findall(rf"# attached : elf/\S*{self.folder.name}/(first|second)\b", self.tacho("header", "-i", capture).stdout.decode()))

    def check(self, part, names, *selection):
        """The copy has exactly these names, and shows what the original shows for these samples."""
        content = bytes_of.capture(self.folder / part)
        self.assertEqual([name for name in [*NAMES, "made_by_another"] if name.encode() in content], names)
        for view in VIEWS if selection else []:
            with self.subTest(part=part, view=view[:1]):
                whole, part_text = (self.show(view, capture, *more) for capture, more in (("packed.data", selection), (part, [])))
                self.assert_same_text(part_text, whole)

    def test_of_a_time(self):
        self.capture()
        self.pack("code")
        self.check("packed.data", [*NAMES, "made_by_another"])
        early = ["--time", f",{self.half / 1e9:.9f}"]
        self.tacho("convert", "-i", "packed.data", "-o", "early.data", *early)
        self.check("early.data", ["first_early", "made_early"], *early)
        self.tacho("convert", "-i", "packed.data", "-o", "early.pipe", "--to", "pipe", *early)
        self.check("early.pipe", ["first_early", "made_early"], *early)
        self.assertIn(b", code, ", self.tacho("header", "-i", "early.data").stdout)
        self.tacho("redact", "packed.data", "early.public", "--keep", "all", *early, status=None)
        self.check("early.public", ["first_early", "made_early"], *early)

    def test_of_nothing(self):
        self.capture()
        for words, command in ((["-i", "in.data", "-o", "none.data", "--time", "1,2"], "convert"),
                               (["in.data", "none.data", "--pid", "12345"], "redact")):
            said = self.tacho(command, *words, status=None).stderr.decode()
            self.assertIn("tacho: in.data: note: the selected part has no samples: none.data holds none\n", said)
            self.assertEqual(self.tacho("script", "-i", "none.data").stdout, b"")
        said = self.tacho("convert", "-i", "in.data", "-o", "faults.data", "--events", "page-faults").stderr
        self.assertEqual(said, b"")

    def test_parts_of_one_moment(self):
        """A capture of one point in time (a summary read once): percentages of its duration are not possible."""
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started()
        for _ in range(3):
            capture.time -= made.STEP
            capture.sample()
        capture.features[SAMPLE_TIME] = struct.pack("<QQ", capture.time, capture.time)
        (self.folder / "in.data").write_bytes(capture.file())
        for part in ("0%-50%", "50%-100%", "10%/2"):
            self.tacho("convert", "-i", "in.data", "-o", "part.data", "--time", part)
            self.assertEqual(self.tacho("script", "-i", "part.data", "-F", "time").stdout.count(b":"), 3, part)
            self.assertEqual(self.tacho("script", "-i", "in.data", "-F", "time", "--time", part).stdout.count(b":"), 3, part)

    def test_of_an_event(self):
        self.capture()
        self.pack("code")
        self.tacho("convert", "-i", "packed.data", "-o", "faults.data", "--events", "page-faults")
        self.check("faults.data", ["second_late", "made_late"])
        shown = self.show(["script", "-F", "ip,sym"], "faults.data")
        self.assertEqual(shown.split()[1::2], [b"second_late", b"made_late"])

    def test_of_a_capture_that_does_not_describe_its_events(self):
        """Views then make event names from the attributes."""
        self.capture({made.EVENT_DESC: None})
        self.pack("code")
        early = ["--time", f",{self.half / 1e9:.9f}"]
        self.tacho("convert", "-i", "packed.data", "-o", "early.data", *early)
        self.check("early.data", ["first_early", "made_early"], *early)
        self.tacho("convert", "-i", "packed.data", "-o", "faults.data", "--events", "page-faults:HG")
        self.check("faults.data", ["second_late", "made_late"])

    def test_of_a_file_on_standard_input(self):
        self.capture()
        self.pack("code")
        for words in (["--time", f",{self.half / 1e9:.9f}"], ["--events", "page-faults"]):
            self.tacho("convert", "-i", "packed.data", "-o", "named.data", *words)
            with open(self.folder / "packed.data", "rb") as packed:
                done = subprocess.run([str(programs.BIN / "tacho"), "convert", "-i", "-", "-o", "part.data", *words], cwd=self.folder,
                                      stdin=packed, capture_output=True, timeout=programs.PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual((self.folder / "part.data").read_bytes(), (self.folder / "named.data").read_bytes())

    def test_of_a_program_without_names(self):
        """Only its code is packed."""
        self.run_program("cc", "-O1", "-nostdlib", "-static-pie", "-Wl,-e,main", "-Wl,--build-id", "-o", "second", "second.c")
        for line in self.run_program("nm", "second").stdout.decode().splitlines():
            if line.endswith("second_late"):
                self.where["second_late"] = SECOND + int(line.split()[0], 16)
        self.run_program("strip", "-s", "second")
        self.capture()
        named = ["first_late", "made_late"]
        late = ["--time", f"{(self.half + 1) / 1e9:.9f},"]
        self.pack("code")
        self.tacho("convert", "-i", "packed.data", "-o", "late.data", *late)
        self.check("late.data", [*named, "made_by_another"], *late)
        shown = self.show(["script", "-F", "ip,dso,insn"], "late.data").decode()
        self.assertRegex(shown, r"second\).* insn: ([0-9a-f]{2} ?)+")
        self.assertNotRegex(self.show(["script", "-F", "ip,sym,dso"], "late.data").decode(), "second_late")
        self.pack("elf")
        self.tacho("convert", "-i", "packed.data", "-o", "late.data", *late)
        self.assertEqual(self.copies("late.data"), ["first", "second"])
        self.tacho("convert", "-i", "packed.data", "-o", "early.data", "--time", f",{self.half / 1e9:.9f}")
        self.assertEqual(self.copies("early.data"), ["first"])

    def test_of_a_process(self):
        self.capture()
        self.pack("code")
        for pid, names in ((made.PID, NAMES), (OTHER_PID, ["made_by_another"])):
            self.tacho("redact", "packed.data", "one.data", "--keep", "all", "--pid", str(pid), status=None)
            self.check("one.data", names, "--pid", str(pid))

    def test_copies_of_files_that_its_samples_hit(self):
        self.capture()
        self.pack("elf")

        self.assertEqual(len(self.copies("packed.data")), 2)
        self.tacho("convert", "-i", "packed.data", "-o", "early.data", "--time", f",{self.half / 1e9:.9f}")
        self.assertEqual(len(self.copies("early.data")), 1)

    def test_without_a_selection_all_of_it_stays(self):
        self.capture()
        self.pack("code")
        for words in (["--plain"], ["-z"], ["--to", "pipe"]):
            self.tacho("convert", "-i", "packed.data", "-o", "again.data", *words)
            self.check("again.data", [*NAMES, "made_by_another"])


if __name__ == "__main__":
    programs.main()
