#!/usr/bin/env python3
"""tacho folded starts each line with the thread's name, with any characters in it, and with the event's name if several have
samples; --as-perf prints what stackcollapse-perf.pl makes of perf script."""
import struct

import made_capture as made
import made_payload
import programs
from made_payload import Field

GOLDEN = programs.ROOT / "tests/golden"
CHAIN = [made.CONTEXT_USER, made.LEAF_A + 4, made.MAIN + 9]
NAMES = ["a", "", " ", "  ", " lead", "9", "12 34", "1:2", "a:b;c", "worker/0:1-events", "two words", "x 1 2.0: y"]


class Folded(programs.Scratch):
    def write(self, capture):
        (self.folder / "perf.data").write_bytes(capture.file())

    def folded(self, *words):
        done = self.tacho("folded", *words, status=None)
        lines = [line.rpartition(" ") for line in done.stdout.decode().splitlines()]
        return {stack: int(weight) for stack, _, weight in lines}, done.stderr.decode()

    def named_threads(self):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        for number, name in enumerate(NAMES, 1):
            capture.named(name, tid=100 + number).sample(tid=100 + number, chain=CHAIN, period=number)
        self.write(capture)

    def test_every_name_of_a_thread_begins_its_lines(self):
        self.named_threads()
        lines, said = self.folded()
        self.assertNotIn("record with", said)
        shown = {stack.partition(";")[0]: weight for stack, weight in lines.items()}
        self.assertEqual(shown, {
            "a": 1, "[unnamed]": 2, "_": 3, "__": 4, "_lead": 5, "9": 6, "12_34": 7, "1:2": 8, "a:b:c": 9,
            "worker/0:1-events": 10, "two_words": 11, "x_1_2.0:_y": 12})
        self.assertLess(sum(self.folded("--as-perf")[0].values()), sum(lines.values()), "perl finds no start in some")

    def test_deep_stacks_are_whole(self):
        """perf script, and so --as-perf, has 127 frames."""
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        capture.sample(chain=[made.CONTEXT_USER] + [0x700000000000 + 16 * i for i in range(300)])
        self.write(capture)
        depth = lambda *words: [stack.count(";") for stack in self.folded(*words)[0]]
        self.assertEqual((depth(), depth("--as-perf")), ([300], [127]))
        frames = lambda *words: self.tacho("script", *words).stdout.count(b"\n\t")
        self.assertEqual((frames(), frames("--max-stack", "400")), (127, 300))

    def test_processes_and_threads_are_kept_apart_by_their_numbers(self):
        self.named_threads()
        starts = [stack.partition(";")[0] for stack in self.folded("--pid")[0]]
        self.assertIn(f"9-{made.PID}", starts)
        starts = [stack.partition(";")[0] for stack in self.folded("--tid")[0]]
        self.assertIn(f"9-{made.PID}/106", starts)
        starts = [stack.partition(";")[0] for stack in self.folded("--tid", "--as-perf")[0]]
        self.assertIn("two_words-?/111", starts)

    def test_root_frames_are_those_of_by(self):
        self.named_threads()
        roots = lambda *words: {stack.rpartition(";")[0].rpartition(";")[0]: weight for stack, weight in self.folded(*words)[0].items()}
        self.assertEqual(roots("--by", "pid"), {f"pid {made.PID}": sum(range(1, 13))})
        self.assertEqual(roots("--by", "cgroup,tid")["N/A;tid 107"], 7)
        self.assertEqual(roots("--by", "event,comm")["cycles;two_words"], 11)
        self.assertEqual(roots("--by", "none"), {"": sum(range(1, 13))})
        self.assertEqual(roots("--by", "comm"), roots())
        for words, said in ((["--by", "nosuch"], "no event has 'nosuch'"), (["--by", "pid", "--as-perf"], "leave out --as-perf"),
                            (["--by", "cpu", "--off-cpu"], "takes comm, pid and tid")):
            self.assertIn(said, self.tacho("folded", *words, status=1).stderr.decode())

    def test_root_frames_may_be_fields_of_events(self):
        """Texts, enumerators and symbols stand alone; what an event lacks is said."""
        capture = made_payload.capture(True, lock=[Field("value", unit="ns", role="value"), Field("lock", format="uaddr"),
                                                   Field("holder", made_payload.TEXT, 1, 16),
                                                   Field("object", made_payload.ENUM, 4, enumerators=((1, "mutex"),)), Field("tid", size=4)],
                                       other=[Field("value", unit="ns", role="value")])
        for value, lock, holder in ((3, made.LEAF_B, b"owner"), (4, made.LEAF_B, b""), (5, 0, b"owner")):
            capture.sample(0, chain=CHAIN, raw=struct.pack("<QQ16sII", value, lock, holder, 1, 7), period=value)
        capture.sample(1, chain=CHAIN, raw=struct.pack("<Q", 9), period=9)
        self.write(capture)
        symbols = ("--symfs", GOLDEN / "symfs")
        roots = lambda *words: {stack.removesuffix(";main;leaf_a"): weight for stack, weight in self.folded(*words, *symbols)[0].items()}
        self.assertEqual(roots("--by", "holder", "--event", "lock"), {"owner": 8, "[no holder]": 4})
        self.assertEqual(roots("--by", "lock,object", "--event", "lock"), {"leaf_b;mutex": 7, "[no lock];mutex": 5})
        self.assertEqual(roots("--by", "holder"), {"lock;owner": 8, "lock;[no holder]": 4, "other;[no holder]": 9})
        self.assertEqual(roots("--by", "value", "--event", "other"), {"value 9": 9})

    def test_several_events_stand_below_their_names(self):
        kind = made.USUAL | made.CALLCHAIN
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, kind), made.Event("page faults", made.SOFTWARE, 2, kind),
                               made.Event("branches", made.HARDWARE, 4, kind)).started()
        capture.sample(0, chain=CHAIN, period=10).sample(1, chain=CHAIN, period=3).sample(0, chain=CHAIN, period=5)
        self.write(capture)
        lines, said = self.folded()
        self.assertEqual({(stack.split(";")[0], stack.split(";")[1]): weight for stack, weight in lines.items()},
                         {("cycles", "spin"): 15, ("page faults", "spin"): 3})
        self.assertIn("the stacks of 'cycles', 'page faults' are below the names of these events; --event NAME", said)
        lines, said = self.folded("--event", "page faults")
        self.assertEqual([(stack.split(";")[0], weight) for stack, weight in lines.items()], [("spin", 3)])
        self.assertEqual(said.count("stand below"), 0)
        lines, said = self.folded("--as-perf")
        self.assertTrue(all(stack.startswith("spin;") for stack in lines))

    def test_one_event_with_samples_has_no_root(self):
        kind = made.USUAL | made.CALLCHAIN
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, kind), made.Event("branches", made.HARDWARE, 4, kind))
        self.write(capture.started().sample(1, chain=CHAIN))
        self.assertTrue(all(stack.startswith("spin;") for stack in self.folded()[0]))

    def test_a_summary_without_stacks_says_what_it_has(self):
        capture = made_payload.capture(func=[Field("pid", role="key"), Field("function", role="function"),
                                                          Field("calls", role="count")])
        self.write(capture.sample(raw=struct.pack("<QQQ", 1, 0x1280, 5)))
        lines, said = self.folded()
        self.assertEqual(lines, {})
        self.assertIn("the samples of 'func' are counts that were made in the kernel, by pid, function, and have no stacks; "
                      "tacho table shows them", said)
        self.assertNotIn("record with -g", said)


if __name__ == "__main__":
    programs.main()
