#!/usr/bin/env python3
"""`tacho diff --as-perf` prints what perf diff prints, byte for byte except for the order of equal rows."""
import re

import programs
from programs import ROOT

CAPTURES = ROOT / "tests/golden/captures"
SYMBOLS = ["--symfs", ROOT / "tests/golden/symfs", "--kallsyms", CAPTURES / "kallsyms"]
GROUPS = [
    ["group", "threads"],
    ["threads", "comm"],
    ["comm", "group"],
    ["group", "unwound"],
    ["unwound", "comm"],
    ["memory", "loads-in-detail"],
    ["clocks", "group"],
    ["instructions", "instructions"],
    ["uprobe", "uprobe"],
    ["arm64-fp", "arm64"],
    ["group", "threads", "comm"],
    ["unwound", "group", "clocks"],
]
OPTIONS = [
    [],
    ["-c", "delta"],
    ["-c", "ratio", "-p"],
    ["-c", "wdiff:1,2", "-F"],
    ["-F", "-p"],
    ["-b", "-F"],
    ["-o", "0"],
    ["-c", "ratio", "-o", "0", "-F", "-p"],
    ["-t", ","],
    ["-t", ";", "-p", "-F", "-c", "wdiff:3,-1"],
    ["-q"],
    ["-s", "symbol"],
    ["-s", "dso", "-p"],
    ["-s", "comm,dso", "-p"],
    ["-s", "pid,symbol"],
    ["-s", "cpu"],
    ["-d", "libc.so.6,[kernel.kallsyms]", "-p"],
    ["-d", "libc.so.6", "--percentage", "relative"],
    ["--time", "0%-50%", "-p"],
]


def squeezed(text):
    """Without the widths of columns: without the key symbol perf's depend on symbols that are not shown."""
    return re.sub(r"\.{2,}", "..", re.sub(r" +", " ", re.sub(r"(?m) +$", "", text)))


def sections(text):
    return re.split(r"(?m)^(?=# Event )", text)


@programs.needs_perf
class Diff(programs.Scratch):
    def assert_same_rows(self, ours, theirs):
        for own, their in zip(sections(ours), sections(theirs), strict=True):
            self.assertEqual(sorted(own.split("\n")), sorted(their.split("\n")))

    def test_rows_and_numbers_are_perfs(self):
        shares = compared = 0
        for names in GROUPS:
            files = [CAPTURES / f"{name}.data" for name in names]
            for options in OPTIONS:
                if "comm,dso" in options and "comm" in names:
                    continue  # perf cuts long names of threads
                with self.subTest(captures=names, options=" ".join(options)):
                    done = self.perf("diff", "-f", *SYMBOLS, *options, *files, status=None)
                    if done.returncode != 0:
                        self.assertIn("--time", options)  # perf refuses parts of captures whose header has no times
                        continue
                    theirs = done.stdout.decode(errors="replace")
                    # The status of tacho says that files of modules are missing.
                    ours = self.tacho("diff", "--as-perf", *SYMBOLS, *options, *files, status=None).stdout
                    ours = ours.decode(errors="replace")
                    if "-s" in options and "symbol" not in options[options.index("-s") + 1]:
                        ours, theirs = squeezed(ours), squeezed(theirs)
                    self.assert_same_rows(ours, theirs)
                    compared += 1
                    shares += theirs.count("%")
        self.assertGreater(shares, 500)
        self.assertGreater(compared, 200)
        print(f"{compared} comparisons, {shares} shares")


if __name__ == "__main__":
    programs.main()
