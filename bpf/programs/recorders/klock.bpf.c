// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Waits for kernel locks: spinlocks, rwlocks, mutexes, semaphores, rt-mutexes, percpu rw-semaphores.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/unseen_ends.h"

const volatile __u64 min_us HELP("only waits of at least N microseconds");

/* The kind of lock, from the flags of the tracepoint (LCB_F_*). */
enum lock_kind { other, spinlock, rwlock_read, rwlock_write, rtmutex, rtmutex_read, rtmutex_write, percpu_read, percpu_write, mutex, rwsem_read, rwsem_write };

struct klock {
  __u64 wait_ns ROLE("value");
  __u64 addr FORMAT("kaddr") ROLE("key"); /* of the lock; shown as a symbol if it is a variable */
  enum lock_kind kind ROLE("key");
  enum error_name error ROLE("table:kind,comm"); /* EINTR: by a signal */
  __u64 unfinished; /* 1: still waiting when the recording ended */
};
EVENT(klock, struct klock);
CHANNEL(channel, klock);
UNFINISHED_CHANNEL(klock);

struct trace_event_raw_contention_begin {
  void *lock_addr;
  unsigned int flags;
} __attribute__((preserve_access_index));
struct trace_event_raw_contention_end {
  void *lock_addr;
  int ret;
} __attribute__((preserve_access_index));

/* Key of a wait. By lock too, since an interrupt may wait while the interrupted thread waits. By CPU only for idle threads, which
 * all have id 0. */
struct wait_key {
  __u64 lock;
  __u32 thread, cpu;
};
struct wait {
  __u64 time_ns, cgroup;
  __u32 flags, process;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, struct wait_key);
  __type(value, struct wait);
} waits SEC(".maps");

static __always_inline struct wait_key key_of(void *lock) {
  struct wait_key key = {.lock = (__u64)lock, .thread = (__u32)bpf_get_current_pid_tgid()};
  if (!key.thread) key.cpu = bpf_get_smp_processor_id();
  return key;
}

enum flag { SPIN = 1, READ = 2, WRITE = 4, RT = 8, PERCPU = 16, MUTEX = 32 };

static __always_inline enum lock_kind kind_of(__u32 flags) {
  bool reads = flags & READ, writes = flags & WRITE;
  if (flags & MUTEX) return mutex;
  if (flags & PERCPU) return writes ? percpu_write : percpu_read;
  if (flags & RT) return reads ? rtmutex_read : writes ? rtmutex_write : rtmutex;
  if (flags & SPIN) return reads ? rwlock_read : writes ? rwlock_write : spinlock;
  return reads ? rwsem_read : writes ? rwsem_write : other;
}

SEC("tracepoint/lock/contention_begin")
int begins(struct trace_event_raw_contention_begin *context) {
  struct wait_key key = key_of(context->lock_addr);
  struct wait wait = {
      .cgroup = bpf_get_current_cgroup_id(), .flags = context->flags, .process = bpf_get_current_pid_tgid() >> 32};
  if (!is_chosen()) return 1;
  wait.time_ns = bpf_ktime_get_ns();
  /* A mutex has two contention_begin events if it spins before it sleeps: the first one is kept. */
  if (!(wait.flags & MUTEX)) {
    struct wait *open = bpf_map_lookup_elem(&waits, &key);
    if (open) close_unseen(&open->time_ns, min_us);
  }
  bpf_map_update_elem(&waits, &key, &wait, wait.flags & MUTEX ? BPF_NOEXIST : BPF_ANY);
  return 1;
}

SEC("tracepoint/lock/contention_end")
int ends(struct trace_event_raw_contention_end *context) {
  __u64 now = bpf_ktime_get_ns(), since;
  struct wait_key key = key_of(context->lock_addr);
  struct wait *wait = bpf_map_lookup_elem(&waits, &key);
  struct klock event = {.addr = key.lock, .error = error_of(context->ret)};
  if (!wait) return 1;
  since = take_start(&wait->time_ns);
  if (!since) return 1;
  event.wait_ns = now - since;
  event.kind = kind_of(wait->flags);
  bpf_map_delete_elem(&waits, &key);
  if (event.wait_ns / 1000 < min_us || !IS_WANTED(klock, &event)) return 1;
  EMIT(context, channel, &event);
  return 1;
}

static __always_inline void emit_open(struct wait_key key, struct wait *wait) {
  __u64 now = bpf_ktime_get_ns(), since = take_start(&wait->time_ns);
  struct klock event = {.addr = key.lock, .wait_ns = now - since, .kind = kind_of(wait->flags), .unfinished = 1};
  if (since && event.wait_ns / 1000 >= min_us) EMIT_OPEN(klock, wait->process, key.thread, wait->cgroup, &event);
}
AT_END_BY(waits, struct wait_key, struct wait, emit_open)
