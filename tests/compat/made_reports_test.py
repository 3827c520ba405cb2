#!/usr/bin/env python3
"""`report` on branch stacks and data addresses: captures of support/made_reports.py, read by perf and by tacho."""
import collections
import unittest.mock

import made_capture
import made_reports
import programs
import report_ties
from programs import ROOT

GOLDEN = ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
BRANCHES = [
    "", "-b", "--no-branch-stack", "--no-branch-stack --sort weight,sym -g none", "--sort dso_from", "--sort dso_to,dso_from",
    "--sort sym,dso", "--sort addr_to,addr_from", "--sort cycles,weight", "--sort comm,cpu,local_weight", "--sort +dso_to",
    "-F sample,overhead,dso_from,symbol_from", "-F dso_to,period", "--percent-limit 1", "-t ;", "-n --show-total-period",
    "-U", "-v", "-q", "-g none", "--children", "--show-cpu-utilization", "--comms spin", "--comms spin -F overhead,comm,dso_to",
    "-w 8,10,12,14,16", "--symbol-filter main", "--time 5.05,5.2", "--header-only", "--sort time,dso_to",
    "--sort dso,dso_from,cycles --percentage relative", "--tid 4242 --sort sym", "--inverted --sort dso_from", "--group",
]
# perf names the instructions of every function that such rows are of, and ends with SIGSEGV in some of them.
SYMBOL_COLUMNS = ["--sort symbol_from", "--sort symbol_to,symbol_from", "--sort symbol_from,dso_to -t ,"]
MEMORY = [
    "", "--sort mem", "--sort dso_daddr,snoop", "--sort symbol_daddr", "--sort symbol_iaddr,symbol_daddr", "--sort symbol,mem",
    "--sort tlb,locked,blocked", "--sort phys_daddr,data_page_size", "--sort code_page_size,weight,local_weight",
    "--sort ins_lat,local_ins_lat,dso", "-t ;", "-n --show-total-period", "--comms spin", "-U", "-v", "-w 8,10,12,14,16",
    "-q", "--sort +phys_daddr", "-g none", "--no-children", "-G", "--percent-limit 2", "-F overhead,mem,sym",
    "--sort comm,symbol_daddr -v", "--sort p_stage_cyc,mem", "--sort snoop,blocked -F +sample", "--sort dcacheline,mem", "--sort comm,dcacheline,snoop -t ;", "--sort dcacheline,sym -v",
    "--sort dcacheline -n -w 8,8,10", "--show-cpu-utilization",
]
VIEWS = {
    "plain-branches": BRANCHES + SYMBOL_COLUMNS,
    "predicted-branches": BRANCHES,
    "branches-with-stacks": BRANCHES,
    "branches-in-loops": BRANCHES[:8],
    "loads": [f"--mem-mode {words}" for words in MEMORY] + ["", "--sort weight,dso"],
    "loads-in-detail": [f"--mem-mode {words}" for words in MEMORY] + ["--sort ins_lat,sym"],
    "loads-with-stacks": [f"--mem-mode {words}" for words in MEMORY] + ["-g none"],
}
# Rows of callers are not compared by lines: perf looks their lines up by a wrong address.
HISTORY = [
    "-s sym", "--no-children", "-s comm", "-s comm,dso -g callee,0", "-g caller,0 --no-children", "-G -s pid",
    "--no-children --max-stack 2", "--no-children -U", "--no-children -v", "--hierarchy -s comm,dso", "-s sym -g fractal",
    "-s dso -g graph,1,count", "-b -s sym",
]
REFUSED = {
    "plain-branches": ["--mem-mode", "--sort mem", "--mem-mode -b", "--no-branch-stack --sort symbol_from", "-F snoop"],
    "loads": ["-b", "--sort mem", "--mem-mode --sort symbol_from", "--mem-mode -b"],
}


class MadeReports(programs.Scratch):
    def write(self, name):
        self.capture = self.folder / "capture.data"
        self.capture.write_bytes(made_reports.REPORTS[name]().file())

    def report(self, words, program, **more):
        arguments = ["report", "--stdio", *SYMBOLS, "-i", self.capture, *words.split()]
        done = self.perf(*arguments, **more) if program == "perf" else self.tacho(*arguments, "--as-perf", **more)
        return b"\n".join(line for line in done.stdout.split(b"\n") if not line.startswith((b"# (Tip", b"# captured on")))

    def test_the_stored_ones_are_these(self):
        stored = [path for path in (GOLDEN / "captures").glob("*.data") if path.stem in made_reports.REPORTS]
        self.assertGreater(len(stored), 1)
        for path in stored:
            self.assertEqual(path.read_bytes(), made_reports.REPORTS[path.stem]().file(), path.name)

    @programs.needs_perf
    def test_their_texts_are_perfs(self):
        self.assertEqual(set(VIEWS), set(made_reports.REPORTS))
        for turn, (name, views) in enumerate(VIEWS.items()):
            self.write(name)
            for words in programs.part_of(views, turn):
                with self.subTest(capture=name, words=words):
                    theirs = self.report(words, "perf")
                    self.assertGreater(len(theirs.split(b"\n")), 8)
                    # Rows with equal numbers have tacho's order.
                    self.assertEqual(report_ties.difference(self.report(words, "tacho"), theirs)[0], "")

    @programs.needs_perf
    def test_what_perf_refuses_is_refused(self):
        for name, views in REFUSED.items():
            self.write(name)
            for words in views:
                with self.subTest(capture=name, words=words):
                    self.assertNotIn(b"%", self.report(words, "perf", status=None))
                    self.assertEqual(self.report(words, "tacho", status=1), b"")

    # perf's comparison of these says "different" and never which comes first: its rows fall apart into several.
    @programs.needs_perf
    def test_flags_add_up_to_perfs(self):
        self.write("predicted-branches")
        for words in ("mispredict", "in_tx", "abort,mispredict", "mispredict,in_tx,abort"):
            with self.subTest(words=words):
                sums = []
                for program in ("perf", "tacho"):
                    rows = collections.Counter()
                    text = self.report(f"--sort {words} -F sample,{words} -q -t ,", program)
                    for line in text.split(b"\n#")[0].strip().split(b"\n"):
                        number, *flags = [cell.strip() for cell in line.split(b",")]
                        if number:
                            rows[tuple(flags)] += int(number)
                    sums.append(rows)
                self.assertEqual(sums[1], sums[0])
                self.assertGreater(len(sums[0]), 1)

    @programs.needs_perf
    def test_branches_in_call_graphs_are_perfs(self):
        for turn, name in enumerate(("plain-branches", "predicted-branches", "branches-with-stacks", "branches-in-loops")):
            self.write(name)
            for words in programs.part_of(HISTORY, turn):
                with self.subTest(capture=name, words=words):
                    theirs = self.report(f"--branch-history {words}", "perf")
                    self.assertGreater(len(theirs.split(b"\n")), 20)
                    difference, _ = report_ties.difference(self.report(f"--branch-history {words}", "tacho"), theirs)
                    self.assertEqual(difference, "")
        self.assertIn(b" iter:", self.report("--branch-history --no-children", "tacho"))

    def test_branch_history_needs_branches(self):
        self.write("loads-with-stacks")
        self.assertEqual(self.report("--branch-history", "tacho", status=1), b"")

    # perf 6.1 ends with SIGSEGV here. The cycles are added up anew, from the branches that the capture was made of.
    def test_cycles_of_blocks_equal_their_branches(self):
        sample, stacks = made_capture.Capture.sample, []

        def reported(made, **fields):
            stacks.append(fields["branches"])
            return sample(made, **fields)

        with unittest.mock.patch.object(made_capture.Capture, "sample", reported):
            made = made_reports.branch_samples(8, 100, ["cycles"], places=made_reports.SPIN_PLACES, nowhere=False)
        self.capture = self.folder / "capture.data"
        self.capture.write_bytes(made.file())
        total, ended = 0, collections.defaultdict(list)
        for branches in stacks:
            if branches and branches[0][2] >> 4:
                for source, _, flags in branches:
                    total += flags >> 4
                    if flags >> 4:
                        ended[source].append(flags >> 4)
        rows = [line.split(b";") for line in self.report("--total-cycles -q -t ;", "tacho").split(b"\n") if b";" in line]
        self.assertEqual(sorted((row[0].decode(), row[3].decode()) for row in rows),
                         sorted((f"{100 * sum(cycles) / total:.2f}%", f"{sum(cycles) // len(cycles)}")
                                for cycles in ended.values()))
        shares = [float(row[0].rstrip(b"%")) for row in rows]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertEqual({row[5] for row in rows}, {b"spin"})

    def test_filters_leave_the_branches_of_samples_that_pass(self):
        made = made_reports.plain_branches()
        self.capture = self.folder / "capture.data"
        self.capture.write_bytes(made.file())
        whole = self.count("")
        kernel, program = self.count("--dsos [kernel.kallsyms]"), self.count("--dsos spin")
        self.assertEqual(kernel + program, whole)
        self.assertGreater(min(kernel, program), 0)

    def count(self, words):
        text = self.report(f"{words} -q -F sample,dso_from -t ,", "tacho")
        return sum(int(line.split(b",")[0]) for line in text.split(b"\n") if b"," in line)


if __name__ == "__main__":
    programs.main()
