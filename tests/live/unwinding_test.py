#!/usr/bin/env python3
"""--call-graph ehframe: stacks of code without frame pointers are complete in the capture, and perf shows the same."""
import os
import re
import shutil
import subprocess
import sys
import unittest
from collections import Counter

import programs
import stack_pairs

NEEDED = 0.9  # of the stacks; the first moments of a program may come before its tables on a busy machine


NORETURN = r"""
#include <signal.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline, noreturn)) static void spin(void) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (;;) {
    for (int i = 0; i < 300000; ++i) sink += i;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 > 300) _exit(0);
  }
}
__attribute__((noinline)) static void handler(int number) { sink += number; spin(); }
__attribute__((noinline)) void behind_the_handler(void) { sink ^= 1; }
/* The signal is taken at its first instruction. */
void interrupted(void);
__asm__(".globl interrupted\n.type interrupted,@function\nbefore_it: ret\ninterrupted:\n.cfi_startproc\nud2\nret\n"
        ".cfi_endproc\n.size interrupted, .-interrupted");
__attribute__((noinline, noreturn)) static void outer(void) { interrupted(); spin(); }
__attribute__((noinline)) void behind_outer(void) { sink ^= 2; }
int main(void) { signal(SIGILL, handler); behind_the_handler(); behind_outer(); outer(); }
"""


def stacks_in(text):
    """[functions, leaf first] of each sample that `script -F ip,sym` printed."""
    stacks = []
    for block in text.split("\n\n"):
        lines = [line.split(None, 1) for line in block.splitlines() if line.strip()]
        names = [words[1] if len(words) > 1 else "" for words in lines]
        if names:
            stacks.append(names)
    return stacks


@programs.needs_root
class Unwinding(programs.Scratch):
    def setUp(self):
        super().setUp()
        findings = self.tacho("doctor", "--json").stdout.decode()
        if not re.search(r'"name":"unwinding","state":"ok"', findings):
            self.skipTest("the kernel refused the unwinder")

    def record(self, *words, name="x.data", status=0):
        done = self.tacho("record", "-v", "-o", name, *words, status=status)
        return done.stderr.decode()

    def stacks(self, name="x.data"):
        return stacks_in(self.tacho("script", "-i", name, "-F", "ip,sym").stdout.decode())

    def share(self, said):
        found = re.search(r"User stacks: ([0-9.]+) % of (\d+) are whole", said)
        self.assertIsNotNone(found, said)
        return float(found.group(1)) / 100, int(found.group(2))

    def deep(self, seconds="1.5"):
        return [programs.BIN / "deep_load", seconds, programs.BIN / "deep_library.so"]

    def test_deep_stacks_are_whole(self):
        said = self.record("-e", "cpu-clock", "-F", "499", "--call-graph", "eh", "--", *self.deep())
        share, count = self.share(said)
        self.assertGreater(share, NEEDED, said)
        self.assertGreater(count, 20)
        whole = [stack for stack in self.stacks() if stack[-1] in ("_start", "clone3", "__clone", "clone")]
        self.assertGreater(len(whole), NEEDED * 0.9 * count)
        seen = Counter()
        for stack in whole:
            depth = stack.count("deep_recurse")
            if stack[0] == "deep_leaf" and "deep_thread" in stack and "deep_compare" not in stack:
                self.assertEqual(depth, 101, stack)  # and the calls of main() below have the same depth
                seen["thread"] += 1
            if "deep_compare" in stack and stack[0] == "deep_leaf":
                self.assertEqual(depth, 11, stack)
                self.assertLess(stack.index("deep_compare"), stack.index("deep_sort"), stack)
                seen["callback"] += 1
            if "deep_handler" in stack and stack[0] == "deep_leaf":
                self.assertEqual(depth, 21, stack)
                self.assertLess(stack.index("deep_handler"), stack.index("deep_signal"), stack)
                seen["signal"] += 1
            if stack.count("deep_library") and stack[0] == "deep_leaf":
                self.assertEqual(stack.count("deep_library"), 31, stack)
                self.assertEqual(stack[-4:-1], ["main", "__libc_start_call_main", "__libc_start_main@@GLIBC_2.34"])
                seen["library"] += 1
        for kind in ("thread", "callback", "signal", "library"):
            self.assertGreater(seen[kind], 0, seen)

    @unittest.skipUnless(shutil.which("cc"), "needs a C compiler")
    def test_callers_are_the_functions_of_their_calls(self):
        """After a call that does not return the compiler emits nothing: another function starts there."""
        (self.folder / "noreturn.c").write_text(NORETURN)
        self.run_program("cc", "-O1", "-falign-functions=1", "-fno-optimize-sibling-calls", "-o", "noreturn", "noreturn.c")
        self.record("-e", "cpu-clock:u", "-F", "499", "--call-graph", "eh", "--", self.folder / "noreturn")
        spinning = [stack for stack in self.stacks() if stack[0] == "spin"]
        self.assertGreater(len(spinning), 20)
        chains = Counter(tuple(stack[:5]) for stack in spinning)
        right = chains[("spin", "handler", "__restore_rt", "interrupted", "outer")] or \
            chains[("spin", "handler", "[unknown]", "interrupted", "outer")]
        self.assertGreater(right, NEEDED * len(spinning), chains)

    def test_threads_that_outlive_the_first_one_keep_their_stacks(self):
        said = self.record("-e", "cpu-clock", "-F", "99", "--call-graph", "eh", "--", programs.BIN / "first_thread_ends")
        share, count = self.share(said)
        self.assertGreater(count, 20)
        self.assertGreater(share, NEEDED, said)  # about a half when the process is given up after 2 seconds

    def test_commands_that_live_for_a_millisecond_have_whole_stacks(self):
        """Their MMAP records come too late: the unwinder finds mappings itself."""
        work = "for ((i = 0; i < 150; ++i)); do /bin/date > /dev/null; done"
        said = self.record("-e", "cpu-clock", "-F", "5000", "--call-graph", "eh", "--", "bash", "-c", work)
        text = self.tacho("script", "-i", "x.data", "-F", "comm,ip,sym,dso").stdout.decode()
        of_date = [block.splitlines() for block in text.split("\n\n") if block.startswith("date ")]
        of_date = [lines for lines in of_date if "execve" not in lines[-1]]
        whole = [lines for lines in of_date if re.search(r"/date\)$|_start|_dl_start_user", lines[-1])]
        self.assertGreater(len(of_date), 50, said)
        self.assertGreater(len(whole), NEEDED * len(of_date), said)

    def bare(self, what, *words):
        said = self.record(*words, "--", programs.BIN / "bare_load", what)
        return said, self.stacks()

    def test_vfork_has_its_caller(self):
        said, stacks = self.bare("vfork", "-e", "syscalls:sys_enter_vfork", "--call-graph", "eh")
        self.assertEqual(len(stacks), 200, said)
        whole = [stack for stack in stacks if "bare_vfork" in stack[1:3] and stack[-1] == "_start"]
        self.assertGreater(len(whole), NEEDED * len(stacks), said)

    def test_assembly_that_pops_its_return_address_has_its_caller(self):
        said, stacks = self.bare("popped", "-e", "syscalls:sys_enter_getppid", "--call-graph", "eh")
        self.assertEqual(len(stacks), 200, said)
        whole = [stack for stack in stacks if stack[:2] == ["bare_popped", "bare_popper"] and stack[-1] == "_start"]
        self.assertGreater(len(whole), NEEDED * len(stacks), said)

    def test_assembly_that_saves_registers_before_rbp_has_its_caller(self):
        said, stacks = self.bare("spin", "-e", "cpu-clock:u", "-F", "499", "--call-graph", "eh")
        spinning = [stack for stack in stacks if stack[0] == "bare_spin"]
        self.assertGreater(len(spinning), 20, said)
        whole = [stack for stack in spinning if stack[1] == "bare_caller" and stack[-1] == "_start"]
        self.assertGreater(len(whole), NEEDED * len(spinning), said)

    @programs.needs_perf
    def test_perf_reads_the_same_chains(self):
        self.record("-e", "cpu-clock", "-F", "199", "--call-graph", "eh", "--", *self.deep("0.7"))
        theirs = self.perf("script", "-i", "x.data", "-F", "comm,tid,time,ip,sym").stdout
        ours = self.tacho("script", "--as-perf", "-i", "x.data", "-F", "comm,tid,time,ip,sym").stdout
        self.assertEqual(theirs, ours)
        bits = self.perf("evlist", "-v", "-i", "x.data").stdout.decode().splitlines()[0]
        self.assertNotIn("exclude_callchain_user", bits, "the chains are whole")

    def test_tracepoints_and_probes_have_whole_stacks(self):
        for event, leaf in [("syscalls:sys_enter_tgkill", "raise"), (f"uprobe:{programs.BIN}/deep_load:deep_leaf", "deep_leaf")]:
            with self.subTest(event=event):
                self.record("-e", event, "--call-graph", "eh", "--", *self.deep("1"))
                stacks = self.stacks()
                wanted = [stack for stack in stacks if leaf in stack]
                whole = [stack for stack in wanted if stack[-1] == "_start" and "main" in stack]
                self.assertGreater(len(whole), 10)
                self.assertGreater(len(whole), len(wanted) // 2)
                if leaf == "raise":
                    self.assertEqual(whole[-1][-5:-3], ["deep_signal", "main"])
                else:
                    self.assertIn(101, {stack.count("deep_recurse") for stack in whole})

    def test_functions_with_probes_at_their_return_have_their_callers(self):
        """Return addresses on the stack are those of the uretprobe trampoline; the kernel allows 64 in a thread."""
        probes = [word for name in ("deep_leaf", "deep_recurse", "deep_compare", "deep_handler")
                  for word in ("-e", f"uretprobe:{programs.BIN}/deep_load:{name}")]
        said = self.record(*probes, "-e", "cpu-clock/freq=999/", "--call-graph", "eh", "--", *self.deep("1"))
        text = self.tacho("script", "-i", "x.data", "-F", "event,ip,sym").stdout.decode()
        self.assertGreater(text.count("cpu-clock"), 20, said)
        ends, depths = Counter(), Counter()
        for block in text.split("\n\n"):
            event, *lines = block.strip().splitlines() or [""]
            if "deep_load" in event or "cpu-clock" in event:
                names = [line.split(None, 1)[-1] for line in lines]
                kind = "probe" if "uretprobe" in event else "clock"
                if "deep_leaf" in names[:1] or kind == "probe" and "deep_recurse" in names[:1]:
                    ends[kind, names[-1] in ("_start", "clone3", "__clone")] += 1
                    depths[names.count("deep_recurse")] += 1
        for kind in ("clock", "probe"):
            self.assertGreater(ends[kind, True], 3, (ends, said))
            self.assertGreater(ends[kind, True], NEEDED * (ends[kind, True] + ends[kind, False]), (ends, said))
        self.assertGreater(max(depths), 60, "many were open at once")

    def test_clocks_find_the_functions_whose_probes_they_interrupt(self):
        """An instruction with a uprobe may run in the xol area, where clock samples hit it."""
        probe = f"uprobe:{programs.BIN}/bare_load:bare_step"
        said = self.record("-e", probe, "-e", "cpu-clock/freq=5000,name=ticks/", "--call-graph", "eh", "--", programs.BIN / "bare_load", "steps")
        text = self.tacho("script", "-i", "x.data", "--event", "ticks", "-F", "ip,sym,dso").stdout.decode()
        stacks = [[line.split(None, 1)[1] for line in block.strip().splitlines() if "[kernel" not in line] for block in text.split("\n\n")]
        stacks = [stack for stack in stacks if any(name.startswith(("bare_step", "[unknown] ([uprobes])")) for name in stack)]
        whole = [stack for stack in stacks if "_start (" in stack[-1] and any(name.startswith("bare_steps ") for name in stack)]
        self.assertGreater(len(stacks), 50, said)
        self.assertGreater(len(whole), NEEDED * len(stacks), (said, [stack for stack in stacks if stack not in whole][:3]))
        elsewhere = [stack for stack in whole if "([uprobes])" in stack[0]]
        self.assertGreater(len(elsewhere), 0, said)
        for stack in elsewhere:
            self.assertTrue(stack[1].startswith("bare_step "), stack)

    @unittest.skipUnless(shutil.which("gcc") and shutil.which("objcopy"), "no gcc, or no binutils")
    def test_sframe_is_enough(self):
        words = ["gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-Wa,--gsframe", "-pthread", "-o", "both"]
        if subprocess.run([*words, programs.ROOT / "tests/live/deep_load.c"], cwd=self.folder, capture_output=True, check=False).returncode != 0:
            self.skipTest("the assembler knows no --gsframe")
        self.run_program("objcopy", "-R", ".eh_frame", "-R", ".eh_frame_hdr", "both", "sframe")
        said = self.record("-F", "999", "-e", "cpu-clock", "--call-graph", "eh", "--", "./sframe", "1")
        share, count = self.share(said)
        self.assertGreater(count, 5, said)
        self.assertGreater(share, NEEDED, said)
        self.assertIn("deep_recurse", sum(self.stacks(), []))

    def test_finished_stacks_pass_probes_at_returns(self):
        for attempt in range(10):
            program = self.fresh(programs.BIN / "bare_load", attempt)
            said = self.record("-e", f"uretprobe:{program}:bare_deep", "-e", "syscalls:sys_enter_write", "-g", "--", "sh", "-c",
                               f"{program} deep > /dev/null")
            if self.finished() > 0:
                break
        self.assertGreater(self.finished(), 0, said)
        text = self.tacho("script", "-i", "x.data", "-F", "event,ip,sym").stdout.decode()
        stacks = stacks_in("\n\n".join(block.partition("\n")[2] for block in text.split("\n\n") if "sys_enter_write" in block))
        whole = [stack for stack in stacks if stack.count("bare_deep") == 61 and stack[-1] == "_start"]
        self.assertGreaterEqual(len(whole), NEEDED * 60, said)

    def test_a_tracepoint_keeps_its_stacks_when_a_child_has_ended(self):
        work = "for i in 1 2 3; do /bin/true; done; sleep 0.7; for ((i = 0; i < 500; ++i)); do echo $i; done > /dev/null"
        said = self.record("-e", "syscalls:sys_enter_write", "--call-graph", "eh", "--", "bash", "-c", work)
        share, count = self.share(said)
        self.assertGreaterEqual(count, 500)
        self.assertGreater(share, 0.5, said)  # none, if the program was also killed

    def test_stacks_equal_unwound_copies(self):
        """Frame by frame for the same calls. Another test compares stack copies with perf."""
        works = [(os.path.realpath(sys.executable), "-c", stack_pairs.PYTHON_WORK), ("perl", "-e", stack_pairs.PERL_WORK)]
        for work in works:
            with self.subTest(program=work[0]):
                said = self.record(*stack_pairs.events("syscalls:sys_enter_write", copied=32768), "--", *work)
                text = self.tacho("script", "-i", "x.data", "-F", "tid,time,event,ip,sym", "--no-inline").stdout.decode()
                counts, examples = stack_pairs.compare(text)
                self.assertGreater(counts["pairs"], 200, said)
                self.assertEqual((counts["different"], counts["copied is shorter"]), (0, 0), examples[:1])
                self.assertGreater(counts["equal"], NEEDED * counts["pairs"], said)

    def fresh(self, program, number=0):
        """A new copy of the program, without an unwind table, so that its first stacks are before its table is loaded."""
        copy = self.folder / f"fresh_{number}_{os.path.basename(program)}"
        shutil.copy(os.path.realpath(program), copy)
        with open(copy, "r+b") as file:
            file.seek(0, 2)
            file.write(os.urandom(16))
        return copy

    def finished(self, name="x.data"):
        found = re.search(r"finished by the recorder: (\d+)", self.tacho("header", "-i", name).stdout.decode())
        return int(found.group(1)) if found else 0

    def test_programs_that_end_before_their_tables_are_there_have_whole_stacks(self):
        for attempt in range(10):  # on a busy machine the table may be loaded before the program goes on
            program = self.fresh(sys.executable, attempt)
            work = f"{program} -S -c 'import os\nfor i in range(300): os.write(1, b\"x\")' > /dev/null"
            said = self.record("-e", "syscalls:sys_enter_write", "-g", "--", "sh", "-c", work)
            if self.finished() > 0:
                break
        share, count = self.share(said)
        self.assertGreaterEqual(count, 300, said)
        self.assertGreater(share, NEEDED, said)
        self.assertGreater(self.finished(), 0, "the table of a program of megabytes takes longer than its first write")
        stacks = [stack for stack in self.stacks() if any("write" in name for name in stack)]
        whole = [stack for stack in stacks if stack[-1] == "_start" and any("main" in name for name in stack)]
        self.assertGreater(len(whole), NEEDED * len(stacks))
        times = self.tacho("script", "-i", "x.data", "-F", "time").stdout.decode().split()
        self.assertEqual(times, sorted(times, key=lambda time: float(time.rstrip(":"))))

    def test_children_of_what_runs_already_have_whole_stacks(self):
        """Deferred stacks in the dynamic linker, which are finished after the child has exited."""
        load = subprocess.Popen([programs.BIN / "bare_load", "forks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(load.kill)
        load.stdout.readline()
        go = f"echo > /proc/{load.pid}/fd/0; while kill -0 {load.pid} && ! grep -q '^State:.Z' /proc/{load.pid}/status; do sleep 0.05; done 2> /dev/null"
        said = self.record("-e", "page-faults", "-c", "1", "--call-graph", "eh", "-p", load.pid, "--", "sh", "-c", go)
        load.communicate()
        stacks = [stack for stack in self.stacks() if any(name.startswith("_dl_runtime_resolve") for name in stack)]
        self.assertGreater(len(stacks), 200, said)
        whole = [stack for stack in stacks if "bare_fork" in stack and stack[-1] == "_start"]
        self.assertGreater(len(whole), NEEDED * len(stacks), said)

    def test_deep_stacks_without_tables_are_finished_too(self):
        """Their copies have parts: one holds 24 KiB."""
        for attempt in range(10):
            program = self.fresh(programs.BIN / "bare_load", attempt)
            said = self.record("-e", "syscalls:sys_enter_write", "-g", "--", "sh", "-c", f"{program} deep > /dev/null")
            if self.finished() > 0:
                break
        self.assertGreater(self.finished(), 0, said)
        stacks = [stack for stack in self.stacks() if "bare_deep" in stack]
        whole = [stack for stack in stacks if stack.count("bare_deep") == 61 and stack[-1] == "_start"]
        self.assertEqual(len(stacks), 60, said)
        self.assertGreater(len(whole), NEEDED * len(stacks), said)
        self.assertNotIn("beyond the copy", said)

    def test_finished_stacks_equal_unwound_copies(self):
        perl = stack_pairs.PERL_WORK.replace("sleep(1);", "")
        work = f"exec {self.fresh('/usr/bin/perl')} -e \"$WORK\""
        said = self.record(*stack_pairs.events("syscalls:sys_enter_write", copied=32768), "--", "env", "WORK=" + perl, "sh", "-c", work)
        text = self.tacho("script", "-i", "x.data", "-F", "tid,time,event,ip,sym", "--no-inline").stdout.decode()
        counts, examples = stack_pairs.compare(text)
        self.assertGreater(counts["pairs"], 200, said)
        self.assertEqual((counts["different"], counts["copied is shorter"]), (0, 0), examples[:1])
        self.assertGreater(counts["equal"], NEEDED * counts["pairs"], said)
        self.assertGreater(self.finished(), 0, said)

    @programs.needs_perf
    def test_files_with_finished_stacks_are_in_order_for_perf(self):
        work = f"for i in 1 2 3; do {self.fresh('/usr/bin/perl')} -e 'for (1..20000) {{ $x{{$_}} = $_ }}'; done"
        self.record("-e", "cpu-clock", "-F", "5000", "-g", "--", "sh", "-c", work)
        theirs = self.perf("script", "-i", "x.data", "-F", "comm,tid,time,ip,sym")
        self.assertNotIn("out of order", theirs.stderr.decode())
        self.assertEqual(theirs.stdout, self.tacho("script", "--as-perf", "-i", "x.data", "-F", "comm,tid,time,ip,sym").stdout)

    def test_switched_files_lose_no_sample_that_waits(self):
        copies = " ".join(str(self.fresh("/usr/bin/perl", number)) for number in range(4))
        work = f"for perl in {copies}; do $perl -e 'for (1..60000) {{ $x{{$_ % 5000}} = $_ }}'; kill -USR2 $PPID; sleep 0.4; done"
        said = self.record("-e", "cpu-clock", "-F", "5000", "-g", "--no-pack", "--switch-output", "--", "sh", "-c", work)
        files = sorted(path.name for path in self.folder.glob("x.data.2*"))
        self.assertGreater(len(files), 1, said)
        counted = sum(self.tacho("script", "-i", name, "-F", "time").stdout.count(b":") for name in files)
        reported = re.findall(r"\((\d+) samples, \d+ lost\)", said)
        self.assertEqual(counted, int(reported[-1]), said)
        self.assertEqual(programs.lost_samples(said), 0, said)
        self.assertGreater(sum(self.finished(name) for name in files), 0, said)

    def test_without_btf_the_recorder_sends_mappings_to_the_program(self):
        words = [programs.BIN / "tacho", "record", "-v", "-o", "x.data", "-e", "cpu-clock", "-F", "499", "--call-graph", "eh", "--",
                 *self.deep("0.7")]
        hides = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
        said = self.run_program("unshare", "-m", "sh", "-c", hides, "sh", *words).stderr.decode()
        self.assertIn("the recorder writes mappings for the unwinder, since this kernel has no BTF", said)
        self.assertGreater(self.share(said)[0], NEEDED, said)

    def test_more_frames_than_the_kernel_walks(self):
        said = self.record("-e", "cpu-clock", "-F", "199", "--call-graph", "eh,400", "--", *self.deep("0.5"))
        self.share(said)

    def test_frames_are_cut_at_the_given_number(self):
        said = self.record("-e", "cpu-clock", "-F", "199", "--call-graph", "eh,40", "--", *self.deep("0.7"))
        self.assertIn("at the maximum of frames", said)
        self.assertLessEqual(max(len([name for name in stack if name.startswith("deep_")])
                                 for stack in self.stacks()), 40)

    def test_g_is_eh_where_the_kernel_can(self):
        events = "{cpu-clock,page-faults,context-switches}:S"
        kinds = [("-F", "499", "-e", "cpu-clock"), ("-F", "499", "-e", events), ("--no-inherit", "-F", "499", "-e", "cpu-clock"),
                 ("-a", "-e", "syscalls:sys_enter_tgkill"), ("-F", "499", "-e", "cpu-clock", "--switch-output=1M")]
        for words in kinds:
            with self.subTest(words=words):
                said = self.record(*words, "-v", "-g", "--", *self.deep("0.5"))
                self.assertRegex(said, r"stacks of every event: unwound in the kernel|stacks of event .*: unwound in the kernel")
                share, count = self.share(said)
                self.assertGreater(count, 5, said)
                self.assertGreater(share, NEEDED, said)
                files = [path.name for path in self.folder.glob("x.data.2*")] if "--switch-output=1M" in words else ["x.data"]
                walked = 0
                for name in files:  # the last thread on the CPU may have no sample
                    header = self.tacho("header", "-i", name).stdout.decode()
                    self.assertIn("unwound in the kernel (ehframe)", header)
                    reported = re.findall(r"# user stacks : walked: (\d+)\n# user stacks : whole: \d+ \(\d+\.\d\d %\)", header)
                    walked += sum(map(int, reported))
                self.assertEqual(walked, count, said)

    def test_pipes_and_snapshots_say_the_same(self):
        run = [programs.BIN / "tacho", "record", "-v", "-F", "499", "-e", "cpu-clock", "-g", "-o", "-", "--", *self.deep("0.4")]
        piped = self.run_program("sh", "-c", '"$@" > piped.data', "sh", *run).stderr.decode()
        self.assertGreater(self.share(piped)[0], NEEDED)
        self.assertIn("unwound in the kernel (ehframe)", self.tacho("header", "-i", "piped.data").stdout.decode())
        self.record("--overwrite", "-F", "499", "-e", "cpu-clock", "-g", "--", *self.deep("0.4"))
        whole = [stack for stack in self.stacks() if stack[-1] in ("_start", "clone3", "__clone", "clone")]
        self.assertGreater(len(whole), 20)

    @programs.needs_perf
    def test_perf_reads_what_g_records(self):
        self.record("-e", "{cpu-clock,page-faults}:S", "-F", "199", "-g", "--", *self.deep("0.4"))
        theirs = self.perf("script", "-i", "x.data", "-F", "comm,tid,time,event,ip,sym").stdout
        self.assertEqual(theirs, self.tacho("script", "-i", "x.data", "-F", "comm,tid,time,event,ip,sym").stdout)
        self.assertIn(b"deep_recurse", self.perf("report", "--stdio", "-i", "x.data").stdout)

    def test_where_it_cannot_be_g_says_so_and_copies_stacks(self):
        """Without rights; without a ring for each CPU; with frame pointers on request. No error, and stack copies are unwound
        when the recording ends."""
        command = ["--", programs.BIN / "deep_load", "0.3", programs.BIN / "deep_library.so"]
        said = self.record("-v", "-F", "99", "-e", "cpu-clock:u", "--call-graph", "fp", *command)
        self.assertNotIn("User stacks:", said)
        self.assertNotIn("user stacks :", self.tacho("header", "-i", "x.data").stdout.decode())
        said = self.record("--per-thread", "-F", "99", "-e", "cpu-clock", "-g", *command)
        self.assertIn("-g: stacks are copied, 8 KB each, and unwound from the copies, since unwound stacks need a ring for each CPU", said)
        self.assertIn("unwound from the copies, since unwound stacks need a ring for each CPU", self.tacho("header", "-i", "x.data").stdout.decode())
        words = [programs.BIN / "tacho", "record", "-v", "-o", "y.data", "-F", "99", "-e", "cpu-clock:u", "-g", *command]
        bare = self.run_program("setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "--", *words).stderr.decode()
        self.assertIn("-g: stacks are copied, 8 KB each, and unwound from the copies, since no permission to load BPF programs", bare)
        self.assertNotIn("warning", bare)
        header = self.tacho("header", "-i", "y.data").stdout.decode()
        self.assertIn("unwound from the copies, since no permission to load BPF programs", header)
        stacks = self.stacks("y.data")
        whole = [stack for stack in stacks if stack[-1] in ("_start", "clone3", "__clone", "clone")]
        self.assertGreater(len(stacks), 5)
        self.assertGreater(len(whole), 0.8 * len(stacks), stacks)
        # Plain call chains: no stack copies are left, and the file is small.
        self.assertNotIn("ustack", self.tacho("dump", "-i", "y.data").stdout.decode())
        self.assertLess((self.folder / "y.data").stat().st_size, 400_000)

    def test_what_bpf_programs_write_has_whole_stacks(self):
        """A recorder with walks before its events, and one with stacks in its payload."""
        opens = "for i in range(200): open('/proc/self/status').close()"
        sleeps = "import time\nfor i in range(100): time.sleep(0.002)"
        python = os.path.realpath(sys.executable)
        for event, work, leaf in [("open", opens, "open"), ("offcpu", sleeps, "nanosleep")]:
            with self.subTest(event=event):
                said = self.record("-v", "-e", event, "-g", "--", python, "-S", "-c", work)
                self.assertRegex(said, "stacks of every event: unwound in the kernel|stacks of event .*: unwound in the kernel")
                text = self.tacho("script", "-i", "x.data", "-F", "comm,ip,sym").stdout.decode()
                stacks = [block.splitlines() for block in text.split("\n\n") if any(leaf in line for line in block.splitlines())]
                whole = [lines for lines in stacks if "_start" in lines[-1] and "main" in lines[-3] + lines[-4]]
                self.assertGreater(len(stacks), 90, said)
                self.assertGreater(len(whole), NEEDED * len(stacks), said)

    def test_a_program_that_has_no_room_for_the_unwinder_says_so(self):
        """The verifier counts the stacks of functions that call each other together, 512 bytes at most; a program that may end
        in another one (a tail call) gets no stack beside."""
        (self.folder / "large.bpf.c").write_text("""
            #include <linux/bpf.h>
            #include <bpf/bpf_helpers.h>
            #include <tacho/event.h>
            struct large { unsigned long words[62]; };
            EVENT(large, struct large);
            struct {
              __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
              __uint(key_size, sizeof(int));
              __uint(value_size, sizeof(int));
            } channel SEC(".maps") EVENT_CHANNEL(large);
            struct {
              __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
              __uint(key_size, sizeof(int));
              __uint(value_size, sizeof(int));
              __uint(max_entries, 1);
            } after SEC(".maps");
            SEC("tracepoint/syscalls/sys_enter_tgkill")
            int on_call(void *ctx) {
              struct large event;
              for (int i = 0; i < 62; ++i) event.words[i] = bpf_get_prandom_u32();
              bpf_perf_event_output(ctx, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
              bpf_tail_call(ctx, &after, 0);
              return 1;
            }
            char LICENSE[] SEC("license") = "GPL";
            """)
        said = self.record("-e", "./large.bpf.c", "-g", "--", *self.deep("0.4"))
        self.assertRegex(said, r"(?m)^tacho record: -g: stacks of 'large' are walked by frame pointers, since with the unwinder it is "
                               r"refused: ./large.bpf.c: program on_call \(.*\): the kernel's verifier refused it \(Permission denied\): combined stack size of \d+ calls is \d+. Too large$")
        self.assertRegex(said, r"\([1-9]\d* samples, 0 lost\)")
        self.assertNotIn("User stacks:", said)

    def test_programs_of_users_have_whole_stacks_when_they_let_us(self):
        source = """
            #include <linux/bpf.h>
            #include <bpf/bpf_helpers.h>
            %s
            struct {
              __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
              __uint(key_size, sizeof(int));
              __uint(value_size, sizeof(int));
            } calls SEC(".maps");
            SEC("tracepoint/syscalls/sys_enter_tgkill")
            int on_call(void *context) {
              __u64 now = bpf_ktime_get_ns();
              bpf_perf_event_output(context, &calls, BPF_F_CURRENT_CPU, &now, sizeof now);
              return 1;
            }
            char LICENSE[] SEC("license") = "GPL";
            """
        for included, header, share in [("#include <tacho/event.h>", "unwound in the kernel", NEEDED), ("", "without tacho/event.h", 0)]:
            with self.subTest(included=included):
                (self.folder / "calls.bpf.c").write_text(source % included)
                self.record("-e", "./calls.bpf.c", "-g", "--", *self.deep("0.4"))
                self.assertIn(header, self.tacho("header", "-i", "x.data").stdout.decode())
                stacks = self.stacks()
                whole = [stack for stack in stacks if stack[-1] == "_start" and "main" in stack and "raise" in stack]
                self.assertGreater(len(stacks), 5)
                self.assertGreaterEqual(len(whole), share * len(stacks))

    def test_impossible_requests_are_refused(self):
        said = self.record("--per-thread", "--call-graph", "eh", "--", "true", status=1)
        self.assertIn("cannot be used with --per-thread", said)
        self.assertIn("1 to 1024", self.record("--call-graph", "eh,5000", "-a", status=1))


if __name__ == "__main__":
    programs.main()
