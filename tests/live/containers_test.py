#!/usr/bin/env python3
"""Containers as the kernel makes them: cgroups and namespaces. What is recorded of one, and nothing else."""
import os
import subprocess
import unittest
from pathlib import Path

import programs


def cgroup_mount():
    """Where version 2 is mounted, if cgroups can be made there."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line and os.access(line.split()[4], os.W_OK):
            return Path(line.split()[4])
    return None


MOUNT = cgroup_mount()
ID, OTHER = "5eed" + "0" * 60, "5eee" + "1" * 60
POD = "12ab34cd-0000-4000-8000-000000005eed"


@programs.needs_root
@unittest.skipUnless(MOUNT, "needs cgroups of version 2 that can be made")
class Cgroups(programs.Scratch):
    def cgroup(self, path):
        """A cgroup of the test; it and those above it that the test made are gone at the end."""
        folder = MOUNT / path
        for each in [*reversed(folder.parents), folder]:
            if MOUNT in each.parents and not each.exists():
                each.mkdir()
                self.addCleanup(self.remove, each)
        return folder

    @staticmethod
    def remove(folder):
        for _ in range(100):
            try:
                return folder.rmdir()
            except OSError:  # a process in it is not quite gone
                subprocess.run(["sleep", "0.05"], check=False)

    def load_in(self, folder, name):
        """A program that runs in the cgroup and calls getppid until the test is over."""
        load = self.folder / name
        if not load.exists():
            os.link(programs.BIN / "getppid_load", load) if os.stat(self.folder).st_dev == os.stat(
                programs.BIN).st_dev else load.write_bytes((programs.BIN / "getppid_load").read_bytes())
            load.chmod(0o755)
        process = subprocess.Popen(
            ["sh", "-c", f"echo $$ > {folder}/cgroup.procs && exec {load} 60000 1 1000"], stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while str(process.pid) not in (folder / "cgroup.procs").read_text().split() or Path(
                f"/proc/{process.pid}/comm").read_text().strip() != name[:15]:
            self.assertIsNone(process.poll())
        return process

    def setUp(self):
        super().setUp()
        pod = f"tacho-{os.getpid()}.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice"
        self.inside = self.load_in(self.cgroup(f"{pod}/docker-{ID}.scope"), "inside")
        self.below = self.load_in(self.cgroup(f"{pod}/docker-{ID}.scope/below/more"), "below")
        self.other = self.load_in(self.cgroup(f"{pod}/docker-{OTHER}.scope"), "other")
        self.outside = self.load_in(self.cgroup(f"tacho-{os.getpid()}.slice/x.service"), "outside")

    def comms(self, *options, status=0):
        # As many calls as it takes, however busy the machine is.
        done = self.run_program(programs.BIN / "tacho-record", *options, "-e", "syscalls:sys_enter_getppid", "-o", "c.data",
                                "--", "sleep", "1", status=status)
        if status:
            return done.stderr.decode()
        text = self.run_program(programs.BIN / "tacho-report", "script", "-F", "comm,event", "-i", "c.data").stdout.decode()
        return {line.split()[0] for line in text.splitlines() if line}

    def test_a_container_is_its_cgroup_and_those_below(self):
        self.assertEqual(self.comms("--container", "5eed"), {"inside", "below"})
        self.assertEqual(self.comms("--container", OTHER), {"other"})

    def test_several_have_all_events_each(self):
        self.assertEqual(self.comms("--container", "5eed", "--container", "5eee"), {"inside", "below", "other"})
        self.run_program(programs.BIN / "tacho-record", "-q", "--for-each-cgroup",
                         f"tacho-{os.getpid()}.slice/x.service,tacho-{os.getpid()}.slice", "-e", "cpu-clock,faults", "-o",
                         "each.data", "--", "true")
        events = self.run_program(programs.BIN / "tacho-report", "evlist", "-i", "each.data").stdout.decode().split()
        self.assertEqual(events, ["cpu-clock", "faults", "cpu-clock", "faults", "dummy:HG"])

    def test_a_pod_is_all_its_containers(self):
        self.assertEqual(self.comms("--pod", POD[:8]), {"inside", "below", "other"})

    def test_what_does_not_name_one_is_answered_with_a_list(self):
        several = self.comms("--container", "5ee", status=1)
        self.assertRegex(several, "'5ee' is the begin of 2 here; say more:")
        self.assertTrue(ID in several and OTHER in several, several)
        none = self.comms("--container", "nosuch", status=1)
        self.assertRegex(none, "there is no container 'nosuch'")
        self.assertTrue(ID in none, none)
        self.assertRegex(self.comms("--container", "5eed", "-G", "/", status=1), "exclude each other")


if __name__ == "__main__":
    programs.main()
