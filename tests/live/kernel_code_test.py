#!/usr/bin/env python3
"""The kernel's own memory, /proc/kcore, as the source of annotated code: functions of the kernel and of a module, beside
`perf annotate --stdio`, which reads it too. And the copy of it that `perf record --kcore` makes."""
import json
import os
import re
import subprocess
import sys
import unittest
from collections import Counter
from pathlib import Path

import programs

MODULES = ("algif_hash", "sha3_generic")
# Hashes in the module sha3_generic, through a socket, and calls of the kernel.
LOAD = """
import os, socket, time
with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET) as hashes:
    hashes.bind(("hash", "sha3-512-generic"))
    while True:
        with hashes.accept()[0] as one:
            one.sendall(bytes(4000))
            one.recv(64)
        for _ in range(100):
            os.stat("/proc/self/stat")
"""


def counts(text):
    """The rows of `annotate --stdio -n` by address. perf leaves out nops at the end of a function."""
    return {int(address, 16): count for count, address in re.findall(r"^ +([\d.]+) : +([0-9a-f]+):", text, re.M)}


@programs.needs_root
@programs.needs_perf
@unittest.skipUnless(Path("/proc/kcore").exists(), "needs /proc/kcore (CONFIG_PROC_KCORE)")
@unittest.skipUnless(os.environ.get("TACHO_MAY_CHANGE_MACHINE"), "loads modules: needs TACHO_MAY_CHANGE_MACHINE, as in tests/vm")
class KernelCode(programs.Scratch):
    def setUp(self):
        super().setUp()
        for module in MODULES:
            if self.run_program("modprobe", module, status=None).returncode != 0:
                self.skipTest(f"has no module {module}")
        load = subprocess.Popen([sys.executable, "-c", LOAD])
        self.addCleanup(lambda: (load.kill(), load.wait()))

    def hottest(self, capture, module, most):
        """Functions of the kernel or a module with most samples, by names that stand for one function alone."""
        alone = Counter(line.split()[2] for line in Path("/proc/kallsyms").read_text().splitlines())
        text = self.tacho("report", "-i", capture, "--stdio", "--no-children", "-g", "none", "--sort", "dso,sym").stdout.decode()
        names = re.findall(rf"^ +[\d.]+% +\S*{module}\S* +\[k\] (\w+) *$", text, re.M)
        return [name for name in names if alone[name] == 1][:most]

    def compare(self, capture, *source):
        """Functions of the kernel, and at last one of the module, that have the same counts and percentages at each address."""
        compared = []
        for function in [*self.hottest(capture, "kernel.kallsyms", 4), *self.hottest(capture, "sha3_generic", 1)]:
            for form in ("-n", "--stdio"):
                words = ["annotate", "-i", capture, "--stdio", form, "--stdio-color", "never"]
                there = self.perf(*words, "-s", function)
                expected = counts(there.stdout.decode())
                made = counts(self.tacho(*words, *source, function).stdout.decode())
                if not expected:
                    print("perf annotates nothing:", function, there.stderr.decode())
                    break
                self.assertEqual({address: made.get(address) for address in expected}, expected, (function, form))
                self.assertTrue(all(float(made[address]) == 0 for address in made.keys() - expected.keys()), function)
            else:
                compared.append(function)
        print("annotated as by perf:", ", ".join(compared))
        self.assertGreaterEqual(len(compared), 4)
        self.assertIn("sha3", compared[-1])
        return compared

    def test_it_is_the_code_of_functions(self):
        for recorder in (self.tacho, self.perf):
            with self.subTest(recorder=recorder.__name__):
                recorder("record", "-q", "-e", "cpu-clock", "-F", "499", "-a", "-g", "-o", "x.data", "--", "sleep", "6")
                self.compare("x.data", "--kcore", "/proc/kcore")
        # Elsewhere, from the capture alone; names of the kernel's variables are not packed.
        function = self.hottest("x.data", "kernel.kallsyms", 1)[0]
        lines = lambda *source: [(line["address"], line["bytes"], line.get("counts")) for line in json.loads(
            self.tacho("annotate", "-i", "x.data", "--json", *source, function).stdout)["lines"]]
        there = lines("--kcore", "/proc/kcore")
        self.tacho("pack", "x.data", "--level", "code", "--kcore", "/proc/kcore")
        self.assertEqual(lines(), there)

    def test_perfs_copy_of_it_is_found(self):
        self.perf("record", "-q", "-e", "cpu-clock", "-F", "499", "-a", "-g", "--kcore", "-o", "x.kcore", "--", "sleep", "6")
        functions = self.compare("x.kcore")
        # The copy is enough: the module's file is not read.
        (self.folder / "empty").mkdir()
        for function in (functions[0], functions[-1]):
            words = ["annotate", "-i", "x.kcore", "--stdio", function]
            here, there = self.tacho(*words), self.tacho(*words, "--symfs", self.folder / "empty")
            self.assertEqual(counts(there.stdout.decode()), counts(here.stdout.decode()))
            self.assertNotIn(b"--kcore", here.stderr + there.stderr)


if __name__ == "__main__":
    programs.main()
