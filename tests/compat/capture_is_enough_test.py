#!/usr/bin/env python3
"""The capture is self-contained: the user nobody, without kallsyms and tracefs, gets the same output."""
import shutil
import unittest

import programs
from programs import BIN, ROOT

# kallsyms is covered by an empty file and every tracefs is gone, for this process and its children only.
ELSEWHERE = """
mount --make-rprivate / &&
mount --bind "$1/nothing" /proc/kallsyms &&
for place in /sys/kernel/debug/tracing /sys/kernel/tracing /sys/kernel/debug; do umount -l $place 2>/dev/null; done
[ ! -e /sys/kernel/tracing/events ] && [ ! -s /proc/kallsyms ] && ! grep -q . /proc/kallsyms || exit 99
cd "$1" && shift && exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
"""


@programs.needs_root
@unittest.skipUnless(shutil.which("setpriv") and shutil.which("unshare"), "needs setpriv and unshare (util-linux)")
class CaptureIsEnough(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        (self.folder / "nothing").touch()
        for program in ["tacho", "tacho-report"]:  # where nobody may read them, whatever the build's folder allows
            shutil.copy(BIN / program, self.folder / program)

    def elsewhere(self, *words):
        return self.run_program("unshare", "-m", "--", "sh", "-c", ELSEWHERE, "sh", self.folder, *words)

    def compare(self, capture, *commands):
        capture.chmod(0o644)
        for command in commands:
            with self.subTest(command=" ".join(command)):
                words = [self.folder / "tacho", *command, "-i", capture]
                here = self.run_program(*words)
                there = self.elsewhere(*words)
                self.assertNotEqual(here.stdout, b"")
                self.assert_same_text(there.stdout, here.stdout)
                self.assertEqual(there.stderr, here.stderr)

    @programs.needs_btf
    @programs.needs_clang
    def test_bpf_events_with_stacks(self):
        capture = self.folder / "b.data"
        self.tacho("record", "-e", ROOT / "examples/bigreads.bpf.c", "-a", "-g", "-o", capture, "--",
                   "dd", "if=/dev/zero", "of=/dev/null", "bs=2M", "count=3")
        self.compare(capture, ["script", "-F", "+payload"], ["report", "--stdio"], ["hist"], ["folded"], ["header"])

    def test_tracepoints_with_stacks(self):
        capture = self.folder / "t.data"
        # Not system-wide: the user nobody cannot read every program's file.
        self.tacho("record", "-e", "sched:sched_switch", "-g", "-o", capture, "--", "sh", "-c",
                   "for i in 1 2 3 4 5; do sleep 0.02; done")
        self.compare(capture, ["script"], ["report", "--stdio"], ["hist", "--field", "prev_prio"], ["folded"])


if __name__ == "__main__":
    programs.main()
