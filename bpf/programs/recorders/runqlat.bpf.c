// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Run-queue latency: how long runnable threads waited for a CPU after a wake-up, fork or preemption.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/before.h"
#include "bpf/programs/recorders/unseen_ends.h"

const volatile __u64 min_us HELP("only waits of at least N microseconds");

enum why { woken, created, preempted, unknown /* waiting when the recording started */ };

struct runqlat {
  __u64 wait_ns ROLE("value");
  enum why why ROLE("why_queued");
  __u32 prio ROLE("table:comm,why"); /* task_struct.prio: 120 is nice 0, below 100 is real-time */
  __u32 unfinished;   /* 1: still waiting when the recording ended */
  __u32 began_before; /* 1: waiting when the recording started: wait_ns counts from there */
};
EVENT(runqlat, struct runqlat);
RING_CHANNEL(channel, runqlat, 4 << 20);

struct wait {
  __u64 since_ns, cgroup;
  __u32 why, process, prio, pad;
};
IN_FLIGHT(waits, struct wait);

static __always_inline int begin(struct task_struct *task, enum why why) {
  __u32 thread = BPF_CORE_READ(task, pid);
  struct wait wait = {.why = why};
  if (!thread || !is_task_chosen(task)) return 0;
  wait.process = BPF_CORE_READ(task, tgid);
  wait.cgroup = task_cgroup(task);
  wait.prio = BPF_CORE_READ(task, prio);
  wait.since_ns = bpf_ktime_get_ns();
  // A thread that is preempted just before it sleeps may be woken while it is on the run queue: the first start is kept.
  bpf_map_update_elem(&waits, &thread, &wait, BPF_NOEXIST);
  return 0;
}

/* A thread that is woken just before it sleeps is still on CPU, and does not wait. */
static __always_inline bool is_running(struct task_struct *task) {
  return bpf_core_field_exists(task->on_cpu) && BPF_CORE_READ(task, on_cpu);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wakes, struct task_struct *task) { return is_running(task) ? 0 : begin(task, woken); }

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(begins, struct task_struct *task) { return begin(task, created); }

static __always_inline void emit(__u32 thread, struct wait *wait, bool unfinished) {
  __u64 taken = bpf_ktime_get_ns() - wait->since_ns;
  struct runqlat *event;
  if (taken / 1000 < min_us || !is_taken()) return;
  event = tacho_reserve_for_cgroup(channel, struct runqlat, wait->process, thread, wait->cgroup);
  if (!event) return;
  event->wait_ns = taken;
  event->why = wait->why;
  event->prio = wait->prio;
  event->unfinished = unfinished;
  event->began_before = wait->why == unknown;
  tacho_submit(channel, event);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switches, bool preempt, struct task_struct *prev, struct task_struct *next) {
  __u32 thread = BPF_CORE_READ(next, pid), left = BPF_CORE_READ(prev, pid);
  struct wait *wait = bpf_map_lookup_elem(&waits, &left), was;
  if (wait) {
    close_unseen(&wait->since_ns, min_us);
    bpf_map_delete_elem(&waits, &left);
  }
  if (is_runnable(prev, preempt)) begin(prev, preempted);
  wait = bpf_map_lookup_elem(&waits, &thread);
  if (!wait) return 0;
  was = *wait;
  // Emitted by the program that deletes the entry: this one or at_end().
  if (bpf_map_delete_elem(&waits, &thread) == 0) emit(thread, &was, false);
  return 0;
}

static __always_inline void note(struct task_struct *task) {
  struct wait wait = {.cgroup = task_cgroup(task), .why = unknown, .process = task->tgid, .prio = task->prio};
  if (state_of(task) == 0) NOTE_WAIT(waits, task, &wait);
}
AT_BEGIN(note)

static __always_inline void emit_unfinished(__u32 thread, struct wait *wait) {
  struct wait was = *wait;
  if (bpf_map_delete_elem(&waits, &thread) == 0) emit(thread, &was, true);
}
AT_END(waits, struct wait, emit_unfinished)
