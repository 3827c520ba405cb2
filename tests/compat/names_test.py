#!/usr/bin/env python3
"""Where perf has a name, tacho has the same one; where perf has none, tacho may have one. Counted frame by frame: on the
captures of tests/golden with what perf printed of them (tests/data/perf-frames), and on a folder of captures beside perf's
texts when TACHO_CORPUS names one: NAME.data with NAME.script.txt, and for all of them symfs/, kallsyms.zst and perf-PID.map.
"""
import collections
import os
import re
import shutil
import unittest
from pathlib import Path
from typing import NamedTuple

import programs
from programs import ROOT

GOLDEN = ROOT / "tests/golden"
PERF_FRAMES = ROOT / "tests/data/perf-frames"
CORPUS = os.environ.get("TACHO_CORPUS")
# A line of a call chain, or the end of a sample's line: "ADDRESS NAME+0xOFFSET (MODULE)"; inlined calls are "(inlined)".
FRAME = re.compile(rb"^(?:\t +|.*: +)([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)$")
NAMELESS = b"[unknown]"
SAME, OTHER, ONLY_OURS, NEITHER = "same name", "another name or none", "only ours", "neither has one"


class Frame(NamedTuple):
    address: bytes
    name: bytes
    module: bytes


def frames(text):
    """Of each line that shows one. The modules of a chain's lines may hold blanks, so the last bracket counts."""
    found = (FRAME.search(line) for line in text.split(b"\n"))
    return [Frame(*match.groups()) for match in found if match]


def compared(theirs, ours):
    """Counts of outcomes, and the frames for which perf has another name."""
    counts, wrong = collections.Counter(), []
    for number, (perfs, mine) in enumerate(zip(theirs, ours)):
        has_name = perfs.name != NAMELESS
        if perfs.address != mine.address or (has_name and perfs != mine):
            counts[OTHER] += 1
            wrong.append((number, perfs, mine))
        elif has_name:
            counts[SAME] += 1
        else:
            counts[NEITHER if mine.name == NAMELESS else ONLY_OURS] += 1
    return counts, wrong


class Names(programs.Scratch):
    def count(self, capture, perfs_text, *words):
        done = self.tacho("script", "--as-perf", "-i", capture, *words, status=None)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        theirs, ours = frames(perfs_text), frames(done.stdout)
        if not theirs:  # a capture that perf cannot read at all: every name is one more
            theirs = [frame._replace(name=NAMELESS) for frame in ours]
        self.assertEqual(len(theirs), len(ours), f"{capture}: number of frames")
        counts, wrong = compared(theirs, ours)
        shown = " ".join(f"{counts[what]:8}" for what in (SAME, OTHER, ONLY_OURS, NEITHER))
        print(f"{capture.stem:20} {shown}", flush=True)
        self.assertEqual(wrong[:5], [], f"{capture}: frame, perf's, ours")
        return counts

    def total(self, counts):
        print("total: " + ", ".join(f"{what} {counts[what]}" for what in (SAME, OTHER, ONLY_OURS, NEITHER)), flush=True)
        self.assertEqual(counts[OTHER], 0)
        return counts

    def test_own_captures(self):
        texts = sorted(PERF_FRAMES.glob("*.txt"))
        self.assertGreater(len(texts), 2)
        symbols = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
        counts = collections.Counter()
        for text in texts:
            with self.subTest(capture=text.stem):
                counts += self.count(GOLDEN / f"captures/{text.stem}.data", text.read_bytes(), "-F", "ip,sym,symoff,dso", *symbols)
        self.assertGreater(self.total(counts)[SAME], 1000)

    @unittest.skipUnless(CORPUS, "needs TACHO_CORPUS, a folder of captures with perf's texts beside them")
    @unittest.skipUnless(shutil.which("zstd"), "needs zstd")
    def test_the_corpus(self):
        corpus, kallsyms = Path(CORPUS), self.folder / "kallsyms"
        self.run_program("zstd", "-q", "-d", corpus / "kallsyms.zst", "-o", kallsyms)
        symbols = ["--symfs", corpus / "symfs", "--kallsyms", kallsyms, "--perf-map-dir", corpus]
        captures = sorted(corpus.glob("*.data"))
        self.assertGreater(len(captures), 0)
        counts = collections.Counter()
        for capture in captures:
            with self.subTest(capture=capture.stem):
                counts += self.count(capture, capture.with_suffix(".script.txt").read_bytes(), *symbols)
        self.assertGreater(self.total(counts)[SAME], 1000)


@programs.needs_root
@programs.needs_perf
@unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
class OddCode(programs.Scratch):
    def test_code_outside_of_plain_files_is_shown_as_perf_shows_it(self):
        self.run_program("cc", "-O1", "-fno-omit-frame-pointer", ROOT / "tests/compat/odd_code.c", "-o", "odd_code")
        kallsyms = self.folder / "kallsyms"  # a copy: beside the kernel's own list perf would find /proc/kcore
        kallsyms.write_bytes(Path("/proc/kallsyms").read_bytes())
        for stacks in [[], ["-g"], ["--call-graph", "dwarf,1024"]]:
            with self.subTest(stacks=stacks):
                self.perf("record", "-q", "-e", "cpu-clock", "-F", "499", *stacks, "-o", "odd.data", "./odd_code")
                words = ["script", "-i", "odd.data", "--kallsyms", kallsyms, "--show-mmap-events"]
                theirs = self.perf(*words).stdout
                for kind in (b"(/tmp/perf-", b"(/memfd:code cache (deleted))", b"/gone.bin (deleted))", b"/kept.bin)"):
                    self.assertIn(kind, theirs)
                self.assert_same_text(self.tacho(*words, "--as-perf").stdout, theirs)


@programs.needs_root
@programs.needs_perf
@unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
class Replaced(programs.Scratch):
    def test_a_program_that_is_replaced_while_it_runs_gets_none_of_the_new_names(self):
        for name in ("old", "new"):
            (self.folder / f"{name}.c").write_text(
                f"__attribute__((noinline)) long {name}_work(long n) {{ long s = 0; for (long i = 0; i < n; i++) {{ s += i * i;"
                ' __asm__ volatile("" :: "r"(s)); } return s; }\n'
                f'#include <stdio.h>\nint main(void) {{ return (rename("new", "prog"), {name}_work(300000000)) == 0; }}\n')
        self.run_program("cc", "-O1", "-o", "new", "new.c")
        self.run_program("cc", "-O1", "-o", "prog", "old.c")
        self.perf("record", "-q", "-e", "cpu-clock", "-F", "499", "-o", "replaced.data", "./prog")
        self.assertIn(b"new_work", self.perf("report", "--stdio", "-i", "replaced.data").stdout, "perf takes the path's word")
        done = self.tacho("report", "-i", "replaced.data", status=None)
        self.assertNotIn(b"_work", done.stdout)
        self.assertIn(b"prog: is another file than the one that was mapped (inode ", done.stderr)
        self.assertIn(b"new_work", self.tacho("report", "-i", "replaced.data", "--as-perf", status=None).stdout)


class Counting(unittest.TestCase):
    """Tests the comparison itself."""

    def test_frames_of_chains_and_of_single_lines_are_found(self):
        text = (b"dd  7 [000]  1.5:  1 cpu-clock:u: \n\t    115a geo::area(int, char)+0x11 (/a b/c (deleted))\n"
                b"\t    115a hot+0x1 (inlined)\n\n"
                b" dd  7  1.5:  1 cpu-clock:  ffffffff814b0b2d vfs_read+0x2 ([kernel.kallsyms])\n"
                b" dd  7  1.5: sched:sched_switch: prev_comm=dd ==> next_comm=x (y)\n\t  10 [unknown] ([unknown])\n")
        self.assertEqual([frame.name for frame in frames(text)], [b"geo::area(int, char)", b"hot", b"vfs_read", NAMELESS])
        self.assertEqual(frames(text)[0].module, b"/a b/c (deleted)")

    def test_wrong_lost_and_gained_names_are_counted_separately(self):
        named, other = Frame(b"1", b"a", b"/m"), Frame(b"1", b"b", b"/m")
        nameless = Frame(b"1", NAMELESS, b"/m")
        counts, wrong = compared([named, named, named, nameless, nameless], [named, other, nameless, named, nameless])
        self.assertEqual(counts, {SAME: 1, OTHER: 2, ONLY_OURS: 1, NEITHER: 1})
        self.assertEqual([number for number, _, _ in wrong], [1, 2])


if __name__ == "__main__":
    programs.main()
