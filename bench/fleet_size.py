#!/usr/bin/env python3
"""A fleet at size: puts captures of simulated hosts into a database, compares its sums with those of the captures, and times the
questions of tacho fleet.

    bench/fleet_size.py --db fleet.db [--captures 200] [--seconds 10] [--folder DIR]

Records two releases of four services on this host, which needs root: the second release is a copy of the program with another
build id. Each capture is a copy of one of these with another host name and time; the first one of a service has no names yet. A
broken and a hostile file are among them. --db: a file for DuckDB, whose library TACHO_DUCKDB names; http://HOST:PORT/DATABASE of ClickHouse;
or chdb, ClickHouse's engine for as long as this runs (TACHO_CHDB names node_modules/chdb). The captures are removed, the
database stays."""
import argparse
import json
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build/bin"))
sys.path.insert(0, str(ROOT / "tests/support"))
import chdb_engine  # noqa: E402

HOSTNAME, CLOCK_DATA = 3, 29  # features of the header
HOUR = 3_600_000_000_000      # ns
RATE = 20000                  # samples a second
RELEASES = ("2.0", "2.1")
BUILD_ID = b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0"  # an ELF file's note of 20 bytes
# Two processes each, with stacks of different kinds.
SERVICES = {
    "shop": ["python3", "-c", "import json, re\nd = {str(i): [i, {'x': 'y' * 9}] for i in range(900)}\n"
             "while True: json.loads(json.dumps(d)); re.sub('y+', 'z', str(d))"],
    "search": ["perl", "-e", "while (1) { my %h; $h{$_ % 997} .= chr(65 + $_ % 26) for 1 .. 9999; join ',', sort keys %h }"],
    "store": ["gzip", "-9c", "/dev/zero"],
    "front": ["python3", "-c", "import os\nwhile True:\n for folder, _, files in os.walk('/usr/include'):\n"
              "  for file in files: os.stat(os.path.join(folder, file))"],
}


@dataclass
class Run:
    out: bytes
    said: str
    status: int
    wall: float
    cpu: float      # seconds
    memory: float   # MB at the most


def run(*words, status=0):
    """status: None is any."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=said, stdin=subprocess.DEVNULL)
        out = child.stdout.read()
        child.stdout.close()
        _, code, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(code)
        said.seek(0)
        done = Run(out, said.read().decode(errors="replace").strip(), child.returncode, time.monotonic() - begun,
                   used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
    if status is not None and done.status != status:
        sys.exit(f"{' '.join(map(str, words))}: status {done.status}\n{done.said}")
    return done


def sections(data):
    """{feature: (offset, size)} of a capture's header."""
    data_offset, data_size = struct.unpack_from("<QQ", data, 40)
    bits = int.from_bytes(data[72:104], "little")
    at, found = data_offset + data_size, {}
    for feature in range(256):
        if bits >> feature & 1:
            found[feature] = struct.unpack_from("<QQ", data, at)
            at += 16
    return found


def copy_of(program, to):
    """The program with another build id. Returns how to start it."""
    data = Path(program).read_bytes()
    at = data.index(BUILD_ID) + len(BUILD_ID)
    to.write_bytes(data[:at] + bytes(byte ^ 0x5a for byte in data[at:at + 20]) + data[at + 20:])
    to.chmod(0o755)
    home = run(program, "-c", "import sys; print(sys.base_prefix)").out.decode().strip() if "python" in to.name else ""
    return to, dict(os.environ, PYTHONHOME=home) if home else None


class Service:
    """A release of a service. Its captures: `bare` without names of its files, and `packed` with them; neither is compressed.
    They stay files: the memory of a child (ru_maxrss) is at least what this process has."""

    def __init__(self, folder, name, release, seconds):
        self.name, self.release = name, release
        self.bare, self.packed = folder / f"{name}-{release}-bare.data", folder / f"{name}-{release}.data"
        program, *words = SERVICES[name]
        program, environment = os.path.realpath(shutil.which(program)), None
        if release != RELEASES[0]:
            program, environment = copy_of(program, folder / f"{name}-{os.path.basename(program)}")
        loads = [subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, env=environment) for _ in range(2)]
        recorded = folder / "recorded.data"
        try:
            run(BIN / "tacho", "record", "-q", "--no-pack", "-k", "monotonic", "-F", RATE, "-g", "-e", "cpu-clock", "-p", ",".join(str(load.pid) for load in loads),
                "-o", recorded, "--", "sleep", seconds, status=None)
        finally:
            for load in loads:
                load.kill()
                load.wait()
        run(BIN / "tacho", "convert", "--plain", recorded, "-o", self.bare)
        run(BIN / "tacho", "pack", "--quiet", recorded, status=None)
        run(BIN / "tacho", "convert", "--plain", recorded, "-o", self.packed)
        self.count()

    def count(self):
        """Its samples, the sum of their periods, and that by stack, as tacho report and tacho folded print them."""
        [report] = json.loads(run(BIN / "tacho", "report", "-i", self.packed, "--json", "--sort", "comm", status=None).out)["reports"]
        [event] = report["events"]
        self.samples, self.period = event["samples"], event["period"]
        self.stacks = folded_sums(run(BIN / "tacho", "folded", "-i", self.packed, "--by", "none", status=None).out)

    def capture(self, is_bare, host, wall, path):
        """As another host would have recorded it at another time."""
        shutil.copyfile(self.bare if is_bare else self.packed, path)
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
            found = sections(data)
            at, size = found[HOSTNAME]
            data[at + 4:at + size] = host.encode().ljust(size - 4, b"\0")
            struct.pack_into("<Q", data, found[CLOCK_DATA][0] + 8, wall)


def folded_sums(text):
    sums = Counter()
    for line in text.decode().splitlines():
        stack, count = line.rsplit(" ", 1)
        sums[stack] += int(count)
    return sums


class Fleet:
    def __init__(self, database, folder):
        self.database, self.folder = database, folder

    def ask(self, verb, *words, status=0):
        return run(BIN / "tacho", "fleet", verb, "--db", self.database, *words, status=status)

    def rows(self, verb, *words):
        return [json.loads(line) for line in self.ask(verb, "--json", *words).out.splitlines()]

    def unnamed_percent(self):
        return sum(row["self_percent"] for row in self.rows("top", "--top", 1000000) if row["function"].startswith("["))

    def bytes(self):
        """Of the database's files; 0: they are on a server."""
        path = Path(self.database)
        return path.stat().st_size if path.is_file() else sum(file.stat().st_size for file in (self.folder / "engine").rglob("*") if file.is_file())


def load(fleet, services, given):
    """Loads the captures; how many of each of the services."""
    begin = time.time_ns() // HOUR * HOUR - 9 * 24 * HOUR
    (fleet.folder / "none").mkdir()
    loaded, runs, bytes_ = Counter(), [], 0
    for number in range(given.captures):
        round_ = number // len(SERVICES)
        at = number % len(SERVICES) + (len(SERVICES) if number >= given.captures // 2 else 0)
        service = services[at]
        path = fleet.folder / f"{service.name}-{number}.capture"
        service.capture(round_ == 0, f"host-{round_ % given.hosts:02}", begin + round_ * HOUR, path)
        bytes_ += path.stat().st_size
        words = ["--service", service.name, "--release", service.release, "--host-class", "old" if round_ % 2 else "new"]
        words += ["--symfs", fleet.folder / "none"] if round_ == 0 else []
        others = []
        if number == given.captures // 2:
            others = [fleet.folder / "broken.capture", fleet.folder / "hostile.capture"]
            shutil.copyfile(service.packed, others[0])
            os.truncate(others[0], others[0].stat().st_size // 2)
            others[1].write_bytes(b"PERFILE2" + os.urandom(4096))
        done = fleet.ask("load", *words, *others, path, status=3 if others else 0)
        if others:
            print(f"among them a broken and a hostile file: {done.out.decode().strip()}\n  " + done.said.replace("\n", "\n  "))
        path.unlink()
        loaded[at] += 1
        runs.append(done)
        if number == len(SERVICES) - 1:
            print(f"without names: {fleet.unnamed_percent():.1f} % of the samples")
    samples = sum(service.samples * loaded[at] for at, service in enumerate(services))
    wall, cpu = sum(one.wall for one in runs), sum(one.cpu for one in runs)
    print(f"{samples} samples in {given.captures} captures of {bytes_ / 1e6:.0f} MB: loaded in {wall:.0f} s, {samples / wall:.0f} a second "
          f"({cpu:.0f} s CPU, {max(one.memory for one in runs):.0f} MB)")
    if fleet.bytes() > 0:
        print(f"database: {fleet.bytes() / 1e6:.0f} MB, {fleet.bytes() / samples:.1f} bytes a sample")
    return loaded, samples


def compare(fleet, services, loaded):
    """Whether the sums of the database are those of the captures; its stacks."""
    stacks = Counter()
    for at, service in enumerate(services):
        for stack, count in service.stacks.items():
            stacks[stack] += count * loaded[at]
    period = sum(service.period * loaded[at] for at, service in enumerate(services))
    asked = folded_sums(fleet.ask("folded").out)
    print(f"without names, once captures had them: {fleet.unnamed_percent():.1f} %")
    by_capture = fleet.rows("captures")
    return {"folded is the sum of tacho folded": asked == stacks, "its total is that of tacho report": sum(asked.values()) == period,
            "captures have it, too": sum(row["value"] for row in by_capture) == period,
            "all captures are there": len(by_capture) == sum(loaded.values())}, asked


def measure(folder, given):
    fleet = Fleet(given.db, folder)
    services = [Service(folder, name, release, given.seconds) for release in RELEASES for name in SERVICES]
    for service in services:
        print(f"{service.name} {service.release}: {service.samples} samples, {len(service.stacks)} stacks, {service.packed.stat().st_size / 1e6:.0f} MB")
    loaded, _ = load(fleet, services, given)
    equal, stacks = compare(fleet, services, loaded)
    print("\n".join(f"{what}: {is_so}" for what, is_so in equal.items()))
    function = max(stacks, key=stacks.get).split(";")[-1]
    half = time.time_ns() // HOUR * 3600 - 9 * 24 * 3600 + 1800  # seconds, between hours
    questions = {
        "flame graph of everything": ("flamegraph", "-o", folder / "all.svg"), "folded text of everything": ("folded", ),
        "flame graph of a service": ("flamegraph", "--service", "shop", "-o", folder / "one.svg"),
        "diff of two releases": ("diff", "--base", f"release={RELEASES[0]}", "--release", RELEASES[1]),
        "diff of two host classes": ("diff", "--base", "host-class=old", "--host-class", "new"), "top": ("top", ),
        f"series of {function} by hour": ("series", "--function", function),
        "the same by 10 s, of all samples": ("series", "--function", function, "--step", 10),
        "the same by 10 s, of a service": ("series", "--function", function, "--step", 10, "--service", "shop"),
        "captures of that function": ("captures", "--function", function),
        "top of 10 hours from half past": ("top", "--from", half, "--to", half + 10 * 3600),
    }
    for name, words in questions.items():
        best = min((fleet.ask(*words) for _ in range(3)), key=lambda one: one.wall)
        print(f"{name}: {best.wall:.2f} s ({best.cpu:.2f} s CPU, {best.memory:.0f} MB)")
    return all(equal.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", required=True)
    parser.add_argument("--captures", type=int, default=200)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--folder", default=None)
    given = parser.parse_args()
    if not given.db.startswith("http://") and os.path.exists(given.db):
        sys.exit(f"{given.db} is there already; its totals would not be those of this run")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder, engine = Path(name), None
        if given.db == "chdb":
            if chdb_engine.why_absent():
                sys.exit(chdb_engine.why_absent())
            (folder / "engine").mkdir()
            engine, given.db = chdb_engine.start(folder / "engine")
        try:
            sys.exit(0 if measure(folder, given) else 1)
        finally:
            if engine:
                engine.kill()
                engine.wait()


if __name__ == "__main__":
    main()
