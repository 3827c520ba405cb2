// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Off-CPU times of threads, with the stack that left the CPU, and the waker.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/before.h"
#include "bpf/programs/recorders/interrupts.h"
#include "bpf/programs/recorders/off_cpu.h"
#include "bpf/programs/recorders/unseen_ends.h"

struct offcpu {
  __u64 off_ns ROLE("value");
  __u64 runq_ns ROLE("queued"); /* part of off_ns after the wake-up, waiting for a CPU */
  enum state state;
  __u32 waker_tid;    /* 0: not a thread, or not seen */
  char waker[16];     /* comm; [timer] or [irq]: an interrupt handler */
  __u32 unfinished;   /* 1: still off CPU when the recording ended */
  __u32 began_before; /* 1: off CPU when the recording started: off_ns counts from there */
  __u64 kernel_stack[KERNEL_FRAMES] ROLE("stack") FORMAT("kaddr");
  __u64 user_stack[USER_FRAMES] ROLE("stack") FORMAT("uaddr");
};
EVENT(offcpu, struct offcpu);
RING_CHANNEL(channel, offcpu, 8 << 20);

struct wait {
  __u64 since_ns, wake_ns; /* wake_ns: 0: not woken yet */
  __u64 cgroup;
  __u32 process, state, waker_tid, began_before;
  char waker[16];
  struct stack stack;
};
WAITS_OF_THREADS(waits, struct wait);

static __always_inline void leaves(struct trace_event_raw_sched_switch *context) {
  __u32 thread = context->prev_pid;
  enum state state = state_at(context);
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  if (wait) close_unseen(&wait->since_ns, min_us);
  if (is_dead(state)) bpf_map_delete_elem(&waits, &thread);
  if (!is_wait_chosen(thread, state)) return;
  wait = waits_of(thread);
  if (!wait) return;
  wait->wake_ns = 0;
  wait->process = bpf_get_current_pid_tgid() >> 32;
  wait->cgroup = bpf_get_current_cgroup_id();
  wait->state = state;
  wait->waker_tid = 0;
  wait->began_before = 0;
  __builtin_memset(wait->waker, 0, sizeof wait->waker);
  take_stack(context, &wait->stack);
  wait->since_ns = bpf_ktime_get_ns();
}

static __always_inline void emit(__u32 thread, struct wait *wait, bool unfinished) {
  __u64 now = bpf_ktime_get_ns(), since = take_start(&wait->since_ns), off = elapsed_ns(since, now);
  struct offcpu *event;
  if (!since || off / 1000 < min_us || !is_taken()) return;
  event = tacho_reserve_for_cgroup(channel, struct offcpu, wait->process, thread, wait->cgroup);
  if (!event) return;
  event->off_ns = off;
  event->runq_ns = wait->wake_ns ? elapsed_ns(wait->wake_ns, now) : wait->state == R ? off : 0;
  event->state = wait->state;
  event->waker_tid = wait->waker_tid;
  __builtin_memcpy(event->waker, wait->waker, sizeof event->waker);
  event->unfinished = unfinished;
  event->began_before = wait->began_before;
  bpf_probe_read_kernel(event->kernel_stack, sizeof event->kernel_stack, wait->stack.kernel);
  bpf_probe_read_kernel(event->user_stack, sizeof event->user_stack, wait->stack.user);
  tacho_submit(channel, event);
}

SEC("tracepoint/sched/sched_switch")
int switches(struct trace_event_raw_sched_switch *context) {
  __u32 thread = context->next_pid;
  struct wait *wait;
  leaves(context);
  wait = bpf_map_lookup_elem(&waits, &thread);
  if (wait) emit(thread, wait, false);
  return 1;
}

SEC("tracepoint/sched/sched_waking")
int wakes(struct trace_event_raw_sched_wakeup_template *context) {
  __u32 thread = context->pid;
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  if (!wait || !wait->since_ns || wait->wake_ns) return 1;
  wait->waker_tid = name_waker(wait->waker) ? (__u32)bpf_get_current_pid_tgid() : 0;
  wait->wake_ns = bpf_ktime_get_ns();
  return 1;
}

PER_CPU(before, struct wait);

static __always_inline void note(struct task_struct *task) {
  __u32 only = 0, state = state_of(task);
  struct wait *wait = bpf_map_lookup_elem(&before, &only);
  if (!wait || has_filter() || !is_state_chosen(state)) return;
  wait->state = state;
  NOTE_WAIT_WITH_STACK(waits, task, wait);
}
AT_BEGIN(note)

#define EMIT_UNFINISHED(thread, wait) emit(thread, wait, true)
AT_END(waits, struct wait, EMIT_UNFINISHED)
