#!/usr/bin/env python3
"""Summaries: values that BPF programs counted in buckets, read at an interval, in tables, histograms and conditions."""
import json
import struct

import made_capture as made
import made_payload
import programs
from made_payload import Field

CMDLINE = 11
SECOND = 1_000_000_000
SLOTS = ((0, 3), (2, 1), (8, 5), (16384, 7))  # bucket's least value, count


class Counted(programs.Scratch):
    def write(self, interval=None, form="log2", slots=SLOTS, readings=4, sums=False, mark=("--",)):
        """One reading each second, with all buckets."""
        fields = [Field("took", unit="ns", format=form), Field("times", role="count")]
        if sums:
            fields.append(Field("total", unit="ns", role="sum"))
        capture = made_payload.capture(op=fields)
        words = ["tacho", "record", "-e", "op"] + (["--interval", interval] if interval else []) + [*mark, "tool", "--interval", "7"]
        capture.features[CMDLINE] = struct.pack("<I", len(words)) + b"".join(made.header_string(word) for word in words)
        for reading in range(readings):
            for low, times in slots:
                capture.time = (reading + 1) * SECOND - made.STEP  # sample() adds a step
                capture.sample(raw=struct.pack("<QQ", low, times) + (struct.pack("<Q", low * times + times) if sums else b""))
        (self.folder / "perf.data").write_bytes(capture.file())

    def output(self, *words):
        done = self.tacho(*words)
        return done.stdout.decode(), done.stderr.decode()

    def test_intervals_that_are_no_multiple_of_the_readings_give_a_note(self):
        for interval, asked, noted in (("1", "1", 0), ("1", "2", 0), ("1s", "3000ms", 0), ("500ms", "1", 0), ("1", "0.3", 1),
                                         ("1", "1.5", 1), ("2", "1", 2), ("300ms", "1", 0.3), ("2m", "1", 120)):
            self.write(interval)
            for view in (["table", "--by", "event"], ["hist", "--field", "took"]):
                _, said = self.output(*view, "--interval", asked)
                note = f"'op' was counted in the kernel and read every {noted} s, and --interval is no multiple of that"
                self.assertEqual(note in said, bool(noted), (interval, asked, said))
                self.assertEqual(f"take --interval {noted} or a multiple of it" in said, bool(noted))
                self.assertEqual(self.output(*view)[1], "")

    def test_one_reading_is_one_interval(self):
        note = "'op' was counted in the kernel and read once, so all of it is in one interval; record with --interval to spread it over time"
        for readings, has_note, mark in ((1, True, ["--"]), (2, False, ["--"]), (1, True, []), (2, False, [])):
            self.write(readings=readings, mark=mark)  # --interval of the view differs from that of the recording
            for view in (["table", "--by", "event", "--columns", "count"], ["hist", "--field", "took"]):
                self.assertEqual(note in self.output(*view, "--interval", "1")[1], has_note)
                self.assertEqual(self.output(*view)[1], "")

    def test_a_heat_map_has_rows_of_slots_and_counts_what_samples_stand_for(self):
        for form, ends in (("log2", {0: 1, 2: 3, 8: 15, 16384: 32767}), ("linear:16", {0: 15, 16384: 16399})):
            slots = [(low, times) for low, times in SLOTS if low in ends]
            self.write(form=form, slots=slots)
            shown = json.loads(self.output("heatmap", "--json", "--field", "took", "--log", "1")[0])
            self.assertEqual(shown["samples"], 4 * sum(times for _, times in slots))
            for low, times in slots:
                [row] = [row for row in shown["rows"] if row["low"] <= low <= row["high"]]
                self.assertEqual(row["count"], 4 * times)
                self.assertGreaterEqual(row["high"], ends[low], "no row cuts a slot")
                reported = json.loads(self.output("heatmap", "--json", "--field", "took", "--box", f"2..3,{low}..{ends[low]}")[0])
                self.assertEqual((reported["inside"], reported["outside"]), (times, 4 * sum(times for _, times in slots) - times))

    def test_a_summary_says_what_is_the_upper_end_of_a_slot(self):
        self.write(slots=((4096, 3), (16384, 1)))
        self.assertRegex(self.output("summary", "perf.data")[0], r"op: took +16  4.10 us +<8.19 us +<32.8 us +<32.8 us")
        [field] = [one for one in json.loads(self.output("summary", "perf.data", "--json")[0])["fields"] if one["field"] == "took"]
        self.assertTrue(field["in_slots"])

    def test_keys_that_are_slots_are_shown_as_ranges(self):
        self.write()
        out, _ = self.output("table", "--by", "took", "--columns", "count", "--sort", "took")
        self.assertEqual([line.split() for line in out.splitlines() if "->" in line],
                         [["0", "->", "1", "12"], ["2", "->", "3", "4"], ["8", "->", "15", "20"], ["16384", "->", "32767", "28"]])
        # In JSON the bucket is its least value.
        out, _ = self.output("table", "--by", "took", "--columns", "count", "--sort", "took", "--json")
        self.assertEqual([json.loads(line)["took"] for line in out.splitlines()], [0, 2, 8, 16384])
        self.write(form="linear:100", slots=((0, 1), (300, 2)))
        out, _ = self.output("table", "--by", "took", "--columns", "count", "--sort", "took")
        self.assertEqual([line.split() for line in out.splitlines() if "->" in line], [["0", "->", "99", "4"], ["300", "->", "399", "8"]])

    def test_values_that_were_counted_in_slots_are_called_so(self):
        self.write()
        out, said = self.output("table", "--by", "event", "--value", "took")
        self.assertIn("took", out.splitlines()[0])
        self.assertIn(", counted in slots", out.splitlines()[0])
        self.assertIn("'took' was counted in slots, and sum and mean are those of the least values in them", said)
        _, said = self.output("table", "--by", "event", "--value", "took", "--columns", "count,max", "--sort", "count")
        self.assertEqual(said, "")
        self.write(sums=True)
        out, said = self.output("table", "--by", "event", "--value", "total")
        self.assertNotIn("slots", out + said)

    def counted(self, condition):
        out, said = self.output("table", "--json", "--by", "event", "--columns", "count", "--where", condition)
        return sum(json.loads(line)["count"] for line in out.splitlines()), said

    def test_a_limit_inside_a_slot_gives_a_note(self):
        self.write(readings=1)
        for condition, count in (("took > 20us", 0), ("took >= 9", 7), ("took <= 20us", 16), ("took < 9", 9), ("20us < took", 0),
                                 ("took > 8", 7), ("took >= 1", 13), ("took == 9", 0), ("cpu == 0 && took > 20us", 0), ("took > 9.5", 7)):
            found, said = self.counted(condition)
            self.assertEqual(found, count, condition)
            self.assertIn(f"--where '{condition}': 'took' was counted in slots, and the slot ", said)
        self.assertIn("the slot 8 to 15 has values on both sides of the number; all of it counts as 8", self.counted("took > 8")[1])
        for condition, count in (("took > 7", 12), ("took >= 8", 12), ("took < 8", 4), ("took <= 7", 4), ("8 <= took", 12),
                                 ("took == 8", 5), ("took != 8", 11), ("took > 1", 13), ("took >= 0", 16), ("took > 16383", 7)):
            found, said = self.counted(condition)
            self.assertEqual((found, said), (count, ""), condition)
        self.write(form="linear:100", slots=((0, 1), (300, 2)), readings=1)
        self.assertEqual(self.counted("took >= 300"), (2, ""))
        self.assertIn("the slot 300 to 399 has", self.counted("took > 300")[1])


if __name__ == "__main__":
    programs.main()
