#!/usr/bin/env python3
"""A processor that goes and comes back while it is recorded: that nothing more comes from it is told, at once.

It changes the machine, so it only runs where TACHO_MAY_CHANGE_MACHINE=1 says that nobody minds (tests/vm)."""
import os
import subprocess
import time
import unittest
from pathlib import Path

import programs

SWITCH = Path("/sys/devices/system/cpu/cpu1/online")


@programs.needs_root
@unittest.skipUnless(os.environ.get("TACHO_MAY_CHANGE_MACHINE") == "1", "needs a machine that may be changed (tests/vm)")
@unittest.skipUnless(SWITCH.exists(), "needs a second processor that can go off line")
class Hotplug(programs.Scratch):
    def wait_for(self, words):
        for _ in range(600):
            if words in (self.folder / "log").read_bytes():
                return
            time.sleep(0.05)
        self.fail(f"never said {words}: " + (self.folder / "log").read_text())

    def test_a_processor_that_goes_is_told(self):
        self.addCleanup(SWITCH.write_text, "1")
        SWITCH.write_text("1")
        with open(self.folder / "log", "wb") as log:
            run = subprocess.Popen([programs.BIN / "tacho-record", "-a", "-e", "cpu-clock", "-o", "h.data"], cwd=self.folder,
                                   stderr=log, stdout=log)
        self.addCleanup(lambda: run.poll() is None and (run.kill(), run.wait()))
        self.wait_for(b"has begun")
        SWITCH.write_text("0")
        self.wait_for(b"CPU 1 went off line")
        SWITCH.write_text("1")
        self.wait_for(b"CPU 1 is on line again")
        run.send_signal(2)
        self.assertEqual(run.wait(60), 0, (self.folder / "log").read_text())
        self.assertIn(b"cpu-clock", self.tacho("script", "-i", "h.data", "-F", "event").stdout)


if __name__ == "__main__":
    programs.main()
