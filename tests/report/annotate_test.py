#!/usr/bin/env python3
"""tacho annotate on generated captures: a kernel with -k VMLINUX, and programs with damaged symbols, code and line tables."""
import json
import os
import random
import re
import shutil
import struct
import time
import unittest

import made_capture as made
import programs
import screen

BASE = 0x555555554000
KERNEL = """
.globl _text
_text:
  nop
.globl kernel_loop
.type kernel_loop, @function
kernel_loop:
  mov $5, %ecx
1:
  dec %ecx
  jnz 1b
  call helper
  ret
.size kernel_loop, . - kernel_loop
.globl helper
.type helper, @function
helper:
  ret
.size helper, . - helper
"""

# The same code.
CODE = b"\x90\xb9\x05\x00\x00\x00\xff\xc9\x75\xfc\xe8\x11\x00\x00\x00\xc3".ljust(64, b"\x90")

BRANCHES = """
.globl hot
.type hot, @function
hot:
  mov $5, %ecx
  nop
  nop
1:
  add $1, %eax
  dec %ecx
  jnz 1b
  call helper
  xor %edx, %edx
  test %eax, %eax
  jz 2f
  nop
2:
  ret
.size hot, . - hot
.globl helper
.type helper, @function
helper:
  nop
  ret
.size helper, . - helper
"""


def program(size, st_size, code=b"\x90"):
    """An ELF file with `size` bytes of code at 0x1000 and a function symbol of `st_size` bytes."""
    text = (code * (size // len(code) + 1))[:size]
    strings = b"\0hot\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x1000, st_size)
    names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    at_text = 0x1000
    at_symbols = at_text + len(text)
    at_strings = at_symbols + len(symbols)
    at_names = at_strings + len(strings)
    at_sections = (at_names + len(names) + 7) // 8 * 8

    def section(name, kind, flags, address, offset, length, link=0, info=0, entry=0):
        return struct.pack("<IIQQQQIIQQ", name, kind, flags, address, offset, length, link, info, 1, entry)

    sections = (section(0, 0, 0, 0, 0, 0) + section(1, 1, 6, 0x1000, at_text, len(text))
                + section(7, 2, 0, 0, at_symbols, len(symbols), 3, 1, 24) + section(15, 3, 0, 0, at_strings, len(strings))
                + section(23, 3, 0, 0, at_names, len(names)))
    head = (b"\x7fELF\x02\x01\x01" + bytes(9)
            + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0x1000, 64, at_sections, 0, 64, 56, 1, 64, 5, 4)
            + struct.pack("<IIQQQQQQ", 1, 5, 0x1000, 0x1000, 0x1000, len(text), len(text), 0x1000))
    file = head.ljust(0x1000, b"\0") + text + symbols + strings + names
    return file.ljust(at_sections, b"\0") + sections


class Annotate(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        (self.root / "opt").mkdir(parents=True)

    def write(self, *samples, kernel=()):
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started()
        capture.mapped(made.PID, BASE + 0x1000, 0x100000, 0x1000, "/opt/program")
        for ip in samples:
            capture.sample(ip=BASE + ip)
        for ip in kernel:
            capture.sample(ip=made.KERNEL_TEXT + ip, misc=made.KERNEL)
        (self.folder / "perf.data").write_bytes(capture.file())

    def annotate(self, *options, status=0):
        return self.tacho("annotate", "--symfs", self.root, "--buildid-dir", self.folder / "none", *options, status=status)

    @unittest.skipUnless(shutil.which("as") and shutil.which("ld"), "needs as and ld (binutils)")
    def test_kernel_code_comes_from_the_file_that_k_names(self):
        (self.folder / "kernel.s").write_text(KERNEL)
        self.run_program("as", "-o", "kernel.o", "kernel.s")
        self.run_program("ld", "-Ttext=0xffffffff80100000", "-e", "_text", "-o", "vmlinux", "kernel.o")
        self.write(kernel=(6, 8))  # it was loaded 0xf00000 above
        text = self.annotate("-k", "vmlinux", "kernel_loop").stdout.decode()
        self.assertIn("# kernel_loop ([kernel.kallsyms]): 100.00 % of cpu-clock, 2 samples", text)
        self.assertRegex(text, r" 50\.00  ffffffff80100006 ┌►   decl ")
        self.assertRegex(text, r"callq ffffffff[0-9a-f]+ <helper>")
        self.assertIn(b"the kernel's code is not here: --kcore /proc/kcore or -k VMLINUX", self.annotate("-k", "vmlinux", "helper", status=1).stderr + self.annotate(
            "--kallsyms", self.kallsyms(), status=3).stderr)
        self.tacho("pack", "perf.data", "--level", "code", "-k", "vmlinux")
        self.assertEqual(self.annotate("kernel_loop").stdout.decode(), text)

    @unittest.skipUnless(shutil.which("as") and shutil.which("ld"), "needs as and ld (binutils)")
    def test_kernel_code_from_memory_for_packed_names(self):
        """The capture has the names of sampled functions alone, so none of the kernel's first byte."""
        (self.folder / "kernel.s").write_text(KERNEL)
        self.run_program("as", "-o", "kernel.o", "kernel.s")
        self.run_program("ld", "-Ttext=0xffffffff80100000", "-e", "_text", "-o", "vmlinux", "kernel.o")
        self.run_program("objcopy", "-O", "binary", "-j", ".text", "vmlinux", "code")
        self.write(kernel=(6, 8))
        self.tacho("pack", "perf.data", "--level", "names", "-k", "vmlinux")
        code = (self.folder / "code").read_bytes()
        text = self.annotate("--kcore", self.write_core(code=code), "kernel_loop").stdout.decode()
        self.assertRegex(text, r" 50\.00  ffffffff80100006 ┌►   decl ")
        elsewhere = self.write_core(code=code, start=made.KERNEL_TEXT + 0x200000)
        self.assertIn(b"is of another boot", self.annotate("--kcore", elsewhere, "kernel_loop", status=3).stderr)
        # The packed code is enough.
        self.tacho("pack", "perf.data", "--level", "code", "--kcore", self.write_core(code=code))
        self.assertEqual(self.annotate("kernel_loop").stdout.decode(), text)

    def write_branches(self):
        """A loop of three instructions, a call and a conditional jump, with branch stacks of the processor. The program is at the
        same addresses in memory and in its file."""
        (self.folder / "branches.s").write_text(BRANCHES)
        self.run_program("as", "-o", "branches.o", "branches.s")
        self.run_program("ld", "-Ttext=0x401000", "--build-id=none", "-e", "hot", "-o", self.root / "opt/program", "branches.o")
        capture = made.Capture(made.Event("cycles:u", made.HARDWARE, 0, made.USUAL | made.BRANCH_STACK, branch=1 << 3),
                               features={made.BRANCH_STACKS: b""}).started()
        capture.mapped(made.PID, 0x401000, 0x1000, 0x1000, "/opt/program")
        hot, helper = 0x401000, 0x40101b
        flags = made.branch_flags
        back = lambda cycles, **more: (hot + 0xc, hot + 7, flags(cycles=cycles, **more))
        call, from_helper = (hot + 0xe, helper, flags(predicted=1, cycles=6)), lambda cycles: (helper + 1, hot + 0x13, flags(predicted=1, cycles=cycles))
        for _ in range(10):  # the newest branch first
            capture.sample(ip=hot + 0x13, branches=[from_helper(4), call, back(3, predicted=1), back(5, mispredicted=1),
                                                    (helper + 1, hot, flags(predicted=1, cycles=9))])
        for _ in range(5):
            capture.sample(ip=hot + 0x17, branches=[(hot + 0x17, hot + 0x1a, flags(predicted=1, cycles=10)), from_helper(8)])
        # The newest branch has no cycles: as perf, none of this sample are counted. Two blocks end there; this is the shorter.
        capture.sample(ip=hot + 0x17, branches=[(hot + 0x17, hot + 0x1a, 0), (helper + 1, hot + 0x15, flags(predicted=1, cycles=500))])
        # Shorter than another block that ends there: its cycles count in the mean alone.
        capture.sample(ip=hot + 0x17, branches=[(hot + 0x17, hot + 0x1a, flags(predicted=1, cycles=1)), (helper + 1, hot + 0x15, flags(cycles=2))])
        (self.folder / "perf.data").write_bytes(capture.file())

    # By offset: mean, least and most cycles of the blocks that end there, and instructions per cycle of the longest.
    CYCLES = {0xc: (4, 3, 5), 0xe: (6, 6, 6), 0x17: (51 / 6, 1, 10)}
    # Three instructions from 0x13 to 0x17 in 10 cycles, four from 7 to 0xe in 6; six from 0 to 0xc in 5, of which three are in no
    # block that ends later.
    PER_CYCLE = {**dict.fromkeys((0x13, 0x15, 0x17), 3 / 10), **dict.fromkeys((7, 0xa, 0xc, 0xe), 4 / 6), **dict.fromkeys((0, 5, 6), 6 / 5)}

    @unittest.skipUnless(shutil.which("as") and shutil.which("ld"), "needs as and ld (binutils)")
    def test_branch_stacks_give_cycles_and_instructions_per_cycle(self):
        self.write_branches()
        made_of = json.loads(self.annotate("--json", "hot", status=None).stdout)
        lines = {line["offset"]: line for line in made_of["lines"]}
        branches = {offset: line["branches"] for offset, line in lines.items() if "branches" in line}
        self.assertEqual({offset: (one["taken"], one["mispredicted"], one["entered"]) for offset, one in branches.items()},
                         {0: (0, 0, 10), 7: (0, 0, 20), 0xc: (20, 10, 0), 0xe: (10, 0, 0), 0x13: (0, 0, 15), 0x15: (0, 0, 2), 0x17: (7, 0, 0), 0x1a: (0, 0, 7)})
        self.assertEqual({offset: one["cycles"] / one["timed"] for offset, one in branches.items() if "cycles" in one},
                         {offset: mean for offset, (mean, _, _) in self.CYCLES.items()})
        per_cycle = {offset: line["instructions_per_cycle"] for offset, line in lines.items() if "instructions_per_cycle" in line}
        self.assertEqual(set(per_cycle), set(self.PER_CYCLE))
        for offset, value in self.PER_CYCLE.items():
            self.assertAlmostEqual(per_cycle[offset], value, 6, hex(offset))
        instructions, cycles = 5 * 3 + 10 * 4 + 10 * 6, 5 * 10 + 10 * 6 + 10 * 5
        self.assertAlmostEqual(made_of["instructions_per_cycle"], instructions / cycles, 6)
        self.assertAlmostEqual(made_of["cycles_coverage"], 100 * 10 / 12, 6)
        text = self.annotate("hot", status=None).stdout.decode()
        self.assertIn(f"# Average IPC: {instructions / cycles:.2f}, coverage: 83.3 %\n", text)
        self.assertRegex(text, r"(?m)^ +20 +10 +4\.0 +0\.67 +40100c ")
        perfs = self.annotate("--stdio", "hot", status=None).stdout.decode()
        self.assertRegex(perfs, r"(?m)40100c:.*\t# -66\.67% \(p:50\.00%\)$")

    @programs.needs_perf
    @unittest.skipUnless(shutil.which("as") and shutil.which("ld"), "needs as and ld (binutils)")
    def test_comments_of_branches_are_perfs(self):
        """`# +33.33%` behind a target, `# -50.00% (p:90.00%)` behind a branch."""
        self.write_branches()
        functions = [[0x401000 + at for at in (0, 5, 6, 7, 0xa, 0xc, 0xe, 0x13, 0x15, 0x17, 0x19, 0x1a)], [0x40101b, 0x40101c]]
        for seed in range(5):
            chance = random.Random(seed)
            capture = made.Capture(made.Event("cycles:u", made.HARDWARE, 0, made.USUAL | made.BRANCH_STACK, branch=1 << 3),
                                   features={made.BRANCH_STACKS: b""}).started()
            capture.mapped(made.PID, 0x401000, 0x1000, 0x1000, "/opt/program")
            for _ in range(40):
                stack, function = [], chance.choice(functions)
                for _ in range(chance.randrange(12)):
                    ended, function = chance.choice(function), chance.choice(functions)
                    stack.insert(0, (ended, chance.choice(function), made.branch_flags(predicted=chance.randrange(2), cycles=chance.randrange(9))))
                capture.sample(ip=0x401013, branches=stack)
            (self.folder / "perf.data").write_bytes(capture.file())
            words = ["annotate", "--symfs", self.root, "--stdio", "--stdio-color", "never", "-s", "hot"]
            comments = lambda text: re.findall(r"^.*? ([0-9a-f]+):[^#\n]*(#(?: [-+][\d.]+%| \(p:[\d.]+%\))+)$", text, re.M)
            expected = comments(self.perf(*words).stdout.decode())
            self.assertGreater(len(expected), 9)
            self.assertEqual(comments(self.tacho(*words, "--buildid-dir", "none", status=None).stdout.decode()), expected, seed)

    @screen.needs_tmux
    @unittest.skipUnless(shutil.which("as") and shutil.which("ld"), "needs as and ld (binutils)")
    def test_the_view_shows_least_and_most_cycles(self):
        self.write_branches()
        for width, height in ((80, 24), (200, 60)):
            with self.subTest(width=width):
                one = screen.Screen(self.folder, width, height)
                self.addCleanup(one.close)
                one.run("annotate", "--tui", "--symfs", "root", "--buildid-dir", "none", "hot")
                shown = one.wait_for(r"^ *Percent +Taken +Mispred +Entered +Cycles +IPC │")
                self.assertRegex(shown, r"(?m)^ +20 +10 +4\.0 +0\.67 │ +c ")
                self.assertRegex(shown, r"(?m)^ +[\d.]+ +7 +8\.5 +0\.30 │ +17 ")
                if width > 80:
                    self.assertIn("Average IPC: ", shown.split("\n")[0])
                shown = one.keys("c").wait_for(r"Cycles \(min-max\) +IPC │")
                self.assertRegex(shown, r"(?m)^ +20 +10 +4 \(3-5\) +0\.67 │ +c ")
                self.assertRegex(shown, r"(?m)^ +[\d.]+ +7 +8 \(1-10\) +0\.30 │ +17 ")
                one.keys("c").wait_for(r"Entered +Cycles +IPC │")
                one.close()

    def write_core(self, name="kcore", start=None, note=True, code=b"", address=made.KERNEL_TEXT):
        """A kcore file: a segment of kernel code, and the note VMCOREINFO."""
        text = b"OSRELEASE=6.1.0\nSYMBOL(_stext)=%x\n" % (made.KERNEL_TEXT if start is None else start)
        notes = struct.pack("<III", 11, len(text), 0) + b"VMCOREINFO\0\0" + text.ljust((len(text) + 3) // 4 * 4, b"\0") if note else b""
        at = 64 + 2 * 56
        head = (b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
                + struct.pack("<IIQQQQQQ", 4, 0, at, 0, 0, len(notes), len(notes), 4)
                + struct.pack("<IIQQQQQQ", 1, 5, at + len(notes), address, 0, len(code), len(code), 1))
        (self.folder / name).write_bytes(head + notes + code)
        return self.folder / name

    def test_kernel_code_comes_from_its_memory(self):
        """As `perf annotate` takes it from /proc/kcore."""
        code, base = CODE, made.KERNEL_TEXT
        self.write(kernel=(6, 8))
        words = ["--kallsyms", self.kallsyms(), "kernel_loop"]
        text = self.annotate("--kcore", self.write_core(code=code), *words).stdout.decode()
        self.assertIn("# kernel_loop ([kernel.kallsyms]): 100.00 % of cpu-clock, 2 samples", text)
        self.assertRegex(text, rf" 50\.00  {base + 6:x} ┌►   decl ")
        self.assertRegex(text, rf"callq {base + 0x20:x} <helper>")
        for core, why in ((self.write_core(code=code, start=base + 0x200004), "is of another boot, in which the kernel lay elsewhere"),
                          (self.folder / "perf.data", "is no ELF core file of a 64-bit kernel")):
            done = self.annotate("--kcore", core, *words, status=3)
            self.assertIn(f"the file of --kcore {why}", done.stderr.decode())
            self.assertEqual(done.stdout, b"")
        # The copy made by perf record --kcore has no VMCOREINFO.
        done = self.annotate("--kcore", self.write_core(code=code, note=False), *words)
        self.assertIn(b"the file of --kcore does not say of which kernel it is", done.stderr)
        self.assertEqual(done.stdout.decode(), text)
        self.assertIn(b"--kcore: nowhere: No such file", self.annotate("--kcore", "nowhere", *words, status=2).stderr)
        # It lies beside the capture in the folder that perf makes, with the names of then.
        (self.folder / "x.kcore/kcore_dir").mkdir(parents=True)
        shutil.copy(self.folder / "perf.data", self.folder / "x.kcore/data")
        for name in ("kcore", "kallsyms"):
            (self.folder / name).rename(self.folder / "x.kcore/kcore_dir" / name)
        done = self.annotate("-i", "x.kcore", "kernel_loop")
        self.assertEqual((done.stdout.decode(), done.stderr), (text, b""))
        self.assertIn(b"kernel_loop", self.tacho("report", "-i", "x.kcore", "--stdio").stdout)
        # A copy that is none costs the code alone.
        (self.folder / "x.kcore/kcore_dir/kcore").unlink()
        os.mkfifo(self.folder / "x.kcore/kcore_dir/kcore")
        self.assertIn(b"kernel_loop", self.tacho("report", "-i", "x.kcore", "--stdio").stdout)
        self.assertIn(b"the kernel's code is not here", self.annotate("-i", "x.kcore", "kernel_loop", status=3).stderr)

    @screen.needs_tmux
    def test_the_view_shows_kernel_code_from_its_memory(self):
        self.write(kernel=(6, 8))
        core, kallsyms = self.write_core(code=CODE), self.kallsyms()
        for command in (("report", "--tui"), ("tui",), ("annotate", "--tui")):
            for width, height in ((80, 24), (200, 60)):
                with self.subTest(command=command, width=width):
                    one = screen.Screen(self.folder, width, height)
                    self.addCleanup(one.close)
                    words = [*command, "--symfs", "root", "--buildid-dir", "none", "--kallsyms", kallsyms]
                    if command[0] != "annotate":
                        one.run(*words).wait_for("h: help")
                        one.keys("a").wait_for("kernel_loop: the kernel's code is not here: --kcore /proc/kcore or -k VMLINUX")
                        one.keys("q").wait_for(r"^\$ *$")
                    one.type("clear").run(*words, "--kcore", core)
                    if command[0] != "annotate":
                        one.wait_for("h: help")
                        one.keys("a")
                    shown = one.wait_for(r"^ +50\.00 │.*decl")
                    self.assertRegex(shown, r"^ *kernel_loop")
                    self.assertIn("callq", shown)
                    one.close()

    def test_a_hostile_core_file_costs_nothing(self):
        self.write(kernel=(6, 8))
        whole = self.write_core(code=b"\x90" * 64).read_bytes()
        words = ["--kallsyms", self.kallsyms(), "kernel_loop"]
        for at in (16, 32, 40, 54, 56, 64, 72, 80, 96, 120, 128, 136, 152, 176, 180):
            for value in (b"\xff" * 8, b"\0" * 8, b"\x01" + b"\xff" * 7):
                (self.folder / "broken").write_bytes(whole[:at] + value + whole[at + 8:])
                self.assertIn(self.annotate("--kcore", "broken", *words, status=None).returncode, (0, 3), (at, value))
        for length in range(0, len(whole), 17):
            (self.folder / "broken").write_bytes(whole[:length])
            self.assertIn(self.annotate("--kcore", "broken", *words, status=None).returncode, (0, 3), length)

    def kallsyms(self):
        base = made.KERNEL_TEXT
        (self.folder / "kallsyms").write_text(f"{base:x} T _text\n{base + 1:x} T kernel_loop\n{base + 0x10:x} T behind\n"
                                              f"{base + 0x20:x} T helper\n{base + 0x2000000:x} T _etext\n")
        return self.folder / "kallsyms"

    def test_symbols_of_any_size_cost_little(self):
        for st_size in (1, 0x800, 1 << 20, 1 << 40, (1 << 64) - 0x1000, (1 << 64) - 1):
            for code in (b"\x90", b"\xff", bytes(range(256)), b"\x62", b"\x66", b"\xeb\xfe", b"\x74\x00", b"\xe9\x00\x00\x00\x80"):
                with self.subTest(size=st_size, code=code[:8]):
                    (self.root / "opt/program").write_bytes(program(0x1000, st_size, code))
                    self.write(0x1000, 0x1001, 0x17ff)
                    start = time.monotonic()
                    done = self.annotate("--json", status=None)
                    self.assertIn(done.returncode, (0, 3), done.stderr)
                    self.assertLess(time.monotonic() - start, 20)
                    for function in map(json.loads, done.stdout.splitlines()):
                        counted = sum(line["counts"][0]["samples"] for line in function["lines"] if "counts" in line)
                        self.assertLessEqual(counted, function["events"][0]["samples"])
                    self.annotate(status=done.returncode)
                    self.annotate("--stdio", "-l", status=done.returncode)

    def test_a_large_function_is_shown_to_a_limit(self):
        size = 1 << 19
        (self.root / "opt/program").write_bytes(program(size, size, b"\x74\x10"))  # each a jump
        self.write(0x1000)
        done = self.annotate("--json", status=3)
        function = json.loads(done.stdout)
        self.assertEqual(len(function["lines"]), 1 << 17)
        self.assertIn(b"hot: only 262144 of 524288 bytes", done.stderr)
        self.assertGreater(self.annotate(status=3).stdout.count(b"\n"), 1 << 17)

    def test_prefix_bytes_cost_no_more_than_other_code(self):
        """capstone 4 reads all prefixes that follow, at each of them again: 256 KB would take minutes."""
        size = 1 << 18
        (self.root / "opt/program").write_bytes(program(size, size, b"\x66"))
        self.write(0x1000)
        start = time.monotonic()
        function = json.loads(self.annotate("--json").stdout)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(len(function["lines"]), size)

    def test_functions_that_overlap_are_shown_to_a_limit(self):
        size, functions = 1 << 17, 16
        symbols = "".join(f".globl f{i}\n.type f{i}, @function\n.set f{i}, begin + {i}\n.size f{i}, {size - i}\n" for i in range(functions))
        (self.folder / "many.s").write_text(f".globl _start\n_start: ret\nbegin:\n.fill {size}, 1, 0x90\n{symbols}")
        self.run_program("as", "-o", "many.o", "many.s")
        self.run_program("ld", "-Ttext=0x1000", "--build-id=none", "-o", self.root / "opt/program", "many.o")
        self.write(*(0x1001 + i for i in range(functions)))
        done = self.annotate("--json", status=3)
        lines = sum(len(json.loads(line)["lines"]) for line in done.stdout.splitlines())
        self.assertTrue(1 << 20 <= lines <= (1 << 20) + size, lines)
        self.assertIn(b"1048576 instructions of its file are shown already; name one function", done.stderr)
        self.assertIn(b"nop", self.annotate("f3").stdout)

    def test_a_line_of_a_source_file_may_be_anything(self):
        """Terminal escape sequences in source lines are made safe."""
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("needs a C compiler")
        (self.folder / "evil.c").write_bytes(b"int hot(int x) { /* \x1b[2J\x1b]0;title\x07 \xe2\x80\xae */\n  return x * 3; /* \xff */ }\n")
        self.run_program("cc", "-O1", "-g", "-shared", "-fPIC", "-Wl,--build-id=none", "-o", self.root / "opt/program", "evil.c")
        (self.root / str(self.folder)[1:]).mkdir(parents=True)
        shutil.copy(self.folder / "evil.c", self.root / str(self.folder)[1:])
        symbol = next(line for line in self.run_program("nm", self.root / "opt/program").stdout.decode().splitlines() if line.endswith(" hot"))
        self.write(int(symbol.split()[0], 16))
        for form in ([], ["--stdio"], ["--json"]):
            with self.subTest(form=form):
                text = self.annotate(*form).stdout
                self.assertIn(b"return x * 3", text)
                for bad in (b"\x1b", b"\x07", b"\xff", b"\xe2\x80\xae"):
                    self.assertNotIn(bad, text)


if __name__ == "__main__":
    programs.main()
