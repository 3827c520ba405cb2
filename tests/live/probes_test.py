#!/usr/bin/env python3
"""Probes by name: every call is one sample, perf and tacho print the same, and no probe is left behind."""
import os
import re
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

import programs

PROGRAM = r"""
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) int probed(int value) {
  __asm__ volatile(
      "990: nop\n .pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 992f-991f, 994f-993f, 3\n"
      "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n .8byte 0\n .8byte 0\n"
      ".asciz \"mine\"\n .asciz \"passed\"\n .asciz \"\"\n994: .balign 4\n .popsection\n");
  return value * 2 + 1;
}
__attribute__((noinline)) int caller(int value) { return probed(value) + 1; }
int main(int argc, char** argv) {
  int sum = 0;
  for (int i = 0; i < 5; ++i) sum += caller(i);
  if (argc > 1) sleep(30);
  return sum == 0;
}
"""
FORKER = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void probed(int value) { __asm__ volatile("" ::"r"(value)); }
void* thread(void* unused) { probed(2); return unused; }
int main() {
  probed(1);
  pthread_t id;
  if (pthread_create(&id, 0, thread, 0) != 0 || pthread_join(id, 0) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) { probed(3); _exit(0); }
  return waitpid(child, 0, 0) == child ? 0 : 3;
}
"""
UPROBES = Path("/sys/bus/event_source/devices/uprobe/type")
LEFT_BEHIND = [Path("/sys/kernel/tracing/uprobe_events"), Path("/sys/kernel/tracing/kprobe_events")]


@programs.needs_root
@programs.needs_perf
@unittest.skipUnless(UPROBES.exists(), "needs a kernel with uprobes")
class Probes(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {"program": PROGRAM, "forker": FORKER})

    def setUp(self):
        super().setUp()
        for name in ("program", "forker"):
            shutil.copy(self.built / name, self.folder)

    def record(self, *options, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-q", "-o", "ours.data", *options, "--", "./program",
                                status=status)

    def scripts(self, *options):
        return self.same_scripts("ours.data", *options)

    def test_every_call_of_a_function_is_a_sample(self):
        self.record("-g", "-e", "uprobe:./program:probed")
        text = self.scripts()
        self.assertEqual(text.count("uprobe:./program:probed:"), 5, text)
        self.assertEqual(len(re.findall(r"\sprobed\+0x0 ", text)), 5, text)
        self.assertEqual(len(re.findall(r"\smain\+0x", text)), 5, "the stacks")

    def test_returns_markers_and_offsets(self):
        offset = self.run_program("nm", "program").stdout.decode()
        start = int(re.search(r"([0-9a-f]+) T probed", offset).group(1), 16)
        self.record("-e", f"uretprobe:./program:probed/name=back/,usdt:./program:mine:passed,uprobe:./program:{start:#x}/name=raw/")
        text = self.scripts()
        for name in ("back:", "usdt:./program:mine:passed:", "raw:"):
            self.assertEqual(text.count(f" {name}"), 5, text)

    def test_children_are_not_probed(self):
        # Inherited, the probe would make fork() and pthread_create() fail.
        for options, calls in ((["-e", "uprobe:./forker:probed"], 1), (["-a", "-e", "uprobe:./forker:probed"], 3),
                               (["-e", "uprobe:./forker:probed/inherit/"], 1)):
            done = self.run_program(programs.BIN / "tacho-record", "-o", "ours.data", *options, "--", "./forker")
            self.assertEqual(b"warning: probes record the command's first thread only" in done.stderr, calls == 1, done.stderr)
            self.assertEqual(self.scripts().count(" uprobe:./forker:probed"), calls)

    def test_a_library_is_probed_for_one_process(self):
        libc = re.search(r"=> (\S*libc\.so\S*)", self.run_program("ldd", "program").stdout.decode()).group(1)
        for path in (libc, "libc.so.6"):  # as the loader finds it
            self.record("-e", f"uprobe:{path}:exit")
            self.assertEqual(self.scripts().count("exit:"), 1)

    def test_nothing_is_left_behind_even_when_killed(self):
        before = [place.read_text() if place.exists() else "" for place in LEFT_BEHIND]
        recorder = subprocess.Popen([programs.BIN / "tacho-record", "-q", "-o", "k.data", "-e", "uprobe:./program:probed", "--",
                                     "./program", "stay"], cwd=self.folder, stderr=subprocess.DEVNULL)
        child = programs.wait_for_child(recorder.pid, "program")
        self.addCleanup(os.kill, child, signal.SIGKILL)
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait()
        self.assertEqual(before, [place.read_text() if place.exists() else "" for place in LEFT_BEHIND])
        # A breakpoint left behind would kill the program (SIGTRAP).
        self.run_program("./program")

    def test_places_are_listed(self):
        self.assertRegex(self.tacho("list", "usdt:./program:").stdout, rb"^  usdt:\./program:mine:passed +\[Marker\]\n$")
        functions = self.tacho("list", "uretprobe:./program:").stdout
        for name in (b"probed ", b"caller ", b"main "):
            self.assertIn(b"  uretprobe:./program:" + name, functions)
        self.assertRegex(self.tacho("list", "kprobe:vfs_rea?").stdout, rb"(?m)^  kprobe:vfs_read +\[Function\]$")

    def test_names_of_symbols_steer_no_terminal_and_make_no_lines(self):
        (self.folder / "odd.c").write_text("long odd(long x) { return x; }\nint main(void) { return (int)odd(0); }\n")
        self.run_program("cc", "-c", "-O0", "odd.c")
        subprocess.run([b"objcopy", b"--redefine-sym", b"odd=evil\n  uprobe:forged\x9b2J", os.fsencode(self.folder / "odd.o")], check=True)
        self.run_program("cc", "-o", "odd", "odd.o")
        listed = self.tacho("list", "uprobe:./odd:").stdout
        self.assertIn(rb"  uprobe:./odd:evil\x0a  uprobe:forged\x9b2J ", listed)
        self.assertNotIn(b"\x9b", listed)

    def test_what_cannot_be_probed_is_refused_in_words(self):
        refusals = {
            "uprobe:./program:porbed": b"did you mean 'probed'?",
            "uprobe:./nosuch:f": b"there is no file ./nosuch",
            "uprobe:/etc/passwd:main": b"it is not an ELF file",
            "usdt:./program:mine:pased": b"did you mean 'mine:passed'?",
        }
        for spec, words in refusals.items():
            self.assertIn(words, self.record("-e", spec, status=1).stderr, spec)

    @unittest.skipIf(Path("/sys/bus/event_source/devices/kprobe").exists(), "this kernel has kprobes")
    def test_without_kprobes_the_kernel_is_to_blame(self):
        self.assertIn(b"this kernel has no kprobes", self.record("-e", "kprobe:vfs_read", status=2).stderr)


WITH_ARGUMENTS = r"""
#include <stdint.h>
#include <unistd.h>
#include <sys/wait.h>
__attribute__((noinline)) long sized(const char* name, int32_t size, uint64_t flags) {
  volatile int32_t local = size * 3;
  __asm__ volatile(
      "990: nop\n .pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 992f-991f, 994f-993f, 3\n"
      "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n .8byte 0\n .8byte 0\n"
      ".asciz \"mine\"\n .asciz \"sized\"\n .asciz \"8@%1 -4@%0 -4@$-9\"\n994: .balign 4\n .popsection\n" ::"m"(local),
      "r"(flags));
  return name[0] - 300 + size;
}
int main(void) {
  const char* names[] = {"alpha", "beta", "gamma"};
  long sum = *(volatile const char*)names[0];  // memory that nobody has touched yet cannot be read by a probe
  for (int i = 0; i < 3; ++i) sum += sized(names[i], i - 1, 0xF000000000000000u + i);
  static const char child[] = "child";
  if (fork() == 0) { sum += *(volatile const char*)child + sized(child, 77, 7); _exit(0); }
  wait(0);
  return sum == 0;
}
"""


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(UPROBES.exists() and os.uname().machine == "x86_64", "needs uprobes and x86-64")
class Arguments(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {"sized": WITH_ARGUMENTS})

    def setUp(self):
        super().setUp()
        shutil.copy(self.built / "sized", self.folder)

    def record(self, *options, status=0):
        return self.run_program(programs.BIN / "tacho-record", "-o", "ours.data", *options, "--", "./sized",
                                status=status).stderr.decode()

    def payloads(self, event):
        text = self.tacho("script", "-i", "ours.data", "-F", "event,payload").stdout.decode()
        return [line.split(event + ":", 1)[1].strip() for line in text.splitlines() if event + ":" in line]

    def test_of_a_function_by_position_and_register(self):
        """Also in child processes, although a probe event is not inherited."""
        errors = self.record("-e", "uprobe:./sized:sized(name=arg1:string, size=arg2:s32, flags=arg3:x64, %dx:u16)")
        found = self.payloads("uprobe:./sized:sized")
        self.assertEqual(len(found), 4, errors)
        for payload, name, size, low in zip(found, ("alpha", "beta", "gamma", "child"), (-1, 0, 1, 77), (0, 1, 2, 7)):
            self.assertIn(f'name="{name}"', payload)
            self.assertIn(f"size={size} ", payload)
            self.assertIn(f" dx={low}", payload)
        self.assertIn("flags=0xf000000000000002", found[2])

    def test_calls_of_others_are_left_out_in_the_kernel(self):
        others = subprocess.Popen(["sh", "-c", "while :; do ./sized; done"], cwd=self.folder)
        self.addCleanup(others.wait)
        self.addCleanup(others.kill)
        errors = self.run_program(programs.BIN / "tacho-record", "-o", "ours.data", "-e", "uprobe:./sized:sized(size=arg2:s32)", "--",
                                  "sh", "-c", "sleep 0.5; ./sized").stderr.decode()
        self.assertEqual(len(self.payloads("uprobe:./sized:sized")), 4, errors)
        self.assertNotIn("of other threads", errors)

    def test_of_a_return(self):
        self.record("-a", "-e", "uretprobe:./sized:sized(ret, low=ret:u8)")
        self.assertEqual(self.payloads("uretprobe:./sized:sized")[:2],
                         [f"ret={value} low={value & 255}" for value in (ord("a") - 301, ord("b") - 300)])

    def test_of_a_marker_as_its_note_says(self):
        errors = self.record("-g", "-e", "usdt:./sized:mine:sized(flags=arg1:x64, arg2, nine=arg3)")
        found = self.payloads("usdt:./sized:mine:sized")
        self.assertEqual(len(found), 4, errors)
        self.assertIn("arg2=-3 nine=-9", found[0])
        self.assertIn("flags=0xf000000000000001", found[1])
        self.assertIn("main", self.tacho("script", "-i", "ours.data", "-F", "event,ip,sym").stdout.decode())

    def test_a_filter_chooses_before(self):
        self.record("-e", "uprobe:./sized:sized(name=arg1:string)", "--filter", 'comm == "nosuch"')
        self.assertEqual(self.payloads("uprobe:./sized:sized"), [])
        self.record("-e", "uprobe:./sized:sized(name=arg1:string)", "--filter", 'comm == "sized"')
        self.assertEqual(len(self.payloads("uprobe:./sized:sized")), 4)

    def test_unreadable_arguments_are_refused(self):
        for event, expected in (("uprobe:./sized:sized(size)", "size=arg1, or size=%di"),
                                ("uprobe:./sized:sized+4(arg1)", "name registers, as %di"),
                                ("usdt:./sized:mine:sized(arg4)", "the marker has 3 arguments"),
                                ("uprobe:./sized:sized(arg1:u33)", "column 27"),
                                ("{uprobe:./sized:sized(arg1),cs}", "cannot be in a group")):
            self.assertIn(expected, self.record("-e", event, status=1))


if __name__ == "__main__":
    programs.main()
