#!/usr/bin/env python3
"""tacho heatmap: boxes have the right samples, and --box finds what was planted in a box."""
import json
import random
import re
import shlex
import struct
import xml.etree.ElementTree as ElementTree

import made_capture as made
import made_payload
import programs
from made_payload import ENUM, FLOAT, SIGNED, TEXT, Field

GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs"]
SVG = "{http://www.w3.org/2000/svg}"
SECOND = 1_000_000_000
CHAINS = {name: [made.CONTEXT_USER, address + 4, made.MAIN + 9] for name, address in (("leaf_a", made.LEAF_A), ("leaf_b", made.LEAF_B))}


class HeatMap(programs.Scratch):
    def heatmap(self, *words, status=0):
        done = self.tacho("heatmap", *words, status=status)
        return done.stdout.decode(), done.stderr.decode()

    def json(self, *words, status=0):
        return json.loads(self.heatmap("--json", *words, status=status)[0])

    def picture(self, *words):
        self.heatmap("-o", "map.svg", *words)
        return ElementTree.fromstring((self.folder / "map.svg").read_bytes())

    def write(self, capture, name="perf.data"):
        (self.folder / name).write_bytes(capture.file())

    def plant(self):
        """2,000 requests of two threads in ten seconds; from 4 to 6 s a third thread makes all requests of 1 to 1.1 ms."""
        chance = random.Random(3)
        fields = dict(io=[Field("lat", unit="ns", role="value"), Field("op", ENUM, 4, enumerators=((0, "READ"), (1, "WRITE"))),
                          Field("size", size=4), Field("file", TEXT, 1, 8)])
        capture = made_payload.capture(chains=True, **fields)
        capture.named("reader", 101).named("other", 102).named("writer", 103)
        self.samples = []
        for number in range(2000):
            time = 100 * SECOND + number * 10 * SECOND // 2000 + chance.randrange(1_000_000)
            is_planted = 4 * SECOND <= time - 100 * SECOND < 6 * SECOND and number % 10 == 3
            latency = chance.randrange(1_000_000, 1_100_000) if is_planted else chance.choice([chance.randrange(900_000), 3_000_000])
            tid = 103 if is_planted else 101 + number % 2
            size = 4096 * chance.randrange(1, 200)
            capture.time = time - made.STEP  # sample() adds a step
            capture.sample(tid=tid, chain=CHAINS["leaf_b" if is_planted else "leaf_a"], ip=made.LEAF_A + 4,
                           raw=struct.pack("<QII8s", latency, 1 if is_planted else 0, size, f"f{chance.randrange(5)}".encode()))
            self.samples.append((time, latency, tid))
        self.write(capture)

    def count(self, begin, end, low, high):
        return sum(begin <= time < end and low <= value <= high for time, value, _ in self.samples)

    def check_boxes(self, shown, offset_in=0):
        """Checks the JSON object: the count of every box."""
        interval, begin = round(shown["interval"] * SECOND), round(shown["begin"] * SECOND)
        seen = {(box["column"], box["row"]): box["count"] for box in shown["boxes"]}
        for column in range(shown["columns"]):
            for row, ends in enumerate(shown["rows"]):
                count = sum(1 for time, value, _ in self.samples if begin + column * interval <= time < begin + (column + 1) * interval
                            and ends["low"] <= (time % offset_in if offset_in else value) <= ends["high"])
                self.assertEqual(seen.get((column, row), 0), count, (column, row))
        self.assertEqual(sum(seen.values()), len(self.samples))
        self.assertEqual(shown["samples"], len(self.samples))

    # ---- maps

    def test_boxes_have_the_samples_in_them(self):
        self.plant()
        for words in ([], ["--log", "1"], ["--linear", "auto"], ["--linear", "100us"], ["--interval", "300ms"]):
            shown = self.json(*words)
            self.check_boxes(shown)
            self.assertLessEqual(shown["columns"], 200)
            self.assertLessEqual(len(shown["rows"]), 64)
        self.assertEqual(round(self.json("--interval", "300ms")["interval"], 9), 0.3)
        self.assertEqual({row["high"] - row["low"] for row in self.json("--linear", "100us")["rows"]}, {99_999})

    def axis(self, picture, name):
        """[(place, text)] of an axis."""
        axis, place = picture.find(f".//{SVG}g[@class='axis {name}']"), "y" if name == "values" else "x"
        return [(float(label.get(place)), label.text) for label in axis.findall(f"{SVG}text")]

    def test_axes_have_round_numbers_where_the_values_are(self):
        self.plant()
        units = {"ns": 1, "us": 1e3, "\u00b5s": 1e3, "ms": 1e6}
        for words in ([], ["--log", "1"], ["--linear", "auto"], ["--linear", "100us"]):
            rows, picture = self.json(*words)["rows"], self.picture(*words)
            tall = float(picture.get("data-row"))
            labels = self.axis(picture, "values")
            self.assertGreater(len(labels), 4, words)
            for y, text in labels:
                number, unit = text.split() if " " in text else (text, "ns")
                value = float(number) * units[unit]
                self.assertRegex(f"{value:.0f}", r"^([125]0*|[0-9]+00000|0)$", words)
                row = next((at for at, row in enumerate(rows) if row["low"] <= value <= row["high"]), None)
                self.assertIsNotNone(row, (words, text))
                above = len(rows) - (y - 4) / tall  # rows from below
                self.assertTrue(row - 0.02 <= above <= row + 1.02, (words, text, row, above))
            places = sorted(y for y, _ in labels)
            self.assertTrue(all(b - a >= 14.9 for a, b in zip(places, places[1:])), places)
        times = self.axis(self.picture(), "times")
        self.assertGreater(times[-1][0], 980, "times are labelled up to the right end")

    def test_offsets_are_in_their_second(self):
        self.plant()
        shown = self.json("--offset")
        self.check_boxes(shown, offset_in=SECOND)
        self.assertEqual((shown["columns"], len(shown["rows"]), shown["interval"], shown["period"]), (10, 50, 1, 1))
        shown = self.json("--offset", "--interval", "250ms")
        self.check_boxes(shown, offset_in=SECOND // 4)
        self.assertEqual((shown["columns"], shown["period"]), (40, 0.25))

    def test_the_text_is_the_same_map(self):
        self.plant()
        for width in (60, 100, 200):
            text, _ = self.heatmap("--width", width, "--log", "1")
            lines = text.splitlines()
            self.assertTrue(all(len(line) <= width for line in lines if "|" in line), text)
            shown = sum(len(re.findall(r"[1-9]", line.split("|")[1])) for line in lines if re.match(r" *\S+ \w+ \|", line))
            self.assertGreater(shown, 20)
            legend = next(line for line in lines if line.startswith("samples:"))
            self.assertIn("1 = 1", legend)
            self.assertNotIn("\x1b", text)
            box = lines[-1].split(" --box ")[1]
            columns, _, words = lines[2].partition(" columns of ")
            self.assertIn("2,000 samples in ", columns)
            reported = self.json("--box", box)
            most = int(legend.rpartition("-")[2].rpartition("= ")[2])
            self.assertEqual(reported["inside"], most)

    def test_one_column_is_no_columns(self):
        self.plant()
        text, _ = self.heatmap("--interval", "100s", "--log", "1")
        self.assertIn(" in 1 column of 100 s and ", text)

    def test_the_picture_is_the_same_map_and_its_words_are_boxes(self):
        self.plant()
        shown, picture = self.json(), self.picture()
        rows = len(shown["rows"])
        rects = picture.findall(f".//{SVG}g[@class='boxes']/{SVG}rect")
        self.assertEqual({(int(rect.get("x")), rows - 1 - int(rect.get("y"))): int(rect.get("n")) for rect in rects},
                         {(box["column"], box["row"]): box["count"] for box in shown["boxes"]})
        words = {(box["column"], box["row"]): box["box"] for box in shown["boxes"]}
        for rect in rects:
            title = rect.find(f"{SVG}title").text
            self.assertTrue(title.endswith("--box " + words[int(rect.get("x")), rows - 1 - int(rect.get("y"))]), title)
        for rect in programs.part_of(rects):
            reported = self.json("--box", rect.find(f"{SVG}title").text.split("--box ")[1])
            self.assertEqual(reported["inside"], int(rect.get("n")))
            self.assertEqual(reported["outside"], 2000 - int(rect.get("n")))

    def test_the_same_input_gives_the_same_bytes(self):
        self.plant()
        for words in (["--svg"], [], ["--json"], ["--offset"], ["--box", "104..106,1ms..1.1ms"]):
            first = self.heatmap(*words, *SYMBOLS, status=None)
            self.assertTrue(all(first == self.heatmap(*words, *SYMBOLS, status=None) for _ in range(3)), words)

    def test_a_pipe_is_read_like_a_file(self):
        self.plant()
        with open(self.folder / "pipe.data", "wb") as file:
            file.write(self.tacho("convert", "-i", "perf.data", "-o", "-").stdout)
        boxes = lambda *words: self.json(*words)["boxes"]
        self.assertEqual(boxes("-i", "pipe.data"), boxes())
        box = ["--box", "104..106,1000000..1099999"]
        self.assertEqual(self.json("-i", "pipe.data", *box, *SYMBOLS, status=None)["rows"], self.json(*box, *SYMBOLS, status=None)["rows"])
        self.assertIn("a pipe is read once", self.heatmap("-i", "pipe.data", "--box", "104,5", status=1)[1])

    def test_fields_of_every_kind_have_rows(self):
        values = [-(1 << 62), -7, 0, 3, 1 << 40]
        fields = [Field("signed", SIGNED), Field("real", FLOAT), Field("small", size=1), Field("text", TEXT, 1, 4),
                  Field("list", count=2), Field("odd name-1")]
        capture = made_payload.capture(a=fields)
        for value in values:
            capture.sample(raw=struct.pack("<qdB4sQQQ", value, value / 2, value & 255, b"x", 1, 2, 9), cpu=3)
        self.write(capture)
        for name, right in (("signed", values), ("real", [int(value / 2) for value in values]), ("small", [v & 255 for v in values]),
                            ("period", [1000] * 5), ("cpu", None), ("tid", [made.PID] * 5)):
            shown = self.json("--field", name)
            for row in shown["rows"]:
                if right:
                    self.assertEqual(row["count"], sum(row["low"] <= value <= row["high"] for value in right), (name, row))
            reported = self.json("--field", name, "--box", "..," + (f"{min(right)}..{max(right)}" if right else ".."))
            self.assertEqual((reported["inside"], reported["outside"]), (5, 0))
            # The printed --where condition selects the same samples in other commands, also of truncated fractions.
            for one in right or []:
                reported = self.json("--field", name, "--box", f"..,{one}..{one}")
                self.assertEqual(self.selected(reported["samples"]), reported["inside"], (name, one))
        self.assertIn("texts or names", self.heatmap("--field", "text", status=1)[1])
        self.assertIn("is a list", self.heatmap("--field", "list", status=1)[1])
        self.assertIn("no field 'lat'", self.heatmap("--field", "lat", status=1)[1])
        self.assertIn("is no number to show", self.heatmap("--field", "comm", status=1)[1])
        reported = self.json("--field", "odd name-1", "--box", "..,9..9")
        self.assertEqual(reported["inside"], 5)
        self.assertNotIn("samples", reported, "no condition can name it")

    def test_samples_that_lack_the_field_or_the_time_are_counted(self):
        capture = made_payload.capture(io=[Field("at", size=4), Field("value", unit="ns", role="value")])
        capture.sample(raw=struct.pack("<IQ", 5, 6)).sample(raw=b"")
        self.write(capture)
        shown, said = self.heatmap("--json", status=3)
        self.assertEqual(json.loads(shown)["samples"], 1)
        self.assertIn("ends before its field 'value'", said)
        self.write(made.Capture(made.Event("faults", made.SOFTWARE, 2, made.IDENTIFIER | made.IP | made.TID)).started().sample())
        self.assertIn("have no time", self.heatmap(status=3)[1])

    def test_a_field_of_several_events_needs_the_name_of_one(self):
        fields = [Field("lat", unit="ns", role="value")]
        capture = made_payload.capture(read=fields, write=fields)
        for number in range(30):
            capture.sample(event=number % 3 == 0, raw=struct.pack("<Q", 100 + number))
        self.write(capture)
        self.assertIn("tacho heatmap -i perf.data --event read", self.heatmap(status=1)[1])
        self.assertEqual([self.json("--event", name)["samples"] for name in ("read", "write")], [20, 10])
        # Offsets and sample values are for all events; the event is then one of the compared fields.
        self.assertEqual(self.json("--offset")["samples"], 30)
        reported = self.json("--field", "period", "--box", "..,..", "--event", "write")
        self.assertEqual((reported["inside"], reported["outside"]), (10, 0))
        reported = self.json("--offset", "--box", "..,..")
        self.assertEqual(self.selected(reported["samples"]), 30)

    def test_the_processor_is_shown_where_it_was_recorded(self):
        self.write(made.Capture(made.Event("clock", made.SOFTWARE, 0, made.USUAL)).started().sample().sample())
        self.assertEqual([(row["low"], row["high"], row["count"]) for row in self.json("--field", "cpu")["rows"]], [(0, 0, 2)])
        self.write(made.Capture(made.Event("clock", made.SOFTWARE, 0, made.USUAL & ~made.CPU)).started().sample())
        self.assertIn("the samples have no CPU", self.heatmap("--field", "cpu", status=1)[1])

    def test_an_empty_capture_is_an_empty_map(self):
        self.write(made_payload.capture(io=[Field("lat", unit="ns", role="value")]))
        self.assertIn("no samples", self.heatmap()[1])
        self.assertEqual(self.json()["boxes"], [])
        self.assertEqual(self.picture().findall(f".//{SVG}g[@class='boxes']"), [])
        self.assertIn("no samples in this box", self.heatmap("--box", "1..2,3..4")[1])

    def test_all_samples_in_a_box_stand_out_from_nothing(self):
        self.plant()
        text, said = self.heatmap("--box", "..,..", *SYMBOLS, status=None)
        self.assertIn("2,000 samples in the box, 0 outside\nnothing is significantly more frequent in the box\n", text)
        self.assertIn("nothing to compare them with", said)

    def test_a_box_of_a_field_without_a_unit_has_none(self):
        self.plant()
        self.assertIn("1ms..2ms' is no box", self.heatmap("--field", "cpu", "--box", "104..106,1ms..2ms", status=1)[1])

    def test_the_commands_are_the_same_for_any_number_of_threads(self):
        self.plant()
        one, many = (self.heatmap("--box", "104..106,1ms..1.1ms", "--jobs", jobs, status=None)[0] for jobs in "14")
        self.assertEqual(one, many)
        self.assertNotIn("--jobs", one)

    def test_wrong_use_says_what_to_do(self):
        self.plant()
        for words, said in ((["--box", "5"], "TIME,VALUE"), (["--box", "1..2,9..3"], "the lower one"), (["--box", "5,7"], "outside of the map"),
                            (["--box", "105,9s"], "outside of the map"), (["--offset", "--field", "lat"], "cannot be combined"),
                            (["--linear", "3", "--log", "2"], "cannot be combined"), (["--linear", "4k"], "whole numbers of ns"),
                            (["--log", "3"], "1, 2, 4 and 8"), (["--svg", "--json"], "cannot be combined"),
                            (["--box", "1,2", "-o", "a.svg"], "has no --svg form"), (["--field", "lta"], "choose with --field"),
                            (["--event", "oi"], "io")):
            self.assertIn(said, self.heatmap(*words, status=1)[1], words)

    # ---- boxes

    def selected(self, command):
        """Number of samples that the command prints as JSON."""
        words = shlex.split(command)
        self.assertEqual(words[:2], ["tacho", "script"])
        return len(self.tacho(*words[1:], "--json", status=None).stdout.splitlines())

    def drawn(self, command):
        """Number of samples in the flame graph."""
        words = shlex.split(command)
        self.assertEqual(words[:2], ["tacho", "flamegraph"])
        self.tacho(*words[1:], *SYMBOLS, status=None)
        root = ElementTree.fromstring((self.folder / "box.svg").read_bytes())
        return int(root.find(f".//{SVG}g[@class='frames']/{SVG}rect").get("w"))

    def test_what_one_thread_made_stands_out_with_its_counts(self):
        self.plant()
        inside = self.count(104 * SECOND, 106 * SECOND, 1_000_000, 1_099_999)
        self.assertEqual(inside, sum(tid == 103 for *_, tid in self.samples))
        self.assertGreater(inside, 30)
        reported = self.json("--box", "104..106,1ms..1.1ms", *SYMBOLS, status=None)
        self.assertEqual((reported["inside"], reported["outside"]), (inside, 2000 - inside))
        first = {}
        for row in reported["rows"]:
            if row["inside"] == inside and row["outside"] == 0:
                first.setdefault(row["kind"], []).append(row)
                self.assertEqual((row["share_inside"], row["share_outside"], row["factor"]), (1, 0, None))
        self.assertEqual([(row["name"], row["pid_tid"]) for row in first["thread"]], [("writer", f"{made.PID}/103")])
        self.assertEqual([(row["name"], row["module"]) for row in first["function"]], [("leaf_b", "spin")])
        self.assertEqual({(row["name"], row["value"]) for row in first["field"]}, {("comm", "writer"), ("op", "WRITE")})
        self.assertEqual([row["frames"] for row in first["stack"]], [["main", "leaf_b"]])
        # These are first, and what is equally frequent outside is not listed.
        self.assertEqual(len({row["g2"] for row in reported["rows"][:5]}), 1)
        self.assertTrue(all(row["g2"] < reported["rows"][0]["g2"] for row in reported["rows"][5:]))
        self.assertEqual(reported["rows"][0]["kind"], "thread")
        self.assertNotIn("main", [row.get("name") for row in reported["rows"]])
        self.assertNotIn("file", [row.get("name") for row in reported["rows"]])

    def test_the_text_says_the_same(self):
        self.plant()
        text, _ = self.heatmap("--box", "104..106,1ms..1.1ms", *SYMBOLS, status=None)
        rows = [line.split() for line in text.splitlines() if re.match(r" +\d+\.\d ", line)]
        inside = sum(tid == 103 for *_, tid in self.samples)
        self.assertEqual(rows[0][1:6], [str(inside), "0", "100.00%", "0.00%", "only"])
        self.assertEqual(rows[0][6:], ["thread", "writer", f"({made.PID}/103)"])
        self.assertIn("function leaf_b (spin)", text)
        self.assertIn("op WRITE", text)

    def test_unique_values_do_not_come_first(self):
        """Every sample has a unique size; half of the box's samples have one operation."""
        capture = made_payload.capture(io=[Field("lat", unit="ns", role="value"), Field("unique"), Field("op", size=4)])
        for number in range(400):
            is_inside = number % 40 == 0
            capture.sample(raw=struct.pack("<QQI", 5000 if is_inside else 10, number * 7919, 9 if number % 80 == 0 else 1))
        self.write(capture)
        reported = self.json("--box", "..,5000..5000")
        self.assertEqual((reported["rows"][0]["name"], reported["rows"][0]["value"], reported["rows"][0]["inside"]), ("op", "9", 5))
        self.assertNotIn("unique", [row["name"] for row in reported["rows"] if row["inside"] == 1])

    def test_fields_with_too_many_values_are_named_or_counted_in_ranges(self):
        capture = made_payload.capture(io=[Field("lat", unit="ns", role="value"), Field("text", TEXT, 1, 8), Field("number")])
        parts = [capture.data]
        numbers = [number % 60_000 if number % 100 == 0 else number % 5000 for number in range(66_000)]
        for number, value in enumerate(numbers):
            capture.data = b""
            capture.sample(raw=struct.pack("<Q8sQ", 5000 if number % 100 == 0 else 10, f"{number:x}".encode(), value))
            parts.append(capture.data)
        capture.data = b"".join(parts)
        self.write(capture)
        shown, said = self.heatmap("--json", "--box", "..,5000..5000", "--top", "99", status=None)
        rows = [row for row in json.loads(shown)["rows"] if row["name"] == "number"]
        self.assertIn("32768..65535", [row["value"] for row in rows])
        for row in rows:
            low, high = map(int, row["value"].split(".."))
            self.assertEqual(row["inside"], sum(low <= value <= high for value in numbers[::100]))
            self.assertEqual(row["outside"], sum(low <= value <= high for value in numbers) - row["inside"])
        self.assertIn("'text' has more values than are ranked", said)

    def test_the_commands_choose_the_same_samples(self):
        self.plant()
        chance = random.Random(11)
        for words, box in ([[], "104..106,1ms..1.1ms"], [[], "..103.5,..50000"], [[], "102.25..,900000.."], [["--offset"], "102..107,0.25..0.5"],
                           [["--offset", "--interval", "100ms"], "103..104,0.01..0.035"], [["--field", "period"], "101..102,.."],
                           [["--time", "101,103 104,105"], "..,1000..800000"], [["--where", "op == READ || size > 100k"], "104..106,1ms.."],
                           [["--tid", "103", "--comm", "writer"], "..,1050000.."]):
            reported = self.json("--box", box, *words, status=None)
            self.assertGreater(reported["inside"], 0, words)
            self.assertEqual(self.drawn(reported["flamegraph"]), reported["inside"], (words, reported["flamegraph"]))
            self.assertEqual(self.selected(reported["samples"]), reported["inside"], (words, reported["samples"]))
        for _ in range(programs.scaled(40)):
            begin, low = chance.randrange(100 * SECOND, 110 * SECOND), chance.randrange(1_000_000)
            end, high = begin + chance.randrange(1, 3 * SECOND), low + chance.randrange(800_000)
            reported = self.json("--box", f"{begin / SECOND:.9f}..{end / SECOND:.9f},{low}..{high}", status=None)
            self.assertEqual(reported["inside"], self.count(begin, end, low, high))
            if reported["inside"]:
                self.assertEqual(self.selected(reported["samples"]), reported["inside"])

    def test_a_point_means_the_box_around_it(self):
        self.plant()
        shown = self.json()
        for box in programs.part_of(shown["boxes"]):
            begin = shown["begin"] + box["column"] * shown["interval"] + shown["interval"] / 3
            value = shown["rows"][box["row"]]["low"]
            reported = self.json("--box", f"{begin:.9f},{value}")
            # Text has other boxes than JSON, which has those of the picture.
            self.assertEqual((reported["box"], reported["inside"]), (box["box"], box["count"]))

    def test_names_stay_text(self):
        hostile = "</script><img src=x onerror=alert(1)>\x1b[31m\u202e"
        capture = made_payload.capture(chains=True, **{hostile: [Field("v\x1b]\"'<b>", unit="<ns>", role="value"), Field("</g>", TEXT, 1, 8)]})
        capture.named("</svg>\x1b\"'")
        for number in range(40):
            capture.sample(raw=struct.pack("<Q8s", number, b"<i>\x1b"), chain=CHAINS["leaf_a"], tid=made.PID + (number > 30))
        self.write(capture)
        picture = self.picture()
        tags = {element.tag.rsplit("}")[-1] for element in picture.iter()}
        self.assertEqual(tags, {"svg", "title", "style", "rect", "g", "text", "path", "metadata", "script"})
        self.assertIn("</script><img src=x onerror=alert(1)>\\x1b[31m\\xe2\\x80\\xae", picture.find(f"{SVG}title").text)
        for words in ([], ["--box", "..,31.."]):
            text, said = self.heatmap(*words, status=None)
            self.assertNotIn("\x1b", text + said)
            self.assertNotIn("\u202e", text + said)
        self.assertEqual({row["value"] for row in self.json("--box", "..,31..", status=None)["rows"] if row["name"] == "</g>"}, set())

    def test_a_picture_is_bounded(self):
        chance = random.Random(4)
        capture = made_payload.capture(io=[Field("lat", unit="ns", role="value")])
        for number in range(programs.scaled(200_000)):
            capture.time += 17_000_003
            capture.sample(raw=struct.pack("<Q", 1 << chance.randrange(60) | chance.randrange(1 << 20)))
        self.write(capture)
        picture = self.picture("--log", "8", "--interval", "1ms")
        self.assertLessEqual(len(picture.findall(f".//{SVG}g[@class='boxes']/{SVG}rect")), 200 * 64)
        self.assertLess((self.folder / "map.svg").stat().st_size, 4_000_000)
        script = next(picture.iter(f"{SVG}script")).text
        self.assertLess(len(script), 20_000)
        self.assertNotIn("http:", script.replace("http://www.w3.org/", ""))


if __name__ == "__main__":
    programs.main()
