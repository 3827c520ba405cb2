#!/usr/bin/env python3
"""tacho stacks, compared with eu-stack and with output of the target."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import programs
import screen
from recorder_loads import HELD

NOBODY = 65534
SERVER = programs.ROOT / "tests/support/hanging_file.py"

DEADLOCK = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
__attribute__((noinline)) static void take_second(void) { pthread_mutex_lock(&second); pause(); }
__attribute__((noinline)) static void take_first(void) { pthread_mutex_lock(&first); pause(); }
static void *one(void *x) { pthread_mutex_lock(&first); pthread_barrier_wait(&both); take_second(); return x; }
static void *two(void *x) { pthread_mutex_lock(&second); pthread_barrier_wait(&both); take_first(); return x; }
int main(void) {
  pthread_t a, b;
  pthread_barrier_init(&both, 0, 2);
  pthread_create(&a, 0, one, 0);
  pthread_create(&b, 0, two, 0);
  write(1, "r", 1);
  pthread_join(a, 0);
}
"""

# Threads that wait for a condition variable, each at its own depth; their number is the first argument.
CROWD = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
__attribute__((noinline)) static int deep(int n) {
  volatile char room[40];
  room[0] = 0;
  if (n > 0) return deep(n - 1) + room[0];
  pthread_mutex_lock(&lock);
  for (;;) pthread_cond_wait(&never, &lock);
}
static void *run(void *n) { deep((int)(long)n); return 0; }
int main(int count, char **words) {
  int threads = atoi(words[1]);
  for (long i = 1; i < threads; ++i) { pthread_t t; if (pthread_create(&t, 0, run, (void *)(i % 10))) return 1; }
  sleep(1);
  write(1, "r", 1);
  deep(3);
}
"""

# Reads memory of other processes in 5 ms more.
SLOW_READS = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long tos, const struct iovec *from, unsigned long froms,
                         unsigned long flags) {
  usleep(5000);
  return syscall(SYS_process_vm_readv, pid, to, tos, from, froms, flags);
}
"""

# Threads that never sleep; the longest gap of one of them is printed every 100 ms.
BUSY = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec / 1e6; }
static atomic_long turns;
__attribute__((noinline)) static void spin(int says) {
  double begin = now(), last = begin, most = 0;
  for (;;) {
    double time = now();
    if (time - last > most) most = time - last;
    last = time;
    ++turns;
    if (!says || time - begin < 100) continue;
    printf("%ld %.3f\n", turns, most);
    fflush(stdout);
    begin = last = now();
    most = 0;
  }
}
static void *run(void *x) { spin(0); return x; }
int main(int count, char **words) {
  for (int i = 1; i < atoi(words[1]); ++i) { pthread_t t; pthread_create(&t, 0, run, 0); }
  spin(1);
}
"""

# Threads that take a mutex in turn; the one that has it sleeps.
CONVOY = r"""
#include <pthread.h>
#include <unistd.h>
pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void hold(void) { usleep(2000); }
static void *run(void *x) {
  for (;;) { pthread_mutex_lock(&turn_lock); hold(); pthread_mutex_unlock(&turn_lock); }
  return x;
}
int main(void) {
  pthread_t t;
  for (int i = 0; i < 7; ++i) pthread_create(&t, 0, run, 0);
  write(1, "r", 1);
  run(0);
}
"""

# The first thread ends, the other one goes on.
LEADERLESS = r"""
#include <pthread.h>
#include <unistd.h>
__attribute__((noinline)) static void goes_on(void) { write(1, "r", 1); for (;;) pause(); }
static void *run(void *x) { sleep(1); goes_on(); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_exit(0); }
"""

# Runs a copy of a program that is only in memory.
IN_MEMORY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
  int from = open(words[1], O_RDONLY), to = memfd_create("copy", MFD_CLOEXEC);
  struct stat size;
  fstat(from, &size);
  if (sendfile(to, from, 0, size.st_size) != size.st_size) return 1;
  fexecve(to, words + 1, environ);
  return 2;
}
"""

GO = r"""
package main
import ("fmt"; "time")
//go:noinline
func waits(c chan int) int { return <-c }
func main() {
  never := make(chan int)
  for i := 0; i < 20; i++ { go waits(never) }
  time.Sleep(300 * time.Millisecond)
  fmt.Print("r")
  time.Sleep(time.Hour)
}
"""


def state_of(process):
    return re.search(r"^State:\s+(\S)", Path(f"/proc/{process}/status").read_text(), re.M)[1]


def user_frames(stack):
    """Addresses of user frames that are not inlined calls."""
    return [int(frame["ip"], 16) for frame in stack["frames"] if not frame.get("inlined") and not frame.get("kernel")]


@programs.needs_root
class Stacks(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        cls.built = programs.built_once(cls, {"deadlock": DEADLOCK, "crowd": CROWD, "busy": BUSY, "convoy": CONVOY, "held": HELD,
                                           "leaderless": LEADERLESS, "in_memory": IN_MEMORY})
        subprocess.run(["cc", "-O1", "-static", "-pthread", "-o", cls.built / "static", cls.built / "crowd.c"], check=True)

    def start(self, *words, ready=b"r", **more):
        """Starts a target, and waits until it is at its final state."""
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, **more)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        if ready:
            self.assertEqual(process.stdout.read(len(ready)), ready)
            time.sleep(0.1)
        return process

    def stacks(self, *words, status=0):
        return json.loads(self.run_program(programs.BIN / "tacho", "stacks", "--json", *words, status=status).stdout)

    def by_thread(self, found):
        return {thread["tid"]: (stack, thread) for stack in found["stacks"] for thread in stack["threads"]}

    def one_by_one(self, process):
        """The stack of each thread: joined stacks have the addresses of the first thread."""
        found = {}
        for thread in os.listdir(f"/proc/{process}/task"):
            for tid, pair in self.by_thread(self.stacks("-t", thread)).items():
                found[tid] = pair
        return found

    def same_as_eu_stack(self, process, found, least=2):
        if not shutil.which("eu-stack"):
            self.skipTest("needs eu-stack (Debian: elfutils)")
        text = self.run_program("eu-stack", "-n", "0", "-p", process, status=None).stdout.decode()
        compared = 0
        for part in re.split(r"^TID ", text, flags=re.M)[1:]:
            tid = int(part.split(":")[0])
            theirs = [int(address, 16) for address in re.findall(r"^#\d+\s+(0x[0-9a-f]+)", part, re.M)]
            ours = user_frames(found[tid][0])
            if not theirs:
                continue
            # eu-stack prints return addresses; its last frames may be beyond the outermost function.
            self.assertEqual(ours[0], theirs[0], part)
            callers = [{address, address - 1} for address in theirs[1:]]
            self.assertGreaterEqual(len(callers) + 1, len(ours), part)
            for mine, other in zip(ours[1:], callers):
                self.assertIn(mine, other, part)
            self.assertLessEqual(len(theirs) - len(ours), 1, part)
            compared += 1
        self.assertGreaterEqual(compared, least)

    def test_deadlock(self):
        process = self.start(self.built / "deadlock")
        found = self.stacks("-p", process.pid)
        self.assertEqual(found["threads"], 3)
        threads = self.by_thread(found)
        (circle,) = found["deadlocks"]
        self.assertEqual(sorted(circle), sorted(set(threads) - {process.pid}))
        for tid in circle:
            stack, thread = threads[tid]
            self.assertEqual(thread["owner"], next(other for other in circle if other != tid))
            self.assertEqual((stack["state"], stack["call"]), ("sleeping", "futex"))
            self.assertEqual(thread["args"][0], thread["lock"])
            self.assertEqual(thread["paused_ns"], 0)
            functions = [frame.get("function") for frame in stack["frames"]]
            self.assertTrue({"take_first", "take_second"} & set(functions), functions)
            self.assertTrue(any(frame.get("kernel") for frame in stack["frames"]))
        self.same_as_eu_stack(process.pid, threads)
        text = self.run_program(programs.BIN / "tacho", "stacks", "-p", process.pid).stdout.decode()
        self.assertIn("3 threads of 1 process, 3 stacks; none was stopped\n", text)
        self.assertRegex(text, rf"Deadlock:\n  {circle[0]} \(deadlock\) waits for the mutex 0x\w+ \((first|second)\), which {circle[1]} has\n")
        self.assertEqual({threads[tid][1]["lock_name"] for tid in circle}, {"first", "second"})
        self.assertEqual({threads[tid][1]["moved"] for tid in circle}, {0})

    def test_a_convoy_is_no_deadlock(self):
        process = self.start(self.built / "convoy")
        convoys = 0
        for words in ([], ["--stop"]) * 3:
            found = self.stacks(*words, "-p", process.pid)
            self.assertEqual(found["deadlocks"], [], words)
            for lock in found["held"]:
                self.assertNotIn(lock["owner"], lock["waiting"])
                self.assertEqual(lock["lock_name"], "turn_lock")
                convoys += lock["convoy"]
        self.assertGreater(convoys, 0)
        text = self.run_program(programs.BIN / "tacho", "stacks", "-p", process.pid).stdout.decode()
        self.assertRegex(text, r"\nConvoy: threads take the mutex 0x\w+ \(turn_lock\) in turn; \d threads wait, \d+ \(convoy\) has it\n"
                               r"  moved in \d+ ms: [\d -]+ \d+ times.*\n  \d+ \(convoy\), ")
        self.assertIn("      hold  (", text)

    def test_the_owner_of_each_kind_of_lock(self):
        for kind in ("normal", "recursive", "b: robust", "inherits", "shared", "writer"):
            process = self.start(self.built / "held", kind)
            owner = next(int(tid) for tid in os.listdir(f"/proc/{process.pid}/task") if int(tid) != process.pid)
            name = "table_locks+0x" + ("68" if kind == "writer" else "40")
            for words in ([], ["--stop"]):
                found = self.stacks(*words, "-p", process.pid)
                (lock,) = found["held"]
                self.assertEqual((lock["owner"], lock["waiting"], lock["convoy"]), (owner, [process.pid], False), kind)
                self.assertEqual(lock["lock_kind"], "read-write lock" if kind == "writer" else "mutex")
                if kind != "writer":
                    self.assertEqual(lock["lock_name"], name)
                self.assertEqual(found["deadlocks"], [])
            text = self.run_program(programs.BIN / "tacho", "stacks", "-t", process.pid).stdout.decode()
            self.assertRegex(text, rf"\n1 thread waits for the {lock['lock_kind']} 0x\w+ \(table_locks.*\), which {owner} \(held\) has\n"
                                   rf"  {owner} \(held\), sleeping in pause.*, did not move in \d+ ms:\n")
            self.assertIn("      keep_it  (", text)

    def test_owners_in_another_pid_namespace(self):
        outside = self.start("unshare", "--pid", "--fork", self.built / "deadlock")
        inside = int(Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text())
        self.addCleanup(subprocess.run, ["kill", "-9", str(inside)], check=False)
        (circle,) = self.stacks("-p", inside)["deadlocks"]
        self.assertEqual(len(circle), 2)
        self.assertTrue(all(os.path.exists(f"/proc/{inside}/task/{tid}") for tid in circle), circle)

    def names(self, process, *words):
        """The functions of the user's part of the only stack, and the same by a capture that is read when the process is gone."""
        found = self.stacks(*words, "-p", process.pid, "-o", "now.data")
        process.kill()
        process.wait()
        again = json.loads(self.tacho("stacks", "--symfs", "/dev/null", "-i", "now.data", "--json").stdout)
        stacks = [[frame.get("function") for frame in one["stacks"][0]["frames"] if not frame.get("kernel")] for one in (found, again)]
        self.assertEqual(*stacks)
        return stacks[0]

    def test_programs_without_their_files(self):
        (self.folder / "level.c").write_text(
            '#include <unistd.h>\n__attribute__((noinline)) int level(int x) { write(1, "r", 1); return x ? pause() + 1 : 0; }\n'
            "int main(int count, char **words) { return level(count) + 1; }\n")
        whole = ["level", "main", "__libc_start_call_main", "_start"]
        def check(process, *words):
            found = self.names(process, *words)
            self.assertEqual([name for name in found if name in whole], whole, found)
        for options in ([], ["-Wl,--build-id=none"]):
            self.run_program("cc", "-O1", *options, "-o", "level", "level.c")
            for words in ([], ["--stop"]):
                shutil.copy(self.folder / "level", self.folder / "gone")
                process = self.start(self.folder / "gone")
                (self.folder / "gone").unlink()
                check(process, *words)
            shutil.copy(self.folder / "level", self.folder / "replaced")
            process = self.start(self.folder / "replaced")
            shutil.copy("/bin/true", self.folder / "other")
            os.rename(self.folder / "other", self.folder / "replaced")
            check(process)
            shutil.copy(self.folder / "level", self.folder / "is (deleted)")
            check(self.start(self.folder / "is (deleted)"))
            shutil.copy(self.folder / "level", self.folder / "two\nlines")
            process = self.start(self.folder / "two\nlines")
            (self.folder / "two\nlines").unlink()
            check(process)
            check(self.start(self.built / "in_memory", self.folder / "level"))
            hidden = self.folder / "hidden"
            hidden.mkdir(exist_ok=True)
            process = self.start("unshare", "--mount", "sh", "-c",
                                 f"mount -t tmpfs none {hidden} && cp {self.folder}/level {hidden}/x && exec {hidden}/x")
            check(process)

    def test_a_process_whose_first_thread_has_ended(self):
        process = self.start(self.built / "leaderless")
        other = max(int(tid) for tid in os.listdir(f"/proc/{process.pid}/task"))
        stack, _ = self.by_thread(self.stacks("-p", process.pid))[other]
        self.assertIn("goes_on", [frame.get("function") for frame in stack["frames"]])

    def test_the_same_by_stopping(self):
        process = self.start(self.built / "deadlock")
        by_bpf, by_ptrace = self.stacks("-p", process.pid), self.stacks("--stop", "-p", process.pid)
        self.assertEqual(sorted(by_bpf["deadlocks"][0]), sorted(by_ptrace["deadlocks"][0]))
        ours, theirs = self.by_thread(by_bpf), self.by_thread(by_ptrace)
        self.assertEqual(set(ours), set(theirs))
        for tid, (stack, _) in ours.items():
            names = [[frame.get("function") for frame in each["frames"]] for each in (stack, theirs[tid][0])]
            self.assertEqual(*names)
            self.assertEqual(stack["call"], theirs[tid][0]["call"])
            self.assertGreater(theirs[tid][1]["paused_ns"], 0)

    def test_crowd_joins_equal_stacks(self):
        process = self.start(self.built / "crowd", "1000")
        found = self.stacks("-p", process.pid)
        self.assertEqual(found["threads"], 1000)
        self.assertEqual(len(found["stacks"]), 11)  # ten depths, and main()
        self.assertEqual(sorted(len(stack["threads"]) for stack in found["stacks"])[-1], 100)
        self.assertTrue(all(thread["paused_ns"] == 0 for _, thread in self.by_thread(found).values()))
        for stack in found["stacks"]:
            self.assertIn("deep", [frame.get("function") for frame in stack["frames"]])

    @screen.needs_tmux
    def test_long_names_fit_the_terminal(self):
        name = "begins_" + "and_goes_on_" * 20 + "ends"
        source = f"#include <unistd.h>\n__attribute__((noinline)) int {name}(void) {{ write(1, \"r\", 1); return pause() + 1; }}\n"
        (self.folder / "long.c").write_text(source + f"int main(void) {{ return {name}(); }}\n")
        self.run_program("cc", "-O1", "-o", "long", "long.c")
        process = self.start(self.folder / "long")
        for width, height in ((80, 24), (200, 60)):
            one = screen.Screen(self.folder, width, height)
            self.addCleanup(one.close)
            shown = one.run("stacks", "-p", process.pid).wait_for(r"^ +main ")
            line = next(line for line in shown.split("\n") if "begins_" in line)
            self.assertRegex(line, rf"^      begins_\w+\.\.\w+_ends  \({self.folder}/long\)$")
            self.assertLessEqual(len(line), width)
            one.type("clear")
            one.run("stacks", "-p", process.pid, "--wide").wait_for(f" {name} ", "-J")
            one.close()
        self.assertIn(name.encode(), self.run_program(programs.BIN / "tacho", "stacks", "-p", process.pid, "--wide").stdout)

    def test_static_binary(self):
        process = self.start(self.built / "static", "4")
        self.same_as_eu_stack(process.pid, self.one_by_one(process.pid), least=4)

    def test_python(self):
        process = self.start(sys.executable, "-c", "import time; print('r', end='', flush=True); time.sleep(1000)")
        found = self.one_by_one(process.pid)
        self.assertEqual(found[process.pid][0]["state"], "sleeping")
        self.same_as_eu_stack(process.pid, found, least=1)

    @unittest.skipUnless(shutil.which("node"), "needs node")
    def test_node(self):
        process = self.start("node", "-e", "process.stdout.write('r'); setInterval(() => {}, 1e6)")
        self.same_as_eu_stack(process.pid, self.one_by_one(process.pid))

    @unittest.skipUnless(shutil.which("go"), "needs go")
    def test_go(self):
        (self.folder / "waits.go").write_text(GO)
        self.run_program("go", "build", "-o", "waits", "waits.go")
        process = self.start(self.folder / "waits")
        found = self.one_by_one(process.pid)
        functions = [frame.get("function", "") for stack, _ in found.values() for frame in stack["frames"]]
        self.assertTrue(any(name.startswith("runtime.futex") for name in functions), functions)
        self.same_as_eu_stack(process.pid, found, least=1)

    @unittest.skipUnless(os.path.exists("/dev/fuse"), "needs /dev/fuse")
    def test_uninterruptible(self):
        place = self.folder / "hanging"
        place.mkdir()
        (self.folder / "content").write_bytes(b"x" * (1 << 20))
        server = subprocess.Popen([sys.executable, SERVER, place, self.folder / "content"], stdout=subprocess.PIPE)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)
        if server.stdout.readline() != b"ready\n":
            self.skipTest("the kernel mounts no such file system here")
        process = self.start("dd", f"if={place}/file", "of=/dev/null", "bs=4096", "count=1", "skip=100", ready=b"", stderr=subprocess.DEVNULL)
        process.wait()
        server.send_signal(signal.SIGUSR1)
        time.sleep(0.2)
        hangs = self.start("dd", f"if={place}/file", "of=/dev/null", "bs=4096", "count=1", "skip=200", ready=b"", stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        hangs.kill()  # which waits uninterruptibly (state D)
        time.sleep(0.2)
        self.assertEqual(state_of(hangs.pid), "D")
        stack, thread = self.by_thread(self.stacks("-p", hangs.pid))[hangs.pid]
        self.assertEqual(stack["state"], "uninterruptible")
        self.assertTrue(any("fuse" in frame.get("function", "") for frame in stack["frames"] if frame.get("kernel")))
        self.assertGreater(len(user_frames(stack)), 2)
        self.assertEqual(thread["paused_ns"], 0)
        if stack["call"] == "read":
            self.assertTrue(thread["file"].endswith("/hanging/file"), thread)
        stopping = self.run_program(programs.BIN / "tacho", "stacks", "--stop", "--json", "-p", hangs.pid, status=None)
        self.assertEqual(json.loads(stopping.stdout)["stacks"][0]["state"], "uninterruptible")
        self.assertEqual(state_of(hangs.pid), "D")
        server.kill()

    def test_a_frozen_cgroup(self):
        mount = next((line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup2 " in line), None)
        if mount is None:
            self.skipTest("needs cgroup version 2")
        group = Path(mount) / f"tacho-stacks-{os.getpid()}"
        group.mkdir()
        process = self.start(self.built / "busy", "2", ready=b"")
        end = time.monotonic() + 30
        while len(os.listdir(f"/proc/{process.pid}/task")) < 2:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        self.addCleanup(group.rmdir)
        self.addCleanup(time.sleep, 0.2)
        self.addCleanup(process.kill)
        (group / "cgroup.procs").write_text(str(process.pid))
        (group / "cgroup.freeze").write_text("1")
        self.addCleanup((group / "cgroup.freeze").write_text, "0")
        time.sleep(0.3)
        found = self.stacks("-p", process.pid)
        self.assertEqual(found["threads"], 2)
        for stack, thread in self.by_thread(found).values():
            self.assertIn("spin", [frame.get("function") for frame in stack["frames"]])
            self.assertEqual(thread["paused_ns"], 0)

    def test_a_stopped_process_stays_stopped(self):
        process = self.start(self.built / "busy", "3", ready=b"")
        time.sleep(0.3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        for words in ([], ["--stop"]):
            found = self.stacks(*words, "-p", process.pid)
            self.assertEqual({stack["state"] for stack in found["stacks"]}, {"stopped"})
            self.assertIn("spin", [frame.get("function") for frame in found["stacks"][0]["frames"]])
            time.sleep(0.2)
            self.assertEqual({state_of(thread) for thread in os.listdir(f"/proc/{process.pid}/task")}, {"T"}, words)
        process.send_signal(signal.SIGCONT)
        self.check_goes_on(process)

    def check_goes_on(self, process):
        """The target goes on; returns its longest gap in ms."""
        seen = []
        end = time.monotonic() + 30
        while len(seen) < 3:
            self.assertLess(time.monotonic(), end)
            turns, most = process.stdout.readline().split()
            seen.append((int(turns), float(most)))
        self.assertLess(seen[0][0], seen[-1][0])
        return max(most for _, most in seen)

    def test_a_busy_process_is_stopped_shortly(self):
        process = self.start(self.built / "busy", "4", ready=b"")
        self.check_goes_on(process)
        for words in ([], ["--stop"]):
            found = self.stacks(*words, "-p", process.pid)
            self.assertEqual(found["threads"], 4)
            for stack, thread in self.by_thread(found).values():
                self.assertIn(stack["state"], ("running", "runnable"))
                self.assertIn("spin", [frame.get("function") for frame in stack["frames"]])
                self.assertLess(thread["paused_ns"], 200e6)
            # By its own clock, including delays of a busy machine's scheduler.
            self.assertLess(self.check_goes_on(process), 1000)

    def test_killed_midway(self):
        """If tacho is killed, no thread stays stopped, and a process that was stopped before stays stopped."""
        slow = self.built / "slow.so"  # a thread is stopped for as long as its stack is read
        (self.built / "slow.c").write_text(SLOW_READS)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", slow, self.built / "slow.c"], check=True)
        runs = self.start(self.built / "crowd", "100")
        busy = self.start(self.built / "busy", "2", ready=b"")
        stopped = self.start(self.built / "busy", "3", ready=b"")
        time.sleep(0.2)
        stopped.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        met = 0  # rounds in which tacho had stopped a thread
        for turn in range(500):
            if met >= programs.scaled(50, 5):
                break
            ours = subprocess.Popen([programs.BIN / "tacho-record", "--stacks", "--stop", "-q", "-p", f"{runs.pid},{busy.pid},{stopped.pid}"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                    env={**os.environ, "LD_PRELOAD": str(slow)})
            while ours.poll() is None and state_of(runs.pid) != "t":  # the first thread that is stopped
                time.sleep(0.001)
            time.sleep(random.random() * 0.2)
            if ours.poll() is not None:
                continue  # it was done before
            os.killpg(ours.pid, signal.SIGSTOP)  # to look while it works, and the child that stops threads
            met += any(state_of(f"{runs.pid}/task/{thread}") == "t" for thread in os.listdir(f"/proc/{runs.pid}/task"))
            ours.kill()
            if turn % 2 == 0:
                os.killpg(ours.pid, signal.SIGKILL)
            else:  # its children go on, and end by themselves
                os.killpg(ours.pid, signal.SIGCONT)
            ours.wait()
            deadline = time.monotonic() + 5
            while True:
                states = {state_of(f"{process.pid}/task/{thread}") for process in (runs, busy) for thread in os.listdir(f"/proc/{process.pid}/task")}
                if states <= {"S", "R"}:
                    break
                self.assertLess(time.monotonic(), deadline, states)
                time.sleep(0.01)
            self.assertEqual({state_of(f"{stopped.pid}/task/{thread}") for thread in os.listdir(f"/proc/{stopped.pid}/task")}, {"T"})
            self.assertIsNone(runs.poll())
        self.assertGreaterEqual(met, programs.scaled(50, 5))
        self.check_goes_on(busy)
        stopped.send_signal(signal.SIGCONT)
        self.check_goes_on(stopped)

    def test_capture_is_read_by_every_view_and_elsewhere(self):
        process = self.start(self.built / "deadlock")
        text = self.run_program(programs.BIN / "tacho", "stacks", "-p", process.pid, "-o", "now.data").stdout
        self.assertEqual(self.tacho("stacks", "now.data").stdout, text)
        process.kill()
        process.wait()
        self.assertEqual(self.tacho("stacks", "--symfs", "/dev/null", "-i", "now.data").stdout, text)
        self.assertIn(b"take_second", self.tacho("folded", "--symfs", "/dev/null", "-i", "now.data").stdout)
        self.assertIn(b"sleeping", self.tacho("table", "-i", "now.data", "--by", "state,call").stdout)
        script = self.tacho("script", "-i", "now.data", "--where", "owner != 0").stdout.decode()
        self.assertEqual(script.count("call=futex"), 2)
        found = json.loads(self.tacho("stacks", "--json", "now.data").stdout)  # by tacho-record
        self.assertEqual(found, json.loads(self.tacho("stacks", "now.data", "--json").stdout))
        self.assertEqual(len(found["deadlocks"]), 1)
        if shutil.which("perf"):
            self.assertIn(b"take_first", self.perf("script", "-i", "now.data").stdout)

    def test_whole_system(self):
        process = self.start(self.built / "deadlock")
        found = self.run_program(programs.BIN / "tacho", "stacks", "--json", "-a", status=None)
        self.assertIn(found.returncode, (0, 3), found.stderr)
        found = json.loads(found.stdout)
        threads = self.by_thread(found)
        self.assertIn(process.pid, threads)
        self.assertIn(2, threads)
        self.assertTrue(all(frame.get("kernel") for frame in threads[2][0]["frames"]))  # kthreadd
        self.assertTrue(any(threads[circle[0]][1]["pid"] == process.pid for circle in found["deadlocks"]))

    def test_bad_use(self):
        for words, said in (
            ([], "give one of -p PID"),
            (["-p", "1", "-a"], "give one of -p PID"),
            (["-p", "x"], "-p: 'x'"),
            (["-p", "999999999"], "there is no process or thread 999999999"),
            (["--nothing"], "--nothing"),
        ):
            done = self.run_program(programs.BIN / "tacho", "stacks", *words, status=1)
            self.assertEqual(done.stdout, b"")
            self.assertIn(said, done.stderr.decode())
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        (self.folder / "no.data").write_bytes(b"no capture")
        self.tacho("stacks", "no.data", status=2)
        self.run_program(programs.BIN / "tacho", "stacks", "-p", os.getpid(), "-o", "/nowhere/at/all", status=4)

    def test_without_rights(self):
        """Own processes are read by ptrace, with a message; processes of others are not read."""
        here = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        os.chmod(self.built, 0o755)
        process = self.start(*here, self.built / "deadlock")
        done = self.run_program(*here, programs.BIN / "tacho-record", "--stacks", "--json", "-p", process.pid, status=None)
        if b"Permission denied" in done.stderr and not done.stdout:
            self.skipTest("nobody may not run tacho from here")
        self.assertIn(b"threads are stopped one after another", done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(len(found["deadlocks"]), 1)
        self.assertIn("take_second", json.dumps(found))
        other = self.start(self.built / "deadlock")
        done = self.run_program(*here, programs.BIN / "tacho-record", "--stacks", "-p", other.pid, status=3)
        self.assertIn(b"CAP_SYS_PTRACE", done.stderr)


if __name__ == "__main__":
    programs.main()
