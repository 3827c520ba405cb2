#!/usr/bin/env python3
"""Damaged captures cannot crash any command: no signal, no sanitizer's report, no run above 5 s, bounded memory; and where a
length or a place is broken, it is said (exit status 2 or 3 and a line on stderr).

TACHO_MUTANTS: how many (default 400); TACHO_MUTANTS_SEED: which ones.
"""
import os
import re
import resource
import subprocess
import unittest

import mutator
import programs
from programs import ROOT

COUNT = int(os.environ.get("TACHO_MUTANTS", programs.scaled(400)))
SEED = int(os.environ.get("TACHO_MUTANTS_SEED", "20"))
COMMANDS = [
    ["dump"], ["dump", "--json"], ["header", "-I"], ["header", "--json"], ["evlist", "-v"], ["report", "--stats"], ["report", "-D"],
    ["report"], ["report", "--sort", "dso,sym,srcline"],
    ["script"], ["script", "--json"], ["script", "--importer"], ["folded"], ["folded", "--inline"], ["convert", "-o", "converted.data"],
    ["heatmap", "--offset", "--box", "..,.."], ["page"], ["page", "--redact"],
    ["export", "--to", "pprof"], ["export", "--to", "firefox", "--lines"], ["export", "--to", "perfetto"], ["export", "--to", "callgrind"],
    ["export", "--to", "chrome"], ["export", "--to", "autofdo"],
]
READ_EVERYTHING = ["dump", "report", "script"]  # commands that must report every broken length
REPORT = re.compile(rb"Sanitizer|runtime error: ")
WHOLE, UNREADABLE, INCOMPLETE = 0, 2, 3
KEPT = [ROOT / "tests/data/bigreads.data", *sorted((ROOT / "tests/golden/captures").glob("*.data"))]
# The shadow memory of sanitizers takes terabytes of addresses, so address space cannot be limited then.
LIMIT = 4 << 30  # bytes of addresses; threads' stacks are the most of it


def limit_memory():
    if not programs.is_sanitized():
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


class Mutants(programs.Scratch):
    def run_on(self, path, command):
        environment = dict(os.environ, HOME=str(self.folder), LC_ALL="C.UTF-8")
        return subprocess.run([programs.BIN / "tacho-report", command[0], "-i", path, *command[1:]], cwd=self.folder,
                              env=environment, capture_output=True, timeout=programs.PATIENCE, stdin=subprocess.DEVNULL,
                              preexec_fn=limit_memory, check=False)

    def check(self, label, is_told, done, command):
        self.assertIn(done.returncode, (WHOLE, UNREADABLE, INCOMPLETE), f"{label}: {command}\n{done.stderr!r}")
        self.assertIsNone(REPORT.search(done.stderr), f"{label}: {command}\n{done.stderr!r}")
        if done.returncode != WHOLE:
            self.assertIn(b"tacho", done.stderr, f"{label}: {command} says nothing")
        if is_told and command[0] in READ_EVERYTHING:
            self.assertNotEqual(done.returncode, WHOLE, f"{label}: {command} passes over it")

    def test_no_mutant_hurts_and_none_with_a_broken_length_is_passed_over(self):
        captures = {path.name: path.read_bytes() for path in KEPT}
        self.assertGreater(len(captures), 4)
        for number, (label, is_told, broken) in enumerate(mutator.mutants(captures, COUNT, SEED)):
            path = self.folder / "mutant.data"
            path.write_bytes(broken)
            # Each mutant is read by one of the commands that read everything, and by another one in turns.
            for command in (COMMANDS[number % 2], COMMANDS[2 + number % (len(COMMANDS) - 2)]):
                with self.subTest(label=label, command=" ".join(command)):
                    self.check(label, is_told, self.run_on(path, command), command)

    def test_the_same_seed_makes_the_same_mutants(self):
        captures = {KEPT[0].name: KEPT[0].read_bytes()}
        self.assertEqual(list(mutator.mutants(captures, 20, 5)), list(mutator.mutants(captures, 20, 5)))


if __name__ == "__main__":
    programs.main()
