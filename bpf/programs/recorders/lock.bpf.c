// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Waits for futexes, on which locks, condition variables and semaphores of programs are built. The stack is taken when the wait
// begins, so that also a wait that never ends (a deadlock) has one; the lock's owner is that of then.
#include <asm/unistd.h>

#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/before.h"
#include "bpf/programs/recorders/futex_owner.h"
#include "bpf/programs/recorders/system_call.h"
#include "bpf/programs/recorders/unseen_ends.h"

const volatile __u64 min_us HELP("only waits of at least N microseconds");

struct lock {
  __u64 wait_ns ROLE("value");
  __u64 lock FORMAT("uaddr") ROLE("key"); /* address of the mutex, rwlock or futex, in its process */
  enum object object;                      /* mutex, rwlock; futex: another object, or a lock whose owner is unknown */
  __u32 holder_tid;                        /* its owner when the wait began; 0: unknown */
  char holder[16];                         /* comm */
  enum futex_command op ROLE("table:lock,holder");
  enum error_name error; /* ETIMEDOUT, EINTR; EAGAIN: the value had changed, so there was no wait */
  __u32 unfinished;      /* 1: still waiting when the recording ended */
  __u32 began_before;    /* 1: waiting when the recording started: wait_ns counts from there */
  __u64 kernel_stack[KERNEL_FRAMES] ROLE("stack") FORMAT("kaddr");
  __u64 user_stack[USER_FRAMES] ROLE("stack") FORMAT("uaddr");
};
EVENT(lock, struct lock);
RING_CHANNEL(channel, lock, 8 << 20);

struct wait {
  __u64 since_ns, cgroup;
  struct lock_owner owner;
  __u32 process, op;
  __u64 began_before;
  struct stack stack;
};
WAITS_OF_THREADS(waits, struct wait);

SEC("tracepoint/syscalls/sys_enter_futex")
int begins(struct trace_event_raw_sys_enter *context) {
  __u64 who = bpf_get_current_pid_tgid();
  __u32 thread = (__u32)who, op = context->args[1];
  struct wait *wait;
  bool is_new;
  if (!is_futex_wait(op) || !is_wanted_later()) return 1;
  is_new = !bpf_map_lookup_elem(&waits, &thread);
  wait = waits_of(thread);
  if (!wait) return 1;
  if (is_new) know_thread((struct task_struct *)bpf_get_current_task());
  close_unseen(&wait->since_ns, min_us);
  find_owner(&wait->owner, &(struct futex_wait){context->args[0], op, context->args[2]});
  wait->process = who >> 32;
  wait->cgroup = bpf_get_current_cgroup_id();
  wait->op = FUTEX_COMMAND(op);
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
  event->lock = wait->owner.lock;
  event->object = wait->owner.object;
  event->holder_tid = wait->owner.tid;
  __builtin_memcpy(event->holder, wait->owner.name, sizeof event->holder);
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

static __always_inline void note(struct task_struct *task) {
  __u32 only = 0, state = state_of(task);
  struct wait *wait = bpf_map_lookup_elem(&before, &only);
  struct system_call call;
  know_thread(task);
  if (!wait || has_filter() || !state || state >= 16 || !read_call(&call, task)) return;
  if (call.number != __NR_futex || !is_futex_wait(call.second)) return;
  wait->owner = (struct lock_owner){.lock = call.first, .object = futex___object};
  wait->op = FUTEX_COMMAND(call.second);
  NOTE_WAIT_WITH_STACK(waits, task, wait);
}
AT_BEGIN(note)

#define EMIT_UNFINISHED(thread, wait) emit(thread, wait, OK, true)
AT_END(waits, struct wait, EMIT_UNFINISHED)
