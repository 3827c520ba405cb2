/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What all recorders of the catalogue share: the options that choose among threads and thin out events, all of them asked
 * before a stack is walked. tacho/event.h and tacho/emit.h, which every BPF program may use, do the rest.
 */
#ifndef TACHO_RECORDER_H
#define TACHO_RECORDER_H

#include "bpf/programs/recorders/kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include <tacho/emit.h>
#include "bpf/programs/recorders/error_names.h"

const volatile __u32 pid HELP("only this process");
const volatile __u32 tid HELP("only this thread");
const volatile char comm[16] HELP("only threads of this name");
const volatile char cgroup[256] HELP("only threads in this control group, or in one below it, by its path");
const volatile __u64 cgroup_number; /* of it, and how many are above; the recorder sets them with `cgroup` */
const volatile __u32 cgroup_level;
const volatile __u32 sample HELP("every Nth event of each CPU, as --sample-rate 1/N");
const volatile __u64 rate HELP("at most so many events a second, as --max-rate");

const volatile __u32 tacho_recorder; /* the process id of the recorder, whose own doings are left out */

static __always_inline bool is_called(const char name[16], const volatile char wanted[16]) {
  for (int i = 0; i < 16; ++i) {
    if (name[i] != wanted[i]) return false;
    if (!wanted[i]) return true;
  }
  return true;
}

/* The number of the control group of a thread, or of one above that. Kernels before 6.1 keep the numbers themselves. */
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

/* Whether the current thread passes the options and the recording's target. */
static __always_inline bool is_chosen(void) {
  __u64 who = bpf_get_current_pid_tgid();
  if (who >> 32 == tacho_recorder) return false;
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

/* The same of any thread. */
static __always_inline bool is_task_chosen(struct task_struct *task) {
  __u32 process = BPF_CORE_READ(task, tgid), thread = BPF_CORE_READ(task, pid);
  if (process == tacho_recorder) return false;
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

/* At a switch: whether `task`, which leaves the CPU, could have gone on. Kernels before 5.14 call the state otherwise. */
struct task_struct___before_5_14 {
  volatile long state;
} __attribute__((preserve_access_index));
static __always_inline bool is_runnable(struct task_struct *task, bool preempt) {
  struct task_struct___before_5_14 *old = (void *)task;
  if (preempt) return true;
  return bpf_core_field_exists(task->__state) ? !BPF_CORE_READ(task, __state) : !BPF_CORE_READ(old, state);
}

/* Whether this event of a chosen thread is taken: asked once for each, when everything else speaks for it. */
static __always_inline bool is_taken(void) {
  __u32 one_in = sample ? sample : tacho_one_in;
  __u64 most = rate ? rate : tacho_most_a_second;
  if (one_in > 1 && !tacho_is_sampled(one_in)) return false;
  return !most || tacho_is_within_rate(most);
}

/* Whether --filter takes an event of the current thread, `name` as in EVENT(name, type), and then whether it is taken: asked once
 * for each, when it is filled. */
#define IS_WANTED(name, event) (tacho_passes(&tacho_filter_of_##name, event) && is_taken())

/* For an event that is emitted later, in any thread: --filter is about the current one. */
static __always_inline bool is_wanted_later(void) { return is_chosen() && tacho_passes(&tacho_filter, 0); }

/* In the cookie of a probe on a user function: the probe is behind the endbr64 at the function's start, which a
 * probe steps over slowly. The instruction pointer is that many bytes behind the start. */
#define TACHO_BEHIND_MARK (1 << 7)
#define TACHO_MARK_BYTES 4
static __always_inline __u64 function_start(__u64 place, __u64 cookie) {
  return cookie & TACHO_BEHIND_MARK ? place - TACHO_MARK_BYTES : place;
}

/* The return value of a system call as an error. */
static __always_inline enum error_name error_of(long returned) {
  return returned < 0 && returned >= -4095 ? (enum error_name)-returned : OK;
}

/* One entry for each CPU: memory for an event that is larger than the stack of a program (512 bytes). */
#define PER_CPU(map, entry)                   \
  struct {                                    \
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);  \
    __uint(max_entries, 1);                   \
    __type(key, __u32);                       \
    __type(value, entry);                     \
  } map SEC(".maps")

/* Calls or waits that have begun: what their end needs. A thread that is killed inside one leaves its entry behind; the
 * oldest go first. */
#define IN_FLIGHT(map, entry)                \
  struct {                               \
    __uint(type, BPF_MAP_TYPE_LRU_HASH); \
    __uint(max_entries, 65536);          \
    __type(key, __u32);                  \
    __type(value, entry);                \
  } map SEC(".maps")

/* The same of waits that bring much: each thread has an entry, made once and kept, in which a wait is written where it stays.
 * `map`_of(thread): it; 0: there is no room. The first member of `entry` is since_ns: 0: the thread does not wait. */
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

/* Takes the start time out of an entry of the map of waits, so that each wait becomes one event. Two sides compete: the
 * program that sees the wait end, and at_end(), which reports the waits that are still open. 0: the other side was first. */
static __always_inline __u64 take_start(__u64 *since_ns) {
  __u64 since = *(volatile __u64 *)since_ns;
  return since && __sync_val_compare_and_swap(since_ns, since, 0) == since ? since : 0;
}

/* Runs when a recording ends: calls `emit`(key, entry) for each entry, of a map by thread and of any other map. Kernels before
 * 5.14 cannot. */
#define AT_END(map, entry, emit) AT_END_BY(map, __u32, entry, emit)
#define AT_END_BY(map, key, entry, emit)                                          \
  static long report_##map(void *all, key *place, entry *wait, void *nothing) {   \
    emit(*place, wait);                                                           \
    return 0;                                                                     \
  }                                                                               \
  SEC("?syscall")                                                                 \
  int at_end(void *context) {                                                     \
    bpf_for_each_map_elem(&map, report_##map, 0, 0);                             \
    return 0;                                                                     \
  }

/* For recorders whose events the kernel writes, with the stack of the thread that runs: a ring buffer for what is open when the
 * recording ends. These events have no stack. With --filter there are none: it may ask about the thread that runs. */
#define UNFINISHED_CHANNEL(name) RING_CHANNEL(unfinished_##name, name, 1 << 20)
#define EMIT_OPEN(name, process, thread, event)                                            \
  do {                                                                                     \
    struct name *made_;                                                                    \
    if (tacho_filter_of_##name.steps[0].value || !is_taken()) break;                       \
    made_ = tacho_reserve_for(unfinished_##name, struct name, process, thread);            \
    if (!made_) break;                                                                     \
    *made_ = *(event);                                                                     \
    tacho_submit(unfinished_##name, made_);                                                \
  } while (0)

/* A stack of another moment than the event's: taken now, kept in a map, written with the event (as its last members). */
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

/* A hash of 63 bits of the addresses of a stack, up to the first 0; 0: there is none. That two stacks share one is not checked. */
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

/* The map of the samples of event `name`, with the kernel's own stacks where -g asks for them. */
#define CHANNEL(map, name) OUTPUT_CHANNEL(map, name)
#define EMIT(context, map, event) tacho_output(context, map, event)

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
