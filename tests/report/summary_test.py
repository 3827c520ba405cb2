#!/usr/bin/env python3
"""tacho summary: its numbers agree with the detailed views, it fits on a screen, and the commands that it prints work."""
import json
import os
import pty
import shlex
import struct
import subprocess
import termios

import made_capture as made
import made_payload
import programs
from made_payload import Field

GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
CAPTURES = ["comm", "group", "pipe", "threads", "unwound", "uprobe", "payload", "latency", "memory", "arm64"]
HOSTILE = ["</script><b>", "\x1b[31mred", "right\u202eleft", "a\nb", "\u05d0\u05d1"]


class SummaryView(programs.Scratch):
    def summary(self, capture, *words, status=None):
        return self.tacho("summary", capture, *SYMBOLS, *words, status=status).stdout.decode()

    def json(self, capture, *words):
        return json.loads(self.summary(capture, "--json", *words))

    def report(self, capture, *words):
        text = self.tacho("report", "--json", "--no-children", "-g", "none", "-i", capture, *SYMBOLS, *words, status=None).stdout
        return json.loads(text)["reports"]

    def by_process(self, capture, said):
        """{pid: weight} of the chosen event from tacho script; the weight is the period, or 1."""
        sums = {}
        for line in self.tacho("script", "--json", "-i", capture, *SYMBOLS, status=None).stdout.splitlines():
            sample = json.loads(line)
            if sample.get("event") == said["by_event"]:
                weight = sample.get("fields", {}).get("cost", sample.get("period", 1))
                sums[sample["pid"]] = sums.get(sample["pid"], 0) + weight
        return sums

    def test_its_numbers_equal_a_reports(self):
        for name in CAPTURES:
            with self.subTest(capture=name):
                capture = GOLDEN / f"captures/{name}.data"
                said = self.json(capture)
                events = [(member, report, index) for report in self.report(capture, "-s", "pid")
                          for index, member in enumerate(report["events"])]
                self.assertEqual({event["event"]: (event["samples"], event["period"]) for event in said["events"]},
                                 {member["event"]: (member["samples"], member["hundred_percent"])
                                  for member, _, _ in events if member["samples"]})
                self.assertEqual(said["samples"], sum(event["samples"] for event in said["events"]))
                by_pid = self.by_process(capture, said)
                self.assertEqual({row["pid"]: row["period"] for row in said["processes"] if row["period"]},
                                 {pid: period for pid, period in by_pid.items() if period})
                chosen = next(event for event in said["events"] if event["event"] == said["by_event"])
                self.assertEqual(sum(row["samples"] for row in said["processes"]), chosen["samples"])
                if said["functions_are_callers"]:
                    continue
                rows = [(member, report, index) for report in self.report(capture, "-s", "dso,sym")
                        for index, member in enumerate(report["events"]) if member["event"] == said["by_event"]]
                right = {(row["keys"]["dso"], row["keys"]["symbol"]): row["self"][index]["samples"]
                         for _, report, index in rows for row in report["rows"]}
                mine = {(row["dso"], row["symbol"]): row["samples"] for row in said["functions"] if not row["symbol"].startswith("0x")}
                self.assertLessEqual(mine.items(), right.items())
                if said["function_count"] <= 100:
                    self.assertEqual(sum(row["samples"] for row in said["functions"]), sum(right.values()))

    def test_samples_of_bpf_programs_count_one(self):
        """bpf_perf_event_output() writes period 0; events of a ring have 1: a share is one of the samples."""
        capture = made_payload.capture(call=[Field("nr")])
        for comm, periods in ((b"often", [0] * 3), (b"once", [1])):
            capture.data += made.record(3, 0, struct.pack("<II", made.PID, made.PID) + comm.ljust(8, b"\0") + capture.trailer())
            for period in periods:
                capture.sample(raw=struct.pack("<Q", 7), period=period)
        (self.folder / "calls.data").write_bytes(capture.file())
        rows = {row["keys"]["comm"]: row["self"][0]["percent"] for row in self.report("calls.data", "--sort", "comm")[0]["rows"]}
        self.assertEqual(rows, {"often": 75, "once": 25})
        self.assertEqual(self.json("calls.data")["events"][0]["period"], 4)
        script = self.report("calls.data", "--sort", "comm", "--where", "period < 2")[0]["rows"]
        self.assertEqual([row["self"][0]["percent"] for row in script], [75, 25])
        as_perf = self.tacho("report", "--as-perf", "--stdio", "-i", "calls.data", "--sort", "comm").stdout.decode()
        self.assertRegex(as_perf, r"(?m)^ +100.00%  once")
        self.assertIn("Event count (approx.): 1\n", as_perf)

    def test_names_are_counted_as_doctor_counts_them(self):
        for name in ("threads", "unwound", "payload"):
            capture = GOLDEN / f"captures/{name}.data"
            doctor = json.loads(self.tacho("doctor", capture, "--json", status=None).stdout)
            said = json.loads(self.tacho("summary", capture, "--json", "--symfs", self.folder, status=None).stdout)
            keys = ("samples", "frames", "addresses")
            self.assertEqual({key: said[key] for key in keys}, {key: doctor[key] for key in keys}, name)
            self.assertLessEqual(said["named_frames"], said["frames"])
        self.assertGreater(self.json(GOLDEN / "captures/unwound.data")["named_frames"], 0)

    def test_fields_are_spread_as_a_table_has_them(self):
        capture = GOLDEN / "captures/payload.data"
        fields = {field["field"]: field for field in self.json(capture)["fields"]}
        self.assertEqual(set(fields), {"bytes", "cost"})
        for name, field in fields.items():
            row, = [json.loads(line) for line in self.tacho(
                "table", "--json", "-i", capture, "--value", name, "--by", "event", "--columns",
                "count,sum,min,median,p99,max").stdout.splitlines()]
            self.assertEqual({key: row[key] for key in ("count", "sum", "min", "median", "p99", "max")},
                             {key: field[key] for key in ("count", "sum", "min", "median", "p99", "max")})

    def test_a_screen_holds_it(self):
        for name in CAPTURES:
            capture = GOLDEN / f"captures/{name}.data"
            self.assertLessEqual(len(self.summary(capture).splitlines()), 40, name)
            for columns in (60, 80, 120):
                lines = self.at_terminal(columns, "summary", capture, *SYMBOLS, "--no-pager")
                wide = [line for line in lines if len(line) > columns and not line.startswith("  tacho ")]
                self.assertEqual(wide, [], f"{name} in {columns} columns")
        self.assertTrue(any(len(line) > 60 for line in self.at_terminal(60, "summary", capture, *SYMBOLS, "--no-pager", "--wide")))

    def at_terminal(self, columns, *words):
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (0, columns))
        process = subprocess.Popen([programs.BIN / "tacho", *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=slave,
                                   stderr=subprocess.DEVNULL)
        shown = b""
        os.close(slave)
        while True:
            try:
                more = os.read(master, 65536)
            except OSError:
                break
            if not more:
                break
            shown += more
        os.close(master)
        process.wait()
        return shown.decode().replace("\r\n", "\n").splitlines()

    def test_the_commands_that_it_prints_work(self):
        for name in CAPTURES:
            capture = GOLDEN / f"captures/{name}.data"
            commands = self.json(capture)["next"]
            self.assertEqual(len(commands), 3, name)
            for command in commands:
                words = shlex.split(command["command"])
                symbols = [] if words[1] in ("table", "hist", "heatmap", "header", "dump") else SYMBOLS
                self.assertEqual(words[0], "tacho")
                if words[1] == "pack":  # it would change the file
                    continue
                done = self.tacho(*words[1:], *symbols, status=None)
                self.assertIn(done.returncode, (0, 3), f"{command['command']}: {done.stderr.decode()}")

    def test_what_a_capture_has_decides_about_them(self):
        def commands(capture, *words):
            return [command["command"].split(" -i ")[0].split(" /")[0] for command in self.json(capture, *words)["next"]]
        self.assertEqual(commands(GOLDEN / "captures/threads.data")[0], "tacho flamegraph")
        self.assertIn("tacho pack", commands(GOLDEN / "captures/unwound.data", "--symfs", self.folder))
        # Packed on its host, where these names were not either: packing once more would add none.
        self.tacho("pack", GOLDEN / "captures/unwound.data", "-o", "packed.data", "--symfs", self.folder, status=None)
        self.assertIn("tacho doctor packed.data", commands("packed.data", "--symfs", self.folder))
        self.assertIn("tacho heatmap", commands(GOLDEN / "captures/payload.data"))
        empty = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL)).started()
        (self.folder / "empty.data").write_bytes(empty.file())
        self.assertEqual(commands("empty.data"), ["tacho header", "tacho dump"])
        text = self.summary("empty.data")
        self.assertIn("samples    0; 0 lost\n", text)
        self.assertNotIn("functions", text)

    def test_the_place_of_a_tracepoint_is_no_function_of_interest(self):
        for stacks, functions in ((0, 0), (made.CALLCHAIN, 1)):
            capture = made.Capture(made.Event("sched:sched_switch", made.TRACEPOINT, 300, made.USUAL | stacks)).started()
            for _ in range(3):
                capture.sample(ip=made.KERNEL_TEXT + 3, misc=made.KERNEL, period=1,
                               chain=[made.CONTEXT_KERNEL, made.KERNEL_TEXT + 3, made.CONTEXT_USER, made.LEAF_A])
            (self.folder / "perf.data").write_bytes(capture.file())
            said = self.json("perf.data")
            self.assertEqual(said["function_count"], functions)
            self.assertEqual(bool(functions), any("report" in command["command"] for command in said["next"]), said["next"])

    def test_waits_equal_off_cpu(self):
        capture = made_payload.capture(True, offcpu=[Field("off_ns", unit="ns", role="value"),
                                                     Field("runq_ns", unit="ns", role="queued")])
        chain = [made.CONTEXT_KERNEL, made.KERNEL_TEXT + 4, made.CONTEXT_USER, made.LEAF_A + 4]
        for off in (1_000_000, 5_000_000, 2_000):
            capture.sample(raw=struct.pack("<QQ", off, 0), chain=chain)
        (self.folder / "perf.data").write_bytes(capture.file())
        said = self.json("perf.data")
        self.assertEqual({key: said["waits"][key] for key in ("count", "ns", "longest_ns")},
                         {"count": 3, "ns": 6_002_000, "longest_ns": 5_000_000})
        self.assertEqual([(row["comm"], row["count"]) for row in said["waits"]["rows"]], [("spin", 3)])
        self.assertIn("--off-cpu", said["next"][0]["command"])
        clock = made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)
        capture.events = (*capture.events, clock)
        capture.sample(1, chain=chain)
        (self.folder / "perf.data").write_bytes(capture.file())
        self.assertIn("--wall", self.json("perf.data")["next"][0]["command"])

    def test_pipes_and_cut_files_are_read_as_far_as_they_go(self):
        whole = (GOLDEN / "captures/threads.data").read_bytes()
        (self.folder / "cut.data").write_bytes(whole[:len(whole) * 2 // 3])
        done = self.tacho("summary", "cut.data", *SYMBOLS, status=3)
        self.assertRegex(done.stdout.decode(), r"(?m)^damage     .")
        self.assertGreater(json.loads(self.tacho("summary", "cut.data", "--json", status=3).stdout)["samples"], 0)
        with open(GOLDEN / "captures/pipe.data", "rb") as pipe:
            done = subprocess.run(["sh", "-c", 'cat | "$0" summary -', str(programs.BIN / "tacho")], stdin=pipe,
                                  capture_output=True, check=False)
        self.assertIn(b"capture    standard input", done.stdout)
        self.assertIn(b"-i FILE", done.stdout)

    def test_names_from_outside_are_made_safe(self):
        capture = made.Capture(made.Event("odd\x1b]0;name\x07", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        for number, name in enumerate(HOSTILE):
            raw = name.encode()[:15]
            capture.data += made.record(3, 0, struct.pack("<II", made.PID, 5000 + number) + raw + bytes(16 - len(raw)) + capture.trailer())
            capture.sample(tid=5000 + number, chain=[made.CONTEXT_USER, made.LEAF_A + 4])
        (self.folder / "perf.data").write_bytes(capture.file())
        text = self.summary("perf.data")
        self.assertTrue(all(letter.isprintable() or letter == "\n" for letter in text), text)
        self.assertEqual(self.json("perf.data")["samples"], len(HOSTILE))

    def test_a_second_capture_is_refused(self):
        self.assertIn("a second one", self.tacho("summary", "a.data", "b.data", status=1).stderr.decode())

    def test_every_view_takes_the_name_of_a_capture(self):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        capture.sample(chain=[made.CONTEXT_USER, made.LEAF_A + 4])
        (self.folder / "named.data").write_bytes(capture.file())
        for words in (["report", "--stdio"], ["script"], ["folded"], ["flamegraph", "-o", "-"], ["header"], ["evlist"],
                      ["dump"], ["heatmap"], ["summary"], ["annotate"]):
            named = self.tacho(*words, "named.data", status=None)
            self.assertEqual((named.returncode, named.stdout), (lambda done: (done.returncode, done.stdout))(
                self.tacho(*words, "-i", "named.data", status=None)), words)
        for words, said in ((["script", "-i", "a.data", "named.data"], "named twice: -i a.data and named.data"),
                            (["report", "leaf_a"], "--symbol-filter leaf_a"),
                            (["annotate", "-i", "a.data", "named.data"], "named twice: -i a.data and named.data")):
            self.assertIn(said, self.tacho(*words, status=1).stderr.decode())


if __name__ == "__main__":
    programs.main()
