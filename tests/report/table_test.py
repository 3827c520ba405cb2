#!/usr/bin/env python3
"""tacho table: groups, numbers and sort orders, compared with numbers counted here."""
import csv
import io
import json
import random
import resource
import statistics
import struct

import made_capture as made
import made_payload
import programs
from made_payload import ENUM, TEXT, Field

KINDS = ((0, "READ"), (1, "WRITE"))


class Table(programs.Scratch):
    def write(self):
        """Operations of random kinds, files and times, one each millisecond."""
        chance = random.Random(5)
        self.made = []
        capture = made_payload.capture(op=[Field("lat", unit="ns", role="value"), Field("kind", ENUM, 4, enumerators=KINDS),
                                           Field("file", TEXT, 1, 12, role="key")])
        for number in range(200):
            one = (chance.randrange(1, 120), chance.randrange(2), chance.choice(["a", "b,c", 'd"']))
            self.made.append(one)
            capture.time = 6_000_000_000 + number * 1_000_000 - made.STEP  # sample() adds a step
            capture.sample(raw=struct.pack("<QI12s", *one[:2], one[2].encode()))
        (self.folder / "perf.data").write_bytes(capture.file())

    def output(self, *words, status=0):
        done = self.tacho("table", *words, status=status)
        return done.stdout.decode(), done.stderr.decode()

    def rows(self, *words):
        return [json.loads(line) for line in self.output("--json", *words)[0].splitlines()]

    def test_names_are_made_safe_once(self):
        names = [b"a\x01b", b"back\\slash", b"\xff\xfe", b'quo"te']
        capture = made_payload.capture(op=[Field("lat", unit="ns"), Field("file", TEXT, 1, 12)])
        for name in names:
            capture.sample(raw=struct.pack("<Q12s", 1, name))
        (self.folder / "perf.data").write_bytes(capture.file())
        whole = [json.loads(line)["fields"]["file"] for line in self.tacho("script", "--json").stdout.splitlines()]
        columns = [json.loads(line)["file"] for line in self.tacho("script", "--columns", "file", "--json").stdout.splitlines()]
        self.assertEqual(whole, ["a\\x01b", "back\\\\slash", "\\xff\\xfe", 'quo"te'])
        self.assertEqual(columns, whole)
        self.assertEqual({row["file"] for row in self.rows("--by", "file")}, set(whole))
        self.assertIn("a\\x01b", self.output("--by", "file")[0])

    def test_numbers_equal_the_samples(self):
        self.write()
        rows = self.rows("--columns", "count,sum,mean,min,max,p50,p90")
        self.assertEqual({row["file"] for row in rows}, {"a", "b,c", 'd"'})
        for row in rows:
            values = sorted(lat for lat, _, file in self.made if file == row["file"])
            self.assertEqual((row["count"], row["sum"], row["min"], row["max"]),
                             (len(values), sum(values), values[0], values[-1]))
            self.assertAlmostEqual(row["mean"], statistics.mean(values))
            self.assertEqual(row["p50"], values[-(-len(values) * 50 // 100) - 1])
            self.assertEqual(row["p90"], values[-(-len(values) * 90 // 100) - 1])
        self.assertEqual([row["sum"] for row in rows], sorted((row["sum"] for row in rows), reverse=True))

    def test_keys_values_and_conditions_go_together(self):
        self.write()
        rows = self.rows("--by", "kind,comm", "--value", "lat * 2", "--where", "lat >= 60", "--columns", "count,sum",
                         "--sort", "kind")
        self.assertEqual([(row["kind"], row["comm"]) for row in rows], [("READ", "spin"), ("WRITE", "spin")])
        for kind, row in enumerate(rows):
            values = [lat * 2 for lat, of, _ in self.made if of == kind and lat >= 60]
            self.assertEqual((row["count"], row["sum"]), (len(values), sum(values)))

    def test_orders_and_the_first_rows(self):
        self.write()
        by_lat = self.rows("--by", "lat", "--columns", "count", "--sort", "lat", "--top", "3")
        self.assertEqual([row["lat"] for row in by_lat], sorted({lat for lat, _, _ in self.made})[:3])
        by_lat = self.rows("--by", "lat", "--columns", "count", "--sort", "lat", "--top", "3", "--reverse")
        self.assertEqual([row["lat"] for row in by_lat], sorted({lat for lat, _, _ in self.made})[:-4:-1])
        counts = [row["count"] for row in self.rows("--by", "lat", "--columns", "sum,count", "--sort", "count")]
        self.assertEqual(counts, sorted(counts, reverse=True))

    def test_intervals_of_time(self):
        self.write()
        rows = self.rows("--by", "comm", "--interval", "0.05", "--columns", "count,sum")
        self.assertEqual([(row["begin"], row["count"]) for row in rows], [(6.0, 50), (6.05, 50), (6.1, 50), (6.15, 50)])
        self.assertEqual([row["sum"] for row in rows],
                         [sum(lat for lat, _, _ in self.made[at:at + 50]) for at in range(0, 200, 50)])

    def test_counted_values_are_in_the_interval_in_which_they_came(self):
        capture = made_payload.capture(op=[Field("kind", ENUM, 4, enumerators=KINDS, role="key"), Field("times", size=4, role="count")])
        # Readings each second, with jitter; the recording ends 0.3 s after the last one.
        for time, times in ((6_000_000_000, 10), (7_000_400_000, 20), (7_999_900_000, 30), (8_300_000_000, 5)):
            for kind in (0, 1):
                capture.time = time - made.STEP
                capture.sample(raw=struct.pack("<II", kind, times + kind))
        (self.folder / "perf.data").write_bytes(capture.file())
        rows = self.rows("--by", "kind", "--interval", "1", "--columns", "count")
        self.assertEqual([row["count"] for row in rows], [11, 10, 21, 20, 31, 30, 6, 5])
        self.assertEqual([round(row["begin"], 1) for row in rows], [5, 5, 6, 6, 7, 7, 8, 8])
        rows = self.rows("--by", "event", "--interval", "2", "--columns", "count")
        self.assertEqual([row["count"] for row in rows], [10 + 11 + 20 + 21, 30 + 31 + 5 + 6])

    def test_readings_without_a_count_leave_a_gap(self):
        """A reading without counts writes no samples, and a filter may remove all samples of a reading."""
        capture = made_payload.capture(op=[Field("kind", ENUM, 4, enumerators=KINDS, role="key"), Field("times", size=4, role="count")])
        for second in (1, 2, 3, 60, 61):
            for kind in ((0, 1) if second in (3, 60) else (0,)):
                capture.time = second * 10**9 - made.STEP
                capture.sample(raw=struct.pack("<II", kind, second))
        (self.folder / "perf.data").write_bytes(capture.file())
        rows = self.rows("--by", "event", "--interval", "1", "--columns", "count")
        self.assertEqual([(row["begin"], row["count"]) for row in rows], [(0, 1), (1, 2), (2, 6), (59, 120), (60, 61)])
        rows = self.rows("--by", "kind", "--interval", "1", "--columns", "count", "--where", "kind == WRITE")
        self.assertEqual([(row["begin"], row["count"]) for row in rows], [(2, 3), (59, 60)])

    def test_totals_of_many_values_are_added_once(self):
        capture = made_payload.capture(op=[Field("kind", ENUM, 4, enumerators=KINDS, role="key"), Field("times", size=4, role="count"),
                                           Field("size", size=4, role="key"), Field("total", size=4, role="sum"), Field("longest", size=4)])
        for kind, times, size, total, longest in ((0, 10, 3, 500, 90), (0, 30, 3, 700, 40), (1, 2, 5, 9, 8)):
            capture.sample(raw=struct.pack("<IIIII", kind, times, size, total, longest))
        (self.folder / "perf.data").write_bytes(capture.file())
        for value, sums in (("total", [1200, 9]), ("times", [40, 2]), ("longest", [130, 8]), ("size", [120, 10])):
            rows = self.rows("--by", "kind", "--value", value)
            self.assertEqual([row["sum"] for row in rows], sums, value)
            self.assertEqual([row["count"] for row in rows], [40, 2], value)
        self.assertEqual([row["sum"] for row in self.rows("--by", "kind")], [1200, 9])

    def test_csv_is_what_readers_of_csv_read(self):
        self.write()
        out, _ = self.output("--csv", "--columns", "count")
        rows = list(csv.reader(io.StringIO(out, newline="")))
        self.assertEqual(rows[0], ["file", "count"])
        self.assertEqual({row[0] for row in rows[1:]}, {"a", "b,c", 'd"'})
        self.assertEqual(sum(int(row[1]) for row in rows[1:]), 200)

    def test_no_cell_of_csv_is_a_formula(self):
        names = ["=1+1", "+1+1", "-1+1", "@SUM(1)", "-5", "a=b", "=1,2"]
        capture = made_payload.capture(op=[Field("lat", made_payload.SIGNED), Field("file", TEXT, 1, 12)])
        for name in names:
            capture.sample(raw=struct.pack("<q12s", -7, name.encode()))
        (self.folder / "perf.data").write_bytes(capture.file())
        safe = {"'=1+1", "'+1+1", "'-1+1", "'@SUM(1)", "-5", "a=b", "'=1,2"}
        cells = lambda out: list(csv.reader(io.StringIO(out, newline="")))[1:]
        out, _ = self.output("--csv", "--by", "file", "--value", "lat", "--columns", "count,min")
        self.assertEqual({tuple(row) for row in cells(out)}, {(name, "1", "-7") for name in safe})
        out = self.tacho("script", "--columns", "file,lat", "--csv").stdout.decode()
        self.assertEqual({tuple(row) for row in cells(out)}, {(name, "-7") for name in safe})
        out = self.tacho("report", "--csv", "--sort", "file").stdout.decode()
        self.assertTrue(safe <= {cell.strip('"') for row in cells(out) for cell in row}, out)

    def test_samples_without_times_are_in_no_interval(self):
        """The other samples are in the intervals of their times."""
        events = [made.Event("timed", made.SOFTWARE, 0, made.USUAL), made.Event("timeless", made.SOFTWARE, 2, made.USUAL & ~made.TIME)]
        capture = made.Capture(*events).started()
        for number in range(4):
            capture.sample(1)
            capture.time = 6_000_000_000 + number * 100_000_000 - made.STEP
            capture.sample(0)
        (self.folder / "perf.data").write_bytes(capture.file())
        out, said = self.output("--json", "--interval", "0.2", "--by", "event", status=3)
        self.assertEqual([(row["begin"], row["event"], row["count"]) for row in map(json.loads, out.splitlines())],
                         [(6.0, "timed", 2), (6.2, "timed", 2)])
        self.assertIn("4 samples of 'timeless' have no time and are in no interval; record with -T", said)
        self.assertEqual({row["event"]: row["count"] for row in self.rows("--by", "event")}, {"timed": 4, "timeless": 4})
        out, said = self.output("--interval", "0.2", "--event", "timeless", "--by", "comm", status=3)
        self.assertEqual(out, "")
        self.assertIn("4 samples of 'timeless' have no time", said)

    def test_a_key_in_octal_is_text_in_json(self):
        capture = made_payload.capture(open=[Field("mode", size=4, role="key", format="oct"), Field("depth", size=4)])
        for mode in (0o644, 0o644, 0):
            capture.sample(raw=struct.pack("<II", mode, 7))
        (self.folder / "perf.data").write_bytes(capture.file())
        rows = self.rows("--by", "mode,depth", "--columns", "count", "--sort", "mode")
        self.assertEqual([(row["mode"], row["depth"], row["count"]) for row in rows], [("00", 7, 1), ("0644", 7, 2)])

    def test_text_is_aligned_below_a_title(self):
        self.write()
        out, _ = self.output("--by", "kind", "--columns", "count,max")
        title, head, *rows = out.splitlines()
        self.assertEqual(title, "op: lat in ns")
        self.assertEqual(head.split(), ["kind", "count", "max"])
        self.assertEqual(len({len(row) for row in [head, *rows]}), 1)

    def test_text_in_a_pipe_is_no_wider_than_200_columns(self):
        long_name = "begin" + "x" * 300 + "end"
        capture = made_payload.capture(op=[Field("lat", unit="ns", role="value"), Field("file", TEXT, 1, 312, role="key")])
        capture.sample(raw=struct.pack("<Q312s", 1, long_name.encode()))
        (self.folder / "perf.data").write_bytes(capture.file())
        lines = self.output()[0].splitlines()
        self.assertLessEqual(max(map(len, lines)), 200)
        self.assertRegex(lines[-1], "beginx+.{1,3}x+end")
        for words in (["-w"], ["--csv"], ["--json"], ["-o", "table"]):
            text = self.output(*words)[0] or (self.folder / "table").read_text()
            self.assertIn(long_name, text)

    def test_many_rows_cost_as_text_what_they_cost_as_csv(self):
        capture = made_payload.capture(op=[Field("lat", unit="ns"), Field("number", role="key")])
        for number in range(20_000):
            capture.sample(raw=struct.pack("<QQ", 1, number))
        (self.folder / "perf.data").write_bytes(capture.file())

        def seconds(*words):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.assertEqual(len(self.output(*words)[0].splitlines()), 20_001 if words else 20_002)
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        csv_seconds = seconds("--csv")
        self.assertLess(seconds(), 4 * csv_seconds + 0.5)

    def test_functions_are_what_a_recorder_of_functions_is_grouped_by(self):
        capture = made_payload.capture(func=[Field("pid", role="key"), Field("function", role="function"),
                                             Field("ns", unit="ns", role="value", format="log2"), Field("calls", role="count")])
        for pid, function, calls in [(1, 0x1280, 5), (2, 0x1280, 7), (2, 0x12a0, 1)]:
            capture.sample(raw=struct.pack("<QQQQ", pid, function, 8, calls))
        (self.folder / "perf.data").write_bytes(capture.file())
        rows = {row["function"]: row["count"] for row in self.rows("--columns", "count")}
        self.assertEqual(rows, {0x1280: 12, 0x12a0: 1})
        said = self.tacho("hist").stdout.decode()
        self.assertEqual(sorted(line.split(", ")[1] for line in said.splitlines() if line.startswith("func:")),
                         [f"function {0x1280}", f"function {0x12a0}"])

    def test_events_of_different_recorders_are_named(self):
        """A table has one value and one set of keys: a note lists events that are not in it, and how to show them."""
        capture = made_payload.capture(op=[Field("lat", unit="ns"), Field("file", TEXT, 1, 4, role="key")],
                                       cache=[Field("pages", unit="pages"), Field("what", TEXT, 1, 4, role="key")])
        for event in range(2):
            capture.sample(event=event, raw=struct.pack("<Q4s", 5, b"abc"))
        (self.folder / "perf.data").write_bytes(capture.file())
        out, error = self.output(status=1)
        self.assertEqual(out, "")
        self.assertIn("the events have no keys in common; take --event NAME or --by comm: the events are op, cache; "
                      "for example: --event op\n", error)
        out, error = self.output("--by", "comm")
        self.assertTrue(out.startswith("op, cache: lat in ns\n"), out)
        self.assertIn("cache is only counted: no field is called 'lat' there; --value chooses the value\n", error)
        rows = {row["event"]: (row["count"], row["sum"]) for row in self.rows("--by", "comm")}
        self.assertEqual(rows, {"op": (1, 5), "cache": (1, None)})
        out, error = self.output("--by", "event", "--columns", "count")
        self.assertEqual((out.splitlines()[0], error), ("op, cache", ""))
        self.assertEqual({row["event"]: row["count"] for row in self.rows("--by", "event", "--columns", "count")}, {"op": 1, "cache": 1})
        _, error = self.output("--by", "file", "--value", "nosuch", status=1)
        self.assertIn("--value", error)
        _, error = self.output("--value", "nosuch", status=1)
        self.assertIn("--value", error)
        for words in (["--event", "cache"], ["--by", "what"], ["--by", "comm", "--value", "pages"]):
            out, error = self.output(*words)
            self.assertTrue(out.startswith("cache: pages"), out)
            self.assertEqual(error, "")

    def test_wrong_words_are_answered(self):
        self.write()
        for words, said in [(["--by", "fil"], "--by: there is no 'fil'"), (["--columns", "p101"], "there is no column 'p101'"),
                            (["--sort", "x"], "--sort: 'x' is neither a column"), (["--interval", "0"], "--interval: '0' is no time"),
                            (["--value", "lat +"], "--value: column 6: a value is missing"),
                            (["--csv", "--json"], "cannot be combined"), (["--value", "file"], "--value: 'file' is a text"), (["--value", "latt"], "'op' has no such field"), (["--event", "po"], "--event: there is no event 'po'")]:
            out, error = self.output(*words, status=1)
            self.assertEqual(out, "")
            self.assertIn(said, error)


if __name__ == "__main__":
    programs.main()
