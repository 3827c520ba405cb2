#!/usr/bin/env python3
"""Tests of tests/live that need more of a kernel than many have: functions of the kernel as probes, trampolines, breakpoints.

TACHO_KERNEL_VM names a program, with options if it needs any, that runs a command as root under such a kernel:
$TACHO_KERNEL_VM -- COMMAND. What is on this machine's disks is the same inside. Several of them, separated by colons, are
several kernels.
"""
import os
import shlex
import subprocess
import sys
import unittest

import programs
from programs import BIN, ROOT

KERNEL_VMS = [name for name in os.environ.get("TACHO_KERNEL_VM", "").split(":") if name]
# Emulation is ten times slower than a machine, and slower still on a busy one.
PATIENCE = 1800


@unittest.skipUnless(KERNEL_VMS, "needs TACHO_KERNEL_VM, a program that runs a command in a kernel with kprobes")
class InAnotherKernel(unittest.TestCase):
    def run_inside(self, *tests):
        words = [f"TACHO_BIN={BIN}", f"PYTHONPATH={ROOT / 'tests/support'}", "PYTHONDONTWRITEBYTECODE=1", "TACHO_MAY_CHANGE_MACHINE=1", "TACHO_PATIENCE=600",
                 sys.executable, ROOT / "tests/vm/run_tests.py", *tests]
        for machine in KERNEL_VMS:
            with self.subTest(machine=machine):
                done = subprocess.run([*shlex.split(machine), "--", "env", *map(str, words)], cwd=ROOT, capture_output=True, text=True,
                                      timeout=PATIENCE)
                print(done.stdout[-6000:], done.stderr[-6000:], flush=True)
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stdout, r"(?m)^ran [1-9]\d* tests on Linux \d", "the guest ran them")

    def test_probes(self):
        self.run_inside("kernel_probes_test", "probes_test")

    def test_stacks_of_arguments(self):
        self.run_inside("argument_stacks_test")

    def test_stacks_past_probes_at_returns(self):
        tests = ("functions_with_probes_at_their_return_have_their_callers", "finished_stacks_pass_probes_at_returns")
        self.run_inside(*(f"unwinding_test.Unwinding.test_{name}" for name in tests))

    def test_events(self):
        self.run_inside("event_language_test", "hotplug_test")

    def test_followed_objects(self):
        self.run_inside("follow_test")

    def test_recorders_of_tracepoints(self):
        self.run_inside("recorders_test.Processes", "recorders_test.Questions", "recorders_test.Network", "recorders_test.Waits", "klock_test",
                        "wakers_test", "bpfstat_test")

    def test_functions_of_programs(self):
        self.run_inside("calls_test", "named_arguments_test", "trace_test")

    def test_a_capture_of_a_kernel_module_travels(self):
        self.run_inside("elsewhere_kinds_test.Kinds.test_a_kernel_module")

    def test_code_from_the_kernels_memory(self):
        self.run_inside("kernel_code_test")

    def test_recorders(self):
        self.run_inside("recorders_test.Functions", "beside_bpftrace_test.BesideBpftrace.test_functions_of_the_kernel",
                        "func_test.Func.test_functions_of_the_kernel",
                        "func_test.Func.test_every_call_is_counted", "alloc_test.Alloc.test_unfreed_memory_has_its_stack")


if __name__ == "__main__":
    programs.main()
