#!/usr/bin/env python3
"""Options of `tacho record` that perf record has too ask the kernel for the same: `perf evlist -v` shows the same bits of
the sampling event in both captures, and `perf script` and `tacho script` print the same for tacho's capture."""
import re
import time
import unittest

import programs

STACKS = [["-g"], ["-g", "--user-callchains"], ["-g", "--kernel-callchains"], ["--call-graph", "fp,5"],
          ["--call-graph", "dwarf"], ["--call-graph", "dwarf,1000"], ["--call-graph", "dwarf", "--user-regs=ip,sp"]]
FIELDS = [["-d"], ["--phys-data"], ["-W"], ["--data-page-size"], ["--code-page-size"], ["--transaction"], ["-R"],
          ["-T"], ["-P"], ["-I"], ["--intr-regs=ax,r15"], ["--user-regs=ip,sp"], ["--user-regs"]]
SIDES = [["--all-user"], ["--all-kernel"], ["-i"], ["-s"], ["--switch-events"], ["--namespaces"], ["--all-cgroups"],
         ["-B"], ["--buildid-all"], ["-N"]]
RATES = [[], ["-c", "100000"], ["-F", "max"], ["-F", "99", "--strict-freq"], ["-k", "monotonic"],
         ["-k", "CLOCK_MONOTONIC_RAW"], ["-k", "boot"]]
# tacho writes them with every event, so that id, time, CPU and period have the same offsets in all records.
OURS_TOO = {"IDENTIFIER", "CPU", "PERIOD", "CGROUP"}
# tacho records mappings and comms with a dummy event, as perf -a does.
SIDEBAND = {"mmap", "mmap2", "mmap_data", "comm", "comm_exec", "task", "ksymbol", "bpf_event", "build_id", "namespaces",
            "cgroup"}
# Wake-up of the reader.
WAKING = {"watermark", "wakeup_events", "wakeup_watermark"}


def settings(evlist):
    """The fields of the first event as `perf evlist -v` prints them."""
    line = evlist.splitlines()[0]
    rate = re.search(r"\{ sample_period, sample_freq \}: (\d+)", line).group(1)
    fields = dict(re.findall(r"(\w+): ([\w|]+)", line))
    bits = set(fields.pop("sample_type").split("|")) - OURS_TOO
    kept = {name: value for name, value in fields.items() if name not in SIDEBAND | WAKING}
    return kept, bits, rate


class Options(programs.Scratch):
    def capture(self, program, options, name, command=("dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=60")):
        self.run_program(*program, "-q", *options, "-e", "cpu-clock", "-o", self.folder / name, "--", *command)

    def text_of(self, *words):
        return self.perf(*words).stdout.decode(errors="replace")


@programs.needs_root
@programs.needs_perf
class OptionBits(Options):
    """Attribute bits, from recordings of a program that does nothing."""
    def test_bits(self):
        for options in STACKS + FIELDS + SIDES + RATES:
            with self.subTest(options=" ".join(options)):
                self.capture(["perf", "record"], options, "theirs.data", ["true"])
                self.capture([programs.BIN / "tacho-record"], options, "ours.data", ["true"])
                theirs = self.text_of("evlist", "-v", "-i", "theirs.data")
                ours = self.text_of("evlist", "-v", "-i", "ours.data")
                self.assertEqual(settings(theirs), settings(ours))
                self.assertEqual("mmap_data: 1" in theirs, "mmap_data: 1" in ours)
                for bit in ("namespaces: 1", "cgroup: 1"):
                    self.assertIn(bit, ours, "in every capture")

    def test_without_build_ids_there_are_none(self):
        """If another recorder runs, the kernel marks this one's mappings as if they had build ids."""
        self.capture([programs.BIN / "tacho-record"], ["-B"], "ours.data")
        self.assertNotRegex(self.text_of("buildid-list", "-i", "ours.data"), "[0-9a-f]{40}")
        self.assertNotIn("build_id: 1", self.text_of("evlist", "-v", "-i", "ours.data"))
        self.same_scripts("ours.data")


@programs.needs_root
@programs.needs_perf
class OptionTexts(Options):
    """Texts of perf script and tacho script."""
    def test_texts(self):
        for options in STACKS + FIELDS + [side for side in SIDES if side != ["-B"]] + RATES:
            with self.subTest(options=" ".join(options)):
                self.capture([programs.BIN / "tacho-record"], options, "ours.data")
                # perf takes very long to find inlined calls.
                self.same_scripts("ours.data", *(["--no-inline"] if "dwarf" in " ".join(options) else []))

    def test_stacks_of_the_loader_end_where_they_end_in_captures_of_perf(self):
        # It went wrong in every second capture, by where the kernel laid the loader.
        for _ in range(6):
            self.capture([programs.BIN / "tacho-record"], ["--call-graph", "dwarf", "-c", "50000"], "ours.data", ["ls", "/"])
            text = self.same_scripts("ours.data", "--no-inline")
            ends = [stack.strip().split("\n")[-1] for stack in text.split("\n\n") if " _dl_sysdep_start+" in stack]
            self.assertTrue(ends, "no sample of the loader")
            for end in ends:
                self.assertRegex(end, r" (_start|_dl_start_user)\+0x")

    def test_records_beside_samples_are_there_and_read_alike(self):
        for options, show in ((["--namespaces"], "--show-namespace-events"), (["--switch-events"], "--show-switch-events"),
                              (["--all-cgroups"], "--show-cgroup-events"), (["-d"], "--show-mmap-events")):
            with self.subTest(options=" ".join(options)):
                # A program that only counts may end without a switch.
                sleeper = ["sh", "-c", "sleep 0.01; dd if=/dev/zero of=/dev/null bs=1M count=60 2>/dev/null; sleep 0.01"]
                self.capture([programs.BIN / "tacho-record"], options, "ours.data", sleeper)
                self.same_scripts("ours.data", show)
                record = {"--namespaces": "PERF_RECORD_NAMESPACES", "--switch-events": "PERF_RECORD_SWITCH",
                          "--all-cgroups": "PERF_RECORD_CGROUP", "-d": " r--p "}[options[0]]
                self.assertIn(record, self.text_of("script", show, "-i", "ours.data"))

    def test_the_header_tells_the_clock(self):
        self.capture([programs.BIN / "tacho-record"], ["-k", "monotonic"], "ours.data")
        header = self.text_of("script", "--header-only", "-i", "ours.data")
        self.assertIn("clockid: monotonic (1)", header)
        self.assertIn("# reference time: ", header)

    def test_times_of_day_are_known_without_a_clock_option(self):
        """A program's own time is between its start and its end."""
        printed = self.run_program(programs.BIN / "tacho-record", "-q", "-o", "ours.data", "-e", "sched:sched_process_exec,sched:sched_process_exit",
                                   "--", "sh", "-c", "date +%s.%N; true").stdout
        times = []
        for line in self.text_of("script", "--comms", "date", "-F", "tod", "-i", "ours.data").splitlines():
            [day, clock] = line.strip(" :").split()
            times.append(time.mktime(time.strptime(f"{day} {clock[:8]}", "%Y-%m-%d %H:%M:%S")) + float(clock[8:]))
        self.assertEqual(len(times), 2, "its start and its end")
        self.assertTrue(times[0] - 5e-4 < float(printed) < times[1] + 5e-4, f"{times} {printed}")
        self.assertIn("# reference time: ", self.text_of("script", "--header-only", "-i", "ours.data"))

    def test_counts_of_threads_are_recorded(self):
        self.run_program(programs.BIN / "tacho-record", "-q", "-s", "-e", "cpu-clock", "-o", "ours.data", "--", "sh", "-c",
                         "dd if=/dev/zero of=/dev/null bs=1M count=100; true")
        self.assertTrue("PERF_RECORD_READ" in self.text_of("script", "-D", "-i", "ours.data"), "the shell's child ended")

    def test_branches_are_refused_in_words(self):
        done = self.run_program(programs.BIN / "tacho-record", "-b", "-e", "cpu-clock", "--", "true", status=None)
        self.assertNotEqual(done.returncode, 0, "no kernel keeps branches of a software event")
        self.assertIn(b"this processor records no branches", done.stderr)


@programs.needs_root
class Filters(programs.Scratch):
    def taken(self, *options):
        self.run_program(programs.BIN / "tacho-record", "-q", "-e", "sched:sched_process_exec", *options, "-o", "f.data", "--",
                         "sh", "-c", "/bin/true; /bin/echo; /bin/true")
        done = self.run_program(programs.BIN / "tacho-report", "script", "-i", "f.data")
        return done.stdout.decode().count("sched_process_exec:")

    def test_only_what_the_filter_lets_through_is_taken(self):
        self.assertEqual(self.taken(), 4, "the shell and three programs")
        self.assertEqual(self.taken("--filter", 'filename ~ "*/true"'), 2)
        self.assertEqual(self.taken("--filter", 'filename ~ "*/true"', "--filter", "pid < 0"), 0)
        self.assertEqual(self.taken("--exclude-perf"), 4)

    def test_every_hundredth_event_is_taken(self):
        self.run_program(programs.BIN / "tacho-record", "-q", "-c", "100", "-e", "syscalls:sys_enter_getppid", "-o", "f.data", "--",
                         "taskset", "-c", "0", programs.BIN / "getppid_load", "1000")
        rows = self.tacho("report", "-i", "f.data", "--stdio", "--sort", "comm", "-F", "sample,period,comm").stdout.decode()
        self.assertRegex(rows, r"(?m)^ +10 +1000 +getppid_load *$")

    def test_a_filter_that_makes_no_sense_is_refused_in_words(self):
        done = self.run_program(programs.BIN / "tacho-record", "-e", "sched:sched_switch", "--filter", "nosuch > 1", "--",
                                "true", status=1)
        self.assertIn(b"the kernel does not understand the filter 'nosuch > 1'; it has prev_comm, prev_pid, prev_prio, prev_state, "
                      b"next_comm, next_pid, next_prio; tacho list -v sched:sched_switch has their types", done.stderr)


if __name__ == "__main__":
    programs.main()
