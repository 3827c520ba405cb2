#!/usr/bin/env python3
"""--follow of a capture that grows faster than it is read: Ctrl-C ends it at once, without catching up."""
import signal
import struct
import subprocess

import made_capture as made
import programs

FINISHED_ROUND = 68
HEAD, DATA_SIZE, FEATURE_BITS = 104, 48, 72  # size of the file header, and offsets in it
SAMPLES, ROUND = 200_000, 500


def growing(capture):
    """A capture as it is while recording: data size 0, no feature sections."""
    whole = capture.file()
    data_at, = struct.unpack_from("<Q", whole, DATA_SIZE - 8)
    head = bytearray(whole[:data_at + len(capture.data)])
    head[DATA_SIZE:DATA_SIZE + 8] = bytes(8)
    head[FEATURE_BITS:HEAD] = bytes(HEAD - FEATURE_BITS)
    return bytes(head)


class Following(programs.Scratch):
    def backlog(self):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL)).started()
        parts = [capture.data]
        for i in range(SAMPLES):
            capture.time += made.STEP
            parts.append(made.record(9, made.USER, struct.pack("<QQIIQIIQ", 1, made.MAIN, made.PID, made.PID, capture.time, 0, 0, 1000)))
            if i % ROUND == ROUND - 1:
                parts.append(made.record(FINISHED_ROUND, 0, b""))
        capture.data = b"".join(parts)
        (self.folder / "perf.data").write_bytes(growing(capture))

    def follow(self):
        with open(self.folder / "errors", "wb") as errors:
            program = subprocess.Popen([str(programs.BIN / "tacho-report"), "script", "--follow"], cwd=self.folder,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        self.addCleanup(program.kill)
        return program

    def test_ctrl_c_ends_it_amid_a_long_backlog(self):
        self.backlog()
        for number in (signal.SIGINT, signal.SIGTERM):
            program = self.follow()
            # Nothing reads the output until the signal: the full pipe stops the program far from the end.
            self.assertIn(b"cycles", program.stdout.readline())
            program.send_signal(number)
            text = program.stdout.read()
            program.stdout.close()
            self.assertIn(program.wait(programs.PATIENCE), (0, 3))
            said = (self.folder / "errors").read_text()
            self.assertIn("stopped; its recorder may go on", said)
            self.assertLess(text.count(b"\n"), SAMPLES // 2)
            self.assertTrue(text.endswith(b"\n"))

    def test_before_a_signal_all_of_it_is_shown(self):
        self.backlog()
        program = self.follow()
        for _ in range(SAMPLES):
            self.assertTrue(program.stdout.readline())
        program.send_signal(signal.SIGINT)
        self.assertEqual(program.stdout.read(), b"")
        program.stdout.close()
        self.assertIn(program.wait(programs.PATIENCE), (0, 3))


if __name__ == "__main__":
    programs.main()
