#!/usr/bin/env python3
"""Every option of `perf report -h` (6.1) and of `perf script -h`: tacho has it, or prints what to use instead. None is
unknown or taken for an abbreviation of another one."""
import os
import re
import resource
import shutil
import struct
import subprocess

import made_capture as made
import programs

CAPTURE = programs.ROOT / "tests" / "golden" / "captures" / "comm.data"

# The options as perf 6.1 lists them; True: a value follows.
OPTIONS = {
    "-b": False, "--branch-stack": False, "-c": True, "--comms": True, "-C": True, "--cpu": True, "-d": True,
    "--dsos": True, "-D": True, "--dump-raw-trace": True, "-F": True, "--fields": True, "-f": False, "--force": False,
    "-g": False, "--call-graph": False, "-G": False, "--inverted": False, "-i": True, "--input": True, "-I": False,
    "--show-info": False, "-k": True, "--vmlinux": True, "-M": True, "--disassembler-style": True, "-m": False,
    "--modules": False, "-n": False, "--show-nr-samples": False, "-p": True, "--parent": True, "-q": False,
    "--quiet": False, "-s": True, "--sort": True, "-S": True, "--symbols": True, "-t": True, "--field-separator": True,
    "-T": False, "--threads": False, "-U": False, "--hide-unresolved": False, "-v": False, "--verbose": False,
    "-w": True, "--column-widths": True, "-x": False, "--exclude-other": False, "--asm-raw": False,
    "--branch-history": False, "--children": False, "--demangle": False, "--demangle-kernel": False,
    "--disable-order": False, "--full-source-path": False, "--group": False, "--group-sort-idx": True,
    "--header": False, "--header-only": False, "--hierarchy": False, "--ignore-callees": True,
    "--ignore-vmlinux": False, "--inline": False, "--itrace": False, "--kallsyms": True, "--max-stack": True,
    "--mem-mode": False, "--mmaps": False, "--ns": False, "--objdump": True, "--percent-limit": True,
    "--percent-type": True, "--percentage": True, "--pid": True, "--prefix": True, "--prefix-strip": True,
    "--pretty": True, "--raw-trace": False, "--samples": True, "--show-cpu-utilization": False,
    "--show-on-off-events": False, "--show-ref-call-graph": False, "--show-total-period": False,
    "--skip-empty": False, "--socket-filter": True, "--source": False, "--stats": False, "--stdio": False,
    "--stdio-color": True, "--stitch-lbr": False, "--switch-off": True, "--switch-on": True, "--symbol-filter": True,
    "--symfs": True, "--tasks": False, "--tid": True, "--time": True, "--time-quantum": True, "--total-cycles": False,
    "--tui": False,
}


class ReportOptions(programs.Scratch):
    def test_every_option_of_perf_report_has_an_answer(self):
        for option, has_value in OPTIONS.items():
            with self.subTest(option=option):
                words = [option, "1"] if has_value else [option]
                said = self.tacho("report", "-i", CAPTURE, *words, status=None).stderr.decode()
                for wrong in ["unknown option", "did you mean", "needs a value", "unexpected word"]:
                    self.assertNotIn(wrong, said)

    @programs.needs_perf
    def test_the_list_above_is_perfs(self):
        version = subprocess.run(["perf", "--version"], capture_output=True, text=True, check=False).stdout
        if "6.1" not in version:
            self.skipTest("needs perf 6.1, this is " + version.strip())
        shown = subprocess.run([shutil.which("perf"), "report", "-h"], capture_output=True, text=True, check=False)
        listed = set()
        for line in (shown.stdout + shown.stderr).splitlines():
            if match := re.match(r"    (-\w), (--[\w-]+)|        (--[\w-]+)", line):
                listed.update(name for name in match.groups() if name)
        self.assertGreater(len(listed), 90)
        self.assertEqual(sorted(listed - OPTIONS.keys()), [])

    @programs.needs_perf
    def test_every_option_of_perf_script_has_an_answer(self):
        shown = subprocess.run([shutil.which("perf"), "script", "-h"], capture_output=True, text=True, check=False)
        listed = re.findall(r"^    (?:(-\w), |    )(--[A-Za-z-]+)", shown.stdout + shown.stderr, re.MULTILINE)
        self.assertGreater(len(listed), 60)
        for option in {name for names in listed for name in names if name}:
            with self.subTest(option=option):
                said = self.tacho("script", "-i", CAPTURE, option, "1", status=None).stderr.decode()
                self.assertNotIn("unknown option", said)
                self.assertNotIn("did you mean", said)

    def test_an_option_that_nobody_has_is_unknown(self):
        said = self.tacho("report", "-i", CAPTURE, "--nosuch", status=1).stderr
        self.assertEqual(said, b"tacho: unknown option '--nosuch'; see tacho report --help\n")


class HostileCaptures(programs.Scratch):
    """Small hostile captures that could need much time or memory: report takes seconds and little memory."""

    def report(self, capture, *words, **more):
        (self.folder / "perf.data").write_bytes(capture.file())
        begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = self.tacho("report", "--symfs", self.folder, *words, **more)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin, 20)
        return done

    def test_what_was_probably_meant(self):
        for words, said in ((["report", "--sort", "symm"], "there is no key 'symm'; did you mean 'sym'?"),
                            (["hist", "--csv"], "--csv: a histogram is JSON with --json; tacho table --csv gives counts")):
            self.assertIn(said, self.tacho(*words, "-i", CAPTURE, status=1).stderr.decode())

    def test_a_reader_of_help_that_has_seen_enough_is_no_error(self):
        for words in (["tacho-report", "script", "--help"], ["tacho-report", "--help"], ["tacho-record", "--help"]):
            there, here = os.pipe()
            os.close(there)
            with os.fdopen(here, "wb") as closed:
                done = subprocess.run([programs.BIN / words[0], *words[1:]], stdout=closed, stderr=subprocess.PIPE,
                                      restore_signals=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""), words)

    def test_names_of_60000_bytes_are_looked_for_patterns(self):
        event = made.Event("e", made.SOFTWARE, 0, made.USUAL | made.CALLCHAIN)
        capture, text = made.Capture(event).started(), 0xffffffffa0000000
        capture.other(17, 0, struct.pack("<QIHH", text, 0x1000, 1, 0) + b"head" + b"a" * 59995 + b"\0")
        for at in range(50):
            capture.sample(ip=text + at, misc=made.KERNEL, chain=[0xffffffffffffff80, text + at])
        for option in ("--parent", "--ignore-callees"):
            for pattern, is_found in (("^head(a|b)*", True), (".*x", False)):
                done = self.report(capture, option, pattern, "-g", "none", status=None)
                self.assertEqual(done.returncode in (0, 3), True, done.stderr[:500])
                if option == "--parent":
                    self.assertEqual(b"[other]" in done.stdout, not is_found)

    def test_a_pattern_that_is_none_is_refused(self):
        said = self.tacho("report", "-i", CAPTURE, "--parent", "a(", status=1).stderr
        self.assertIn(b"--parent: 'a(' is no regular expression", said)

    def test_events_of_a_large_group_are_shown_one_by_one(self):
        for members in (64, 1500):
            events = [made.Event(f"e{number}", made.SOFTWARE, 0, made.USUAL) for number in range(members)]
            group = struct.pack("<I", 1) + made.header_string("g") + struct.pack("<II", 0, members)
            capture = made.Capture(*events, features={17: group}).started()
            for at in range(members):
                capture.sample(event=at, ip=made.START + at)
            done = self.report(capture, "--percent-limit", "100", status=None)
            self.assertEqual(done.stdout.count(b"# Samples: "), 1 if members == 64 else members)
            self.assertEqual(b"a group of 1500 events is shown event by event" in done.stderr, members == 1500)

    def test_functions_of_many_events_cost_what_their_samples_cost(self):
        # Eight times as many events, each with its own function, must not take sixty-four times as long.
        def seconds(count):
            events = [made.Event(f"e{number}", made.SOFTWARE, 0, made.USUAL) for number in range(count)]
            capture = made.Capture(*events).started()
            for at in range(count):
                capture.sample(event=at, ip=0x10000000 + 16 * at)
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            done = self.report(capture, "--percent-limit", "101", status=None)
            self.assertEqual(done.stdout.count(b"# Samples: "), count)
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        # The first one takes 8 ms, and twice that on a busy machine.
        self.assertLess(seconds(10_000), 20 * seconds(1_250) + 0.3)

    def test_read_records_of_many_threads(self):
        capture = made.Capture(made.Event("e", made.SOFTWARE, 0, made.USUAL)).started().sample()
        trailer = capture.trailer()
        capture.data += b"".join(made.record(8, 0, struct.pack("<IIQ", thread, thread, 5) + trailer)
                                 for thread in range(200_000))
        self.assertIn(b" 199999  199999  5\n", self.report(capture, "-T", status=None).stdout)

    def test_threads_that_are_each_others_parents_are_listed(self):
        capture = made.Capture(made.Event("e", made.SOFTWARE, 0, made.USUAL)).started()
        for child, parent in ((200, 100), (100, 200)):
            capture.time += made.STEP
            capture.other(7, 0, struct.pack("<IIIIQ", child, parent, child, parent, capture.time))
        lines = self.report(capture.sample(), "--tasks", status=None).stdout.decode().splitlines()
        pids = [line.split()[0] for line in lines]
        self.assertEqual((pids.count("100"), pids.count("200")), (1, 1), lines)

    def test_only_rows_with_a_parent_need_parents(self):
        capture = made.Capture(made.Event("e", made.SOFTWARE, 0, made.USUAL)).started().sample()
        self.assertEqual(self.report(capture, "--sort", "comm", "-x", status=1).stderr,
                         b"tacho: -x: rows are of the functions of --parent; give --parent too\n")

    def test_the_lists_of_commands_need_room(self):
        for option in ("--list-commands", "--help"):
            with open("/dev/full", "w") as full:
                done = subprocess.run([programs.BIN / "tacho-report", option], stdout=full, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr),
                             (4, b"tacho: standard output cannot be written: No space left on device\n"))

    def test_long_paths_of_control_groups(self):
        capture = made.Capture(made.Event("e", made.SOFTWARE, 0, made.USUAL | 1 << 21)).started()
        capture.other(19, 0, struct.pack("<Q", 7) + b"/\x1b[31m" + b"x" * 59993 + bytes(1))
        body = struct.pack("<QQIIQIIQQ", 1, made.MAIN, made.PID, made.PID, capture.time, 0, 0, 1000, 7)
        capture.data += made.record(9, made.USER, body) * 100_000
        done = self.report(capture, "--sort", "cgroup", status=None)
        self.assertIn(b"100.00%  /\\x1b[31mxxx", done.stdout)

    def test_columns_have_a_largest_width(self):
        said = self.tacho("report", "-i", CAPTURE, "-w", "4294967295", status=1).stderr
        self.assertIn(b"--column-widths: 4294967295 is not between 0 and 65535", said)


if __name__ == "__main__":
    programs.main()
