#!/usr/bin/env python3
"""Rows with equal numbers are sorted by the other keys, by name, by address, for any order of samples."""
import csv
import io
import random

import made_capture as made
import programs

SYMBOLS = ["--symfs", programs.ROOT / "tests/golden/symfs"]
NOWHERE = [0x700000000000 + 64 * number for number in range(40)]  # addresses without a name
NAMES = {made.LEAF_A: "leaf_a", made.LEAF_B: "leaf_b", made.MAIN: "main", made.RECURSE: "recurse"}


class RowOrder(programs.Scratch):
    def write(self, capture):
        (self.folder / "perf.data").write_bytes(capture.file())

    def places(self, seed):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL)).started()
        places = [*NAMES, *NOWHERE]
        random.Random(seed).shuffle(places)
        for ip in places:
            capture.sample(ip=ip)
        self.write(capture)

    def rows(self, *words):
        text = self.tacho("report", "--csv", *words, *SYMBOLS, status=None).stdout.decode()
        return list(csv.DictReader(io.StringIO(text)))

    def symbols(self, *words):
        return [row["symbol"].split()[-1] for row in self.rows(*words)]

    def test_names_then_addresses_whatever_came_first(self):
        want = [*sorted(NAMES.values()), *(hex(ip) for ip in NOWHERE)]
        for seed in range(3):
            self.places(seed)
            for words in ([], ["--as-perf"], ["-s", "sym"], ["-s", "sym,comm"]):
                shown = [text if text in want else hex(int(text, 16)) for text in self.symbols("--no-children", "-g", "none", *words)]
                self.assertEqual(shown, want, words)

    def test_callers_stand_above_what_they_call_in_every_thread(self):
        for tids in ([11, 12, 13], [13, 11, 12]):
            capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
            for tid in tids:
                capture.named("abc"[tid - 11], tid=tid).sample(
                    ip=made.LEAF_A, tid=tid, chain=[made.CONTEXT_USER, made.LEAF_A, *(caller + 4 for caller in (made.RECURSE, made.LEAF_B, made.MAIN))])
            self.write(capture)
            shown = [f"{row['comm']} {row['symbol'].split()[-1]}"
                     for row in self.rows("--children", "-g", "caller", "-s", "comm,sym")]
            self.assertEqual(shown, [f"{comm} {name}" for name in ("leaf_a", "main", "leaf_b", "recurse") for comm in "abc"])

    def test_a_level_is_shown_where_a_filter_passes_any_of_its_rows(self):
        for passing in (made.LEAF_A, made.LEAF_B):
            capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
            for leaf in (made.LEAF_A, made.LEAF_B):
                above = [made.RECURSE + 4] if leaf == passing else []
                capture.sample(ip=leaf, chain=[made.CONTEXT_USER, leaf, *above, made.MAIN + 4])
            self.write(capture)
            out = self.tacho("report", "--hierarchy", "--no-children", "-g", "none", "--parent", "recurse", "-x", "-s", "comm,sym",
                             *SYMBOLS, status=None).stdout.decode()
            rows = [line.split()[-1] for line in out.splitlines() if line and not line.startswith("#")]
            self.assertEqual(rows, ["spin", NAMES[passing], "recurse"])  # a level of parents is added


if __name__ == "__main__":
    programs.main()
