#!/usr/bin/env python3
"""Programs of many kinds, recorded on one machine and read on another: Rust, Go, a JIT, a root with a C library of its own,
a process with a BPF program, kernel modules. Kinds that are not installed are skipped."""
import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import programs
from other_machine import EVENT, Travels

RUST = """
#[inline(always)] fn inlined_in_rust() -> u32 { std::os::unix::process::parent_id() }
mod inner { #[inline(never)] pub fn calls_in_rust(n: u32) -> u32 { super::inlined_in_rust().wrapping_add(n) } }
fn main() { let mut sum = 0u32; for n in 0..20 { sum = sum.wrapping_add(std::hint::black_box(inner::calls_in_rust(n))); }
  std::process::exit((sum == 1) as i32) }
"""
GO = """package main
import "syscall"
type Traveller struct{}
func inlinedInGo() int { return syscall.Getppid() }
//go:noinline
func (t *Traveller) CallsInGo(n int) int { return inlinedInGo() + n }
func main() { t := &Traveller{}; for n := 0; n < 20; n++ { t.CallsInGo(n) } }
"""
NODE = """function calledInNode() { return process.ppid; }
function outerInNode() { return calledInNode() + 1; }
for (let n = 0; n < 20; ++n) outerInNode();
"""
C = """#include <unistd.h>
__attribute__((noinline)) int call_from_the_root(int n) { return getppid() + n; }
int main(void) {
  int sum = 0;
  for (int n = 0; n < 20; ++n) sum += call_from_the_root(n);
  char byte;
  return read(0, &byte, 1) + sum == 1;
}
"""
# The program inside must run until the recorder, the parent of this, has opened its files.
INSIDE = """
import os, subprocess, sys, time
def is_held(name):
    folder = f"/proc/{os.getppid()}/fd"
    links = []
    for number in os.listdir(folder):
        try:
            links.append(os.readlink(f"{folder}/{number}"))
        except OSError:
            pass
    return any(name in link for link in links)
process = subprocess.Popen(["unshare", "-m", "chroot", sys.argv[1], "/program"], stdin=subprocess.PIPE)
limit = time.monotonic() + 60
while not (is_held("/program") and is_held("/libc.so.6")) and time.monotonic() < limit:
    time.sleep(0.02)
process.stdin.close()
sys.exit(process.wait() or time.monotonic() >= limit)
"""
# Each call takes some ms of CPU time.
BPF = """#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); __uint(key_size, 4); __uint(value_size, 4); } channel SEC(".maps");
SEC("tracepoint/syscalls/sys_enter_getppid")
int stands_in_the_stack(void *context) {
  __u64 sum = 0;
  for (int i = 0; i < 50000; ++i) sum += bpf_ktime_get_ns();
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &sum, sizeof sum);
  return 1;
}
char _license[] SEC("license") = "GPL";
"""


def needs(*names):
    missing = [name for name in names if not shutil.which(name)]
    return unittest.skipIf(missing, f"not installed: {' '.join(missing)}")


@programs.needs_root
@needs("unshare")
class Kinds(Travels):
    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def travel(self, words, names, record=("-e", EVENT, "-g"), **more):
        """The text elsewhere is that of the host, with names, and doctor counts unnamed frames."""
        there = self.machine()
        self.tacho("record", "-o", "x.data", *record, "--", *words, **more)
        capture = self.folder / "x.data"
        self.compare(there, capture, capture)
        text = self.run_program(*there.command("script", "-i", "/captures/x.data", "--inline=all"), status=None).stdout.decode()
        for name in names:
            self.assertRegex(text, name)
        lines = self.run_program(*there.command("script", "-i", "/captures/x.data", "-F", "ip,sym"), status=None).stdout.splitlines()
        frames = [line for line in lines if line.strip()]
        facts = json.loads(self.tacho("doctor", capture, "--json", status=None).stdout)
        self.assertEqual((facts["frames"], facts["frames"] - facts["named_frames"]),
                         (len(frames), sum(bool(re.search(rb"\[unknown\]|\S\+0x[0-9a-f]+$", line)) for line in frames)))
        return text

    @needs("rustc")
    def test_rust(self):
        self.write("traveller.rs", RUST)
        home = os.path.expanduser("~")
        done = self.run_program("env", f"HOME={home}", "rustc", "-g", "-O", "-C", "force-frame-pointers=yes", "traveller.rs", status=None)
        if done.returncode != 0:
            self.skipTest(f"rustc compiles nothing here: {done.stderr.decode(errors='replace')[-300:]}")
        self.travel(["./traveller"], ["traveller::inner::calls_in_rust", r"inlined_in_rust\S* \(inlined\)", "traveller::main"])

    @needs("go")
    def test_go(self):
        self.write("traveller.go", GO)
        self.run_program("env", f"GOCACHE={self.folder}/cache", "GO111MODULE=off", "go", "build", "-o", "traveller", "traveller.go")
        self.travel(["./traveller"], [r"main\.\(\*Traveller\)\.CallsInGo", r"main\.inlinedInGo", r"main\.main"])

    @needs("node")
    def test_node(self):
        self.write("traveller.js", NODE)
        self.travel(["node", "--perf-basic-prof", "--always-sparkplug", "traveller.js"], ["calledInNode", "outerInNode"],
                    record=("-e", EVENT, "--call-graph", "fp"))
        for path in re.findall(r"/tmp/perf-\d+\.map", self.tacho("script", "-i", "x.data", "-F", "ip,dso").stdout.decode()):
            Path(path).unlink(missing_ok=True)

    @needs("cc")
    def test_a_root_with_a_c_library_of_its_own(self):
        self.write("program.c", C)
        root = self.folder / "root"
        root.mkdir()
        self.run_program("cc", "-O1", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o", "root/program", "program.c")
        for path in re.findall(r"(/lib\S+) ", self.run_program("ldd", "root/program").stdout.decode()):
            (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path[1:])
        library = next(root.rglob("libc.so.6"))
        notes = self.run_program("readelf", "-n", library).stdout.decode()
        own = bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", notes).group(1))
        other = bytes(255 - byte for byte in own)
        library.write_bytes(library.read_bytes().replace(own, other))
        self.write("inside.py", INSIDE)
        self.travel(["python3", "inside.py", root], [r" getppid\+\S+ \(/lib", r" main\+\S+ \(/program\)"])
        ids = self.run_program(programs.BIN / "tacho-report", "dump", "-i", "x.data").stdout.decode()
        self.assertIn(other.hex(), ids)

    @programs.needs_clang
    @needs("clang")
    def test_a_bpf_program(self):
        self.write("stands.bpf.c", BPF)
        self.run_program("clang", "-target", "bpf", "-O2", "-g", f"-I/usr/include/{os.uname().machine}-linux-gnu", "-c",
                         "stands.bpf.c", "-o", "stands.bpf.o")
        self.travel([programs.BIN / "getppid_load", "200"], ["bpf_prog_[0-9a-f]+_stands_in_the_stac"],
                    record=("-e", "stands.bpf.o", "-e", "cpu-clock", "-c", "200000", "--call-graph", "fp"))

    def function_of_a_module(self):
        """A function of a loaded kernel module, and a command that calls it."""
        def functions(module):
            return re.findall(rf"^(?!0+ )[0-9a-f]+ [tT] (\w+)\t\[{re.escape(module)}\]$", Path("/proc/kallsyms").read_text(), re.M)
        # The root file system's: reading a file goes through it.
        system = subprocess.run(["stat", "-f", "-c", "%T", self.folder], capture_output=True, text=True, check=True).stdout.strip()
        name = "ext4" if system.startswith("ext") else system
        chosen = [function for function in functions(name) if function.endswith("_file_open")]
        if chosen:
            return chosen[0], ["cat", programs.BIN / "tacho"]
        # A RAM disk, if modules may be loaded.
        if os.environ.get("TACHO_MAY_CHANGE_MACHINE") and not functions("brd"):
            subprocess.run(["modprobe", "brd", "rd_nr=1", "rd_size=1024"], capture_output=True, check=False)
        if "brd_submit_bio" in functions("brd") and Path("/dev/ram0").exists():
            # Direct I/O: for the page cache older kernels use another function of the driver.
            return "brd_submit_bio", ["dd", "if=/dev/ram0", "of=/dev/null", "bs=64k", "count=8", "iflag=direct", "status=none"]
        return self.skipTest(f"the file system of {self.folder} ({name}) is no module, and brd is none that is loaded")

    def test_a_kernel_module(self):
        function, command = self.function_of_a_module()
        text = self.travel(command, [function], record=("-e", f"kprobe:{function}", "-g"))
        self.assertRegex(text, rf" {function}\+0x[0-9a-f]+ \((\[\w+\]|/\S+/\w+\.ko\S*)\)")

    @needs("cc")
    def test_code_that_a_jitdump_describes(self):
        program = self.folder / "jitter"
        self.run_program("cc", "-O1", "-o", program, programs.ROOT / "tests/compat/jitter.c")
        (self.folder / "dumps").mkdir()
        there = self.machine()
        # Its functions take some ms each.
        self.tacho("record", "--no-pack", "-k", "mono", "-e", "cpu-clock", "-c", "1000000", "-g", "-o", "x.data", "--", program,
                   self.folder / "dumps")
        packed = self.pack(self.folder / "x.data")
        self.compare(there, self.folder / "x.data", packed)
        text = self.run_program(*there.command("script", "-i", f"/captures/{packed.name}")).stdout
        for name in (rb"first\(int\)\+0x", rb"jit::second\+0x", rb"third\+0x"):
            self.assertRegex(text, name)
        (self.folder / "dumps").rename(self.folder / "gone")
        again = self.pack(packed)
        self.assertEqual(self.tacho("script", "-i", again).stdout, text, "packed again, where the file is gone")

    @needs("node")
    def test_node_with_a_jitdump(self):
        self.write("traveller.js", NODE)
        self.travel(["node", "--perf-prof", "--always-sparkplug", "traveller.js"],
                    ["calledInNode", "outerInNode"], record=("-k", "mono", "-e", EVENT, "--call-graph", "fp"))


if __name__ == "__main__":
    programs.main()
