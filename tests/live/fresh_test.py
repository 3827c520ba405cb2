"""script/fresh removes its machine completely; debootstrap is replaced by a stub."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import programs
from programs import PATIENCE, ROOT

# Mounts and waits as a long bootstrap; a child of it has its own session.
DEBOOTSTRAP = """#!/bin/sh
mkdir -p "$3/proc" && mount -t proc proc "$3/proc" || exit 1
setsid sleep 1000 &
echo $! $$ > "$(dirname "$0")/processes.new"
mv "$(dirname "$0")/processes.new" "$(dirname "$0")/processes"
sleep 1000
"""
APT = """#!/bin/sh
case $1 in
  indextargets) echo http://mirror.invalid/debian ;;
  *) echo "E: Unable to locate package debootstrap" >&2; exit 100 ;;
esac
"""

# Cloning takes longer than all the rest, and its result is not used here.
GIT = """#!/bin/sh
[ "$1" != clone ] || for folder; do :; done
[ "$1" != clone ] || mkdir "$folder"
"""


def is_alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(what):
    end = time.monotonic() + PATIENCE
    while not what() and time.monotonic() < end:
        time.sleep(0.05)
    return what()


class Fresh(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("mount namespaces are refused here")
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir()
        self.tool("apt-get", APT)
        self.tool("git", GIT)

    def tool(self, name, text):
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def start(self, *options, **more):
        path = f"{self.tools}:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = {**os.environ, "PATH": path, "TMPDIR": str(self.scratch), **more}
        # A shell cannot trap a signal that was ignored at its start, as SIGINT is for tests in the background.
        command = ["env", "-u", "CCACHE_DIR", "--default-signal=INT,TERM", ROOT / "script/fresh", *options]
        return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def test_an_interrupted_run_leaves_no_process_mount_or_folder(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                self.tool("debootstrap", DEBOOTSTRAP)
                (self.tools / "processes").unlink(missing_ok=True)
                run = self.start("--load", "0")
                self.assertTrue(wait_until((self.tools / "processes").exists), "it did not come so far")
                processes = (self.tools / "processes").read_text().split()
                self.assertTrue(all(map(is_alive, processes)))
                run.send_signal(number)
                text, _ = run.communicate(timeout=PATIENCE)
                self.assertEqual(run.returncode, 128 + number, text)
                self.assertFalse(any(map(is_alive, processes)), text)
                self.assertNotIn(str(self.scratch), pathlib.Path("/proc/mounts").read_text())
                self.assertEqual(list(self.scratch.iterdir()), [], text)

    def test_a_host_that_cannot_have_debootstrap_is_refused(self):
        if shutil.which("debootstrap", path="/usr/sbin:/usr/bin:/sbin:/bin"):
            self.skipTest("debootstrap is installed here")
        run = self.start("--demo")
        text, _ = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 1, text)
        self.assertIn("debootstrap is not installed and apt cannot fetch it", text)
        self.assertEqual(list(self.scratch.iterdir()), [], text)

    def test_a_kept_folder_is_used_by_one_run_at_a_time_and_keeps_no_run(self):
        kept = self.folder / "kept"
        self.tool("debootstrap", DEBOOTSTRAP)
        first = self.start("--load", "0", TACHO_FRESH=str(kept))
        self.assertTrue(wait_until((self.tools / "processes").exists), "it did not come so far")
        second = self.start(TACHO_FRESH=str(kept))
        text, _ = second.communicate(timeout=PATIENCE)
        self.assertEqual(second.returncode, 1, text)
        self.assertIn("another run uses", text)
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=PATIENCE)
        self.assertFalse((kept / "run").exists())
        self.assertTrue((kept / "archives").exists())

    def test_a_load_that_is_no_number_is_refused(self):
        run = self.start("--load", "much")
        text, _ = run.communicate(timeout=PATIENCE)
        self.assertEqual(run.returncode, 1)
        self.assertIn("--load wants a number", text)


if __name__ == "__main__":
    programs.main()
