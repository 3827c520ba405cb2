#!/usr/bin/env python3
"""More rows and functions than are named while reading, and than are sorted with their texts in memory."""
import csv
import io
import struct

import made_capture as made
import programs

ROWS = (1 << 18) + 20_000
CALLERS = [0x700100000000 + 16 * number for number in range(3)]
CODE = 0x700000000000  # unmapped: every address is a function
SIZE_AT, HEAD = 48, 104  # in the file header: offset of the data size; size of the header


class ManyRows(programs.Scratch):
    def setUp(self):
        super().setUp()
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        whole = capture.file()
        at, = struct.unpack_from("<Q", whole, SIZE_AT - 8)
        sample = struct.Struct("<IHHQQIIQIIQQQQQ")
        samples = bytearray()
        for row in range(ROWS):
            weight = row * 7919 % ROWS + 1  # each once, shuffled
            samples += sample.pack(9, made.USER, sample.size, 1, CODE + 16 * row, made.PID, made.PID, capture.time + row + 1, 0, 0,
                                   weight, 3, made.CONTEXT_USER, CODE + 16 * row, CALLERS[row % 3])
        data = capture.data + samples
        head = bytearray(whole[:at])
        struct.pack_into("<Q", head, SIZE_AT, len(data))
        head[SIZE_AT + 8:HEAD] = bytes(HEAD - SIZE_AT - 8)  # no feature sections
        (self.folder / "perf.data").write_bytes(head + data)

    def test_the_text_is_the_same_for_any_number_of_jobs(self):
        for words in (["--no-children", "-g", "none"], ["-g", "caller,0.0001"]):
            alone = self.tacho("report", "--jobs", "1", *words).stdout
            self.assertGreater(alone.count(b"\n"), ROWS)
            for jobs in ("2", "8"):
                self.assertEqual(self.tacho("report", "--jobs", jobs, *words).stdout, alone, (jobs, words))

    def test_jobs_are_a_number(self):
        for text in ("0", "65", "two", ""):
            self.assertIn(b"--jobs", self.tacho("report", "--jobs", text, status=1).stderr)

    def rows(self, *words):
        """(address, value) of each row, in the order of the text."""
        text = self.tacho("report", "-s", "sym", "--csv", *words).stdout.decode()
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        table = list(csv.DictReader(io.StringIO("\n".join(lines))))
        return table

    def test_are_all_shown_in_order(self):
        self.assertEqual(len({row * 7919 % ROWS for row in range(ROWS)}), ROWS)
        by_weight = [CODE + 16 * row for row in sorted(range(ROWS), key=lambda row: -(row * 7919 % ROWS))]
        shown = self.rows("--no-children", "-g", "none")
        name = next(key for key in shown[0] if "ymbol" in key)
        addresses = [int(row[name].split()[-1], 16) for row in shown]
        self.assertEqual(addresses, by_weight)
        shown = self.rows("--children", "-g", "none")
        addresses = [int(row[name].split()[-1], 16) for row in shown]
        self.assertEqual(addresses[3:], by_weight)
        self.assertEqual(set(addresses[:3]), set(CALLERS))


if __name__ == "__main__":
    programs.main()
