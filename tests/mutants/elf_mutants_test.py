#!/usr/bin/env python3
"""A damaged ELF file costs only the symbols of its module and a message, never the report: no signal, no
sanitizer's report, no run above 5 s; every sample is still printed.

TACHO_ELF_MUTANTS: how many (default 300); TACHO_MUTANTS_SEED: which ones.
"""
import json
import os
import re
import shutil
import subprocess
import unittest

import elf_mutator
import programs
from programs import ROOT

COUNT = int(os.environ.get("TACHO_ELF_MUTANTS", programs.scaled(300)))
SEED = int(os.environ.get("TACHO_MUTANTS_SEED", "20"))
GOLDEN = ROOT / "tests/golden"
# Each program with a capture that needs its symbols; that of shapes also needs its CFI.
CAPTURES = {"shapes": "unwound.data", "order": "uprobe.data", "names": "comm.data"}
FORMS = [["script", "--inline=all", "-F", "ip,sym,symoff,dso,srcline"], ["folded", "--inline", "--context"], ["folded"]]
REPORT = re.compile(rb"Sanitizer|runtime error: ")
WHOLE, INCOMPLETE = 0, 3


class ElfMutants(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.symfs = self.folder / "symfs"
        shutil.copytree(GOLDEN / "symfs", self.symfs)
        self.cache = self.folder / "cache"

    def run_on(self, name, form):
        environment = dict(os.environ, HOME=str(self.folder), LC_ALL="C.UTF-8")
        return subprocess.run([programs.BIN / "tacho-report", form[0], "-i", GOLDEN / "captures" / CAPTURES[name], *form[1:],
                               "--symfs", self.symfs, "--kallsyms", GOLDEN / "captures/kallsyms", "--buildid-dir", self.cache],
                              cwd=self.folder, env=environment, capture_output=True, timeout=programs.PATIENCE, stdin=subprocess.DEVNULL, check=False)

    def samples(self, done):
        """The report without names: number of samples, or sum of weights."""
        lines = done.stdout.split(b"\n")
        is_folded = lines[0].rpartition(b" ")[2].isdigit()
        return sum(int(line.rpartition(b" ")[2]) for line in lines if line) if is_folded else lines.count(b"") - 1

    def check(self, name, form, whole):
        done = self.run_on(name, form)
        self.assertIn(done.returncode, (WHOLE, INCOMPLETE), done.stderr)
        self.assertIsNone(REPORT.search(done.stderr), done.stderr)
        self.assertEqual(self.samples(done), whole[name, form[0]], done.stderr)
        reported = [line for line in done.stderr.splitlines() if f"/tmp/c/{name}".encode() in line]
        self.assertLessEqual(len(reported), 1, done.stderr)

    def test_none_hurts_or_costs_a_sample(self):
        places = {name: self.symfs / "tmp/c" / name for name in CAPTURES}
        files = {name: place.read_bytes() for name, place in places.items()}
        whole = {(name, form[0]): self.samples(self.run_on(name, form)) for name in CAPTURES for form in FORMS}
        self.assertGreater(min(whole.values()), 20)
        for number, (name, label, broken) in enumerate(elf_mutator.mutants(files, COUNT, SEED)):
            places[name].write_bytes(broken)
            for form in (FORMS[0], FORMS[1 + number % 2]):
                with self.subTest(label=label, form=" ".join(form)):
                    self.check(name, form, whole)
            places[name].write_bytes(files[name])

    def test_annotated_code_of_damaged_files(self):
        """With damaged code, lines and symbols the output is valid JSON and counts no sample twice."""
        place = self.symfs / "tmp/c/shapes"
        good = place.read_bytes()
        form = ["annotate", "--json"]
        self.assertGreater(self.run_on("shapes", form).stdout.count(b"\n"), 0)
        for number, (_, label, broken) in enumerate(elf_mutator.mutants({"shapes": good}, max(10, COUNT // 3), SEED + 2)):
            place.write_bytes(broken)
            with self.subTest(label=label):
                done = self.run_on("shapes", form if number % 2 else ["annotate", "--stdio", "-l", "-M", "intel"])
                self.assertIn(done.returncode, (WHOLE, INCOMPLETE), done.stderr)
                self.assertIsNone(REPORT.search(done.stderr), done.stderr)
                for function in map(json.loads, done.stdout.splitlines() if number % 2 else []):
                    counted = sum(line["counts"][0]["samples"] for line in function["lines"] if "counts" in line)
                    self.assertLessEqual(counted, function["events"][0]["samples"])

    def test_a_damaged_file_in_the_build_id_cache_does_no_more_harm(self):
        place = self.symfs / "tmp/c/shapes"
        good = place.read_bytes()
        whole = {("shapes", FORMS[0][0]): self.samples(self.run_on("shapes", FORMS[0]))}
        at = good.index(b"GNU\0") + 4
        build_id = good[at:at + 20].hex()
        cached = self.cache / ".build-id" / build_id[:2] / build_id[2:] / "elf"
        cached.parent.mkdir(parents=True)
        place.unlink()
        for _, label, broken in elf_mutator.mutants({"shapes": good}, COUNT // 10, SEED + 1):
            cached.write_bytes(broken)
            with self.subTest(label=label):
                self.check("shapes", FORMS[0], whole)

    def test_the_same_seed_makes_the_same_mutants(self):
        files = {"shapes": (self.symfs / "tmp/c/shapes").read_bytes()}
        self.assertEqual(list(elf_mutator.mutants(files, 20, 5)), list(elf_mutator.mutants(files, 20, 5)))


if __name__ == "__main__":
    programs.main()
