#!/usr/bin/env python3
"""What recording costs, perf and tacho in turns in one run: recorders of the whole system beside a program that calls
getppid(2) from 8 frames deep, whose every call is an event with its stack.

  bench/record_against_perf.py [--runs 5] [--seconds 10] [--events 500000] [--first "chrt -f 20"]

Prints medians: CPU time of the recorder for an event (plain and compressed, less what it takes without events), CPU time
of the traced program for a call, what is lost at full speed with defaults, and the memory of the recorder. Needs root, perf
and the built programs (TACHO_BIN, or build/bin). Only the ratios mean something on another machine."""
import argparse
import os
import resource
import shlex
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build/bin"))
DEPTH = "8"
EVENT = "syscalls:sys_enter_getppid"


def cpu_of(process):
    """Waits for it. CPU time in ns."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1e9


def most_memory(process):
    """The most it had so far, MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def load(first, calls):
    """(CPU ns of one call, the load's pid)."""
    process = subprocess.Popen([*first, BIN / "getppid_load", str(calls), DEPTH])
    return cpu_of(process) / calls, process.pid


class Recorder:
    """perf or tacho with some options, as one column of the table."""

    def __init__(self, name, words, first):
        self.name, self.words, self.first = name, words, first

    def run(self, calls, folder):
        """One recording of so many calls."""
        output, log = folder / "one.data", folder / "log"
        output.unlink(missing_ok=True)
        with open(log, "wb") as messages:
            process = subprocess.Popen([*self.first, *self.words, "-a", "--call-graph", "fp", "-e", EVENT, "-o", output], stdout=messages,
                                       stderr=messages)
        while not output.exists() or output.stat().st_size == 0:
            if process.poll() is not None:
                raise SystemExit(f"{self.name}: {log.read_text()}")
            time.sleep(0.01)
        time.sleep(1)  # until it records: perf does not say when
        began = time.monotonic()
        load_ns, pid = load(self.first, calls) if calls else (0, 0)
        took = time.monotonic() - began
        time.sleep(0.3)
        memory = most_memory(process)
        process.send_signal(signal.SIGINT)
        recorder_ns = cpu_of(process)
        samples = self.samples(output, pid) if calls else 0
        size = output.stat().st_size
        return {"recorder": recorder_ns, "load": load_ns, "lost": calls - samples, "memory": memory,
                "rate": calls / took, "bytes": size}

    @staticmethod
    def samples(capture, pid):
        """Samples of the load; calls of getppid by other processes are not counted."""
        words = [BIN / "tacho-report", "script", "--pid", str(pid), "-F", "event", "-G", "-i", capture]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as report:
            return sum(1 for _ in report.stdout)


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--events", type=int, default=500000)
    parser.add_argument("--seconds", type=float, default=10, help="of the run at full speed with defaults")
    parser.add_argument("--first", default="", help='words before each program, as "chrt -f 20" on a busy machine')
    asked = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("needs root")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    first = shlex.split(asked.first)
    perf, tacho = ["perf", "record"], [BIN / "tacho-record", "--no-pack"]
    recorders = [Recorder("perf", perf, first), Recorder("perf -z", [*perf, "-z"], first),
                 Recorder("tacho -z0", [*tacho, "-z0"], first), Recorder("tacho", tacho, first)]
    with tempfile.TemporaryDirectory(prefix="tacho-bench-") as name:
        folder = Path(name)
        alone = statistics.median(load(first, asked.events)[0] for _ in range(asked.runs))
        rows = {recorder: [] for recorder in recorders}
        for _ in range(asked.runs):
            for recorder in recorders:
                idle = recorder.run(0, folder)
                busy = recorder.run(asked.events, folder)
                busy["event"] = (busy["recorder"] - idle["recorder"]) / asked.events
                rows[recorder].append(busy)
        print(f"{asked.runs} runs of {asked.events} events; a call alone takes {alone:.0f} ns")
        print("| | CPU of the recorder, ns an event | a traced call, ns | slowdown | lost | memory, MB | bytes an event |")
        print("|---|---|---|---|---|---|---|")
        for recorder in recorders:
            mine = rows[recorder]
            print(f"| {recorder.name} | {median(mine, 'event'):.0f} | {median(mine, 'load'):.0f} | {median(mine, 'load') / alone:.1f} | "
                  f"{sum(row['lost'] for row in mine)} of {asked.runs * asked.events} | {median(mine, 'memory'):.0f} | "
                  f"{median(mine, 'bytes') / asked.events:.0f} |")
        for recorder in (recorders[0], recorders[3]):
            traced = median(rows[recorder], "load")
            calls = int(asked.seconds * 1e9 / traced)
            done = recorder.run(calls, folder)
            print(f"full speed, defaults, {recorder.name}: {calls} events at {done['rate']:.0f} a second, {done['lost']} lost, "
                  f"{done['memory']:.0f} MB")


if __name__ == "__main__":
    main()
