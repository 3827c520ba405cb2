#!/usr/bin/env python3
"""Captures of an arm64 machine: `perf record` runs in an emulated one, and tacho must find the stacks that perf found there.

  tests/vm/arm64/captures.py [--folder DIR] [--only NAME] [--seconds 3] [--again] [--simpleperf PROGRAM]

Downloads Debian's kernel, perf and libc of arm64 into DIR (nothing is installed), compiles programs for it, boots that kernel
under QEMU, records, and takes out the captures and what perf printed of them. --again compares what DIR has from before.
--simpleperf: a simpleperf for arm64, linked statically, which records as well; perf prints its captures.
Needs qemu-system-arm, gcc-aarch64-linux-gnu, cpio, apt, dpkg and the built programs (TACHO_BIN, or build/bin)."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import stacks

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build/bin"))
PACKAGES = ["linux-perf", "libc6", "busybox-static"]  # and what they depend on
KERNEL = "linux-image-arm64"
MODULES = ["drivers/virtio/virtio_mmio.ko", "drivers/block/virtio_blk.ko"]
DISK = 1 << 30  # bytes, sparse
PATIENCE = 900  # seconds, for the machine
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


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def apt_of_arm64(folder):
    """An environment in which apt knows arm64 alone, and has its lists and files in the folder."""
    apt = folder / "apt"
    for name in ("state/lists/partial", "cache/archives/partial", "sources"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    for source in [*Path("/etc/apt/sources.list.d").glob("debian.sources"), *Path("/etc/apt").glob("sources.list")]:
        shutil.copy(source, apt / "sources" / ("debian.list" if source.suffix == ".list" else source.name))
    (apt / "apt.conf").write_text(f"""APT::Architecture "arm64"; APT::Architectures {{ "arm64"; }}; APT::Sandbox::User "root";
Debug::NoLocking "1"; APT::Install-Recommends "0";
Dir::State "{apt}/state"; Dir::State::status "{apt}/status"; Dir::Cache "{apt}/cache";
Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "{apt}/sources";
""")
    return {**os.environ, "APT_CONFIG": str(apt / "apt.conf")}


def unpack_packages(folder):
    """The folder with what the packages hold."""
    root = folder / "packages"
    if root.exists():
        return root
    environment = apt_of_arm64(folder)
    archives = folder / "apt/cache/archives"
    run("apt-get", "update", env=environment)
    run("apt-get", "install", "--download-only", "-y", *PACKAGES, env=environment)
    depends = run("apt-cache", "depends", KERNEL, env=environment)
    run("apt-get", "download", re.search(r"Depends: (linux-image-\S+)", depends).group(1), env=environment, cwd=archives)
    for archive in sorted(archives.glob("*.deb")):
        run("dpkg-deb", "-x", archive, folder / "unpacking")
    (folder / "unpacking").rename(root)
    return root


def libraries_of(program, root):
    """The shared libraries that it needs, by the names in its dynamic section, and theirs; the dynamic linker is one."""
    places, found, open_ones = [root / "lib/aarch64-linux-gnu", root / "usr/lib/aarch64-linux-gnu"], {}, [program]
    while open_ones:
        for name in re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", open_ones.pop())):
            path = next((place / name for place in places if (place / name).exists()), None)
            if path is None:
                sys.exit(f"{name} is in none of the packages")
            if name not in found:
                found[name] = path
                open_ones.append(path)
    return found


def script_of(captures, seconds):
    """What the machine runs: it records, and writes an archive of what that gave to its disk."""
    lines = ["#!/bin/busybox sh", "export PATH=/bin HOME=/root", "/bin/busybox --install -s /bin", "mount -t proc proc /proc",
             "mount -t sysfs sysfs /sys", "mount -t devtmpfs dev /dev", "mkdir -p /tmp /root /out",
             *(f"insmod /modules/{Path(module).name}" for module in MODULES), "cd /out", "uname -a > uname.txt", "cat /proc/cpuinfo > cpuinfo.txt",
             "cat /proc/kallsyms > kallsyms", "ulimit -c 0"]
    for name in captures:
        program, arguments, options = (CAPTURES | SIMPLEPERF)[name]
        recorder = f"simpleperf record -o {name}.data {options}" if name in SIMPLEPERF else f"perf record -m 4M -o {name}.data {options} --"
        lines += [f"echo recording {name}", f"{recorder} /load/{program} {arguments.format(seconds=seconds)} 2> {name}.said",
                  f"perf script --no-inline --max-stack 512 -i {name}.data -F {FIELDS} > {name}.txt 2> {name}.script.said"]
    return "\n".join([*lines, "cp -r /root/.debug debug 2> /dev/null", "ls -l", "tar cf /dev/vda . && sync && echo all is written", "poweroff -f", ""])


def machine_root(folder, packages, captures, seconds, simpleperf=None):
    """The machine's files, which tacho has as --symfs."""
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    for name in ("bin", "lib/aarch64-linux-gnu", "load", "modules", "proc", "sys", "dev"):
        (root / name).mkdir(parents=True)
    shutil.copy(next(packages.glob("**/bin/busybox")), root / "bin")
    shutil.copy(packages / "usr/bin/perf", root / "bin")
    if simpleperf:
        shutil.copy(simpleperf, root / "bin/simpleperf")
    for name, path in libraries_of(packages / "usr/bin/perf", packages).items():
        shutil.copy(path, root / "lib/aarch64-linux-gnu" / name)
    shutil.copy(packages / "lib/aarch64-linux-gnu/ld-linux-aarch64.so.1", root / "lib")
    modules = next((packages / "lib/modules").iterdir()) / "kernel"
    for module in MODULES:
        shutil.copy(modules / module, root / "modules")
    for name, (source, options) in BUILT.items():
        run(COMPILER, *options, "-Wl,--build-id", "-o", root / "load" / name, HERE / source)
    (root / "init").write_text(script_of(captures, seconds))
    (root / "init").chmod(0o755)
    return root


def boot(folder, packages, root, sve):
    """Runs a machine to its end, and puts what it wrote into DIR/out."""
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    image, disk, console = folder / "initramfs", folder / "disk", folder / "console.txt"
    with image.open("wb") as file:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], input=names.encode(), stdout=file, cwd=root, check=True)
    with disk.open("wb") as file:
        file.truncate(DISK)
    with console.open("wb") as file:
        # Return addresses can be signed; pauth-impdef is a signature that is quick to emulate.
        subprocess.run(["nice", "-n", "10", "qemu-system-aarch64", "-machine", "virt", "-cpu", f"max,pauth-impdef=on,sve={sve}", "-m", "2048", "-smp", "2", "-nographic",
                        "-nic", "none", "-no-reboot", "-kernel", next((packages / "boot").glob("vmlinuz-*")), "-initrd", image, "-append", "console=ttyAMA0 quiet panic=-1",
                        "-drive", f"file={disk},format=raw,if=none,id=disk", "-device", "virtio-blk-device,drive=disk"],
                       stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE)
    if "all is written" not in console.read_text(errors="replace"):
        sys.exit(f"the machine did not come to its end: see {console}")
    with tarfile.open(disk) as archive:
        archive.extractall(folder / "out")
    disk.unlink()


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
        packages = unpack_packages(options.folder)
        for sve, wanted in (("off", set(captures) - WITH_SVE), ("on", WITH_SVE & set(captures))):
            if wanted:
                boot(options.folder, packages, machine_root(options.folder, packages, sorted(wanted), options.seconds, options.simpleperf), sve)
    return stacks.compare_all(options.folder, BIN, captures, FIELDS)


if __name__ == "__main__":
    sys.exit(main())
