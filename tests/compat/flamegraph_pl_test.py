#!/usr/bin/env python3
"""tacho flamegraph and flamegraph.pl draw the same frames with the same widths for a folded text."""
import collections
import random
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import programs
from flame_graph import SVG, Picture

# Debian: libdevel-nytprof-perl
FLAMEGRAPH_PL = next((path for path in map(Path, ("/usr/bin/flamegraph.pl", "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"))
                      if path.exists()), None)
GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
ROW = 16  # of flamegraph.pl
WIDE = ["--width", "100000"]  # px: tolerance for positions, which are rounded to 0.1


def as_flamegraph_pl(path):
    """Names as flamegraph.pl writes them: () instead of <>."""
    return tuple(name.translate(str.maketrans("<>", "()")) for name in path)


def frames_of_flamegraph_pl(svg):
    """{names from the root: (samples, width)}, from the picture: a frame's parent is the one below that contains it."""
    boxes = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        if group.get("class") != "func_g":
            continue
        title, rect = group.find(f"{SVG}title").text, group.find(f"{SVG}rect")
        name, rest = title.rsplit(" (", 1)
        boxes.append((float(rect.get("y")), float(rect.get("x")), float(rect.get("width")), name,
                      int(rest.split(" ")[0].replace(",", ""))))
    base = max(y for y, *_ in boxes)
    rows, found = collections.defaultdict(list), collections.defaultdict(lambda: [0, 0.0])
    for y, x, width, name, samples in sorted(boxes, key=lambda box: (-box[0], box[1])):
        row, middle = round((base - y) / ROW), x + width / 2
        below = next((path for left, right, path in rows[row - 1] if left <= middle <= right), ())
        path = (*below, name) if row else ()
        rows[row].append((x, x + width, path))
        found[path][0] += samples
        found[path][1] += width
    return found


@unittest.skipUnless(FLAMEGRAPH_PL, "needs flamegraph.pl (Debian: libdevel-nytprof-perl)")
class FlameGraphPl(programs.Scratch):
    def compare(self, folded):
        (self.folder / "a.folded").write_text(folded)
        theirs = frames_of_flamegraph_pl(self.run_program("perl", FLAMEGRAPH_PL, "--minwidth=0", *WIDE, "a.folded").stdout)
        ours = Picture(self.tacho("flamegraph", "--folded", "a.folded", "--min-width", "0", *WIDE).stdout.decode())
        weights, widths = collections.Counter(), collections.Counter()
        for frame in ours.panes[0]:
            weights[as_flamegraph_pl(frame.path)] += frame.weight
            widths[as_flamegraph_pl(frame.path)] += frame.width
        self.assertEqual(set(weights), set(theirs))
        for path, (samples, width) in theirs.items():
            self.assertEqual(weights[path], samples, path)
            self.assertAlmostEqual(widths[path], width, delta=0.2, msg=path)
        return len(widths)

    def test_captures(self):
        for name in ("threads", "unwound", "group", "payload", "uprobe", "latency", "comm", "simpleperf-off-cpu"):
            folded = self.tacho("folded", "--weight", "samples", "-i", GOLDEN / f"captures/{name}.data", *SYMBOLS,
                                status=None).stdout.decode()
            self.assertGreater(self.compare(folded), 1, name)

    def test_many_stacks_with_recursion(self):
        chance = random.Random(28)
        names = [f"f{number}<{'&' * (number % 3)}>::run" for number in range(12)]
        lines = {}
        for _ in range(400):
            stack = ";".join(chance.choice(names[: 2 + depth]) for depth in range(chance.randrange(1, 12)))
            lines["main;" + stack] = chance.randrange(1, 50)
        self.assertGreater(self.compare("".join(f"{stack} {weight}\n" for stack, weight in lines.items())), 1000)


if __name__ == "__main__":
    programs.main()
