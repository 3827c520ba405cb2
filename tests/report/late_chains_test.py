#!/usr/bin/env python3
"""Without children, `report` resolves call chains only for rows heavy enough for a graph: the output is the same.

The reference is `--ignore-callees` with a name that does not occur, which needs every chain."""
import random

import made_capture as made
import programs
from programs import ROOT

GOLDEN = ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
FORMS = [[], ["-g", "caller"], ["-g", "graph,20"], ["-g", "graph,5,callee,function,count"], ["-g", "graph,0.5,2,caller"],
         ["-g", "graph,3,address"], ["-g", "graph,0.1,caller,address"], ["--percent-limit", "10"], ["--sort", "sym"], ["--sort", "comm"], ["--sort", "pid,dso,sym"],
         ["--max-stack", "2"], ["-n", "--show-total-period"], ["-U"], ["--top", "3"], ["--weight", "samples"],
         ["--percentage", "relative", "--symbol-filter", "a"], ["--symbol-filter", "e", "-g", "graph,10"], ["--no-inline"],
         ["--inline=all"], ["-s", "srcline"], ["-s", "sym,srcline"], ["-s", "addr"], ["-s", "time"], ["-F", "overhead,overhead_children,sym"]]
CODE = 0x700000000000  # unmapped: every address is a function


class LateChains(programs.Scratch):
    def same(self, capture, *words):
        usual = self.tacho("report", *SYMBOLS, "--stdio", "--no-children", "-i", capture, *words, status=None)
        every = self.tacho("report", *SYMBOLS, "--stdio", "--no-children", "-i", capture, "--ignore-callees", "^nobody has this$",
                           *words, status=None)
        self.assertEqual(usual.returncode, every.returncode)
        # No symbols were read for programs that occur only in chains of light rows.
        self.assertLessEqual(set(usual.stderr.splitlines()), set(every.stderr.splitlines()))
        self.assert_same_text(usual.stdout, every.stdout)
        return usual.stdout.count(b"\n")

    def test_golden_captures(self):
        lines = 0
        for turn, capture in enumerate(sorted((GOLDEN / "captures").glob("*.data"))):
            for words in programs.part_of(FORMS, turn):
                with self.subTest(capture=capture.name, words=words):
                    lines += self.same(capture, *words)
        self.assertGreater(lines, programs.scaled(10_000))

    def test_random_chains(self):
        chance = random.Random(9)
        for number in range(12):
            capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
            functions = [CODE + 16 * i for i in range(chance.choice([3, 10, 60]))]
            for _ in range(chance.choice([1, 30, 400])):
                # Few callees, so that rows have different weights; also empty chains and recursion.
                chain = [chance.choice(functions) for _ in range(chance.randrange(6))]
                leaf = functions[min(chance.randrange(len(functions)), chance.randrange(len(functions)))]
                capture.sample(ip=leaf, chain=chance.choice([[], [made.CONTEXT_USER, leaf, *chain]]),
                               period=chance.choice([0, 1, 1000, 10**6]) if number % 4 else 0)
            path = self.folder / f"{number}.data"
            path.write_bytes(capture.file())
            for words in programs.part_of(FORMS, number):
                with self.subTest(number=number, words=words):
                    self.assertGreater(self.same(path, *words), 0)


if __name__ == "__main__":
    programs.main()
