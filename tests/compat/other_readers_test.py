#!/usr/bin/env python3
"""Other programs read what tacho writes, and tacho reads what a newer perf writes: as files and as pipes.

TACHO_NEWER_PERF names a perf newer than the installed one, TACHO_HOTSPOT_PARSER hotspot's parser (Debian: hotspot, in
libexec), TACHO_LINUX_PERF_DATA the program of tests/compat/linux_perf_data; what is not there is skipped.
"""
import json
import os
import re
import shutil
import subprocess
import unittest
from collections import defaultdict
from pathlib import Path

import programs
from programs import BIN, ROOT

NEWER_PERF = os.environ.get("TACHO_NEWER_PERF")
HOTSPOT_PARSER = os.environ.get("TACHO_HOTSPOT_PARSER") or shutil.which(
    "hotspot-perfparser", path="/usr/libexec:/usr/lib/x86_64-linux-gnu/libexec:" + os.environ.get("PATH", ""))
FIELDS = ["-F", "comm,tid,time,event,ip"]
BUSY = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=20000"]
OURS = ROOT / "tests/data/bigreads.data"
# perf's own captures of every kind: events of several sorts, groups, stacks, a pipe.
CAPTURES = [OURS, *(ROOT / "tests/golden/captures" / f"{name}.data" for name in ["uprobe", "group", "threads", "pipe"])]
# Of every kind: a clock, BPF events with payloads, waits, stack copies with inlined calls, branch stacks, groups, tracepoints.
KINDS = [ROOT / "tests/golden/captures" / f"{name}.data"
         for name in ["threads", "payload", "latency", "unwound", "branches", "group", "bpf", "uprobe", "comm", "memory"]]
LINUX_PERF_DATA = os.environ.get("TACHO_LINUX_PERF_DATA")
WAYS = [["--plain"], ["-z"], ["--to", "pipe"], ["--to", "pipe", "-z3"]]


def places(text):
    """perf's text without names and widths: which names it finds depends on the form of the capture."""
    lines = text.split(b"\n")
    return b"\n".join(b" ".join(line.split()[:1] if line.startswith(b"\t") else line.split()) for line in lines)


def samples_in(text):
    """The same without call chains: perf 7 shows nameless frames otherwise than perf 6.1, whose text ours is."""
    return b"\n".join(line for line in places(text).split(b"\n") if b" " in line)


@unittest.skipUnless(NEWER_PERF, "needs TACHO_NEWER_PERF, a perf of 6.12 or later")
class NewerPerf(programs.Scratch):
    def newer(self, *words, **more):
        return self.run_program(NEWER_PERF, *words, **more)

    def test_it_reads_what_we_write(self):
        for capture in CAPTURES:
            theirs = self.newer("script", "-f", *FIELDS, "-i", capture).stdout
            self.assertNotEqual(theirs, b"")
            for way in WAYS:
                with self.subTest(capture=capture.name, way=way):
                    self.tacho("convert", "-f", "-i", capture, "-o", "other", *way)
                    done = self.newer("script", "-f", *FIELDS, "-i", "other")
                    self.assert_same_text(places(done.stdout), places(theirs))
                    self.newer("report", "-f", "--stdio", "-i", "other")

    def test_it_reads_our_pipe(self):
        convert = subprocess.Popen([BIN / "tacho", "convert", "-i", OURS, "-o", "-"], stdout=subprocess.PIPE)
        self.addCleanup(convert.stdout.close)
        done = subprocess.run([NEWER_PERF, "report", "--stdio", "-i", "-"], stdin=convert.stdout, capture_output=True,
                              env=dict(os.environ, HOME=str(self.folder)), timeout=120)
        self.assertEqual(convert.wait(60), 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"# Samples:", done.stdout)

    def check_ours(self, capture):
        """tacho reports no damage in the capture, and finds the same samples as the perf that recorded it."""
        dump = self.tacho("dump", "-i", capture)
        self.assertEqual(dump.stderr, b"")
        self.assertIn(b'feature_name="CPU_TOPOLOGY"', dump.stdout)
        ours = self.tacho("script", "--as-perf", *FIELDS, "-i", capture)
        theirs = self.newer("script", *FIELDS, "-i", capture)
        self.assertNotEqual(theirs.stdout, b"")
        self.assert_same_text(samples_in(ours.stdout), samples_in(theirs.stdout))

    @programs.needs_root
    def test_we_read_its_files(self):
        for more in [[], ["-z"], ["-g"]]:
            with self.subTest(more=more):
                self.newer("record", "-o", "theirs", "-e", "cpu-clock", *more, "--", *BUSY)
                self.check_ours("theirs")

    @programs.needs_root
    def test_we_read_its_pipes(self):
        pipe = self.newer("record", "-o", "-", "-e", "cpu-clock", "-g", "--", *BUSY).stdout
        (self.folder / "pipe").write_bytes(pipe)
        self.check_ours("pipe")

    @programs.needs_root
    def test_packed_captures_are_the_same_to_it(self):
        """What tacho pack adds to a capture, and takes out of it, changes nothing that this perf prints."""
        self.tacho("record", "--no-pack", "-o", "ours.data", "-e", "cpu-clock", "-g", "--", *BUSY)
        self.newer("record", "-o", "theirs.data", "-e", "cpu-clock", "-g", "--", *BUSY)
        captures = [self.folder / "ours.data", self.folder / "theirs.data", OURS]
        for capture in captures:
            self.tacho("pack", "-f", capture, "-o", "packed", "--level", "elf", status=None)
            self.assertIn(b"# packed symbols : ", self.tacho("header", "-i", "packed").stdout)
            for words in [["script"], ["script", *FIELDS], ["report", "--stdio"], ["report", "--stdio", "--no-children", "-g", "caller"],
                          ["evlist", "-v"]]:
                with self.subTest(capture=capture.name, words=words):
                    # perf report ends with a random tip.
                    texts = [re.sub(rb"# \(Tip: .*", b"", self.newer(*words, "-f", "-i", path).stdout) for path in ("packed", capture)]
                    self.assertNotEqual(texts[1].strip(), b"")
                    self.assert_same_text(*texts)


@unittest.skipUnless(HOTSPOT_PARSER, "needs TACHO_HOTSPOT_PARSER (Debian: hotspot)")
class Hotspot(programs.Scratch):
    def samples(self, capture):
        done = self.run_program(HOTSPOT_PARSER, "--input", capture, "--print-stats", status=None)
        said = (done.stdout + done.stderr).decode(errors="replace")
        count = re.search(r"samples: (\d+)", said)
        self.assertIsNotNone(count, f"{capture}: no count of samples\n{said[-2000:]}")
        return int(count.group(1))

    def test_it_reads_what_we_write(self):
        for capture in dict.fromkeys(CAPTURES + KINDS):
            with self.subTest(capture=capture.name):
                self.tacho("convert", "-f", "-i", capture, "-o", "plain", "--plain")
                wanted = len(self.tacho("dump", "-i", capture).stdout.split(b"\nSAMPLE ")) - 1
                self.assertEqual(self.samples("plain"), wanted)


@unittest.skipUnless(LINUX_PERF_DATA, "needs TACHO_LINUX_PERF_DATA, which script/clients builds (Debian: librust-linux-perf-data-dev, cargo)")
class LinuxPerfData(programs.Scratch):
    """The crate that samply reads captures with. Of counters it does not know PERF_FORMAT_LOST, which perf's own group.data has."""

    def sums(self, capture):
        """{event: [samples, periods, words of call chains]}, as tacho dump prints them."""
        found = defaultdict(lambda: [0, 0, 0])
        for line in self.tacho("dump", "--json", "-i", capture).stdout.splitlines():
            record = json.loads(line)
            if record["record"] == "SAMPLE":
                for at, amount in enumerate((1, record.get("period", 0), len(record.get("callchain", [])))):
                    found[record["event"]][at] += amount
        return dict(found)

    def test_it_reads_what_we_write(self):
        for capture in KINDS:
            if capture.stem == "group":
                continue
            with self.subTest(capture=capture.name):
                self.tacho("convert", "-f", "-i", capture, "-o", "plain", "--plain")
                lines = self.run_program(LINUX_PERF_DATA, "plain").stdout.decode().splitlines()
                theirs = {name: [int(number) for number in numbers] for name, *numbers in (line.split("\t") for line in lines)}
                self.assertEqual(theirs, self.sums(capture))


@programs.needs_perf
class Inject(programs.Scratch):
    def test_perf_inject_takes_a_capture_with_our_sections(self):
        for way in [["--plain"], ["-z"]]:
            with self.subTest(way=way):
                self.tacho("convert", "-i", OURS, "-o", "ours", *way)
                self.perf("inject", "-i", "ours", "-o", "injected")
                theirs = self.perf("script", "-f", *FIELDS, "-i", "ours").stdout
                self.assertNotEqual(theirs, b"")
                injected = self.perf("script", "-f", *FIELDS, "-i", "injected").stdout
                self.assert_same_text(places(injected), places(theirs))
                self.tacho("script", "-i", "injected")


if __name__ == "__main__":
    programs.main()
