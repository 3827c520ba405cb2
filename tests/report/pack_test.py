#!/usr/bin/env python3
"""tacho pack: a pack that readers would reject is refused, and the capture is unchanged."""
import shutil
import struct
import unittest

import made_capture as made
import programs

CODE = 0x100000000  # JIT code: one function, in a perf map
PAGE = 4096


class Pack(programs.Scratch):
    def write(self, addresses, chain=1000):
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        capture.mapped(made.PID, CODE, 1 << 40, 0, "//anon")
        pieces = []  # joined at the end: += would copy it each time
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

    def test_addresses_of_data_are_not_counted(self):
        heap, stack = CODE, CODE + (1 << 32)
        capture = made.Capture(made.Event("page-faults", made.SOFTWARE, 2, made.USUAL | made.ADDR | made.CALLCHAIN)).started()
        capture.mapped(made.PID, heap, PAGE * 100, 0, "//anon", protection=3).mapped(made.PID, stack, PAGE, 0, "[stack]", protection=3)
        for number in range(50):
            capture.sample(ip=made.LEAF_A, addr=heap + PAGE * number, chain=[made.CONTEXT_USER, made.LEAF_A, made.MAIN])
        capture.sample(ip=heap, addr=heap, chain=[made.CONTEXT_USER, heap + 8, made.MAIN])  # code in the same memory
        (self.folder / "perf.data").write_bytes(capture.file())
        said = self.tacho("pack", "perf.data", "-o", "packed.data", "--symfs", self.folder, status=None).stderr.decode()
        self.assertIn("0 of 3 addresses have names", said)
        said = self.tacho("pack", "--brief", "perf.data", "-o", "packed.data", "--symfs", self.folder, status=None).stderr.decode()
        self.assertIn("3 of 3 addresses have no name: 2 in /tmp/c/spin, 1 in 1 more file;", said)

    def test_a_pack_that_readers_would_refuse_is_not_written(self):
        capture = self.write(700_000)
        before = capture.read_bytes()
        said = self.pack(capture, 2)
        self.assertIn("is not packed and stays as it is: readers would refuse the pack, it would take too much memory", said)
        self.assertEqual(len(said.splitlines()), 1)
        self.tacho("pack", capture, "--perf-map-dir", self.folder, status=2)
        self.assertEqual(capture.read_bytes(), before)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"perf.data", f"perf-{made.PID}.map"})

    def build(self):
        """A program of two functions, and their addresses."""
        (self.folder / "program.c").write_text("__attribute__((noinline)) int leaf(int x) { return x * 3 + 1; }\n"
                                               "int main(int count, char** words) { (void)words; return leaf(count); }\n")
        self.run_program("cc", "-O1", "-o", "program", "program.c")
        program = self.folder / "program"
        symbols = dict(reversed(line.split()[::2]) for line in self.run_program("nm", program).stdout.decode().splitlines()
                       if len(line.split()) == 3)
        return program, {name: int(symbols[name], 16) for name in ("leaf", "main", "_start")}

    def test_the_symbols_that_simpleperf_records_are_a_source(self):
        def file(path, kind, code_address, symbols, behind):
            body = path.encode() + b"\0" + struct.pack("<IQI", kind, code_address, len(symbols))
            body += b"".join(struct.pack("<QI", at, size) + name.encode() + b"\0" for at, size, name in symbols)
            return struct.pack("<I", len(body + behind)) + body + behind
        elf, simpleperf_files = 2, 128
        section = file("/system/lib64/libgone.so", elf, 0x41000, [(0x41010, 0x20, "_ZN4gone3runEi")], struct.pack("<Q", 0x1000))
        section += file("[vdso]", elf, 0, [(0x7bc, 8, "__kernel_rt_sigreturn")], struct.pack("<Q", 0))
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL), features={simpleperf_files: section}).started()
        capture.mapped(made.PID, 0x70000000, 0x1000, 0x1000, "/system/lib64/libgone.so")
        capture.mapped(made.PID, 0x78000000, 0x2000, 0, "[vdso]")
        for place in (0x10, 0x18, 0x40, 0x80007bc):
            capture.sample(ip=0x70000000 + place)
        (self.folder / "perf.data").write_bytes(capture.file())
        names = [line.split()[1] for line in self.tacho("script", "-i", "perf.data", "-F", "ip,sym", status=None).stdout.splitlines()]
        self.assertEqual(names, [b"gone::run", b"gone::run", b"[unknown]", b"__kernel_rt_sigreturn"])
        self.tacho("pack", "perf.data", "-o", "packed.data", status=None)
        # Damaged parts are removed; the pack has the names.
        self.tacho("redact", "packed.data", "public.data", status=None)
        names = [line.split()[1] for line in self.tacho("script", "-i", "public.data", "-F", "ip,sym", status=None).stdout.splitlines()]
        self.assertEqual(names, [b"gone::run", b"gone::run", b"[unknown]", b"__kernel_rt_sigreturn"])

    @unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
    def test_where_the_file_has_more_code_than_was_packed_it_is_read(self):
        """Code over several functions, of which the first and the last are packed."""
        program, symbols = self.build()
        begin, end = symbols["_start"], symbols["leaf"]  # with others between them
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.BRANCH_STACK, branch=1 << 3)).started()
        capture.mapped(made.PID, CODE, 0x8000, 0, str(program))
        flags = made.branch_flags(predicted=1)
        capture.sample(ip=CODE + begin, branches=[(CODE + end, CODE + begin, flags), (CODE + end, CODE + begin, flags)])
        (self.folder / "perf.data").write_bytes(capture.file())
        self.tacho("pack", "perf.data", "-o", "code.data", "--level", "code")
        def instructions(capture):  # names are packed only for addresses with samples
            text = self.tacho("script", "-F", "ip,brstackinsn", "-i", capture, status=None).stdout
            return [line for line in text.splitlines() if b"insn: " in line]
        expected = instructions("perf.data")
        self.assertRegex(b"\n".join(expected), rb"%016x\tinsn: [0-9a-f ]+\t# PRED" % (CODE + end))
        self.assertEqual(instructions("code.data"), expected)
        # A file of the same name with other code: the packed names are used.
        other = bytearray(program.read_bytes())
        other[begin] ^= 0xff
        program.write_bytes(other)
        without = instructions("code.data")
        program.unlink()
        self.assertEqual(without, instructions("code.data"))
        self.assertLess(len(without), len(expected))

    @unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
    def test_packed_names_do_not_hide_those_of_variables(self):
        (self.folder / "data.c").write_text("volatile int wanted = 5;\n__attribute__((noinline)) int leaf(void) { return wanted; }\n"
                                            "int main(void) { return leaf(); }\n")
        self.run_program("cc", "-O1", "-fPIE", "-pie", "-o", "program", "data.c")
        [leaf] = [int(line.split()[0], 16) for line in self.run_program("nm", "program").stdout.decode().splitlines()
                  if line.endswith(" leaf")]
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started()
        capture.mapped(made.PID, CODE, 0x8000, 0, str(self.folder / "program")).sample(ip=CODE + leaf)
        (self.folder / "perf.data").write_bytes(capture.file())
        self.tacho("pack", "perf.data", "-o", "packed.data")
        for name in ("perf.data", "packed.data"):
            self.assertIn(b"<wanted>", self.tacho("annotate", "--stdio", "-i", name, "leaf", status=None).stdout, name)

    @unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
    def test_with_code_instructions_are_shown_without_the_file(self):
        program, symbols = self.build()
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started()
        capture.mapped(made.PID, CODE, 0x8000, 0, str(program))
        for name in ("leaf", "main", "_start"):
            capture.sample(ip=CODE + symbols[name])
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
        # Packing again keeps what the level includes; redaction keeps it too.
        self.tacho("pack", "code.data", "-o", "again.data", "--level", "code")
        self.assertEqual(self.tacho(*show, "-i", "again.data").stdout, expected)
        self.assertIn(b", code, ", self.tacho("header", "-i", "again.data").stdout)
        self.tacho("redact", "code.data", "redacted.data", "--keep", "paths", status=None)
        self.assertEqual(self.tacho(*show, "-i", "redacted.data", status=None).stdout, expected)


if __name__ == "__main__":
    programs.main()
