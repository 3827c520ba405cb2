"""Loads with known behaviour, for tests of recorders."""
import os
import subprocess
import sys
from pathlib import Path

OPENS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char** argv) {
  for (int i = 0; i < 7; ++i) close(open("/proc/self/status", O_RDONLY));
  for (int i = 0; i < 5; ++i) close(syscall(SYS_openat, AT_FDCWD, "known_file", O_WRONLY | O_CREAT | O_TRUNC, 0640));
  for (int i = 0; i < 3; ++i) open("/nonexistent/known", O_RDWR);
  close(creat("known_other", 0600));
  unsigned long how[3] = {O_RDONLY, 0, 0};
  close(syscall(437, AT_FDCWD, "known_file", how, sizeof how));
  return 0;
}
"""

# 16 writes of 64 KiB, a sync; the file is dropped from the page cache; 16 reads of 64 KiB, twice; one of 1 MiB; one that fails.
READS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
static char bytes[1 << 20];
int main(void) {
  int file = open("known_file", O_RDWR | O_CREAT | O_TRUNC, 0600), writing = open("known_file", O_WRONLY);
  for (int i = 0; i < 16; ++i) if (write(file, bytes, 65536) != 65536) return 1;
  fsync(file);
  if (posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) return 1;
  for (int i = 0; i < 32; ++i) if (pread(file, bytes, 65536, i % 16 * 65536) != 65536) return 1;
  if (pread(file, bytes, 1 << 20, 0) != 1 << 20) return 1;
  return read(writing, bytes, 1) != -1;
}
"""

# Sleeps 25 times for 3 ms; then 10 times for 5 ms while its child waits for a byte from it.
WAITS = r"""
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void nap(long ms) { struct timespec time = {0, ms * 1000000}; nanosleep(&time, 0); }
int main(void) {
  int ends[2];
  char byte = 0;
  alarm(20);
  for (int i = 0; i < 25; ++i) nap(3);
  if (pipe(ends)) return 1;
  if (fork() == 0) {
    for (int i = 0; i < 10; ++i) if (read(ends[0], &byte, 1) != 1) return 1;
    return 0;
  }
  for (int i = 0; i < 10; ++i) {
    int unread = 1;
    while (ioctl(ends[0], FIONREAD, &unread) == 0 && unread > 0) sched_yield(); /* on a busy machine it may read late */
    nap(5);
    if (write(ends[1], &byte, 1) != 1) return 1;
  }
  wait(0);
  return 0;
}
"""
# Waits often: rounds of four short naps and one longer, in functions of their own; and three naps of 100 ms. Prints how many
# naps of each kind there were, and the time of the first two kinds.
NAPS = r"""
#include <stdio.h>
#include <time.h>
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static long nap(long ns) { long begin = now(); struct timespec t = {0, ns}; nanosleep(&t, 0); return now() - begin; }
__attribute__((noinline)) long short_nap(void) { return nap(50000) + 1; }
__attribute__((noinline)) long longer_nap(void) { return nap(1000000) + 1; }
__attribute__((noinline)) long long_nap(void) { return nap(100000000) + 1; }
int main(void) {
  long shorts = 0, longers = 0, rounds = 0, end = now() + 3000000000L;
  for (; now() < end; ++rounds) {
    for (int i = 0; i < 4; ++i) shorts += short_nap();
    longers += longer_nap();
    if (rounds % 300 == 150 && rounds < 900) long_nap();
  }
  printf("%ld %ld %ld\n", rounds, shorts, longers);
  return 0;
}
"""
# One thread has a lock for ever, and another one waits for it; the argument is the kind of lock.
HELD = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static struct { char before[64]; pthread_mutex_t mutex; pthread_rwlock_t rw; } table_locks;
static pthread_barrier_t both;
static int kind;
static void take(int writes) {
  if (kind != 'w') pthread_mutex_lock(&table_locks.mutex);
  else if (writes) pthread_rwlock_wrlock(&table_locks.rw);
  else pthread_rwlock_rdlock(&table_locks.rw);
}
__attribute__((noinline)) static void keep_it(void) { for (;;) pause(); }
static void *owner(void *x) { take(1); pthread_barrier_wait(&both); keep_it(); return x; }
int main(int count, char **words) {
  pthread_mutexattr_t a;
  pthread_t t;
  kind = words[1][0];
  pthread_mutexattr_init(&a);
  if (kind == 'r') pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
  if (kind == 'b') pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  if (kind == 'i') pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
  if (kind == 's') pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&table_locks.mutex, &a);
  pthread_rwlock_init(&table_locks.rw, 0);
  pthread_barrier_init(&both, 0, 2);
  pthread_create(&t, 0, owner, 0);
  pthread_barrier_wait(&both);
  write(1, "r", 1);
  take(0);
}
"""
# After reading a byte: two threads in a deadlock.
DEADLOCK = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static volatile int passed;
__attribute__((noinline)) static void takes(pthread_mutex_t* lock) { pthread_mutex_lock(lock); ++passed; }
__attribute__((noinline)) static void takes_two(pthread_mutex_t* one, pthread_mutex_t* other) {
  takes(one);
  pthread_barrier_wait(&both);
  takes(other);
  ++passed;
}
static void* there(void* nothing) { takes_two(&first, &second); ++passed; return nothing; }
static void* back(void* nothing) { takes_two(&second, &first); ++passed; return nothing; }
int main(void) {
  pthread_t threads[2];
  char byte;
  alarm(20);
  if (read(0, &byte, 1) != 1) return 1;
  pthread_barrier_init(&both, 0, 2);
  pthread_create(&threads[0], 0, there, 0);
  pthread_create(&threads[1], 0, back, 0);
  pthread_join(threads[0], 0);
  return 0;
}
"""
# After reading a byte: two processes that compute on one CPU.
PAIR = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void) {
  cpu_set_t one;
  char byte;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof one, &one);
  alarm(20);
  if (read(0, &byte, 1) != 1) return 1;
  if (fork() == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {}
}
"""
# Computes for 0.2 s with a child on the same CPU; prints its run-queue wait from schedstat, in ns.
CROWD = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static long waited(void) {
  long ran = 0, wait = 0;
  FILE* file = fopen("/proc/self/schedstat", "r");
  if (!file || fscanf(file, "%ld %ld", &ran, &wait) != 2) return -1;
  fclose(file);
  return wait;
}
int main(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof one, &one);
  int child = fork();
  if (child == 0) for (;;) {}
  long before = waited();
  time_t begin = clock();
  while (clock() - begin < CLOCKS_PER_SEC / 5) {}
  printf("%ld\n", waited() - before);
  kill(child, SIGKILL);
  wait(0);
  return 0;
}
"""

# Four connections that bring 10 bytes there and 5000 back; one refused; one by IPv6, to itself.
NET = """
import socket, threading
listening = socket.socket(); listening.bind(("127.0.0.1", 0)); listening.listen(16)
port = listening.getsockname()[1]
def serve():
    for _ in range(4):
        one, _address = listening.accept()
        one.recv(100); one.sendall(b"y" * 5000); one.close()
thread = threading.Thread(target=serve); thread.start()
for _ in range(4):
    one = socket.create_connection(("127.0.0.1", port)); one.sendall(b"x" * 10)
    while one.recv(65536): pass
    one.close()
thread.join(); listening.close()
try: socket.create_connection(("127.0.0.1", port))
except OSError: pass
try:
    six = socket.socket(socket.AF_INET6); six.bind(("::1", 0)); six.listen(1)
    there = socket.create_connection(("::1", six.getsockname()[1])); here, _address = six.accept(); here.close(); there.close()
except OSError: print("no IPv6")
"""

# accept() is never called: when the queue is full, SYNs are dropped and sent again after a second.
KNOCKS = ("import socket, time\nlistening = socket.socket(); listening.bind(('127.0.0.1', 0)); listening.listen(0)\n"
          "knocking = [socket.socket() for _ in range(4)]\n"
          "for one in knocking: one.setblocking(False); one.connect_ex(listening.getsockname())\ntime.sleep(1.3)")

# Signals that it ignores, and questions for a capability, as root and as nobody; waits at a futex that nobody wakes.
ASKS = r"""
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int word;
int main(void) {
  signal(SIGUSR1, SIG_IGN);
  for (int i = 0; i < 9; ++i) kill(getpid(), SIGUSR1);
  struct timespec time = {0, 2000000};
  for (int i = 0; i < 10; ++i) syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, 0, 0);
  for (int i = 0; i < 5; ++i) syscall(SYS_sethostname, "", -1); /* refused for its length, after the question */
  if (setuid(65534)) return 1;
  for (int i = 0; i < 3; ++i) syscall(SYS_sethostname, "", -1);
  return 0;
}
"""


def loop_disk(test, size):
    """Makes an empty loop disk of `size` bytes, removed after the test: (path, device number of the kernel)."""
    image = test.folder / "disk.img"
    image.write_bytes(bytes(size))
    if os.environ.get("TACHO_MAY_CHANGE_MACHINE"):
        subprocess.run(["modprobe", "-q", "loop"], capture_output=True, check=False)
    done = test.run_program("losetup", "-f", "--show", image, status=None)
    if done.returncode != 0:
        test.skipTest("no loop device: " + done.stderr.decode())
    disk = done.stdout.decode().strip()
    test.addCleanup(test.run_program, "losetup", "-d", disk, status=None)
    number = os.stat(disk).st_rdev
    return disk, os.major(number) << 20 | os.minor(number)


def killed_for_memory(test):
    """A command that is killed by the OOM killer, in a cgroup removed after the test."""
    first = Path("/sys/fs/cgroup/memory")
    group = (first if first.is_dir() else first.parent) / f"tacho-oom-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        test.skipTest(f"no cgroup of our own: {error}")
    test.addCleanup(group.rmdir)
    limits = [name for name in ("memory.max", "memory.limit_in_bytes") if (group / name).exists()]
    if not limits:
        test.skipTest("cgroups do not limit memory here")
    (group / limits[0]).write_text(str(20 << 20))
    return ["sh", "-c", f"echo $$ > {group}/cgroup.procs; exec {sys.executable} -c \"x = bytearray(200 << 20)\""]
