#!/usr/bin/env python3
"""Options of all recorders: a cgroup, checked in the kernel; and one recorder twice in a command."""
import csv
import io
import os
from pathlib import Path

import programs


@programs.needs_root
@programs.needs_btf
class RecorderOptions(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.need_recorder()

    def record(self, *words, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-o", "out.data", *words, status=status).stderr.decode()

    def rows(self, *options):
        return list(csv.DictReader(io.StringIO(self.tacho("table", "-i", "out.data", "--csv", *options).stdout.decode())))

    def counts(self, key, *options):
        return {row[key]: int(row["count"]) for row in self.rows("--by", key, "--columns", "count", *options)}

    def make_groups(self):
        """An outer and an inner control group, by their paths in /sys/fs and below the mount."""
        mount = next((line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"), None)
        if mount is None:
            self.skipTest("no cgroups of version 2")
        outer = os.path.join(mount, f"tacho_options_{os.getpid()}")
        inner = os.path.join(outer, "inner")
        try:
            os.makedirs(inner)
        except OSError as refused:
            self.skipTest(f"no cgroup can be made: {refused}")
        self.addCleanup(os.rmdir, outer)
        self.addCleanup(os.rmdir, inner)
        return outer, inner, outer[len(mount):]

    def test_only_a_cgroup_and_its_children(self):
        outer, inner, name = self.make_groups()
        # cat in the outer one, wc in the inner one, tail in neither: each opens a missing file.
        everybody = ["--", "sh", "-c", f"(echo 0 > {outer}/cgroup.procs; exec cat /nosuch/cat); "
                                       f"(echo 0 > {inner}/cgroup.procs; exec wc /nosuch/wc); tail /nosuch/tail; true"]
        for group, expected in ((name, {"cat", "wc"}), (name + "/inner", {"wc"}), ("/", {"cat", "wc", "tail"})):
            self.record("-e", f"open/path='/nosuch',cgroup='{group}'/", *everybody)
            self.assertEqual(self.counts("path"), {f"/nosuch/{one}": 1 for one in expected}, group)
        # Also for threads other than the current one: runnable ones.
        self.record("-a", "-e", f"runqlat/cgroup='{name}/inner'/", "--", "sh", "-c",
                    f"(echo 0 > {inner}/cgroup.procs; for i in 1 2 3 4 5; do sleep 0.01; done); cat /dev/null; true")
        waited = self.counts("comm")
        self.assertIn("sleep", waited)
        self.assertLessEqual(set(waited), {"sh", "sleep"})

    def test_why_a_recorder_records_no_events(self):
        """One line for each of them."""
        said = self.record("-e", "open/path='/nosuch/path',failed/,bio/max/", "--", "true")
        [line] = [line for line in said.splitlines() if "open: no events recorded" in line]
        self.assertIn("no events recorded of the command and what it starts (-a records all processes); ", line)
        self.assertRegex(line, r"path=\S*/nosuch/path\S*, failed may have left them out")
        [line] = [line for line in said.splitlines() if "bio: no events recorded" in line]
        self.assertIn("reads of cached files read no disk", line)
        self.assertIn("process 1 (-a records all processes)", self.record("-e", "tcp", "-p", "1", "--", "true"))
        self.assertNotIn("no events recorded", self.record("-e", "exec", "--", "true"))
        self.assertNotIn("(-a takes", self.record("-a", "-e", "exec/comm=nobody/", "--", "true"))

    def test_the_commands_exec_is_recorded_beside_another_recorder_of_exec(self):
        # The kernel runs what is attached to a tracepoint in the order of attaching.
        inner = [str(programs.BIN / "tacho-record"), "-o", "inner.data", "-e", "exec", "--", "/bin/true"]
        self.record("-a", "-e", "exec", "--", *inner)
        rows = csv.DictReader(io.StringIO(
            self.tacho("table", "-i", "inner.data", "--csv", "--by", "path", "--columns", "count").stdout.decode()))
        self.assertEqual({row["path"]: row["count"] for row in rows}, {"/bin/true": "1"})

    def test_the_view_that_fits_the_options(self):
        for event, view in (("bio/max/", "tacho script --columns "), ("biolatency/max/", "tacho script --columns "), ("bio", "tacho hist --by op"),
                            ("bio/max=0/", "tacho hist --by op"), ("biosnoop/max/", "tacho script --columns time,comm,pid,op,disk,sector")):
            self.assertRegex(self.record("-e", event, "--", "true"), rf"(?m): {view}.* -i out.data ]$")

    def test_a_control_group_that_is_not_there(self):
        said = self.record("-e", "open/cgroup='/nosuch/group'/", "--", "true", status=1)
        self.assertRegex(said, r"column 14: cgroup: (there is no cgroup '/nosuch/group'|no cgroups of version 2)")
        self.assertIn("cgroup: the path is missing", self.record("-e", "open/cgroup=''/", "--", "true", status=1))

    def test_what_was_probably_meant(self):
        for words, said in ((["-e", "open/faild/"], "; did you mean 'failed'?"), (["-e", "syscall/call=opn/"], "; did you mean 'open'?"),
                            (["-e", "open/min_us=10ms/"], "'10ms' is not a number; it is u64; its unit is in its name: min_us=10000"),
                            (["--wakers", "-e", "offcpu"], "--wakers: -e offcpu,waking -g records waits and their wakers")):
            self.assertIn(said, self.record(*words, "--", "true", status=1).strip())
        live = self.run_program(programs.BIN / "tacho", "live", "-e", "open", status=1).stderr.decode()
        self.assertEqual(live, "tacho live: --event: the first word is the event: tacho live open -a\n")

    def test_one_recorder_twice(self):
        said = self.record("-e", "open/failed,path='/nosuch'/,open/path='/etc/passwd'/", "-e", "exec", "--", "sh", "-c",
                           "cat /nosuch/one /etc/passwd > /dev/null; true")
        self.assertIn("the events of -e open/path='/etc/passwd'/ are recorded as 'open.2'", said)
        self.assertIn("tacho table --by path,error --event open -i out.data", said)
        self.assertIn("tacho table --by path,error --event open.2 -i out.data", said)
        self.assertEqual(self.counts("path", "--event", "open"), {"/nosuch/one": 1})
        self.assertEqual(self.counts("path", "--event", "open.2"), {"/etc/passwd": 1})
        self.assertEqual(len(self.tacho("script", "-i", "out.data", "--event", "open.2").stdout.split(b"open.2:")), 2)
        if programs.shutil.which("perf"):
            events = self.perf("script", "-i", "out.data", "-F", "event").stdout.split()
            self.assertEqual((events.count(b"open:"), events.count(b"open.2:")), (1, 1))


if __name__ == "__main__":
    programs.main()
