#!/usr/bin/env python3
"""--event takes the names that are shown, in every view, also for events without a name in the capture."""
import json
from pathlib import Path

import made_capture as made
import programs

CAPTURES = Path(__file__).resolve().parent.parent / "golden" / "captures"
CYCLES, PAGE_FAULTS = 0, 2
KERNEL_LEFT_OUT = 0x20 | 0x40  # exclude_kernel, exclude_hv: perf's :u
GUEST_LEFT_OUT = 1 << 20


class EventNames(programs.Scratch):
    def write(self):
        """Three events, without the feature EVENT_DESC, which has names."""
        usual = made.USUAL | made.CALLCHAIN
        capture = made.Capture(made.Event("", made.HARDWARE, CYCLES, usual, flags=KERNEL_LEFT_OUT),
                               made.Event("", made.SOFTWARE, PAGE_FAULTS, usual, flags=GUEST_LEFT_OUT),
                               made.Event("", made.PMU, 0x1c2, usual, flags=KERNEL_LEFT_OUT),
                               features={made.EVENT_DESC: None}).started()
        for event in (0, 1, 1, 2, 2, 2):
            capture.sample(event, chain=[2**64 - 512, made.LEAF_A + 4])
        (self.folder / "perf.data").write_bytes(capture.file())
        return self.folder / "perf.data"

    def names_in(self, capture):
        out = self.tacho("evlist", "-i", capture).stdout.decode()
        return [line for line in out.splitlines() if not line.startswith("#")]

    def output(self, *words):
        return self.tacho(*words).stdout.decode()

    def counts(self, capture, *words):
        """Samples by the event's name, as `script` shows it."""
        counts = {}
        for line in self.output("script", "--json", "-i", capture, *words).splitlines():
            event = json.loads(line)["event"]
            counts[event] = counts.get(event, 0) + 1
        return counts

    def check(self, capture):
        """Every listed name selects exactly the samples of its events."""
        names = self.names_in(capture)
        all_counts = self.counts(capture)
        self.assertEqual(sorted(all_counts), sorted(names))
        for name, count in all_counts.items():
            condition = f'event == "{name}"'
            self.assertEqual(self.counts(capture, "--event", name), {name: count})
            self.assertEqual(self.counts(capture, "--where", condition), {name: count})
            self.assertIn(f"of event '{name}'", self.output("report", "--event", name, "-i", capture))
            shown = self.output("report", "--where", condition, "-i", capture)
            self.assertIn(f"Samples: {count}  of event '{name}'", shown)
            for options in (["--event", name], ["--where", condition]):
                lines = self.output("table", "--json", "--by", "event", "-i", capture, *options).splitlines()
                rows = [json.loads(line) for line in lines]
                self.assertEqual([(row["event"], row["count"]) for row in rows], [(name, count)])
            folded = self.output("folded", "--event-filter", name, "--weight", "samples", "-i", capture)
            self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), count)
            part = self.folder / "part.data"
            self.output("convert", "--events", name, "-i", capture, "-o", part)
            self.assertEqual(self.counts(part), {name: count})
            part.unlink()
        return names

    def test_events_without_descriptions(self):
        self.assertEqual(self.check(self.write()), ["cycles:u", "page-faults", "raw 0x1c2:u"])

    def test_captures_of_other_recorders(self):
        self.assertEqual(self.check(CAPTURES / "simpleperf-copies.data"), ["cpu-clock:u"])
        self.assertEqual(self.check(CAPTURES / "simpleperf-off-cpu.data"), ["cpu-clock:u", "sched:sched_switch"])

    def test_hist_says_which_event_has_no_fields(self):
        done = self.tacho("hist", "--event", "cpu-clock", "-i", CAPTURES / "simpleperf-off-cpu.data", status=1)
        self.assertIn(b"--event: the fields of 'cpu-clock' are not described; those of 'sched:sched_switch' are", done.stderr)

    def test_names_that_are_made_stay_what_they_are_in_other_forms(self):
        capture = self.write()
        names = self.names_in(capture)
        for source, copy, form in ((capture, "piped", "pipe"), (self.folder / "piped", "again", "file")):
            self.output("convert", "--to", form, "-i", source, "-o", self.folder / copy)
            self.assertEqual(self.check(self.folder / copy), names)

    def test_every_view_takes_lists_patterns_and_short_names(self):
        capture = self.write()
        piped = self.folder / "piped"
        self.output("convert", "--to", "pipe", "-i", capture, "-o", piped)
        meant = {"cycles": {"cycles:u": 1}, "*0x1c2*": {"raw 0x1c2:u": 3}, "page*,cycles": {"page-faults": 2, "cycles:u": 1},
                 "*:u": {"cycles:u": 1, "raw 0x1c2:u": 3}}
        for path in (capture, piped):
            for text, counts in meant.items():
                with self.subTest(path=path.name, text=text):
                    self.assertEqual(self.counts(path, "--event", text), counts)
                    shown = self.output("report", "--event", text, "-i", path)
                    for name, count in counts.items():
                        self.assertIn(f"Samples: {count}  of event '{name}'", shown)
                    lines = self.output("table", "--json", "--by", "event", "-i", path, "--event", text).splitlines()
                    self.assertEqual({row["event"]: row["count"] for row in map(json.loads, lines)}, counts)
                    folded = self.output("folded", "--event-filter", text, "--weight", "samples", "-i", path)
                    self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), sum(counts.values()))
        for command in ("script", "report", "table", "hist", "folded"):
            done = self.tacho(command, "--event", "", "-i", capture, status=1)
            self.assertIn(b"--event: '' is the name of no event", done.stderr)
        twice = self.counts(capture, "--event", "cycles", "--event", "page*")
        self.assertEqual(twice, meant["page*,cycles"])
        folded = self.output("folded", "--event", "cycles", "--event", "page*", "--weight", "samples", "-i", capture)
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), 3)
        for text, counts in meant.items():
            part = self.folder / "part.data"
            self.output("convert", "--events", text, "-i", capture, "-o", part)
            self.assertEqual(self.counts(part), counts)
            part.unlink()
        done = self.tacho("script", "--switch-on", "*", "-i", capture, status=1)
        self.assertIn(b"--switch-on: '*' means 3 events: cycles:u, page-faults, raw 0x1c2:u; name one of them", done.stderr)
        for command in ("script", "report", "table", "hist", "folded"):
            for path in (capture, piped):
                done = self.tacho(command, "--event", "page*,nosuch*", "-i", path, status=1)
                self.assertIn(b"there is no event 'nosuch*'; it has cycles:u, page-faults, raw 0x1c2:u", done.stderr)

    def test_a_pipe_of_groups_shows_what_its_file_shows(self):
        """The first sample is given twice: its values are those of events that are asked for, both times."""
        capture, piped = CAPTURES / "group.data", self.folder / "piped"
        self.output("convert", "--to", "pipe", "-i", capture, "-o", piped)
        for name in self.names_in(capture):
            shown = [self.tacho(command, *words, "--event", name, "-i", path, status=None).stdout.split(b"# captured on")[0]
                     for command, words in (("script", ["--json"]), ("table", ["--by", "event", "--csv"]),
                                            ("report", ["--no-children", "-g", "none", "-s", "sym", "--csv"]))
                     for path in (capture, piped)]
            self.assertEqual(shown[::2], shown[1::2], name)

    def test_events_that_a_pipe_tells_of_late_are_chosen(self):
        usual = made.USUAL
        capture = made.Capture(made.Event("cycles", made.HARDWARE, CYCLES, usual),
                               made.Event("instructions", made.HARDWARE, 1, usual)).started()
        head = capture.data
        capture.data = b""
        attr = [made.record(64, 0, event.attr() + (number + 1).to_bytes(8, "little")) for number, event in enumerate(capture.events)]
        first = capture.sample(0).data
        capture.data = b""
        rest = capture.sample(1).sample(1).sample(0).data
        round_ends = made.record(68, 0, b"")
        (self.folder / "late").write_bytes(b"PERFILE2" + (16).to_bytes(8, "little") + attr[0] + head + first + 2 * round_ends
                                           + attr[1] + rest + round_ends)
        self.assertEqual(self.counts(self.folder / "late", "--event", "instructions"), {"instructions:HG": 2})
        self.assertEqual(self.counts(self.folder / "late", "--event", "*"), {"cycles:HG": 2, "instructions:HG": 2})

    def test_an_event_that_gets_another_name_is_known_by_it(self):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, CYCLES, made.USUAL)).started()
        head, capture.data = capture.data, b""
        attr = made.record(64, 0, capture.events[0].attr() + (1).to_bytes(8, "little"))
        name = made.record(78, 0, (2).to_bytes(8, "little") + (1).to_bytes(8, "little") + b"mine".ljust(8, b"\0"))
        first, capture.data = capture.sample(0).data, b""
        rest = capture.sample(0).sample(0).data
        round_ends = made.record(68, 0, b"")
        (self.folder / "renamed").write_bytes(b"PERFILE2" + (16).to_bytes(8, "little") + attr + head + first + 2 * round_ends + name
                                              + rest + round_ends)
        self.assertEqual(len(self.output("script", "--event", "mine", "-i", self.folder / "renamed").splitlines()), 2)
        self.assertEqual(len(self.output("script", "--event", "cycles", "-i", self.folder / "renamed").splitlines()), 1)


if __name__ == "__main__":
    programs.main()
