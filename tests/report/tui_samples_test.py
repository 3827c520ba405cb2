#!/usr/bin/env python3
"""Views of single samples on the terminal, through tmux: they show what the text commands print."""
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import unittest

import made_capture as made
import made_payload
import programs
import screen
from made_payload import ENUM, TEXT, Field

GOLDEN = programs.ROOT / "tests" / "golden"
SIZES = ((80, 24), (200, 60))
SECOND = 1_000_000_000
CHAINS = {name: [made.CONTEXT_USER, address + 4, made.MAIN + 9] for name, address in (("leaf_a", made.LEAF_A), ("leaf_b", made.LEAF_B))}
LISTED = "all"


def squeezed(line):
    """Without the blanks that align columns."""
    return " ".join(line.split())


@screen.needs_tmux
class Samples(programs.Scratch):
    WORDS = ["--symfs", GOLDEN / "symfs", "--buildid-dir", "none"]

    def screen(self, width=80, height=24, **variables):
        one = screen.Screen(self.folder, width, height, **variables)
        self.addCleanup(one.close)
        return one

    def plant(self, name="perf.data", count=2000, share=10):
        """Requests of two threads in ten seconds, and of a third one with a latency of 1 to 1.1 ms from 4 to 6 s: every `share`-th."""
        chance = random.Random(3)
        capture = made_payload.capture(chains=True, io=[
            Field("lat", unit="ns", role="value"), Field("op", ENUM, 4, enumerators=((0, "READ"), (1, "WRITE"))),
            Field("size", size=4), Field("file", TEXT, 1, 8)])
        capture.mapped(made.PID, made.START, 0x4000, 0, made.PROGRAM)
        capture.named("reader", 101).named("other", 102).named("writer", 103)
        for number in range(count):
            time = 100 * SECOND + number * 10 * SECOND // count + chance.randrange(1_000_000)
            is_planted = 4 * SECOND <= time - 100 * SECOND < 6 * SECOND and number % share == share - 1
            latency = chance.randrange(1_000_000, 1_100_000) if is_planted else chance.choice([chance.randrange(900_000), 3_000_000])
            capture.time = time - made.STEP  # sample() adds a step
            leaf = "leaf_b" if is_planted else "leaf_a"
            capture.sample(tid=103 if is_planted else 101 + number % 2, chain=CHAINS[leaf], ip=CHAINS[leaf][1],
                           raw=struct.pack("<QII8s", latency, 1 if is_planted else 0, 4096 * chance.randrange(1, 200),
                                           f"f{chance.randrange(5)}".encode()))
        (self.folder / name).write_bytes(capture.file())

    def open(self, width=80, height=24, *words):
        one = self.screen(width, height)
        one.run("report", *self.WORDS, *words)
        one.wait_for("h: help")
        return one

    def text(self, *words):
        return self.tacho(*words).stdout.decode().splitlines()

    def pick(self, one, key, name):
        """Chooses an item of a menu."""
        one.keys(key)
        lines = one.wait_for("  " + re.escape(name)).split("\n")
        title = next(i for i, line in enumerate(lines) if re.search("(Heat map|Histogram) of", line))
        item = next(i for i, line in enumerate(lines) if i > title and "  " + name in line)
        one.keys(*["Down"] * (item - title - 1), "Enter")

    def test_samples_one_by_one(self):
        self.plant()
        expected = [squeezed(line) for line in self.text("script", "--columns", LISTED, *self.WORDS)]
        self.assertEqual(len(expected), 2001)
        self.assertEqual(expected[0], "time comm pid tid cpu event lat op size file")
        for width, height in SIZES:
            with self.subTest(width=width):
                one = self.open(width, height)
                one.keys("l")
                shown = one.wait_for("^1 of 2,000 ").split("\n")
                self.assertRegex(shown[0], "Samples of event 'io'")
                self.assertEqual([squeezed(line) for line in shown[1:height - 1]], expected[:height - 2])
                one.keys("NPage", "NPage", "Up")
                last = height - 4 + 2 * (height - 3) - (height - 4)  # rows of a page: height - 3
                shown = one.wait_for(f"^{last} of 2,000").split("\n")
                self.assertIn(expected[last], [squeezed(line) for line in shown])
                one.keys("End")
                shown = one.wait_for("^2,000 of 2,000").split("\n")
                self.assertEqual([squeezed(line) for line in shown[2:height - 1]], expected[-(height - 3):])
                one.keys("Home", "/")
                one.type("WRITE")
                number = next(i for i, line in enumerate(expected) if " WRITE " in line)
                one.wait_for(f"^{number} of 2,000")
                one.keys("n")
                following = next(i for i, line in enumerate(expected) if " WRITE " in line and i > number)
                one.wait_for(f"^{following} of 2,000")
                one.keys("Enter")
                shown = one.wait_for("Call chain, callers below")
                values = dict(zip(expected[0].split(), expected[following].split()))
                for name, value in values.items():
                    self.assertRegex(shown, rf"(?m)^{name} +{re.escape(value)}$")
                script = self.text("script", "-F", "ip,sym,symoff,dso", "--where", "op == WRITE", *self.WORDS)
                frames = [line.strip() for line in script if "leaf_b" in line or "main" in line][:2]
                self.assertEqual(len(frames), 2)
                self.assertRegex(shown, r"(?m)^ *" + re.escape(frames[0]) + r"\n *" + re.escape(frames[1]) + "$")
                one.keys("q", "q")
                one.wait_for("h: help")
                one.close()

    def test_samples_of_a_row_and_of_a_zoom(self):
        self.plant()
        script = self.text("script", "--columns", "comm,sym", *self.WORDS)
        one = self.open(120, 30)
        one.keys("/")
        one.keys("l", "e", "a", "f", "_", "b", "Enter", "v")
        count = sum("leaf_b" in line for line in script)
        self.assertGreater(count, 30)
        shown = one.wait_for(f"^1 of {count} ")
        self.assertIn(", of writer, in or below leaf_b", shown.split("\n")[0])
        self.assertNotIn("reader", shown)
        one.keys("q", "Escape")
        one.wait_until_gone("Symbol:")
        # Callers have the samples of their callees.
        one.keys("Home", "/", "m", "a", "i", "n", "Enter", "v")
        comm = re.search(r"^. +\d+\.\d+% .* (\w+) +spin +\[\.\] main", one.wait_for(r"^1 of "), re.M)
        self.assertIsNone(comm)  # an overlay is over the list
        title = one.lines()[0]
        of = re.search(r", of (\w+), in or below main", title)[1]
        one.wait_for(f"^1 of {sum(line.split()[0] == of for line in script[1:]):,} ")
        one.keys("q", "Escape", "End", "t", "l")
        thread = re.search(r"Thread: (\w+)", one.wait_for(r"Thread: \w"))[1]
        one.wait_for(f"^1 of {sum(line.split()[0] == thread for line in script[1:]):,} ")

    def test_samples_of_other_keys_are_refused(self):
        self.plant()
        one = self.open(100, 24, "--sort", "cpu,sym")
        one.keys("v")
        one.wait_for("v: not for rows by 'cpu'; l lists the samples of all rows")
        one.keys("l")
        one.wait_for("^1 of 2,000 ")

    def test_histograms(self):
        self.plant()
        for width, height in SIZES:
            with self.subTest(width=width):
                one = self.open(width, height)
                self.pick(one, "b", "lat (ns)")
                for keys, words in (((), ("--by", "none")), (("l", "100us"), ("--by", "none", "--linear", "100us")),
                                    (("k", "comm"), ("--by", "comm", "--linear", "100us"))):
                    if keys:
                        one.keys(keys[0])
                        one.type(keys[1])
                    expected = self.text("hist", "--field", "lat", *words)
                    for first in range(max(1, len(expected) - (height - 2) + 1)):
                        if first > 0:
                            one.keys("Down")
                        # A screen is drawn from its top to its bottom: wait for all of it.
                        one.wait_for("\n".join(re.escape(line.rstrip()) + " *" for line in expected[first:first + height - 2]))
                    one.keys("Home")
                one.keys("l", "C-u")
                one.type("3furlongs")
                one.wait_for("is no width of rows")
                one.keys("q")
                self.pick(one, "b", "file")
                expected = self.text("hist", "--field", "file", "--by", "none")
                one.wait_for("\n".join(re.escape(line.rstrip()) + " *" for line in expected))
                one.close()

    def cells(self, lines):
        """The boxes of a map: lines of digits after their label, highest values first."""
        return [re.fullmatch(r"( *\S+(?: \w+)?) \|(.*)", line.rstrip()).groups() for line in lines if re.match(r" *\S+(?: \w+)? \|", line)]

    def test_heat_maps(self):
        self.plant()
        one = self.open(200, 60)
        self.pick(one, "M", "lat (ns)")
        shown = one.wait_for("Enter: count this box")
        expected = self.text("heatmap", "--field", "lat", "--width", "200", "--event", "io")
        samples, interval = re.match(r"([\d,]+ samples) in \d+ columns of (\S+ \S+) and", expected[2]).groups()
        self.assertIn(f": {samples}, columns of {interval}", shown)
        self.assertEqual(self.cells(one.lines()), self.cells(expected))
        axis = next(i for i, line in enumerate(expected) if re.match(r" +\+\|", line))
        for line in expected[axis:axis + 2]:
            self.assertIn(line, shown)
        one.keys("q")
        one.wait_for("h: help")
        self.pick(one, "M", "offset in each second")
        one.wait_for("Enter: count this box")
        expected = self.text("heatmap", "--offset", "--width", "200")
        self.assertEqual(self.cells(one.lines()), self.cells(expected))
        one.close()

    def test_a_box_of_a_heat_map_is_a_filter(self):
        self.plant()
        for width, height in SIZES:
            with self.subTest(width=width):
                one = self.open(width, height)
                self.pick(one, "M", "lat (ns)")
                shown = one.wait_for("Enter: count this box")
                self.assertTrue(all(len(line) <= width for line in shown.split("\n")))
                box = re.search(r"^from (\S+) s until (\S+) s, lat .*: (\S+) samples?$", shown, re.M)
                fullest = int(box[3].replace(",", ""))
                # From the fullest box to the lowest right one.
                one.keys("Space", "End", *["Down"] * 40)
                after = rf"^from {re.escape(box[1])} s until (110(?:\.\d+)?) s, lat 64 ns to (\S+ \w+): (\S+) samples"
                box = re.search(after, one.wait_for(after), re.M)
                inside = int(box[3].replace(",", ""))
                self.assertGreater(inside, fullest)
                one.keys("v")
                one.wait_for(f"^1 of {inside:,} ")
                one.keys("q", "x")
                shown = one.wait_for("More frequent in the box than outside")
                self.assertIn(f"{inside:,} samples in the box, {2000 - inside:,} outside", shown)
                one.keys("q", "Enter")
                one.wait_for(f"^Samples: {inside if inside < 1000 else '1K'} ")
                one.wait_for("rows count the box")
                self.assertIn(", lat 64 ns to ", one.lines()[0] if width == 200 else ", lat 64 ns to ")
                one.keys("l")
                one.wait_for(f"^1 of {inside:,} ")
                one.keys("q")
                one.wait_until_gone(" of [0-9,]+  Enter")
                one.keys("Escape")
                one.wait_for("rows count all samples")
                one.keys("l")
                one.wait_for("^1 of 2,000 ")
                one.close()

    def test_the_mouse_and_resizing_on_a_map(self):
        self.plant()
        one = self.open()
        self.pick(one, "M", "lat (ns)")
        one.wait_for("Enter: count this box")
        one.click(5, 12)
        one.wait_for("^from 100 s until ")
        for width, height in ((200, 60), (30, 12), (10, 3), (80, 24)):
            one.resize(width, height)
            one.wait_for("too small" if width < 20 else "^ +[0-9.]+ \\w+ \\|")
        one.wait_for("^from 100 s until ")

    def shares(self, name, *more):
        """{(module, function): self percentage} from the text of the report."""
        lines = self.text("report", "--stdio", "--no-children", "-g", "none", "--sort", "comm,dso,sym", "-i", name, *self.WORDS, *more)
        return {tuple(match.groups()[1:]): float(match[1]) for line in lines
                if (match := re.match(r" +(\d+\.\d+)%  (\S+) +(\S+) +(\[.\] \S+)", line))}

    def compared(self, lines):
        rows = []
        for line in lines:
            match = re.match(r"[-+ ] (.{8})  (.{8})  (.{8})  (\S+) +(\S+) +(\[.\] \S+)", line)
            if match:
                numbers = [float(text.strip().rstrip("%")) if text.strip() else None for text in match.groups()[:3]]
                rows.append((tuple(match.groups()[3:]), numbers))
        return rows

    def test_two_captures_are_compared(self):
        self.plant("before.data")
        self.plant("after.data", 1500, 3)
        before, after = self.shares("before.data"), self.shares("after.data")
        for width, height in SIZES:
            with self.subTest(width=width):
                one = self.screen(width, height)
                one.run("tui", "--base", "before.data", "after.data", *self.WORDS)
                shown = one.wait_for(r"^ +Before +After +Delta +Command")
                rows = self.compared(shown.split("\n"))
                self.assertEqual({keys for keys, _ in rows}, set(before) | set(after))
                for keys, (old, new, delta) in rows:
                    self.assertEqual((old, new), (before.get(keys), after.get(keys)), keys)
                    self.assertAlmostEqual(delta, (new or 0) - (old or 0), delta=0.0101)
                sizes = [abs(numbers[2]) for _, numbers in rows]
                self.assertEqual(sizes, sorted(sizes, reverse=True))
                self.assertGreater(sizes[0], 3)
                one.keys("<")
                one.wait_for("sorted by After")
                rows = self.compared(one.lines())
                self.assertEqual([numbers[1] or 0 for _, numbers in rows], sorted((numbers[1] or 0 for _, numbers in rows), reverse=True))
                one.keys("<")
                one.wait_for("sorted by Before")
                # With callees: main has 100 %.
                one.keys("I")
                one.wait_for(r"^\S? +\S+%  +\S+%  .* main$")
                one.keys("/", "m", "a", "i", "n", "Enter")
                one.wait_until_gone("leaf_a")
                one.keys("Right", "Down")
                one.wait_for("^   [-+] main|^     main")
                one.keys("Escape", "B")
                one.wait_until_gone("Before")
                one.wait_for("Children")
                one.keys("B", "C-u")
                one.type("before.data")
                one.wait_for(r"^ +Before +After")
                self.assertIn("compared with before.data", one.lines()[0] if width == 200 else "compared with before.data")
                one.keys("Escape")
                one.wait_until_gone("Before +After")
                one.keys("B", "C-u")
                one.type("nowhere.data")
                one.wait_for("nowhere.data: No such file")
                one.keys("q")
                one.wait_for(r"^\$ *$")
                one.close()

    def test_functions_of_a_comparison_have_room(self):
        self.plant("before.data")
        self.plant("after.data", 1500, 3)
        one = self.screen(40, 24)
        one.run("tui", "--base", "before.data", "after.data", *self.WORDS)
        shown = one.wait_for(r"^ +After +Delta  Symbol *$")
        functions = {keys[-1] for name in ("before.data", "after.data") for keys in self.shares(name)}
        self.assertEqual(set(re.findall(r"\[.\] \S+", shown)), functions)
        one.resize(60, 24)
        one.wait_for(r"^ +Before +After +Delta  Command  Symbol *$")

    def test_a_time_range_of_a_comparison(self):
        """T chooses a part of the capture after; the status line says so, and that the one before is whole."""
        self.plant("before.data")
        self.plant("after.data", 1500, 3)
        for width, height in SIZES:
            with self.subTest(width=width):
                one = self.screen(width, height)
                one.run("tui", "--base", "before.data", "after.data", *self.WORDS)
                shown = one.wait_for("I: with callees  B: end  q: quit")
                before = {keys: numbers[0] for keys, numbers in self.compared(shown.split("\n"))}
                one.keys("T")
                one.wait_for("Space: mark  Enter: count this range  Backspace: all  q: close")
                one.keys("End", "Space", *["PPage"] * (width // 20), "Enter")
                shown = one.wait_for(r"^After: \d+\.\d{3} to \d+\.\d{3} s; Before: all of before\.data; Backspace: all$")
                times = re.search(r"After: (\S+) to (\S+) s", shown)
                self.assertRegex(shown.split("\n")[0], rf"^Samples: \d+  of event 'io' \({times[1]} to {times[2]} s\).*, compared with before\.data *$")
                one.keys("Escape")
                shown = one.wait_for("I: with callees  B: end  q: quit")
                rows = self.compared(shown.split("\n"))
                self.assertTrue(rows)
                for keys, (old, new, delta) in rows:
                    self.assertEqual(old, before.get(keys), keys)
                    self.assertAlmostEqual(delta, (new or 0) - (old or 0), delta=0.0101)
                part = self.shares("after.data", "--time", f"{times[1]},{times[2]}")
                self.assertEqual(set(part), {keys for keys, (_, new, _) in rows if new is not None})
                for keys, (_, new, _) in rows:  # the screen shows the ends of the range in milliseconds
                    self.assertAlmostEqual(new, part[keys], delta=0.5)
                one.keys("T", "BSpace")
                one.wait_for("^rows count the whole time$")
                one.keys("Escape")
                shown = one.wait_for("I: with callees  B: end  q: quit")
                self.assertRegex(shown.split("\n")[0], "of event 'io'(, Event count|, compared)")
                one.keys("B")
                one.wait_until_gone("Before +After")
                one.keys("q")
                one.wait_for(r"^\$ *$")
                one.close()

    def views(self, one):
        """Opens each of the other views, yields its name, and leaves it."""
        for name, keys, shown in (("list", ["l"], "^1 of 2,000 "), ("map", ["M", "Enter"], "Enter: count this box"),
                                  ("histogram", ["b", "Enter"], "count     distribution"),
                                  ("sample", ["l", "Enter"], "Call chain, callers below"),
                                  ("comparison", ["B", "C-u", *"perf.data", "Enter"], "^ +Before +After +Delta")):
            one.keys(*keys)
            one.wait_for(shown)
            yield name, shown
            one.keys(*["Escape"] * (2 if name == "sample" else 1))
            one.wait_for("h: help")

    @unittest.skipUnless(shutil.which("tic"), "needs tic")
    def test_colours_of_8_16_and_256(self):
        """Letters can be read in every view: where we set the background, the colour of letters differs enough from it;
        where we do not, it is neither black nor white, one of which is the terminal's."""
        self.plant()
        (self.folder / "sixteen").write_text(  # xterm-16color is not in every terminfo
            "tacho-16color|xterm with 16 colours,\n\tcolors#16, pairs#256,\n"
            "\tsetab=\\E[%?%p1%{8}%<%t%p1%{40}%+%e%p1%{92}%+%;%dm, setaf=\\E[%?%p1%{8}%<%t%p1%{30}%+%e%p1%{82}%+%;%dm, use=xterm,\n")
        self.run_program("tic", "-x", "-o", self.folder / ".terminfo", "sixteen")
        seen = {}
        for kind in ("xterm", "tacho-16color", "xterm-256color"):
            one = self.screen(100, 40, TERM=kind, TERMINFO=self.folder / ".terminfo" if kind == "tacho-16color" else None)
            one.run("report", *self.WORDS)
            one.wait_for("h: help")
            shares = one.colours()
            self.assertIn((1, None), shares, kind)  # 5 % and more
            self.assertIn((0, 3), shares, kind)     # the cursor
            self.assertIn((7, 4), shares, kind)     # title and last line
            all_pairs = set(shares)
            for keys, shown in ((["e"], r"^-"), (["T"], "Samples over time"), (["q", "m"], "Zoom into"), (["Escape", "/"], "Symbol to show"),
                                (["Escape", "l"], "^1 of 2,000 "), (["Enter"], "Call chain, callers below"), (["q", "q", "f"], "│all"),
                                (["q", "?"], "The list of rows"), (["q", "b", "Enter"], "count     distribution"),
                                (["q", "M"], "lat"), (["Enter"], "Enter: count this box")):
                one.keys(*keys)
                one.wait_for(shown)
                all_pairs |= one.colours()
            heat = {background for _, background in one.colours()} - {None, 3, 4, 7}
            if kind == "xterm-256color":
                self.assertTrue(heat and heat <= {24, 31, 66, 179, 227}, heat)
            else:
                self.assertTrue(heat <= {1, 2, 6}, heat)
                self.assertTrue(all((front or 0) < 8 and (back or 0) < 8 for front, back in all_pairs), all_pairs)
            for front, back in all_pairs:
                if back is None:
                    self.assertNotIn(front, (0, 7, 8, 15), kind)
                else:
                    self.assertIsNotNone(front, (kind, back))
                    self.assertGreater(screen.contrast(front, back), 3, (kind, front, back))
            seen[kind] = all_pairs
            one.close()
        self.assertEqual(seen["xterm"], seen["tacho-16color"])

    def test_views_are_drawn_anew_when_the_size_changes(self):
        self.plant()
        one = self.open()
        for name, shown in self.views(one):
            with self.subTest(view=name):
                for width, height in ((40, 10), (200, 60), (10, 3)):
                    one.resize(width, height)
                    one.wait_for("too small" if width < 20 else r"\S")
                for step in range(15):
                    one.keys("Down").resize(60 + step, 20 + step % 7)
                one.resize(80, 24)
                one.keys("Home")
                one.wait_for(shown.replace("^1 of", "of").replace("Call chain, callers below", "^time "))

    def test_a_capture_that_was_a_pipe_has_all_views(self):
        """A pipe describes its events in its first records."""
        self.plant("closed.data")
        (self.folder / "perf.data").write_bytes(self.tacho("convert", "-i", "closed.data", "-o", "-").stdout)
        one = self.open()
        for name, _ in self.views(one):
            with self.subTest(view=name):
                self.assertNotIn("read once", one.text())

    def test_a_reader_that_dies_leaves_the_terminal_as_it_was(self):
        self.plant()
        one = self.screen()
        before = one.state()
        for keys, shown in ((["l"], "^1 of 2,000 "), (["M", "Enter"], "Enter: count this box"), (["b", "Enter"], "count     distribution"),
                            (["B", *"perf.data", "Enter"], "^ +Before +After +Delta")):
            with self.subTest(shown=shown):
                one.run("report", *self.WORDS)
                one.wait_for("h: help")
                one.keys(*keys)
                one.wait_for(shown)
                os.kill(screen.children(screen.children(one.shell())[0])[0], signal.SIGKILL)
                one.wait_for("tacho: the process that reads the files died: Killed")
                one.type("clear")
                self.assertEqual(one.state(), before)

    def run_top(self, *words):
        return subprocess.run([programs.BIN / "tacho-report", "top", "--text", *words], input=self.tacho("convert", "-o", "-").stdout,
                              capture_output=True, timeout=60)

    def top(self, *words):
        """Text of tacho top for a recorder's events: title, and rows without alignment."""
        done = self.run_top(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.decode()
        lines = text.split("\n\n")[0].splitlines()
        return lines[0], [squeezed(line) for line in lines[1:]]

    def test_the_table_of_top_is_that_of_the_command(self):
        self.plant()
        for words in ((), ("--by", "op"), ("--by", "comm,op", "--columns", "count,p99"), ("--by", "file", "--value", "size / 1024")):
            with self.subTest(words=words):
                expected = [squeezed(line) for line in self.text("table", "--event", "io", *words)]
                title, rows = self.top("--table", *(f"--table-{word[2:]}" if word.startswith("--") else word for word in words))
                self.assertTrue(title.startswith(expected[0] + ": "), (title, expected[0]))
                # Number columns that do not fit are left out.
                self.assertEqual(len(rows), len(expected) - 1)
                for row, line in zip(rows, expected[1:]):
                    self.assertTrue(line.startswith(row), (row, line))

    def test_the_histogram_of_top_is_that_of_the_command(self):
        self.plant()
        for words, options in ((("--by", "none"), ("--table-without-keys",)), (("--by", "op"), ("--table-by", "op"))):
            with self.subTest(words=words):
                _, rows = self.top("--table", "--table-buckets", *options)
                got = [re.search(r"(\d+) -> (\d+) (\d+) ?(\**)$", row).groups() for row in rows[1:]]
                text = "\n".join(self.text("hist", "--field", "lat", *words))
                self.assertEqual(got, re.findall(r"(\d+) -> (\d+) +: (\d+) +\|(\**) *\|", text))

    def test_events_of_top_are_chosen_by_a_condition(self):
        self.plant()
        _, rows = self.top("--table", "--table-by", "op", "--table-columns", "count", "--table-where", "op == WRITE")
        self.assertEqual([row.split()[0] for row in rows[1:]], ["WRITE"])
        done = self.run_top("--table", "--table-by", "nofield")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"nofield", done.stderr)

    def follow(self, one, *words):
        """Opens tacho top over a pipe. Returns a function that adds an event and waits until the screen has `shown`."""
        capture = made_payload.capture(chains=True, io=[Field("op", ENUM, 4, enumerators=((0, "READ"), (1, "WRITE"))), Field("size", size=4)])
        capture.mapped(made.PID, made.START, 0x4000, 0, made.PROGRAM)
        (self.folder / "perf.data").write_bytes(capture.file())
        os.mkfifo(self.folder / "pipe")
        one.type(" ".join(map(str, [programs.BIN / "tacho-report", "top", "--delay", 300, "--table", "--table-by", "op", *words, "< pipe"])))
        pipe = open(self.folder / "pipe", "wb", buffering=0)
        self.addCleanup(pipe.close)
        pipe.write(self.tacho("convert", "-o", "-").stdout)

        def add(shown, size=1):
            capture.data = b""
            capture.sample(chain=CHAINS["leaf_a"], ip=made.LEAF_A + 4, raw=struct.pack("<II", 1, size))
            pipe.write(capture.data + 2 * made.record(68, 0, b""))
            return one.wait_for(shown)
        return add

    def test_events_of_top_are_gone_after_an_interval_without_them(self):
        one = self.screen()
        add = self.follow(one)
        add(r"^ +WRITE +1$")
        one.keys("z", "Enter")
        one.wait_for("The window has no event of this row|op WRITE")
        add("op WRITE, zeroed at each refresh")
        one.wait_for("The window has no event of this row any more")
        one.keys("v", "x")
        one.wait_for("The window has no event of this row any more")
        one.keys("q")
        self.assertNotIn("died", one.wait_for(r"^\$ *$"))

    def test_events_of_top_on_a_screen_without_room(self):
        one = self.screen()
        add = self.follow(one)
        add(r"^ +WRITE +1$")
        one.keys("Enter")
        one.wait_for("op WRITE, last")
        one.keys("v")
        one.wait_for("Enter: its call chain")
        for height in (2, 1):
            one.resize(80, height)
            one.wait_for("too small")
        one.resize(80, 24)
        one.wait_for("Enter: its call chain")

    def test_an_empty_bucket_of_top_is_not_opened(self):
        one = self.screen()
        add = self.follow(one, "--table-buckets", "--table-value", "size")
        add("0 -> 1 +1 ")
        add("4 -> 7 +1 ", size=4)
        for key in ("Enter", "Right"):
            one.keys("Home", "Down")
            one.wait_until_gone("no event has such a value")
            one.keys(key)
            one.wait_for("no event has such a value")
        one.keys("Down", "Enter")
        one.wait_for("op WRITE, value 4 -> 7")

    def test_functions_of_an_idle_processor_are_left_out_by_top(self):
        """As by perf top: they are neither rows nor part of the total, whichever the processor idles in."""
        idle = ("acpi_idle_do_entry", "acpi_processor_ffh_cstate_enter", "arch_cpu_idle", "cpu_idle", "cpu_startup_entry", "default_idle",
                "enter_idle", "exit_idle", "idle_cpu", "intel_idle", "mwait_idle", "mwait_idle_with_hints",
                "mwait_idle_with_hints.constprop.0", "native_safe_halt", "poll_idle", "ppc64_runlatch_off", "pseries_dedicated_idle_sleep",
                "psw_idle", "psw_idle_exit",  # perf 6.1's
                "intel_idle_ibrs", "pv_native_safe_halt", "acpi_safe_halt")
        busy = ("vfs_read", "idle_inject_start", "my_default_idle")
        kernel = ("_text", *idle, *busy, "_etext")
        at = {name: made.KERNEL_TEXT + number * 0x100 for number, name in enumerate(kernel)}
        at["_etext"] = made.KERNEL_TEXT + 0x2000000
        (self.folder / "kallsyms").write_text("".join(f"{address:x} T {name}\n" for name, address in at.items()))
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).started()

        def sample(name, count):
            for _ in range(count):
                capture.sample(ip=at[name] + 4, misc=made.KERNEL,
                               chain=[made.CONTEXT_KERNEL, at[name] + 4, at["cpu_startup_entry"] + 8])
        for name in idle:
            sample(name, 50)
        for name, count in zip(busy, (6, 3, 1)):
            sample(name, count)
        (self.folder / "perf.data").write_bytes(capture.file())
        words = ["--kallsyms", self.folder / "kallsyms", "--no-children"]
        shares = lambda *more: dict(reversed(row) for row in re.findall(r"^[+ ] +([\d.]+)% .*\[k\] (\S+)$", self.run_top(
            *words, *more).stdout.decode().split("\n\n")[0], re.M))
        self.assertEqual(shares(), {"vfs_read": "60.00", "idle_inject_start": "30.00", "my_default_idle": "10.00"})
        total = 50 * len(idle) + 10
        self.assertEqual(shares("--show-idle", "--percent-limit=1", "--top=30"), {name: f"{5000 / total:.2f}" for name in idle})
        # A program's function may have such a name.
        program = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started()
        program.mapped(made.PID, 0x7f0000000000, 0x1000, 0, "//anon")
        program.sample(ip=0x7f0000000010).sample(ip=at["default_idle"] + 4, misc=made.KERNEL)
        (self.folder / "perf.data").write_bytes(program.file())
        (self.folder / f"perf-{made.PID}.map").write_text("7f0000000000 100 default_idle\n")
        text = self.run_top(*words, "--perf-map-dir", self.folder).stdout.decode()
        self.assertRegex(text, r"(?m)^ +100\.00% .*\[\.\] default_idle$")
        self.assertNotIn("[k]", text)

    @programs.needs_perf
    def test_a_comparison_is_perf_diffs(self):
        self.plant("before.data")
        self.plant("after.data", 1500, 3)
        text = self.perf("diff", "--symfs", GOLDEN / "symfs", "before.data", "after.data").stdout.decode()
        expected = [match.groups() for line in text.splitlines()
                    if (match := re.match(r"(.{10})  (.{9})  (\S+) +(\[.\] \S+)", line)) and not line.startswith("#")]
        self.assertGreaterEqual(len(expected), 2)
        one = self.screen(100, 30)
        one.run("tui", "--base", "before.data", "after.data", "--sort", "dso,sym", *self.WORDS)
        shown = one.wait_for(r"^ +Before +After +Delta").split("\n")[2:2 + len(expected)]
        for line, (before, delta, module, function) in zip(shown, expected):
            self.assertRegex(line, rf" {re.escape(module)} +{re.escape(function)}")
            self.assertEqual(line[2:10].strip(), before.strip())
            # perf shows no difference for a row without samples in the capture after.
            self.assertEqual(line[22:30].strip(), delta.strip() or f"-{before.strip()}")

    def test_help_names_the_keys(self):
        self.plant()
        one = self.open(100, 60)
        one.keys("?")
        one.wait_for("heat map of a field of all rows")
        one.keys("End")
        one.wait_for("row width, as 1000 or 100us")


if __name__ == "__main__":
    programs.main()
