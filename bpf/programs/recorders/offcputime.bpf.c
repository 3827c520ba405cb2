// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Off-CPU times, summed up in the kernel by thread and by the stack that left the CPU: no event for each wait.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/before.h"
#include "bpf/programs/recorders/off_cpu.h"
#include "bpf/programs/recorders/unseen_ends.h"

/* All maps are preallocated: sched_switch runs under the run queue's lock, where memory cannot be allocated. */
struct offcputime_key {
  __u32 pid ROLE("table:comm,tid"), tid;
  char comm[16]; /* at that time */
  __u64 cgroup ROLE("cgroup");
  __u64 kernel_stack ROLE("stack:kernel_stacks");
  __u64 user_stack ROLE("stack:user_stacks");
  __u64 off_ns ROLE("log2") UNIT("ns");
  __u32 unfinished;   /* 1: still off CPU when the recording ended */
  __u32 began_before; /* 1: off CPU when the recording started: off_ns counts from there */
};
struct offcputime_value {
  __u64 waits ROLE("count");
  __u64 total_ns ROLE("sum");
  __u64 longest_ns ROLE("max");
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 65536);
  __type(key, struct offcputime_key);
  __type(value, struct offcputime_value);
} waited SEC(".maps");
SUMMARY(offcputime, waited);

/* Stacks by number_of_frames(). */
struct kernel_frames {
  __u64 frames[KERNEL_FRAMES];
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u64);
  __type(value, struct kernel_frames);
} kernel_stacks SEC(".maps");
struct user_frames {
  __u64 frames[USER_FRAMES];
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, __u64);
  __type(value, struct user_frames);
} user_stacks SEC(".maps");

/* Memory for a stack while its number is made. One for each CPU is enough, since sched_switch is not nested; at_begin() has its
 * own. */
PER_CPU(buffer, struct stack);

/* A thread keeps its entry until it exits: adding one for each wait would be slow. */
struct wait {
  __u64 since_ns; /* 0: on CPU */
  struct offcputime_key key;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct wait);
} waits SEC(".maps");

#define REMEMBER(map, number, frames) \
  if (number && !bpf_map_lookup_elem(&map, &number)) bpf_map_update_elem(&map, &number, frames, BPF_NOEXIST)

static __always_inline void number(struct stack *stack, struct offcputime_key *key) {
  __u64 kernel = number_of_frames(stack->kernel, KERNEL_FRAMES), user = number_of_frames(stack->user, USER_FRAMES);
  REMEMBER(kernel_stacks, kernel, stack->kernel);
  REMEMBER(user_stacks, user, stack->user);
  key->kernel_stack = kernel;
  key->user_stack = user;
}

static __always_inline void take_numbers(void *context, struct offcputime_key *key) {
  __u32 only = 0;
  struct stack *stack = bpf_map_lookup_elem(&buffer, &only);
  if (!stack) return;
  take_stack(context, stack);
  number(stack, key);
}

static __always_inline void leaves(struct trace_event_raw_sched_switch *context) {
  __u32 thread = context->prev_pid;
  enum state state = state_at(context);
  struct wait wait = {}, *known = bpf_map_lookup_elem(&waits, &thread);
  if (known) close_unseen(&known->since_ns, min_us);
  if (is_dead(state)) bpf_map_delete_elem(&waits, &thread);
  if (!is_wait_chosen(thread, state)) return;
  wait.key.pid = bpf_get_current_pid_tgid() >> 32;
  wait.key.tid = thread;
  wait.key.cgroup = bpf_get_current_cgroup_id();
  bpf_get_current_comm(wait.key.comm, sizeof wait.key.comm);
  take_numbers(context, &wait.key);
  wait.since_ns = bpf_ktime_get_ns();
  known = bpf_map_lookup_elem(&waits, &thread);
  if (known)
    *known = wait;
  else
    bpf_map_update_elem(&waits, &thread, &wait, BPF_ANY);
}

static __always_inline void count(struct wait *wait, bool unfinished) {
  __u64 since = take_start(&wait->since_ns), off = bpf_ktime_get_ns() - since;
  struct offcputime_value *value;
  struct offcputime_key key;
  if (!since || off / 1000 < min_us || !is_taken()) return;
  key = wait->key;
  key.off_ns = tacho_log2(off);
  key.unfinished = unfinished;
  value = tacho_entry(waited, &key);
  if (!value) return;
  /* Not atomic: the key has the thread, which is on one CPU. */
  ++value->waits;
  value->total_ns += off;
  if (value->longest_ns < off) value->longest_ns = off;
}

SEC("tracepoint/sched/sched_switch")
int switches(struct trace_event_raw_sched_switch *context) {
  __u32 thread = context->next_pid;
  struct wait *wait;
  leaves(context);
  wait = bpf_map_lookup_elem(&waits, &thread);
  if (wait) count(wait, false);
  return 1;
}

PER_CPU(buffer_at_begin, struct stack);

static __always_inline void note(struct task_struct *task) {
  __u32 only = 0;
  struct wait wait = {};
  struct stack *stack = bpf_map_lookup_elem(&buffer_at_begin, &only);
  if (!stack || has_filter() || !is_state_chosen(state_of(task))) return;
  wait.key.pid = task->tgid;
  wait.key.tid = task->pid;
  wait.key.cgroup = task_cgroup(task);
  wait.key.began_before = 1;
  bpf_probe_read_kernel(wait.key.comm, sizeof wait.key.comm, task->comm);
  take_stack_of(task, stack);
  number(stack, &wait.key);
  NOTE_WAIT(waits, task, &wait);
}
AT_BEGIN(note)

#define COUNT_UNFINISHED(thread, wait) count(wait, true)
AT_END(waits, struct wait, COUNT_UNFINISHED)
