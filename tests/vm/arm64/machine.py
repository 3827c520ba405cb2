"""An emulated arm64 machine: Debian's kernel under QEMU, with a root folder that is made here and a script that it runs."""
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent
KERNEL = "+linux-image-arm64"  # as script/arm64-packages has it
MODULES = ["drivers/virtio/virtio_mmio.ko", "drivers/block/virtio_blk.ko"]
DISK = 1 << 30  # bytes, sparse
PATIENCE = 3600  # seconds


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def unpack_packages(folder, packages, suite=None):
    """Unpacks the packages and their dependencies; returns the folder."""
    run(ROOT / "script/arm64-packages", *(["--suite", suite] if suite else []), folder, *packages)
    return folder / "packages"


def libraries_of(program, places):
    """The shared libraries that it needs, by the names in its dynamic section, and theirs; the dynamic linker is one."""
    found, open_ones = {}, [program]
    while open_ones:
        for line in run("readelf", "-d", open_ones.pop()).splitlines():
            if "(NEEDED)" not in line:
                continue
            name = line.split("[")[1].rstrip("]")
            path = next((place / name for place in places if (place / name).exists()), None)
            if path is None:
                sys.exit(f"{name} is in none of the packages")
            if name not in found:
                found[name] = path
                open_ones.append(path)
    return found


def make_root(folder, packages, programs, lines, libraries=()):
    """The machine's files: busybox, the programs in /bin, their libraries, and an init that runs the lines in /out and then writes an
    archive of that folder to the disk. `libraries`: more folders with packages."""
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    for name in ("bin", "lib/aarch64-linux-gnu", "load", "modules", "proc", "sys", "dev", "etc", "tmp", "root", "out", "data"):
        (root / name).mkdir(parents=True)
    places = [each / name for each in (packages, *libraries) for name in ("lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu")]
    shutil.copy(next(packages.glob("**/bin/busybox")), root / "bin")
    for program in programs:
        shutil.copy(program, root / "bin")
        for name, path in libraries_of(program, places).items():
            shutil.copy(path, root / "lib/aarch64-linux-gnu" / name)
    shutil.copy(next(packages.glob("**/ld-linux-aarch64.so.1")), root / "lib")
    modules = next(packages.glob("**/lib/modules/*")) / "kernel"
    for module in MODULES:
        path = next(modules.glob(module + "*"))
        if path.suffix == ".xz":
            (root / "modules" / Path(module).name).write_bytes(subprocess.run(["xz", "-dc", path], capture_output=True, check=True).stdout)
        else:
            shutil.copy(path, root / "modules")
    begin = ["#!/bin/busybox sh", "export PATH=/bin HOME=/root LC_ALL=C", "/bin/busybox --install -s /bin", "mount -t proc proc /proc", "mount -t sysfs sysfs /sys",
             "mount -t devtmpfs dev /dev", "mount -t tracefs tracefs /sys/kernel/tracing", "mount -t tmpfs tmpfs /data",
             *(f"insmod /modules/{Path(module).name}" for module in MODULES), "ulimit -c 0", "cd /out", "uname -a > uname.txt",
             "cat /proc/cpuinfo > cpuinfo.txt"]
    end = ["ls -l", "tar cf /dev/vda . && sync && echo all is written", "poweroff -f", ""]
    (root / "init").write_text("\n".join([*begin, *lines, *end]))
    (root / "init").chmod(0o755)
    return root


def boot(folder, packages, root, sve="off", cpus=2):
    """Runs a machine to its end, and puts what it wrote into DIR/out."""
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    image, disk, other_disk, console = folder / "initramfs", folder / "disk", folder / "disk2", folder / "console.txt"
    with image.open("wb") as file:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], input=names.encode(), stdout=file, cwd=root, check=True)
    for path in (disk, other_disk):
        with path.open("wb") as file:
            file.truncate(DISK)
    drives = []
    for name, path in (("disk", disk), ("disk2", other_disk)):  # the last one is /dev/vda
        drives = ["-drive", f"file={path},format=raw,if=none,id={name}", "-device", f"virtio-blk-device,drive={name}", *drives]
    with console.open("wb") as file:
        # Return addresses can be signed; pauth-impdef is a signature that is quick to emulate.
        subprocess.run(["nice", "-n", "5", "qemu-system-aarch64", "-machine", "virt", "-cpu", f"max,pauth-impdef=on,sve={sve}", "-m", "2048", "-smp", str(cpus),
                        "-nographic", "-nic", "none", "-no-reboot", "-kernel", next((packages / "boot").glob("vmlinuz-*")), "-initrd", image,
                        "-append", "console=ttyAMA0 quiet panic=-1", *drives],
                       stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE)
    if "all is written" not in console.read_text(errors="replace"):
        print(f"the machine did not come to its end: see {console}", file=sys.stderr)
    with tarfile.open(disk) as archive:
        archive.extractall(folder / "out")
    disk.unlink()
    other_disk.unlink()
