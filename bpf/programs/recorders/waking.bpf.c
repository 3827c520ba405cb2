// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Wake-ups: the waker's stack, the woken thread, and how long that had slept.
#include "bpf/programs/recorders/wait_sampling.h"

#include "bpf/programs/recorders/interrupts.h"

const volatile __u64 min_us HELP("only waits of at least N microseconds");

struct waking {
  __u64 blocked_ns ROLE("value"); /* from sleep to wake-up */
  __u32 woken_tid ROLE("wakes");
  __u32 woken_pid ROLE("table:woken,waker");
  __u32 waker_tid, waker_pid;
  char woken[16] ROLE("key");
  char waker[16] ROLE("waker"); /* comm; [timer] or [irq]: an interrupt handler */
  __u64 weight_ns ROLE("weight"); /* blocked_ns, times the wake-ups that this one stands for because of rate= */
  __u64 kernel_stack[KERNEL_FRAMES] ROLE("stack") FORMAT("kaddr");
  __u64 user_stack[USER_FRAMES] ROLE("stack") FORMAT("uaddr");
};
EVENT(waking, struct waking);
RING_CHANNEL(channel, waking, 8 << 20);

struct sleep {
  __u64 time_ns, cgroup; /* time_ns: 0: it is awake */
  struct wait_sampling sampling;
  __u32 process, pad;
  char name[16];
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct sleep);
} sleeps SEC(".maps");

#define DEAD 0x30 /* states X and Z */
#define IDLE 0x80 /* state I: idle kernel workers */

// The options choose woken threads; wakers are not filtered.
SEC("tp_btf/sched_switch")
int BPF_PROG(switches, bool preempt, struct task_struct *task) {
  __u32 thread = task->pid, state = state_of(task);
  struct sleep new = {}, *sleep = bpf_map_lookup_elem(&sleeps, &thread);
  if (sleep) close_unseen_sampled(&sleep->time_ns, &sleep->sampling, min_us);
  if (state & DEAD) bpf_map_delete_elem(&sleeps, &thread);
  if (!thread || preempt || !state || (state & (DEAD | IDLE)) || !is_wanted_later()) return 0;
  if (!sleep) {
    bpf_map_update_elem(&sleeps, &thread, &new, BPF_ANY);
    sleep = bpf_map_lookup_elem(&sleeps, &thread);
    if (!sleep) return 0;
  }
  sleep->process = bpf_get_current_pid_tgid() >> 32;
  sleep->cgroup = bpf_get_current_cgroup_id();
  bpf_get_current_comm(sleep->name, sizeof sleep->name);
  sleep->time_ns = bpf_ktime_get_ns();
  begin_sampling(&sleep->sampling, task, sleep->time_ns);
  return 0;
}

SEC("tracepoint/sched/sched_waking")
int wakes(struct trace_event_raw_sched_wakeup_template *context) {
  __u32 thread = context->pid;
  __u64 now = bpf_ktime_get_ns(), waker = bpf_get_current_pid_tgid(), since, blocked;
  struct sleep *sleep = bpf_map_lookup_elem(&sleeps, &thread);
  struct waking *event;
  char name[16];
  bool is_recorded, is_thread;
  since = sleep ? take_start(&sleep->time_ns) : 0;
  if (!since) return 1;
  blocked = elapsed_ns(since, now);
  if (blocked / 1000 < min_us || !is_in_sample(&sleep->sampling, blocked) || !is_sampled()) return 1;
  is_thread = name_waker(name);
  // If the waker is an interrupt, or a thread that is not recorded, the event is attributed to the woken thread, and has no user
  // stack: that would be the current process's.
  is_recorded = is_thread && tacho_follows_thread((__u32)waker);
  event = tacho_reserve_for_cgroup(channel, struct waking, is_recorded ? waker >> 32 : sleep->process,
                                   is_recorded ? (__u32)waker : thread,
                                   is_recorded ? bpf_get_current_cgroup_id() : sleep->cgroup);
  if (!event) return 1;
  event->blocked_ns = blocked;
  event->woken_tid = thread;
  event->woken_pid = sleep->process;
  event->waker_tid = is_thread ? (__u32)waker : 0;
  event->waker_pid = is_thread ? waker >> 32 : 0;
  event->weight_ns = weight_of(&sleep->sampling, blocked);
  __builtin_memcpy(event->waker, name, sizeof event->waker);
  __builtin_memcpy(event->woken, sleep->name, sizeof event->woken);
  take_stack(context, (struct stack *)event->kernel_stack);
  if (!is_recorded) event->user_stack[0] = 0;
  tacho_submit(channel, event);
  return 1;
}
