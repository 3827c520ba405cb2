#!/usr/bin/env python3
"""Builds of one program by two compilers, under other names: the views that compare captures agree on the weight of each
function, which is known from the source."""
import collections
import csv
import io
import re
import shutil
import subprocess
import unittest

import made_capture as made
import programs
from flame_graph import Picture
from page_data import Page

SOURCE = r"""
extern "C" { volatile int sink; }
__attribute__((noinline, cold)) void report_failure(int n) { sink = n; }
__attribute__((noinline)) int parse(int n) {
  if (__builtin_expect(n == 42, 0)) { report_failure(n); report_failure(n + 1); sink = sink * 3; return sink; }
  return n * sink;
}
__attribute__((noinline)) static int scale(int n, int factor) { sink = n; return sink * factor + n; }
INLINED static int round_up(int n) { sink = sink + 1; return (n + sink) & ~7; }
__attribute__((noinline)) int walk(int n) { int all = 0; while (n-- > 0) all += scale(n, 3) + round_up(n); return all; }
int main(int argc, char**) { return parse(argc) + walk(argc * 5); }
"""
FUNCTIONS = ("report_failure", "parse", "scale", "round_up", "walk", "main")
KEEP, INLINE = "-DINLINED=__attribute__((noinline))", "-DINLINED=__attribute__((always_inline))inline"
BUILDS = {"one": ["gcc", "-O2", KEEP], "two": ["clang", "-O2", KEEP], "three": ["gcc", "-O2", "-flto", INLINE]}


def source_of(name):
    return next((one for one in FUNCTIONS if re.search(rf"(?<![a-z_]){one}(?![a-z_])", name)), name)


@unittest.skipUnless(all(map(shutil.which, ("gcc", "clang", "nm"))), "gcc, clang or nm is missing")
class ComparedBuilds(programs.Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "a.cc").write_text(SOURCE)
        self.weights = {name: self.build(name, index + 1) for index, name in enumerate(BUILDS)}

    def build(self, name, factor):
        """Makes the program and a capture of it, with samples in each symbol; returns {function of the source: weight}."""
        compiler, *options = BUILDS[name]
        program = self.folder / "root/tmp" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        self.run_program(compiler, "-x", "c++", "a.cc", "-o", program, *options)
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).named("program")
        base = 0x550000000000
        capture.mapped(made.PID, base, 0x10000, 0, f"/tmp/{name}")
        weights = collections.Counter()
        for line in self.run_program("nm", program).stdout.decode().splitlines():
            address, _, symbol = line.rpartition(" ")
            found = next((one for one in FUNCTIONS if re.search(rf"(?<![a-z]){one}", symbol)), None)
            if found is None or not re.search(" [tT]$", address):
                continue
            ip = base + int(address.split()[0], 16)
            for _ in range(factor + len(symbol) % 3):
                capture.sample(ip=ip, chain=[made.CONTEXT_USER, ip])
                weights[found] += 1000
        (self.folder / name).write_bytes(capture.file())
        return dict(weights)

    def both(self, before, after):
        return {one: (self.weights[before].get(one, 0), self.weights[after].get(one, 0)) for one in FUNCTIONS
                if one in self.weights[before] or one in self.weights[after]}

    def of_csv(self, *words):
        text = self.tacho(*words, "--csv", "--symfs", "root", status=None).stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text)))
        found = {source_of(row["symbol"]): (int(row["before_period"] or 0), int(row["after_period"] or 0)) for row in rows}
        self.assertEqual(len(found), len(rows), "each function is one row")
        return found

    def of_picture(self, before, after):
        done = self.tacho("flamegraph", "--base", before, "-i", after, "--by", "none", "--min-width", "0", "--symfs", "root",
                          status=None)
        found = collections.defaultdict(lambda: [0, 0])
        for pane, frames in enumerate(Picture(done.stdout.decode()).panes):
            for frame in frames[1:]:
                sides = (frame.before, frame.after) if pane == 0 else (frame.weight, 0)
                for side in (0, 1):
                    found[source_of(frame.name)][side] += sides[side]
        return {name: tuple(sides) for name, sides in found.items()}

    def of_page(self, before, after):
        done = self.tacho("page", "--base", before, "-i", after, "--by", "none", "--symfs", "root", status=None)
        page, found = Page(done.stdout.decode()), collections.defaultdict(lambda: [0, 0])
        for side, prefix in enumerate(("base.0.", "")):
            nodes = page.columns[f"{prefix}node"]
            for path, weight in zip(page.paths(nodes), page.columns[f"{prefix}weight"]):
                found[source_of(path[-1])][side] += weight
        return {name: tuple(sides) for name, sides in found.items()}

    def test_four_views_give_the_totals_of_the_source(self):
        symbols = self.run_program("nm", "root/tmp/one").stdout.decode()
        self.assertIn("parse", symbols)
        self.assertIn(".cold", symbols, "gcc splits parse")
        for before, after in (("one", "two"), ("two", "one"), ("one", "three"), ("two", "three"), ("three", "two")):
            with self.subTest(before=before, after=after):
                right = self.both(before, after)
                self.assertEqual(self.of_csv("report", "--base", before, "-i", after), right)
                self.assertEqual(self.of_csv("diff", before, after), right)
                self.assertEqual(self.of_picture(before, after), right)
                self.assertEqual(self.of_page(before, after), right)

    def test_the_text_says_which_modules_are_compared(self):
        text = self.tacho("report", "--stdio", "--base", "one", "-i", "two", "--symfs", "root", status=None).stdout.decode()
        self.assertIn("# functions compared by name: one with two\n", text)


if __name__ == "__main__":
    programs.main()
