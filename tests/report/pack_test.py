#!/usr/bin/env python3
"""tacho pack: a pack that no reader would take is refused, and the capture stays as it is."""
import made_capture as made
import programs

CODE = 0x100000000  # made at run time: one function, that a perf map names
PAGE = 4096


class Pack(programs.Scratch):
    def write(self, addresses, chain=1000):
        capture = made.Capture(made.Event("cpu-clock", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)).started()
        capture.mapped(made.PID, CODE, 1 << 40, 0, "//anon")
        pieces = []  # joined in the end: appending to what is large already copies it
        for begin in range(0, addresses, chain):
            capture.data, before = b"", capture.data
            pieces.append(before)
            hit = [CODE + PAGE * number for number in range(begin, min(begin + chain, addresses))]
            capture.sample(ip=hit[0], chain=[made.CONTEXT_USER, *hit])
        capture.data = b"".join(pieces) + capture.data
        (self.folder / "perf.data").write_bytes(capture.file())
        (self.folder / f"perf-{made.PID}.map").write_text(f"{CODE:x} {1 << 40:x} generated\n")
        return self.folder / "perf.data"

    def pack(self, capture, status):
        done = self.tacho("pack", capture, "-o", "packed.data", "--perf-map-dir", self.folder, status=status)
        return done.stderr.decode()

    def test_a_pack_is_written(self):
        self.assertIn("3000 of 3000 addresses have names", self.pack(self.write(3000), 0))
        self.assertIn(b"generated", self.tacho("script", "-i", "packed.data", "--max-stack", "3").stdout)

    def test_a_pack_that_readers_would_refuse_is_not_written(self):
        capture = self.write(700_000)
        before = capture.read_bytes()
        said = self.pack(capture, 2)
        self.assertIn("is not packed and stays as it is: readers would refuse the pack, it would take more memory", said)
        self.assertEqual(len(said.splitlines()), 1)
        self.tacho("pack", capture, "--perf-map-dir", self.folder, status=2)
        self.assertEqual(capture.read_bytes(), before)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"perf.data", f"perf-{made.PID}.map"})


if __name__ == "__main__":
    programs.main()
