// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How long threads that could run waited for a CPU: woken, new, or put aside while they ran.
#include "bpf/programs/recorders/recorder.h"

const volatile __u64 min_us HELP("only waits that take so long, in microseconds");

enum why { woken, created, preempted };

struct runqlat {
  __u64 wait_ns ROLE("value");
  enum why why;
  __u32 prio; /* the kernel's: 120 is nice 0, below 100 is real time */
};
EVENT(runqlat, struct runqlat);
RING_CHANNEL(channel, runqlat, 4 << 20);

struct wait {
  __u64 time_ns;
  __u64 why;
};
BEGUN(waits, struct wait);

static __always_inline int begin(struct task_struct *task, enum why why) {
  __u32 thread = BPF_CORE_READ(task, pid);
  struct wait wait = {.why = why};
  if (!thread || !is_task_chosen(task)) return 0;
  wait.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&waits, &thread, &wait, BPF_ANY);
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wakes, struct task_struct *task) { return begin(task, woken); }

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(begins, struct task_struct *task) { return begin(task, created); }

SEC("tp_btf/sched_switch")
int BPF_PROG(switches, bool preempt, struct task_struct *prev, struct task_struct *next) {
  __u32 thread = BPF_CORE_READ(next, pid);
  struct wait *wait, was;
  struct runqlat *event;
  if (is_runnable(prev, preempt)) begin(prev, preempted);
  wait = bpf_map_lookup_elem(&waits, &thread);
  if (!wait) return 0;
  was = *wait;
  bpf_map_delete_elem(&waits, &thread);
  was.time_ns = bpf_ktime_get_ns() - was.time_ns;
  if (was.time_ns / 1000 < min_us || !is_taken()) return 0;
  event = tacho_reserve_for(channel, struct runqlat, BPF_CORE_READ(next, tgid), thread);
  if (!event) return 0;
  event->wait_ns = was.time_ns;
  event->why = was.why;
  event->prio = BPF_CORE_READ(next, prio);
  tacho_submit(channel, event);
  return 0;
}
