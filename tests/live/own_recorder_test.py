#!/usr/bin/env python3
"""A user's recorder, examples/held_files.bpf.c, in every view and in perf, without changes to
any of them. The load knows which files it holds open, for how long at least, and in which function it opened them."""
import csv
import io
import re

import programs

LONG_MS, TIMES = 300, 3
LOAD = r"""
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) int take_long(const char *name) { int file = open(name, O_RDONLY); __asm__ volatile(""); return file; }
__attribute__((noinline)) int take_short(const char *name) { int file = open(name, O_RDONLY); __asm__ volatile(""); return file; }
int main(void) {
  struct timespec wait = {.tv_nsec = LONG_MS * 1000000};
  for (int i = 0; i < 20; ++i) close(take_short("/etc/passwd"));
  for (int i = 0; i < TIMES; ++i) {
    int file = take_long("/etc/passwd");
    nanosleep(&wait, 0);
    close(file);
  }
  return 0;
}
""".replace("LONG_MS", str(LONG_MS)).replace("TIMES", str(TIMES))


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
class OwnRecorder(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {"holder": LOAD})

    def record(self, options=""):
        return self.run_program(programs.BIN / "tacho-record", "-g", "-o", "held.data", "-e",
                                str(programs.ROOT / "examples" / "held_files.bpf.c") + options, "--", self.built / "holder")

    def view(self, *words):
        return self.tacho(*words, "-i", "held.data").stdout.decode()

    def test_every_view_shows_it(self):
        self.record("/min_ms=200/")
        long = ["--where", f"event == 'held' && held_ns >= {LONG_MS} * 1000000".replace("'", '"')]
        text = self.view("script", "--event", "held", *long, "-F", "comm,event,payload,ip,sym")
        self.assertEqual(len(re.findall(r"^holder +held: held_ns=\d+ fd=\d+$", text, re.M)), TIMES)
        self.assertEqual(len(re.findall(r" take_long\n[^\n]* main\n", text)), TIMES)
        rows = list(csv.DictReader(io.StringIO(self.view("table", "--csv", "--event", "held", "--by", "comm", *long))))
        self.assertEqual([(row["comm"], row["count"]) for row in rows], [("holder", str(TIMES))])
        self.assertGreaterEqual(int(rows[0]["sum"]), TIMES * LONG_MS * 1_000_000)
        self.assertIn(f"{TIMES} values", self.view("hist", "--event", "held", *long))
        # The weight of a stack is the time for which files were open.
        folded = dict(line.rsplit(" ", 1) for line in self.view("folded", *long).splitlines())
        [stack] = folded
        self.assertRegex(stack, r"^holder;.*;main;take_long;\w*open\w*$")
        self.assertEqual(folded[stack], rows[0]["sum"])
        self.assertRegex(self.view("report", "--no-children", "-s", "comm,sym", *long), r"100\.00%  holder   \[\.\] \w*open")

    def test_its_summary_counts_every_file(self):
        self.record()
        shown = self.view("hist", "--event", "holds", "--by", "comm")
        self.assertRegex(shown, r"(?m)^holds: value in us, comm holder, \d+ values$")
        rows = [tuple(map(int, row)) for row in re.findall(r"(?m)^ *(\d+) -> (\d+) *: (\d+) ", shown)]
        # Those of the dynamic linker, too.
        self.assertGreaterEqual(sum(count for *_, count in rows), 20 + TIMES)
        self.assertGreaterEqual(sum(count for _, high, count in rows if high >= LONG_MS * 1000), TIMES)
        counts = [row["count"] for row in csv.DictReader(io.StringIO(self.view("table", "--csv", "--event", "holds")))]
        self.assertEqual(sum(map(int, counts)), sum(count for *_, count in rows))

    def test_its_help_is_made_of_its_own_words(self):
        program = f"{programs.ROOT}/examples/held_files.bpf.c"
        said = self.run_program(programs.BIN / "tacho-record", "-e", f"{program}/help/").stdout.decode()
        self.assertTrue(said.startswith(program + "\n"), said)
        self.assertRegex(said, r"(?m)^  min_ms \(.*\) +only files that were open so long, in milliseconds$")
        self.assertRegex(said, r"(?m)^Events:$")

    def test_its_map_is_read_while_it_runs(self):
        shown = self.tacho("live", "--view", "hist --event holds --by none", "--interval", "100ms",
                           programs.ROOT / "examples" / "held_files.bpf.c", "--", self.built / "holder").stdout.decode()
        headings = re.findall(r"(?m)^holds: value in us(, from [\d.]+ s)?, (\d+) values?$", shown)
        self.assertGreater(len(headings), 2, shown)
        self.assertTrue(all(begin for begin, _ in headings[:-1]), headings)
        self.assertFalse(headings[-1][0])
        self.assertEqual(sum(int(count) for _, count in headings[:-1]), int(headings[-1][1]))

    @programs.needs_perf
    def test_perf_reads_it(self):
        self.record("/min_ms=200/")
        text = self.perf("script", "-i", "held.data", "-F", "comm,event,ip,sym").stdout.decode()
        self.assertGreaterEqual(len(re.findall(r" take_long\n[^\n]* main\n", text)), TIMES)
        report = self.perf("report", "-i", "held.data", "--stdio", "-g", "none").stdout.decode()
        self.assertRegex(report, r"holder +holder +\[\.\] take_long")

    def test_its_options_are_its_globals(self):
        said = self.run_program(programs.BIN / "tacho-record", "-e", str(programs.ROOT / "examples" / "held_files.bpf.c") + "/max_ms=1/",
                                "--", "true", status=1).stderr.decode()
        self.assertIn("min_ms", said)


if __name__ == "__main__":
    programs.main()
