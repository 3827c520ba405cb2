#!/usr/bin/env python3
"""Rounds that exceed the memory limit of sorting, as recorders with large rings and stack copies write them."""
import ctypes
import re
import struct

import bytes_of
import made_capture as made
import programs

FINISHED_ROUND, COMPRESSED, COMPRESSED_FEATURE = 68, 81, 27
BYTES = 8000  # of a payload
EACH = 32     # samples in a zstd frame
BLOCKS = 400  # frames: 100 MB of records, from 40 KB


def packed(content):
    zstd = bytes_of.library()
    zstd.ZSTD_compress.restype = ctypes.c_ulonglong
    out = ctypes.create_string_buffer(len(content))
    size = zstd.ZSTD_compress(out, ctypes.c_size_t(len(out)), content, ctypes.c_size_t(len(content)), 1)
    return out.raw[:size]


class LongRound(programs.Scratch):
    def capture(self, time_of, behind=0):
        """`time_of`: (block, number in it) -> ns after the start. `behind`: number of sorted rounds after it."""
        feature = struct.pack("<5I", 1, 1, 1, 4, 1 << 20)
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.RAW),
                               features={COMPRESSED_FEATURE: feature}).started()
        data, begun = capture.data, capture.time
        for block in range(BLOCKS):
            capture.data = b""
            for i in range(EACH):
                capture.time = begun + 1 + time_of(block, i) - made.STEP
                capture.sample(raw=bytes(BYTES))
            data += made.record(COMPRESSED, 0, packed(capture.data))
        if behind:
            data += 3 * made.record(FINISHED_ROUND, 0, b"")
        for first in range(0, 2 * behind, 2):  # two frames, with the later samples in the first one
            for block in (first + 1, first):
                capture.data = b""
                for i in range(EACH):
                    capture.time = begun + (BLOCKS + block) * EACH + 1 + i - made.STEP
                    capture.sample(raw=b"")
                data += made.record(COMPRESSED, 0, packed(capture.data))
            data += made.record(FINISHED_ROUND, 0, b"")
        capture.data = data
        (self.folder / "perf.data").write_bytes(capture.file())

    def times(self, status, count=BLOCKS * EACH):
        done = self.tacho("script", "-F", "time", "--ns", status=status)
        times = [int(seconds) * 10**9 + int(ns) for seconds, ns in re.findall(r"(\d+)\.(\d{9}):", done.stdout.decode())]
        self.assertEqual(len(times), count)
        return times, done.stderr.decode()

    def test_one_processor_after_the_other_is_put_in_order(self):
        processors = 4
        of_each = BLOCKS // processors
        self.capture(lambda block, i: ((block % of_each) * EACH + i) * processors + block // of_each)
        times, said = self.times(status=0)
        self.assertEqual(times, sorted(times))
        self.assertEqual(said, "")

    def test_an_order_that_cannot_be_held_is_given_up_and_reported(self):
        """Each frame has samples of the whole time range."""
        self.capture(lambda block, i: i * BLOCKS + block)
        times, said = self.times(status=3)
        self.assertEqual(len(set(times)), len(times))
        self.assertNotEqual(times, sorted(times))
        self.assertIn("too many would have to wait", said)
        raw = self.tacho("report", "-D", status=3)
        self.assertIn(b"too many would have to wait", raw.stderr)

    def test_rounds_behind_one_that_was_given_up_are_in_order(self):
        self.capture(lambda block, i: i * BLOCKS + block, behind=50)
        whole = BLOCKS * EACH
        times, said = self.times(status=3, count=whole + 50 * 2 * EACH)
        self.assertEqual(times[whole:], sorted(times[whole:]))
        late = int(re.search(r"out of time order.*\((\d+) times\)", said).group(1))
        self.assertLess(late, whole)


if __name__ == "__main__":
    programs.main()
