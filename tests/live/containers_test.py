#!/usr/bin/env python3
"""Containers (cgroups and namespaces): a recording of one has its events and no others."""
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import programs


def cgroup_mount():
    """The mount of cgroup version 2, if cgroups can be made there."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line and os.access(line.split()[4], os.W_OK):
            return Path(line.split()[4])
    return None


MOUNT = cgroup_mount()
ID, OTHER = "5eed" + "0" * 60, "5eee" + "1" * 60
POD = "12ab34cd-0000-4000-8000-000000005eed"


class CgroupCase(programs.Scratch):
    def cgroup(self, path):
        """Makes a cgroup; it and its parents made by the test are removed at the end."""
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
            except OSError:  # a process in it has not exited completely
                subprocess.run(["sleep", "0.05"], check=False)

    def load_in(self, folder, name):
        """A program that runs in the cgroup and calls getppid until the test ends."""
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


@programs.needs_root
@unittest.skipUnless(MOUNT, "needs cgroups of version 2 that can be made")
class Cgroups(CgroupCase):
    def setUp(self):
        super().setUp()
        pod = f"tacho-{os.getpid()}.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice"
        self.inside = self.load_in(self.cgroup(f"{pod}/docker-{ID}.scope"), "inside")
        self.below = self.load_in(self.cgroup(f"{pod}/docker-{ID}.scope/below/more"), "below")
        self.other = self.load_in(self.cgroup(f"{pod}/docker-{OTHER}.scope"), "other")
        self.outside = self.load_in(self.cgroup(f"tacho-{os.getpid()}.slice/x.service"), "outside")

    def comms(self, *options, status=0):
        # A fixed number of calls, on any load.
        done = self.run_program(programs.BIN / "tacho-record", *options, "-e", "syscalls:sys_enter_getppid", "-o", "c.data",
                                "--", "sleep", "1", status=status)
        if status:
            return done.stderr.decode()
        text = self.run_program(programs.BIN / "tacho-report", "script", "-F", "comm,event", "-i", "c.data").stdout.decode()
        return {line.split()[0] for line in text.splitlines() if line}

    def test_a_container_is_its_cgroup_and_its_children(self):
        self.assertEqual(self.comms("--container", "5eed"), {"inside", "below"})
        self.assertEqual(self.comms("--container", OTHER), {"other"})

    def check_cgroups(self, event, options=""):
        self.need_recorder(event)
        done = self.run_program(programs.BIN / "tacho-record", "-a", "-e", event + options, "-o", "c.data", "--", "sleep", "0.5")
        self.assertNotIn("there is no role", done.stderr.decode())
        lines = self.tacho("table", "-i", "c.data", "--event", event, "--by", "cgroup,comm", "--columns", "count", "--csv").stdout.decode()
        groups = {line.split(",")[1]: line.split(",")[0] for line in lines.splitlines()[1:]}
        for name, group in (("inside", f"docker-{ID}.scope"), ("other", f"docker-{OTHER}.scope"), ("outside", "x.service")):
            self.assertTrue(groups[name].endswith(group), (event, groups))
        self.assertFalse({"N/A", "unknown"} & set(groups.values()), groups)

    def test_events_of_recorders_have_their_cgroup(self):
        for event in ("offcpu", "syscall"):
            self.check_cgroups(event)

    def test_sums_of_the_kernel_have_their_cgroup(self):
        for event, options in (("syscount", ""), ("offcputime", ""), ("stackcount", "/tracepoint='syscalls:sys_enter_getppid'/"),
                               ("func", "/name='libc.so.6:*nanosleep*'/")):
            with self.subTest(event=event):
                self.check_cgroups(event, options)
                self.assertNotIn(b"cgroup=", self.tacho("script", "-i", "c.data", "-F", "comm,payload").stdout)

    def test_a_container_removed_meanwhile_is_reported(self):
        gone, stays = self.cgroup(f"tacho-{os.getpid()}.slice/gone.service"), f"tacho-{os.getpid()}.slice/x.service"
        for name, reported in ((f"tacho-{os.getpid()}.slice/gone.service", True), (stays, False)):
            done = self.run_program(programs.BIN / "tacho-record", "-e", "page-faults", "-G", name, "-a", "-o", "c.data", "--", "sh", "-c",
                                    f"test ! -d {gone} || rmdir {gone}")
            self.assertEqual(f"the cgroup {name} was removed during the recording" in done.stderr.decode(), reported, done.stderr)
        gone.mkdir()  # for the cleanup

    def test_several_have_all_events_each(self):
        self.assertEqual(self.comms("--container", "5eed", "--container", "5eee"), {"inside", "below", "other"})
        self.run_program(programs.BIN / "tacho-record", "-q", "--for-each-cgroup",
                         f"tacho-{os.getpid()}.slice/x.service,tacho-{os.getpid()}.slice", "-e", "cpu-clock,faults", "-o",
                         "each.data", "--", "true")
        events = self.run_program(programs.BIN / "tacho-report", "evlist", "-i", "each.data").stdout.decode().split()
        self.assertEqual(events, ["cpu-clock", "faults", "cpu-clock", "faults", "dummy:HG"])

    def test_a_pod_is_all_its_containers(self):
        self.assertEqual(self.comms("--pod", POD[:8]), {"inside", "below", "other"})

    def test_ambiguous_and_unknown_ids_give_a_list(self):
        several = self.comms("--container", "5ee", status=1)
        self.assertRegex(several, "'5ee' is a prefix of 2 here; give more of the id:")
        self.assertTrue(ID in several and OTHER in several, several)
        none = self.comms("--container", "nosuch", status=1)
        self.assertRegex(none, "there is no container 'nosuch'")
        self.assertTrue(ID in none, none)
        self.assertRegex(self.comms("--container", "5eed", "-G", "/", status=1), "exclude each other")


@programs.needs_root
@unittest.skipUnless(MOUNT, "needs cgroups of version 2 that can be made")
@unittest.skipUnless(shutil.which("unshare"), "needs unshare (util-linux)")
class Namespaces(CgroupCase):
    """A container with all namespaces, a root and a libc of its own, which differs from the host's by its build id."""

    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        load = programs.BIN / "getppid_load"
        listed = subprocess.run(["ldd", load], capture_output=True, check=True).stdout.decode()
        for path in [*re.findall(r"(/\S+) \(0x", listed), str(load)]:
            to = self.root / ("bin/load" if path == str(load) else path.lstrip("/"))
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)
        self.libc = next(path for path in self.root.rglob("libc.so.6"))
        self.build_id = self.give_another_build_id(self.libc)
        self.group = self.cgroup(f"tacho-{os.getpid()}.slice/docker-{ID}.scope")

    def give_another_build_id(self, path):
        note = subprocess.run(["readelf", "-n", path], capture_output=True, check=True).stdout.decode()
        old = bytes.fromhex(re.search(r"Build ID: (\w+)", note).group(1))
        content = path.read_bytes()
        self.assertEqual(content.count(old), 1)
        new = bytes(byte ^ 0x5A for byte in old)
        path.write_bytes(content.replace(old, new))
        return new.hex()

    def container(self):
        """The outer pid of the process with pid 1 inside."""
        process = subprocess.Popen(
            ["sh", "-c", f"echo $$ > {self.group}/cgroup.procs && exec unshare --pid --fork --mount --cgroup --net --uts "
             f"--ipc --root={self.root} /bin/load 60000 1 1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        end = time.monotonic() + 30
        while True:
            self.assertIsNone(process.poll(), "the container ended")
            self.assertLess(time.monotonic(), end)
            for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                if Path(f"/proc/{pid}/comm").read_text() == "load\n":
                    self.addCleanup(lambda: os.kill(int(pid), 9))
                    return int(pid)
            time.sleep(0.01)

    def text(self, *words):
        return self.run_program(programs.BIN / "tacho-report", *words, "-i", "c.data").stdout.decode(errors="replace")

    def check(self, pid):
        mount = os.stat(f"/proc/{pid}/ns/mnt").st_ino
        self.assertTrue(f"MMAP2 {pid}/{pid}: " in self.text("script", "--show-mmap-events"))
        found = re.findall(rf"MMAP2 {pid}/{pid}: \[[^]]*<(\w+)>\]: r-xp (\S*libc.so.6)",
                           self.text("script", "--show-mmap-events"))
        self.assertEqual({build_id for build_id, _ in found}, {self.build_id}, "the container's libc, not the host's")
        # The following lines have the record's namespaces.
        reported = self.text("script", "--show-namespace-events").split(f"PERF_RECORD_NAMESPACES {pid}/{pid} ")[1:]
        self.assertTrue(any(f"{mount:#x}" in text[:500] for text in reported), (f"{mount:#x}", [text[:500] for text in reported]))
        cgroups = self.text("report", "--stdio", "--sort", "cgroup")
        self.assertIn(f"/docker-{ID}.scope", cgroups)
        self.assertIn("load", self.text("report", "--stdio", "--sort", "comm,cgroup"))
        # The container's path is that of the host's libc here, whose symbols must not be used.
        names = ["script", "--comm", "load", "-F", "ip,sym,symoff"]
        if found[0][1] == f"/{self.libc.relative_to(self.root)}":
            self.assertNotIn("syscall+", self.text(*names))
            names += ["--symfs", self.root]
        self.assertRegex(self.text(*names), r"syscall\+.*\n(.* call_at_depth\+.*\n)+.* main\+")
        return mount

    def record(self, *options):
        self.run_program(programs.BIN / "tacho-record", "-q", "-g", "-e", "syscalls:sys_enter_getppid", "-o", "c.data", *options)

    def test_earlier_processes_have_their_pids_inside(self):
        pid = self.container()
        self.record("--container", ID[:8], "--", "sleep", "0.5")
        mount = self.check(pid)
        header = self.text("header")
        self.assertRegex(header, rf"# process : {pid} \(1 inside\), \S*/bin/load, started \d+\.\d+ s after boot, cgroup "
                                 rf"\S*/docker-{ID}.scope, mount namespace {mount}\n")
        self.assertRegex(header, r"# processes : \d+ ran at the start, \d+ of them in a pid namespace")
        self.same_scripts("c.data", "--show-namespace-events", "--show-cgroup-events")

    def test_new_processes_have_namespace_records(self):
        # Not packed: held_files_test tests packs of pinned files.
        recorder = subprocess.Popen([str(programs.BIN / "tacho-record"), "-a", "-g", "--no-pack", "-e",
                                     "syscalls:sys_enter_getppid", "-o", "c.data"], cwd=self.folder, stderr=subprocess.PIPE)
        self.addCleanup(recorder.stderr.close)
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        while b"has begun" not in recorder.stderr.readline():
            self.assertIsNone(recorder.poll())
        pid = self.container()
        time.sleep(0.5)
        recorder.send_signal(2)
        self.assertEqual(recorder.wait(timeout=60), 0)
        self.check(pid)


INSIDE = ["unshare", "--pid", "--fork", "--mount", "--mount-proc", "--net", "--cgroup", "--ipc", "--uts"]
DEEP = r"""
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) void leaf(void) { syscall(SYS_getppid); __asm__ volatile(""); }
__attribute__((noinline)) void middle(void) { leaf(); __asm__ volatile(""); }
int main(void) {
  alarm(60);
  for (int i = 0; i < 4000; ++i) { middle(); usleep(500); }
  return 0;
}
"""


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(shutil.which("unshare") and shutil.which("cc"), "needs unshare (util-linux) and a C compiler")
class InsideAPidNamespace(programs.Scratch):
    """tacho runs in a container: samples, /proc and users have the pids of its namespace, BPF programs those of the host."""

    @classmethod
    def setUpClass(cls):
        cls.built = Path(tempfile.mkdtemp(prefix="tacho-built-"))
        cls.addClassCleanup(shutil.rmtree, cls.built)
        (cls.built / "deep.c").write_text(DEEP)
        for name in ("deep", "outer"):  # without frame pointers
            subprocess.run(["cc", "-O1", "-fomit-frame-pointer", "-o", cls.built / name, cls.built / "deep.c"], check=True)

    def inside(self, *words, script="", **more):
        """Runs a command line, or a script with $TACHO and $LOAD, in a container."""
        words = ["sh", "-ec", script] if script else [str(word) for word in words]
        return self.run_program("env", f"TACHO={programs.BIN / 'tacho'}", f"LOAD={self.built / 'deep'}", f"INSIDE={' '.join(INSIDE)}",
                                *INSIDE, *words, **more)

    def text(self, *words):
        done = self.tacho(*words, "-i", "c.data")
        return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def check_stacks(self, name="deep"):
        folded, _ = self.text("folded", "--comm", name)
        self.assertRegex(folded, r"(?m)^deep;.*main;middle;leaf;")
        share = re.search(r"whole: \d+ \((\d+\.\d+) %\)", self.text("header")[0])
        self.assertGreater(float(share.group(1)), 80, folded)

    def test_stacks_of_a_command_are_whole(self):
        self.inside(programs.BIN / "tacho-record", "-q", "-g", "-e", "syscalls:sys_enter_getppid", "-o", "c.data", "--",
                    self.built / "deep")
        self.check_stacks()
        pids = set(self.text("script", "-F", "pid,tid")[0].split())
        self.assertTrue(all(int(number) < 100 for pid in pids for number in pid.split("/")), pids)

    def test_stacks_of_a_container_in_the_container_are_whole(self):
        self.inside(script="""
            $INSIDE $LOAD & sleep 0.3
            pid=$(pgrep -x deep | tail -n 1)
            $TACHO record -q -g -e syscalls:sys_enter_getppid -o c.data -p $pid -- sleep 0.5""")
        self.check_stacks()

    def test_processes_outside_have_no_names(self):
        outer = subprocess.Popen([self.built / "outer"])
        self.addCleanup(outer.wait)
        self.addCleanup(outer.kill)
        done = self.inside(script="$LOAD & $TACHO record -g -a -e syscalls:sys_enter_getppid -o c.data -- sleep 0.5")
        self.assertIn("this is a pid namespace", done.stderr.decode())
        folded, said = self.text("folded")
        self.assertRegex(folded, r"(?m)^deep;.*main;middle;leaf;")
        self.assertNotIn("outer", folded)
        self.assertRegex(folded, r"(?m)^\[outside\];\[unknown\] ")
        self.assertRegex(said, r"samples of unknown processes: .*--pid=host\) \(\d+ times\)")

    def test_recorders_have_the_numbers_of_the_namespace(self):
        self.need_recorder("offcpu")
        self.inside(programs.BIN / "tacho-record", "-q", "-g", "-e", "offcpu", "-o", "c.data", "--", self.built / "deep")
        self.assertRegex(self.text("folded")[0], r"(?m)^deep;.*main;")
        columns = self.text("script", "--columns", "comm,pid,tid,waker_tid", "--csv")[0].splitlines()[1:]
        self.assertGreater(len(columns), 1000)
        for line in columns:
            comm, *numbers = line.split(",")
            self.assertEqual(comm, "deep")
            self.assertTrue(all(int(number) < 100 for number in numbers), line)

    def test_recorders_and_conditions_take_the_numbers_of_the_namespace(self):
        self.need_recorder("syscall")
        self.inside(script="""
            $LOAD & other=$! ; $LOAD & wanted=$!
            $TACHO record -q -a -e "syscall/pid=$wanted/" -o c.data -- sleep 0.3
            $TACHO record -q -a -e syscall --filter "pid == $wanted" -o d.data -- sleep 0.3
            $TACHO record -q -e syscall -p $wanted -o e.data -- sleep 0.3
            echo $wanted >wanted""")
        self.inside(script="""
            sh -c 'for i in $(seq 300); do sleep 0.1; done' & parent=$!
            $TACHO record -q -a -e "exec/ppid=$parent/" -o f.data -- sleep 0.5""")
        comms = set(self.tacho("script", "--columns", "comm", "--csv", "-i", "f.data").stdout.decode().split()[1:])
        self.assertIn("sleep", comms)
        self.assertLessEqual(comms, {"sleep", "sh"})  # sh: attempts in other folders of PATH
        wanted = (self.folder / "wanted").read_text().strip()
        for name in ("c.data", "d.data", "e.data"):
            pids = self.tacho("script", "--columns", "pid", "--csv", "-i", name).stdout.decode().split()[1:]
            self.assertEqual(set(pids), {wanted}, name)

    def test_threads_are_listed_without_stopping_them(self):
        done = self.inside(script="$LOAD & sleep 0.2; $TACHO stacks -p $!")
        self.assertRegex(done.stdout.decode(), r"(?s)deep.*main")
        self.assertNotIn("stopped one after another", done.stderr.decode())

    def test_a_user_namespace_is_named_as_the_reason(self):
        done = self.inside("unshare", "--user", "--map-root-user", programs.BIN / "tacho-record", "-g", "-e", "cpu-clock", "-o", "c.data",
                           "--", self.built / "deep", status=None)
        if b"not permitted" in done.stderr and done.returncode:
            self.skipTest("users may not record here")
        self.assertIn("this is a user namespace (a rootless container)", done.stderr.decode())
        self.assertRegex(self.text("folded")[0], r"(?m)^deep;.*main;")  # from copies

    def test_doctor_says_what_holds_here(self):
        self.assertRegex(self.inside(programs.BIN / "tacho", "doctor").stdout.decode(), r"limited +pid namespace +a container's")
        self.assertRegex(self.tacho("doctor", status=None).stdout.decode(), r"pid namespace ")


if __name__ == "__main__":
    programs.main()
