// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How long threads were off the CPU, with the stack that went to sleep, and who woke them.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/off_cpu.h"

struct offcpu {
  __u64 off_ns ROLE("value");
  __u64 runq_ns ROLE("queued"); /* of it: woken, and waiting for a CPU */
  enum state state;
  __u32 waker_tid; /* 0: nobody, or not seen. Of what an interrupt woke: who was interrupted */
  char waker[16];
  __u64 kernel_stack[KERNEL_FRAMES] ROLE("stack") FORMAT("kaddr");
  __u64 user_stack[USER_FRAMES] ROLE("stack") FORMAT("uaddr");
};
EVENT(offcpu, struct offcpu);
RING_CHANNEL(channel, offcpu, 8 << 20);

struct wait {
  __u64 off_ns, wake_ns; /* since boot; 0: it is on the CPU, was not woken */
  __u32 process, state, waker_tid, pad;
  char waker[16];
  struct stack stack;
};
/* A thread keeps its entry until it ends: its stacks are written where they stay, and no entry is made for each wait. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct wait);
} waits SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct wait);
} nothing SEC(".maps");

static __always_inline struct wait *entry_of(__u32 thread) {
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  __u32 only = 0;
  if (wait) return wait;
  wait = bpf_map_lookup_elem(&nothing, &only);
  if (!wait) return 0;
  bpf_map_update_elem(&waits, &thread, wait, BPF_NOEXIST);
  return bpf_map_lookup_elem(&waits, &thread);
}

static __always_inline void leaves(struct trace_event_raw_sched_switch *context) {
  __u32 thread = context->prev_pid;
  enum state state = state_at(context);
  struct wait *wait;
  if (is_dead(state)) bpf_map_delete_elem(&waits, &thread);
  if (!is_meant(thread, state)) return;
  wait = entry_of(thread);
  if (!wait) return;
  wait->wake_ns = 0;
  wait->process = bpf_get_current_pid_tgid() >> 32;
  wait->state = state;
  wait->waker_tid = 0;
  __builtin_memset(wait->waker, 0, sizeof wait->waker);
  take_stack(context, &wait->stack);
  wait->off_ns = bpf_ktime_get_ns();
}

static __always_inline void returns(__u32 thread) {
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  struct offcpu *event;
  __u64 now = bpf_ktime_get_ns(), off;
  if (!wait || !wait->off_ns) return;
  off = now - wait->off_ns;
  if (off / 1000 >= min_us && is_taken()) {
    event = tacho_reserve_for(channel, struct offcpu, wait->process, thread);
    if (event) {
      event->off_ns = off;
      event->runq_ns = wait->wake_ns ? now - wait->wake_ns : wait->state == R ? off : 0;
      event->state = wait->state;
      event->waker_tid = wait->waker_tid;
      __builtin_memcpy(event->waker, wait->waker, sizeof event->waker);
      bpf_probe_read_kernel(event->kernel_stack, sizeof event->kernel_stack, wait->stack.kernel);
      bpf_probe_read_kernel(event->user_stack, sizeof event->user_stack, wait->stack.user);
      tacho_submit(channel, event);
    }
  }
  wait->off_ns = 0;
}

SEC("tracepoint/sched/sched_switch")
int switches(struct trace_event_raw_sched_switch *context) {
  leaves(context);
  returns(context->next_pid);
  return 1;
}

SEC("tracepoint/sched/sched_waking")
int wakes(struct trace_event_raw_sched_wakeup_template *context) {
  __u32 thread = context->pid;
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  if (!wait || !wait->off_ns || wait->wake_ns) return 1;
  wait->waker_tid = (__u32)bpf_get_current_pid_tgid();
  bpf_get_current_comm(wait->waker, sizeof wait->waker);
  wait->wake_ns = bpf_ktime_get_ns();
  return 1;
}
