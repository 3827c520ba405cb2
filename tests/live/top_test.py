#!/usr/bin/env python3
"""tacho top through tmux: it shows what runs, its keys do what the help says, w writes the samples, and however it ends
it restores the terminal and leaves no process or file."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import programs
import screen

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile long sink;
__attribute__((noinline)) long top_leaf(long x) { for (int i = 0; i < 3000; i++) x = x * 31 + (x >> 3); return x; }
__attribute__((noinline)) long middle(long x) { return top_leaf(x) + top_leaf(x + 1); }
__attribute__((noinline)) long other(long x) { for (int i = 0; i < 2000; i++) x = x * 7 + 1; return x; }
int main(int count, char** words) {
  time_t end = time(0) + atoi(words[1]);
  puts("printed by the command");
  while (time(0) < end) {  /* a third of a processor: other tests run beside */
    for (int i = 0; i < 100; i++) sink = middle(sink) + other(sink);
    nanosleep(&(struct timespec){0, 2000000}, 0);
  }
  return 5;
}
"""


def descendants(parent):
    found = []
    try:
        for child in screen.children(parent):
            found += [child, *descendants(child)]
    except FileNotFoundError:
        pass
    return found


@screen.needs_tmux
def rows_of(one):
    """The lines of a screen below the head of CPU loads, which ends in "37 % of 2 CPUs: user 25 %  kernel 12 %"."""
    lines = one.lines()
    head = next((number + 1 for number, line in enumerate(lines) if re.search(r"% of \d+ CPUs?: user", line)), 0)
    return lines[head:]


class Top(programs.Scratch):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or shutil.which("cc") is None:
            self.skipTest("needs root and a C compiler")
        (self.folder / "spin.c").write_text(SOURCE)
        self.run_program("cc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", "spin", "spin.c")

    def screen(self, width=80, height=24, **variables):
        one = screen.Screen(self.folder, width, height, **variables)
        self.addCleanup(one.close)
        return one

    def spin(self, seconds=120):
        load = subprocess.Popen([self.folder / "spin", str(seconds)], stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (load.kill(), load.wait()))
        return load.pid

    def recorders(self, one):
        """Processes of the command in the shell: recorder, view, the view's worker."""
        return descendants(one.shell())

    def assert_gone(self, pids):
        end = time.monotonic() + screen.PATIENCE
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            self.assertLess(time.monotonic(), end, "processes are left")
            time.sleep(0.05)

    def test_functions_of_a_process(self):
        pid = self.spin()
        for width, height in ((80, 24), (200, 60)):
            with self.subTest(width=width):
                one = self.screen(width, height)
                one.run("top", "-d", "0.5", "-g", "-p", pid)
                one.wait_for(r"\] top_leaf")
                self.assertRegex(one.lines()[0], r"^ +\d+ \[.*\] +\d+ %")  # the CPUs that it ran on
                self.assertRegex(rows_of(one)[0], r"^Samples: .* of event 'cpu-clock'.*, last \d+ s$")
                self.assertIn("Shared Object", rows_of(one)[1])
                one.wait_for(r"^\+.* spin +\[\.\] middle")
                one.keys("/", "m", "i", "d", "Enter", "e")
                one.wait_for(r"^ +([+-] )?top_leaf$")
                time.sleep(1.2)  # two refreshes later the graph is still open, the filter still set
                self.assertRegex(one.text(), r"(?m)^ +([+-] )?top_leaf$")
                one.keys("Escape")
                one.wait_for(r"\] other")
                one.keys("/", "l", "e", "a", "f", "Enter")
                one.wait_until_gone(r"\] other")
                one.keys("a")
                one.wait_for(r"Percent")
                time.sleep(1.2)
                self.assertIn("top_leaf  ", rows_of(one)[0])
                one.keys("q", "q")
                one.wait_for(r"^\$ *$")
                one.close()

    def test_what_runs_most_is_first_without_g(self):
        """As in perf top: rows count themselves, and have their callers below. With -g or --children they count callees."""
        pid = self.spin()
        for width, height in ((80, 24), (200, 60)):
            with self.subTest(width=width):
                one = self.screen(width, height)
                one.run("top", "-d", "0.5", "-p", pid)
                one.wait_for(r"^  Overhead  Shared Object +Symbol")
                one.wait_for(r"^\+ +\d\d\.\d\d%  spin +\[\.\] top_leaf")
                screen.wait_until(lambda: rows_of(one)[2].endswith("] top_leaf"))  # the first samples may be of another
                one.keys("f", "e")
                one.wait_for(r"^ +top_leaf\n +middle\n +main$|^   [-+] top_leaf")
                one.keys("q")
                one.wait_for(r"^\$ *$")
                for words in (["-g"], ["--children"], ["--call-graph", "fp"]):
                    one.type("clear")
                    one.run("top", "-d", "0.5", "-p", pid, *words)
                    one.wait_for(r"^  Children      Self  Shared Object +Symbol")
                    one.wait_for(r"^\+ +\d+\.\d\d% +\d\.\d\d%  spin +\[\.\] main")
                    one.keys("q")
                    one.wait_for(r"^\$ *$")
                one.close()

    def test_counts_freeze_and_begin_anew(self):
        one = self.screen(120)
        one.run("top", "-d", "0.3", "-F", "999", "-p", self.spin())
        count = lambda: rows_of(one)[0].split("Event count")[0]
        one.wait_for(r"\] top_leaf")
        one.keys("f")
        one.wait_for(", frozen")
        frozen = count()
        time.sleep(1.5)
        self.assertEqual(count(), frozen)
        one.keys("f")
        one.wait_until_gone(", frozen")
        end = time.monotonic() + screen.PATIENCE
        while count() == frozen and time.monotonic() < end:
            time.sleep(0.1)
        self.assertNotEqual(count(), frozen)
        one.keys("z")
        one.wait_for("zeroed at each refresh")

        def is_small():  # 0.3 s at 999 Hz, and some more on a busy machine
            number = re.match(r"Samples: (\d+)  ", count())
            return number is not None and int(number[1]) < 800
        end = time.monotonic() + screen.PATIENCE
        while not is_small() and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(2)
        self.assertTrue(is_small(), count())
        one.keys("z")
        one.wait_for(r"last \d+ s")
        one.keys("?")
        one.wait_for("freeze the rows")
        one.keys("q", "o", "C-u")
        one.type("pid,sym")
        one.wait_for(r"Pid:Command +Symbol")
        one.keys("q")
        one.wait_for(r"^\$ *$")

    def test_a_process_is_zoomed_into(self):
        pids = {self.spin(), self.spin()}
        shown_pids = lambda: {int(pid) for line in rows_of(one)[2:-2] for pid in re.findall(r"(\d+):spin ", line)}
        for width, height in ((80, 24), (200, 60)):
            with self.subTest(width=width):
                one = self.screen(width, height)
                one.run("top", "-d", "0.5", "-p", ",".join(map(str, pids)))
                one.wait_for(r"\] top_leaf")
                one.keys("p")
                one.wait_for(r"^p: rows have no process; sort by it first \(o: pid,symbol\)")
                one.keys("o", "C-u")
                one.type("pid,symbol")
                screen.wait_until(lambda: shown_pids() == pids)
                one.keys("f")
                one.wait_for(", frozen")
                zoomed = int(re.search(r"(\d+):spin ", rows_of(one)[2])[1])
                one.keys("p")
                one.wait_for(f", Process: {zoomed}")
                self.assertEqual(shown_pids(), {zoomed})
                one.keys("f")  # the zoom stays when rows are refreshed
                one.wait_until_gone(", frozen")
                before = rows_of(one)[0]
                screen.wait_until(lambda: rows_of(one)[0] != before)
                self.assertIn(f", Process: {zoomed}", rows_of(one)[0])
                self.assertEqual(shown_pids(), {zoomed})
                one.keys("p")
                one.wait_until_gone("Process: ")
                screen.wait_until(lambda: shown_pids() == pids)
                one.keys("p", "Escape")
                one.wait_until_gone("Process: ")
                one.keys("m")
                one.wait_for(r"Zoom into process \d+ \('p'\)")
                one.keys("Escape", "q")
                one.wait_for(r"^\$ *$")
                one.close()

    def test_what_was_seen_is_written(self):
        one = self.screen(120)
        one.run("top", "-d", "0.3", "-p", self.spin(), "-o", "seen.data")
        one.wait_for(r"\] top_leaf")
        one.keys("w")
        one.wait_for(r"wrote seen\.data ")
        one.keys("w")
        one.wait_for(r"wrote seen\.1\.data ")
        one.keys("q")
        one.wait_for(r"^\$ *$")
        for name in ("seen.data", "seen.1.data"):
            self.assertEqual(os.stat(self.folder / name).st_mode & 0o777, 0o600)
            text = self.tacho("report", "--stdio", "--no-children", "-i", name).stdout.decode()
            self.assertRegex(text, r"spin +spin +\[\.\] top_leaf")

    def test_the_window_moves(self):
        """After two windows the first samples are dropped while the recording goes on."""
        one = self.screen(120)
        self.spin(4)
        one.run("top", "-d", "0.3", "--window", "2", "-a")
        one.wait_for("h: help")
        one.keys("/", "t", "o", "p", "_", "l", "e", "Enter")
        one.wait_for(r"spin +\[\.\] top_leaf")
        one.wait_until_gone(r"spin +\[\.\] top_leaf")
        self.assertRegex(rows_of(one)[0], r"last [0-5] s")
        one.keys("q")
        one.wait_for(r"^\$ *$")

    def test_a_command_and_its_end(self):
        one = self.screen()
        one.run("top", "-d", "0.3", "--", "./spin", "2")
        one.wait_for(r"\] top_leaf")
        shown = one.wait_for("the recording has ended; q: quit")
        self.assertNotIn("printed by the command", shown)
        one.keys("e")
        one.wait_for(r"^-")
        one.keys("q")
        one.wait_for(r"^\$ *$")
        one.type("echo status $?")
        shown = one.wait_for("status 5")
        self.assertNotIn("printed by the command", shown)

    def test_whatever_ends_it_leaves_nothing(self):
        pid = self.spin()
        one = self.screen()
        before = one.state()
        ends = {
            "q": lambda of: one.keys("q"),
            "Ctrl-C": lambda of: one.keys("C-c"),
            "TERM": lambda of: os.kill(of[0], signal.SIGTERM),
            "KILL of the recorder": lambda of: os.kill(of[0], signal.SIGKILL),
            "TERM of the view": lambda of: os.kill(of[1], signal.SIGTERM),
            "KILL of the view": lambda of: os.kill(of[1], signal.SIGKILL),
            "KILL of the worker": lambda of: os.kill(of[2], signal.SIGKILL),
        }
        for name, end in ends.items():
            with self.subTest(end=name):
                one.type("clear")
                one.run("top", "-d", "0.3", "-p", pid)
                one.wait_for(r"\] top_leaf")
                running = self.recorders(one)
                named = [of for of in running if Path(f"/proc/{of}/comm").read_text() != "tacho-reader\n"]
                self.assertGreaterEqual(len(named), 3)
                end(named)
                self.assert_gone(running)
                one.keys("Enter")  # a shell that is back before the view writes its prompt to the view's screen
                one.wait_for(r"\$ *$")
                one.type("clear")
                self.assertEqual(one.state(), before)

    def test_a_terminal_that_goes_takes_it_along(self):
        one = self.screen()
        one.run("top", "-d", "0.3", "-a")
        one.wait_for("h: help")
        running = self.recorders(one)
        one.close()
        self.assert_gone(running)

    def test_an_idle_recording_is_left_at_once(self):
        sleeper = subprocess.Popen(["sleep", "600"])
        self.addCleanup(lambda: (sleeper.kill(), sleeper.wait()))
        one = self.screen()
        one.run("top", "-p", sleeper.pid)
        one.wait_for("no sample yet")
        running = self.recorders(one)
        one.keys("q")
        one.wait_for(r"^\$ *$")
        self.assert_gone(running)

    def calls(self):
        """A process that makes system calls, with reads of 0.1 s."""
        (self.folder / "calls.py").write_text("import os, time\na, b = os.pipe()\nwhile True:\n    os.write(b, b'x')\n    os.read(a, 1)\n"
                                              "    os.stat('/')\n    time.sleep(0.01)\n")
        calls = subprocess.Popen(["python3", self.folder / "calls.py"])
        self.addCleanup(lambda: (calls.kill(), calls.wait()))
        return calls.pid

    def rows(self, one):
        """The table's rows: the key and the count."""
        found = (re.match(r"  (\w+) +(\d+) ", line) for line in rows_of(one)[2:-2])
        return {match[1]: int(match[2]) for match in found if match}

    def test_the_table_of_a_recorder(self):
        pid = self.calls()
        for width, height in ((80, 24), (200, 60)):
            with self.subTest(width=width):
                one = self.screen(width, height)
                one.run("top", "-d", "0.5", "-e", "syscall", "-g", "-p", pid)
                one.wait_for("^syscall: lat_ns in ns: ")
                one.wait_for("^  write ")
                self.assertRegex(rows_of(one)[1], r"^  call +count +sum +mean +min")
                # Equal counts, also in a capture of the counted samples.
                one.keys("f")
                one.wait_for(", frozen")
                rows = self.rows(one)
                self.assertGreater(rows["write"], 10)
                self.assertLessEqual(abs(rows["write"] - rows["read"]), 1)
                one.keys("w")
                name = re.search(r"wrote (\S+)", one.wait_for("wrote top"))[1]
                table = self.tacho("table", "-i", name, "--by", "call", "--columns", "count").stdout.decode()
                written = dict(re.findall(r"^(\w+) +(\d+)$", table, re.M))
                for call, count in rows.items():
                    self.assertGreaterEqual(int(written[call]), count)
                one.keys("f")
                one.wait_until_gone(", frozen")
                # Sorted by any column: the first is the name.
                one.keys(">")
                one.wait_for("sorted by call")
                names = list(self.rows(one))
                self.assertEqual(names, sorted(names))
                one.keys(">")
                one.wait_for("sorted by count")
                counts = list(self.rows(one).values())
                self.assertEqual(counts, sorted(counts, reverse=True))
                one.keys("/", "w", "r", "i")
                one.wait_until_gone("^  read ")
                one.keys("Enter")
                one.wait_for('with "wri"')
                # An opened row: its functions with call graphs, and the list of its events.
                one.keys("Enter")
                one.wait_for(r"^Samples: .* of event 'syscall'.*call write")
                one.keys("e")
                one.wait_for(r"^-")
                one.keys("v")
                shown = one.wait_for(r"^1 of [0-9,]+ ")
                head = shown.split("\n")[1].split()
                self.assertEqual(head[:7], ["time", "comm", "pid", "tid", "cpu", "event", "lat_ns"])
                events = [line.split() for line in shown.split("\n")[2:height - 1] if line.split()]
                self.assertTrue(events and all(fields[head.index("call")] == "write" for fields in events), events[:3])
                one.keys("Enter")
                one.wait_for("Call chain, callers below")
                one.keys("q", "q")
                one.wait_for("of event 'syscall'")
                one.keys("Escape")
                one.wait_for("^syscall: lat_ns in ns: ")
                one.keys("Escape")
                one.wait_for("^  read ")
                one.keys("Tab")
                one.wait_for("^Samples: .* of event 'syscall'")
                one.keys("?")
                one.wait_for("While it is recorded")
                one.keys("q", "Escape", "?")
                one.wait_for("The table of a recorder")
                one.keys("q", "q")
                one.wait_for(r"^\$ *$")
                one.close()

    def test_recorders_without_call_chains_show_events(self):
        one = self.screen(100)
        one.run("top", "-d", "0.5", "-e", "syscall", "-p", self.calls())
        one.wait_for("^  write ")
        one.keys("Enter")
        one.wait_for(r"^1 of [0-9,]+ ")
        one.keys("Escape")
        one.wait_for("^syscall: lat_ns in ns: ")
        one.keys("q")
        one.wait_for(r"^\$ *$")

    def test_the_histogram_of_a_recorder(self):
        """Rows are powers of two; opening one shows the waits of that length."""
        one = self.screen(100)
        one.run("top", "-d", "0.5", "-e", "runqlat", "-p", self.calls())
        one.wait_for(r"^runqlat: wait_ns in ns, last \d+ s")
        one.wait_for(r"^  value +count  distribution\n")
        one.keys(">", ">")
        shown = one.wait_for("sorted by count")
        low, high = map(int, re.search(r"(\d+) -> (\d+) +\d+  \*{40}", shown).groups())
        one.keys("Enter")
        shown = one.wait_for(r"^1 of [0-9,]+ ").split("\n")
        self.assertIn(f"value {low} -> {high}", shown[0])
        column = shown[1].split().index("wait_ns")
        values = [int(line.split()[column]) for line in shown[2:23] if line.split()]
        self.assertTrue(values and all(low <= value <= high for value in values), (low, high, values))
        one.keys("Escape")
        one.wait_for("^runqlat: ")
        one.keys("q")
        one.wait_for(r"^\$ *$")

    def test_recorders_about_stacks_show_these(self):
        one = self.screen(120)
        one.run("top", "-d", "0.5", "-e", "offcputime", "-p", self.calls())
        one.wait_for("^Samples: .* of event 'offcputime'")
        one.wait_for(r"^\+ +\d+\.\d\d%")
        one.keys("q")
        one.wait_for(r"^\$ *$")

    def test_the_condition_of_a_recorders_view(self):
        (self.folder / "connect.py").write_text(
            "import socket, time\nserver = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()\nwhile True:\n"
            "    client = socket.socket(); client.connect(server.getsockname()); peer, _ = server.accept(); peer.close(); client.close()\n"
            "    time.sleep(0.05)\n")
        connects = subprocess.Popen(["python3", self.folder / "connect.py"])
        self.addCleanup(lambda: (connects.kill(), connects.wait()))
        done = self.run_program("timeout", "-s", "INT", "4", programs.BIN / "tacho", "top", "--stdio", "-d", "1", "-e", "tcplife", "-p",
                                connects.pid, status=None)
        text = done.stdout.decode()
        self.assertRegex(text, "(?m)^  close ")
        self.assertNotIn("connect ", text)

    def test_without_a_terminal_rows_are_text(self):
        done = self.run_program(programs.BIN / "tacho", "top", "-d", "0.5", "--", "./spin", "2", status=5)
        self.assertIn("tacho top: rows are printed as text, every 0.5 s", done.stderr.decode())
        text = done.stdout.decode()
        self.assertGreater(text.count("Samples: "), 1)
        self.assertRegex(text, r"spin +\[\.\] top_leaf")
        one = self.screen(100, 60, TERM="dumb")
        one.run("top", "-d", "0.5", "--", "./spin", "2")
        one.wait_for("rows are printed as text")
        one.wait_for(r"\] top_leaf")
        one.wait_for(r"^\$ *$")

    def test_wrong_use_and_refusals(self):
        for words, said in ((("-K", "-U"), "-K and -U cannot be combined"), (("-d", "x"), "-d"), (("--sortt", "x"), "--sort"),
                            (("-e", "opne"), "opne"), (("-p", "2147483647"), "2147483647")):
            done = self.run_program(programs.BIN / "tacho", "top", *words, status=None)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(said, done.stderr.decode())
            self.assertEqual(done.stdout, b"")


if __name__ == "__main__":
    programs.main()
