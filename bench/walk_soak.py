#!/usr/bin/env python3
"""Whole stacks under churn: does the recorder stay as it is while processes and mappings come and go?

  bench/walk_soak.py [--seconds 60]

`tacho record -a -g` runs while commands are started as fast as a shell does, and a process maps ever new copies of a library,
each a file of its own. Every tenth of the time the recorder's memory, descriptors and BPF maps are looked at. They may not
grow from the middle of the run to its end, beyond a tenth. Exit status 1 when they do, or when fewer stacks are whole in the
second half than in the first. Needs root and the built programs (TACHO_BIN, or build/bin)."""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build/bin"))
COMMANDS = "while :; do /bin/true; /bin/date > /dev/null; /bin/true; done"
MAPPINGS = """
import _ctypes, os, shutil, sys
folder, library = sys.argv[1:]
number = 0
while True:
    path = os.path.join(folder, f"copy{number}.so")
    shutil.copy(library, path)
    handle = _ctypes.dlopen(path, 0)
    sum(i * i for i in range(3000))
    _ctypes.dlclose(handle)
    os.unlink(path)
    number += 1
    if number % 20 == 0:
        with open(os.path.join(folder, "new count"), "w") as file:
            file.write(str(number))
        os.replace(os.path.join(folder, "new count"), os.path.join(folder, "count"))
"""
MOST_GROWTH = 1.1


def library():
    for name in ("libm.so.6", "libz.so.1"):
        found = Path("/lib/x86_64-linux-gnu") / name
        if found.exists():
            return found
    sys.exit("no library to copy")


def facts(pid):
    """What the recorder holds: resident KiB, descriptors, KiB of BPF maps, threads."""
    status = Path(f"/proc/{pid}/status").read_text()
    maps = {}
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = info.read_text()
        except OSError:
            continue
        locked, number = re.search(r"^memlock:\s*(\d+)", text, re.M), re.search(r"^map_id:\s*(\d+)", text, re.M)
        if locked and number:
            maps[number.group(1)] = int(locked.group(1)) // 1024
    return {"resident": int(re.search(r"VmRSS:\s*(\d+)", status).group(1)), "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "maps": sum(maps.values()), "threads": int(re.search(r"Threads:\s*(\d+)", status).group(1))}


def started():
    """Processes so far, of the whole machine."""
    return int(re.search(r"^processes (\d+)", Path("/proc/stat").read_text(), re.M).group(1))


def whole_of(capture):
    """walked and whole, as the capture's header says."""
    text = subprocess.run([BIN / "tacho", "header", "-i", capture], capture_output=True, text=True, check=True).stdout
    walked, whole = re.search(r"user stacks : walked: (\d+)", text), re.search(r"user stacks : whole: (\d+)", text)
    return (int(walked.group(1)), int(whole.group(1))) if walked and whole else (0, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tacho-soak-") as name:
        folder = Path(name)
        recorder = subprocess.Popen([BIN / "tacho-record", "-a", "-g", "-e", "cpu-clock", "-F", "199", "--no-pack", "-o", folder / "x.data",
                                     f"--switch-output={max(1, round(options.seconds / 2))}s"], stderr=subprocess.PIPE, text=True)
        load = []
        try:
            line = ""
            while "Recording has begun" not in line:
                line = recorder.stderr.readline()
                if not line:
                    sys.exit("the recorder ended")
            before, began = started(), time.monotonic()
            load = [subprocess.Popen(["bash", "-c", COMMANDS]), subprocess.Popen([sys.executable, "-c", MAPPINGS, name, library()])]
            seen = []
            while time.monotonic() - began < options.seconds:
                time.sleep(options.seconds / 10)
                seen.append(facts(recorder.pid))
                print(f"{time.monotonic() - began:6.0f} s  " + "  ".join(f"{key} {value}" for key, value in seen[-1].items()), flush=True)
            taken, processes = time.monotonic() - began, started() - before
        finally:
            for each in load:
                each.kill()
                each.wait()
            recorder.send_signal(signal.SIGINT)
            said = recorder.stderr.read()
            recorder.wait()
        mapped = (folder / "count").read_text().strip()
        print(f"{processes / taken:.0f} processes a second, {mapped} libraries mapped")
        shares = [whole_of(capture) for capture in sorted(folder.glob("x.data.*"))]
        for walked, whole in shares:
            print(f"stacks {walked}, whole {100 * whole / max(walked, 1):.2f} %")
        bad = recorder.returncode != 0
        middle, last = seen[len(seen) // 2], seen[-1]
        for key in last:
            if last[key] > MOST_GROWTH * middle[key] + 2:
                print(f"{key} grew: {middle[key]} to {last[key]}")
                bad = True
        halves = [share for share in shares if share[0] > 100]
        if len(halves) > 1 and halves[-1][1] / halves[-1][0] < halves[0][1] / halves[0][0] - 0.05:
            print("fewer stacks are whole than before")
            bad = True
        if bad:
            print(said)
        sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
