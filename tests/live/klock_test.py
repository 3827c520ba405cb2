#!/usr/bin/env python3
"""-e klock: waits for kernel locks, compared with the kernel's tracepoints in the same recording."""
import csv
import io
import unittest
from pathlib import Path

import programs

# Three threads of one process map, touch and unmap memory, and so wait for mmap_lock.
MAPS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
static void *maps(void *unused) {
  for (int i = 0; i < 40; ++i) {
    void *memory = mmap(0, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED || munmap(memory, 8 << 20)) _exit(1);
  }
  return unused;
}
int main(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) if (pthread_create(&threads[i], 0, maps, 0)) return 1;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
  return 0;
}
"""


@programs.needs_root
@programs.needs_btf
@unittest.skipUnless(programs.shutil.which("cc"), "needs cc")
@unittest.skipUnless(Path("/sys/kernel/tracing/events/lock/contention_begin").exists(), "needs the tracepoint lock:contention_begin")
class KernelLocks(programs.Scratch):
    def setUp(self):
        super().setUp()
        self.built = programs.built_once(type(self), {"maps": MAPS})
        self.need_recorder("klock")

    def counts(self, event, *keys):
        text = self.tacho("table", "-i", "out.data", "--csv", "--event", event, "--by", ",".join(keys), "--columns", "count").stdout.decode()
        return {row[keys[0]]: int(row["count"]) for row in csv.DictReader(io.StringIO(text))}

    def test_each_wait_has_one_event(self):
        said = self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-g", "-e", "klock,lock:contention_end", "--",
                                self.built / "maps").stderr.decode()
        ends = sum(self.counts("lock:contention_end", "comm").values())
        if ends == 0:
            self.skipTest("no thread had to wait here")
        self.assertIn(" 0 lost", said)
        waits = sum(self.counts("klock", "comm").values())
        # perf's event of a thread is off while the kernel switches to or from the thread, and locks are waited for
        # there too: more often when more threads want the CPUs.
        self.assertLess(abs(ends - waits), max(4, ends // 20), said)
        kinds = self.counts("klock", "kind")
        self.assertTrue(set(kinds) <= {"spinlock", "mutex", "rwsem_read", "rwsem_write", "rwlock_read", "rwlock_write", "percpu_read", "percpu_write",
                                       "rtmutex", "rtmutex_read", "rtmutex_write", "other"}, kinds)
        self.assertIn("maps", self.tacho("folded", "-i", "out.data", "--event", "klock", "--weight", "wait_ns").stdout.decode())
        self.run_program(programs.BIN / "tacho-record", "-o", "out.data", "-e", "klock/min_us=60000000/", "--", self.built / "maps")
        self.assertFalse(self.tacho("script", "-i", "out.data").stdout)


if __name__ == "__main__":
    programs.main()
