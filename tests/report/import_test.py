#!/usr/bin/env python3
"""tacho import: what comes out of a capture is what went in, for each format, and perf and all views read it."""
import gzip
import json
import re
import shutil
import subprocess
import unittest
from collections import Counter, defaultdict

import programs
from pprof_profile import Profile, message, varint_field

GOLDEN = programs.ROOT / "tests/golden"
CAPTURES = GOLDEN / "captures"
NAMES = ("--symfs", GOLDEN / "symfs", "--kallsyms", CAPTURES / "kallsyms")
# Of every kind, as in export_test.py.
KINDS = ["threads", "payload", "latency", "unwound", "branches", "group", "bpf", "uprobe", "comm", "arm64-fp"]

needs_go = unittest.skipUnless(shutil.which("go"), "needs go (Debian: golang-go)")
needs_perf = unittest.skipUnless(shutil.which("perf"), "needs perf (Debian: linux-perf)")


class Imports(programs.Scratch):
    def import_(self, name, content, *words, status=0):
        """The capture of a profile. Returns what was said."""
        if content is not None:
            (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return self.tacho("import", name, *words, status=status).stderr.decode()

    def refused(self, name, content, *words):
        said = self.import_(name, content, *words, status=2)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertFalse((self.folder / "perf.data").exists())
        return said

    def folded(self, *words):
        """{stack: weight}, of several events below their names."""
        lines = self.tacho("folded", *words).stdout.decode().splitlines()
        return {stack: int(count) for stack, count in (line.rsplit(" ", 1) for line in lines)}

    def periods(self, *words):
        """{event: its period}, as tacho report sums it."""
        reports = json.loads(self.tacho("report", "--json", "--sort", "sym", *words, status=None).stdout)["reports"]
        return {event["event"]: event["period"] for report in reports for event in report["events"]}


class Command(Imports):
    def test_a_missing_name_an_unknown_format_and_a_stream_are_refused(self):
        self.assertIn("name the profile to import", self.tacho("import", status=1).stderr.decode())
        said = self.tacho("import", "x", "--from", "pproff", status=1).stderr.decode()
        self.assertIn("'pproff' is no format that tacho import reads; there are cpuprofile, speedscope, pprof, folded", said)
        self.assertIn("did you mean 'pprof'?", said)
        self.assertIn("an imported capture is a file", self.tacho("import", "x", "-o", "-", status=1).stderr.decode())
        self.assertIn("none.folded: No such file", self.tacho("import", "none.folded", status=2).stderr.decode())

    def test_help_lists_the_formats(self):
        self.assertRegex(self.tacho("import", "--help").stdout.decode(), r"(?m)^  pprof +protocol buffer")

    def test_an_empty_file_and_another_format_are_refused(self):
        self.assertIn("empty: is empty", self.refused("empty", b""))
        self.assertIn("as folded: no line ends with a blank and a count", self.refused("text", "hello\n"))
        self.assertIn("as speedscope: no JSON at byte 0", self.refused("text", "a;b 3\n", "--from", "speedscope"))
        self.assertIn("as cpuprofile: no JSON at byte", self.refused("cut", '{"nodes": [{"id": 1,'))
        self.assertIn("the gzip file is cut short", self.refused("cut.gz", gzip.compress(b"a;b 3\n" * 100)[:-20]))

    def test_an_old_capture_is_kept(self):
        (self.folder / "perf.data").write_bytes(b"old")
        self.import_("a.folded", "a;b 3\n")
        self.assertEqual((self.folder / "perf.data.old").read_bytes(), b"old")

    def test_all_views_read_it(self):
        self.import_("a.folded", "a;main;work 3\na;main;rest 4\nb;main 5\n")
        for command in ("report", "script", "folded", "flamegraph", "page", "summary", "table", "header", "dump", "evlist"):
            words = ("-o", f"out.{command}") if command in ("flamegraph", "page") else ()
            done = self.tacho(command, *words, status=None)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr.decode()}")

    @needs_perf
    def test_perf_reads_it(self):
        self.import_("a.folded", "a;main;work 3\na;main;rest 4\nb;main 5\n")
        self.assertEqual(self.perf("script", "-F", "comm,pid,period,event").stdout.split(), b"a 1 3 samples: a 1 4 samples: b 2 5 samples:".split())
        self.assertEqual(self.perf("evlist").stdout, b"samples\n")
        rows = self.perf("report", "--stdio", "-q", "--no-children", "--sort", "comm", "-g", "none").stdout.decode().split()
        self.assertEqual(rows, ["58.33%", "a", "41.67%", "b"])


class Folded(Imports):
    # Blanks, numbers at the end of names, no letters at all, templates, non-ASCII, marks of kernel and JIT code, recursion.
    STACKS = {
        "app;main;work": 5, "app;main;operator new(unsigned long)": 7, "app;main;std::map<int, int>::find": 11, "app;main;naïve λ": 13,
        "app;main;f 2": 17, "app;main;main;main": 19, "app;main;entry_SYSCALL_64_[k];do_sys_open_[k]": 23, "other;0x1234": 29,
        "other;<frozen importlib._bootstrap>:_find": 31, "other;a\\b": 37,
    }

    def test_folded_stacks_come_back(self):
        text = "".join(f"{stack} {count}\n" for stack, count in self.STACKS.items())
        self.assertEqual(self.import_("a.folded", text), "")
        # A number at the end of a name would be taken for a count.
        expected = {stack.replace("f 2", "f\\x202"): count for stack, count in self.STACKS.items()}
        self.assertEqual(self.folded(), expected)
        self.assertEqual(self.periods(), {"samples": sum(self.STACKS.values())})
        back = self.tacho("folded").stdout
        self.import_("b.folded", back, "-o", "b.data")
        self.assertEqual(self.tacho("folded", "b.data").stdout, back)

    def test_what_tacho_folded_prints_comes_back(self):
        for name in KINDS:
            with self.subTest(name):
                lines = self.tacho("folded", "--event-filter", self.first_event(name), "-i", CAPTURES / f"{name}.data", *NAMES, status=None).stdout
                if not lines:
                    continue
                self.import_("a.folded", lines, "-o", "a.data")
                self.assertEqual(sorted(self.tacho("folded", "a.data").stdout.splitlines()), sorted(lines.splitlines()))

    def first_event(self, name):
        lines = self.tacho("folded", "-i", CAPTURES / f"{name}.data", *NAMES, status=None).stdout.decode().splitlines()
        events = self.tacho("evlist", "-i", CAPTURES / f"{name}.data").stdout.decode().split()
        return next((event for event in events for line in lines if line.startswith(event + ";")), events[0])

    def test_two_counts_on_every_line_are_two_events(self):
        self.import_("a.folded", "a;b 3 5\na;c 0 7\n")
        self.assertEqual(self.folded(), {"before;a;b": 3, "after;a;b": 5, "after;a;c": 7})
        self.import_("b.folded", "a;b 3 5\na;c 7\n", "-o", "b.data")
        self.assertEqual(self.folded("b.data"), {"a;b\\x203": 5, "a;c": 7})

    def test_counts_with_decimals_are_rounded_and_said(self):
        said = self.import_("a.folded", "".join(f"a;f{number} 0.4\n" for number in range(10)) + "a;g 2\n")
        self.assertIn("counts that are no whole numbers below 2^64 are rounded so that their sum is right: 10", said)
        self.assertEqual(sum(self.folded().values()), 6)

    def test_lines_without_a_count_are_counted(self):
        said = self.import_("a.folded", "# made by hand\r\n\r\na;b 3\r\nno count\r\na;c 4\r\nnone here either\r\n", status=3)
        self.assertIn("line 4 has no count at its end (first at offset 25, 2 times)", said)
        self.assertEqual(self.folded(), {"a;b": 3, "a;c": 4})

    def test_comm_names_the_threads(self):
        self.import_("a.folded", "main;work 3\n", "--comm", "python3")
        self.assertEqual(self.folded(), {"python3;main;work": 3})

    def test_standard_input_and_gzip_are_read(self):
        packed = gzip.compress(b"a;b 3\n") + gzip.compress(b"a;c 4\n")  # two members, as gzip appends them
        (self.folder / "a.gz").write_bytes(packed)
        with open(self.folder / "a.gz", "rb") as given:
            self.run_with_input(given)
        self.assertEqual(self.folded(), {"a;b": 3, "a;c": 4})

    def run_with_input(self, given):
        done = subprocess.run([programs.BIN / "tacho", "import", "-"], stdin=given, cwd=self.folder, capture_output=True, timeout=programs.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_deep_stacks_keep_their_leaf(self):
        deep = ";".join(f"f{number}" for number in range(9000))
        said = self.import_("a.folded", f"a;{deep} 3\n")
        self.assertIn("stacks of more than 8000 frames, which is all that a sample holds, lose their outer callers: 1", said)
        [sample] = [json.loads(line) for line in self.tacho("dump", "--json").stdout.splitlines() if b'"SAMPLE"' in line]
        self.assertEqual(len(sample["callchain"]), 8001)  # with the mark in front
        [stack] = self.folded()
        self.assertEqual(stack[-12:], ";f8998;f8999")

    def test_two_imports_have_no_frames_in_common(self):
        """Build ids are made from the contents, since addresses are."""
        ids = []
        for number, text in enumerate(("a;x;y 3\n", "a;y;x 3\n", "a;x;y 3\n")):
            self.import_("same.folded", text, "-o", f"{number}.data")
            dumped = self.tacho("dump", f"{number}.data", "--json").stdout.decode().splitlines()
            ids += [json.loads(line).get("build_id") for line in dumped if '"MMAP2"' in line]
        self.assertEqual(ids[0], ids[2])
        self.assertNotEqual(ids[0], ids[1])


class PprofText:
    """A profile by hand: locations are lists of (function, file, line), innermost first, with or without an address."""

    def __init__(self, *types):
        self.strings, self.fields, self.functions, self.locations, self.mappings = [""], [], {}, 0, 0
        for name, unit in types:
            self.add(1, message(varint_field(1, self.text(name)), varint_field(2, self.text(unit))))

    def text(self, text):
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def add(self, field, body):
        self.fields.append((field, body))

    def mapping(self, start, limit, offset, file, build_id=""):
        self.mappings += 1
        self.add(3, message(varint_field(1, self.mappings), varint_field(2, start), varint_field(3, limit), varint_field(4, offset),
                            varint_field(5, self.text(file)), varint_field(6, self.text(build_id))))
        return self.mappings

    def location(self, *lines, address=0, mapping=0):
        self.locations += 1
        parts = [varint_field(1, self.locations), varint_field(2, mapping), varint_field(3, address)]
        for name, file, line in lines:
            if (name, file) not in self.functions:
                self.functions[name, file] = len(self.functions) + 1
                self.add(5, message(varint_field(1, len(self.functions)), varint_field(2, self.text(name)), varint_field(4, self.text(file))))
            parts.append((4, message(varint_field(1, self.functions[name, file]), varint_field(2, line))))
        self.add(4, message(*parts))
        return self.locations

    def sample(self, locations, values, packed=True, **labels):
        ids = [varint_field(1, one) for one in locations] if not packed else [(1, b"".join(varint_field(1, one)[1] for one in locations))]
        amounts = [varint_field(2, one) for one in values]
        parts = ids + amounts
        for key, value in labels.items():
            is_text = isinstance(value, str)
            parts.append((3, message(varint_field(1, self.text(key)), varint_field(2 if is_text else 3, self.text(value) if is_text else value))))
        self.add(2, message(*parts))

    def bytes(self):
        return message(*self.fields, *((6, text.encode()) for text in self.strings))


def rows_of(profile, types, files):
    """{(stack, labels): {type: sum}} for some types. A stack is a tuple of (module, build id, address, lines); a file that is not
    among `files` has a made build id, which does not count."""
    rows = defaultdict(Counter)
    for locations, values, labels in profile.samples:
        stack = []
        for location in locations:
            mapping, address = profile.places[location]
            module = profile.mappings.get(mapping, {})
            lines = tuple((function["name"], function["file"], line) for function, line in profile.locations[location])
            file = module.get("file", "")
            # What has no module gets that of the import.
            stack.append((file, module.get("build_id", "") if file in files else "", address, lines) if file not in ("", "a.pb.gz") else lines)
        key = (tuple(stack), tuple(sorted((name, str(value)) for name, value in labels.items())))
        for (name, unit), value in zip(profile.types, values):
            if (name, unit) in types and value:
                rows[key][name] += value
    return rows


class Pprof(Imports):
    def test_what_tacho_exports_comes_back(self):
        for name in KINDS:
            with self.subTest(name):
                self.tacho("export", "--to", "pprof", "--lines", "-i", CAPTURES / f"{name}.data", *NAMES, "-o", "a.pb.gz", status=None)
                given = Profile((self.folder / "a.pb.gz").read_bytes())
                self.import_("a.pb.gz", None, "-o", "a.data")
                back = Profile(self.tacho("export", "--to", "pprof", "--lines", "--inline=all", "a.data").stdout)
                self.assertLessEqual(set(given.types), set(back.types))
                self.assertEqual(len({name for name, _ in back.types}), len(back.types))
                types = set(given.types)
                self.assertEqual(rows_of(back, types, self.files_with_ids(given)), rows_of(given, types, self.files_with_ids(given)))
                self.assertEqual((back.time, back.duration, back.comments), (given.time, given.duration, given.comments))

    @staticmethod
    def files_with_ids(profile):
        return {mapping["file"] for mapping in profile.mappings.values() if mapping["build_id"] and mapping["file"] != "[vdso]"}

    def heap(self):
        profile = PprofText(("alloc_objects", "count"), ("alloc_space", "bytes"), ("cpu", "nanoseconds"))
        app = profile.mapping(0x400000, 0x500000, 0x1000, "/srv/app", "0123456789abcdef0123456789abcdef01234567")
        main = profile.location(("main.main", "/src/main.go", 10), address=0x401234, mapping=app)
        inner = profile.location(("inner", "/src/in.go", 3), ("outer", "/src/out.go", 7), address=0x402000, mapping=app)
        bare = profile.location(("script", "/src/job.py", 5))
        nameless = profile.location(address=0x77)
        profile.sample([inner, main], [2, 4096, 0], comm="worker", pid=41, tid=42, cpu=3, route="/a b", bytes=512)
        profile.sample([bare, main], [1, 100, 9_000_000_000_000_000_000], packed=False, comm="worker", pid=41, tid=42, route="/c")
        profile.sample([nameless], [0, 5, 0], comm="other", pid=50, tid=50)
        return profile

    def test_every_sample_type_is_an_event_with_its_unit(self):
        self.assertEqual(self.import_("heap.pb", self.heap().bytes()), "")
        self.assertEqual(self.periods(), {"alloc_objects": 3, "alloc_space": 4201, "cpu": 9_000_000_000_000_000_000})
        text = self.tacho("script", "--event", "alloc_space").stdout.decode()
        self.assertRegex(text, r"worker +42 +\[003\] +4096 +alloc_space:")
        self.assertIn("/a b", text)
        back = Profile(self.tacho("export", "--to", "pprof").stdout)
        self.assertLessEqual({("alloc_objects", "count"), ("alloc_space", "bytes"), ("cpu", "nanoseconds")}, set(back.types))

    def test_labels_choose_and_group_samples(self):
        self.import_("heap.pb", self.heap().bytes())
        self.assertEqual(self.periods("--event", "alloc_space", "--where", 'route == "/c"'), {"alloc_space": 100})
        self.assertEqual(self.periods("--event", "alloc_space", "--where", "bytes == 512"), {"alloc_space": 4096})

    def test_places_inlined_calls_and_build_ids_are_kept(self):
        self.import_("heap.pb", self.heap().bytes())
        folded = self.folded("--event", "alloc_objects")
        self.assertEqual(folded, {"worker;main.main;outer": 2, "worker;main.main;script": 1})
        self.assertEqual(self.folded("--event", "alloc_objects", "--inline"), {"worker;main.main;outer;inner": 2, "worker;main.main;script": 1})
        self.assertEqual(self.folded("--event", "alloc_space")["other;0x77"], 5)
        back = Profile(self.tacho("export", "--to", "pprof", "--lines", "--inline=all", "--event", "alloc_objects").stdout)
        self.assertIn(("/srv/app", "0123456789abcdef0123456789abcdef01234567"), {(one["file"], one["build_id"]) for one in back.mappings.values()})
        self.assertIn(0x2234, {address for _, address in back.places.values()})
        lines = [[(function["name"], function["file"], line) for function, line in location] for location in back.locations.values()]
        self.assertIn([("inner", "/src/in.go", 3), ("outer", "/src/out.go", 7)], lines)

    def test_comm_names_the_threads(self):
        self.import_("heap.pb", self.heap().bytes(), "--comm", "all")
        self.assertEqual({stack.split(";")[0] for stack in self.folded("--event", "alloc_space")}, {"all"})

    def test_the_time_the_length_and_comments_are_kept(self):
        profile = PprofText(("cpu", "nanoseconds"))
        profile.sample([profile.location(("f", "", 0))], [7])
        profile.fields += [varint_field(9, 1_764_000_000_123_456_789), varint_field(10, 30_000_000_000),
                           varint_field(13, profile.text("built by hand")), (13, varint_field(0, profile.text("two\nlines"))[1])]
        self.import_("a.pb", profile.bytes())
        back = Profile(self.tacho("export", "--to", "pprof").stdout)
        self.assertEqual((back.time, back.duration, back.comments), (1_764_000_000_123_456_789, 30_000_000_000, ["built by hand", "two\\x0alines"]))
        header = self.tacho("header").stdout.decode()
        self.assertIn("# attached : comments from a.pb, ", header)
        self.assertIn("= 1764000000.123456 (TOD)", header)
        self.assertIn("--time: the samples of this capture have no times", self.tacho("report", "--time", "50%", status=1).stderr.decode())

    def test_a_length_below_zero_and_a_comment_that_is_not_there_are_nothing(self):
        profile = PprofText(("cpu", "nanoseconds"))
        profile.sample([profile.location(("f", "", 0))], [7])
        profile.fields += [varint_field(9, 2**64 - 5), varint_field(10, 2**63), varint_field(13, 99)]
        self.import_("a.pb", profile.bytes())
        back = Profile(self.tacho("export", "--to", "pprof").stdout)
        self.assertEqual((back.time, back.duration, back.comments), (0, 0, [""]))

    def test_types_of_one_name_are_told_apart(self):
        """Samples of one event, counted by another tool, have the name of its samples in the capture."""
        profile = PprofText(("cpu", "nanoseconds"), ("cpu:samples", "count"), ("cpu", "bytes"))
        profile.sample([profile.location(("f", "", 0))], [7, 3, 5])
        self.import_("a.pb", profile.bytes())
        back = Profile(self.tacho("export", "--to", "pprof").stdout)
        totals = {name: back.total(number) for number, (name, _) in enumerate(back.types)}
        self.assertEqual(len(totals), len(back.types))
        self.assertEqual((totals["cpu"], totals["cpu:samples"], totals["cpu#3"], totals["cpu:records"]), (7, 3, 5, 1))

    def test_values_below_zero_are_left_out_and_said(self):
        profile = PprofText(("cpu", "nanoseconds"))
        profile.sample([profile.location(("f", "", 0))], [7])
        profile.sample([profile.location(("g", "", 0))], [2**64 - 3])
        self.assertIn("values below 0 are left out: 1", self.import_("a.pb", profile.bytes()))
        self.assertEqual(self.folded(), {"a.pb;f": 7})

    def test_what_is_no_profile_is_refused(self):
        profile = PprofText(("cpu", "nanoseconds"))
        here = profile.location(("f", "", 0))
        whole = profile.bytes()
        self.assertIn("no sample types", self.refused("a.pb", PprofText().bytes() + b"\x32\x00", "--from", "pprof"))
        self.assertIn("no profile of pprof", self.refused("a.pb", whole[:-1], "--from", "pprof"))
        profile.sample([here], [1, 2])
        self.assertIn("sample 1 has 2 values, and the profile has 1 sample types", self.refused("a.pb", profile.bytes()))
        other = PprofText(("cpu", "nanoseconds"))
        other.sample([99], [1])
        self.assertIn("sample 1 has location 99, which the profile does not list", self.refused("a.pb", other.bytes()))

    def test_mappings_that_cannot_be_placed_lose_only_their_addresses(self):
        profile = PprofText(("cpu", "nanoseconds"))
        huge = profile.mapping(0, 0, 0, "/srv/huge")
        kernel = profile.mapping(0xffffffff81000000, 0xffffffff82000000, 0, "[kernel.kallsyms]")
        twice = profile.mapping(0xffffffff81000000, 0xffffffff82000000, 0, "[ext4]")
        anon = profile.mapping(0x1000, 0x2000, 0, "//anon")
        stack = [profile.location(("ext4_read", "", 0), address=0xffffffff81000100, mapping=twice),
                 profile.location(("vfs_read", "", 0), address=0xffffffff81000200, mapping=kernel),
                 profile.location(("far", "", 0), address=2**62, mapping=huge), profile.location(("near", "", 0), address=16, mapping=huge),
                 profile.location(("jit", "", 0), address=0x1100, mapping=anon), profile.location(("again", "", 0), address=16, mapping=huge)]
        profile.sample(stack, [7], comm="app", pid=0)
        self.import_("a.pb", profile.bytes())
        self.assertEqual(self.folded(), {"app;again;jit;near;far;vfs_read;ext4_read": 7})

    @needs_go
    def test_go_sees_the_same(self):
        for name in ("threads", "unwound", "payload"):
            self.tacho("export", "--to", "pprof", "--lines", "-i", CAPTURES / f"{name}.data", *NAMES, "-o", "a.pb.gz", status=None)
            given = Profile((self.folder / "a.pb.gz").read_bytes())
            self.import_("a.pb.gz", None, "-o", "a.data")
            self.tacho("export", "--to", "pprof", "--lines", "--inline=all", "a.data", "-o", "b.pb.gz")
            for type_, _ in given.types:
                with self.subTest(name, type=type_):
                    self.assertEqual(self.top("b.pb.gz", type_), self.top("a.pb.gz", type_))

    def top(self, file, type_):
        done = self.run_program("go", "tool", "pprof", "-top", "-nodecount=0", "-nodefraction=0", f"-sample_index={type_}", file)
        return sorted(re.findall(r"(?m)^ *\d.*%.*$", done.stdout.decode()))


class Speedscope(Imports):
    @staticmethod
    def document(*profiles, frames=("main", "work", "rest")):
        return json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": profiles,
                           "shared": {"frames": [{"name": name, "file": "app.py", "line": 3} for name in frames]}})

    SAMPLED = {"type": "sampled", "name": "Thread 7", "unit": "seconds", "startValue": 1, "endValue": 2, "samples": [[0, 1], [0], [0, 2]],
               "weights": [0.25, 0.5, 0.1234567891]}

    def test_sampled_profiles_are_threads(self):
        other = dict(self.SAMPLED, name="Thread 8", unit="milliseconds", weights=[1, 0, 2])
        self.import_("a.speedscope.json", self.document(self.SAMPLED, other))
        self.assertEqual(self.folded(), {"Thread_7;main;work": 250_000_000, "Thread_7;main": 500_000_000, "Thread_7;main;rest": 123_456_789,
                                         "Thread_8;main;work": 1_000_000, "Thread_8;main;rest": 2_000_000})
        self.assertRegex(self.tacho("script", "-F", "comm,time").stdout.decode(), r"(?m)^ *Thread 7 +1\.250000:")
        rows = json.loads(self.tacho("report", "--json", "--sort", "dso,sym").stdout)["reports"][0]["rows"]
        self.assertEqual({(row["keys"]["dso"], row["keys"]["symbol"]) for row in rows}, {("app.py", "main"), ("app.py", "work"), ("app.py", "rest")})

    def test_units_are_events_and_only_times_have_times(self):
        size = dict(self.SAMPLED, unit="bytes", weights=[10, 20, 30])
        count = dict(self.SAMPLED, unit="none", weights=[1, 1, 5])
        self.import_("a.json", self.document(self.SAMPLED, size, count))
        self.assertEqual(self.periods(), {"time": 873_456_789, "bytes": 60, "samples": 7})
        self.assertNotIn("1.250000", self.tacho("script", "-F", "comm,time", status=None).stdout.decode())

    def test_evented_profiles_are_the_calls_that_are_open(self):
        """Against a hand-made reading of the events."""
        events = [("O", 0, 10), ("O", 1, 12), ("C", 1, 15), ("O", 2, 15), ("O", 2, 15.5), ("C", 2, 17), ("C", 2, 17), ("C", 0, 20)]
        profile = {"type": "evented", "name": "T", "unit": "microseconds", "startValue": 0, "endValue": 30,
                   "events": [{"type": kind, "frame": frame, "at": at} for kind, frame, at in events]}
        self.import_("a.json", self.document(profile))
        names, expected, stack, before = ("main", "work", "rest"), Counter(), [], None
        for kind, frame, at in events:
            if stack and at > before:
                expected["T;" + ";".join(names[one] for one in stack)] += round((at - before) * 1000)
            stack = stack + [frame] if kind == "O" else stack[:-1]
            before = at
        self.assertEqual(self.folded(), expected)

    def test_what_speedscope_exports_comes_in_with_the_same_sums(self):
        for name in ("threads", "unwound", "payload"):
            with self.subTest(name):
                self.tacho("export", "--to", "speedscope", "-i", CAPTURES / f"{name}.data", *NAMES, "-o", "a.json", status=None)
                document = json.loads((self.folder / "a.json").read_bytes())
                self.import_("a.json", None, "-o", "a.data")
                expected = Counter()
                for profile in document["profiles"]:
                    event = {"nanoseconds": "time", "bytes": "bytes", "none": "samples"}[profile["unit"]]
                    expected[event] += sum(profile["weights"])
                self.assertEqual(self.periods("a.data"), dict(expected))

    def test_broken_documents_are_refused(self):
        for change, said in (({"samples": [[0], [3]], "weights": [1, 1]}, "profile 1: frame 3 is not in shared.frames, which has 3"),
                             ({"weights": [1]}, "profile 1: 3 samples and 1 weights: there must be one for each"),
                             ({"unit": "fortnights"}, "profile 1: its unit is none of the format's"),
                             ({"type": "dreamt"}, "profile 1: its type is neither sampled nor evented"),
                             ({"type": "evented", "events": [{"type": "O", "frame": 0, "at": 3}, {"type": "C", "frame": 1, "at": 4}]},
                              "event 1 closes a frame that is not the innermost open one"),
                             ({"type": "evented", "events": [{"type": "O", "frame": 0, "at": 3}, {"type": "C", "frame": 0, "at": 2}]},
                              "event 1 is earlier than the one before")):
            self.assertIn(said, self.refused("a.json", self.document(dict(self.SAMPLED, **change))))
        self.assertIn("has no profiles", self.refused("a.json", self.document()))


class CpuProfile(Imports):
    NODES = [(1, "(root)", "", -1, [2, 5]), (2, "main", "file:///srv/app.js", 9, [3, 4]), (3, "work", "file:///srv/lib.js", 0, []),
             (4, "", "file:///srv/app.js", 20, []), (5, "(idle)", "", -1, [])]

    @classmethod
    def nodes(cls):
        return [{"id": id_, "callFrame": {"functionName": name, "scriptId": "1", "url": url, "lineNumber": line, "columnNumber": 2},
                 "hitCount": 1, "children": children} for id_, name, url, line, children in cls.NODES]

    def expected(self, samples, deltas, end, start):
        """{stack: ns}: a sample lasts until the next one, and none of the time counts twice."""
        parents = {child: node[0] for node in self.NODES for child in node[4]}
        names = {node[0]: node[1] or "(anonymous)" for node in self.NODES}
        sums, at, times = Counter(), start, []
        for delta in deltas:
            at += delta
            times.append(at)
        reached = start
        for number, (node, at) in enumerate(zip(samples, times)):
            reached = max(reached, at)
            until = times[number + 1] if number + 1 < len(times) else end
            if until > reached:
                stack = []
                while node in parents:
                    stack.insert(0, names[node])
                    node = parents[node]
                sums[";".join(["app.cpuprofile"] + stack)] += (until - reached) * 1000
        return +sums

    def test_samples_last_until_the_next_one(self):
        samples, deltas = [3, 3, 4, 2, 5, 3], [100, 150, 400, -30, 90, 70]
        profile = {"nodes": self.nodes(), "startTime": 5000, "endTime": 6000, "samples": samples, "timeDeltas": deltas}
        self.assertEqual(self.import_("app.cpuprofile", json.dumps(profile)), "")
        self.assertEqual(self.folded(), self.expected(samples, deltas, 6000, 5000))
        rows = json.loads(self.tacho("report", "--json", "--sort", "dso,sym").stdout)["reports"][0]["rows"]
        self.assertIn(("lib.js", "work"), {(row["keys"]["dso"], row["keys"]["symbol"]) for row in rows})
        self.assertRegex(self.tacho("script", "-F", "ip,sym,srcline").stdout.decode(), r"work\n +lib.js:1\n")

    def test_pieces_in_a_trace_are_one_profile_of_its_thread(self):
        chunk = lambda nodes, samples, deltas: {"name": "ProfileChunk", "ph": "P", "pid": 7, "tid": 9, "id": "0x1", "args": {
            "data": {"cpuProfile": {"nodes": nodes, "samples": samples}, "timeDeltas": deltas}}}
        nodes = [dict(node) for node in self.nodes()]
        for node in nodes:
            parent = [other["id"] for other in nodes if node["id"] in other.get("children", [])]
            node.update({"parent": parent[0]} if parent else {})
        for node in nodes:
            node.pop("children", None)
        events = [{"name": "thread_name", "ph": "M", "pid": 7, "tid": 8, "args": {"name": "CrRendererMain"}},
                  {"name": "Profile", "ph": "P", "pid": 7, "tid": 8, "id": "0x1", "args": {"data": {"startTime": 5000}}},
                  chunk(nodes[:3], [3, 2], [100, 50]), {"name": "other", "ph": "X", "args": {"data": {"x": [1, {"y": 2}]}}},
                  chunk(nodes[3:], [4, 4], [70, 30])]
        for document in (events, {"traceEvents": events}):
            self.import_("trace.json", json.dumps(document))
            self.assertEqual(self.folded(), {"CrRendererMain;main;work": 50_000, "CrRendererMain;main": 70_000, "CrRendererMain;main;(anonymous)": 30_000})
        self.assertRegex(self.tacho("script", "-F", "pid,tid").stdout.decode(), r"(?m)^ *7/8 ")

    def test_broken_profiles_are_refused(self):
        whole = {"nodes": self.nodes(), "startTime": 0, "endTime": 9, "samples": [3], "timeDeltas": [1]}
        for change, said in (({"samples": [3, 3]}, "2 samples and 1 timeDeltas: there must be one for each"),
                             ({"samples": [9]}, "sample 0 has node 9, which is not listed"), ({"nodes": []}, "has no nodes of a CPU profile"),
                             ({"nodes": [{"id": 3, "parent": 3, "callFrame": {"functionName": "f"}}]}, "the nodes are no tree: one is above itself")):
            self.assertIn(said, self.refused("a.cpuprofile", json.dumps(dict(whole, **change))))

    @unittest.skipUnless(shutil.which("node"), "needs node")
    def test_node_writes_what_it_reads(self):
        (self.folder / "app.js").write_text("function busy(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }\n"
                                            "for (let i = 0; i < 60; i++) busy(2e6);\n")
        self.run_program("node", "--cpu-prof", "--cpu-prof-name=app.cpuprofile", "app.js")
        profile = json.loads((self.folder / "app.cpuprofile").read_bytes())
        self.import_("app.cpuprofile", None)
        total = sum(self.folded().values())
        first = profile["startTime"] + profile["timeDeltas"][0]
        self.assertEqual(total, (profile["endTime"] - first) * 1000)
        self.assertTrue(any("busy" in stack for stack in self.folded()))


if __name__ == "__main__":
    programs.main()
