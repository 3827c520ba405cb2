#!/usr/bin/env python3
"""Damaged profiles of other tools cannot hurt tacho import: it makes a capture that all commands read, or refuses the profile
with one line; no signal, no sanitizer's report, bounded memory and time.

TACHO_MUTANTS: how many of each format (default 200); TACHO_MUTANTS_SEED: which ones. TACHO_READS: of how many imported captures
one is read by the other commands (default 1).
"""
import gzip
import os
import re
import resource
import subprocess
import unittest

import profile_mutator
import programs

COUNT = int(os.environ.get("TACHO_MUTANTS", programs.scaled(200)))
SEED = int(os.environ.get("TACHO_MUTANTS_SEED", "20"))
READS = int(os.environ.get("TACHO_READS", "1"))
GOLDEN = programs.ROOT / "tests/golden"
SEEDS = programs.ROOT / "fuzz/seeds"
SYMBOLS = ["--symfs", GOLDEN / "symfs", "--kallsyms", GOLDEN / "captures/kallsyms"]
READERS = [["report"], ["folded", "--inline"], ["script"], ["dump"], ["export", "--to", "pprof", "--lines"], ["export", "--to", "speedscope"],
           ["flamegraph"], ["export", "--to", "firefox"]]
REPORT = re.compile(rb"Sanitizer|runtime error: ")
WHOLE, UNREADABLE, INCOMPLETE = 0, 2, 3
LIMIT = 6 << 30  # bytes of addresses; sanitizers need more


def limit_memory():
    if not programs.is_sanitized():
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


class ImportMutants(programs.Scratch):
    def profiles(self, format_):
        """{name: bytes}: the seeds of the fuzz target, and what tacho export makes of captures."""
        found = {path.name: path.read_bytes() for path in sorted((SEEDS / f"fuzz_import_{format_.replace('cpuprofile', 'cpu_profile')}").iterdir())}
        if format_ != "cpuprofile":
            for name in ("threads", "payload", "unwound"):
                made = self.tacho("export", "--to", format_, "-i", GOLDEN / f"captures/{name}.data", *SYMBOLS, status=None).stdout
                found[name] = gzip.decompress(made) if made[:2] == b"\x1f\x8b" else made
        return {name: gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data for name, data in found.items()}

    def run_limited(self, *words):
        return subprocess.run([programs.BIN / "tacho-report", *words], cwd=self.folder, env=dict(os.environ, HOME=str(self.folder), LC_ALL="C.UTF-8"),
                              capture_output=True, timeout=programs.PATIENCE, stdin=subprocess.DEVNULL, preexec_fn=limit_memory, check=False)

    def check(self, done):
        self.assertIn(done.returncode, (WHOLE, UNREADABLE, INCOMPLETE), done.stderr)
        self.assertIsNone(REPORT.search(done.stderr), done.stderr)
        if done.returncode != WHOLE:
            self.assertTrue(done.stderr.startswith(b"tacho"), done.stderr)

    def check_mutants(self, format_):
        imported = 0
        for label, broken in profile_mutator.mutants(self.profiles(format_), format_, COUNT, SEED):
            (self.folder / "mutant").write_bytes(broken)
            (self.folder / "made.data").unlink(missing_ok=True)
            with self.subTest(label):
                done = self.run_limited("import", "mutant", "--from", format_, "-o", "made.data")
                self.check(done)
                if done.returncode == UNREADABLE:
                    self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
                    self.assertFalse((self.folder / "made.data").exists())
                    continue
                imported += 1
                if imported % READS == 0:
                    command = READERS[imported // READS % len(READERS)]
                    read = self.run_limited(*command, "-i", "made.data")
                    self.check(read)
                    self.assertNotEqual(read.returncode, UNREADABLE, f"{command}: {read.stderr}")
        self.assertGreater(imported, COUNT / 50)

    def test_folded(self):
        self.check_mutants("folded")

    def test_pprof(self):
        self.check_mutants("pprof")

    def test_speedscope(self):
        self.check_mutants("speedscope")

    def test_cpuprofile(self):
        self.check_mutants("cpuprofile")

    def test_the_same_seed_makes_the_same_mutants(self):
        for format_ in ("folded", "pprof"):
            profiles = self.profiles(format_)
            self.assertEqual(list(profile_mutator.mutants(profiles, format_, 20, 5)), list(profile_mutator.mutants(profiles, format_, 20, 5)))


if __name__ == "__main__":
    programs.main()
