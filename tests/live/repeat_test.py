#!/usr/bin/env python3
"""tacho record --repeat: a series of captures in a folder, of several commands in turns."""
import os
import signal
import subprocess
import time
from pathlib import Path

import programs


class Repeat(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.runs = self.folder / "runs"
        self.log = self.folder / "log"

    def script(self, name, lines):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return path

    def repeat(self, *words, status=0):
        return self.tacho("record", "-o", self.runs, *words, status=status).stderr.decode()

    def files(self, folder=""):
        return sorted(path.name for path in (self.runs / folder).iterdir())

    def test_each_run_is_a_capture(self):
        said = self.repeat("--repeat", "3", "--", "sh", "-c", f"echo x >> {self.log}")
        self.assertEqual(self.files(), ["001.data", "002.data", "003.data"])
        self.assertIn(f"3 captures in {self.runs}", said)
        self.assertEqual(self.log.read_text(), "x\n" * 3)
        self.assertIn("echo x", self.tacho("header", self.runs / "001.data").stdout.decode())

    def test_commands_take_turns_and_every_other_round_is_reversed(self):
        old = self.script("old.sh", f"echo -n o >> {self.log}")
        new = self.script("new.sh", f"echo -n $1 >> {self.log}")
        said = self.repeat("--repeat", "3", "--interleave", "--warm-up", "1", "--", old, f"{new} n")
        self.assertEqual(self.log.read_text(), "on" + "on" + "no" + "on")
        self.assertEqual(self.files("old"), ["001.data", "002.data", "003.data"])
        self.assertEqual(self.files("new"), self.files("old"))
        self.assertIn(f"tacho diff {self.runs}/old/*.data --to {self.runs}/new/*.data", said)

    def test_commands_of_one_name_have_numbers(self):
        for folder in ("a", "b"):
            (self.folder / folder).mkdir()
        self.repeat("--repeat", "1", "--interleave", "--", self.script("a/run.sh", ""), self.script("b/run.sh", ""))
        self.assertEqual(self.files(), ["1-run", "2-run"])

    def test_a_run_that_fails_is_named_and_not_counted(self):
        said = self.repeat("--repeat", "3", "--", "sh", "-c", f"echo x >> {self.log}; test $(wc -l < {self.log}) != 2",
                           status=1)
        self.assertEqual(self.files(), ["001.data", "002.failed", "003.data"])
        self.assertIn("002.data: the run failed with exit status 1", said)
        self.assertIn("2 captures in", said)
        self.assertIn("1 run failed", said)

    def test_a_series_is_not_mixed_with_an_older_one(self):
        self.repeat("--repeat", "1", "--", "true")
        self.assertIn("has captures already", self.repeat("--repeat", "1", "--", "true", status=1))
        self.assertIn("--repeat", self.repeat("--repeat", "1", "--switch-output=1s", "--", "true", status=1))

    def test_a_signal_ends_the_series_and_its_unfinished_capture(self):
        command = [programs.BIN / "tacho-record", "-o", self.runs, "--repeat", "50", "--", "sh", "-c",
                   f"echo x >> {self.log}; test $(wc -l < {self.log}) = 1 || exec sleep 20"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as series:
            while not self.log.exists() or len(self.log.read_text()) < 4:
                time.sleep(0.05)
            series.send_signal(signal.SIGTERM)
            said = series.communicate(timeout=15)[1].decode()
        self.assertEqual(series.returncode, 3)
        self.assertEqual(self.files(), ["001.data"])
        self.assertIn("1 capture in", said)

    def test_commands_run_on_the_cpus_of_pin(self):
        last = max(os.sched_getaffinity(0))
        self.tacho("record", "-o", (self.folder / "one.data"), "--pin", str(last), "--", "sh", "-c",
                   f"taskset -p $$ > {self.log}")
        self.assertEqual(int(self.log.read_text().split()[-1], 16), 1 << last)
        self.assertIn("--pin", self.tacho("record", "--pin", "4000", "-o", (self.folder / "no.data"), "--", "true",
                                          status=1).stderr.decode())


if __name__ == "__main__":
    programs.main()
