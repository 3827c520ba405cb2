/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by all recorders: options that choose threads and sample events, checked before a stack is walked. The rest is in
 * tacho/event.h and tacho/emit.h, which every BPF program may use.
 */
#ifndef TACHO_RECORDER_H
#define TACHO_RECORDER_H

#include "bpf/programs/recorders/kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include <tacho/emit.h>

/* Errors by number, so that payloads show their names. */
enum error_name {
  OK = 0,
  EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, E2BIG = 7, ENOEXEC = 8, EBADF = 9,
  ECHILD = 10, EAGAIN = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, ENOTBLK = 15, EBUSY = 16, EEXIST = 17,
  EXDEV = 18, ENODEV = 19, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23, EMFILE = 24, ENOTTY = 25,
  ETXTBSY = 26, EFBIG = 27, ENOSPC = 28, ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, EDOM = 33,
  ERANGE = 34, EDEADLK = 35, ENAMETOOLONG = 36, ENOLCK = 37, ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40,
  ENOMSG = 42, EIDRM = 43, ECHRNG = 44, EL2NSYNC = 45, EL3HLT = 46, EL3RST = 47, ELNRNG = 48, EUNATCH = 49,
  ENOCSI = 50, EL2HLT = 51, EBADE = 52, EBADR = 53, EXFULL = 54, ENOANO = 55, EBADRQC = 56, EBADSLT = 57,
  EBFONT = 59, ENOSTR = 60, ENODATA = 61, ETIME = 62, ENOSR = 63, ENONET = 64, ENOPKG = 65, EREMOTE = 66,
  ENOLINK = 67, EADV = 68, ESRMNT = 69, ECOMM = 70, EPROTO = 71, EMULTIHOP = 72, EDOTDOT = 73,
  EBADMSG = 74, EOVERFLOW = 75, ENOTUNIQ = 76, EBADFD = 77, EREMCHG = 78, ELIBACC = 79, ELIBBAD = 80,
  ELIBSCN = 81, ELIBMAX = 82, ELIBEXEC = 83, EILSEQ = 84, ERESTART = 85, ESTRPIPE = 86, EUSERS = 87,
  ENOTSOCK = 88, EDESTADDRREQ = 89, EMSGSIZE = 90, EPROTOTYPE = 91, ENOPROTOOPT = 92, EPROTONOSUPPORT = 93,
  ESOCKTNOSUPPORT = 94, EOPNOTSUPP = 95, EPFNOSUPPORT = 96, EAFNOSUPPORT = 97, EADDRINUSE = 98,
  EADDRNOTAVAIL = 99, ENETDOWN = 100, ENETUNREACH = 101, ENETRESET = 102, ECONNABORTED = 103,
  ECONNRESET = 104, ENOBUFS = 105, EISCONN = 106, ENOTCONN = 107, ESHUTDOWN = 108, ETOOMANYREFS = 109,
  ETIMEDOUT = 110, ECONNREFUSED = 111, EHOSTDOWN = 112, EHOSTUNREACH = 113, EALREADY = 114,
  EINPROGRESS = 115, ESTALE = 116, EUCLEAN = 117, ENOTNAM = 118, ENAVAIL = 119, EISNAM = 120,
  EREMOTEIO = 121, EDQUOT = 122, ENOMEDIUM = 123, EMEDIUMTYPE = 124, ECANCELED = 125, ENOKEY = 126,
  EKEYEXPIRED = 127, EKEYREVOKED = 128, EKEYREJECTED = 129, EOWNERDEAD = 130, ENOTRECOVERABLE = 131,
  ERFKILL = 132,
  ERESTARTSYS = 512, ERESTARTNOINTR = 513, ERESTARTNOHAND = 514, ENOIOCTLCMD = 515, ERESTART_RESTARTBLOCK = 516
};

const volatile __u32 pid HELP("only this process");
const volatile __u32 tid HELP("only this thread");
const volatile char comm[16] HELP("only threads of this name");
const volatile char cgroup[256] HELP("only threads in this cgroup or below it, by path");
const volatile __u64 cgroup_number; /* its id and level; set by tacho-record from `cgroup` */
const volatile __u32 cgroup_level;
const volatile __u32 sample HELP("every Nth event of each CPU, like --sample-rate 1/N");
#ifndef RATE_HELP
#define RATE_HELP "at most N events a second, like --max-rate"
#endif
const volatile __u64 rate HELP(RATE_HELP);

/* Pids of tacho-record and of the COMMAND, its child. Events of tacho-record, its other children and grandchildren are left out:
 * these read files of recorded processes, or show the events. */
const volatile __u32 tacho_recorder, tacho_command;

static __always_inline bool is_called(const char name[16], const volatile char wanted[16]) {
  for (int i = 0; i < 16; ++i) {
    if (name[i] != wanted[i]) return false;
    if (!wanted[i]) return true;
  }
  return true;
}

/* The id of a thread's ancestor cgroup at `level`; 0: none. Kernels before 6.1 have an array of ids, not of pointers. */
struct cgroup___before_6_1 {
  __u64 ancestor_ids[1];
} __attribute__((preserve_access_index));
static __always_inline __u64 cgroup_of(struct task_struct *task, __u32 level) {
  struct cgroup *of = BPF_CORE_READ(task, cgroups, dfl_cgrp), *above = 0;
  struct cgroup___before_6_1 *old = (void *)of;
  __u64 number = 0;
  if (BPF_CORE_READ(of, level) < (int)level) return 0;
  if (!bpf_core_field_exists(of->ancestors)) {
    bpf_core_read(&number, sizeof number, (void *)&old->ancestor_ids + level * sizeof number);
    return number;
  }
  bpf_core_read(&above, sizeof above, (void *)&of->ancestors + level * sizeof above);
  return BPF_CORE_READ(above, kn, id);
}

static __always_inline __u64 task_cgroup(struct task_struct *task) { return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id); }

static __always_inline bool is_of_recorder(__u32 process, __u32 parent, __u32 grandparent) {
  if (process == tacho_recorder) return true;
  if (parent == tacho_recorder) return process != tacho_command;
  return grandparent == tacho_recorder && parent != tacho_command;
}

/* Whether the current thread passes the options and the recording's target. */
static __always_inline bool is_chosen(void) {
  __u64 who = bpf_get_current_pid_tgid();
  struct task_struct *task = bpf_get_current_task_btf(), *parent = task->real_parent;
  if (is_of_recorder(who >> 32, parent->tgid, parent->real_parent->tgid)) return false;
  if (pid && who >> 32 != pid) return false;
  if (tid && (__u32)who != tid) return false;
  if (comm[0]) {
    char name[16];
    bpf_get_current_comm(name, sizeof name);
    if (!is_called(name, comm)) return false;
  }
  if (cgroup_number && bpf_get_current_ancestor_cgroup_id(cgroup_level) != cgroup_number) return false;
  return tacho_follows_thread((__u32)who);
}

/* The same for any thread. */
static __always_inline bool is_task_chosen(struct task_struct *task) {
  __u32 process = BPF_CORE_READ(task, tgid), thread = BPF_CORE_READ(task, pid);
  __u32 parent = BPF_CORE_READ(task, real_parent, tgid);
  if (is_of_recorder(process, parent, BPF_CORE_READ(task, real_parent, real_parent, tgid))) return false;
  if (pid && process != pid) return false;
  if (tid && thread != tid) return false;
  if (comm[0]) {
    char name[16];
    bpf_core_read(name, sizeof name, &task->comm);
    if (!is_called(name, comm)) return false;
  }
  if (cgroup_number && cgroup_of(task, cgroup_level) != cgroup_number) return false;
  return tacho_follows_thread(thread);
}

/* At a context switch: whether `task`, which leaves the CPU, is still runnable. Before Linux 5.14 `__state` was `state`. */
struct task_struct___before_5_14 {
  volatile long state;
} __attribute__((preserve_access_index));
static __always_inline bool is_runnable(struct task_struct *task, bool preempt) {
  struct task_struct___before_5_14 *old = (void *)task;
  if (preempt) return true;
  return bpf_core_field_exists(task->__state) ? !BPF_CORE_READ(task, __state) : !BPF_CORE_READ(old, state);
}

/* task_struct.__state as prev_state of sched:sched_switch has it: 0 runnable, 1 sleeping, 2 uninterruptible; 64 and above: the
 * task does not wait for anything. */
static __always_inline __u32 state_of(struct task_struct *task) {
  const __u32 idle = 0x402 /* TASK_IDLE */, frozen = 0x8000 /* TASK_FROZEN */;
  struct task_struct___before_5_14 *old = (void *)task;
  __u32 bits = bpf_core_field_exists(task->__state) ? task->__state : (__u32)BPF_CORE_READ(old, state);
  if (task->exit_state) return 32;
  if ((bits & idle) == idle) return 128;
  return bits & frozen ? 2 : bits & 0xff;
}

/* Sampling and rate limit: whether this event is taken. Call it once for an event, after all other conditions: it counts. */
static __always_inline bool is_sampled(void) {
  __u32 one_in = sample ? sample : tacho_one_in;
  return one_in <= 1 || tacho_is_sampled(one_in);
}
static __always_inline bool is_taken(void) {
  __u64 most = rate ? rate : tacho_most_a_second;
  return is_sampled() && (!most || tacho_is_within_rate(most));
}

/* Whether an event of the current thread passes --filter, sampling and rate limit. `name` as in EVENT(name, type). Call it once
 * for an event, after its members are set. */
#define IS_WANTED(name, event) (tacho_passes(&tacho_filter_of_##name, event) && is_taken())

/* The same for an event that is emitted later, perhaps in another thread: --filter is applied to the current one. */
static __always_inline bool is_wanted_later(void) { return is_chosen() && tacho_passes(&tacho_filter, 0); }

/* Flag in the cookie of a uprobe: it is after the endbr64 at the function's start, which the kernel would have to single-step. */
#define TACHO_AFTER_ENDBR (1 << 7)
#define TACHO_ENDBR_BYTES 4
static __always_inline __u64 function_start(__u64 ip, __u64 cookie) {
  return cookie & TACHO_AFTER_ENDBR ? ip - TACHO_ENDBR_BYTES : ip;
}

/* The errno in a system call's return value; OK: none. */
static __always_inline enum error_name error_of(long returned) {
  return returned < 0 && returned >= -4095 ? (enum error_name)-returned : OK;
}

/* A per-CPU map with one entry: memory for what is larger than a BPF program's stack (512 bytes). */
#define PER_CPU(map, entry)                   \
  struct {                                    \
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);  \
    __uint(max_entries, 1);                   \
    __type(key, __u32);                       \
    __type(value, entry);                     \
  } map SEC(".maps")

/* A map of in-flight calls or waits by thread. LRU, since a thread that is killed inside one leaves its entry. */
#define IN_FLIGHT(map, entry)                \
  struct {                               \
    __uint(type, BPF_MAP_TYPE_LRU_HASH); \
    __uint(max_entries, 65536);          \
    __type(key, __u32);                  \
    __type(value, entry);                \
  } map SEC(".maps")

/* The same for large entries: each thread has one entry, which is written in place. `map`_of(thread) returns it and makes it if
 * needed; 0: the map is full. The first member of `entry` is since_ns; 0: the thread does not wait. */
#define WAITS_OF_THREADS(map, entry)                                        \
  struct {                                                                  \
    __uint(type, BPF_MAP_TYPE_LRU_HASH);                                    \
    __uint(max_entries, 16384);                                             \
    __type(key, __u32);                                                     \
    __type(value, entry);                                                   \
  } map SEC(".maps");                                                       \
  struct {                                                                  \
    __uint(type, BPF_MAP_TYPE_ARRAY);                                       \
    __uint(max_entries, 1);                                                 \
    __type(key, __u32);                                                     \
    __type(value, entry);                                                   \
  } no_##map SEC(".maps");                                                  \
  static __always_inline entry *map##_of(__u32 thread) {                    \
    entry *known = bpf_map_lookup_elem(&map, &thread);                      \
    __u32 only = 0;                                                         \
    if (known) return known;                                                \
    known = bpf_map_lookup_elem(&no_##map, &only);                          \
    if (!known) return 0;                                                   \
    bpf_map_update_elem(&map, &thread, known, BPF_NOEXIST);                 \
    return bpf_map_lookup_elem(&map, &thread);                              \
  }

/* Takes the start time out of an entry, so that each wait becomes one event: the program at the wait's end and at_end(), which
 * reports waits that are still open, may run at the same time. 0: the other one was first. */
static __always_inline __u64 take_start(__u64 *since_ns) {
  __u64 since = *(volatile __u64 *)since_ns;
  return since && __sync_val_compare_and_swap(since_ns, since, 0) == since ? since : 0;
}

/* Nanoseconds from `since` to `now`. 0 where another CPU set `since` after this one read `now`. */
static __always_inline __u64 elapsed_ns(__u64 since, __u64 now) { return now > since ? now - since : 0; }

/* Program that runs when a recording ends: calls `emit`(key, entry) for each entry of a map. AT_END(): the keys are thread ids;
 * AT_END_BY(): they have the type `key`. Needs Linux 5.14. */
#define AT_END(map, entry, emit) AT_END_BY(map, __u32, entry, emit)
#define AT_END_BY(map, key, entry, emit)                                          \
  static long report_##map(void *all, key *at, entry *wait, void *nothing) {      \
    emit(*at, wait);                                                              \
    return 0;                                                                     \
  }                                                                               \
  SEC("?syscall")                                                                 \
  int at_end(void *context) {                                                     \
    bpf_for_each_map_elem(&map, report_##map, 0, 0);                             \
    return 0;                                                                     \
  }

/* For recorders with CHANNEL(), whose events have the current thread's stack: a ring buffer for the events of calls and waits that
 * are still open when the recording ends. These events have no stack. There are none with --filter, which may need the current
 * thread. */
#define UNFINISHED_CHANNEL(name) RING_CHANNEL(unfinished_##name, name, 1 << 20)
#define EMIT_OPEN(name, process, thread, cgroup, event)                                            \
  do {                                                                                     \
    struct name *made_;                                                                    \
    if (tacho_filter_of_##name.steps[0].value || !is_taken()) break;                       \
    made_ = tacho_reserve_for_cgroup(unfinished_##name, struct name, process, thread, cgroup); \
    if (!made_) break;                                                                     \
    *made_ = *(event);                                                                     \
    tacho_submit(unfinished_##name, made_);                                                \
  } while (0)

/* A stack that is taken before its event: kept in a map, and written as the last members of the event. */
#define KERNEL_FRAMES 32
#define USER_FRAMES 128
struct stack {
  __u64 kernel[KERNEL_FRAMES];
  __u64 user[USER_FRAMES];
};

static __always_inline void take_stack(void *context, struct stack *stack) {
  long bytes = bpf_get_stack(context, stack->kernel, sizeof stack->kernel, 0);
  if (bytes < 0) bytes = 0;
  if (bytes < (long)sizeof stack->kernel) stack->kernel[(bytes / 8) & (KERNEL_FRAMES - 1)] = 0;
  bytes = tacho_user_stack(context, stack->user, sizeof stack->user);
  if (bytes < 0) bytes = 0;
  if (bytes < (long)sizeof stack->user) stack->user[(bytes / 8) & (USER_FRAMES - 1)] = 0;
}

/* A 63-bit hash of a stack's addresses up to the first 0; 0: the stack is empty. Collisions are not detected. */
static __always_inline __u64 number_of_frames(const __u64 *frames, int most) {
  __u64 number = 0xcbf29ce484222325;
  if (!frames[0]) return 0;
  for (int i = 0; i < most; ++i) {
    if (!frames[i]) break;
    number = (number ^ frames[i]) * 0x9e3779b97f4a7c15;
    number ^= number >> 29;
  }
  return number & ~(1ULL << 63);
}

/* The perf event array of event `name`: with -g the kernel adds the current stack to its samples. */
#define CHANNEL(map, name) OUTPUT_CHANNEL(map, name)
#define EMIT(context, map, event) tacho_output(context, map, event)

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
