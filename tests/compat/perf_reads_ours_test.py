#!/usr/bin/env python3
"""What tacho records, perf prints as tacho does: the same events, stacks, payloads and fields."""
import ctypes
import os
import platform
import re
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path

import programs
from programs import ROOT

DD = ["dd", "if=/dev/zero", "of=/dev/null", "bs=2M", "count=3"]
BUSY = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=30000"]


def load_bpf_program():
    """Loads a socket filter that returns 0, by bpf(BPF_PROG_LOAD), and closes it at once."""
    number = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = ctypes.create_string_buffer(struct.pack("<IIQQ", 1, 2, ctypes.addressof(code), ctypes.addressof(licence)), 120)
    program = ctypes.CDLL(None, use_errno=True).syscall(number, 5, attributes, len(attributes))
    if program < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    os.close(program)


@programs.needs_root
@programs.needs_perf
class PerfReadsOurs(programs.Scratch):
    def record_and_compare(self, *words):
        """Records with compression and without; returns perf's text of the last."""
        # A copy: beside the kernel's own list perf would find /proc/kcore, and take the kernel's extent from there.
        kallsyms = self.folder / "kallsyms"
        kallsyms.write_bytes(Path("/proc/kallsyms").read_bytes())
        for level in ["-z1", "-z0"]:
            with self.subTest(level=level):
                capture = self.folder / f"capture{level}.data"
                recorded = self.tacho("record", level, "-o", capture, *words)
                self.assertEqual(programs.lost_samples(recorded.stderr.decode()), 0, recorded.stderr)
                theirs = self.perf("script", "--kallsyms", kallsyms, "-i", capture)
                ours = self.tacho("script", "--as-perf", "-i", capture)
                self.assertNotEqual(theirs.stdout, b"")
                self.assert_same_recorded(ours.stdout, theirs.stdout)
                self.assertIn(b"# Samples:", self.perf("report", "--stdio", "-i", capture).stdout)
        return theirs.stdout

    @programs.needs_btf
    @programs.needs_clang
    def test_bpf_output_with_stacks(self):
        text = self.record_and_compare("-e", ROOT / "examples/bigreads.bpf.c", "-a", "-g", "--", *DD)
        self.assertEqual(text.count(b"0000: 00 00 20 00 00 00 00 00"), 3)

    def test_cpu_clock_of_a_command(self):
        text = self.record_and_compare("-e", "cpu-clock", "-F", "999", "-g", "--", *BUSY)
        self.assertIn(b"cpu-clock", text)

    def test_cpu_clock_of_all_cpus_without_stacks(self):
        self.record_and_compare("-e", "cpu-clock", "-F", "499", "-a", "--", *BUSY)

    def test_a_tracepoint_with_its_fields(self):
        text = self.record_and_compare("-e", "sched:sched_switch", "-a", "--", "sleep", "0.2")
        self.assertIn(b" ==> next_comm=", text)

    def test_a_tracepoint_with_stacks_and_a_string(self):
        text = self.record_and_compare("-e", "sched:sched_process_exec", "-a", "-g", "--", "sh", "-c", "ls; ls; true")
        self.assertIn(b"filename=", text)

    def test_several_events_in_one_capture(self):
        text = self.record_and_compare("-e", "syscalls:sys_enter_openat", "-e", "context-switches", "-c", "1", "-a", "-g", "--", "ls")
        self.assertIn(b"context-switches: ", text)
        self.assertIn(b"syscalls:sys_enter_openat: ", text)

    def start_recorder(self, capture):
        """In the background; with the function that waits until it has begun."""
        log = capture.with_suffix(".log")
        with open(log, "wb") as to:
            recorder = subprocess.Popen([str(programs.BIN / "tacho-record"), "-a", "-e", "dummy", "--no-pack", "-o", str(capture)],
                                        cwd=self.folder, stdin=subprocess.DEVNULL, stdout=to, stderr=to,
                                        env=dict(os.environ, HOME=str(self.folder)))
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)

        def wait_for_begin():
            end = time.monotonic() + programs.PATIENCE
            while b"has begun" not in log.read_bytes():
                self.assertIsNone(recorder.poll(), log.read_text())
                self.assertLess(time.monotonic(), end, "did not begin")
                time.sleep(0.02)

        return recorder, wait_for_begin

    def test_programs_that_are_loaded_while_several_record(self):
        """The kernel enlarges KSYMBOL and BPF_EVENT records for each recorder, and leaves old bytes at their end."""
        captures = [self.folder / f"beside{i}.data" for i in range(3)]
        have_begun = threading.Event()
        load_bpf_program()  # an error of the thread below would not fail the test
        # A recorder that describes many processes at its start reads its rings meanwhile.
        for _ in range(400):
            process = subprocess.Popen(["sleep", "60"])
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

        def load_programs():  # also while recorders start
            while not have_begun.wait(0.0003):
                load_bpf_program()

        loading = threading.Thread(target=load_programs)
        loading.start()
        try:
            started = [self.start_recorder(capture) for capture in captures]
            for _, wait_for_begin in started:
                wait_for_begin()
        finally:
            have_begun.set()
            loading.join()
        for recorder, _ in started:
            recorder.send_signal(signal.SIGINT)
            recorder.wait(programs.PATIENCE)
        for capture in captures:
            dump = self.perf("script", "-D", "-i", capture)
            self.assertNotRegex(dump.stderr.decode(), "failed to process|out of order")
            reported = re.findall(r"\[(0x[0-9a-f]+)\]: PERF_RECORD_BPF_EVENT", dump.stdout.decode(errors="replace"))
            self.assertGreater(len(reported), 3)
            self.assertEqual(len(set(reported)), 1, reported)


if __name__ == "__main__":
    programs.main()
