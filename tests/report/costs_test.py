#!/usr/bin/env python3
"""A command reads only what its output needs: no symbols for rows without functions, no AUX data."""
import os
import struct
import subprocess
import sys

import made_capture as made
import programs

SIZE_AT, HEAD = 48, 104  # in the file header: offset of the data size; size of the header
TRACE = 4 << 30  # bytes
MOST_MEMORY = 64 << 20  # bytes
MOST_TIME = 1.0  # seconds of CPU time: ten times what it takes, less than reading the trace


class Costs(programs.Scratch):
    def write(self, events=made.USUAL):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, events)).started()
        for ip, misc in ((made.LEAF_A, made.USER), (made.LEAF_B, made.USER), (made.KERNEL_TEXT + 64, made.KERNEL)):
            chain = {"chain": [made.CONTEXT_USER, ip]} if events & made.CALLCHAIN else {}
            capture.sample(ip=ip, misc=misc, **chain)
        (self.folder / "perf.data").write_bytes(capture.file())

    def report(self, *words):
        """The report's text and its messages about symbols: kallsyms is damaged and the program is missing."""
        (self.folder / "kallsyms").write_text("no list of symbols\n")
        done = self.tacho("report", "--kallsyms", "kallsyms", "--symfs", ".", *words, status=None)
        return done.stdout.decode(), done.stderr.decode()

    def test_rows_without_functions_read_no_symbols(self):
        for events in (made.USUAL, made.USUAL | made.CALLCHAIN):
            self.write(events)
            for keys in ("comm", "pid", "dso", "comm,dso", "pid,cpu"):
                text, said = self.report("--no-children", "-g", "none", "-s", keys)
                self.assertNotIn("symbols", said, keys)
                self.assertIn("spin", text)
            for words in (["-s", "sym"], ["-s", "comm,sym"], ["-s", "comm", "-S", "leaf_a"], ["-s", "dso", "-v"]):
                self.assertIn("no symbols", self.report("--no-children", "-g", "none", *words)[1], words)
        text, said = self.report("--no-children", "-s", "comm", "-g", "caller")
        self.assertIn("no symbols", said, "its call graph shows functions")

    def test_modules_are_the_same_with_and_without_symbols(self):
        self.write()
        rows = lambda text: [line for line in text.splitlines() if line and not line.startswith("#")]
        plain = rows(self.report("--no-children", "-g", "none", "-s", "comm,dso")[0])
        self.assertEqual(len(plain), 2)
        self.assertEqual(rows(self.report("--no-children", "-g", "none", "-s", "comm,dso", "--where", "sample.pid >= 0")[0]), plain)

    def test_traces_are_stepped_over(self):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL)).started().sample()
        whole, before = capture.file(), capture.data
        at, = struct.unpack_from("<Q", whole, SIZE_AT - 8)
        trace = made.record(71, 0, struct.pack("<QQQIIII", TRACE, 0, 0, 0, 0, 0xffffffff, 0))
        capture.sample()
        after = capture.data[len(before):]
        head = bytearray(whole[:at])
        struct.pack_into("<Q", head, SIZE_AT, len(before) + len(trace) + TRACE + len(after))
        head[SIZE_AT + 8:HEAD] = bytes(HEAD - SIZE_AT - 8)  # no feature sections
        with open(self.folder / "perf.data", "wb") as file:  # sparse
            file.write(head + before + trace)
            file.seek(TRACE, os.SEEK_CUR)
            file.write(after)
        for words, lines in ((["script", "-F", "ip"], 2), (["report", "--stats"], None), (["report", "-s", "sym"], None), (["dump"], None)):
            took = subprocess.run([sys.executable, "-c", MEASURED, *map(str, [programs.BIN / "tacho", *words])],
                                  cwd=self.folder, capture_output=True, check=True)
            seconds, memory = map(float, took.stderr.split()[-2:])
            self.assertLess(seconds, MOST_TIME, words)
            self.assertLess(memory * 1024, MOST_MEMORY, words)
            if lines is not None:
                self.assertEqual(took.stdout.count(b"\n"), lines, words)


# Runs a program, and prints its CPU time and memory after its output.
MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
sys.exit(done.returncode not in (0, 3))
"""

if __name__ == "__main__":
    programs.main()
