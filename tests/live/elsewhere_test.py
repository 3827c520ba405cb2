#!/usr/bin/env python3
"""Captures that were packed on one machine and are read on another: in a root folder that has nothing but the program
and its libraries, by another user, without a network, /proc and /sys. What is printed there is what the host printed."""
import json
import os
import re
import shlex
import shutil
import unittest
from pathlib import Path

import programs
from other_machine import EVENT, NOBODY, Travels


@programs.needs_root
@unittest.skipUnless(shutil.which("c++") and shutil.which("unshare"), "needs a C++ compiler and unshare")
class Elsewhere(Travels):
    def setUp(self):
        super().setUp()
        source = Path(__file__).with_name("elsewhere.cc")
        self.run_program("c++", "-O2", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o", "traveller", source)
        shutil.copy(self.folder / "traveller", self.folder / "vanishing")
        self.load = ["sh", "-c", f"./traveller 20; {programs.BIN / 'getppid_load'} 20 3; ./vanishing 20 unlink; "
                     "python3 -c 'import os; [os.getppid() for i in range(20)]'"]

    def record_ours(self, name, *words):
        self.tacho("record", "--no-pack", "-o", name, "-e", EVENT, "-g", *words, "--", *self.load)
        return self.folder / name

    def test_our_capture(self):
        there = self.machine()
        original = self.record_ours("ours.data")
        packed = self.pack(original)
        self.compare(there, original, packed)
        text = self.run_program(*there.command("script", "-i", "/captures/ours.packed", "--inline=all"),
                                status=None).stdout.decode()
        for name in ["far_away::Traveller::go", "far_away::innermost<short>", "linkers_name", "call_at_depth", "main"]:
            self.assertTrue(name in text, f"{name} is in no stack")

    @programs.needs_perf
    def test_perfs_capture_and_perf_reads_both(self):
        there = self.machine()
        self.run_program("perf", "record", "-q", "-o", "perfs.data", "-e", EVENT, "-g", *self.load)
        original = self.folder / "perfs.data"
        packed = self.pack(original)
        self.compare(there, original, packed)
        ours = self.record_ours("ours.data")
        for before, after in [(original, packed), (ours, self.pack(ours))]:
            for words in [["script"], ["report", "--stdio"], ["evlist", "-v"]]:
                with self.subTest(capture=before.name, words=words):
                    # perf report ends with a random tip.
                    texts = [re.sub(rb"# \(Tip: .*", b"", self.perf(*words, "-i", path).stdout) for path in (after, before)]
                    self.assert_same_text(*texts)

    @programs.needs_perf
    @unittest.skipUnless(shutil.which("bzip2"), "needs bzip2, with which perf archive packs")
    def test_what_perf_archive_wrote_is_a_source(self):
        """The archive itself, and unpacked as perf says; without the program and perf's cache."""
        for way in ("--from", "--buildid-dir"):
            with self.subTest(way=way):
                shutil.copy(self.folder / "traveller", self.folder / "program")
                # perf archive has only the files of sampled addresses, not of callers.
                record = ["record", "-q", "-e", "cpu-clock:u", "-c", "100000", "-g", "-o", "perf.data", "--", "./program", "200000"]
                # perf 6.1 sometimes aborts by an assertion when it fills its cache.
                if self.perf(*record, status=None).returncode != 0:
                    self.perf(*record)
                whole = self.tacho("script", "-i", "perf.data", status=None).stdout
                self.assertIn(b" main+", whole)
                self.perf("archive", "perf.data")
                shutil.rmtree(self.folder / ".debug")
                (self.folder / "program").unlink()
                self.assertNotIn(b" main+", self.tacho("script", "-i", "perf.data", status=None).stdout)
                source = self.folder / "perf.data.tar.bz2"
                if way == "--buildid-dir":
                    source = self.folder / "cache"
                    source.mkdir()
                    self.run_program("tar", "xf", "perf.data.tar.bz2", "-C", "cache")
                self.tacho("pack", "perf.data", "-o", "packed.data", way, source, status=None)
                self.assert_same_text(self.tacho("script", "-i", "packed.data", status=None).stdout, whole)

    def test_doctor_counts_what_the_text_shows(self):
        there = self.machine()
        original = self.record_ours("ours.data")
        packed = self.pack(original)
        shares = []
        for capture, enough in [(original, False), (packed, True)]:
            place = there.bring(capture)
            lines = self.run_program(*there.command("script", "-i", place, "-F", "ip,sym"), status=None).stdout.splitlines()
            frames = [line for line in lines if line.strip()]
            # A function without a symbol is shown as its module and start.
            named = [line for line in frames if not re.search(rb"\[unknown\]|\S\+0x[0-9a-f]+$", line)]
            reported = self.tacho("doctor", capture, "--json", "--at-least", "30", status=0 if enough else 3)
            facts = json.loads(reported.stdout)
            self.assertEqual((facts["frames"], facts["named_frames"]), (len(frames), len(named)))
            self.assertEqual(sum(module["frames"] for module in facts["lacking"]), len(frames) - len(named))
            shares.append(facts["named_share"])
            dry = self.tacho("redact", "--dry-run", capture).stdout.decode()
            counts = re.findall(r"(?m)^  (\w+) +(\d+)(?: ([^:]+):|$)", dry)
            self.assertEqual([(one["class"], str(one["count"]), one["what"]) for one in facts["sensitive"]],
                             [count for count in counts if count[1] != "0"])
            self.assertIn("cmdline", [one["class"] for one in facts["sensitive"]])
        for view in [["header"], ["evlist", "-v"], ["dump"], ["table", "--by", "comm"], ["doctor"]]:
            words = [*view, packed] if view == ["doctor"] else [view[0], "-i", packed, *view[1:]]
            with self.subTest(view=view[0]):
                apart, here = (self.tacho(*words, *more, status=None) for more in [[], ["--no-worker"]])
                self.assertEqual((apart.stdout, apart.stderr, apart.returncode), (here.stdout, here.stderr, here.returncode))
                self.assertIn(here.returncode, (0, 3), here.stderr)
                self.assertTrue(here.stdout.strip())
        self.assertLess(shares[0], 0.3)
        self.assertGreater(shares[1], 0.3)
        text = self.tacho("doctor", original, status=3).stdout.decode()
        self.assertRegex(text, r"\d+ frames?, \d+ address(?:es)?: \S*/traveller \(build id [0-9a-f]+\): its names are not in the capture")

    def test_copied_stacks_are_unwound_by_copies_of_the_files(self):
        there = self.machine()
        self.tacho("record", "--no-pack", "-o", "stacks.data", "-e", EVENT, "--call-graph", "dwarf", "--", "./traveller", "20")
        original = self.folder / "stacks.data"
        packed = original.with_suffix(".packed")
        self.tacho("pack", original, "-o", packed, "--level", "elf", status=None)
        self.compare(there, original, packed, [["script"], ["folded"], ["report", "--stdio", "--no-children"]])
        # Without debugging information the file has a tenth of its size.
        (self.folder / "traveller").unlink()
        text = self.run_program(*there.command("script", "-i", "/captures/stacks.packed", "--no-inline"), status=None).stdout
        self.assertEqual(text.count(b" linkers_name+"), 60, text[:2000])
        self.assertEqual(text.count(b" main+"), 60)
        said = self.tacho("doctor", packed, status=None).stdout.decode()
        self.assertIn("they are unwound with the copies of files that the capture has\n", said)
        self.assertRegex(said, r"copies of files: [1-9]\d* programs and libraries are in the capture")
        self.assertNotIn("run tacho pack on the host", said)
        # With names only, stacks end at the library's function.
        self.tacho("pack", original, "-o", "names.packed", status=None)
        place = there.bring(self.folder / "names.packed")
        self.assertNotIn(b" main+", self.run_program(*there.command("script", "-i", place), status=None).stdout)
        # Packing again keeps the pack, and a lower level reports what it leaves out.
        self.tacho("pack", packed, status=None)
        self.assertIn(b"# attached : elf/", self.tacho("header", "-i", packed).stdout)
        said = self.tacho("pack", packed, "--level", "code", status=None).stderr
        self.assertIn(b"its copies of files (--level elf) are left out", said)
        self.assertNotIn(b"# attached : elf/", self.tacho("header", "-i", packed).stdout)

    def test_packed_again_it_keeps_the_level(self):
        original = self.record_ours("ours.data")
        there = self.machine()
        views = ["script", "-F", "+insn"]
        without = self.pack(original)
        far = self.run_program(*there.command(*views, "-i", there.bring(without)), status=None)
        self.assertNotIn(b" insn:", far.stdout)
        self.assertRegex(far.stderr.decode(), r"\S+: its instructions are neither in the capture nor here; on the recording host tacho "
                         "pack --level code puts them into it")
        packed = self.folder / "code.data"
        self.tacho("pack", original, "-o", packed, "--level", "code", status=None)
        self.tacho("pack", packed, status=None)
        self.assertRegex(self.tacho("header", "-i", packed).stdout.decode(), "# packed symbols : .*, code, ")
        there_again = self.run_program(*there.command(*views, "-i", there.bring(packed)), status=None)
        self.assertIn(b" insn:", there_again.stdout)
        said = self.tacho("pack", packed, "--level", "names", status=None).stderr
        self.assertIn(b"the capture had more: what --level code packed is left out", said)

    def test_packed_again_it_has_names_of_debug_symbols_that_came_later(self):
        for words in (["objcopy", "--only-keep-debug", "traveller", "traveller.debug"], ["strip", "traveller"],
                      ["objcopy", "--add-gnu-debuglink=traveller.debug", "traveller"]):
            self.run_program(*words)
        (self.folder / "traveller.debug").rename(self.folder / "later")
        self.run_program(programs.BIN / "tacho-record", "-q", "-o", "x.data", "-e", EVENT, "-g", "--", "./traveller", "20")
        name = b"far_away::Traveller::go"
        self.assertNotIn(name, self.tacho("script", "-i", "x.data", status=None).stdout)
        (self.folder / "later").rename(self.folder / "traveller.debug")
        self.tacho("pack", "x.data", status=None)
        whole = self.tacho("script", "-i", "x.data", status=None).stdout
        self.assertIn(name, whole)
        # What a pack has is kept where the file has less.
        (self.folder / "traveller.debug").unlink()
        self.tacho("pack", "x.data", status=None)
        self.assert_same_text(self.tacho("script", "-i", "x.data", status=None).stdout, whole)

    def test_in_place_it_keeps_owner_mode_and_samples(self):
        capture = self.record_ours("ours.data")
        os.chown(capture, NOBODY, NOBODY)
        capture.chmod(0o640)
        before = self.tacho("dump", "-i", capture).stdout
        self.tacho("pack", capture, status=None)
        status = capture.stat()
        self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o777), (NOBODY, NOBODY, 0o640))
        self.assertEqual([path.name for path in self.folder.iterdir() if "ours" in path.name], ["ours.data"])

        def samples(text):
            return [re.sub(rb"offset=\S+ ?", b"", line) for line in text.splitlines() if line.startswith(b"SAMPLE")]

        after = self.tacho("dump", "-i", capture).stdout
        self.assertEqual(samples(after), samples(before))
        self.assertGreater(len(samples(after)), 0)
        # Packed again, it says the same.
        again = self.folder / "again.data"
        self.tacho("pack", capture, "-o", again, status=None)
        self.assert_same_text(self.tacho("script", "-i", again, "--inline=all", status=None).stdout,
                              self.tacho("script", "-i", capture, "--inline=all", status=None).stdout)

    def test_a_small_capture_stays_small(self):
        self.tacho("record", "--no-pack", "-o", "small.data", "-e", EVENT, "-g", "--", programs.BIN / "getppid_load", "3")
        capture = self.folder / "small.data"
        whole = self.folder / "whole.data"
        self.tacho("pack", capture, "--kallsyms", "all", "-o", whole, status=None)
        self.assertIn(b"# attached : kallsyms", self.tacho("header", "-i", whole).stdout)
        before = self.tacho("script", "-i", capture).stdout
        self.tacho("pack", capture, status=None)
        # 70 KB of it are the unwinder's BPF and machine code.
        self.assertLess(capture.stat().st_size, 97 * 1000)
        self.assert_same_text(self.tacho("script", "-i", capture).stdout, before)

    def test_the_commands_of_the_documentation(self):
        """The first three commands of docs/elsewhere.md; the reader's run without files of the host and sources."""
        lines = [line.strip() for line in (programs.ROOT / "docs/elsewhere.md").read_text().splitlines() if line.startswith("    tacho ")]
        record, doctor, report = (shlex.split(re.split(r"\s{3,}", line)[0]) for line in lines[:3])
        self.assertEqual([words[1] for words in (record, doctor, report)], ["record", "doctor", "report"])
        there = self.machine()
        (there.root / "tmp").chmod(0o1777)
        self.tacho(*("1" if word == "30" else word for word in record[1:]))
        place = there.bring(self.folder / "perf.data")
        self.tacho(*doctor[1:], status=None)
        for words in (doctor, report):
            far = self.run_program(*there.command(*(place if word == "perf.data" else word for word in words[1:])), status=None)
            self.assertIn(far.returncode, (0, 3), far.stderr)
            if words == report:
                self.assert_same_text(far.stdout.replace(place.encode(), b"perf.data"), self.tacho(*words[1:], status=None).stdout)
            else:
                self.assertRegex(far.stdout.decode(), r"\d % of \d+ frames have a name from this file alone")

    def test_what_cannot_be_rewritten_stays_as_it_is(self):
        capture = self.record_ours("ours.data")
        self.tacho("convert", "-i", capture, "-o", "pipe.data", "--to", "pipe")
        running = bytearray(capture.read_bytes())
        at = running.rindex(b"TACHOHD1") - 12
        running[at:at + 4] = bytes(4)  # as a recorder leaves it that was killed
        (self.folder / "running.data").write_bytes(running)
        (self.folder / "short.data").write_bytes(capture.read_bytes()[:-3000])
        for name, reason in [("pipe.data", "form of a pipe"), ("running.data", "still runs or was killed"),
                             ("short.data", "damaged")]:
            with self.subTest(name=name):
                before = (self.folder / name).read_bytes()
                said = self.tacho("pack", name, status=2).stderr.decode()
                self.assertIn(reason, said)
                self.assertIn("tacho convert -i", said)
                self.assertEqual((self.folder / name).read_bytes(), before)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith(".")], [])


if __name__ == "__main__":
    programs.main()
