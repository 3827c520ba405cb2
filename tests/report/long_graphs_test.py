#!/usr/bin/env python3
"""Long call graphs (-g graph,0): they are printed row by row, and not kept in memory."""
import os
import struct
import subprocess
import unittest

import made_capture as made
import programs

ROWS, CALLERS, DEPTH = 1000, 20, 100
CODE = 0x700000000000  # unmapped: every address is a row
MIB = 1 << 20
HEAD, DATA_SIZE = 104, 48  # size of the file header, and offsets in it


class LongGraphs(programs.Scratch):
    def setUp(self):
        super().setUp()
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        tails = [struct.pack(f"<{DEPTH}Q", *(CODE + 0x100000 * (caller + 1) + 16 * frame for frame in range(DEPTH)))
                 for caller in range(CALLERS)]
        # Written in pieces: this process must stay small, since RUSAGE_CHILDREN starts at its size.
        file = open(self.folder / "perf.data", "wb")
        self.addCleanup(file.close)
        whole = capture.file()
        data_at, = struct.unpack_from("<Q", whole, DATA_SIZE - 8)
        file.write(whole[:data_at + len(capture.data)])
        for row in range(ROWS):
            for tail in tails:
                capture.time += made.STEP
                ip = CODE + 16 * row
                file.write(made.record(9, made.USER, struct.pack(
                    "<QQIIQIIQQQQ", 1, ip, made.PID, made.PID, capture.time, 0, 0, 1000 + row, DEPTH + 2, made.CONTEXT_USER, ip) + tail))
        size = file.tell() - data_at
        file.seek(DATA_SIZE)
        file.write(struct.pack("<Q", size) + bytes(HEAD - DATA_SIZE - 8))  # no feature sections
        file.close()

    def report(self, *words):
        """Bytes of the text, and peak memory."""
        with open(self.folder / "text", "wb") as text:
            program = subprocess.Popen([str(programs.BIN / "tacho-report"), "report", "--no-children", "--percent-limit", "0", *words],
                                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=text, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(program.returncode, (0, 3))
        return (self.folder / "text").stat().st_size, usage.ru_maxrss * 1024

    @unittest.skipIf(programs.is_sanitized(), "what a sanitizer holds is not the program's")
    def test_memory_does_not_grow_with_the_text(self):
        length, held = self.report("-g", "graph,0")
        self.assertGreater(length, 64 * MIB)
        _, held_without = self.report("-g", "none")
        self.assertLess(held - held_without, 60 * MIB, f"{length} bytes of text")

    def test_the_first_rows_are_the_same_whether_others_are_shown(self):
        self.report("-g", "graph,0", "-q")
        with open(self.folder / "text", "rb") as text:
            whole = text.read(MIB)
        self.report("-g", "graph,0", "-q", "--top", "3")
        first = (self.folder / "text").read_bytes().rstrip(b"\n")
        self.assertGreater(len(first), 3 * CALLERS * DEPTH)
        self.assertTrue(whole.startswith(first))


if __name__ == "__main__":
    programs.main()
