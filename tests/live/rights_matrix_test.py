#!/usr/bin/env python3
"""For each user and each restriction of the host: either the capture is complete, or one line says what is missing and
how to fix it, and the command was not run.

With TACHO_MAY_CHANGE_MACHINE=1 (script/torture) the kernel's levels of paranoia are tried as well, and put back."""
import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import programs

NOBODY = 65534
LEAST = "perfmon,bpf,syslog,sys_ptrace,dac_read_search"
WHO = ("root", LEAST, "")
MAY_CHANGE = os.environ.get("TACHO_MAY_CHANGE_MACHINE") == "1"
# Options, and whether the recording is system-wide.
WHAT = {"own code": ["-e", "cpu-clock:u", "-g"], "with the kernel": ["-g"], "whole machine": ["-a", "-g"],
        "tracepoint": ["-e", "sched:sched_process_exec"], "probe": ["-e", "uprobe:./load:main"], "recorder": ["-e", "exec"],
        "unwound": ["--call-graph", "eh"]}
# Restrictions of the host: commands that make them, in a mount namespace.
LACKS = {"nothing": "", "tracefs": "mount -t tmpfs none /sys/kernel/tracing; mount -t tmpfs none /sys/kernel/debug 2>/dev/null || :",
         "kallsyms": "mount --bind /dev/null /proc/kallsyms", "BTF": "mount -t tmpfs none /sys/kernel/btf",
         "memory to lock": "ulimit -l 64", "descriptors": "ulimit -n 48"}
PARANOID, HIDDEN = Path("/proc/sys/kernel/perf_event_paranoid"), Path("/proc/sys/kernel/kptr_restrict")


@contextlib.contextmanager
def level(place, value):
    before = place.read_text()
    place.write_text(str(value))
    try:
        yield
    finally:
        place.write_text(before)


@programs.needs_root
@unittest.skipUnless(shutil.which("setpriv") and shutil.which("unshare"), "needs setpriv and unshare (util-linux)")
class RightsMatrix(programs.Scratch):
    def setUp(self):
        super().setUp()
        for name in ("tacho-record", "tacho-report", "getppid_load"):  # other users may have no access to the build directory
            shutil.copy(programs.BIN / name, self.folder / name)
        (self.folder / "load").write_bytes((self.folder / "getppid_load").read_bytes())
        (self.folder / "load").chmod(0o755)
        self.folder.chmod(0o755)
        for owner in (0, NOBODY):  # root does not write into folders of others
            (self.folder / str(owner)).mkdir()
            os.chown(self.folder / str(owner), owner, owner)
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespace can be made here")

    def cell(self, who, lack, options):
        """(exit status, messages, whether the command ran, samples of the capture or None if it cannot be read)."""
        place = self.folder / str(0 if who == "root" else NOBODY)
        for name in ("c.data", "ran"):
            (place / name).unlink(missing_ok=True)
        kept = "".join(f",+{name}" for name in who.split(",") if name)
        words = [] if who == "root" else ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                                          f"--inh-caps=-all{kept}", f"--ambient-caps=-all{kept}"]
        words += ["./tacho-record", "--no-pack", "-o", place / "c.data", *options, "--", "sh", "-c", f"touch {place}/ran; ./load 50000"]
        done = self.run_program("unshare", "-m", "sh", "-c", f'{LACKS[lack]}\nexec "$@"', "sh", *words, status=None)
        samples = None
        if (place / "c.data").exists():
            read = self.run_program("./tacho-report", "script", "-F", "event", "-i", place / "c.data", status=None)
            samples = len(read.stdout.splitlines()) if read.returncode == 0 else None
        return done.returncode, done.stderr.decode(errors="replace"), (place / "ran").exists(), samples

    def check(self, who, lack, what):
        status, said, ran, samples = self.cell(who, lack, WHAT[what])
        reported = f"{who or 'user'}, without {lack}, {what}: status {status}, {said}"
        if status == 0:
            self.assertTrue(ran and samples is not None, reported)
            return True
        self.assertIn(status, (1, 2, 4), reported)  # not by a signal, and not the command's status
        self.assertFalse(ran, reported)
        self.assertIsNone(samples, reported)
        lines = [line for line in said.splitlines() if line and not line.startswith("[")]
        self.assertTrue(lines and any(len(line) > 30 for line in lines), reported)
        return False

    def check_all(self, cells):
        worked = [cell for cell in cells if self.check(*cell)]
        print(f"{len(cells)} cells, {len(worked)} of them recorded", file=sys.stderr)
        return worked

    def test_every_user_with_every_event(self):
        worked = self.check_all([(who, "nothing", what) for who in WHO for what in WHAT])
        for what in WHAT:
            self.assertIn(("root", "nothing", what), worked)
        self.assertIn(("", "nothing", "own code"), worked)

    def test_every_lack_of_the_host(self):
        whos, what = (WHO, WHAT) if MAY_CHANGE else (("root",), ("own code", "tracepoint", "recorder"))
        worked = self.check_all(list(itertools.product(whos, [lack for lack in LACKS if lack != "nothing"], what)))
        for lack in LACKS:
            if lack != "nothing":
                self.assertIn(("root", lack, "own code"), worked)

    @unittest.skipUnless(MAY_CHANGE, "changes what the kernel lets others see (TACHO_MAY_CHANGE_MACHINE=1)")
    def test_paranoia(self):
        for value in (-1, 0, 1, 2, 3):
            with level(PARANOID, value):
                worked = self.check_all([("", "nothing", what) for what in WHAT])
            self.assertEqual(("", "nothing", "whole machine") in worked, value < 0 or value == 0, f"paranoid {value}")
        for value in (0, 1, 2):
            with level(HIDDEN, value):
                self.check_all([(who, "nothing", what) for who in WHO for what in ("with the kernel", "whole machine")])


if __name__ == "__main__":
    programs.main()
