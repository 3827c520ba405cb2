// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// System calls: number, duration and return value.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/syscalls.h"
#include "bpf/programs/recorders/unseen_ends.h"

const volatile enum syscall_name call HELP("only this system call, by name") = any;
const volatile bool failed HELP("only calls that return an error");
const volatile __u64 min_us HELP("only calls of at least N microseconds");

struct syscall {
  __u64 lat_ns ROLE("value");
  __s64 ret;
  enum syscall_name call ROLE("key");
  enum error_name error;
  __u64 unfinished; /* 1: not returned when the recording ended */
};
EVENT(syscall, struct syscall);
CHANNEL(channel, syscall);
UNFINISHED_CHANNEL(syscall);

static __always_inline int enter(long number) {
  __u64 who = bpf_get_current_pid_tgid();
  __u32 thread = (__u32)who;
  struct entry entry = {.cgroup = bpf_get_current_cgroup_id(), .call = number, .process = who >> 32}, *open;
  if ((call != any && number != call) || ends_thread(number) || !is_chosen()) return 1;
  open = bpf_map_lookup_elem(&entries, &thread);
  if (open) close_unseen(&open->time_ns, min_us);
  entry.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&entries, &thread, &entry, BPF_ANY);
  return 1;
}

static __always_inline int leave(void *context, long number, long ret) {
  __u64 now = bpf_ktime_get_ns(), began;
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct entry *entry = bpf_map_lookup_elem(&entries, &thread);
  struct syscall event = {.ret = ret, .error = error_of(ret)};
  if (!entry) return 1;  // it started before the recording, or is filtered out
  began = take_start(&entry->time_ns);
  if (!began) return 1;
  event.lat_ns = now - began;
  event.call = entry->call;
  bpf_map_delete_elem(&entries, &thread);
  if (event.lat_ns / 1000 < min_us || (failed && event.error == OK) || !IS_WANTED(syscall, &event)) return 1;
  EMIT(context, channel, &event);
  return 1;
}

static __always_inline void emit_open(__u32 thread, struct entry *entry) {
  __u64 now = bpf_ktime_get_ns(), began = take_start(&entry->time_ns);
  struct syscall event = {.lat_ns = now - began, .call = entry->call, .unfinished = 1};
  if (began && !failed && event.lat_ns / 1000 >= min_us) EMIT_OPEN(syscall, entry->process, thread, entry->cgroup, &event);
}
AT_END(entries, struct entry, emit_open)
