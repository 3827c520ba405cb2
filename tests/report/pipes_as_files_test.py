#!/usr/bin/env python3
"""A view shows the same for a pipe as for the file, although a pipe describes its events after the start."""
import struct

import made_capture as made
import made_payload
import programs
from made_payload import Field

GOLDEN = programs.ROOT / "tests/golden"
ATTR, BUILD_ID, FINISHED_ROUND, FEATURE, SAMPLE = 64, 67, 68, 80, 9
VIEWS = [["script"], ["script", "--json"], ["folded"], ["table", "--by", "comm"], ["report", "--csv", "--no-children", "-s", "comm,sym"],
         ["report", "--stdio", "--no-children", "--branch-history"], ["report", "--csv", "--no-children", "-s", "cgroup,cgroup_id"]]


class PipesAsFiles(programs.Scratch):
    def shown(self, path, words, status=0):
        done = self.tacho(*words, "--symfs", GOLDEN / "symfs", "-i", path, status=status)
        return [line for line in done.stdout.decode(errors="replace").splitlines() if not line.startswith("#")]

    def compare(self, capture, views):
        self.tacho("convert", "--to", "pipe", "-i", capture, "-o", "piped", status=None)
        for words in views:
            self.assertEqual(self.shown("piped", words, None), self.shown(capture, words, None), (capture, words))

    def test_of_every_kind(self):
        for capture in sorted((GOLDEN / "captures").glob("*.data")):
            # A file's header has a flag for branches, by which perf shows them; a pipe has none.
            views = [words for words in VIEWS if "--csv" not in words or capture.name != "predicted-branches.data"]
            self.compare(capture, views)

    def test_fields_with_addresses_have_names(self):
        capture = made_payload.capture(call=[Field("function", role="function", format="uaddr"), Field("depth", size=8)])
        for at in (made.LEAF_A, made.LEAF_B):
            capture.sample(raw=struct.pack("<QQ", at, 1))
        (self.folder / "perf.data").write_bytes(capture.file())
        views = [["report", "--csv", "--no-children", "-s", "function"], ["script", "--json"]]
        self.compare("perf.data", views)
        self.assertIn("leaf_a", "".join(self.shown("piped", views[0])))

    def test_cgroup_records_before_the_first_sample_are_used(self):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL | made.CGROUP)).started()
        capture.other(19, 0, struct.pack("<Q", 77) + b"/kept".ljust(8, b"\0"))
        capture.sample(cgroup=77)
        (self.folder / "perf.data").write_bytes(capture.file())
        self.compare("perf.data", VIEWS)
        self.assertIn("/kept", "".join(self.shown("piped", VIEWS[-1])))

    def test_wrong_options_are_refused_where_no_sample_is_shown(self):
        self.tacho("convert", "--to", "pipe", "-i", GOLDEN / "captures/comm.data", "-o", "piped")
        for words in (["report", "-s", "nosuch"], ["script", "-F", "tod"], ["script", "--switch-on", "nosuch"]):
            done = self.tacho(*words, "--time", "900000,", "-i", "piped", status=1)
            self.assertIn(b"nosuch" if "nosuch" in words else b"-F tod", done.stderr)

    def test_build_ids_of_records_and_of_the_section_add_up(self):
        def entry(path, number):
            name = path.ljust(16, b"\0")
            return struct.pack("<i", made.PID) + bytes([number] * 20) + b"\x14\0\0\0" + name
        def section(path, number):
            body = entry(path, number)
            return struct.pack("<IHH", 0, 0x8002, 8 + len(body)) + body
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL)).started()
        head, capture.data = capture.data, b""
        attr = made.record(ATTR, 0, capture.events[0].attr() + struct.pack("<Q", 1))
        records = made.record(BUILD_ID, 0x8002, entry(b"/a", 1)) + made.record(BUILD_ID, 0x8002, entry(b"/b", 2))
        feature = made.record(FEATURE, 0, struct.pack("<Q", 2) + section(made.PROGRAM.encode(), 3))
        sample = capture.sample(0).data
        for parts in ((records, feature), (feature, records)):
            (self.folder / "piped").write_bytes(b"PERFILE2" + struct.pack("<Q", 16) + attr + b"".join(parts) + head + sample)
            self.tacho("convert", "-i", "piped", "-o", "whole.data")
            reported = self.tacho("dump", "-i", "whole.data").stdout.decode()
            for number in (1, 2, 3):
                self.assertIn(f"{number:02x}" * 20, reported)
            done = self.tacho("script", "--symfs", GOLDEN / "symfs", "-i", "piped")
            self.assertIn(b"has another build id", done.stderr)

    def test_losses_that_are_described_behind_their_records(self):
        capture = made.Capture(made.Event("cycles", made.HARDWARE, 0, made.USUAL)).started()
        capture.sample()
        capture.other(13, 0, struct.pack("<Q", 7))
        attr = made.record(ATTR, 0, capture.events[0].attr() + struct.pack("<Q", 1))
        losses = struct.pack("<IQQI", 1, 0, 1_500_000_000, 1) + made.header_string("cycles") + made.header_string("") + struct.pack("<IQ", 3, 7)
        kind = int.from_bytes(b"TACHOSEC", "little")
        piece = made.record(78, 0, struct.pack("<QQIIQQ", kind, 0, 230, 0, len(losses), 0) + losses + bytes(-len(losses) % 8))
        (self.folder / "piped").write_bytes(b"PERFILE2" + struct.pack("<Q", 16) + attr + capture.data + piece)
        done = self.tacho("script", "-i", "piped")
        self.assertRegex(done.stderr.decode(), r"events that are not in the capture: cycles 7.* \(7 times\)")

    def test_features_at_the_end_of_a_pipe_stay_when_stacks_are_unwound(self):
        self.tacho("convert", "--to", "pipe", "--plain", "-i", GOLDEN / "captures/unwound.data", "-o", "piped")
        pipe = (self.folder / "piped").read_bytes()
        facts = struct.pack("<QI", 229, 1) + made.header_string("every event") + made.header_string("in some way")
        (self.folder / "piped").write_bytes(pipe + made.record(FEATURE, 0, facts))
        unwind = ["--unwind", "--symfs", GOLDEN / "symfs"]
        for form, words in (("file", []), ("file", unwind), ("pipe", unwind)):
            self.tacho("convert", "--to", form, *words, "-i", "piped", "-o", "whole")
            reported = [line for line in self.tacho("dump", "-i", "whole").stdout.decode().splitlines() if '"in some way"' in line]
            self.assertEqual(len(reported), 1, (form, words))
            (self.folder / "whole").unlink()

    def unwound_pipe(self):
        """The records of a pipe with stack copies, and its program's build id, which they do not have."""
        self.tacho("convert", "--to", "pipe", "--plain", "-i", GOLDEN / "captures/unwound.data", "-o", "piped")
        pipe, at, records, build_id = (self.folder / "piped").read_bytes(), 16, [], b""
        while at < len(pipe):
            type_, _, size = struct.unpack_from("<IHH", pipe, at)
            if type_ == BUILD_ID and b"shapes" in pipe[at:at + size]:
                build_id = pipe[at:at + size]
            elif type_ != FINISHED_ROUND:
                records.append(pipe[at:at + size])
            at += size
        self.assertTrue(build_id)
        return pipe[:16], records, build_id

    def frames(self, pipe, status, said=b""):
        (self.folder / "piped").write_bytes(pipe)
        done = self.tacho("convert", "--unwind", "--symfs", GOLDEN / "symfs", "-i", "piped", "-o", "chains.data", status=status)
        self.assertIn(said, done.stderr)
        return self.tacho("script", "-F", "ip", "-i", "chains.data").stdout.count(b"\n")

    def test_a_build_id_behind_samples_ends_unwinding_by_another_file(self):
        start, records, right = self.unwound_pipe()
        other = right[:12] + bytes([7] * 20) + right[32:]
        first = next(at for at, record in enumerate(records) if record[0] == SAMPLE) + 1
        rounds = 2 * made.record(FINISHED_ROUND, 0, b"")
        def pipe(build_id):
            return start + b"".join(records[:first]) + rounds + build_id + b"".join(records[first:])
        whole = self.frames(pipe(b""), 0)
        self.assertEqual(self.frames(pipe(right), 0), whole)
        late = self.frames(pipe(other), 3, b"0707 was recorded, which is in the capture after samples that were already unwound")
        early = self.frames(start + other + b"".join(records), 0, b"has another build id")
        self.assertLess(early, late)
        self.assertLess(2 * late, whole)
        shown = self.tacho("script", "-F", "ip", "--symfs", GOLDEN / "symfs", "-i", "piped").stdout.count(b"\n")
        self.assertEqual(shown, early)

    def test_unwinding_leaves_out_events_that_are_described_late_and_says_so(self):
        start, records, _ = self.unwound_pipe()
        attr = next(record for record in records if record[0] == ATTR)
        last = made.record(ATTR, 0, attr[8:-16] + struct.pack("<QQ", 777777, 777778))
        self.frames(start + b"".join(records) + 2 * made.record(FINISHED_ROUND, 0, b"") + last, 3,
                    b"an event described after the first records is left out by --unwind")


if __name__ == "__main__":
    programs.main()
