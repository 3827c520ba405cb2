#!/usr/bin/env python3
"""tacho calls on hostile captures: very deep stacks, and events with very many values."""
import json
import resource
import struct

import made_capture as made
import made_payload
import programs
from made_payload import Field

CALL = [Field("time", unit="ns", role="value"), Field("function", role="function", format="uaddr"), Field("depth", role="depth")]
FIRST = 0x700000000000  # of functions without names


class DeepCalls(programs.Scratch):
    def calls(self, capture, *words, status=0):
        (self.folder / "perf.data").write_bytes(capture.file())
        return self.tacho("calls", *words, status=status)

    def made(self, first_to_last):
        """A capture with calls of one thread: (time of the sample, duration, function, depth) each."""
        capture = made_payload.capture(call=CALL)
        trailer = struct.pack("<QQ", 1, made.MAIN)
        capture.data += b"".join(
            made.record(9, made.USER, trailer + struct.pack(
                "<IIQIIQIQQQI", made.PID, made.PID, capture.time + time, 0, 0, 1, 28, duration, function, depth, 0))
            for time, duration, function, depth in first_to_last)
        return capture

    def nested(self, functions):
        """Nested calls: the innermost returns first."""
        return self.made(
            (made.STEP * 2 - depth, made.STEP * 2 - 2 * depth, functions[depth - 1], depth)
            for depth in range(len(functions), 0, -1))

    def test_a_function_in_itself_counts_once(self):
        f, g = FIRST, FIRST + 0x1000
        done = self.calls(self.nested([f, g, f, g, f]), "--json")
        durations = [json.loads(line)["duration"] for line in done.stdout.splitlines()]
        self.assertEqual(durations, sorted(durations, reverse=True))
        rows = {line.split()[-1]: line.split() for line in self.calls(self.nested([f, g, f, g, f]), "--report").stdout.decode().splitlines()[1:]}
        self.assertEqual([int(rows[f"{at:#x}"][-2]) for at in (f, g)], [3, 2])
        for at, outermost in ((f, durations[0]), (g, durations[1])):
            self.assertAlmostEqual(float(rows[f"{at:#x}"][0]) * 1e6, outermost, delta=1e4)

    def test_a_call_whose_sample_came_late_still_encloses_its_callees(self):
        outer, middle, inner = FIRST, FIRST + 0x1000, FIRST + 0x2000
        # Each `middle` takes 1000 ns around an `inner` of 900; the second one's sample was written 300 ns late.
        capture = self.made([
            (1950, 900, inner, 3), (2000, 1000, middle, 2),
            (3950, 900, inner, 3), (4300, 1000, middle, 2),
            (5000, 4500, outer, 1)])
        graph = [line.split()[-2:] for line in self.calls(capture, "--graph").stdout.decode().splitlines()[1:]]
        self.assertEqual(graph, [["1", f"{outer:#x}"], ["2", f"{middle:#x}"], ["2", f"{inner:#x}"]])
        calls = [json.loads(line) for line in self.calls(capture, "--json").stdout.splitlines()]
        self.assertEqual([call["duration"] for call in calls], [4500, 1000, 900, 1000, 900])

    def test_what_a_deep_stack_costs_grows_with_its_depth(self):
        # Looking through 300,000 open calls for each of them would take minutes of the processor.
        capture = self.nested([FIRST + 16 * i for i in range(300_000)])
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = self.calls(capture, "--report")
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 20)
        self.assertEqual(len(done.stdout.splitlines()), 300_001)

    def test_an_event_of_very_many_values_is_refused(self):
        many = made_payload.capture(call=[*CALL, Field("others", size=1, count=60_000)])
        self.assertIn("call: has more than 1024 values of a call", self.calls(many, status=1).stderr.decode())

    def test_an_array_that_its_payload_has_no_room_for_is_refused(self):
        capture = made_payload.capture(call=[*CALL, Field("others", count=4)])
        section = capture.features[made_payload.PAYLOAD_SCHEMAS]
        count = struct.pack("<II", 64, 4)
        self.assertEqual(section.count(count), 1)
        capture.features[made_payload.PAYLOAD_SCHEMAS] = section.replace(count, struct.pack("<II", 64, 0xffffffff))
        (self.folder / "perf.data").write_bytes(capture.file())
        self.assertIn("no event of the capture is about calls", self.tacho("calls", status=1).stderr.decode())
        self.assertIn("field 'others' is not inside its payload", self.tacho("script", status=3).stderr.decode())


if __name__ == "__main__":
    programs.main()
