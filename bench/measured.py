"""Shared by measurements of --call-graph ehframe: running programs, their cost, and a recorder's memory."""
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build/bin"))


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{words}: status {done.returncode}\n{done.stderr}")
    return done


def spent(recorder, load):
    """CPU seconds of the load and of the recorder (None: the load runs alone), and the recorder's messages."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run(*recorder, "bash", "-c", "TIMEFORMAT='load %U %S'; time \"$@\" > /dev/null", "bash", *load)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user, system = re.search(r"load ([0-9.]+) ([0-9.]+)", done.stderr).groups()
    own = float(user) + float(system)
    return own, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - own, done.stderr


def held_by(process):
    """MB of memory and of BPF maps, descriptors and threads of a process."""
    status, maps = Path(f"/proc/{process}/status").read_text(), {}
    for info in Path(f"/proc/{process}/fdinfo").iterdir():
        try:
            text = info.read_text()
        except OSError:
            continue  # closed meanwhile
        size, number = re.search(r"^memlock:\s*(\d+)", text, re.M), re.search(r"^map_id:\s*(\d+)", text, re.M)
        if size and number:
            maps[number.group(1)] = int(size.group(1))
    return {"MB": int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024, "MB of maps": sum(maps.values()) / 2**20,
            "descriptors": len(os.listdir(f"/proc/{process}/fd")), "threads": int(re.search(r"Threads:\s+(\d+)", status).group(1))}
