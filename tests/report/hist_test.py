#!/usr/bin/env python3
"""tacho hist: percentiles, intervals of time, rows, and the time between two events, against numbers counted here."""
import json
import random
import re
import struct

import made_capture as made
import made_payload
import programs
from made_payload import SIGNED, TEXT, Field

ROW = re.compile(r"^ *(-?\d+) -> (-?\d+) *: (\d+) ")


class Hist(programs.Scratch):
    def output(self, *words, status=0):
        done = self.tacho("hist", *words, status=status)
        return done.stdout.decode(), done.stderr.decode()

    def histograms(self, *words):
        """(heading, rows, percentiles) of each histogram."""
        found = []
        for block in self.output(*words)[0].split("\n\n"):
            heading, _, *lines = block.splitlines()
            rows = [tuple(map(int, ROW.match(line).groups())) for line in lines if ROW.match(line)]
            found.append((heading, rows, lines[-1] if lines[-1].startswith("p") else ""))
        return found

    def write_operations(self):
        """One operation each millisecond, of random latency."""
        chance = random.Random(7)
        self.values = []
        capture = made_payload.capture(op=[Field("lat", unit="ns", role="value"), Field("kind", TEXT, 1, 8)])
        for number in range(200):
            value = chance.choice([chance.randrange(120), chance.randrange(100_000)])
            self.values.append(value)
            capture.time = 6_000_000_000 + number * 1_000_000 - made.STEP  # sample() adds a step
            capture.sample(raw=struct.pack("<Q8s", value, b"ab"[number % 2:][:1]))
        (self.folder / "perf.data").write_bytes(capture.file())

    def test_the_only_field_of_an_event_needs_no_choice(self):
        def written(**fields_by_event):
            capture = made_payload.capture(**fields_by_event)
            for number in (3, 4, 5):
                capture.sample(raw=struct.pack("<QQ", number, 0))
            (self.folder / "perf.data").write_bytes(capture.file())

        written(probe=[Field("n")])  # as the argument of a probe: neither unit nor role
        self.assertEqual([heading for heading, _, _ in self.histograms()], ["probe: n, 3 values"])
        written(probe=[Field("n"), Field("m")])
        self.assertIn("no single field with a unit or role:value", self.output(status=1)[1])
        written(probe=[Field("n", role="count")])
        self.assertIn("no single field", self.output(status=1)[1])
        written(probe=[Field("n")], other=[Field("m")])
        self.assertIn("several events have a default field; choose with --event NAME: probe: n; other: m", self.output(status=1)[1])

    def test_numbers_from_2_to_63_on_have_rows_of_their_own(self):
        capture = made_payload.capture(op=[Field("u", role="value")])
        for value in (1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2):
            capture.sample(raw=struct.pack("<Q", value))
        (self.folder / "perf.data").write_bytes(capture.file())
        [(_, rows, _)] = self.histograms()
        self.assertEqual([row for row in rows if row[2]], [
            (0, 1, 1), (1 << 62, (1 << 63) - 1, 1), (1 << 63, (1 << 64) - 1, 3)])
        [found] = map(json.loads, self.output("--json")[0].splitlines())
        self.assertEqual(found["rows"][-1], {"low": 1 << 63, "high": (1 << 64) - 1, "count": 3})
        self.assertIn(f" {(1 << 64) - 2} ", self.output("--linear", "1")[0])
        heat = json.loads(self.tacho("heatmap", "--json").stdout)
        self.assertEqual(heat["rows"][-1]["high"], (1 << 64) - 1)

    def test_percentiles_equal_those_of_the_values(self):
        self.write_operations()
        [(_, _, text)] = self.histograms("--percentiles", "0,50,p90,99.9")
        reported = dict(one.split() for one in text.split(", "))
        values = sorted(self.values)
        self.assertEqual(list(reported), ["p0", "p50", "p90", "p99.9"])
        for name, value in reported.items():
            right = values[max(-(-len(values) * float(name[1:]) // 100), 1).__int__() - 1]
            self.assertGreaterEqual(int(value), right)
            self.assertLessEqual(int(value), right + right / 127)

    def test_rows_hold_the_values_between_their_ends(self):
        self.write_operations()
        for words in ([], ["--log", "1"], ["--log", "16"], ["--linear", "1000"]):
            [(_, rows, _)] = self.histograms(*words)
            for low, high, count in rows:
                self.assertEqual(count, sum(low <= value <= high for value in self.values), words)
            self.assertEqual(sum(count for _, _, count in rows), len(self.values))
        self.assertGreater(len(self.histograms("--log", "16")[0][1]), 100)

    def test_the_width_of_rows_may_have_a_unit(self):
        self.write_operations()
        self.assertEqual(self.histograms("--linear", "2us"), self.histograms("--linear", "2000"))
        self.assertNotEqual(self.histograms("--linear", "2us"), self.histograms("--linear", "2"))

    def write_values(self, values):
        capture = made_payload.capture(op=[Field("lat", unit="ns", role="value")])
        for value in values:
            capture.sample(raw=struct.pack("<Q", value))
        (self.folder / "perf.data").write_bytes(capture.file())

    def test_rows_without_values_become_one_line(self):
        self.write_values([3, 5, 26, 48, 100_000])
        lines = self.output("--linear", "1")[0].splitlines()[2:]
        self.assertEqual([line for line in lines if "rows" in line],
                         ["       ...    21 rows without values", "       ...    99951 rows without values"])
        rows = [ROW.match(line).groups() for line in lines if ROW.match(line)]
        self.assertEqual([int(low) for low, _, _ in rows], [3, 4, 5, *range(6, 27), 48, 100_000])
        # There are never that many powers of two.
        self.assertNotIn("without", self.output()[0])

    def test_parts_of_powers_show_every_value(self):
        self.write_values([*range(1000), *(1 << power for power in range(10, 60))])
        lines = self.output("--log", "64")[0].splitlines()[2:]
        rows = [tuple(map(int, ROW.match(line).groups())) for line in lines if ROW.match(line)]
        self.assertEqual(sum(count for *_, count in rows), 1050)
        self.assertEqual(rows[-1][0], 1 << 59)
        self.assertIn("                 ...    63 rows without values", lines)
        # More rows than the limit of 1,000 of --linear.
        values = [part << power for power in range(20) for part in range(64, 128)]
        self.write_values(values)
        lines = self.output("--log", "64")[0].splitlines()[2:]
        self.assertEqual([int(ROW.match(line).group(1)) for line in lines], values)

    def test_very_many_rows_end_with_what_is_left_out(self):
        self.write_values(range(0, 3000, 2))
        out = self.output("--linear", "1")[0]
        rows = [line for line in out.splitlines() if ROW.match(line)]
        self.assertEqual(len(rows), 1000)
        [last] = re.findall(r"left out: (\d+) rows of higher values, with (\d+) values; all fit with --linear (\d+),", out)
        self.assertEqual(last[:2], ("1999", "1000"))
        self.assertNotIn("left out", self.output("--linear", last[2])[0])

    def test_intervals_of_time_are_printed_one_after_another(self):
        self.write_operations()
        found = self.histograms("--interval", "50ms", "--percentiles", "100")
        self.assertEqual([heading for heading, _, _ in found],
                         [f"op: lat in ns, from 6.{at:03}000 s, 50 values" for at in (0, 50, 100, 150)])
        for number, (_, rows, last) in enumerate(found):
            values = self.values[50 * number:50 * number + 50]
            self.assertEqual([count for *_, count in rows],
                             [sum(low <= value <= high for value in values) for low, high, _ in rows])
            self.assertEqual(last, f"p100 {max(values)}")
        self.assertEqual(self.output("--interval", "0.05")[0], self.output("--interval", "50000us")[0])

    def test_a_capture_that_was_followed_has_the_whole_at_the_end(self):
        self.write_operations()
        whole = self.output()[0]
        followed = self.output("--interval", "100ms", "--follow")[0]
        self.assertEqual(followed, self.output("--interval", "100ms")[0] + "\n" + whole)

    def write_pairs(self, issues):
        """Writes (time in ms, event, device, sector); the two events have different names and types for the sector."""
        capture = made_payload.capture(
            issue=[Field("dev", size=4), Field("sector", SIGNED, 4)], done=[Field("device", size=4), Field("where"), Field("kind", TEXT, 1, 8)])
        for at, event, device, sector in sorted(issues):
            capture.time = 6_000_000_000 + at * 1_000_000 - made.STEP
            raw = struct.pack("<II", device, sector) if event == 0 else struct.pack("<IQ8s", device, sector, b"rw"[sector % 2:][:1])
            capture.sample(event=event, raw=raw)
        (self.folder / "perf.data").write_bytes(capture.file())

    def test_times_between_events_of_one_key(self):
        chance = random.Random(3)
        waits = {(device, sector): (chance.randrange(1000), chance.randrange(1, 2000)) for device in (1, 2) for sector in range(30)}
        self.write_pairs([(begin, 0, *key) for key, (begin, _) in waits.items()]
                         + [(begin + wait, 1, *key) for key, (begin, wait) in waits.items()])
        out, said = self.output("--between", "issue,done", "--key", "dev+sector,device+where", "--linear", "1000000")
        self.assertEqual(said, "")
        rows = [tuple(map(int, ROW.match(line).groups())) for line in out.splitlines() if ROW.match(line)]
        self.assertEqual(out.splitlines()[0], "done: time since issue in ns, 60 values")
        for low, _, count in rows:
            self.assertEqual(count, sum(wait == low // 1_000_000 for _, wait in waits.values()))
        self.assertEqual(sum(count for *_, count in rows), 60)
        for heading, rows, _ in self.histograms("--between", "issue,done", "--key", "dev+sector,device+where", "--by", "kind"):
            self.assertRegex(heading, r"kind [rw], 30 values$")

    def test_events_without_a_partner_are_counted(self):
        # Sector 7 starts twice before it ends, 8 never ends, 9 never starts.
        self.write_pairs([(0, 0, 1, 7), (5, 0, 1, 7), (9, 1, 1, 7), (20, 0, 1, 8), (30, 1, 1, 9)])
        out, said = self.output("--between", "issue,done", "--key", "sector,where")
        self.assertIn("1 value\n", out)
        self.assertIn("2097152 -> 4194303", out)  # 4 ms: from the later start
        self.assertEqual(said, "tacho hist: 2 events 'issue' had no end in the capture\n"
                               "tacho hist: 1 event 'done' had no begin in it\n")

    def test_payloads_that_end_before_the_key_are_in_no_pair(self):
        capture = made_payload.capture(issue=[Field("dev", size=4), Field("sector", size=4)],
                                       done=[Field("device", size=4), Field("where", size=4)])
        for event, raw in [(0, struct.pack("<I", 1)), (0, struct.pack("<II", 1, 5)), (1, struct.pack("<I", 1)),
                           (1, struct.pack("<I", 1)), (1, struct.pack("<II", 1, 5))]:
            capture.sample(event=event, raw=raw)
        (self.folder / "perf.data").write_bytes(capture.file())
        out, said = self.output("--between", "issue,done", "--key", "dev+sector,device+where", status=3)
        self.assertIn("done: time since issue in ns, 1 value\n", out)
        self.assertIn("a payload of 'issue' that ends before its field 'sector' (3 times)", said)
        self.assertEqual(len(said.splitlines()), 1, "none of them is counted as one without a partner")

    def test_names_of_events_may_have_commas(self):
        names = ["cpu/loads,ldlat=30/P", "mem:0x10/8:w", "cpu/loads"]
        capture = made_payload.capture(**{name: [Field("id")] for name in names})
        for event in (0, 1, 2):
            capture.sample(event=event, raw=struct.pack("<Q", 1))
        (self.folder / "perf.data").write_bytes(capture.file())
        for first, second in [(names[0], names[1]), (names[0], names[2]), (names[1], names[2])]:
            out, said = self.output("--between", f"{first},{second}", "--key", "id")
            self.assertIn(f"{second}: time since {first} in ns, 1 value\n", out)
            self.assertEqual(said, "")
        out, said = self.output("--between", f"{names[1]},{names[0]}", "--key", "id", status=None)
        self.assertIn(f"1 event '{names[0]}' had no begin", said)

    def test_one_event_from_time_to_time(self):
        self.write_pairs([(at, 0, 1, sector) for sector in (1, 2) for at in range(sector, 100, 4 * sector)])
        found = self.histograms("--between", "issue,issue", "--key", "sector", "--by", "sector")
        self.assertEqual([(heading.split(", ")[1], heading.split(", ")[2]) for heading, _, _ in found],
                         [("sector 1", "24 values"), ("sector 2", "12 values")])
        self.assertEqual([rows for _, rows, _ in found], [[(2097152, 4194303, 24)], [(4194304, 8388607, 12)]])

    def test_many_keys_that_never_end_are_given_up(self):
        """Long keys: more bytes than the limit for pending first events."""
        capture = made_payload.capture(begin=[Field("name", TEXT, 1, 60_000)], end=[Field("name", TEXT, 1, 60_000)])
        capture.data = bytearray(capture.data)  # appending in place, not by copying
        for number in range(2800):
            capture.sample(event=0, raw=str(number).encode().ljust(60_000, b"x"))
        for number in (2799, 0):
            capture.sample(event=1, raw=str(number).encode().ljust(60_000, b"x"))
        (self.folder / "perf.data").write_bytes(capture.file())
        out, said = self.output("--between", "begin,end", "--key", "name")
        self.assertIn("1 value\n", out)
        self.assertRegex(said, r"(?m)^tacho hist: [1-9]\d* events 'begin' of these were given up to bound memory")
        self.assertIn("1 event 'end' had no begin", said)

    def test_json_has_the_same_rows(self):
        self.write_operations()
        [one] = [json.loads(line) for line in self.output("--json", "--percentiles", "50,99.9")[0].splitlines()]
        [(_, rows, percentiles)] = self.histograms("--percentiles", "50,99.9")
        self.assertEqual([(row["low"], row["high"], row["count"]) for row in one["rows"]], [row for row in rows if row[2]])
        self.assertEqual((one["event"], one["field"], one["unit"], one["count"]), ("op", "lat", "ns", 200))
        self.assertEqual(f"p50 {one['p50']}, p99.9 {one['p99.9']}", percentiles)
        groups = [json.loads(line) for line in self.output("--json", "--by", "kind,pid", "--interval", "0.1")[0].splitlines()]
        self.assertEqual([(one["begin"], one["keys"]) for one in groups],
                         [(begin, {"kind": kind, "pid": made.PID}) for begin in (6.0, 6.1) for kind in "ab"])
        self.assertEqual([sum(row["count"] for row in one["rows"]) for one in groups], [50] * 4)
        [names] = [json.loads(line) for line in self.output("--json", "--field", "kind")[0].splitlines()]
        self.assertEqual(names["values"], [{"value": "a", "count": 100}, {"value": "b", "count": 100}])

    def test_wrong_words_are_answered(self):
        self.write_operations()
        for words, said in [(["--percentiles", "50,x"], "--percentiles: 'x' is no number from 0 to 100"),
                            (["--percentiles", "101"], "'101' is no number"), (["--percentiles", "nan"], "'nan' is no number"),
                            (["--field", "kind", "--percentiles", "50"], "are texts or names"),
                            (["--log", "3"], "--log: 3 is no power of two"), (["--log", "128"], "--log"),
                            (["--log", "2", "--linear", "5"], "cannot be combined"), (["--linear", "4k"], "--linear: 'lat' is in ns"),
                            (["--linear", "0"], "--linear: '0' is no width of rows"), (["--linear", "5+5"], "--linear: '5+5' is no width"), (["--interval", "5m"], "--interval: '5m' is no time"),
                            (["--interval", "nan"], "is no time"), (["--key", "tid"], "--key says which events of --between"),
                            (["--between", "op"], "--between takes two events"), (["--between", "op,op,op"], "'op,op,op' does not name two events of the capture"), (["--between", "op,o"], "there is no event 'o'"),
                            (["--between", "op,op", "--key", "a,b,c"], "--key takes a field"),
                            (["--between", "op,op", "--key", "lat+kind,lat"], "another number of fields"),
                            (["--between", "op,op", "--field", "lat"], "leave --event and --field out")]:
            out, error = self.output(*words, status=1)
            self.assertEqual(out, "", words)
            self.assertIn(said, error)


if __name__ == "__main__":
    programs.main()
