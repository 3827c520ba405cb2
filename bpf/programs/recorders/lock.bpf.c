// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Waits for locks, conditions and semaphores of programs: futexes.
#include "bpf/programs/recorders/recorder.h"

enum futex { WAIT, WAIT_BITSET = 9, LOCK_PI = 6, WAIT_REQUEUE_PI = 11, LOCK_PI2 = 13 };

const volatile __u64 min_us HELP("only waits that take so long, in microseconds");

struct lock {
  __u64 wait_ns ROLE("value");
  __u64 addr FORMAT("hex") ROLE("key"); /* of the lock, in its process */
  enum futex op;
  enum error_name error; /* ETIMEDOUT, EAGAIN: it was not locked any more, EINTR */
};
EVENT(lock, struct lock);
CHANNEL(channel, lock);

struct wait {
  __u64 time_ns, address;
  __u64 op;
};
BEGUN(waits, struct wait);

#define COMMAND 0x7f /* of what futex() is told; the rest are flags */

SEC("tracepoint/syscalls/sys_enter_futex")
int begins(struct trace_event_raw_sys_enter *context) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid(), op = context->args[1] & COMMAND;
  struct wait wait = {.address = context->args[0], .op = op};
  if (op != WAIT && op != WAIT_BITSET && op != LOCK_PI && op != LOCK_PI2 && op != WAIT_REQUEUE_PI) return 1;
  if (!is_chosen()) return 1;
  wait.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&waits, &thread, &wait, BPF_ANY);
  return 1;
}

SEC("tracepoint/syscalls/sys_exit_futex")
int ends(struct trace_event_raw_sys_exit *context) {
  __u64 now = bpf_ktime_get_ns();
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  struct lock event = {.error = error_of(context->ret)};
  if (!wait) return 1;
  event.wait_ns = now - wait->time_ns;
  event.addr = wait->address;
  event.op = wait->op;
  bpf_map_delete_elem(&waits, &thread);
  if (event.wait_ns / 1000 < min_us || !IS_WANTED(lock, &event)) return 1;
  EMIT(context, channel, &event);
  return 1;
}
