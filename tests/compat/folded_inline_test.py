#!/usr/bin/env python3
"""tacho folded --inline names frames as stackcollapse-perf.pl --inline does, which asks addr2line for each address of
perf's text. That program's rules about it, over again and small, with the real perf and addr2line."""
import collections
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import programs

FRAME = re.compile(r"^\s*(\w+)\s*(.+) \((.*)\)")
NOT_ASKED = re.compile(r"(perf-\d+.map|kernel\.|\[[^\]]+\])")


LIBC = re.compile(r"(?<=;)(?:__libc_start[^;]*|\[libc\.so\.6\])(?=;|$)")


def without_libc(stacks):
    """The start of libc becomes a frame without a name: what it is called depends on the debug information installed.
    Without any (libc6-dbg) addr2line names the exported function before the address, whatever its size; tacho none."""
    short = collections.Counter()
    for stack, count in stacks.items():
        short[LIBC.sub("[libc]", stack)] += count
    return short


@programs.needs_root
@programs.needs_perf
@unittest.skipUnless(shutil.which("addr2line") and shutil.which("c++"), "needs addr2line and a C++ compiler")
class FoldedInline(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.program, self.capture = self.folder / "inlined", self.folder / "capture.data"
        source = Path(__file__).with_name("inlined.cc")
        self.run_program("c++", "-std=c++20", "-O2", "-g", "-fno-omit-frame-pointer", "-pie", "-o", self.program, source)
        self.perf("record", "-e", "cpu-clock:u", "-F", "499", "-g", "-o", self.capture, "--", self.program, "4000000")
        self.names = {}

    def asked(self, address, module, context):
        key = address, module, context
        if key not in self.names:
            done = subprocess.run(["addr2line", "-a", address, "-e", module, "-i", "-f", "-s", "-C"],
                                  capture_output=True, text=True)
            lines = [re.sub(r" \(discriminator \S+\)", "", line) for line in done.stdout.splitlines()[1:]]
            names = [name + (":" + place if context else "") for name, place in zip(lines[::2], lines[1::2])]
            self.names[key] = ";".join(reversed(names))
        return self.names[key]

    def expected(self, context):
        stacks = collections.Counter()
        text = self.perf("script", "--no-inline", "-i", self.capture).stdout.decode()
        for sample in text.strip().split("\n\n"):
            head, *frames = sample.split("\n")
            if FRAME.match(frames[0])[3] != str(self.program):
                continue
            stack = [head.split()[0]]
            for frame in reversed(frames):
                address, function, module = FRAME.match(frame).groups()
                if module.endswith("/libc.so.6"):
                    stack.append("[libc]")
                    continue
                name = "" if NOT_ASKED.search(module) else self.asked(address, module, context)
                if name in ("", "??", "??:??:0"):
                    name = re.sub(r"\+0x[0-9a-f]+$", "", function)
                    name = f"[{module.split('/')[-1].strip('[]')}]" if name == "[unknown]" else name
                stack.append(name)
            stacks[";".join(stack)] += 1
        return stacks

    def check(self, *options, context):
        done = self.tacho("folded", "--weight", "samples", "--inline", *options, "--dsos", self.program, "-i",
                          self.capture)
        ours = collections.Counter()
        for line in done.stdout.decode().splitlines():
            stack, count = line.rsplit(" ", 1)
            ours[stack] += int(count)
        self.assertEqual(without_libc(ours), without_libc(self.expected(context)))
        return done.stdout

    def test_inlined_calls_have_whole_names(self):
        self.assertIn(b"work::spin(unsigned long, char const*);work::twice(unsigned long)", self.check(context=False))

    def test_context_adds_file_and_line(self):
        self.assertRegex(self.check("--context", context=True).decode(), r"mixed<unsigned long>\(.*\):inlined\.cc:\d+")

    def test_context_alone_is_refused(self):
        self.assertIn(b"--inline", self.tacho("folded", "--context", "-i", self.capture, status=1).stderr)


if __name__ == "__main__":
    programs.main()
