#!/usr/bin/env python3
"""--slowest of tacho flamegraph and tacho folded: what threads do in their slowest intervals, compared with the others."""
import struct
import unittest

import made_capture as made
import programs
from flame_graph import Picture
from made_payload import BPF_OUTPUT, PAYLOAD_SCHEMAS, Field, schemas

GOLDEN = programs.ROOT / "tests/golden"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
MS = 1_000_000
OTHER_THREAD = made.PID + 1
FAST, SLOW = 90, 10  # intervals


class Slowest(programs.Scratch):
    def write(self):
        """Every tenth interval is slow: 8 of its 10 samples are in leaf_b. recurse is never in an interval of its
        thread: it runs between them, and in another thread meanwhile."""
        capture = made.Capture(
            made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN),
            made.Event("call", made.SOFTWARE, BPF_OUTPUT, made.USUAL | made.RAW | made.CALLCHAIN, 1),
            features={PAYLOAD_SCHEMAS: schemas(call=[Field("lat_ns", unit="ns", role="value"), Field("code")])}).started()
        now = capture.time
        sample_at = lambda time, leaf, tid=made.PID: (setattr(capture, "time", time - made.STEP), capture.sample(
            ip=leaf + 4, tid=tid, chain=[made.CONTEXT_USER, leaf + 4, made.MAIN + 9]))

        def ended(time, latency, code, tid=made.PID):
            capture.time = time - made.STEP
            capture.sample(event=1, ip=made.MAIN + 1, tid=tid, chain=[made.CONTEXT_USER, made.MAIN + 1],
                           raw=struct.pack("<QQ", latency, code))

        for number in range(FAST + SLOW):
            is_slow = number % 10 == 9
            samples = 10 if is_slow else 2
            begin, now = now + MS, now + MS + samples * MS
            for step in range(samples):
                sample_at(begin + step * MS + MS // 4, made.LEAF_A if step < 2 else made.LEAF_B)
                sample_at(begin + step * MS + MS // 2, made.RECURSE, OTHER_THREAD)
            if is_slow:  # a short interval inside a slow one: samples in both are slow
                ended(now - MS // 8, MS, 1000)
            ended(now, now - begin, number)
            sample_at(now + MS // 4, made.RECURSE)
        (self.folder / "a.data").write_bytes(capture.file())

    def draw(self, *words, status=0):
        done = self.tacho("flamegraph", "-i", "a.data", "--min-width", "0", *SYMBOLS, *words, status=status)
        return Picture(done.stdout.decode()) if status == 0 else done.stderr.decode()

    def sums(self, picture):
        """{function: (weight in the other intervals, in slow ones)}"""
        return {frame.name: (frame.before, frame.after) for pane in picture.panes for frame in pane if frame.kind == "u"}

    def test_the_planted_path_is_the_difference(self):
        self.write()
        # The short intervals within slow ones count too: 110.
        whole = self.draw("--slowest", "9%")
        self.assertEqual(self.sums(whole), {"main": (FAST * 2000, SLOW * 10_000), "leaf_a": (FAST * 2000, SLOW * 2000),
                                            "leaf_b": (0, SLOW * 8000)})
        notes = "\n".join(whole.notes)
        self.assertIn("slow: 10 of 110 intervals of call.lat_ns, from 10 ms up: 100 samples", notes)
        self.assertIn("others: 100 intervals: 180 samples; in no interval of its thread: 380 samples, not drawn", notes)
        for words in (["--slow-where", "lat_ns > 5ms"], ["--slowest", "9%", "--of", "call"],
                      ["--slow-where", "lat_ns > 5ms && code < 1000", "--of", "call.lat_ns"]):
            self.assertEqual(self.sums(self.draw(*words)), self.sums(whole), words)

    def test_folded_has_a_number_for_each_side(self):
        self.write()
        lines = [line.rsplit(" ", 2) for line in self.folded("--slowest", "9%").splitlines()]
        self.assertEqual({stack: (int(other), int(slow)) for stack, other, slow in lines},
                         {"spin;main;leaf_a": (FAST * 2000, SLOW * 2000), "spin;main;leaf_b": (0, SLOW * 8000)})
        (self.folder / "two.folded").write_text(self.folded("--slow-where", "lat_ns > 5ms"))
        picture = Picture(self.tacho("flamegraph", "--folded", "two.folded", "--min-width", "0").stdout.decode())
        self.assertEqual(self.sums(picture)["leaf_b"], (0, SLOW * 8000))

    def folded(self, *words, status=0):
        done = self.tacho("folded", "-i", "a.data", *SYMBOLS, *words, status=status)
        return done.stdout.decode() if status == 0 else done.stderr.decode()

    def plain(self):
        """Requests without a latency field, from one event to another with the same id: every fourth one is slow, and in
        leaf_b."""
        id_ = [Field("id")]
        capture = made.Capture(
            made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN),
            *(made.Event(name, made.SOFTWARE, BPF_OUTPUT, made.USUAL | made.RAW, 1) for name in ("begin", "end")),
            features={PAYLOAD_SCHEMAS: schemas(begin=id_, end=id_)}).started()
        for number in range(16):
            is_slow = number % 4 == 3
            capture.sample(event=1, raw=struct.pack("<Q", number))
            for _ in range(8 if is_slow else 2):
                capture.sample(ip=made.LEAF_B if is_slow else made.LEAF_A, chain=[made.CONTEXT_USER, made.LEAF_B if is_slow else made.LEAF_A])
            capture.sample(event=2, raw=struct.pack("<Q", number))
            capture.sample(ip=made.RECURSE, chain=[made.CONTEXT_USER, made.RECURSE])  # in no interval
        (self.folder / "a.data").write_bytes(capture.file())

    def test_intervals_of_plain_events(self):
        self.plain()
        right = {"leaf_a": (12 * 2000, 0), "leaf_b": (0, 4 * 8000)}
        for words in (["--key", "id"], ["--key", "id,id"], []):
            picture = self.draw("--slowest", "25%", "--between", "begin,end", *words)
            self.assertEqual(self.sums(picture), right, words)
        self.assertIn("slow: 4 of 16 intervals of begin to end, from 11.1 ms up: 32 samples", "\n".join(picture.notes))
        lines = self.folded("--slow-where", "id == 3 || id == 7 || id == 11 || id == 15", "--between", "begin,end")
        self.assertEqual(lines, "spin;leaf_a 24000 0\nspin;leaf_b 0 32000\n")
        for words, said in ((["--between", "begin,end"], "--slowest 1%"), (["--slowest", "1%", "--key", "id"], "--between FIRST,SECOND"),
                            (["--slowest", "1%", "--between", "begin,end", "--of", "begin"], "one of them"),
                            (["--slowest", "1%", "--between", "begin,nothing"], "nothing"), (["--slowest", "1%", "--between", "begin"], "two events")):
            self.assertIn(said, self.draw(*words, status=1), words)
            self.assertIn(said, self.folded(*words, status=1), words)

    def test_stacks_never_seen_in_slow_intervals_have_their_own_pane(self):
        self.write()
        picture = self.draw("--slow-where", "lat_ns < 5ms && code < 1000")
        self.assertEqual(len(picture.panes), 2)
        self.assertEqual({frame.name: frame.before for frame in picture.panes[1] if frame.name == "leaf_b"},
                         {"leaf_b": SLOW * 8000})

    def test_wrong_use_is_answered(self):
        self.write()
        for words, said in ((["--slowest", "0%"], "is no share"), (["--slowest", "5"], "1% takes"),
                            (["--slowest", "1%", "--of", "nothing"], "nothing"), (["--of", "call"], "--slowest 1%"),
                            (["--slowest", "1%", "--of", "call.code"], "choose with --of: call.lat_ns"),
                            (["--slowest", "1%", "--slow-where", "lat_ns > 1"], "one of them"),
                            (["--slow-where", "nope > 1"], "nope"), (["--slowest", "1%", "--base", "a.data"], "one capture")):
            self.assertIn(said, self.draw(*words, status=1), words)
        said = self.tacho("flamegraph", "-i", GOLDEN / "captures/threads.data", "--slowest", "1%", *SYMBOLS, status=1).stderr
        self.assertIn(b"no payload has a latency", said)


if __name__ == "__main__":
    unittest.main()
