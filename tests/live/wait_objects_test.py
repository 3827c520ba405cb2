#!/usr/bin/env python3
"""What threads wait for, as the recorders offcpu and lock say: locks and their owners, files, sockets; and what kept them waiting."""
import csv
import io
import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import programs
from recorder_loads import HELD

# Another thread has a lock for 60 ms, while main waits for it: a static mutex, one on the heap, a rwlock with a writer (twice: main
# reads, main writes), a rwlock with a reader. The argument is how often.
LOCKS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER, *heap;
static struct { char before[64]; pthread_rwlock_t lock; } table;
static pthread_barrier_t both;
static void nap(long ms) { struct timespec time = {0, ms * 1000000}; nanosleep(&time, 0); }
static void mutex(pthread_mutex_t *lock, int has) {
  pthread_mutex_lock(lock);
  if (has) { pthread_barrier_wait(&both); nap(60); }
  pthread_mutex_unlock(lock);
}
static void rwlock(int (*take)(pthread_rwlock_t *), int has) {
  take(&table.lock);
  if (has) { pthread_barrier_wait(&both); nap(60); }
  pthread_rwlock_unlock(&table.lock);
}
static void one(int kind, int has) {
  if (kind == 0) mutex(&cache_lock, has);
  else if (kind == 1) mutex(heap, has);
  else if (kind == 2) rwlock(has ? pthread_rwlock_wrlock : pthread_rwlock_rdlock, has);
  else if (kind == 3) rwlock(pthread_rwlock_wrlock, has);
  else rwlock(has ? pthread_rwlock_rdlock : pthread_rwlock_wrlock, has);
}
static const char *names[] = {"has_static", "has_heap", "writes", "writes", "reads"};
static void *has(void *kind) {
  pthread_setname_np(pthread_self(), names[(long)kind]);
  one((long)kind, 1);
  return 0;
}
int main(int count, char **words) {
  pthread_mutex_init(heap = malloc(sizeof *heap), 0);
  pthread_rwlock_init(&table.lock, 0);
  pthread_barrier_init(&both, 0, 2);
  for (int i = atoi(words[1]); i > 0; --i)
    for (long kind = 0; kind < 5; ++kind) {
      pthread_t other;
      pthread_create(&other, 0, has, (void *)kind);
      pthread_barrier_wait(&both);
      one(kind, 0);
      pthread_join(other, 0);
    }
}
"""

# A server thread answers after 30 ms, and waits 30 ms for what it reads and for the connection: TCP of both kinds, then a unix socket.
# Then a file is synced, and a pipe, an epoll and an eventfd are waited for.
FILES = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
static void nap(void) { struct timespec time = {0, 30000000}; nanosleep(&time, 0); }
static void need(int is_true) { if (!is_true) abort(); }
static int listener;
static char byte;
static void *serves(void *unused) {
  int fd;
  pthread_setname_np(pthread_self(), "serves");
  need((fd = accept(listener, 0, 0)) >= 0);
  for (int i = 0; i < 2; ++i) {
    need(read(fd, &byte, 1) == 1);
    nap();
    need(write(fd, &byte, 1) == 1);
  }
  close(fd);
  return unused;
}
static void asks(int family, void *address, socklen_t size) {
  struct epoll_event event = {EPOLLIN, {0}};
  int epoll = epoll_create1(0);
  pthread_t server;
  struct pollfd one = {-1, POLLIN, 0};
  listener = socket(family, SOCK_STREAM, 0);
  need(!bind(listener, address, size) && !listen(listener, 8) && !getsockname(listener, address, &size));
  if (family != AF_UNIX) printf("%d\n", ntohs(((struct sockaddr_in *)address)->sin_port));
  pthread_create(&server, 0, serves, 0);
  nap();
  one.fd = socket(family, SOCK_STREAM, 0);
  need(!connect(one.fd, address, size));
  nap();
  need(write(one.fd, &byte, 1) == 1 && poll(&one, 1, -1) == 1 && read(one.fd, &byte, 1) == 1);
  need(!epoll_ctl(epoll, EPOLL_CTL_ADD, one.fd, &event));
  need(write(one.fd, &byte, 1) == 1 && epoll_wait(epoll, &event, 1, -1) == 1 && read(one.fd, &byte, 1) == 1);
  close(one.fd);
  pthread_join(server, 0);
  close(listener);
}
int main(void) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "here.sock"};
  struct epoll_event event = {EPOLLIN, {0}};
  struct pollfd one = {eventfd(0, 0), POLLIN, 0};
  int ends[2], epoll = epoll_create1(0), file;
  alarm(20);
  asks(AF_INET, &four, sizeof four);
  asks(AF_INET6, &six, sizeof six);
  asks(AF_UNIX, &path, sizeof path);
  mkdir("folder", 0700);
  need((file = open("folder/synced", O_WRONLY | O_CREAT, 0600)) >= 0);
  for (int i = 0; i < 10; ++i) need(write(file, &ends, sizeof ends) > 0 && fsync(file) == 0);
  need(!pipe(ends));
  if (fork() == 0) { nap(); need(write(ends[1], &byte, 1) == 1); _exit(0); }
  need(read(ends[0], &byte, 1) == 1 && !epoll_ctl(epoll, EPOLL_CTL_ADD, one.fd, &event));
  need(epoll_wait(epoll, &event, 1, 30) == 0 && poll(&one, 1, 30) == 0);
  nap();
  return 0;
}
"""

# A thread serves datagrams at a port of its own; main asks it by a socket that is not connected, as a resolver does. Both wait 30 ms.
DATAGRAMS = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static void nap(void) { struct timespec time = {0, 30000000}; nanosleep(&time, 0); }
static void need(int is_true) { if (!is_true) abort(); }
static int server;
static char byte;
static void *serves(void *unused) {
  struct sockaddr_in from;
  socklen_t size = sizeof from;
  pthread_setname_np(pthread_self(), "serves");
  need(recvfrom(server, &byte, 1, 0, (void *)&from, &size) == 1);
  nap();
  need(sendto(server, &byte, 1, 0, (void *)&from, size) == 1);
  return unused;
}
int main(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  pthread_t other;
  int client = socket(AF_INET, SOCK_DGRAM, 0), port = 20000 + getpid() % 10000;
  alarm(20);
  server = socket(AF_INET, SOCK_DGRAM, 0);
  do at.sin_port = htons(++port); while (bind(server, (void *)&at, sizeof at));
  printf("%d\n", port);
  pthread_create(&other, 0, serves, 0);
  nap();
  need(sendto(client, &byte, 1, 0, (void *)&at, sizeof at) == 1 && recv(client, &byte, 1, 0) == 1);
  pthread_join(other, 0);
}
"""

# A thread that 400 others stand before has a mutex again and again.
MANY = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER, idle_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static void *idles(void *x) {
  pthread_mutex_lock(&idle_lock);
  for (;;) pthread_cond_wait(&never, &idle_lock);
  return x;
}
static void *has(void *x) {
  struct timespec time = {0, 50000000};
  pthread_setname_np(pthread_self(), "has_it");
  for (;;) {
    pthread_mutex_lock(&cache_lock);
    pthread_barrier_wait(&both);
    nanosleep(&time, 0);
    pthread_mutex_unlock(&cache_lock);
    pthread_barrier_wait(&both);
  }
  return x;
}
int main(void) {
  pthread_t other;
  pthread_barrier_init(&both, 0, 2);
  for (int i = 0; i < 400; ++i) pthread_create(&other, 0, idles, 0);
  pthread_create(&other, 0, has, 0);
  write(1, "r", 1);
  for (;;) {
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&cache_lock);
    pthread_mutex_unlock(&cache_lock);
    pthread_barrier_wait(&both);
  }
}
"""

# Two threads run on one CPU for some time.
BUSY = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <time.h>
static double now(void) { struct timespec time; clock_gettime(CLOCK_MONOTONIC, &time); return time.tv_sec + time.tv_nsec / 1e9; }
static double end;
static void *spins(void *name) {
  if (name) pthread_setname_np(pthread_self(), name);
  while (now() < end) {}
  return 0;
}
int main(void) {
  cpu_set_t only;
  pthread_t other;
  CPU_ZERO(&only);
  CPU_SET(sched_getcpu(), &only);
  sched_setaffinity(0, sizeof only, &only);
  end = now() + 0.6;
  pthread_create(&other, 0, spins, "spins");
  spins(0);
  pthread_join(other, 0);
}
"""

# Sleeps 1000 times for a short time, and after more than a second once more.
NAPS = r"""
#include <time.h>
int main(void) {
  struct timespec one = {0, 50000}, pause = {1, 100000000};
  for (int i = 0; i < 1000; ++i) nanosleep(&one, 0);
  nanosleep(&pause, 0);
}
"""


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(shutil.which("cc") and os.uname().machine == "x86_64", "needs cc, and x86-64")
class WaitObjects(programs.Scratch):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.built = programs.built_once(cls, {"locks": LOCKS, "files": FILES, "datagrams": DATAGRAMS, "busy": BUSY, "many": MANY, "held": HELD, "naps": NAPS})

    def setUp(self):
        super().setUp()
        self.need_recorder("offcpu")

    def record(self, *words):
        return self.run_program(programs.BIN / "tacho-record", "-q", "-o", "out.data", *words).stdout.decode()

    def rows(self, *words, event="offcpu"):
        text = self.tacho("table", "-i", "out.data", "--csv", "--event", event, *words).stdout.decode()
        return list(csv.DictReader(io.StringIO(text)))

    def found(self, keys, where, event="offcpu"):
        """The values of some members in waits for which a condition holds."""
        rows = self.rows("--by", keys, "--columns", "count", "--where", where, event=event)
        return {tuple(row[key] for key in keys.split(",")) for row in rows}

    def check_locks(self, event, value, comm="locks"):
        found = self.found("lock,object,holder", f'{value} > 10ms && lock != 0 && comm == "{comm}" && holder != ""', event)
        self.assertIn(("cache_lock", "mutex", "has_static"), found)
        self.assertIn(("table+0x40", "rwlock", "writes"), found)
        self.assertEqual({(kind, holder) for lock, kind, holder in found if lock.startswith("0x")}, {("mutex", "has_heap")}, found)
        found = self.found("lock,object,holder", f'{value} > 10ms && object == rwlock && holder_tid == 0', event)
        self.assertEqual(found, {("table+0x40", "rwlock", "")})

    def test_locks_with_their_owners(self):
        self.record("-e", "offcpu,lock", "--", self.built / "locks", "1")
        self.check_locks("offcpu", "off_ns")
        self.check_locks("lock", "wait_ns")
        for event in ("offcpu", "lock"):  # each thread has a name of its own
            tids = {name: tid for name, tid in self.found("comm,tid", "off_ns > 10ms")}
            owners = self.found("holder,holder_tid", 'holder ~ "has_*"', event)
            self.assertEqual({(name, tids[name]) for name, _ in owners}, owners)
        self.assertEqual(self.found("call", "lock != 0"), {("futex",)})

    def test_kinds_of_locks(self):
        for kind in ("normal", "recursive", "bust", "inherit", "shared", "writer"):
            recorder = subprocess.Popen([programs.BIN / "tacho-record", "-q", "-o", "out.data", "-e", "offcpu,lock", "--",
                                         self.built / "held", kind], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(recorder.kill)
            self.assertEqual(recorder.stdout.read(1), b"r")
            time.sleep(0.3)
            recorder.send_signal(signal.SIGINT)
            recorder.communicate(timeout=60)
            expected = {("rwlock", "table_locks+0x68", "held")} if kind == "writer" else {("mutex", "table_locks+0x40", "held")}
            for event in ("offcpu", "lock"):
                self.assertEqual(self.found("object,lock,holder", 'object == mutex || object == rwlock', event), expected, kind)

    def test_an_owner_among_many_threads(self):
        process = subprocess.Popen([self.built / "many"], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.read(1), b"r")
        self.record("-e", "offcpu,lock", "-p", str(process.pid), "--duration", "1")
        for event in ("offcpu", "lock"):
            self.assertIn(("cache_lock", "mutex", "has_it"), self.found("lock,object,holder", "lock != 0", event))

    @unittest.skipUnless(shutil.which("unshare"), "needs unshare (util-linux)")
    def test_owners_in_a_pid_namespace(self):
        """The lock has a tid of the container, the event one of the recorder."""
        process = subprocess.Popen(["unshare", "--pid", "--kill-child", "--mount", "--mount-proc", self.built / "locks", "60"],
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        time.sleep(0.2)
        self.record("-e", "offcpu,lock", "-a", "--duration", "1")
        for event in ("offcpu", "lock"):
            owners = self.found("holder,holder_tid", 'comm == "locks" && holder ~ "has_*"', event)
            self.assertEqual({name for name, _ in owners}, {"has_static", "has_heap"}, event)
            sleepers = self.found("comm,tid", 'comm ~ "has_*"')
            self.assertTrue({(name, tid) for name, tid in owners} & sleepers, (owners, sleepers))
            self.assertTrue(all(int(tid) > 100 for _, tid in owners), owners)  # the container's are small

    @unittest.skipUnless(shutil.which("unshare"), "needs unshare (util-linux)")
    def test_owners_seen_from_inside_a_pid_namespace(self):
        self.run_program("unshare", "--pid", "--fork", "--mount", "--mount-proc", programs.BIN / "tacho-record", "-q", "-o", "out.data", "-e",
                         "offcpu,lock", "--", self.built / "locks", "1")
        self.check_locks("offcpu", "off_ns")
        self.check_locks("lock", "wait_ns")
        self.assertTrue(all(int(tid) < 100 for tid, in self.found("holder_tid", 'holder != ""')))

    def test_files_and_both_sides_of_sockets(self):
        four, six = self.record("-e", "offcpu", "--", self.built / "files").split()
        found = self.found("comm,call,object,name", "off_ns > 10ms && object != none && object != futex")
        names = {(comm, call, kind): name for comm, call, kind, name in found if kind != "accepted"}
        self.assertEqual(names["files", "read", "pipe"], "")
        self.assertEqual(names["files", "poll", "other_fd"], "[eventfd]")
        for comm, call, kind in (("files", "poll", "connected"), ("serves", "accept", "listening")):
            for name in (f"127.0.0.1:{four}", f"[::1]:{six}", "here.sock"):
                self.assertIn((comm, call, kind, name), found)
        polls = self.found("ready,name", "object == epoll && off_ns > 10ms")
        self.assertEqual(polls, {("none", ""), *(("connected", name) for name in (f"127.0.0.1:{four}", f"[::1]:{six}", "here.sock"))})
        peers = {name for comm, call, kind, name in found if (comm, call, kind) == ("serves", "read", "accepted")}
        self.assertEqual({name.rsplit(":", 1)[0] for name in peers}, {"127.0.0.1", "[::1]", "here.sock"})
        self.assertFalse(peers & {f"127.0.0.1:{four}", f"[::1]:{six}"})
        synced = self.found("object,name", "call == fsync && state == D")
        if synced:  # of some file systems it needs no wait
            self.assertEqual(synced, {("file", "folder/synced")})
        self.assertEqual(self.found("object", "call == clock_nanosleep"), {("none",)})

    def test_a_socket_of_datagrams_has_a_name_only_if_it_serves(self):
        port = self.record("-e", "offcpu", "--", self.built / "datagrams").strip()
        found = self.found("comm,object,name", "off_ns > 10ms && (object == accepted || object == connected)")
        self.assertEqual(found, {("serves", "accepted", f"127.0.0.1:{port}"), ("datagrams", "connected", "")})

    def test_waits_from_before_the_recording(self):
        process = subprocess.Popen(["sh", "-c", "exec cat"], stdin=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        time.sleep(0.1)
        self.record("-e", "offcpu", "-p", str(process.pid), "--duration", "0.2")
        self.assertEqual(self.found("call,object,began_before,runner", "unfinished == 1"), {("read", "pipe", "1", "")})

    def test_a_name_that_is_cut_says_so(self):
        for length, name in ((63, "p" * 63), (64, "p" * 60 + "...")):
            os.mkfifo(self.folder / ("p" * length))
            fd = os.open(self.folder / ("p" * length), os.O_RDWR)
            self.addCleanup(os.close, fd)
            process = subprocess.Popen(["cat"], stdin=fd)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            time.sleep(0.1)
            self.record("-e", "offcpu", "-p", str(process.pid), "--duration", "0.2")
            self.assertEqual(self.found("object,name", "unfinished == 1"), {("pipe", name)})

    def test_the_thread_that_had_the_cpu(self):
        self.record("-e", "offcpu/preempted/", "--", self.built / "busy")
        self.assertIn(("busy", "spins"), self.found("comm,runner", "state == R"))
        self.assertIn(("spins", "busy"), self.found("comm,runner", "state == R"))
        [(pid, runner)] = self.found("pid,runner_pid", 'state == R && comm == "busy" && runner == "spins"')
        self.assertEqual(pid, runner)
        self.assertEqual(self.found("throttled", "off_ns > 0"), {("0",)})

    def test_times_add_up_with_a_bound(self):
        self.record("-e", "offcpu/rate=20/", "--", self.built / "naps")
        [row] = self.rows("--by", "comm", "--value", "skipped", "--columns", "count,sum", "--where", 'comm == "naps"')
        self.assertLess(int(row["count"]), 100)
        # Some naps are over before the thread sleeps, and the kernel does not trace the end of each.
        self.assertGreaterEqual(int(row["count"]) + int(row["sum"]), 990)
        [row] = self.rows("--by", "comm", "--value", "off_ns + skipped_ns", "--columns", "sum", "--where", 'comm == "naps"')
        self.assertGreaterEqual(float(row["sum"]), 1.1e9 + 990 * 50e3)

    def test_a_used_up_quota(self):
        group, limit = self.group_of_cpu()
        try:
            limit()
        except OSError as error:
            self.skipTest(f"no quota of CPU time here: {error}")
        script = f"echo $$ >{group}/cgroup.procs && exec {self.built / 'busy'}"
        self.record("-e", "offcpu/preempted,min_us=1000/", "--", "sh", "-c", script)
        self.assertIn(("R", "1"), self.found("state,throttled", 'comm == "busy" || comm == "spins"'))

    def group_of_cpu(self):
        """A cgroup with a tenth of a CPU, of version 2 or 1, and the function that makes it so."""
        unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
        group = Path("/sys/fs/cgroup") / ("" if unified else "cpu") / f"tacho-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"cannot make a cgroup: {error}")
        self.addCleanup(group.rmdir)

        def limit():
            if unified:
                (group / "cpu.max").write_text("10000 100000")
            else:
                (group / "cpu.cfs_quota_us").write_text("10000")
        return group, limit


if __name__ == "__main__":
    unittest.main()
