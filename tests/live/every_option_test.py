#!/usr/bin/env python3
"""Every event, target and option of perf record, one by one: each makes a capture that can be read, or is
refused in one line that says what is missing and what to do. `-v` prints the outcome of each."""
import os
import re
import subprocess
import sys
from pathlib import Path

import programs

NO_COUNTERS = r"no counters|no PMU|not counted here|no such counter|this machine"
NO_BRANCHES = r"records no branches"
NO_KPROBES = r"kprobe|without CONFIG_KPROBES|the kernel"
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"

# Arguments of -e; second item: text of a refusal that is allowed on this machine.
EVENTS = [
    ("cycles", NO_COUNTERS), ("cycles:u", NO_COUNTERS), ("instructions,branches", NO_COUNTERS), ("L1-dcache-load-misses", NO_COUNTERS),
    ("LLC-loads", NO_COUNTERS), ("r1a8", NO_COUNTERS), ("r1a8:u", NO_COUNTERS), ("cpu/event=0x3c,umask=1/", NO_COUNTERS),
    ("cpu/cpu-cycles/", NO_COUNTERS), ("cycles:ppp", NO_COUNTERS), ("cycles:P", NO_COUNTERS),
    "cpu-clock", "task-clock", "faults", "page-faults", "minor-faults", "major-faults", "cs", "context-switches", "migrations",
    "cpu-migrations", "alignment-faults", "emulation-faults", "dummy", "bpf-output", "cgroup-switches",
    "cpu-clock:u", "cpu-clock:k", "cpu-clock:h", "cpu-clock:uk", "cpu-clock:G", "cpu-clock:H", "cpu-clock:I", "cpu-clock:p",
    "cpu-clock:D", "cpu-clock/period=100000/", "cpu-clock/freq=99/", "cpu-clock/name=mine/", "cpu-clock/call-graph=fp/",
    "cpu-clock/call-graph=dwarf,stack-size=4096/", "cpu-clock/call-graph=no/", "cpu-clock/max-stack=5,call-graph=fp/",
    "cpu-clock/no-inherit/", "cpu-clock/inherit/", ("cpu-clock/overwrite/", "--overwrite is for all events"), ("cpu-clock/branch_type=any/", NO_BRANCHES),
    ("msr/tsc/", "msr"), ("cpu-clock/time=0/", "sorted by time"), "software/config=1/", "sched:sched_process_exec", "sched:sched_process_*",
    "sched:sched_process_exec,cpu-clock", "{cpu-clock,faults}", "{cpu-clock,faults}:S", "name{cpu-clock,cs}:S",
    "{cpu-clock/period=1000000/,cs}:S", "mem:0x404060:rw", "mem:0x404060/8:w", "mem:0x404060:x",
    ("kprobe:vfs_read", NO_KPROBES), ("kretprobe:vfs_read", NO_KPROBES), ("kprobe:vfs_read(file, count)", NO_KPROBES),
    f"uprobe:{LIBC}:malloc", f"uretprobe:{LIBC}:malloc", f"uprobe:{LIBC}:malloc(size=arg1)", f"uprobe:{LIBC}:getenv(name=arg1:string)",
    f"uprobe:{LIBC}:malloc+4", (f"usdt:{LIBC}:libc:setjmp", "has no marker"), f"uprobe:{LIBC}:malloc,sched:sched_process_exec,cpu-clock",
]

TARGETS = [
    ["-a"], ["-a", "-C", "0"], ["-C", "0"], ["-p", "PID"], ["-t", "PID"], ["-u", "USER"], ["--pid=PID"], ["--tid=PID"],
    ["--uid=USER"], ["--cpu=0"], ["--all-cpus"], ["-i"], ["--no-inherit"], ["--per-thread"], ["--per-thread", "-p", "PID"],
    ["-G", "CGROUP"], ["--cgroup=CGROUP"], ["--for-each-cgroup", "CGROUP"], (["--container", "abc123nothing"], "no container"),
    (["--pod", "abc123nothing"], "no pod"), ["-D", "10"], ["-D", "0-20,40-60"], ["--delay=5"], (["-D", "-1"], "--control"),
    ["-D", "-1", "--control", "fifo:CTL,ACK"], ["-a", "--duration", "0.2"], ["-a", "--duration=200ms"],
]

TAKEN = [
    ["-F", "max"], ["-F", "99"], ["--freq=50"], ["-c", "1000000"], ["--count=500000"], ["--strict-freq", "-F", "99"], ["-g"],
    ["--call-graph", "fp"], ["--call-graph=dwarf"], ["--call-graph", "dwarf,4096"], ["--call-graph", "eh"], (["--call-graph", "lbr"], NO_BRANCHES),
    ["-g", "--user-callchains"], ["-g", "--kernel-callchains"], ["--max-stack", "5", "-g"], ["--all-user"], ["--all-kernel"],
    ["-d"], ["--data"], ["--phys-data"], ["--data-page-size"], ["--code-page-size"], ["-W"], ["--weight"], (["-b"], NO_BRANCHES),
    (["--branch-any"], NO_BRANCHES), (["-j", "any,u"], NO_BRANCHES), (["--branch-filter=any_call"], NO_BRANCHES), ["--transaction"], ["-I"],
    ["--intr-regs=ax,ip"], ["--user-regs=ip,sp"], ["-I?"], ["-T"], ["--timestamp"], ["-P"], ["--period"], ["-s"], ["--stat"], ["-R"],
    ["--raw-samples"], ["-N"], ["--no-buildid-cache"], ["-B"], ["--no-buildid"], ["--switch-events"], ["--namespaces"], ["--all-cgroups"],
    ["-k", "monotonic"], ["-k", "CLOCK_BOOTTIME"], ["--clockid", "raw"], ["--buildid-all"], ["--buildid-mmap"], ["--timestamp-boundary"],
    ["--sample-cpu"], ["--sample-identifier"], ["--off-cpu"], ["-e", "sched:sched_process_exec", "--filter", "pid > 0"],
    ["-e", "faults", "--filter", 'comm == "sh" && uid == 0'], ["-e", "cpu-clock", "--filter", "cpu == 0"],
    ["-e", "sched:sched_process_exec", "--exclude-perf"], ["-e", "open", "--sample-rate", "1/2"], ["-e", "open", "--max-rate", "100"],
    (["-e", "open", "--filter", "pid > 0"], "use its options"), (["-n"], "tacho stat"), (["--group"], "braces"), (["--snapshot"], "AUX"),
    (["--aux-sample"], "AUX"), (["-r", "5"], "chrt"), (["--kcore"], "kernel's code"), (["--vmlinux=x"], "-k FILE"),
    (["--debuginfod"], "tacho script and tacho report"), (["--dry-run"], "true"), (["--clang-path=/x"], "TACHO_CLANG"),
    (["--clang-opt=-O1"], "TACHO_CLANG"), (["--no-bpf-event"], "always recorded"), (["--synth=no"], "always recorded"),
    (["--running-time"], "-s"), ["--pfm-events", "perf::PERF_COUNT_SW_CPU_CLOCK"],
]

FILES = [
    ["--switch-output"], ["--switch-output=signal"], ["--switch-output=2M"], ["--switch-output=1s"], ["--switch-output=1m"],
    ["--switch-output=1M", "--switch-max-files", "2"], ["--timestamp-filename"],
    ["--overwrite"], ["--overwrite", "--switch-output-event", "sched:sched_process_exit"],
    ["--switch-output-event", "sched:sched_process_exec"], ["--max-size", "20M"], ["--max-size=20971520B"],
    ["--min-free", "1M"], ["--pin", "0"], ["--threads"], ["--threads=core"], ["--threads=0-1/0-1"], ["--aio"], ["--aio=2"], ["--affinity=cpu"],
    ["--mmap-flush=64K"], ["--no-buffering"], ["--num-thread-synthesize=2"], ["--proc-map-timeout=500"], ["--tail-synthesize"],
    ["-m", "auto"], ["-m", "auto,8M"], ["-m", "16"], ["-m", "512K"], ["--mmap-pages=1M"], ["-z"], ["-z0"], ["-z9"],
    ["--compression-level=3"], ["--no-pack"], ["--max-pack-time", "5"], ["-q"], ["-v"], ["--redact"],
]


def rows(table):
    """(words, allowed text of a refusal or None) of each."""
    for row in table:
        words, may_say = row if isinstance(row, tuple) else (row, None)
        yield ([words] if isinstance(words, str) else words), may_say


@programs.needs_root
class EveryOption(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.reported = []

    def tearDown(self):
        if "-v" in sys.argv:
            print("", *self.reported, sep="\n")

    def words_for(self, words):
        """Replaces names by an existing process, cgroup and pipes."""
        if any("PID" in word or word == "USER" or "=USER" in word for word in words):
            self.sleeper = subprocess.Popen(["sh", "-c", "while sleep 0.02; do :; done"])
            self.addCleanup(self.sleeper.wait)
            self.addCleanup(self.sleeper.kill)
        if any("CTL" in word for word in words):
            for name in ("ctl", "ack"):
                if not (self.folder / name).exists():
                    os.mkfifo(self.folder / name, 0o600)
        own_cgroup = Path("/proc/self/cgroup").read_text().splitlines()[-1].split(":", 2)[2].strip("/") or "/"
        values = {"PID": str(getattr(self, "sleeper", self).pid) if hasattr(self, "sleeper") else "", "USER": "0",
                  "CGROUP": own_cgroup, "CTL": f"{self.folder}/ctl", "ACK": f"{self.folder}/ack"}
        return [re.sub("PID|USER|CGROUP|CTL|ACK", lambda found: values[found[0]], word) for word in words]

    def record(self, words, output="one.data"):
        command = [] if any(word.startswith("--duration") for word in words) else ["--", "sh", "-c", "sleep 0.1; /bin/true"]
        # Packing takes longer than the recording.
        plain = [] if {"--no-pack", "--redact", "-v"} & set(words) else ["--no-pack"]
        return self.run_program(programs.BIN / "tacho-record", *plain, *words, "-o", output, *command, status=None)

    def try_row(self, option, words, may_say):
        for old in self.folder.glob("one.data*"):
            old.unlink()
        wanted = self.words_for([*([option] if option else []), *words])
        done = self.record(wanted)
        said = done.stderr.decode(errors="replace")
        name = " ".join([*([option] if option else []), *words])
        if done.returncode != 0:
            self.assertIsNotNone(may_say, f"{name}: refused: {said}")
            self.assertRegex(said, may_say, name)
            self.assertRegex(said, r"\A[^\n]+\n(    [^\n]*\n *\^\n)?\Z", "one line, or with a caret below the spec")
            self.assertEqual(list(self.folder.glob("one.data*")), [], name)
            self.reported.append(f"{name}: refused: {said.strip()}")
            return
        captures = sorted(self.folder.glob("one.data*"))
        if "I?" not in name:
            self.assertTrue(captures, f"{name}: no capture: {said}")
        for capture in captures:
            read = self.run_program(programs.BIN / "tacho-report", "script", "-i", capture)
            self.assertNotIn(b"damage", read.stderr, name)
        samples = re.findall(r"\((\d+) samples, (\d+) lost\)", said)
        note = next((line for line in said.splitlines() if "no effect" in line), "")
        self.reported.append(f"{name}: taken, {len(captures)} files{', ' + samples[-1][0] + ' samples' if samples else ''}"
                         f"{'; ' + note if note else ''}")

    def try_all(self, table, option=None):
        for words, may_say in rows(table):
            with self.subTest(words=" ".join(words)):
                self.try_row(option, words, may_say)

    def test_events(self):
        self.try_all(EVENTS, "-e")

    def test_targets_and_times(self):
        self.try_all(TARGETS)

    def test_accepted_options(self):
        self.try_all(TAKEN)

    def test_files(self):
        self.try_all(FILES)

    def test_options_about_perfs_threads_are_ignored_with_a_line(self):
        said = self.record(["--threads", "--aio=1", "-e", "cpu-clock"]).stderr.decode()
        self.assertRegex(said, "--threads: no effect: one thread reads all rings")
        self.assertRegex(said, "--aio: no effect")
        self.assertEqual(self.record(["-q", "--threads", "-e", "cpu-clock"]).stderr, b"")

    def test_list_patterns(self):
        for words in (["sched:*"], ["-v", "sched:sched_switch"], ["bpf"], ["recorders"], ["cpu-*"], [f"uprobe:{LIBC}:malloc*"]):
            with self.subTest(words=" ".join(words)):
                done = self.tacho("list", *words)
                self.assertTrue(done.stdout.strip(), words)


if __name__ == "__main__":
    programs.main()
