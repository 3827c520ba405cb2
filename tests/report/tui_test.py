#!/usr/bin/env python3
"""tacho report on a terminal, through tmux: it shows what --stdio prints, its keys are perf's, and
the terminal is restored however it ends."""
import os
import re
import shutil
import signal
import time
import unittest
from pathlib import Path

import made_capture as made
import programs
import screen

GOLDEN = programs.ROOT / "tests" / "golden"
CAPTURES = GOLDEN / "captures"
BASE = 0x555555554000
SIZES = ((80, 24), (200, 60))
SOURCE = """
volatile long sink;
__attribute__((noinline)) long leaf(long x) {
  for (int i = 0; i < 50; i++) x = x * 31 + (x >> 3);
  return x;
}
__attribute__((noinline)) long middle(long x) { return leaf(x) + leaf(x + 1); }
__attribute__((noinline)) long other(long x) { return x * 7; }
long top(long x) { return sink = middle(x) + other(x); }
"""


def at_both_sizes(test):
    """Calls the test with a width and a height."""
    def run(self):
        for width, height in SIZES:
            with self.subTest(width=width):
                test(self, width, height)
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def rows_of(text):
    """The rows of a report's text without call graphs and without the first column, where the screen has the
    signs of these."""
    return [line[1:].rstrip() for line in text.split("\n") if re.match(r" {3,10}\d", line)]


@screen.needs_tmux
class Tui(programs.Scratch):
    def screen(self, width=80, height=24, **variables):
        one = screen.Screen(self.folder, width, height, **variables)
        self.addCleanup(one.close)
        return one

    def write_capture(self, name="spin", function_samples=((6, "leaf"), (3, "other"))):
        """A capture with call chains of an existing program with source."""
        if shutil.which("cc") is None or shutil.which("nm") is None:
            self.skipTest("needs a C compiler")
        root = self.folder / "root"
        (root / "opt").mkdir(parents=True, exist_ok=True)
        (self.folder / "code.c").write_text(SOURCE)
        self.run_program("cc", "-O1", "-g", "-shared", "-fPIC", "-fno-omit-frame-pointer", "-Wl,--build-id=none", "-o",
                         root / "opt/program", "code.c")
        (root / str(self.folder)[1:]).mkdir(parents=True, exist_ok=True)
        shutil.copy(self.folder / "code.c", root / str(self.folder)[1:])
        at = {}
        for line in self.run_program("nm", root / "opt/program").stdout.decode().splitlines():
            value, _, symbol = line.split()[-3:] if len(line.split()) == 3 else ("0", "", "")
            at[symbol] = BASE + int(value, 16)
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN),
                               made.Event("page-faults", made.SOFTWARE, 2, made.USUAL | made.CALLCHAIN)).started()
        capture.named(name).mapped(made.PID, BASE, 0x100000, 0, "/opt/program")
        for count, function in function_samples:
            way = [at["middle"] + 9, at["top"] + 9] if function == "leaf" else [at["top"] + 20]
            for _ in range(count):
                capture.sample(ip=at[function] + 4, chain=[made.CONTEXT_USER, at[function] + 4, *way])
        capture.sample(event=1, ip=at["leaf"] + 8, chain=[made.CONTEXT_USER, at["leaf"] + 8, at["top"] + 9])
        (self.folder / "perf.data").write_bytes(capture.file())
        return ["report", "--symfs", "root", "--buildid-dir", "none"]

    def open(self, one, *more):
        """Opens the view of a capture with two events, at the first one's rows."""
        one.run(*self.write_capture(), *more)
        one.wait_for("Available samples")
        return one.keys("Enter")

    def test_the_first_screen_is_what_stdio_prints(self):
        """Rows, percentages and order, of every capture."""
        compared = 0
        captures = sorted(CAPTURES.glob("*.data"))
        more = os.environ.get("TACHO_MORE_CAPTURES")
        captures += sorted(programs.Path(more).glob("*.data")) if more else []
        for capture in captures:
            options = ["-i", capture, "--symfs", GOLDEN / "symfs", "--kallsyms", CAPTURES / "kallsyms", "--buildid-dir", "none"]
            text = self.tacho("report", "--stdio", *options, status=None).stdout.decode()
            first = text.split("\n\n\n")[0] if "\n\n\n" in text else text
            expected = rows_of(first)
            if not expected:
                continue
            with self.subTest(capture=capture.name):
                one = self.screen(500, 60)
                one.run("report", *options)
                shown = one.wait_for(r"^(h: help|  Available samples|  \d+\S* )")
                if "Available samples" in shown:
                    one.keys("Enter")
                    one.wait_until_gone("Available samples")
                lines = one.lines()
                self.assertIn(first.split("# Samples: ")[1].split("\n")[0], lines[0])
                got = [line[1:].rstrip() for line in lines[2:59]]
                # The screen aligns columns by width, the text by bytes, as perf.
                aligned = [line if line.isascii() else " ".join(line.split()) for line in got[:len(expected)]]
                self.assertEqual(aligned, [line if line.isascii() else " ".join(line.split()) for line in expected[:57]])
                compared += 1
                one.close()
        self.assertGreaterEqual(compared, 20)

    def test_call_graphs_open_and_close(self):
        for width, height in SIZES:
            with self.subTest(width=width):
                one = self.open(self.screen(width, height))
                shown = one.wait_for(r"^\+  100\.00%     0\.00%  spin     program +\[\.\] top")
                self.assertIn("Samples: 9  of event 'cpu-clock', Event count (approx.): 9000", shown)
                one.keys("Enter")
                one.wait_for(r"^-  100\.00%.*top\n   - top\n      - 66\.67% middle|^   [+-] top")
                one.keys("e", "e")
                one.wait_for(r"^   - top\n +- 66\.67% middle\n +leaf\n +33\.33% other\n")
                one.keys("Left")
                one.wait_until_gone("   - top")
                one.keys("Right")
                one.wait_for(r"^   \+ top$")
                one.keys("Down", "+")
                one.wait_for(r"^   - top$")
                one.keys("C")
                one.wait_until_gone(r"^   . top$")
                one.keys("E")
                one.wait_for(r"- 66\.67% middle")
                one.close()

    @at_both_sizes
    def test_a_filter_works_while_it_is_typed(self, width, height):
        one = self.open(self.screen(width, height))
        one.wait_for(r"\] other")
        one.keys("/", "l", "e")
        one.wait_until_gone(r"\] other")
        self.assertIn("Symbol to show: le", one.wait_for("66.67%    66.67%"))
        one.keys("Enter")
        one.wait_for(r"Symbol: le")
        one.keys("Escape")
        one.wait_for(r"\] other")
        one.keys("/", "z", "z")
        one.wait_for("no rows")
        one.keys("Escape")
        one.wait_for(r"\] other")

    @at_both_sizes
    def test_zooms_are_perfs(self, width, height):
        one = self.open(self.screen(width, height))
        one.wait_for(r"\] top")
        one.keys("t")
        one.wait_for(", Thread: spin")
        one.keys("d")
        one.wait_for(", Thread: spin, DSO: program")
        one.keys("Escape")
        one.wait_until_gone(", DSO: program")
        one.keys("t")
        one.wait_until_gone(", Thread: spin")
        one.keys("k")
        one.wait_for("no rows")
        one.keys("Escape", "Escape", "Escape", "Escape")
        one.wait_for("Do you really want to exit")
        one.keys("Escape")
        one.wait_until_gone("Do you really want to exit")
        one.keys("Escape")
        one.wait_for("Do you really want to exit")
        one.keys("y")
        one.wait_for(r"^\$ *$")

    @at_both_sizes
    def test_events_sort_keys_weights_and_limits(self, width, height):
        one = self.open(self.screen(width, height))
        one.wait_for("of event 'cpu-clock'")
        one.keys("Tab")
        one.wait_for("Samples: 1  of event 'page-faults'")
        one.keys("BTab")
        one.wait_for("of event 'cpu-clock'")
        one.keys("o", "C-u")
        one.type("sym")
        one.wait_for(r"^  Children      Self  Symbol")
        one.keys("o", "C-u")
        one.type("cpu,sym")  # the profile has no CPUs: the capture is read again
        one.wait_for("Available samples|CPU")
        one.keys("Enter")
        one.wait_for(r"Children +Self +CPU +Symbol")
        one.keys("o", "C-u")
        one.type("srcline")
        one.wait_for(r"66\.67%    66\.67%  code\.c:3$")
        one.keys("o", "C-u")
        one.type("cpu,sym")
        one.wait_for(r"Children +Self +CPU +Symbol")
        one.keys("o", "C-u")
        one.type("nokey")
        one.wait_for("there is no key 'nokey'")
        one.keys(">")
        one.wait_for("sorted by Self")
        self.assertRegex(one.lines()[2], r"66\.67%    66\.67%.*leaf")
        one.keys("L", "BSpace")
        one.type("50")
        one.wait_until_gone(r"\] other")
        one.keys("W")
        one.wait_for("Event count .approx..: 9,.*by samples")

    def test_code_is_annotated(self):
        for width, height in SIZES:
            with self.subTest(width=width):
                one = self.open(self.screen(width, height))
                one.wait_for(r"\] top")
                one.keys("/", "l", "e", "a", "f", "Enter", "a")
                shown = one.wait_for(r"^ 100\.00 │ ")
                self.assertIn("leaf  /opt/program  [Percent: local period]", shown)
                self.assertRegex(shown, r"│ +\d+ .*for \(int i = 0; i < 50; i\+\+\)")
                one.keys("s")
                one.wait_until_gone(r"for \(int i = 0")
                one.keys("t")
                one.wait_for(r"^ +Period │")
                one.keys("t")
                one.wait_for(r"^ Samples │")
                one.keys("t", "/")
                one.type("ret")
                one.keys("Enter")
                one.wait_for("the caller is not known")
                one.keys("q")
                one.wait_for("h: help")
                one.close()

    def test_keys_of_annotated_code_are_perfs(self):
        """Each key of perf's annotate browser: what appears or disappears on the screen."""
        one = self.open(self.screen(100, 40))
        one.wait_for(r"\] top")
        one.keys("/", "l", "e", "a", "f", "Enter", "a")
        one.wait_for(r"^ 100\.00 │")
        one.keys("l")  # the file and line at the cursor
        hot, loop, jump = r"code\.c:3$", r"code\.c:4$", r"code\.c:4$"
        one.wait_for(hot)
        table = (  # keys, text that appears, text that disappears
            (["Down", "Down"], loop, hot),
            (["H"], hot, loop),                                     # the hottest line
            (["Down", "Down"], loop, hot),
            (["Tab"], hot, loop),                                   # the next hot line: there is only one
            (["Down", "Down"], loop, hot),
            (["BTab"], hot, loop),
            (["s"], None, r"for \(int i = 0"),                      # source off
            (["s"], r"for \(int i = 0", None),
            (["J"], r"│ *1 +8 ┌►", None),                             # number of jumps to the line
            (["J"], None, r"│ *1 +8 ┌►"),
            (["j"], None, "┌►"),                                    # arrows
            (["j"], "┌►", None),
            (["o"], None, r"│ +8 ┌►"),                              # offsets
            (["o"], r"│ +8 ┌►", None),
            (["f"], r"│ *1131 ┌►", r"│ +8 ┌►"),                     # addresses of the file
            (["f"], r"│ +8 ┌►", r"│ *1131 ┌►"),
            (["f"], r"↑ j\w+ +1131 <leaf\+0x8>", r"↑ j\w+ +8$"),    # of targets too
            (["f"], r"↑ j\w+ +8$", "↑ j.* <leaf"),
            (["k"], None, r"│ +4 +for"),                            # line numbers
            (["k"], r"│ +4 +for", None),
            (["t"], "Period │", "Percent │"),
            (["t"], "Samples │", "Period │"),
            (["t"], "Percent │", "Samples │"),
            (["p"], r"^ +66\.67 │", r"^ 100\.00 │"),                # of all
            (["p"], r"^ 100\.00 │", r"^ +66\.67 │"),
            (["b"], r"local hits\]", r"local period\]"),
            (["b"], r"local period\]", r"local hits\]"),
            (["O"], "offsets of jump targets$", r"│ +3 +movl"),       # of jump targets only
            (["O"], "offsets of jump targets and calls$", None),
            (["O"], r"│ +3 +movl", None),                             # of all
            (["c"], "the capture has no branch stacks", None),
            (["P"], "wrote leaf.annotation$", None),
            (["r"], "Views of these samples", None),
            (["q"], None, "Views of these samples"),
            (["/", "j", "n", "e", "Enter"], jump, None),
            (["/", "C-u", "z", "z", "Enter"], "zz", None),          # not found: a message
            (["?", "C-u", "m", "o", "v", "l", "Enter"], hot, None),  # upwards
            (["/", "C-u", "a", "d", "d", "Enter"], loop, hot),
            (["Home", "n"], loop, None),
            (["l"], "q: back", loop),                               # the key hints again
            (["h"], "^Annotated code", "Percent │"),
            (["q"], "Percent │", "^Annotated code"),
            ([">"], r"^other  /opt/program", r"^leaf  /opt/program"),
            (["<"], r"^leaf  /opt/program", r"^other  /opt/program"),
            (["q"], "h: help", "Percent │"),
        )
        for keys, shown, gone in table:
            with self.subTest(keys=keys):
                if gone is not None:
                    self.assertRegex(one.text(), re.compile(gone, re.M))
                one.keys(*keys)
                if shown is not None:
                    one.wait_for(shown)
                if gone is not None:
                    one.wait_until_gone(gone)
        # Enter follows a call, and at a return goes back; Left and Esc leave.
        one.keys("Escape", "a")
        one.wait_for(r"Percent|No samples for the")
        one.keys("Escape")

    @at_both_sizes
    def test_annotate_opens_the_code_by_itself(self, width, height):
        """As perf annotate: the named function, or the hottest one; q quits."""
        words = ["annotate", *self.write_capture()[1:]]
        one = self.screen(width, height)
        one.run(*words, "--event", "cpu-clock")
        shown = one.wait_for(r"^ 100\.00 │ ")
        self.assertIn("leaf  /opt/program  [Percent: local period]", shown)
        one.keys("O")
        one.wait_for("^offsets of jump targets$")
        self.assertRegex(one.text(), r"│ +8 ┌►")
        self.assertNotRegex(one.text(), r"│ +3 +movl")
        one.keys("O", "O", "c")
        one.wait_for("the capture has no branch stacks")
        one.keys(">")
        one.wait_for(r"^other  /opt/program")
        one.keys("P")
        one.wait_for("^wrote other.annotation$")
        one.keys("P")
        one.wait_for("^wrote other.annotation.1$")
        text = self.tacho(*words, "--event", "cpu-clock", "other").stdout.decode()
        for name in ("other.annotation", "other.annotation.1"):
            self.assertEqual((self.folder / name).read_text(), text)
            (self.folder / name).unlink()
        one.keys("r")
        one.wait_for("Samples of other")
        one.keys("Enter")
        one.wait_for("^1 of 3 ")
        one.keys("q")
        one.wait_for(r"^other  /opt/program")
        one.keys("q")
        one.wait_for(r"^\$ *$")
        one.type("clear")
        one.run(*words, "leaf")  # with two events a menu is first, as in a report
        one.wait_for("Available samples")
        one.keys("Down", "Enter")
        one.wait_for(r"^leaf  /opt/program")
        one.keys("q")
        one.wait_for("Available samples")
        one.keys("q")
        one.wait_for(r"^\$ *$")
        one.type("clear")
        one.run(*words, "--event", "cpu-clock", "other")
        one.wait_for(r"^other  /opt/program")
        one.keys("<")  # a named function is only where it begins
        one.wait_for(r"^leaf  /opt/program")
        for key in "TB%":
            one.keys(key)
            one.wait_for("no such key here" if key == "%" else f"^{key}: .* are not shown")
        one.keys("q")
        one.wait_for(r"^\$ *$")
        one.run(*words, "nowhere")
        one.wait_for("no sample is in a function 'nowhere'")

    def test_annotate_prints_text_elsewhere(self):
        words = ["annotate", *self.write_capture()[1:], "--event", "cpu-clock"]
        for more in (["--stdio"], ["--stdio2"], ["--no-pager"], ["--json"]):
            one = self.screen(120, 60)
            one.run(*words, *more)
            one.wait_for({"--json": r'"symbol":"leaf"', "--stdio": "Source code & Disassembly of program"}.get(
                more[0], r"^# leaf \(/opt/program\): 66\.67 % of cpu-clock"))
            self.assertEqual(one.tmux("display-message", "-p", "#{alternate_on}").strip(), "0")
            one.close()
        one = self.screen(120, 60, TERM="dumb")
        one.run(*words)
        one.wait_for("TERM=dumb has no cursor to move: text is printed")
        one.wait_for("# leaf")
        self.assertIn(b"# leaf", self.tacho(*words).stdout)
        self.assertIn(b"needs a terminal", self.tacho(*words, "--tui", status=1).stderr)

    @at_both_sizes
    def test_rows_are_written_and_other_captures_are_read(self, width, height):
        one = self.open(self.screen(width, height))
        one.wait_for(r"\] top")
        one.keys("e", "P")
        one.wait_for("^wrote perf.hist.0$")
        self.assertRegex((self.folder / "perf.hist.0").read_text(), r"(?s)^Samples: 9  of event 'cpu-clock'.*\n  Children +Self .*\n"
                         r"-  100\.00% .* top\n   - top\n.*\n\+ +66\.67%")
        one.keys("C", "P")
        one.wait_for("^wrote perf.hist.1$")
        self.assertNotIn("- top", (self.folder / "perf.hist.1").read_text())
        shutil.move(self.folder / "perf.hist.0", self.folder / "perf.hist.0.kept")  # a free number is taken
        one.keys("P")
        one.wait_for("^wrote perf.hist.0$")
        for name in ("perf.hist.0", "perf.hist.1", "perf.hist.0.kept"):
            (self.folder / name).unlink()
        one.keys("s")
        one.wait_for("no other capture is in the working directory")
        shutil.copy(CAPTURES / "threads.data", self.folder / "another.data")
        one.keys("s")
        one.wait_for("Another capture in this directory")
        self.assertNotIn("code.c", one.text())
        one.keys("Enter")
        one.wait_for("^rows are of another.data$")
        self.assertNotRegex(one.text(), r"\] top")
        (self.folder / "broken.data").write_bytes(b"PERFILE2" + bytes(200))
        one.keys("s", "Enter")
        one.wait_for("broken.data: ")
        one.keys("s", "Down", "Enter")
        one.wait_for("^rows are of perf.data$")
        one.wait_for(r"\] top")
        for name in ("another.data", "broken.data"):
            (self.folder / name).unlink()

    def test_rows_that_cannot_be_written_leave_no_memory(self):
        words = self.write_capture()
        one = self.screen()
        one.type("mkdir gone; cd gone; rmdir ../gone")
        one.run(*words[:2], self.folder / words[2], *words[3:], "-i", self.folder / "perf.data")
        one.wait_for("Available samples")
        one.keys("Enter", "P")
        one.wait_for("^P: perf.hist.0: No such file or directory")
        [program] = screen.children(one.shell())
        [memory] = [file for file in Path(f"/proc/{program}/fd").iterdir() if os.readlink(file).startswith("/memfd:tacho ")]
        self.assertEqual(memory.stat().st_size, 0)

    def test_calls_are_followed_and_left(self):
        one = self.open(self.screen(100, 40), "--no-children", "--sort", "sym")
        for leave in ("Left", "Escape", "q"):
            one.wait_for(r"\] leaf")
            one.keys("a")
            one.wait_for(r"^leaf  /opt/program")
            one.keys("/", "j", "n", "e", "Enter", "Enter")  # to where the jump goes
            one.keys("l")
            one.wait_for(r"code\.c:4$")
            one.keys("/", "C-u", "r", "e", "t", "q", "Enter", "Enter")
            one.wait_for("the caller is not known")
            one.keys(leave)
            one.wait_until_gone("Percent")

    def test_code_is_of_the_module_of_the_row(self):
        """Another module has a function of that name, with samples."""
        words = self.write_capture()
        shutil.copy(self.folder / "root/opt/program", self.folder / "root/opt/other")
        other = BASE + 0x10000000
        at = {line.split()[-1]: int(line.split()[0], 16) for line in
              self.run_program("nm", self.folder / "root/opt/program").stdout.decode().splitlines() if len(line.split()) == 3}
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        capture.named("spin").mapped(made.PID, BASE, 0x100000, 0, "/opt/program").mapped(made.PID, other, 0x100000, 0, "/opt/other")
        for name in ("leaf", "middle"):
            for _ in range(5):
                capture.sample(ip=BASE + at[name] + 4, chain=[made.CONTEXT_USER, BASE + at[name] + 4, other + at["middle"] + 9])
        (self.folder / "perf.data").write_bytes(capture.file())
        one = self.screen(100, 40)
        one.run(*words, "--children", "--sort", "dso,sym").wait_for(r"100\.00% .*other .*middle")
        one.keys("a").wait_for('No samples for the "middle" symbol')
        one.keys("Down", "a").wait_for(r"^(middle|leaf)  /opt/program")

    def test_a_terminal_may_be_wider_than_any_screen(self):
        words = self.write_capture()
        one = self.screen(2010, 24)
        one.run(*words, "--event", "cpu-clock", "--no-children").wait_for(r"\] leaf")
        one.keys("a").wait_for("^leaf  /opt/program")

    def test_a_call_leads_to_a_function_that_was_not_named(self):
        words = self.write_capture(function_samples=((6, "leaf"), (3, "middle")))[1:]
        one = self.screen()
        one.run("annotate", *words, "--event", "cpu-clock", "middle")
        one.wait_for("^middle  /opt/program")
        one.keys("/", "c", "a", "l", "l", "Enter", "Enter")
        one.wait_for("^leaf  /opt/program")
        one.keys("q")
        one.wait_for("^middle  /opt/program")
        one.keys("q")
        one.wait_for(r"^\$ *$")

    def test_a_group_is_sorted_by_each_event(self):
        capture = CAPTURES / "group.data"
        one = self.screen(160, 40)
        one.run("report", "-i", capture, "--symfs", GOLDEN / "symfs", "--buildid-dir", "none", "--no-children", "-g", "none")
        one.wait_for("h: help")
        orders = []
        for number in range(3):
            one.keys(str(number))
            text = self.tacho("report", "--stdio", "-i", capture, "--symfs", GOLDEN / "symfs", "--buildid-dir", "none", "--no-children",
                              "-g", "none", "--group-sort-idx", number).stdout.decode()
            expected = rows_of(text)[:36]
            self.assertTrue(expected)
            screen.wait_until(lambda: [line[1:].rstrip() for line in one.lines()[2:2 + len(expected)]] == expected)
            orders.append(expected)
        self.assertGreater(len(set(map(tuple, orders))), 1)
        one.keys("9")
        one.wait_for("no such event in the group")

    def test_functions_of_a_group_have_room(self):
        """Where a group's percentages take all of the width, only those with callees are shown."""
        words = ["report", "-i", CAPTURES / "group.data", "--symfs", GOLDEN / "symfs", "--buildid-dir", "none"]
        one = self.screen(80, 24)
        one.run(*words)
        shown = one.wait_for(r"^ +Children  Command +Share\S+ +Symbol +$|^ +Children  Command +Share.*Symbol$")
        self.assertRegex(shown, r"(?m)^\+ .*\[[.k]\] \S{14,}")
        one.resize(200, 60)
        one.wait_for(r"^ +Children +Self +Command +Shared Object +Symbol")
        one.close()
        one = self.screen(40, 24)  # one event, a narrow terminal
        one.run("report", "-i", CAPTURES / "comm.data", *words[3:])
        shown = one.wait_for(r"^  Children  Command  Symbol *$")
        self.assertTrue(shown.split("\n")[23].endswith("q: quit"), shown)
        functions = re.findall(r"\[.\] (\S+) *$", shown, re.M)
        self.assertLessEqual({"burn", "body"}, set(functions))
        self.assertGreaterEqual(max(map(len, functions)), 14, shown)  # an address, cut in the middle

    def test_the_page_has_each_key_of_perf(self):
        """docs/terminal.md and the help page have every key of perf's tables."""
        text = (programs.ROOT / "docs" / "terminal.md").read_text()
        tables = {"## Keys of the list": "Up Down PgUp PgDn Space Home End Right Left h ? F1 q Ctrl-C Esc Enter m Tab Shift-Tab + e c E C a"
                                         " d t S k / F L H V i P r s D 0 9",
                  "## Keys of annotated code": "Tab Shift-Tab H Enter Right < > / ? n s o O j J k l t p b c f P r q Esc Left"}
        one = self.open(self.screen(120, 200))
        one.keys("?")
        help_page = one.wait_for("^The list of rows and call graphs")
        helped = {"## Keys of the list": help_page.split("The list of rows")[1].split("Annotated code")[0],
                  "## Keys of annotated code": help_page.split("Annotated code")[1].split("Two captures")[0]}
        for title, keys in tables.items():
            rows = [line.split(" | ") for line in text.split(title)[1].split("\n## ")[0].splitlines() if line.startswith("| `") or
                    re.match(r"\| [A-Z]", line)]
            named = {key.strip("`") for row in rows for key in re.split(r"[ ,]+", row[0].strip("| "))}
            shown = {key for line in helped[title].splitlines() for key in line[2:21].split()}
            for key in keys.split():
                self.assertIn(key, named, title)
                if key not in ("0", "9", "Space", "Home", "End"):  # listed differently: "0-9", after PgUp PgDn
                    self.assertIn(key, shown, title)

    @at_both_sizes
    def test_callers_and_callees(self, width, height):
        one = self.open(self.screen(width, height))
        one.wait_for(r"\] top")
        one.keys("/", "m", "i", "d", "Enter", "x")
        one.wait_for(r"^- +66\.67%  callers of middle\n +middle\n +top\n- +66\.67%  callees of middle\n +middle\n +leaf")
        one.keys("Escape")
        one.wait_for("Children")

    def test_a_flame_graph_in_characters(self):
        for width, height in SIZES:
            with self.subTest(width=width):
                one = self.open(self.screen(width, height))
                one.wait_for(r"\] top")
                one.keys("f")
                shown = one.wait_for(r"^│all *\n│top *\n│middle +│other *\n│leaf *$")
                self.assertEqual(shown.split("\n")[3].index("│other"), width * 6 // 9)
                one.keys("Down", "Down")
                one.wait_for(r"^middle: 66\.67% of all, 0\.00% self")
                one.keys("Right", "Enter")
                one.wait_for(r"other: 33\.33% of all, 33\.33% self, 100\.00% of the zoom")
                one.wait_until_gone("│middle")
                one.keys("a")
                one.wait_for(r"other  /opt/program")
                one.keys("q", "q")
                one.wait_for("Children")
                one.close()

    def test_a_time_is_chosen_on_a_histogram(self):
        """leaf has the first six samples, other the three after them."""
        for width, height in SIZES:
            with self.subTest(width=width):
                one = self.open(self.screen(width, height))
                one.wait_for(r"\] other")
                one.keys("T")
                shown = one.wait_for(r"^Samples over time: 1 at 5\.\d\d\d s")
                self.assertIn("█", shown)
                self.assertIn("Space: mark  Enter: count this range", shown)
                one.keys(*["NPage"] * (width // 10), "Space", *["PPage"] * (width * 3 // 80), "Enter")
                one.wait_for(r"of event 'cpu-clock' \(5\.\d{3} to 5\.\d{3} s\)")
                one.wait_until_gone(r"\] leaf")
                self.assertRegex(one.text(), r"100\.00%   100\.00%.*\] other")
                self.assertNotIn("IPC", one.text())  # the same columns as before
                one.keys("BSpace")
                one.wait_for(r"\] leaf")
                one.wait_until_gone(r" s\)")
                one.keys("Escape")
                one.wait_until_gone("Samples over time")
                one.keys("Down", "Down", "T")
                one.wait_for("Samples over time")
                one.click(height - 3, 0)
                one.wait_for(r"^Samples over time: 1 at 5\.0")
                one.keys("q")
                one.wait_until_gone("Samples over time")
                one.keys("q")
                one.wait_for(r"^\$ *$")
                one.close()

    def write_large(self, last_event=False):
        """A capture of 300 MB; `last_event`: its last sample is of a second event."""
        self.write_capture()
        events = [made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)]
        if last_event:
            events.append(made.Event("page-faults", made.SOFTWARE, 2, made.USUAL | made.CALLCHAIN))
        capture = made.Capture(*events).started()
        capture.named("spin").mapped(made.PID, BASE, 0x100000, 0, "/opt/program")
        before, time_of_all = len(capture.data), capture.time
        for i in range(500):
            chain = [BASE + 16 * (i * j % 3000 + 1) for j in range(60)]
            capture.sample(ip=chain[0], chain=[made.CONTEXT_USER, *chain])
            capture.time = time_of_all
        samples = capture.data[before:] + made.record(68, 0, b"")  # FINISHED_ROUND
        capture.data += samples * (300_000_000 // len(samples))
        if last_event:
            capture.sample(event=1, ip=BASE + 16, chain=[made.CONTEXT_USER, BASE + 16])
        (self.folder / "large.data").write_bytes(capture.file())

    def test_a_reading_that_is_stopped_leaves_the_rows_of_before(self):
        self.write_large()
        one = self.screen(120)
        one.run("report", "-i", "large.data", "--symfs", "root", "--buildid-dir", "none")
        one.wait_for("^h: help  Enter: open")
        before = one.lines()[:-2]
        one.keys("o", "C-u")
        one.tmux("send-keys", "-l", "cpu,sym")
        one.tmux("send-keys", "Enter", "Escape")  # the keys are read again for cpu
        one.wait_for("^reading was stopped: rows are as before")
        self.assertEqual(one.lines()[:-2], before)
        one.keys("End", "o", "C-u")
        one.type("sym")  # all rows of the profile are there
        one.wait_for(r"^  Children +Self  Symbol")
        one.keys("q")
        one.wait_for(r"^\$ *$")

    def test_rows_are_shown_while_it_is_read(self):
        self.write_large(last_event=True)
        one = self.screen(120)
        one.run("report", "-i", "large.data", "--symfs", "root", "--buildid-dir", "none")
        # Reading takes less than half a second, so the reader is slowed down, as by a slow disk.
        shell, end, shown = one.shell(), time.monotonic() + screen.PATIENCE, ""
        while not re.search(r"\d+ of \d+ MB read", shown) and time.monotonic() < end:
            readers = [reader for report in screen.children(shell) for reader in screen.children(report)
                       if screen.name_of(report) == screen.name_of(reader) == "tacho-report"]
            for reader in readers:
                os.kill(reader, signal.SIGSTOP)
            time.sleep(0.1 if readers else 0)
            shown = one.text() if readers else ""
            for reader in readers:
                os.kill(reader, signal.SIGCONT)
            time.sleep(0.005)
        self.assertRegex(shown, r"\d+ of \d+ MB read  h: help  Esc: stop reading")
        self.assertRegex(shown, r"(?m)^[+ ] +\d+\.\d\d% .* spin ")
        self.assertNotIn("Available samples", shown)
        shown = one.wait_for("Available samples")  # when all is read, so that it has all events and their counts
        self.assertRegex(shown, r"1  page-faults")
        one.keys("Enter", "q")
        one.wait_for(r"^\$ *$")

    @at_both_sizes
    def test_pages_and_menu(self, width, height):
        one = self.open(self.screen(width, height))
        one.wait_for("h: help")
        one.keys("?")
        one.wait_for("The list of rows and call graphs")
        one.keys("q", "i")
        one.wait_for("# captured on")
        one.keys("q", "m")
        one.wait_for("Zoom into spin")
        one.keys("Escape", "%")
        one.wait_for("no such key here; h: help")

    @at_both_sizes
    def test_the_mouse_opens_and_moves(self, width, height):
        one = self.open(self.screen(width, height))
        one.wait_for(r"^\+.*\] top")
        one.click(2, 0)
        one.wait_for(r"^   \+ top$")
        one.click(3, 3)
        one.wait_for(r"^   - top$")
        one.click(2, 0)
        one.wait_until_gone(r"^   - top$")
        one.click(5, 5, 65)
        time.sleep(0.1)
        self.assertRegex(one.text(), r"\] top")

    @at_both_sizes
    def test_it_is_drawn_anew_when_the_size_changes(self, width, height):
        one = self.open(self.screen(width, height))
        one.wait_for(r"\] top")
        for width, height in ((40, 10), (200, 60), (10, 3), (80, 24)):
            one.resize(width, height)
            one.wait_for("too small" if width < 20 else r"Children")
        one.keys("e")
        for step in range(30):  # while it draws
            one.keys("Down" if step % 3 else "E").resize(60 + step, 20 + step % 7)
        one.resize(80, 24)
        one.wait_for("h: help")

    def test_whatever_ends_it_leaves_the_terminal_as_it_was(self):
        one = self.screen()
        before = one.state()
        words = self.write_capture()

        def processes():
            report = screen.children(one.shell())[0]
            return report, screen.children(report)[0]

        def kill(number, of):
            os.kill(processes()[of], number)

        ends = {
            "q": lambda: one.keys("Enter", "q"),
            "Ctrl-C": lambda: one.keys("C-c"),
            "TERM": lambda: kill(signal.SIGTERM, 0),
            "HUP": lambda: kill(signal.SIGHUP, 0),
            "SEGV": lambda: kill(signal.SIGSEGV, 0),
            "worker killed": lambda: kill(signal.SIGKILL, 1),
        }
        for name, end in ends.items():
            with self.subTest(end=name):
                one.type("clear")
                one.run(*words)
                one.wait_for("Available samples")
                self.assertNotEqual(one.tmux("display-message", "-p", "#{alternate_on}").strip(), "0")
                end()
                shown = one.wait_until_gone("Available samples|h: help")
                shown = one.wait_for(r"^(.*)\$ *$")
                if name == "worker killed":
                    shown = one.wait_for("^tacho: ")  # the prompt before the command may be seen first
                    self.assertEqual(re.findall(r"^tacho: .*", shown, re.MULTILINE),
                                     ["tacho: the process that reads the files died: Killed"])
                one.type("clear")
                self.assertEqual(one.state(), before)

    @at_both_sizes
    def test_it_stops_and_goes_on(self, width, height):
        one = self.open(self.screen(width, height))
        one.wait_for(r"\] top")
        one.keys("C-z")
        one.wait_for("Stopped")
        self.assertEqual(one.tmux("display-message", "-p", "#{alternate_on}").strip(), "0")
        one.type("fg")
        one.wait_for(r"\] top")

    @at_both_sizes
    def test_colours_and_none(self, width, height):
        for kind in ("xterm-256color", "xterm", "linux"):  # the latter two have 8 colours
            one = self.open(self.screen(width, height, TERM=kind))
            one.wait_for(r"\] top")
            self.assertRegex(one.text("-e"), r"\033\[[0-9;]*(31|38;5;1)m", kind)
            one.close()
        one = self.open(self.screen(width, height, NO_COLOR="1"))
        one.wait_for(r"\] top")
        self.assertNotRegex(one.text("-e"), r"\033\[[0-9;]*(3[0-7]|4[0-7])m")
        one.close()
        one = self.open(self.screen(width, height, TERM="vt100"))
        one.wait_for(r"\] top")

    def test_dumb_terminals_and_pipes_get_text(self):
        words = self.write_capture()
        one = self.screen(80, 100, TERM="dumb")
        one.run(*words)
        one.wait_for("TERM=dumb has no cursor to move: text is printed")
        one.wait_for("# Samples: 9  of event")
        one.run("tui", "perf.data")
        one.wait_for("TERM=dumb has no cursor to move; tacho report --stdio prints text")
        self.assertIn(b"# Samples: 9  of event", self.tacho(*words).stdout)
        self.assertIn(b"needs a terminal", self.tacho("tui", "perf.data", status=1).stderr)
        self.assertIn(b"the screen shows a file, not a pipe", self.tacho("tui", "-", status=1).stderr)
        one.close()
        one = self.screen(80, 60)
        one.run(*words, "--stdio", "--no-pager")
        one.wait_for(r"# Samples: 1  of event")
        one.run("report", "--tui", "--json")
        one.wait_for("--json is for the text")
        one.run("tui", "nowhere.data")
        one.wait_for("'nowhere.data' is no file")

    @at_both_sizes
    def test_hostile_names(self, width, height):
        """Escape sequences, direction overrides, wide characters, and a name of 10,000 characters."""
        one = self.screen(width, height)
        before = one.state()
        for name in ("\033]0;title\007\033[2J", "\u202eevil\u200b", "名前のプログラム", "x" * 10_000, "e\u0301" * 40):
            with self.subTest(name=name[:8]):
                words = self.write_capture(name=name)
                one.run(*words)
                one.wait_for("Available samples")
                one.keys("Enter")
                shown = one.wait_for(r"\] top")
                self.assertEqual(len(shown.split("\n")), height + 1)
                self.assertNotIn("\u202e", shown)
                one.keys("e", "w", "Right", "Right", "w", "t", "m")
                one.wait_for("Zoom out of")
                one.keys("Escape", "t", "l")
                shown = one.wait_for("^1 of 9 ")
                self.assertEqual(len(shown.split("\n")), height + 1)
                self.assertNotIn("\u202e", shown)
                one.keys("Enter")
                one.wait_for("Call chain, callers below")
                one.keys("q", "q", "M")
                one.wait_for("offset in each second")
                one.keys("Enter")
                one.wait_for("Enter: count this box")
                one.keys("q", "q")
                one.wait_for(r"^\$ *$")
                one.type("clear")
        self.assertEqual(one.state(), before)


if __name__ == "__main__":
    programs.main()
