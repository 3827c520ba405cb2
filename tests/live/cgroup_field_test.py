#!/usr/bin/env python3
"""The control group of a sample as a field: script -F cgroup, --where and table --by, against what perf's dump says."""
import re
import subprocess
import unittest

import programs


@programs.needs_root
@programs.needs_perf
class CgroupField(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.perf("record", "-q", "--all-cgroups", "-a", "-e", "sched:sched_process_exec", "-o", "c.data", "--", "sh", "-c",
                  "for i in 1 2 3; do /bin/true; done", status=None)
        dump = self.perf("script", "-i", "c.data", "-D").stdout.decode(errors="replace")
        self.paths = dict(re.findall(r"PERF_RECORD_CGROUP cgroup: (\d+) (\S+)", dump))
        self.ids = re.findall(r"^\.\.\. cgroup: (\d+)|^ *cgroup: (\d+)", dump, re.M)

    def lines(self, *words, status=0):
        return self.tacho("script", "-i", "c.data", *words, status=status).stdout.decode().splitlines()

    def test_is_the_path_of_the_record(self):
        shown = [line.strip() for line in self.lines("-F", "cgroup")]
        self.assertEqual(len(shown), len(self.lines("-F", "event")))
        self.assertGreaterEqual(len(shown), 3)
        self.assertLessEqual(set(shown), set(self.paths.values()) | {"unknown"})
        self.assertNotIn("N/A", shown)

    def test_stands_in_conditions_and_tables(self):
        one = self.lines("-F", "cgroup")[0].strip()
        chosen = self.lines("-F", "cgroup", "--where", f'cgroup == "{one}"')
        self.assertEqual({line.strip() for line in chosen}, {one})
        self.assertEqual(len(chosen) + len(self.lines("-F", "cgroup", "--where", f'cgroup != "{one}"')),
                         len(self.lines("-F", "event")))
        table = self.tacho("table", "-i", "c.data", "--by", "cgroup").stdout.decode()
        self.assertIn(one, table)
        self.assertIn(one, self.tacho("report", "-i", "c.data", "--stdio", "--sort", "cgroup").stdout.decode())

    def test_an_event_without_it_gives_a_line(self):
        self.perf("record", "-q", "-a", "-e", "sched:sched_process_exec", "-o", "c.data", "--", "/bin/true")
        refused = self.tacho("script", "-i", "c.data", "-F", "cgroup", status=None)
        self.assertIn(b"CGROUP", refused.stderr)
        self.assertEqual(self.lines("-F", "event", "--where", 'cgroup ~ "/*"'), [])


if __name__ == "__main__":
    programs.main()
