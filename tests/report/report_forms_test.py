#!/usr/bin/env python3
"""`report --json` and `--csv`: parsed results, with the numbers of the text."""
import csv
import io
import json
import re
import struct

import made_capture
import made_reports
import programs
from programs import ROOT

GOLDEN = ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
CAPTURES = ["comm", "group", "pipe", "threads", "unwound", "uprobe", "payload", "predicted-branches", "loads-in-detail"]
GROUP_DESC = 17  # a feature of the header
ODD_NAMES = [b'a"b', b"c,d", b"e\r\nf", b"\x01\x1b[31m", b"\xff\xfe", "\u202e".encode(), b"back\\slash", b" lead", b"\\x01"]


def odd_names():
    """A thread that renames itself before each sample."""
    made = made_capture.Capture(made_capture.Event("odd,\"name\"\n", made_capture.SOFTWARE, 0, made_capture.USUAL)).started()
    for number, name in enumerate(ODD_NAMES):
        made.data += made_capture.record(
            3, 0, struct.pack("<II", made_capture.PID, made_capture.PID) + name + bytes(16 - len(name)) + made.trailer())
        made.sample(period=10 ** 17 + number)
    return made


class ReportForms(programs.Scratch):
    def report(self, *words):
        return self.tacho("report", *SYMBOLS, *words, status=None).stdout

    def json(self, *words):
        text = self.report("--json", *words)
        return json.loads(text.decode("utf-8", "strict"))

    def csv(self, *words):
        text = self.report("--csv", *words)
        self.assertTrue(text.endswith(b"\r\n"))
        return list(csv.DictReader(io.StringIO(text.decode("utf-8", "surrogateescape"), newline="")))

    def test_guests_are_separate_from_the_host_and_from_each_other(self):
        host_kernel, host_user, guest_kernel, guest_user = 1, 2, 4, 5
        made = made_capture.Capture(made_capture.Event("cpu-clock", made_capture.SOFTWARE, 0, made_capture.USUAL))
        for mode, samples in ((host_kernel, 1), (host_user, 2), (guest_kernel, 3), (guest_user, 4)):
            for _ in range(samples):
                made.sample(ip=0x7000, misc=mode)
        (self.folder / "guests.data").write_bytes(made.file())
        rows = self.json("-i", "guests.data", "--sort", "sym")["reports"][0]["rows"]
        self.assertEqual(sorted(row["self"][0]["samples"] for row in rows), [3, 3, 4], "what has no module is one of the host's")
        columns = ["overhead", "overhead_sys", "overhead_us", "overhead_guest_sys", "overhead_guest_us"]
        shares = ["100.00%", "10.00%", "20.00%", "30.00%", "40.00%"]
        text = self.report("-i", "guests.data", "-F", ",".join([*columns, "comm"])).decode()
        self.assertEqual([line.split()[:5] for line in text.splitlines() if "%" in line], [shares])
        text = self.report("-i", "guests.data", "--hierarchy", "--sort", ",".join([*columns, "comm"])).decode()
        self.assertEqual([line.split()[1] for line in text.splitlines() if line.count("%") == 2], shares[1:])

    def test_rows_add_up_to_their_event(self):
        for name in CAPTURES:
            with self.subTest(capture=name):
                document = self.json("-i", GOLDEN / f"captures/{name}.data")
                self.assertEqual(document["tacho_report"], 1)
                self.assertGreater(len(document["reports"]), 0)
                for report in document["reports"]:
                    self.assertGreater(len(report["rows"]), 0)
                    for number, event in enumerate(report["events"]):
                        own = [row["self"][number] for row in report["rows"]]
                        self.assertEqual(sum(one["samples"] for one in own), event["samples"])
                        self.assertEqual(sum(one["period"] for one in own), event["period"])
                        counted = "period" if event["period"] else "samples"
                        self.assertEqual(event["hundred_percent"], event[counted])
                        for one in own:
                            if event["hundred_percent"]:
                                self.assertAlmostEqual(one["percent"], 100 * one[counted] / event["hundred_percent"])

    def test_without_times_there_is_no_time(self):
        made = made_capture.Capture(made_capture.Event("cpu-clock", made_capture.SOFTWARE, 0, made_capture.USUAL & ~made_capture.TIME),
                                    features={21: struct.pack("<QQ", 2**64 - 1, 2**64 - 1)})  # SAMPLE_TIME
        (self.folder / "untimed.data").write_bytes(made.sample().file())
        untimed = ["-i", "untimed.data"]
        document = self.json(*untimed, "--sort", "time")
        self.assertEqual(document["reports"][0]["rows"][0]["keys"], {"time": None})
        self.assertNotIn("first_sample", document["capture"])
        self.assertEqual(self.csv(*untimed, "--sort", "time")[0]["time"], "")
        self.assertNotIn(b"18446744073", self.report(*untimed, "--sort", "time"))
        self.assertIn(b"18446744073.", self.report("--as-perf", *untimed, "--sort", "time"), "perf's text")
        line = lambda *words: self.tacho(*words, *untimed, status=None).stdout.decode().splitlines()[-1].split()
        self.assertEqual(line("script", "--columns", "time,period"), ["-", "1000"])
        self.assertEqual(line("script", "--columns", "time,period", "--csv"), [",1000"])
        self.assertEqual(json.loads("".join(line("script", "--columns", "time,period", "--json"))), {"time": None, "period": 1000})
        self.assertEqual(line("table", "--by", "time"), ["?", "1"])

    def test_samples_are_periods_where_all_periods_are_0(self):
        made = made_capture.Capture(made_capture.Event("io", made_capture.SOFTWARE, 10, made_capture.USUAL)).started()
        (self.folder / "zero.data").write_bytes(made.sample(period=0).sample(period=0).file())
        zero = ["-i", "zero.data", "--sort", "comm"]
        self.assertIn(["100.00%", "2", "2"], [line.split()[:3] for line in self.report(*zero, "-F", "overhead,sample,period,comm").decode().splitlines()])
        self.assertEqual([row["period"] for row in self.csv(*zero)], ["2"])
        report, = self.json(*zero)["reports"]
        self.assertEqual([(row["self"][0]["samples"], row["self"][0]["period"]) for row in report["rows"]], [(2, 2)])
        self.assertEqual([report["events"][0][name] for name in ("samples", "period", "filtered_period", "hundred_percent")], [2, 2, 0, 2])

    def test_graphs_add_up_to_their_row(self):
        met = 0
        for name in ("comm", "threads", "unwound"):
            for order in ("caller", "callee"):
                document = self.json("-i", GOLDEN / f"captures/{name}.data", "-g", f"graph,0,{order}")
                self.assertEqual(document["call_order"], order)
                for report in document["reports"]:
                    for row in report["rows"]:
                        nodes = row.get("calls", [])
                        if nodes:
                            self.assertEqual(sum(node["period"] for node in nodes), row["children"][0]["period"])
                        while nodes:
                            node = nodes.pop()
                            met += 1
                            self.assertGreater(len(node["frames"]), 0)
                            for what in ("period", "samples"):
                                below = sum(child[what] for child in node["calls"])
                                self.assertEqual(below + node[f"ended_{what}"], node[what])
                            nodes += node["calls"]
        self.assertGreater(met, 50)

    def test_rows_equal_the_text(self):
        for name, words in (("comm", []), ("threads", ["--sort", "comm,cpu"]), ("comm", ["--percent-limit", "5"]),
                            ("comm", ["--top", "3"]), ("predicted-branches", ["--percent-limit", "0.5"]),
                            ("loads-in-detail", ["--mem-mode"]), ("threads", ["--comms", "crew", "--percentage", "relative"])):
            with self.subTest(capture=name, words=words):
                capture = GOLDEN / f"captures/{name}.data"
                text = self.report("-i", capture, "-q", "-g", "none", "--no-children", *words)
                shares = re.findall(rb"^ +(\d+\.\d\d)%", text, re.MULTILINE)
                rows = [row for report in self.json("-i", capture, "--no-children", *words)["reports"] for row in report["rows"]]
                self.assertEqual([b"%.2f" % row["self"][0]["percent"] for row in rows], shares)

    def test_csv_has_the_same_rows_as_json(self):
        for name in CAPTURES:
            with self.subTest(capture=name):
                capture = GOLDEN / f"captures/{name}.data"
                lines = self.csv("-i", capture)
                document = self.json("-i", capture)
                expected = [(event["event"], own["samples"], own["period"], own["percent"], set(row["keys"]))
                            for report in document["reports"] for row in report["rows"]
                            for event, own in zip(report["events"], row["self"])]
                self.assertEqual(len(lines), len(expected))
                for line, (event, samples, period, percent, keys) in zip(lines, expected):
                    self.assertEqual((line["event"], int(line["samples"]), int(line["period"])), (event, samples, period))
                    self.assertEqual(float(line["percent"]), percent)
                    self.assertLessEqual(keys, set(line))
                    self.assertNotIn(None, line)

    def test_odd_names_come_through(self):
        capture = self.folder / "odd.data"
        capture.write_bytes(odd_names().file())
        rows = self.json("-i", capture, "--sort", "comm")["reports"][0]["rows"]
        # An escape sequence differs from the same characters in a name.
        back = {re.sub(rb"\\(\\|x(..))", lambda m: bytes([int(m[2], 16)]) if m[2] else b"\\", row["keys"]["comm"].encode())
                for row in rows}
        self.assertEqual(back, set(ODD_NAMES))
        periods = sorted(row["self"][0]["period"] for row in rows)
        self.assertEqual(periods, [10 ** 17 + number for number in range(len(ODD_NAMES))])
        raw = self.csv("-i", capture, "--sort", "comm", "--raw-names")
        self.assertEqual({line["comm"].encode("utf-8", "surrogateescape") for line in raw}, set(ODD_NAMES))
        self.assertEqual({line["event"] for line in raw}, {'odd,"name"\n'})
        safe = self.report("--csv", "-i", capture, "--sort", "comm")
        self.assertNotRegex(safe.replace(b"\r\n", b""), rb"[\x00-\x1f\x7f]")
        safe.decode("utf-8", "strict")

    def test_values_of_keys_are_raw(self):
        branches = self.folder / "branches.data"
        branches.write_bytes(made_reports.predicted_branches().file())
        document = self.json("-i", branches, "--sort", "symbol_from,addr_to,mispredict,in_tx,cycles,pid,cpu")
        self.assertEqual(document["mode"], "branches")
        for row in document["reports"][0]["rows"]:
            keys = row["keys"]
            self.assertEqual(list(keys), ["symbol_from", "addr_to", "mispredict", "in_tx", "cycles", "pid", "cpu"])
            self.assertRegex(keys["addr_to"], "^0x[0-9a-f]+$")
            self.assertIn(keys["mispredict"], ("Y", "N"))
            self.assertIn(keys["in_tx"], (0, 1))
            self.assertIn(keys["cycles"], (0, 1, 3, 17, 250))
            self.assertEqual((keys["pid"], keys["cpu"]), (made_capture.PID, 0))
        loads = self.folder / "loads.data"
        loads.write_bytes(made_reports.loads_in_detail().file())
        names = {row["keys"]["symbol_daddr"] for report in self.json("-i", loads, "--mem-mode")["reports"] for row in report["rows"]}
        self.assertIn("sink+0x4", names)

    def test_the_document_names_what_is_in_the_code(self):
        files = ("report/views/report/report_forms.cc", "report/views/tui/compared_rows.cc")
        code = "".join((ROOT / name).read_text(encoding="utf-8") for name in files)
        names = set(re.findall(r'\bto_?\.\w+\("([a-z0-9_]+)"|pair\("([a-z0-9_]+)"|\? "([a-z0-9_]+)" : "([a-z0-9_]+)"', code))
        names = {name for match in names for name in match if name}
        self.assertGreater(len(names), 30)
        documented = set(re.findall(r"`([a-z0-9_]+)`", (ROOT / "docs/report-forms.md").read_text(encoding="utf-8")))
        self.assertEqual(names - documented, set())

    def test_a_document_without_rows_is_one(self):
        document = self.json("-i", GOLDEN / "captures/comm.data", "--time", "1,2")
        self.assertEqual(document["reports"], [])
        self.assertEqual(self.csv("-i", GOLDEN / "captures/comm.data", "--time", "1,2"), [])

    def test_what_does_not_go_together_is_refused(self):
        for words in (["--json", "--csv"], ["--json", "--hierarchy"], ["--csv", "--hierarchy"], ["--csv", "-t", ";"], ["--json", "-w", "5"]):
            self.assertEqual(self.tacho("report", "-i", GOLDEN / "captures/comm.data", *words, status=1).stdout, b"")


class Comparison(programs.Scratch):
    """report --base: the shares of two captures."""

    def write(self, name, hits, event="cycles"):
        capture = made_capture.Capture(made_capture.Event(event, made_capture.SOFTWARE, 0, made_capture.USUAL)).started().named(name[:-5])
        for ip, samples in hits:
            for _ in range(samples):
                capture.sample(ip=ip + 4)
        (self.folder / name).write_bytes(capture.file())

    def compare(self, *words, status=None):
        return self.tacho("report", "--base", "before.data", "-i", "after.data", *SYMBOLS, *words, status=status)

    def rows(self, done):
        """{symbol: (before, after, difference)}; None: blank."""
        found = {}
        for line in done.stdout.decode().splitlines():
            if line.startswith("#") or not line:
                continue
            numbers = [line[2:10], line[12:20], line[22:30]]
            found[line.split()[-1]] = tuple(float(one.strip(" %")) if one.strip() else None for one in numbers)
        return found

    def test_overloads_have_one_name_in_both_captures(self):
        """Of the earlier capture one overload has samples, of the later one both have."""
        names = [(0x41010, b"_ZN1A1fEi"), (0x41030, b"_ZN1A1fEl")]
        body = b"/system/lib64/libgone.so\0" + struct.pack("<IQI", 2, 0x41000, len(names))
        body += b"".join(struct.pack("<QI", at, 0x20) + name + b"\0" for at, name in names) + struct.pack("<Q", 0x1000)
        for name, places in (("before.data", [0x10]), ("after.data", [0x10, 0x30])):
            capture = made_capture.Capture(made_capture.Event("cycles", made_capture.SOFTWARE, 0, made_capture.USUAL),
                                           features={128: struct.pack("<I", len(body)) + body}).started()  # simpleperf's symbols
            capture.mapped(made_capture.PID, 0x70000000, 0x1000, 0x1000, "/system/lib64/libgone.so")
            for place in places:
                capture.sample(ip=0x70000000 + place)
            (self.folder / name).write_bytes(capture.file())
        self.assertEqual(self.rows(self.compare()), {"A::f(int)": (100, 50, -50), "A::f(long)": (None, 50, 50)})

    def test_shares_and_their_differences(self):
        self.write("before.data", [(made_capture.LEAF_A, 6), (made_capture.LEAF_B, 2)])
        self.write("after.data", [(made_capture.LEAF_A, 1), (made_capture.LEAF_B, 1), (made_capture.MAIN, 2)])
        done = self.compare()
        self.assertEqual(self.rows(done), {"leaf_a": (75, 25, -50), "main": (None, 50, 50), "leaf_b": (25, 25, 0)})
        text = done.stdout.decode()
        self.assertRegex(text, "(?m)^# before: before.data: Samples: 8  of event 'cycles'")
        self.assertRegex(text, "(?m)^# after:  after.data: Samples: 4  of event 'cycles'")
        self.assertRegex(text, r"(?m)^# +Before +After +Delta +Shared Object +Symbol$")
        # The names of the threads differ, and are no part of the default keys.
        self.assertNotIn("no row is in both", done.stderr.decode())
        self.assertIn("no row is in both captures; --sort symbol", self.compare("--sort", "comm").stderr.decode())
        # A row stays while either share reaches the limit.
        self.assertEqual(set(self.rows(self.compare("--percent-limit", "60"))), {"leaf_a"})
        self.assertEqual(self.rows(self.compare("--sort", "dso")), {"spin": (100, 100, 0)})
        # --time is of the capture after: its last two samples are in main.
        self.assertEqual(self.rows(self.compare("--time", "5.003,")), {"leaf_a": (75, None, -75), "main": (None, 100, 100), "leaf_b": (25, None, -25)})
        self.assertEqual(len(re.findall("time slices", self.compare("--time", "5.003,").stdout.decode())), 1)

    def test_json_and_csv_have_the_rows_of_the_text(self):
        self.write("before.data", [(made_capture.LEAF_A, 6), (made_capture.LEAF_B, 2)])
        self.write("after.data", [(made_capture.LEAF_A, 1), (made_capture.LEAF_B, 1), (made_capture.MAIN, 2)])
        for words in ([], ["--sort", "dso"], ["--percent-limit", "60"], ["--top", "1"], ["--sort", "comm,sym"]):
            with self.subTest(words=words):
                text = [tuple(line.split()[-1:]) for line in self.compare(*words).stdout.decode().splitlines()
                        if line and not line.startswith("#")]
                document = json.loads(self.compare("--json", *words).stdout)
                [report] = document["reports"]
                self.assertEqual([(list(row["keys"].values())[-1],) for row in report["rows"]], text)
                lines = list(csv.DictReader(io.StringIO(self.compare("--csv", *words).stdout.decode(), newline="")))
                self.assertEqual(len(lines), len(report["rows"]))
                for line, row in zip(lines, report["rows"]):
                    self.assertEqual(line["event"], "cycles")
                    self.assertEqual({key: line[key] for key in row["keys"]}, row["keys"])
                    self.assertEqual(float(line["difference"]), row["difference"])
                    for side in ("before", "after"):
                        for name in ("samples", "period", "percent"):
                            cell = line[f"{side}_{name}"]
                            self.assertEqual(float(cell) if cell else None, row[side] and row[side][name])
                        self.assertEqual(int(line[f"{side}_hundred_percent"]), report[side]["hundred_percent"])
        document = json.loads(self.compare("--json").stdout)
        self.assertEqual(document["tacho_comparison"], 1)
        self.assertEqual([document[side]["capture"]["file"] for side in ("before", "after")], ["before.data", "after.data"])
        [report] = document["reports"]
        self.assertEqual([report[side]["samples"] for side in ("before", "after")], [8, 4])
        of = {row["keys"]["symbol"]: row for row in report["rows"]}
        self.assertEqual({name: row["difference"] for name, row in of.items()}, {"leaf_a": -50, "main": 50, "leaf_b": 0})
        self.assertIsNone(of["main"]["before"])
        self.assertEqual((of["leaf_a"]["before"]["samples"], of["leaf_a"]["after"]["percent"]), (6, 25))

    def test_a_comparison_without_samples_is_a_document(self):
        self.write("before.data", [(made_capture.LEAF_A, 1)], event="faults")
        self.write("after.data", [(made_capture.LEAF_A, 1)])
        [report, only_before] = json.loads(self.compare("--json").stdout)["reports"]
        self.assertIsNone(report["before"])
        self.assertEqual(report["rows"][0]["difference"], 100)
        self.assertIsNone(only_before["after"])
        self.assertEqual(only_before["rows"][0]["difference"], -100)
        self.assertEqual(self.compare("--csv").stdout.decode().splitlines()[1].split(",")[3:7], [""] * 4)
        for side, other, numbers in (("before", "after", [""] * 4 + ["1", "1000", "100", "1000", "100"]),
                                     ("after", "before", ["1", "1000", "100", "1000"] + [""] * 4 + ["-100"])):
            self.write(f"{side}.data", [])
            self.write(f"{other}.data", [(made_capture.LEAF_A, 1)])
            [report] = json.loads(self.compare("--json").stdout)["reports"]
            self.assertIsNone(report[side])
            self.assertEqual(report[other]["samples"], 1)
            [_, line] = self.compare("--csv").stdout.decode().splitlines()
            self.assertEqual(line.split(","), ["cycles", "spin", "leaf_a", *numbers])
        self.write("before.data", [])
        self.assertEqual(json.loads(self.compare("--json").stdout)["reports"], [])
        self.assertEqual(len(self.compare("--csv").stdout.splitlines()), 1)

    def test_events_are_compared_by_name(self):
        """The n-th one of a name with the n-th; a group, if no other has its name, by its leader's; those of one capture are shown, too."""
        def write(name, *hits, **features):
            events = [made_capture.Event(event, made_capture.SOFTWARE, 0, made_capture.USUAL) for event, _ in hits]
            capture = made_capture.Capture(*events, features=features.get("features")).started()
            for event, (_, addresses) in enumerate(hits):
                for ip in addresses:
                    capture.sample(event, ip=ip + 4)
            (self.folder / name).write_bytes(capture.file())

        def compared(*words):
            document = json.loads(self.compare("--json", "--sort", "sym", *words).stdout)
            return [(*(report[side] and report[side]["event"] for side in ("before", "after")),
                     {row["keys"]["symbol"]: row["difference"] for row in report["rows"]}) for report in document["reports"]]

        a, b = [made_capture.LEAF_A], [made_capture.LEAF_B]
        for name in ("before.data", "after.data"):
            write(name, ("cycles", a), ("cycles", b))
        self.assertEqual(compared(), [("cycles", "cycles", {"leaf_a": 0}), ("cycles", "cycles", {"leaf_b": 0})])
        write("before.data", ("faults", a), ("cycles", a), ("cycles", []))
        self.assertEqual(compared(), [("cycles", "cycles", {"leaf_a": 0}), (None, "cycles", {"leaf_b": 100}), ("faults", None, {"leaf_a": -100})])
        done = self.compare()
        self.assertIn("# before: before.data: Samples: 1  of event 'faults', Event count (approx.): 1000\n"
                      "# after:  after.data: no samples of this event\n", done.stdout.decode())
        lines = list(csv.DictReader(io.StringIO(self.compare("--csv").stdout.decode(), newline="")))
        self.assertEqual([(line["event"], line["before_percent"], line["after_percent"]) for line in lines],
                         [("cycles", "100", "100"), ("cycles", "", "100"), ("faults", "100", "")])
        # The looser rules are for what has no equal.
        write("before.data", ("cycles:k", a), ("cycles:u", b))
        write("after.data", ("cycles:u", b), ("cycles", a))
        self.assertEqual(compared(), [("cycles:u", "cycles:u", {"leaf_b": 0}), ("cycles:k", "cycles", {"leaf_a": 0})])
        group = {GROUP_DESC: struct.pack("<I", 1) + made_capture.header_string("{anon_group}") + struct.pack("<II", 0, 2)}
        write("after.data", ("cycles", a), ("faults", b), features=group)
        write("before.data", ("cycles", b), ("faults", a))
        self.assertEqual(compared(), [("cycles", "cycles", {"leaf_a": 100, "leaf_b": -100}), ("faults", None, {"leaf_a": -100})])
        write("before.data", ("cycles", a), ("misses", b), features=group)
        self.assertEqual(compared(), [("cycles", "cycles", {"leaf_a": 0})])

    def test_what_cannot_be_compared(self):
        self.write("before.data", [(made_capture.LEAF_B, 1)], event="faults")
        self.write("after.data", [(made_capture.LEAF_A, 1)])
        done = self.compare()
        self.assertIn("# before: before.data: no samples of this event", done.stdout.decode())
        self.assertEqual(self.rows(done), {"leaf_a": (None, 100, 100), "leaf_b": (100, None, -100)})
        self.write("before.data", [])
        done = self.compare()
        self.assertIn("before.data: it has no samples to compare", done.stderr.decode())
        self.assertIn("# before: before.data: no samples of this event", done.stdout.decode())
        self.assertEqual(self.rows(done), {"leaf_a": (None, 100, 100)})
        for words in (["-t", ","], ["--hierarchy"], ["--json", "--hierarchy"], ["--where", "pid > 1"]):
            self.assertIn("--base", self.compare(*words, status=1).stderr.decode(), words)
        (self.folder / "before.data").unlink()
        self.assertIn("before.data: No such file", self.compare(status=2).stderr.decode())


if __name__ == "__main__":
    programs.main()
