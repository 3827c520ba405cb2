#!/usr/bin/env python3
"""Captures of many kinds, recorded now by perf: `script` and `folded` print what perf prints, byte for byte."""
import platform
import subprocess
import time
from pathlib import Path

import collapse
import programs
from fresh_captures import BUSY, CLOCK, FreshCapture, needs_compilers


@programs.needs_root
@programs.needs_perf
@needs_compilers
class FreshCaptures(FreshCapture):
    def compare(self, *views):
        """The usual text, that of each view (a list of options), and the folded stacks. perf's usual text."""
        symbols = ["--kallsyms", self.build / "kallsyms", "-i", self.capture]
        texts = []
        for view in [[], *views]:
            with self.subTest(view=view):
                theirs = self.perf("script", *symbols, *view).stdout
                self.assertNotEqual(theirs, b"")
                self.assert_same_text(self.tacho("script", "--as-perf", *symbols, *view).stdout, theirs)
                texts.append(theirs)
        folded = self.tacho("folded", "--as-perf", *symbols, status=None)
        if b"\n\t" in texts[0]:
            self.assertEqual(collapse.read_folded(folded.stdout), collapse.collapse(texts[0]))
        return texts[0]

    def test_stacks_of_a_program(self):
        self.record(*CLOCK, "-g", "--", *BUSY)
        self.compare(["-G", "-F", "+misc,+insnlen"], ["-F", "comm,pid,tid,ip,sym"], ["-F", "ip,dso"],
                     ["--reltime"], ["--deltatime", "-G"], ["--time", "10%-40%"], ["--max-stack", "2"],
                     ["--stop-bt", "main,ksys_read"], ["--dsos", "[kernel.kallsyms]", "-G"], ["--ns"])

    def test_unwound_stacks_of_templates(self):
        self.record("-e", "cpu-clock", "-F", "99", "--call-graph", "dwarf,8192", "--", self.build / "shapes", "0.3")
        text = self.compare(["--no-inline"], ["-F", "+uregs", "--no-inline"])
        self.assertIn(b"shapes::Ring<unsigned int, 64>::turn", text)

    def test_threads_with_odd_names_and_code_made_at_run_time(self):
        printed = self.record(*CLOCK, "-g", "-s", "--", self.build / "crew")
        self.forget_maps(printed)
        text = self.compare(["--show-task-events"], ["-F", "comm,tid,time", "--show-mmap-events"], ["-G", "--comms", "a/b:c"])
        self.assertIn(b"made::loop(int) [tier 2]", text)
        self.assertIn("фу ".encode(), text)

    def test_tracepoints_beside_other_events(self):
        self.record("-e", "sched:sched_switch,sched:sched_process_exec,syscalls:sys_enter_openat,cpu-clock", "-a", "--",
                    "sh", "-c", "ls / >/dev/null; sleep 0.1; cat /dev/null")
        self.compare(["-F", "trace:time,event,trace", "-F", "sw:comm,ip,sym"], ["-F", "-comm,+pid"],
                     ["--switch-on", "sched:sched_process_exec"])

    def test_tracepoints_with_stacks(self):
        self.record("-e", "sched:sched_wakeup,syscalls:sys_exit_read", "-g", "--", "sh", "-c", "ls / | sort >/dev/null")
        self.compare(["-F", "event,trace,ip,sym"])

    def test_compressed_groups(self):
        self.record("-z", "-e", "{cpu-clock,page-faults,context-switches}:S", "-F", "499", "-g", "--", *BUSY)
        self.compare(["-F", "event,period"])

    def test_page_faults_with_addresses(self):
        self.record("-e", "page-faults,minor-faults", "-c", "1", "-d", "-g", "--", "ls", "/")
        self.compare(["-F", "+addr"], ["-G", "-F", "+addr,-ip,-sym,-symoff,-dso"])

    def test_registers(self):
        if platform.machine() != "x86_64":
            self.skipTest("names registers of x86-64")
        self.record(*CLOCK, "--user-regs=ip,sp,ax,r15", "--intr-regs=ip,flags,bx", "--", self.build / "shapes", "0.2")
        self.compare(["-F", "+uregs,+iregs"], ["-F", "tid,uregs"], ["-F", "+insn,+insnlen", "--dsos", "shapes"])

    def test_context_switches_and_namespaces(self):
        self.record(*CLOCK, "--switch-events", "--namespaces", "-a", "--", "sh", "-c", "ls >/dev/null; sleep 0.1")
        self.compare(["--show-switch-events"], ["--show-namespace-events"],
                     ["--show-switch-events", "--show-task-events", "--show-mmap-events", "-C", "0"])

    def test_cgroups(self):
        done = self.perf("record", "-o", self.folder / "capture.data", *CLOCK, "--all-cgroups", "--", *BUSY, status=None)
        if done.returncode != 0:
            self.skipTest("this kernel tells perf no cgroups")
        self.capture = self.folder / "capture.data"
        self.compare(["--show-cgroup-events"])

    def test_a_process_that_runs_already(self):
        for option in ("-p", "-t"):
            with subprocess.Popen([self.build / "shapes", "2"]) as child:
                time.sleep(0.1)
                self.record(*CLOCK, "-g", option, str(child.pid), "--", "sleep", "0.3")
                child.kill()
            self.compare(["--tid", str(child.pid)])

    def test_a_pipe(self):
        capture = self.folder / "capture.data"
        with open(capture, "wb") as out:
            subprocess.run(["perf", "record", *CLOCK, "-g", "-o", "-", "--", *BUSY], stdout=out, stderr=subprocess.DEVNULL,
                           check=True)
        self.capture = capture
        self.compare(["-F", "comm,ip,sym"])

    def test_a_script_that_is_executed(self):
        script = self.folder / "a script.sh"
        script.write_text("#!/bin/sh\nfor i in 1 2 3; do (exec ls /usr/lib >/dev/null); done\n")
        script.chmod(0o755)
        self.record("-e", "cpu-clock", "-c", "100000", "-g", "--", script)
        self.compare(["--show-task-events", "-F", "comm,tid,time,event"], ["-G"])

    def test_the_time_of_day(self):
        self.record(*CLOCK, "-k", "CLOCK_MONOTONIC", "--", *BUSY)
        self.compare(["-F", "+tod"], ["-F", "tod,comm", "--ns"])

    def test_lines_of_source(self):
        self.record(*CLOCK, "--", self.build / "crew")
        for line in self.perf("script", "-i", self.capture, "-F", "pid", status=None).stdout.split():
            Path(f"/tmp/perf-{int(line)}.map").unlink(missing_ok=True)
        self.compare(["-F", "ip,sym,srccode", "--dsos", "crew"], ["-F", "ip,srcline", "--dsos", "crew", "--full-source-path"])


if __name__ == "__main__":
    programs.main()
