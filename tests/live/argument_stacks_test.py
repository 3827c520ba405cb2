#!/usr/bin/env python3
"""Probes with arguments have complete stacks of the same call, in code without frame pointers."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import programs

# The argument of reached() is the number of calls of descend() that lead to it.
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sum;
__attribute__((noinline)) long reached(const char* who, int depth) {
  __asm__ volatile(
      "990: nop\n .pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 992f-991f, 994f-993f, 3\n"
      "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n .8byte 0\n .8byte 0\n"
      ".asciz \"mine\"\n .asciz \"reached\"\n .asciz \"-4@%0\"\n994: .balign 4\n .popsection\n" ::"r"(depth));
  return sum += depth + *who;
}
__attribute__((noinline)) long descend(const char* who, int depth, int left) {
  const long found = left > 0 ? descend(who, depth, left - 1) : reached(who, depth);
  return found * 3 + left;
}
__attribute__((noinline)) void work(const char* who) {
  for (int i = 0; i < 200; ++i) sum += descend(who, i % 20 + 1, i % 20);
}
static void* in_thread(void* who) { work(who); return who; }
int main(int argc, char** argv) {
  static char main_name[] = "main", child[] = "child", thread[] = "thread";
  sum = main_name[0] + child[0] + thread[0];  /* memory that nobody has touched yet cannot be read by a probe */
  if (argc > 1) { for (;;) work(main_name); }
  work(main_name);
  pthread_t id;
  if (pthread_create(&id, 0, in_thread, thread) != 0 || pthread_join(id, 0) != 0) return 1;
  if (fork() == 0) { sum += child[0]; work(child); _exit(0); }
  return wait(0) < 0;
}
"""
CALLS = 600
NEEDED = 0.95  # on a busy machine the ring of stack copies may be full before the unwind table is loaded
UPROBES = Path("/sys/bus/event_source/devices/uprobe/type")
KPROBES = Path("/sys/bus/event_source/devices/kprobe")


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(shutil.which("cc") and os.uname().machine == "x86_64" and UPROBES.exists(), "needs cc, uprobes and x86-64")
class StacksOfArguments(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = Path(tempfile.mkdtemp(prefix="tacho-built-"))
        cls.addClassCleanup(shutil.rmtree, cls.built)
        (cls.built / "program.c").write_text(PROGRAM)
        subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-o", cls.built / "program",
                        cls.built / "program.c"], check=True)

    def setUp(self):
        super().setUp()
        if not re.search(r'"name":"unwinding","state":"ok"', self.tacho("doctor", "--json").stdout.decode()):
            self.skipTest("the kernel refused the unwinder")
        shutil.copy(self.built / "program", self.folder)

    def record(self, *options, work=("./program",), **more):
        return self.tacho("record", "-v", "-o", "x.data", *options, "--", *work, **more).stderr.decode()

    def samples(self, event):
        """(fields, functions leaf first) of each."""
        text = self.tacho("script", "-i", "x.data", "-F", "event,payload,ip,sym").stdout.decode()
        found = []
        for block in text.split("\n\n"):
            head, *lines = block.strip().splitlines() or [""]
            if event + ":" in head:
                found.append((dict(re.findall(r"(\w+)=\"?([^\s\"]+)", head.split(event + ":", 1)[1])), [line.split(None, 1)[-1] for line in lines]))
        return found

    def check(self, samples, said, calls=CALLS, leaf="reached"):
        self.assertEqual(len(samples), calls, said)
        whole = 0
        for fields, names in samples:
            if names[-1] in ("_start", "__clone", "clone3", "clone"):
                whole += 1
                self.assertEqual(names[0], leaf)
                self.assertEqual(names.count("descend"), int(fields["depth"]), (fields, names))
                self.assertEqual("in_thread" in names, fields.get("who") == "thread", (fields, names))
        self.assertGreaterEqual(whole, NEEDED * calls, said)

    def test_of_functions(self):
        event = "uprobe:./program:reached"
        said = self.record("-g", "-e", event + "(who=arg1:string, depth=arg2:s32)")
        self.check(self.samples(event), said)
        self.assertRegex(said, rf"User stacks: [0-9.]+ % of {CALLS} are whole")
        header = self.tacho("header", "-i", "x.data").stdout.decode()
        self.assertIn(f"event {event}: unwound in the kernel (ehframe)", header)

    def test_beside_others_each_has_its_own(self):
        places = {"uprobe:./program:reached": "(who=arg1:string, depth=arg2:s32)", "usdt:./program:mine:reached": "(depth=arg1)"}
        events = [word for place, arguments in places.items() for word in ("-e", place + arguments)]
        said = self.record("-g", *events, "-e", "uretprobe:./program:descend(ret)", "-e", "cpu-clock", "-F", "999")
        for place in places:
            samples = self.samples(place)
            if place.startswith("usdt"):  # it depends on no thread
                for fields, names in samples:
                    fields["who"] = "thread" if "in_thread" in names else "?"
            self.check(samples, said)
        returns = self.samples("uretprobe:./program:descend")
        self.assertEqual(len(returns), CALLS // 20 * sum(range(1, 21)), said)
        self.assertEqual({tuple(fields) for fields, _ in returns}, {("ret",)})
        whole = [names for _, names in returns if names[-1] in ("_start", "__clone", "clone3", "clone")]
        self.assertGreaterEqual(len(whole), NEEDED * len(returns), said)

    def test_filters_and_threads_choose_before(self):
        others = subprocess.Popen(["./program", "on"], cwd=self.folder)
        self.addCleanup(others.wait)
        self.addCleanup(others.kill)
        event = "uprobe:./program:reached"
        said = self.record("-g", "-e", event + "(who=arg1:string, depth=arg2:s32)", "--filter", 'comm == "program"')
        self.check(self.samples(event), said)
        self.record("-g", "-e", event + "(depth=arg2:s32)", "--filter", 'comm == "nobody"')
        self.assertEqual(self.samples(event), [])
        said = self.record("-a", "-g", "-e", event + "(depth=arg2:s32)", "--filter", f"pid == {others.pid}", work=("sleep", "0.3"))
        found = self.samples(event)
        self.assertGreater(len(found), 100, said)
        self.check([({**fields, "who": "main"}, names) for fields, names in found], said, calls=len(found))

    def test_traces(self):
        said = self.record("-g", "-e", "trace/probe='uprobe:./program:reached(who=arg1:string, depth=arg2:s32)'/")
        self.check(self.samples("uprobe:./program:reached"), said)
        said = self.record("-g", "-e", "argdist/probe='uprobe:./program:reached(who=arg1:string, depth=arg2:s32)',value=depth/")
        self.check(self.samples("uprobe:./program:reached"), said)

    @programs.needs_perf
    def test_perf_shows_the_same(self):
        self.record("-g", "-e", "uprobe:./program:reached(depth=arg2:s32)")
        fields = ("-F", "comm,tid,time,ip,sym")
        theirs = self.perf("script", "-i", "x.data", *fields).stdout
        self.assert_same_text(self.tacho("script", "-i", "x.data", *fields).stdout, theirs)

    def test_by_frame_pointers_the_reader_runs_alone(self):
        event = "uprobe:./program:reached"
        said = self.record("-e", event + "(depth=arg2:s32)", "--call-graph", "fp")
        self.assertNotIn("User stacks", said)
        self.assertEqual(len(self.samples(event)), CALLS)

    @unittest.skipUnless(KPROBES.exists(), "needs a kernel with kprobes (tests/vm boots one)")
    def test_of_the_kernels_functions(self):
        event = "kprobe:ksys_write"
        work = "for ((i = 0; i < 300; ++i)); do echo $i; done > /dev/null"
        said = self.record("-g", "-e", event + "(fd=arg1:s32, count=arg3)", work=("bash", "-c", work))
        samples = [names for fields, names in self.samples(event) if fields["fd"] == "1"]
        self.assertEqual(len(samples), 300, said)
        whole = [names for names in samples if names[0] == "ksys_write" and "write" in " ".join(names[1:]) and names[-1] == "_start"]
        self.assertGreaterEqual(len(whole), NEEDED * len(samples), (said, samples[:1]))


if __name__ == "__main__":
    programs.main()
