// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Waits for futexes, on which locks, condition variables and semaphores of programs are built. The stack is taken when the wait
// begins, so that also a wait that never ends (a deadlock) has one.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/before.h"
#include "bpf/programs/recorders/unseen_ends.h"

enum futex { WAIT, WAIT_BITSET = 9, LOCK_PI = 6, WAIT_REQUEUE_PI = 11, LOCK_PI2 = 13 };

const volatile __u64 min_us HELP("only waits of at least N microseconds");

struct lock {
  __u64 wait_ns ROLE("value");
  __u64 addr FORMAT("uaddr") ROLE("key"); /* of the futex, in its process */
  enum futex op ROLE("table:addr,op,error");
  enum error_name error; /* ETIMEDOUT, EINTR; EAGAIN: the value had changed, so there was no wait */
  __u32 unfinished;      /* 1: still waiting when the recording ended */
  __u32 began_before;    /* 1: waiting when the recording started: wait_ns counts from there */
  __u64 kernel_stack[KERNEL_FRAMES] ROLE("stack") FORMAT("kaddr");
  __u64 user_stack[USER_FRAMES] ROLE("stack") FORMAT("uaddr");
};
EVENT(lock, struct lock);
RING_CHANNEL(channel, lock, 8 << 20);

struct wait {
  __u64 since_ns, address, cgroup;
  __u32 process, op;
  __u64 began_before;
  struct stack stack;
};
WAITS_OF_THREADS(waits, struct wait);

#define COMMAND 0x7f /* FUTEX_CMD_MASK */
static __always_inline bool is_wait(__u32 op) {
  return op == WAIT || op == WAIT_BITSET || op == LOCK_PI || op == LOCK_PI2 || op == WAIT_REQUEUE_PI;
}

SEC("tracepoint/syscalls/sys_enter_futex")
int begins(struct trace_event_raw_sys_enter *context) {
  __u64 who = bpf_get_current_pid_tgid();
  __u32 op = context->args[1] & COMMAND;
  struct wait *wait;
  if (!is_wait(op) || !is_wanted_later()) return 1;
  wait = waits_of((__u32)who);
  if (!wait) return 1;
  close_unseen(&wait->since_ns, min_us);
  wait->address = context->args[0];
  wait->process = who >> 32;
  wait->cgroup = bpf_get_current_cgroup_id();
  wait->op = op;
  wait->began_before = 0;
  take_stack(context, &wait->stack);
  wait->since_ns = bpf_ktime_get_ns();
  return 1;
}

static __always_inline void emit(__u32 thread, struct wait *wait, enum error_name error, bool unfinished) {
  __u64 now = bpf_ktime_get_ns(), since = take_start(&wait->since_ns);
  struct lock *event;
  if (!since || (now - since) / 1000 < min_us || !is_taken()) return;
  event = tacho_reserve_for_cgroup(channel, struct lock, wait->process, thread, wait->cgroup);
  if (!event) return;
  event->wait_ns = now - since;
  event->addr = wait->address;
  event->op = wait->op;
  event->error = error;
  event->unfinished = unfinished;
  event->began_before = wait->began_before;
  bpf_probe_read_kernel(event->kernel_stack, sizeof event->kernel_stack, wait->stack.kernel);
  bpf_probe_read_kernel(event->user_stack, sizeof event->user_stack, wait->stack.user);
  tacho_submit(channel, event);
}

SEC("tracepoint/syscalls/sys_exit_futex")
int ends(struct trace_event_raw_sys_exit *context) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  if (wait) emit(thread, wait, error_of(context->ret), false);
  return 1;
}

PER_CPU(before, struct wait);

/* Reads the arguments of the system call from the pt_regs at the base of the task's kernel stack. */
static __always_inline void note(struct task_struct *task) {
  const long futex = 202, code_of_32_bit = 0x23; /* x86-64 */
  __u32 only = 0, op, state = state_of(task);
  struct wait *wait = bpf_map_lookup_elem(&before, &only);
  struct pt_regs registers, *saved = (struct pt_regs *)bpf_task_pt_regs(task);
  if (!wait || has_filter() || !state || state >= 16 || bpf_probe_read_kernel(&registers, sizeof registers, saved)) return;
  op = registers.rsi & COMMAND;
  if ((long)registers.orig_rax != futex || registers.cs == code_of_32_bit || !is_wait(op)) return;
  wait->address = registers.rdi;
  wait->op = op;
  NOTE_WAIT_WITH_STACK(waits, task, wait);
}
AT_BEGIN(note)

#define EMIT_UNFINISHED(thread, wait) emit(thread, wait, OK, true)
AT_END(waits, struct wait, EMIT_UNFINISHED)
