#!/usr/bin/env python3
"""Probes of the kernel's own functions, by perf events and by BPF programs, and requests of block devices: what a program
did is what the capture tells of it, perf prints the same, and nothing is left behind."""
import os
import re
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

import programs

# Reads /dev/zero six times, 4096 bytes more each time, and calls getppid() as often.
READER = r"""
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
static char buffer[1 << 16];
/* The caller of syscall(), which keeps no frame, is missing in stacks. */
__attribute__((noinline)) long ask(void) { return syscall(SYS_getppid) + 1; }
int main(int argc, char** argv) {
  const int zero = open("/dev/zero", O_RDONLY);
  for (int i = 1; i <= 6; ++i) {
    if (read(zero, buffer, 4096 * i) != 4096 * i) return 1;
    ask();
  }
  if (argc > 1) sleep(60);
  return 0;
}
"""
SIZES = [4096 * i for i in range(1, 7)]
GETPPID = f"__{'x64' if os.uname().machine == 'x86_64' else 'arm64'}_sys_getppid"
PROBES = [Path("/sys/kernel/tracing/kprobe_events"), Path("/sys/kernel/tracing/uprobe_events")]
has_kprobes = Path("/sys/bus/event_source/devices/kprobe").exists()
needs_kprobes = unittest.skipUnless(has_kprobes, "needs a kernel with kprobes (tests/vm boots one)")


def readable_disk():
    """A readable block device of at least 1 MiB, or None."""
    for disk in sorted(Path("/sys/block").glob("[!lrz]*")):  # not loop, ram and zram devices
        try:
            with open(Path("/dev") / disk.name, "rb"):
                if int((disk / "size").read_text()) >= 2048:
                    return Path("/dev") / disk.name
        except OSError:
            pass  # root of a container may not
    return None


class KernelProbes(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {"reader": READER})

    def setUp(self):
        super().setUp()
        shutil.copy(self.built / "reader", self.folder)

    def record(self, *options, work=("./reader",), status=0):
        return self.run_program(programs.BIN / "tacho-record", "-q", "-o", "ours.data", *options, "--", *work, status=status)

    def payloads(self, event, field):
        text = self.tacho("script", "-i", "ours.data", "-F", "event,payload", "-G", status=None).stdout.decode()
        return [int(value) for value in re.findall(rf"{event}:.*\b{field}=(-?\d+)", text)]


@programs.needs_root
@programs.needs_perf
@needs_kprobes
class Functions(KernelProbes):
    def test_calls_and_returns_are_one_sample_each(self):
        self.record("-g", "-e", f"kprobe:{GETPPID},kretprobe:{GETPPID}/name=back/")
        text = self.same_scripts("ours.data")
        self.assertEqual(text.count(f" kprobe:{GETPPID}:"), 6, text)
        self.assertEqual(text.count(" back:"), 6, text)
        self.assertIn(f" {GETPPID}+0x", text)
        self.assertRegex(text, r"\smain\+0x", "the stacks go on into the program")
        self.assertIn(f"# Samples: 6  of event 'kprobe:{GETPPID}'",
                      self.perf("report", "--stdio", "-i", "ours.data").stdout.decode())

    def test_all_processors_and_other_events_beside(self):
        self.record("-a", "-e", f"kprobe:{GETPPID}", "-e", "cpu-clock,sched:sched_process_exec")
        text = self.same_scripts("ours.data", "-F", "comm,pid,tid,cpu,time,event", "--comms", "reader")
        self.assertEqual(len(re.findall(rf"^ *reader .* kprobe:{GETPPID}:", text, re.M)), 6, text)

    @programs.needs_btf
    @unittest.skipUnless(os.uname().machine == "x86_64", "arguments are read on x86-64")
    def test_arguments_by_their_names(self):
        self.record("-e", "kprobe:vfs_read(count, where=buf, arg3)", "--filter", 'comm == "reader"')
        event = "kprobe:vfs_read"
        counts = self.payloads(event, "count")
        self.assertEqual([count for count in counts if count in SIZES], SIZES, counts)
        self.assertEqual(self.payloads(event, "arg3"), counts)
        self.record("-e", "kretprobe:vfs_read(ret)", "--filter", 'comm == "reader"')
        self.assertEqual([value for value in self.payloads("kretprobe:vfs_read", "ret") if value in SIZES], SIZES)
        refused = self.record("-e", "kprobe:vfs_read(nosuch)", status=1).stderr
        self.assertIn(b"has no argument 'nosuch'; it has file, buf, count, pos", refused)

    def test_what_cannot_be_probed_is_refused_in_words(self):
        refusals = {
            "kprobe:vfs_raed": rb"this kernel has no function 'vfs_raed'; did you mean 'vfs_read'\?",
            "kprobe:vfs_read+0x100000": rb"'vfs_read' is \d+ bytes long, and 1048576 is after its end",
        }
        for spec, words in refusals.items():
            self.assertRegex(self.record("-e", spec, status=1).stderr, words, spec)

    def test_nothing_is_left_behind_even_when_killed(self):
        before = [place.read_text() for place in PROBES if place.exists()]
        recorder = subprocess.Popen([programs.BIN / "tacho-record", "-q", "-o", "k.data", "-e", f"kprobe:{GETPPID}", "--",
                                     "./reader", "stay"], cwd=self.folder, stderr=subprocess.DEVNULL)
        child = programs.wait_for_child(recorder.pid, "reader")
        self.addCleanup(os.kill, child, signal.SIGKILL)
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait()
        self.assertEqual(before, [place.read_text() for place in PROBES if place.exists()])
        self.record("-e", f"kprobe:{GETPPID}")
        self.assertEqual(self.same_scripts("ours.data").count(f"{GETPPID}:"), 6)


@programs.needs_root
@programs.needs_btf
@programs.needs_clang
@needs_kprobes
class Trampolines(KernelProbes):
    def test_programs_at_entry_and_return_tell_arguments_and_results(self):
        self.record("-a", "-g", "-e", programs.ROOT / "tests/live/kernel_calls.bpf.c")
        # First are the reads of the dynamic loader.
        self.assertEqual(self.payloads("asked", "bytes")[-6:], SIZES)
        self.assertEqual(self.payloads("given", "result")[-6:], SIZES)
        self.assertEqual(len(self.payloads("asked", "bytes")), len(self.payloads("given", "result")))
        self.same_scripts("ours.data")

    def test_an_object_with_a_return_probe(self):
        done = self.run_program(programs.BIN / "tacho-record", "-v", "-e", programs.ROOT / "examples/bigreads.bpf.c", "-a", "-g",
                                "-o", "ours.data", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=2M", "count=3")
        self.assertRegex(done.stderr, rb"kretprobe/vfs_read\)?: attached", "-v says which program won")
        self.assertEqual(self.payloads("bigread", "bytes"), [2097152] * 3)
        rows = [row for row in self.tacho("hist", "-i", "ours.data", status=None).stdout.split(b"\n") if b"->" in row]
        self.assertEqual([row.split(b":")[1].split()[0] for row in rows if b"*" in row], [b"3"])


@programs.needs_root
@programs.needs_perf
@unittest.skipUnless(readable_disk(), "needs a disk that may be read")
class Blocks(KernelProbes):
    def test_requests_of_a_disk_are_samples(self):
        disk = readable_disk()
        work = ["dd", f"if={disk}", "of=/dev/null", "bs=4k", "count=8", "iflag=direct"]
        self.record("-a", "-g", "-e", "block:block_rq_issue,block:block_rq_complete", work=work)
        text = self.same_scripts("ours.data", "-F", "comm,pid,tid,cpu,time,event,trace,ip,sym")
        device = os.stat(disk).st_rdev
        issued = re.findall(rf"^ *dd .*block:block_rq_issue: *{os.major(device)},{os.minor(device)} R.* 4096 ", text, re.M)
        self.assertEqual(len(issued), 8, text)
        self.assertGreaterEqual(len(re.findall(rf"block_rq_complete: *{os.major(device)},{os.minor(device)} R", text)), 8)


if __name__ == "__main__":
    programs.main()
