#!/usr/bin/env python3
"""Captures of an arm64 machine: `perf record` runs in an emulated one, and tacho must find the stacks that perf found there.

  tests/vm/arm64/captures.py [--folder DIR] [--only NAME] [--seconds 3] [--again] [--simpleperf PROGRAM]

Downloads Debian's kernel, perf and libc of arm64 into DIR (nothing is installed), compiles programs for it, boots that kernel
under QEMU, records, and takes out the captures and what perf printed of them. --again compares what DIR has from before.
--simpleperf: a simpleperf for arm64, linked statically, which records as well; perf prints its captures.
Needs qemu-system-arm, gcc-aarch64-linux-gnu, cpio, apt, dpkg and the built programs (TACHO_BIN, or build/bin)."""
import argparse
import os
import shutil
import sys
from pathlib import Path

import machine
import stacks

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build/bin"))
PACKAGES = ["linux-perf", "libc6", "busybox-static", machine.KERNEL]
COMPILER = "aarch64-linux-gnu-gcc"
CALLS = ["-O2", "-fomit-frame-pointer", "-pthread"]
BARE = ["-O2", "-fomit-frame-pointer", "-nostdlib", "-static", "-fno-stack-protector", "-fasynchronous-unwind-tables",
        "-Wl,--eh-frame-hdr,-z,max-page-size=4096,-z,noseparate-code"]
# program: source, options of the compiler. pac signs return addresses, and so the .cfi_negate_ra_state of its rules.
BUILT = {"plain": ("calls.c", CALLS),
         "pac": ("calls.c", [*CALLS, "-mbranch-protection=standard"]),
         "pac_leaf": ("calls.c", [*CALLS, "-mbranch-protection=pac-ret+leaf+b-key", "-static-pie"]),
         "debug_frame": ("calls.c", [*CALLS, "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
         "bare": ("bare.c", BARE),
         "bare_pac": ("bare.c", [*BARE, "-mbranch-protection=standard"]),
         "bare_fp": ("bare.c", [*BARE, "-fno-omit-frame-pointer", "-momit-leaf-frame-pointer"])}
# capture: program, its arguments, options of perf record
CLOCK = "-F 199 -e cpu-clock:u --call-graph"
CAPTURES = {"plain": ("plain", "{seconds}", f"{CLOCK} dwarf,32768"),
            "pac": ("pac", "{seconds}", f"{CLOCK} dwarf,32768"),
            "pac_leaf": ("pac_leaf", "{seconds}", f"{CLOCK} dwarf,32768"),
            "debug_frame": ("debug_frame", "{seconds}", f"{CLOCK} dwarf,32768"),
            "kernel": ("plain", "{seconds}", "-F 199 -e cpu-clock --call-graph dwarf,16384"),
            "fp": ("pac", "{seconds}", f"{CLOCK} fp"),
            "bare": ("bare", "", "-z -c 9700001 -e cpu-clock:u --call-graph dwarf,8192"),
            "bare_pac": ("bare_pac", "", "-z -c 9700001 -e cpu-clock:u --call-graph dwarf,8192"),
            "bare_fp": ("bare_fp", "", "-z -c 9700001 -e cpu-clock:u --call-graph fp"),
            "sve": ("pac", "{seconds}", "-c 1000003 -e cycles:u --call-graph dwarf,32768")}
# The same, of simpleperf record: stacks kept as copies, stacks that it unwound itself, chains by frame pointers.
SIMPLEPERF_CLOCK = "-f 199 -e cpu-clock:u --call-graph"
SIMPLEPERF = {"simpleperf": ("plain", "{seconds}", f"{SIMPLEPERF_CLOCK} dwarf,32768 --no-unwind"),
              "simpleperf_pac": ("pac", "{seconds}", f"{SIMPLEPERF_CLOCK} dwarf,32768 --no-unwind"),
              "simpleperf_debug_frame": ("debug_frame", "{seconds}", f"{SIMPLEPERF_CLOCK} dwarf,32768 --no-unwind"),
              "simpleperf_unwound": ("plain", "{seconds}", f"{SIMPLEPERF_CLOCK} dwarf"),
              "simpleperf_fp": ("pac", "{seconds}", f"{SIMPLEPERF_CLOCK} fp")}
# With SVE perf asks for one more register (vg), which the kernel gives with the processor's own counters alone: another machine.
WITH_SVE = {"sve"}
FIELDS = "comm,tid,time,event,ip,sym,dso"


def script_of(captures, seconds):
    """What the machine runs: it records, and reads the captures."""
    lines = ["cat /proc/kallsyms > kallsyms"]
    for name in captures:
        program, arguments, options = (CAPTURES | SIMPLEPERF)[name]
        recorder = f"simpleperf record -o {name}.data {options}" if name in SIMPLEPERF else f"perf record -m 4M -o {name}.data {options} --"
        lines += [f"echo recording {name}", f"{recorder} /load/{program} {arguments.format(seconds=seconds)} 2> {name}.said",
                  f"perf script --no-inline --max-stack 512 -i {name}.data -F {FIELDS} > {name}.txt 2> {name}.script.said"]
    return [*lines, "cp -r /root/.debug debug 2> /dev/null"]


def machine_root(folder, packages, captures, seconds, simpleperf=None):
    """The machine's files, which tacho has as --symfs."""
    root = machine.make_root(folder, packages, [packages / "usr/bin/perf"], script_of(captures, seconds))
    if simpleperf:
        shutil.copy(simpleperf, root / "bin/simpleperf")
    for name, (source, options) in BUILT.items():
        machine.run(COMPILER, *options, "-Wl,--build-id", "-o", root / "load" / name, HERE / source)
    return root


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/tacho-arm64"))
    parser.add_argument("--only", choices=CAPTURES | SIMPLEPERF, action="append")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--simpleperf", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    captures = options.only or [*CAPTURES, *(SIMPLEPERF if options.simpleperf else ())]
    if set(captures) & set(stacks.LIKE_PLAIN) and "plain" not in captures:
        captures.insert(0, "plain")
    if not options.again:
        packages = machine.unpack_packages(options.folder, PACKAGES)
        for sve, wanted in (("off", set(captures) - WITH_SVE), ("on", WITH_SVE & set(captures))):
            if wanted:
                machine.boot(options.folder, packages, machine_root(options.folder, packages, sorted(wanted), options.seconds, options.simpleperf), sve)
    return stacks.compare_all(options.folder, BIN, captures, FIELDS)


if __name__ == "__main__":
    sys.exit(main())
