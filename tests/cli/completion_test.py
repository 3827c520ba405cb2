#!/usr/bin/env python3
"""Completion: what `tacho complete` prints, and what bash, zsh and fish make of it, in a terminal."""
import os
import re
import shutil
import unittest
from pathlib import Path

import programs
import screen

SHELLS = programs.ROOT / "cli" / "shells"
CAPTURE = programs.ROOT / "tests" / "data" / "bigreads.data"  # its events have the field bytes
NAMED = programs.ROOT / "tests" / "data" / "stable-0.1.data"


def has_tracepoints():
    return any(Path(folder, "events/sched").is_dir() for folder in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"))


needs_tracepoints = unittest.skipUnless(has_tracepoints(), "needs tracefs, which root mounts")
needs_recorders = unittest.skipUnless(programs.has_clang, "needs recorders: a build with clang")


class Candidates(programs.Scratch):
    """`tacho complete WORDS...`"""

    def words(self, *words):
        lines = self.run_program(programs.BIN / "tacho", "complete", *words).stdout.decode().splitlines()
        return [line.split("\t")[0] for line in lines]

    def test_commands_and_their_options(self):
        self.assertEqual(self.words("flam"), ["flamegraph"])
        self.assertIn("help", self.words(""))
        self.assertEqual(self.words("help", "annot"), ["annotate"])
        for command, option in [("record", "--call-graph"), ("report", "--children"), ("live", "--view"), ("top", "--window"),
                                ("stat", "--repeat"), ("list", "--cost"), ("why", "--page"), ("stacks", "--pid"),
                                ("bpf", "--interval"), ("doctor", "--json"), ("diff", "--compute")]:
            self.assertIn(option, self.words(command, option[:4]), command)

    def test_each_command_completes_its_options(self):
        """Each of `tacho --help`, by the option that all have."""
        text = self.run_program(programs.BIN / "tacho", "--help").stdout.decode()
        for command in re.findall(r"^  ([a-z]+)  ", text, re.MULTILINE):
            if command in ("fleet", "export"):  # options follow a word
                continue
            self.assertIn("--help", self.words(command, "--he"), command)
        self.assertIn("--release", self.words("fleet", "load", "--re"))
        self.assertEqual(self.words("fleet", "seri"), ["series"])
        self.assertEqual(self.words("export", "--to", "call"), ["callgrind"])
        self.assertEqual(self.words("export", "--to=call"), ["--to=callgrind"])
        self.assertIn("--no-inline", self.words("export", "--to", "pprof", "--no-i"))

    def test_values_that_are_words(self):
        self.assertEqual(self.words("record", "--call-graph", "eh"), ["ehframe"])
        self.assertEqual(self.words("report", "--percentage", "rel"), ["relative"])
        self.assertEqual(self.words("redact", "--drop", "host,cm"), ["host,cmdline"])

    def test_events_of_a_recording(self):
        self.assertEqual(self.words("record", "-e", "page-f"), ["page-faults"])
        self.assertEqual(self.words("record", "-e", "cpu-clock,context-s"), ["cpu-clock,context-switches"])
        self.assertIn("offcpu", self.words("live", "offc"))
        self.assertIn("--call-graph", self.words("live", "open", "--call"))
        self.assertIn("profile/hz=", self.words("record", "-e", "profile/h"))
        self.assertIn("{faults,trace/probe=", self.words("record", "-e", "{faults,trace/pro"))

    def test_functions_and_markers_for_probes(self):
        program = programs.BIN / "tacho-record"
        self.assertEqual(self.words("record", "-e", f"uprobe:{program}"[:-2]), [f"uprobe:{program}"])
        self.assertIn(f"uprobe:{program}:main", self.words("record", "-e", f"uprobe:{program}:mai"))

    @needs_recorders
    def test_options_of_recorders(self):
        self.assertIn("open/failed=", self.words("record", "-e", "open/fai"))
        self.assertEqual(self.words("record", "-e", "cpu-clock,open/min_us=3,failed=t"),
                         ["cpu-clock,open/min_us=3,failed=true"])

    @needs_tracepoints
    def test_tracepoints(self):
        self.assertIn("sched:", self.words("record", "-e", "sche"))
        self.assertEqual(self.words("stat", "-e", "sched:sched_swit"), ["sched:sched_switch"])
        self.assertEqual(self.words("record", "-e", "sched:sched_switch", "--filter", "prev_pi"), ["prev_pid"])

    def test_names_of_the_capture(self):
        self.assertEqual(self.words("table", "-i", CAPTURE, "--where", "pid > 3 && byt"), ["pid > 3 && bytes"])
        self.assertEqual(self.words("table", CAPTURE, "--by", "comm,byt"), ["comm,bytes"])
        self.assertIn("--sort=sym,bytes", self.words("report", "-i", CAPTURE, "--sort=sym,by"))
        self.assertIn("local_weight", self.words("report", "-i", CAPTURE, "-s", "local_w"))

    def test_names_of_samples(self):
        self.assertEqual(self.words("report", "-i", CAPTURE, "--comms", "no,d"), ["no,dd"])
        self.assertIn("[kernel.kallsyms]", self.words("folded", "-i", CAPTURE, "--dsos", ""))
        self.assertEqual(len(self.words("script", CAPTURE, "--pid", "")), 1)
        self.assertEqual(self.words("report", "-i", NAMED, "-S", "(anon"), ["(anonymous namespace)::churn"])
        self.assertEqual(self.words("report", "-i", NAMED, "--dso=sha"), ["--dso=shapes"])

    def test_users(self):
        user = self.run_program("id", "-un").stdout.decode().strip()
        self.assertIn(user, self.words("record", "-u", user[:-1]))
        self.assertIn(f"--uid={user}", self.words("record", f"--uid={user[:-1]}"))

    @programs.needs_root
    def test_cgroups(self):
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        mount = next((where for _, where, kind, *_ in mounts if kind == "cgroup2"), None)
        if mount is None:
            self.skipTest("needs cgroups of version 2")
        name = f"tacho-completion-{os.getpid()}"
        group = Path(mount, name)
        group.mkdir()
        self.addCleanup(group.rmdir)
        self.assertEqual(self.words("record", "-G", name[:-1]), [name])
        self.assertEqual(self.words("record", "--for-each-cgroup", f"/{name[:-1]}"), [f"/{name}"])
        self.assertEqual(self.words("stat", "-G", f"{group},{str(group)[:-1]}"), [f"{group},{group}"])

    def test_files_and_folders(self):
        (self.folder / "one.data").touch()
        (self.folder / "only").mkdir()
        (self.folder / ".hidden").touch()
        self.assertEqual(self.words("report", "-i", "on"), ["one.data", "only/"])
        self.assertEqual(self.words("report", "--symfs", "on"), ["only/"])
        self.assertEqual(self.words("report", "."), [".hidden"])
        self.assertEqual(self.words("report", "~/one"), ["~/one.data"])

    def test_a_capture_that_cannot_be_read_offers_what_every_capture_has(self):
        (self.folder / "torn.data").write_bytes(b"PERFILE2" + bytes(100))
        self.assertEqual(self.words("table", "-i", "torn.data", "--by", "com"), ["comm"])


class Shell(programs.Scratch):
    """Keys in a terminal, and what then stands on the line."""

    def start(self, shell, *lines):
        if not shutil.which("tmux"):
            self.skipTest("needs tmux")
        if not shutil.which(shell):
            self.skipTest(f"needs {shell}")
        shutil.copy(CAPTURE, self.folder / "reads.data")
        self.screen = screen.Screen(self.folder, width=120, PATH=f"{programs.BIN}:{os.environ['PATH']}")
        self.addCleanup(self.screen.close)
        for line in lines:
            self.screen.type(line)
        self.screen.type("clear; echo ready")
        self.screen.wait_for("^ready")

    def completes(self, typed, line):
        self.screen.tmux("send-keys", "-l", typed)
        self.screen.keys("Tab")
        self.screen.wait_for(re.escape(line))
        self.screen.keys("C-u")
        self.screen.type("clear; echo again")
        self.screen.wait_for("^again")

    def completes_all(self):
        self.completes("tacho flam", "tacho flamegraph")
        self.completes("tacho record --call-g", "tacho record --call-graph")
        self.completes("tacho table -i reads.data --by comm,byt", "--by comm,bytes")
        self.completes("tacho table -i reads.data --where 'pid > 1 && byt", "&& bytes")
        self.completes("tacho report -i rea", "tacho report -i reads.data")
        self.completes("tacho-record --call-graph=eh", "--call-graph=ehframe")
        self.completes("tacho-report annot", "tacho-report annotate")
        if programs.has_clang:
            self.completes("tacho record -e open/fai", "-e open/failed=")
        if has_tracepoints():
            self.completes("tacho record -e sched:sched_swit", "-e sched:sched_switch")

    def test_bash(self):
        self.start("bash", f"source {SHELLS}/tacho.bash")
        self.completes_all()

    def test_zsh(self):
        self.start("zsh", "exec env PS1='$ ' zsh -f", "unsetopt zle_bracketed_paste", f"fpath=({SHELLS} $fpath)",
                   "autoload -Uz compinit; compinit -u -D")
        self.completes_all()

    def test_fish(self):
        self.start("fish", "exec fish --no-config", "function fish_prompt; echo -n '$ '; end", "set -g fish_autosuggestion_enabled 0",
                   f"source {SHELLS}/tacho.fish")
        self.completes_all()


if __name__ == "__main__":
    programs.main()
