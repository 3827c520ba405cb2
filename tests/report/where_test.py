#!/usr/bin/env python3
"""--where selects the same samples in every view, for a file and for a pipe."""
import json
import struct

import made_capture as made
import made_payload
import programs
from made_payload import TEXT, Field

CHAIN = [2**64 - 512, made.LEAF_A + 4, made.MAIN + 9]  # PERF_CONTEXT_USER
CONDITION = 'delay > 5us && comm != "other"'


class Where(programs.Scratch):
    def write(self):
        capture = made_payload.capture(True, wake=[Field("delay", unit="ns"), Field("comm", TEXT, 1, 16)])
        for delay, comm in [(5000, b"woken"), (6000, b"woken"), (70000, b"other"), (8000, b"woken")]:
            capture.sample(raw=struct.pack("<Q16s", delay, comm), chain=CHAIN)
        (self.folder / "perf.data").write_bytes(capture.file())

    def output(self, *words, status=0):
        done = self.tacho(*words, status=status)
        return done.stdout.decode(), done.stderr.decode()

    def test_every_view_shows_the_same_samples(self):
        self.write()
        out, _ = self.output("script", "--json", "--where", CONDITION)
        shown = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([one["fields"]["delay"] for one in shown], [6000, 8000])
        self.assertIn("2 values", self.output("hist", "--field", "delay", "--where", CONDITION)[0])
        out, _ = self.output("folded", "--weight", "samples", "--where", CONDITION)
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in out.splitlines()), 2)
        for graph in (["--no-children", "-g", "none"], []):
            out, _ = self.output("report", "--stdio", *graph, "--where", CONDITION)
            self.assertIn("# Samples: 2  of event 'wake'", out)

    def test_each_value_of_a_group_is_a_sample_of_its_own_event(self):
        group = programs.ROOT / "tests/golden/captures/group.data"
        every = ["cpu-clock", "context-switches", "page-faults"]
        whole = self.output("script", "-F", "event,period", "-i", group)[0].splitlines()
        for event in every:
            out, said = self.output("script", "-F", "event,period", "-i", group, "--where", f'event == "{event}"')
            self.assertEqual(out.splitlines(), [line for line in whole if f" {event}:" in line])
            self.assertNotEqual(out, "")
            self.assertNotIn("there is no event", said)
        small = [line for line in whole if int(line.split()[0]) < 300]
        self.assertNotIn(len(small), (0, len(whole)))
        self.assertEqual(self.output("script", "-F", "event,period", "-i", group, "--where", "period < 300")[0]
                         .splitlines(), small)

    def test_an_unknown_event_is_refused(self):
        self.write()
        for condition in ['event == "weke"', '"weke" == event', 'pid == 1 || sample.event != "weke"']:
            self.assertIn("there is no event 'weke'; did you mean 'wake'?",
                          self.output("script", "--where", condition)[1])
        self.assertNotIn("no event", self.output("script", "--where", 'event == "wake" && comm == "weke"')[1])

    def test_a_processor_of_samples_that_tell_none_is_wrong_use(self):
        capture = programs.ROOT / "tests/golden/captures/group.data"
        for words in (["script"], ["report", "--stdio"], ["folded"]):
            self.assertIn("no event here has the CPU of its samples", self.output(*words, "-i", capture, "-C", "0", status=1)[1])

    def test_a_wrong_condition_is_refused_before_anything_is_written(self):
        self.write()
        out, said = self.output("script", "--where", "dely > 5", status=1)
        self.assertEqual(out, "")
        self.assertIn("--where: column 1: no event here has this", said)
        self.assertTrue(said.endswith("\n    dely > 5\n    ^\n"), said)
        self.assertIn("did you mean 'delay'?", said)
        out, said = self.output("script", "--where", "delay >", status=1)
        self.assertIn("--where: column 8: a value is missing at the end\n    delay >\n           ^\n", said)

    def test_an_empty_result_gives_a_note(self):
        self.write()
        _, said = self.output("report", "--stdio", "--where", "delay > 1s")
        self.assertIn("--where", said)


class Names(programs.Scratch):
    """Code addresses in a payload are compared by function name."""

    def write(self):
        at = {"vfs_read": made.KERNEL_TEXT + 0x1000, "vfs_write": made.KERNEL_TEXT + 0x2000}
        (self.folder / "kallsyms").write_text("".join(f"{address:016x} T {name}\n" for name, address in
                                                      [("_text", made.KERNEL_TEXT), *at.items(), ("_etext", made.KERNEL_TEXT + 0x2000000)]))
        capture = made_payload.capture(True, call=[Field("took", unit="ns"), Field("function", format="kaddr")])
        for took, address in [(1, at["vfs_read"]), (2, at["vfs_write"]), (3, at["vfs_read"] + 16), (4, 64)]:
            capture.sample(raw=struct.pack("<QQ", took, address), chain=CHAIN)
        (self.folder / "perf.data").write_bytes(capture.file())

    def took(self, condition, *view):
        text = self.tacho("script", "--json", "--kallsyms", "kallsyms", "--where", condition, *view).stdout.decode()
        return [json.loads(line)["fields"]["took"] for line in text.splitlines()]

    def test_a_function_is_known_by_its_name(self):
        self.write()
        self.assertEqual(self.took('function == "vfs_read"'), [1, 3])
        self.assertEqual(self.took('function ~ "vfs_*"'), [1, 2, 3])
        self.assertEqual(self.took('function ~ "vfs_*" && took > 1'), [2, 3])
        self.assertEqual(self.took('function != "vfs_read"'), [2])
        self.assertEqual(self.took('function !~ "*read"'), [2])
        self.assertEqual(self.took(f"function == {made.KERNEL_TEXT + 0x1000:#x}"), [1])
        self.assertEqual(self.took('function == "nobody"'), [])

    def test_every_view_takes_it(self):
        self.write()
        condition = ["--kallsyms", "kallsyms", "--where", 'function == "vfs_read"']
        self.assertIn(b"2 values", self.tacho("hist", "--field", "took", *condition).stdout)
        self.assertIn(b"Samples: 2 ", self.tacho("report", "--stdio", *condition).stdout)
        self.assertIn(b"Samples: 2 ", self.tacho("report", "--stdio", "--no-children", "-g", "none", *condition).stdout)
        weights = [line.rsplit(b" ", 1)[1] for line in self.tacho("folded", "--weight", "samples", *condition).stdout.splitlines()]
        self.assertEqual(sum(map(int, weights)), 2)
        columns = self.tacho("script", "--columns", "took,function", *condition).stdout.decode().splitlines()
        self.assertEqual(len(columns), 3)

    def test_order_of_names_and_addresses_is_refused(self):
        self.write()
        said = self.tacho("script", "--where", 'function < "vfs_read"', status=1).stderr.decode()
        self.assertIn("a text and a number cannot be compared", said)


class Twice(programs.Scratch):
    def test_a_second_condition_does_not_replace_the_first_in_silence(self):
        done = self.tacho("script", "--where", "cpu == 0", "--where", "pid == 1", status=1)
        self.assertEqual(done.stderr, b"tacho: --where is given twice; join both conditions by &&\n")


if __name__ == "__main__":
    programs.main()
