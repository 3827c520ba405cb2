#!/usr/bin/env python3
"""The recorder's rights: only the needed ones while recording, and no root if capabilities or own processes are enough."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import programs

NOBODY = 65534
KILL, DAC_READ_SEARCH, SYS_PTRACE, SYS_ADMIN, SYSLOG, PERFMON, BPF, CHECKPOINT_RESTORE = 5, 2, 19, 21, 34, 38, 39, 40
HOLDS_FILES = {DAC_READ_SEARCH, SYS_PTRACE, CHECKPOINT_RESTORE}
BUILDS_TABLES = {DAC_READ_SEARCH, SYS_PTRACE, BPF, CHECKPOINT_RESTORE}
TELLS_AGAIN = {DAC_READ_SEARCH, SYS_PTRACE, SYS_ADMIN, SYSLOG, PERFMON, BPF}
LEAST = "perfmon,bpf,syslog,sys_ptrace,dac_read_search"
BEGUN = b"Recording"


def rights(status):
    """Capability sets and no_new_privs of /proc/PID/status."""
    found = {}
    for name, value in re.findall(r"^(Cap\w+|NoNewPrivs):\s+(\w+)$", status, re.M):
        bits = int(value, 16)
        found[name] = bits if name == "NoNewPrivs" else {bit for bit in range(64) if bits >> bit & 1}
    return found


@programs.needs_root
class Rights(programs.Scratch):
    def start(self, *words):
        """Starts a recorder in the background, and waits until it records."""
        log = self.folder / "log"
        with open(log, "wb") as to:
            process = subprocess.Popen([str(programs.BIN / "tacho-record"), *map(str, words)], cwd=self.folder, stderr=to,
                                       stdout=to, stdin=subprocess.DEVNULL, env=dict(os.environ, HOME=str(self.folder)))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while b"has begun" not in log.read_bytes():
            self.assertIsNone(process.poll(), log.read_text())
            self.assertLess(time.monotonic(), end, "did not begin")
            time.sleep(0.02)
        return process

    def each_thread(self, process):
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            yield rights((task / "status").read_text())

    def check(self, process, expected, pins=False):
        threads = [held for held in self.each_thread(process) if not (pins and held["CapPrm"] == HOLDS_FILES)]
        self.assertGreaterEqual(len(threads), 2, "the thread that drains and the one that writes")
        for held in threads:
            for name in ("CapEff", "CapPrm", "CapBnd"):
                self.assertEqual(held[name], expected, name)
            self.assertEqual((held["CapInh"], held["NoNewPrivs"]), (set(), 1))

    def end(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 0, (self.folder / "log").read_text())

    def test_while_it_records_root_holds_what_a_cpu_that_comes_needs(self):
        process = self.start("-a", "--call-graph", "fp", "-F", "99", "--no-pack", "-o", "a.data")
        self.check(process, {PERFMON})
        self.run_program("dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=2000")
        self.end(process)
        text = self.run_program(programs.BIN / "tacho-report", "script", "-i", "a.data").stdout
        self.assertIn(b"dd ", text)

    def test_with_g_threads_that_read_binaries_alone_hold_rights(self):
        process = self.start("-v", "-a", "-g", "-F", "99", "--no-pack", "-o", "g.data")
        if "unwound in the kernel" not in (self.folder / "log").read_text():
            self.skipTest("-g goes by frame pointers here")
        if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 1):
            self.skipTest("on this kernel the recorder sends mappings, which takes CAP_BPF")
        threads = list(self.each_thread(process))
        holders = [held for held in threads if held["CapPrm"] - {PERFMON}]
        # One thread builds unwind tables, one unwinds stack copies; each may have a thread for opening files, which may hang.
        self.assertIn(len(holders), (2, 3, 4), threads)
        self.assertGreaterEqual(len(threads), 4, "those that drain, that write, that build tables and that finish stacks")
        for held in threads:
            expected = held["CapPrm"] if held["CapPrm"] in (BUILDS_TABLES, HOLDS_FILES) else {PERFMON}
            for name in ("CapEff", "CapPrm"):
                self.assertEqual(held[name], expected, name)
            # A thread that opens files cannot reduce its bounding set, which has no effect with no_new_privs.
            self.assertIn(held["CapBnd"], (expected, BUILDS_TABLES))
            self.assertEqual((held["CapInh"], held["NoNewPrivs"]), (set(), 1))
        self.assertEqual(rights(Path(f"/proc/{process.pid}/status").read_text())["CapPrm"], {PERFMON}, "the main thread")
        self.run_program("dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=2000")
        self.end(process)
        self.assertIn(b"dd ", self.run_program(programs.BIN / "tacho-report", "script", "-i", "g.data").stdout)

    def test_who_packs_at_the_end_may_read_files_of_others(self):
        process = self.start("-a", "--call-graph", "fp", "-F", "99", "-o", "p.data")
        # One thread pins files; it may have another one to test whether files answer.
        threads = list(self.each_thread(process))
        self.assertGreaterEqual(len(threads), 3, "those that drain, that write, and that hold files")
        self.assertIn(sum(held["CapPrm"] == HOLDS_FILES for held in threads), (1, 2), threads)
        for held in threads:
            expected = HOLDS_FILES if held["CapPrm"] == HOLDS_FILES else {DAC_READ_SEARCH, PERFMON}
            for name in ("CapEff", "CapPrm", "CapBnd"):
                self.assertEqual(held[name], expected, name)
            self.assertEqual((held["CapInh"], held["NoNewPrivs"]), (set(), 1))
        self.end(process)
        self.assertIn("packed symbols", self.run_program(programs.BIN / "tacho-report", "header", "-i", "p.data").stdout.decode().lower())

    def test_other_files_keep_what_describing_them_needs(self):
        process = self.start("-a", "-F", "99", "--switch-output", "-o", "s.data")
        self.check(process, TELLS_AGAIN, pins=True)  # one thread pins files for packing
        process.send_signal(signal.SIGUSR2)
        end = time.monotonic() + 60
        while b"Finished" not in (self.folder / "log").read_bytes():
            self.assertLess(time.monotonic(), end, "no other file")
            time.sleep(0.05)
        self.end(process)
        for capture in self.folder.glob("s.data*"):
            header = self.run_program(programs.BIN / "tacho-report", "dump", "-i", capture).stdout
            self.assertIn(b"kallsyms", header)
            self.assertIn(b"[kernel.kallsyms]", header)

    def test_the_command_has_the_rights_of_the_caller(self):
        self.run_program(programs.BIN / "tacho-record", "-q", "-o", "c.data", "--", "sh", "-c",
                         "cat /proc/self/status > command; cat /proc/$PPID/status > recorder")
        command = rights((self.folder / "command").read_text())
        self.assertEqual(command, rights(Path("/proc/self/status").read_text()))
        self.assertEqual(rights((self.folder / "recorder").read_text())["CapEff"], {KILL, DAC_READ_SEARCH})

    def test_a_signal_reaches_a_command_of_another_user(self):
        process = self.start("-o", "k.data", "--", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                             "sleep", "60")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 128 + signal.SIGTERM)


@programs.needs_root
@unittest.skipUnless(shutil.which("setpriv"), "needs setpriv (util-linux)")
class WithoutRoot(programs.Scratch):
    def setUp(self):
        super().setUp()
        # Other users may have no access to the build directory.
        for name in ("tacho-record", "getppid_load"):
            shutil.copy(programs.BIN / name, self.folder / name)
        os.chown(self.folder, NOBODY, NOBODY)
        self.folder.chmod(0o755)

    def as_user(self, *words, capabilities="", status=0):
        kept = "".join(f",+{name}" for name in capabilities.split(",") if name)
        return self.run_program("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                                f"--inh-caps=-all{kept}", f"--ambient-caps=-all{kept}", *words, status=status)

    def script(self, capture, *words):
        return self.run_program(programs.BIN / "tacho-report", "script", *words, "-i", capture).stdout.decode()

    def test_own_processes_outside_of_the_kernel(self):
        self.as_user("./tacho-record", "-e", "cpu-clock:u", "-g", "-o", "own.data", "--", "./getppid_load", "200000")
        text = self.script("own.data")
        self.assertIn("getppid_load", text)
        self.assertEqual(os.stat(self.folder / "own.data").st_mode & 0o777, 0o600)

    def test_why_without_bpf_says_what_is_not_seen(self):
        shutil.copy(programs.BIN / "tacho-report", self.folder)
        shutil.copy(programs.BIN / "planted", self.folder)
        done = self.as_user("./tacho-record", "--why", "--json", "--", "./planted", "hot", "1", "truth.json")
        text = done.stdout.decode()
        answer = json.loads(text[text.index('{"tacho_why"'):])
        self.assertIn("that needs BPF", " ".join(answer["missing"]))
        # On a busy machine it also waits for a CPU, and its start may be a finding.
        functions = [one["function"] for one in answer["findings"] if one["cause"] == "cpu"]
        self.assertEqual(functions[:1], [json.loads((self.folder / "truth.json").read_text())["function"]])

    def test_without_a_word_about_sides_the_kernel_is_left_out(self):
        if Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip() != "2":
            self.skipTest("needs kernel.perf_event_paranoid = 2")
        for options, names in (((), {"cpu-clock:u"}), (("-g", "-e", "cpu-clock,page-faults"), {"cpu-clock:u", "page-faults:u"}),
                               (("-e", "{cpu-clock:p,page-faults:u}"), {"cpu-clock:pu", "page-faults:u"})):
            done = self.as_user("./tacho-record", *options, "-o", "own.data", "--", "./getppid_load", "200000")
            self.assertIn(b"perf_event_paranoid is 2: only user code is recorded (:u)", done.stderr, options)
            self.assertNotIn(b"hidden", done.stderr, options)
            reported = {line.split()[-1] for line in self.script("own.data", "-F", "event").splitlines() if line}
            self.assertTrue(reported, options)
            self.assertEqual({name.rstrip(":") for name in reported} - names, set(), options)
            self.assertNotIn("[kernel", self.script("own.data"), options)
        # An event with the modifier k is refused with the reason, not replaced by user samples.
        for options in (("-e", "cpu-clock:k"), ("--all-kernel",)):
            done = self.as_user("./tacho-record", *options, "-o", "no.data", "--", "true", status=2)
            self.assertIn(b"--all-kernel and :k)", done.stderr, options)
        done = self.as_user("./tacho-record", "--all-user", "-o", "own.data", "--", "./getppid_load", "200000")
        self.assertNotIn(b"perf_event_paranoid", done.stderr)

    def test_the_whole_system_is_refused_with_the_remedy(self):
        if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 1:
            self.skipTest("this host lets everybody record everything")
        done = self.as_user("./tacho-record", "-a", "-o", "all.data", "--", "true", status=2)
        self.assertIn(b"CAP_PERFMON", done.stderr)
        self.assertFalse((self.folder / "all.data").exists())

    def test_with_capabilities_the_whole_system(self):
        for bit in (PERFMON, BPF, SYSLOG, SYS_PTRACE, DAC_READ_SEARCH):
            if bit not in rights(Path("/proc/self/status").read_text())["CapBnd"]:
                self.skipTest(f"capability {bit} is not to be had here")
        self.as_user("./tacho-record", "-a", "-g", "-e", "cpu-clock,sched:sched_process_exec", "-o", "all.data", "--",
                     "sh", "-c", "grep Cap /proc/self/status > command; ./getppid_load 200000", capabilities=LEAST)
        text = self.script("all.data")
        self.assertIn("sched:sched_process_exec:", text)
        kernel = [line for line in text.splitlines() if "[kernel.kallsyms]" in line]
        named = [line for line in kernel if "[unknown]" not in line]
        self.assertTrue(named, "the kernel's functions have names")
        # This process belongs to another user: reading its mappings needs CAP_SYS_PTRACE.
        mappings = self.script("all.data", "--show-mmap-events")
        self.assertTrue(f"PERF_RECORD_MMAP2 {os.getpid()}/{os.getpid()}: " in mappings, "mappings of other users")

    @programs.needs_btf
    @programs.needs_clang
    def test_with_capabilities_a_bpf_program(self):
        if BPF not in rights(Path("/proc/self/status").read_text())["CapBnd"]:
            self.skipTest("CAP_BPF is not to be had here")
        shutil.copy(programs.ROOT / "tests" / "live" / "two_ticks.bpf.c", self.folder / "two_ticks.bpf.c")
        os.chown(self.folder / "two_ticks.bpf.c", NOBODY, NOBODY)
        self.as_user("./tacho-record", "-a", "-e", "./two_ticks.bpf.c", "-o", "bpf.data", "--", "./getppid_load", "200000",
                     capabilities=LEAST)
        self.assertTrue(self.script("bpf.data"))


if __name__ == "__main__":
    programs.main()
