#!/usr/bin/env python3
"""tacho pack: a pack that no reader would take is refused, and the capture stays as it is."""
import shutil
import unittest

import made_capture as made
import programs

CODE = 0x100000000  # made at run time: one function, that a perf map names
PAGE = 4096


class Pack(programs.Scratch):
    def write(self, addresses, chain=1000):
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        capture.mapped(made.PID, CODE, 1 << 40, 0, "//anon")
        pieces = []  # joined in the end: appending to what is large already copies it
        for begin in range(0, addresses, chain):
            capture.data, before = b"", capture.data
            pieces.append(before)
            hit = [CODE + PAGE * number for number in range(begin, min(begin + chain, addresses))]
            capture.sample(ip=hit[0], chain=[made.CONTEXT_USER, *hit])
        capture.data = b"".join(pieces) + capture.data
        (self.folder / "perf.data").write_bytes(capture.file())
        (self.folder / f"perf-{made.PID}.map").write_text(f"{CODE:x} {1 << 40:x} generated\n")
        return self.folder / "perf.data"

    def pack(self, capture, status):
        done = self.tacho("pack", capture, "-o", "packed.data", "--perf-map-dir", self.folder, status=status)
        return done.stderr.decode()

    def test_a_pack_is_written(self):
        self.assertIn("3000 of 3000 addresses have names", self.pack(self.write(3000), 0))
        self.assertIn(b"generated", self.tacho("script", "-i", "packed.data", "--max-stack", "3").stdout)

    def test_a_pack_that_readers_would_refuse_is_not_written(self):
        capture = self.write(700_000)
        before = capture.read_bytes()
        said = self.pack(capture, 2)
        self.assertIn("is not packed and stays as it is: readers would refuse the pack, it would take more memory", said)
        self.assertEqual(len(said.splitlines()), 1)
        self.tacho("pack", capture, "--perf-map-dir", self.folder, status=2)
        self.assertEqual(capture.read_bytes(), before)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"perf.data", f"perf-{made.PID}.map"})

    @unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
    def test_with_code_instructions_are_shown_without_the_file(self):
        (self.folder / "program.c").write_text("__attribute__((noinline)) int leaf(int x) { return x * 3 + 1; }\n"
                                               "int main(int count, char** words) { (void)words; return leaf(count); }\n")
        self.run_program("cc", "-O1", "-o", "program", "program.c")
        program = self.folder / "program"
        symbols = dict(reversed(line.split()[::2]) for line in self.run_program("nm", program).stdout.decode().splitlines()
                       if len(line.split()) == 3)
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started()
        capture.mapped(made.PID, CODE, 0x8000, 0, str(program))
        for name in ("leaf", "main", "_start"):
            capture.sample(ip=CODE + int(symbols[name], 16))
        (self.folder / "perf.data").write_bytes(capture.file())
        show = ["script", "-F", "ip,sym,insn"]
        expected = self.tacho(*show, "-i", "perf.data").stdout
        self.assertGreater(expected.count(b"insn: "), 2)
        for level in ("inlines", "code"):
            self.tacho("pack", "perf.data", "-o", f"{level}.data", "--level", level)
        shutil.move(program, self.folder / "elsewhere")
        without = self.tacho(*show, "-i", "inlines.data", status=None).stdout
        self.assertIn(b"leaf", without)
        self.assertNotEqual(without, expected)
        self.assertEqual(self.tacho(*show, "-i", "code.data").stdout, expected)
        # A pack that is made again of it has what it had, by level; redaction leaves it.
        self.tacho("pack", "code.data", "-o", "again.data", "--level", "code")
        self.assertEqual(self.tacho(*show, "-i", "again.data").stdout, expected)
        self.assertIn(b", code, ", self.tacho("header", "-i", "again.data").stdout)
        self.tacho("redact", "code.data", "redacted.data", "--keep", "paths", status=None)
        self.assertEqual(self.tacho(*show, "-i", "redacted.data", status=None).stdout, expected)


if __name__ == "__main__":
    programs.main()
