#!/usr/bin/env python3
"""What tacho records on arm64: the programs that `script/build --arm64` built run in an emulated machine (machine.py), and the captures
are read here. Prints a row for each check; the exit status is 1 if one failed.

  tests/vm/arm64/record.py [--folder DIR] [--suite trixie] [--only NAME] [--cpus 2] [--again]

--suite: another Debian's kernel and C library than bookworm's. --again reads what DIR has from before. Needs qemu-system-arm,
g++-aarch64-linux-gnu, cpio, clang, build-arm64/bin, and programs that run here (TACHO_BIN, or build/bin); for the rows of Go and
Rust Debian's go and rustc, whose library for arm64 is unpacked with the rest."""
import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import machine

HERE = Path(__file__).resolve().parent
ROOT = machine.ROOT
sys.path.append(str(ROOT / "tests/support"))
import stack_pairs  # noqa: E402

LOADS = ROOT / "bench/stack_loads"
BIN = Path(os.environ.get("TACHO_BIN", ROOT / "build/bin"))
ARM = ROOT / "build-arm64"
PATIENCE = 600  # seconds for a recording
PROGRAMS = ["tacho", "tacho-record", "tacho-report"]
PACKAGES = ["linux-perf", "libc6", "libstdc++6", "libstd-rust-dev", "python3-minimal", "busybox-static", machine.KERNEL]
C, CXX = ("aarch64-linux-gnu-gcc", "-O2", "-Wl,--build-id"), ("aarch64-linux-gnu-g++", "-O2", "-Wl,--build-id")
CLANG = ("clang", "--target=aarch64-linux-gnu", "-Wl,--build-id")
BUILT = {"plain": (*C, "-fomit-frame-pointer", "-pthread", "calls.c"),
         "pac": (*C, "-fomit-frame-pointer", "-pthread", "-mbranch-protection=standard", "calls.c"),
         "pac_leaf": (*C, "-fomit-frame-pointer", "-pthread", "-mbranch-protection=pac-ret+leaf+b-key", "-static-pie", "calls.c"),
         "debug_frame": (*C, "-g", "-fomit-frame-pointer", "-pthread", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "calls.c"),
         "deep": (*CXX, "-fomit-frame-pointer", "-pthread", "deep.cc"),
         "hard_cxx": (*CXX, "-fomit-frame-pointer", "-pthread", LOADS / "hard_stacks.cc"),
         "clang": (*CLANG, "-O2", "-fomit-frame-pointer", "-pthread", "calls.c"),
         "hard_clang": (*CLANG, "--driver-mode=g++", "-O2", "-fomit-frame-pointer", "-pthread", LOADS / "hard_stacks.cc"),
         "hard_rust": ("rustc", "-O", "--target=aarch64-unknown-linux-gnu", "--sysroot={packages}/usr", "-Clinker=aarch64-linux-gnu-gcc",
                       LOADS / "hard_stacks.rs"),
         "hard_go": ("env", "GOARCH=arm64", "CGO_ENABLED=0", "go", "build", LOADS / "hard_stacks.go"),
         "instrumented": (*C, "-O1", "-finstrument-functions", "-pthread", "work.c"),
         "work": (*C, "-O1", "-g", "-pthread", "work.c")}
CLOCK = "-F 199 -e cpu-clock:u"
PYTHON = "python3 -S -c 'import re, time; end = time.time() + 10\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nwhile time.time() < end: f(12); sorted(range(2000), key=lambda x: re.sub(\"1\", \"2\", str(x)))'"


class Check:
    """`record`: options and command of tacho record. `lines`: expressions that lines of `tacho script`'s output match. `whole`: share of the
    stacks in the second half of the recording; unwind tables take seconds in an emulated machine. `pairs`: each stack is there
    twice, walked in the kernel and copied."""

    def __init__(self, record, *lines, status=0, whole=None, pairs=False, least=1):
        self.record, self.lines, self.status, self.whole, self.pairs, self.least = record, lines, status, whole, pairs, least


def pairs_of(command, call="getppid"):
    """The same calls by --call-graph ehframe and from copies of the stack; the first runs pass while tables are read."""
    return Check(f"-g {' '.join(stack_pairs.events(f'syscalls:sys_enter_{call}', copied=32768))} -- sh -c 'for i in 1 2 3 4 5 6; do {command}; sleep 1; done'",
                 whole=0.99, pairs=True)


WORK = "-- /load/work 2"
CHECKS = {
    # events
    "clock": Check(f"-g {CLOCK} -- /load/plain 10", r"recurse"),
    "tracepoint": Check("-g -a -e sched:sched_switch -- /load/work 2", r"sched:sched_switch", r"uses_files|holds_lock|main"),
    "syscall_tracepoint": Check(f"-e syscalls:sys_enter_openat {WORK}", r"sys_enter_openat.*filename"),
    "kprobe": Check(f"-e 'kprobe:vfs_read(file, count)' {WORK}", r"count"),
    "kretprobe": Check(f"-e 'kretprobe:vfs_read(got=ret:s64)' {WORK}", r"got"),
    "uprobe": Check(f"-g -e 'uprobe:/load/work:multiplied(a=arg1, b=arg2, e=arg5, text=arg6:string)' {WORK}", r"b=2 e=5 text=\"first\"", r"calls", least=6),
    "uprobe_names": Check(f"-e 'uprobe:/load/work:multiplied(a, b, text:string)' {WORK}", r"b=2 text=\"first\"", least=6),
    "uretprobe": Check(f"-g -e 'uretprobe:/load/work:multiplied(got=ret)' {WORK}", r"got=", r"calls", least=6),
    "filter": Check(f"-e 'uprobe:/load/work:multiplied(a=arg1)' --filter 'a == 1' {WORK}", r"a=1", least=2),
    "object": Check(f"-e /load/opens.bpf.o {WORK}", r"opened", least=2),
    "counters": Check("-e task-clock,context-switches,page-faults -- /load/work 5", r"page-faults"),
    # recorders of the catalogue
    "alloc": Check(f"-g -e alloc {WORK}", r"bytes|alloc"),
    "bio": Check("-a -e bio -- dd if=/dev/zero of=/dev/vdb bs=4k count=8 oflag=direct", r"bio"),
    "bpfstat": Check("-a -e bpfstat,cpu-clock -- /load/work 2", r"bpfstat"),
    "calls": Check(f"-e \"calls/binary='/load/work'/\" {WORK}", r"multiplied", r"calls", least=6),
    "cap": Check("-e cap -- chroot / /bin/true", r"cap"),
    "dns": Check(f"-e dns {WORK}", r"localhost"),
    "exec": Check(f"-e exec {WORK}", r"/bin/true"),
    "fastcalls": Check("-e \"fastcalls/binary='/load/instrumented'/\" -- /load/instrumented 5", r"multiplied"),
    "follow": Check("-a -e 'follow/type=struct bio,start=submit_bio/' -- dd if=/dev/zero of=/dev/vdb bs=4k count=4 oflag=direct", r"follow"),
    "func": Check(f"-e \"func/name='/load/work:mul*'/\" {WORK}", r"multiplied"),
    "func_kernel": Check(f"-e \"func/name='vfs_read'/\" {WORK}", r"vfs_read"),
    "kalloc": Check(f"-a -g -e kalloc/pages/ {WORK}", r"kalloc"),
    "klock": Check("-a -g -e klock -- sh -c 'starts() { for i in $(seq 150); do /bin/true; done; }; starts & starts & starts & wait'", r"klock"),
    "lock": Check(f"-g -e lock {WORK}", r"mutex", r"waits_for_lock"),
    "offcpu": Check(f"-g -e offcpu {WORK}", r"offcpu", r"holds_lock", r"nanosleep"),
    "offcputime": Check(f"-g -e offcputime {WORK}", r"holds_lock"),
    "oom": Check("-a -e oom -- sh -c 'cd /sys/fs/cgroup; echo +memory > cgroup.subtree_control; mkdir small; echo 8M > small/memory.max; "
                 "(exec sh -c \"echo \\$\\$ > small/cgroup.procs; exec dd if=/dev/zero of=/dev/null bs=64M count=1\"); true'", r"oom"),
    "open": Check(f"-g -e open {WORK}", r"known", r"uses_files"),
    "profile": Check("-e profile -- /load/plain 5", r"recurse"),
    "trace": Check(f"-e \"trace/probe='uprobe:/load/work:multiplied(a=arg1)',if='a == 1'/\" {WORK}", r"a=1", least=2),
    "argdist": Check(f"-e \"argdist/probe='uprobe:/load/work:multiplied(a=arg1)',value=a/\" {WORK}", r"argdist|multiplied"),
    "pagecache": Check("-a -e pagecache -- dd if=/dev/vdb of=/dev/null bs=64k count=8", r"pagecache"),
    "runqlat": Check("-a -e runqlat -- /load/plain 1", r"runqlat"),
    "signals": Check(f"-g -e signals {WORK}", r"USR1"),
    "stackcount": Check(f"-g -e \"stackcount/name='/load/work:multiplied'/\" {WORK}", r"calls"),
    "syscall": Check(f"-g -e syscall {WORK}", r"fsync", r"openat"),
    "syscount": Check(f"-e syscount {WORK}", r"fsync|openat"),
    "tcp": Check(f"-e tcp {WORK}", r"127\.0\.0\.1"),
    "tcpretrans": Check("-a -e tcpretrans -- sh -c 'ip route add 10.9.9.9 dev lo; timeout 5 nc 10.9.9.9 80; true'", r"10\.9\.9\.9"),
    "vfsio": Check(f"-g -e vfsio {WORK}", r"vfsio", r"uses_files"),
    "waking": Check(f"-g -e waking {WORK}", r"waking"),
    # stacks by .eh_frame in BPF
    "eh_c": Check(f"--call-graph ehframe {CLOCK} -- /load/plain 10", whole=0.99),
    "eh_kernel": Check("--call-graph ehframe -F 199 -e cpu-clock -- /load/plain 10", whole=0.99),
    "eh_signed": Check(f"--call-graph ehframe {CLOCK} -- /load/pac 10", whole=0.99),
    "eh_signed_static": Check(f"--call-graph ehframe {CLOCK} -- /load/pac_leaf 10", whole=0.9),
    "eh_debug_frame": Check(f"--call-graph ehframe {CLOCK} -- /load/debug_frame 10", whole=0.99),
    "eh_cxx": Check(f"--call-graph ehframe {CLOCK} -- /load/deep 10", r"throws_at", r"Nested::area", whole=0.99),
    "eh_python": Check(f"--call-graph ehframe {CLOCK} -- {PYTHON}", r"_PyEval_EvalFrameDefault", whole=0.99),
    "eh_pairs_cxx": pairs_of("/load/hard_cxx 4"),
    "eh_clang": Check(f"--call-graph ehframe {CLOCK} -- /load/clang 10", whole=0.99),
    "eh_pairs_clang": pairs_of("/load/hard_clang 4"),
    "eh_pairs_rust": pairs_of("/load/hard_rust"),
    "eh_pairs_go": pairs_of("/load/hard_go"),
    "eh_pairs_python": pairs_of("python3 -S /load/pairs.py", "write"),
    "dwarf_c": Check(f"--call-graph dwarf,32768 {CLOCK} -- /load/plain 10", whole=0.9),  # a copy of a signal's own stack ends in raise()
    "dwarf_cxx": Check(f"--call-graph dwarf,32768 {CLOCK} -- /load/deep 10", whole=0.99),
}
# What is not a recording of one command: shell lines, expressions for what they print, and the checks whose captures they read.
OTHERS = {
    "doctor": ("tacho doctor", r"Recording is possible here"),
    "list_recorders": ("tacho list recorders", r"offcpu"),
    "stat": ("tacho stat -- /load/work 2 2>&1", r"task-clock"),
    "stacks": ("/load/work 400 > /dev/null & sleep 1; tacho stacks -p $!; kill $!", r"main"),
    "pack": ("tacho record -q -g -o pack.data -F 199 -e cpu-clock:u -- /load/plain 1; tacho pack -i pack.data -o packed.data; tacho report -i packed.data", r"recurse"),
    "redact": ("tacho redact clock.data redacted.data; tacho report -i redacted.data", r"\d%.*leaf"),
    "rotation": ("tacho record -q -g -F 199 -e cpu-clock --switch-output=3s -o turn.data -- /load/plain 12; ls -l turn.data*; "
                 "for f in turn.data*; do tacho report -i $f --no-children | grep recurse && echo read $f; done", r"(?s)read turn.*read turn"),
    "kill_9": ("tacho record -q -g -F 199 -e cpu-clock -a -o killed.data -- /load/plain 100 & recorder=$!; "
               "until pidof plain > /dev/null; do sleep 1; done; sleep 5; kill -9 $recorder; killall plain; tacho report -i killed.data --no-children",
               r"\d%.*leaf"),
    # Later perfs show other addresses of code without names, and pad otherwise.
    "perf_reads": ("for f in clock syscall; do perf script --no-inline -i $f.data -F tid,time,ip,sym | awk '{print $2}' > perf.txt; "
                   "tacho script --as-perf --no-inline -i $f.data -F tid,time,ip,sym | awk '{print $2}' > ours.txt; cmp perf.txt ours.txt && wc -l < perf.txt; done",
                   r"(?m)\A[1-9]\d+\n[1-9]\d+$"),
    "report_there": ("tacho report -i clock.data --no-children", r"leaf"),
    "page_there": ("tacho page -i clock.data -o page.html && ls -l page.html", r"page\.html"),
}
READS = {"redact": ["clock"], "perf_reads": ["clock", "syscall"], "report_there": ["clock"], "page_there": ["clock"]}


def with_what_they_read(names):
    return list(dict.fromkeys(each for name in names for each in [*READS.get(name, ()), name]))


def command_of(name):
    return CHECKS[name].record if name in CHECKS else OTHERS[name][0]


def script_of(names):
    lines = ["mkdir -p /etc; echo 127.0.0.1 localhost > /etc/hosts; echo 'hosts: files' > /etc/nsswitch.conf", "ifconfig lo 127.0.0.1 up",
             "mount -t debugfs debugfs /sys/kernel/debug; mount -t bpf bpf /sys/fs/bpf; mkdir -p /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup",
             "ls -l /sys/kernel/btf/vmlinux > btf.txt"]
    for name in names:
        lines.append(f"echo recording {name} at $(cut -d' ' -f 1 /proc/uptime) s")
        words = f"tacho record -v -o {name}.data {CHECKS[name].record}" if name in CHECKS else f"sh /load/{name}.sh"
        lines.append(f"timeout {PATIENCE} {words} > {name}.printed 2> {name}.said; echo $? > {name}.status")
        lines += [f"tail -n 2 {name}.said", "tar cf /dev/vda . && sync"]  # of a machine that is ended too early, too
    return lines


def make_root(folder, packages, names):
    programs = [packages / "usr/bin/perf", next(packages.glob("usr/bin/python3.*")), *(ARM / "bin" / name for name in PROGRAMS)]
    root = machine.make_root(folder, packages, programs, script_of(names), [ARM / "packages"])
    shutil.copy(ARM / "bin/libtacho-calls.so", root / "bin")
    (root / "bin/python3").symlink_to(next(root.glob("bin/python3.*")).name)
    for library in packages.glob("usr/lib/python3.*"):
        shutil.copytree(library, root / "usr/lib" / library.name)
    for name in ("libstdc++.so.6", "libgcc_s.so.1"):
        shutil.copy(next(packages.glob(f"**/aarch64-linux-gnu/{name}")), root / "lib/aarch64-linux-gnu")
    (root / "load/pairs.py").write_text(stack_pairs.PYTHON_WORK)
    for name in names:
        if name in OTHERS:
            (root / f"load/{name}.sh").write_text(OTHERS[name][0] + "\n")
    wanted = {program for name in names for program in re.findall(r"/load/(\w+)", command_of(name))}
    for name in wanted & set(BUILT):
        words = [str(word).format(packages=packages) for word in BUILT[name]]
        machine.run(*words[:-1], "-o", root / "load" / name, HERE / words[-1])
    machine.run("clang", "-target", "bpf", "-D__TARGET_ARCH_arm64", "-O2", "-g", "-I", ROOT / "bpf/include", "-I", ARM / "packages/usr/include",
                "-idirafter", ARM / "packages/usr/include/aarch64-linux-gnu", "-c", HERE / "opens.bpf.c", "-o", root / "load/opens.bpf.o")
    return root


def printed_by(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, errors="replace", check=False)
    return done.stdout, done.stderr


def bottoms_of(root):
    """Where threads begin, in files that name nothing there: (part of the file's name, begin, end). The rules say that there is no caller."""
    libraries = root / "lib/aarch64-linux-gnu"
    found = []
    for file in ("libc.so", "ld-linux"):
        rules = machine.run("readelf", "-W", "--debug-dump=frames", next(libraries.glob(f"{file}*")))
        for block in rules.split("\n\n"):
            place = re.search(r" FDE .* pc=(\w+)\.\.(\w+)", block)
            if place and "DW_CFA_undefined: r30 (x30)" in block:
                found.append((f"/{file}", int(place[1], 16), int(place[2], 16)))
    return found


def is_whole(line, bottoms):
    """Whether this is the last line of a whole stack."""
    address, rest = line.split(None, 1)
    if re.search(r"^(_start|thread_start|__clone|clone|runtime\.(goexit|mstart|rt0_go)(\.abi0)?|_rt0_arm64_linux)(\+| )", rest):
        return True
    return any(file in rest and start <= int(address, 16) <= end for file, start, end in bottoms)


def last_line(path):
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()] if path.exists() else []
    return lines[-1][:150] if lines else "nothing is said"


def result_of(folder, name):
    """("ok" or "FAILED", what is to say)."""
    out = folder / "out"
    status_file = out / f"{name}.status"
    status = int(status_file.read_text()) if status_file.exists() else None
    if name in OTHERS:
        text = (out / f"{name}.printed").read_text(errors="replace")
        found = re.search(OTHERS[name][1], text)
        return ("ok", f"{len(text.splitlines())} lines") if found else ("FAILED", f"status {status}: {last_line(out / (name + '.said'))}")
    check = CHECKS[name]
    if status != check.status:
        return "FAILED", f"status {status}: {last_line(out / (name + '.said'))}"
    text, said = printed_by(BIN / "tacho", "script", "-i", out / f"{name}.data", "--symfs", folder / "root",
                            *(["--no-inline", "-F", "tid,time,event,ip,sym,symoff,dso"] if check.pairs else []))
    (out / f"{name}.script").write_text(text)
    samples = text.count("\n\n") or len(text.splitlines())  # with stacks, or a line each
    if samples < check.least:
        return "FAILED", f"{samples} samples; {said.strip().splitlines()[-1] if said.strip() else last_line(out / (name + '.said'))}"
    missing = [line for line in check.lines if not re.search(line, text)]
    if missing:
        return "FAILED", f"{samples} samples, none with {missing[0]}"
    if check.whole is None:
        return "ok", f"{samples} samples"
    bottoms = bottoms_of(folder / "root")
    stacks = text.split("\n\n")
    stacks = stacks[len(stacks) // 2:]
    if check.pairs:
        return result_of_pairs(check, "\n\n".join(stacks), bottoms, out / f"{name}.others")
    stacks = [block.splitlines() for block in stacks if block.strip()]
    whole = sum(is_whole(lines[-1], bottoms) for lines in stacks if len(lines) > 1)
    return ("ok" if whole >= check.whole * len(stacks) else "FAILED"), f"{whole} of {len(stacks)} stacks are whole"


def result_of_pairs(check, text, bottoms, others_file):
    others = stack_pairs.Counter()
    counts, _ = stack_pairs.compare(text, lambda frames: bool(frames) and is_whole(f"{frames[-1][0]:x} {frames[-1][1]}", bottoms), others)
    others_file.write_text("".join(f"{times} {' | '.join(kind)}\n" for kind, times in others.most_common()))
    whole, pairs = counts["walked whole"], counts["pairs"]
    return ("ok" if pairs and whole >= check.whole * pairs else "FAILED"), \
        f"{whole} of {pairs} stacks are whole, of their copies {counts['copied whole']}; {counts['equal']} equal, {counts['different']} different"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/tacho-arm64-record"))
    parser.add_argument("--suite")
    parser.add_argument("--only", choices=CHECKS | OTHERS, action="append")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    names = with_what_they_read(options.only or [*CHECKS, *OTHERS])
    if not options.again:
        packages = machine.unpack_packages(folder, PACKAGES, options.suite)
        shutil.rmtree(folder / "out", ignore_errors=True)
        machine.boot(folder, packages, make_root(folder, packages, names), cpus=options.cpus)
    print((folder / "out/uname.txt").read_text().strip())
    failed = 0
    for name in names:
        result, text = result_of(folder, name)
        failed += result != "ok"
        print(f"{name:20} {result:7} {text}", flush=True)
    print(f"{len(names) - failed} of {len(names)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
