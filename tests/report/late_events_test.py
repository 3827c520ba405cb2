#!/usr/bin/env python3
"""A pipe that tells of an event after samples were there: no view takes it for one that it knows."""
import struct

import made_capture as made
import made_payload
import programs
from made_payload import Field

ATTR, FINISHED_ROUND, SAMPLE = 64, 68, 9
LATE, MANY = 77, 64  # the id of the late event; how many there are
CALL = [Field("time", unit="ns", role="value"), Field("function", role="function", format="uaddr"), Field("depth", role="depth")]
WAIT = [Field("time", unit="ns", role="value"), Field("queued", unit="ns", role="queued")]
WAKE = [Field("pid", size=4, role="wakes"), Field("pad", size=4)]


class LateEvents(programs.Scratch):
    def pipe(self, capture):
        """Two samples, and behind them more events with a sample of each."""
        (self.folder / "perf.data").write_bytes(capture.file())
        self.tacho("convert", "-i", "perf.data", "-o", "pipe.data", "--to", "pipe", "--plain")
        pipe = (self.folder / "pipe.data").read_bytes()
        at, samples = 16, []
        while at < len(pipe):
            type_, _, size = struct.unpack_from("<IHH", pipe, at)
            if type_ == SAMPLE:
                samples.append(pipe[at:at + size])
            at += size
        self.assertEqual(len(samples), 2)
        last = bytearray(samples[-1])
        time, = struct.unpack_from("<Q", last, 32)
        pipe += 2 * made.record(FINISHED_ROUND, 0, b"")  # the samples until here come before anything else is read
        for i in range(MANY):
            struct.pack_into("<Q", last, 8, LATE + i)
            struct.pack_into("<Q", last, 32, time + (i + 1) * made.STEP)
            pipe += made.record(ATTR, 0, capture.events[0].attr() + struct.pack("<Q", LATE + i)) + last
        (self.folder / "late.data").write_bytes(pipe)

    def shown(self, *words):
        done = self.tacho(*words, "-i", "late.data")
        return done.stdout.decode()

    def test_are_no_calls(self):
        capture = made_payload.capture(call=CALL)
        for _ in range(2):
            capture.sample(raw=struct.pack("<QQQ", 1000, made.LEAF_A, 1))
        self.pipe(capture)
        self.assertEqual(self.shown("calls", "--json").count("\n"), 2)

    def test_are_no_waits(self):
        capture = made_payload.capture(True, offcpu=WAIT, waking=WAKE)
        chain = [made.CONTEXT_USER, made.LEAF_A, made.MAIN]
        capture.sample(1, chain=chain, raw=struct.pack("<II", made.PID, 0))
        capture.sample(0, chain=chain, raw=struct.pack("<QQ", 500, 0))
        self.pipe(capture)
        for words in (["--off-cpu"], ["--wakers"]):
            self.assertIn(" 500\n", self.shown("folded", *words), words)
            self.assertIn("500,", self.shown("report", "--csv", *words), words)

    def test_are_no_rows_of_a_report(self):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL)).started().sample().sample()
        self.pipe(capture)
        done = self.tacho("report", "--csv", "-s", "comm,sym", "-i", "late.data")
        self.assertEqual(done.stdout.decode().count("2000"), 1)
        self.assertIn(f"{MANY} samples are of events that the pipe told of too late", done.stderr.decode())
        self.assertEqual(self.shown("script", "--json").count("\n"), 2 + MANY)
        self.assertEqual(self.shown("script").count("\n"), 2 + MANY)
        self.assertEqual(self.shown("script", "--columns", "comm,event").count("\n"), 3)
        self.shown("folded")
        self.shown("table", "--by", "comm")
        self.shown("header")


if __name__ == "__main__":
    programs.main()
