// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// System calls: which, how long, what they returned.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/syscalls.h"

const volatile enum syscall_name call HELP("only this system call, by name") = any;
const volatile bool failed HELP("only calls that return an error");
const volatile __u64 min_us HELP("only calls that take so long, in microseconds");

struct syscall {
  __u64 lat_ns ROLE("value");
  __s64 ret;
  enum syscall_name call ROLE("key");
  enum error_name error;
};
EVENT(syscall, struct syscall);
CHANNEL(channel, syscall);

static __always_inline int enter(long number) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct entry entry = {.call = number};
  if ((call != any && number != call) || !is_chosen()) return 1;
  entry.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&entries, &thread, &entry, BPF_ANY);
  return 1;
}

static __always_inline int leave(void *context, long number, long ret) {
  __u64 now = bpf_ktime_get_ns();
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct entry *entry = bpf_map_lookup_elem(&entries, &thread);
  struct syscall event = {.ret = ret, .error = error_of(ret)};
  if (!entry) return 1;  // it began before the recording, or is not wanted
  event.lat_ns = now - entry->time_ns;
  event.call = entry->call;
  bpf_map_delete_elem(&entries, &thread);
  if (event.lat_ns / 1000 < min_us || (failed && event.error == OK) || !IS_WANTED(syscall, &event)) return 1;
  EMIT(context, channel, &event);
  return 1;
}
