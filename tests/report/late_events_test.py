#!/usr/bin/env python3
"""A pipe that describes an event after its first samples: no view takes it for another event."""
import struct

import made_capture as made
import made_payload
import programs
from made_payload import Field

ATTR, FINISHED_ROUND, SAMPLE = 64, 68, 9
LATE, MANY = 77, 64  # the id of the first late event; their number
CALL = [Field("time", unit="ns", role="value"), Field("function", role="function", format="uaddr"), Field("depth", role="depth")]
WAIT = [Field("time", unit="ns", role="value"), Field("queued", unit="ns", role="queued")]
WAKE = [Field("pid", size=4, role="wakes"), Field("pad", size=4)]


TRACING_DATA = 66
FORMAT = """name: event{0}
ID: {0}
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned int {1};\toffset:8;\tsize:4;\tsigned:0;

print fmt: "%s {1}=%u", "{2}", REC->{1}
"""


def tracing_record(count, field, how):
    """A TRACING_DATA record of a pipe, with `count` tracepoints."""
    data = b"\x17\x08\x44tracing0.6\0" + bytes([0, 8]) + struct.pack("<I", 4096)
    data += b"header_page\0" + bytes(8) + b"header_event\0" + bytes(8) + struct.pack("<I", 0)
    texts = [FORMAT.format(number + 1, field, how).encode() for number in range(count)]
    data += struct.pack("<I", 1) + b"made\0" + struct.pack("<I", count) + b"".join(struct.pack("<Q", len(text)) + text for text in texts)
    data += struct.pack("<IIQ", 0, 0, 0)
    data += bytes(-len(data) % 8)
    return made.record(TRACING_DATA, 0, struct.pack("<I", len(data))) + data


class LateDescriptions(programs.Scratch):
    COUNT = 200  # more than one batch

    def write(self, again):
        events = [made.Event(f"made:event{number + 1}", made.TRACEPOINT, number + 1, made.USUAL | made.RAW) for number in range(self.COUNT)]
        capture = made.Capture(*events).started()
        head, capture.data = capture.data, b""
        for number in range(self.COUNT):
            capture.sample(number, raw=struct.pack("<HBBiI", number + 1, 0, 0, made.PID, 7 * number))
        size = len(capture.data) // self.COUNT
        samples = [capture.data[at:at + size] for at in range(0, len(capture.data), size)]
        attrs = b"".join(made.record(ATTR, 0, event.attr() + struct.pack("<Q", number + 1)) for number, event in enumerate(events))
        round_ends = made.record(FINISHED_ROUND, 0, b"")
        (self.folder / "again.data").write_bytes(
            b"PERFILE2" + struct.pack("<Q", 16) + attrs + tracing_record(self.COUNT, "number", "first") + head
            + samples[0] + 2 * round_ends + again + b"".join(sample + round_ends for sample in samples[1:]))

    def numbers(self, status):
        done = self.tacho("script", "-F", "event,trace", "-i", "again.data", status=status)
        return [line.split() for line in done.stdout.decode().splitlines()], done.stderr

    def test_that_come_again_change_nothing(self):
        wanted = [[f"made:event{number + 1}:", "first", f"number={7 * number}"] for number in range(self.COUNT)]
        for times in range(4):
            self.write(times * tracing_record(self.COUNT, "number", "first"))
            shown, said = self.numbers(0)
            self.assertEqual(shown, wanted)
            self.assertNotIn(b"TRACING_DATA", said)
        self.write(tracing_record(self.COUNT // 2, "other", "second") + tracing_record(self.COUNT, "other", "second"))
        shown, said = self.numbers(3)
        self.assertEqual(shown, wanted)
        self.assertIn(b"TRACING_DATA comes a second time and differs from the first: ignored", said)
        fields = self.tacho("table", "--by", "number", "--csv", "--event", "made:event8,made:event150", "-i", "again.data", status=3)
        self.assertEqual(sorted(line.split(",")[1] for line in fields.stdout.decode().splitlines()[1:]), ["1043", "49"])

    def test_that_come_behind_samples_are_taken_then(self):
        self.write(b"")
        pipe = (self.folder / "again.data").read_bytes()
        tracing = tracing_record(self.COUNT, "number", "first")
        self.assertEqual(pipe.count(tracing), 1)
        rounds = 2 * made.record(FINISHED_ROUND, 0, b"")
        late = pipe.replace(tracing, b"").replace(rounds, rounds + tracing, 1)
        (self.folder / "again.data").write_bytes(late)
        lines = self.tacho("script", "--json", "-i", "again.data").stdout.decode().splitlines()
        self.assertEqual([line.count('"number"') for line in lines], [0] + [1] * (self.COUNT - 1))


class SectionsAgain(programs.Scratch):
    """A pipe with the same feature sections again after samples."""
    SECTIONS = (TRACING_DATA, 78, 80)  # also EVENT_UPDATE, which may be parts of sections, and FEATURE

    def records(self, pipe):
        at = 16
        while at < len(pipe):
            type_, _, size = struct.unpack_from("<IHH", pipe, at)
            if type_ == TRACING_DATA:
                size += struct.unpack_from("<I", pipe, at + 8)[0]
            yield type_, pipe[at:at + size]
            at += size

    def test_change_nothing(self):
        checked = 0
        for capture in sorted((programs.ROOT / "tests/golden/captures").glob("*.data")):
            done = self.tacho("convert", "--to", "pipe", "--plain", "-i", capture, "-o", "piped", status=None)
            if done.returncode not in (0, 3):
                continue
            pipe = (self.folder / "piped").read_bytes()
            records = list(self.records(pipe))
            again = b"".join(record for type_, record in records if type_ in self.SECTIONS)
            for name, between in (("once", b""), ("twice", again)):
                text, samples = pipe[:16], 0
                for type_, record in records:
                    text += record
                    samples += type_ == SAMPLE
                    if type_ == SAMPLE and samples in (1, 2, 5):
                        text += 2 * made.record(FINISHED_ROUND, 0, b"") + between
                (self.folder / name).write_bytes(text)
            for words in (["script"], ["script", "--json"], ["report", "--stdio"], ["table", "--by", "comm"]):
                once, twice = (self.tacho(*words, "-i", name, status=None) for name in ("once", "twice"))
                self.assertEqual(once.stdout.replace(b"once", b"twice"), twice.stdout, (capture.name, words))
                self.assertEqual(once.returncode, twice.returncode, (capture.name, words, twice.stderr))
            checked += samples > 1 and len(again) > 0
        self.assertGreater(checked, 20)


class LateEvents(programs.Scratch):
    def pipe(self, capture):
        """Two samples, then more events with one sample each."""
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
        pipe += 2 * made.record(FINISHED_ROUND, 0, b"")  # samples up to here are shown before the rest is read
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
        done = self.tacho("calls", "--json", "-i", "late.data")
        self.assertEqual(done.stdout.count(b"\n"), 2)
        self.assertIn(f"tacho calls: {MANY} samples are of events that the pipe described too late".encode(), done.stderr)

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
        self.assertIn(f"{MANY} samples are of events that the pipe described too late", done.stderr.decode())
        self.assertEqual(self.shown("script", "--json").count("\n"), 2 + MANY)
        self.assertEqual(self.shown("script").count("\n"), 2 + MANY)
        self.assertEqual(self.shown("script", "--columns", "comm,event").count("\n"), 3)
        self.assertIn(f"tacho summary: {MANY} samples are of events that the pipe described too late".encode(),
                      self.tacho("summary", "-i", "late.data").stderr)
        self.shown("folded")
        self.shown("table", "--by", "comm")
        self.shown("header")


if __name__ == "__main__":
    programs.main()
