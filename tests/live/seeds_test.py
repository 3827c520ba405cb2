#!/usr/bin/env python3
"""Replacements of other tools in the documentation: every command of docs/recorders/seeds.md, and every row of the
table in docs/recorders/README.md, is run unchanged, and has output."""
import re
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

import programs
from recorder_loads import ASKS, KNOCKS, NET, loop_disk

PAGES = programs.ROOT / "docs/recorders"
HAS_PROBES = Path("/sys/bus/event_source/devices/kprobe").exists()

# Allocates memory; parse() and parse_all() take some time; reads and writes little.
PROG = r"""
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void parse(long ms) { struct timespec t = {0, ms * 1000000}; nanosleep(&t, 0); }
__attribute__((noinline)) void *keeps(void) { return malloc(20000); }
__attribute__((noinline)) int leaf(int n) { return n + getppid(); }
__attribute__((noinline)) int middle(int n) { return leaf(n) + leaf(n + 1); }
int main(void) {
  void *kept = keeps();
  int sum = kept == 0;
  parse(12);
  parse(30);
  for (int i = 0; i < 3; ++i) sum += middle(i);
  for (int i = 0; i < 5; ++i) if (write(1, "", 0)) return 1;
  return sum == 1;
}
"""
# A load with events for every recorder.
LOAD = ("cat /nosuch /etc/hostname; dd if=/dev/zero of=DISK bs=64k count=8 oflag=direct; dd if=DISK of=/dev/null bs=4k count=4 iflag=direct; "
        "dd if=/dev/zero of=f bs=64k count=16 conv=fsync; cat f; (sleep 0.05; echo x) | cat; ./asks; ./prog; "
        f"{sys.executable} net.py; getent ahosts localhost; printf 'exit\\n' | script -qec 'bash --norc -i' /dev/null")
# Commands that may have no events on an idle or other machine: by event, or a word of the command.
MAY_BE_EMPTY = ("klock", "tcpretrans", "oom", "slower", "pagecache", "cachestat", "runqlat/min_us", "vfsio/min_us", "ext4", "irq:irq_handler",
                "writeback", "readline", "iflag=nocache")


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
class Seeds(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = programs.built_once(cls, {"prog": PROG, "leaks": PROG, "asks": ASKS})

    def setUp(self):
        super().setUp()
        self.need_recorder()
        self.bring(self.built)
        self.run_program("cc", "-pg", "-o", "fast", "prog.c")
        programs.shutil.copy(programs.ROOT / "examples/bitehist_map.bpf.c", self.folder)
        (self.folder / "net.py").write_text(NET)
        (self.folder / "knock.py").write_text(KNOCKS)
        (self.folder / "f").write_bytes(bytes(1 << 20))
        self.disk, _number = loop_disk(self, 4 << 20)

    def run_line(self, line):
        """A line for a shell."""
        line = line.replace("/dev/loop0", self.disk).replace("DISK", self.disk)
        environment = f"PATH={programs.BIN}:$PATH; export PATH; "
        return self.run_program("sh", "-c", environment + line, status=None)

    def is_there(self, line):
        return HAS_PROBES or not re.search(r"kprobe:|kretprobe:|follow/|'vfs_", line)

    def check(self, line, what):
        done = self.run_line(line)
        self.assertEqual(done.returncode, 0, f"{line}\n{done.stderr.decode(errors='replace')[-2000:]}")
        if not any(word in what for word in MAY_BE_EMPTY):
            self.assertTrue(done.stdout.strip(), f"{line} shows nothing of {what}")

    def record(self, line):
        # With a pipe as standard output it would write the capture to it.
        done = self.run_line(f"{{ {line}; }} > load.text")
        said = done.stderr.decode(errors="replace")
        self.assertRegex(said, r"Captured and wrote", f"{line}\n{said[-2000:]}")

    def test_every_command_of_the_page(self):
        """In the order of the page, since views show the previous recording."""
        text = (PAGES / "seeds.md").read_text()
        lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        self.assertGreater(len(lines), 100)
        recorded = None
        for line in lines:
            with self.subTest(line):
                if line.startswith("mkdir") or "cgroup" in line or not self.is_there(line):
                    recorded = None  # tests/live/recorders_test.py makes a process run out of memory
                elif line.startswith("tacho record"):
                    recorded = line
                    self.record(line)
                elif recorded:
                    self.check(line, recorded)

    def rows(self):
        for line in (PAGES / "README.md").read_text().split("## Tools of bcc and others")[1].splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            if line.startswith("| ") and len(cells) == 2 and cells[0] != "Tool":
                yield cells[0], re.findall(r"`([^`]*)`", cells[1])

    def with_load(self, command, sleeper):
        """Replaces FILE, PID and COMMAND of the table."""
        command = command.replace("pid=PID", f"pid={sleeper}").replace("-p PID", f"-p {sleeper}")
        command = command.replace("--duration 60", "--duration 1").replace("--duration 10", "--duration 1")
        if "-- COMMAND" in command:
            return command.replace("-- COMMAND", "-- sh -c " + shlex.quote(LOAD))
        if " -- " in command or "--duration" in command:
            return command
        return command + " -- sh -c " + shlex.quote(LOAD)

    @staticmethod
    def completed(part, before):
        """`--by flags`: the previous view with this option replaced."""
        words = shlex.split(before)
        for word in shlex.split(part):
            if word.startswith("--") and word in words:
                at = words.index(word)
                del words[at:at + 2]
        return shlex.join(words) + " " + part

    def test_every_row_of_the_table(self):
        rows = list(self.rows())
        self.assertGreater(len(rows), 40)
        sleeper = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: open('f', 'rb').read(); time.sleep(0.02)"], cwd=self.folder)
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        recorded = view = ""
        for tool, parts in rows:
            for part in parts:
                with self.subTest(tool=tool, part=part):
                    if part.startswith("tacho record"):
                        recorded = self.with_load(part, sleeper.pid)
                        if self.is_there(recorded):
                            self.record(recorded)
                    elif not self.is_there(recorded) or not part.startswith(("tacho ", "--", "name=")):
                        continue
                    elif part.startswith("name="):  # other functions for the same recorder
                        continue
                    else:
                        view = part if part.startswith("tacho ") else self.completed(part, view)
                        if "ADDR" in view:
                            continue  # tests/live/calls_test.py and follow_test.py know addresses
                        self.check(view, tool + recorded)

    def test_every_tool_of_the_table_has_its_output(self):
        text = (PAGES / "seeds.md").read_text().lower()
        missing = [tool for tool, _parts in self.rows()
                   for name in [re.sub(r"^(bcc|uftrace) ", "", tool).split()[0].strip(",")] if name.lower() not in text]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    programs.main()
