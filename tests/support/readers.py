#!/usr/bin/env python3
"""readers.py FOLDER: every capture in the folder is read by perf, and by a newer one, as tacho reads it: the same samples, in
the same order, with the same text. Captures that a test damaged, or that hold no sample, are passed over.

Live tests run it on what they recorded when TACHO_READERS is set: `script/torture readers`. TACHO_NEWER_PERF names a perf newer
than the installed one."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build" / "bin"))
FIELDS = ["-F", "comm,pid,tid,time,event", "-G"]
# Threads whose name the capture does not tell have their process's in perf 6.1, as in tacho, and a number in perf 7.
NEWER_FIELDS = ["-F", "pid,tid,time,event", "-G"]
MOST_BYTES = 64 << 20  # of a capture: what is larger takes minutes to print


def text_of(*words):
    """Standard output of a program, by words of each line, or nothing when it failed."""
    environment = dict(os.environ, HOME="/nonexistent", PAGER="cat", LC_ALL="C.UTF-8", TZ="UTC")
    environment.pop("TACHO_READERS", None)
    done = subprocess.run([str(word) for word in words], capture_output=True, stdin=subprocess.DEVNULL, env=environment, timeout=300)
    if done.returncode != 0:
        return None, done.stderr.decode(errors="replace")[-500:]
    return [" ".join(line.split()) for line in done.stdout.decode(errors="replace").split("\n")], ""


def is_whole(capture):
    """Whether the capture is neither damaged nor truncated."""
    done = subprocess.run([BIN / "tacho-report", "dump", "-i", capture], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode(errors="replace")
    return done.returncode == 0 and not any(word in said for word in ["unreadable", "cut short", "not closed"])


def difference(ours, theirs):
    """The first line that differs, or None."""
    for number, (mine, other) in enumerate(zip(ours, theirs), 1):
        if mine != other:
            return f"line {number}: {other!r}, tacho has {mine!r}"
    return f"{len(theirs)} lines, tacho has {len(ours)}" if len(ours) != len(theirs) else ""


def faults_of(capture, perfs):
    faults = []
    for perf, fields in perfs:
        ours, failed = text_of(BIN / "tacho-report", "script", "-f", *fields, "-i", capture)
        if ours is None:
            return [f"tacho: {failed}"]
        if not any(ours):
            return []
        theirs, failed = text_of(perf, "script", "-f", *fields, "-i", capture)
        found = failed if theirs is None else difference(ours, theirs)
        if found or theirs is None:
            faults.append(f"{perf}: {found}")
    return faults


def is_capture(path):
    with path.open("rb") as file:
        return file.read(8) == b"PERFILE2" and path.stat().st_size <= MOST_BYTES


def check(folder):
    """One line for each difference."""
    perfs = [("perf", FIELDS)]
    if newer := os.environ.get("TACHO_NEWER_PERF"):
        perfs.append((newer, NEWER_FIELDS))
    read, faults = 0, []
    for path in sorted(Path(folder).rglob("*")):
        if path.is_symlink() or not path.is_file() or not is_capture(path) or not is_whole(path):
            continue
        read += 1
        faults += [f"{path.name}: {fault}" for fault in faults_of(path, perfs)]
    print(f"readers: {read} captures, {len(faults)} faults", file=sys.stderr)
    return faults


if __name__ == "__main__":
    amiss = check(sys.argv[1])
    print("\n".join(amiss), file=sys.stderr)
    sys.exit(1 if amiss else 0)
