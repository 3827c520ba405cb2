// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Numbers and durations of system calls by process, call and result, counted in the kernel: no event for each call.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/syscalls.h"
#include "bpf/programs/recorders/unseen_ends.h"

const volatile enum syscall_name call HELP("only this system call, by name") = any;
const volatile bool failed HELP("only calls that return an error");
const volatile bool count HELP("count calls, without their durations");
const volatile __u64 min_us HELP("only calls of at least N microseconds");

struct syscount_key {
  __u64 ns ROLE("log2 unless count") UNIT("ns");
  __u64 cgroup ROLE("cgroup");
  __u32 pid;
  enum syscall_name call;
  enum error_name error ROLE("table:call");
  char comm[16];
  __u32 unfinished; /* 1: not returned when the recording ended */
};
struct syscount_value {
  __u64 calls ROLE("count");
  __u64 total_ns ROLE("sum unless count");
  __u64 longest_ns ROLE("max unless count");
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 65536);
  __type(key, struct syscount_key);
  __type(value, struct syscount_value);
} counted SEC(".maps");
SUMMARY(syscount, counted);

static __always_inline int enter(long number) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct entry entry = {.call = number}, *open;
  if (count || (call != any && number != call) || ends_thread(number) || !is_wanted_later()) return 1;
  open = bpf_map_lookup_elem(&entries, &thread);
  if (open) close_unseen(&open->time_ns, min_us);
  entry.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&entries, &thread, &entry, BPF_ANY);
  return 1;
}

static __always_inline void add(struct syscount_key *key, __u64 taken) {
  struct syscount_value *value;
  if (!count) key->ns = tacho_log2(taken);
  value = tacho_entry(counted, key);
  if (!value) return;
  ++value->calls;
  value->total_ns += taken;
  if (value->longest_ns < taken) value->longest_ns = taken;
}

static __always_inline int count_call(__u64 number, __u64 taken, long ret) {
  struct syscount_key key;
  enum error_name error = error_of(ret);
  if ((failed && error == OK) || taken / 1000 < min_us || !is_taken()) return 1;
  __builtin_memset(&key, 0, sizeof key); /* with the padding at its end */
  key.pid = bpf_get_current_pid_tgid() >> 32;
  key.cgroup = bpf_get_current_cgroup_id();
  key.call = number;
  key.error = error;
  bpf_get_current_comm(key.comm, sizeof key.comm);
  add(&key, taken);
  return 1;
}

static __always_inline int leave(void *context, long number, long ret) {
  __u64 now = bpf_ktime_get_ns(), began, called;
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct entry *entry;
  if (count) return (call != any && number != call) || !is_wanted_later() ? 1 : count_call(number, 0, ret);
  entry = bpf_map_lookup_elem(&entries, &thread);
  if (!entry) return 1; /* it started before the recording, or is filtered out */
  began = take_start(&entry->time_ns);
  called = entry->call;
  bpf_map_delete_elem(&entries, &thread);
  if (!began) return 1;
  return count_call(called, now - began, ret);
}

/* Counts the in-flight calls when the recording ends. */
__u32 has_ended;
SEC("?syscall")
int at_end(void *context) {
  has_ended = 1;
  return 0;
}

SEC("?iter/task")
int count_open(struct bpf_iter__task *context) {
  struct task_struct *task = context->task;
  __u64 now = bpf_ktime_get_ns(), began;
  struct syscount_key key;
  struct entry *entry;
  __u32 thread;
  if (!has_ended || !task) return 0;
  thread = task->pid;
  entry = bpf_map_lookup_elem(&entries, &thread);
  if (!entry) return 0;
  began = take_start(&entry->time_ns);
  if (!began || failed || (now - began) / 1000 < min_us || !is_taken()) return 0;
  __builtin_memset(&key, 0, sizeof key);
  key.pid = task->tgid;
  key.cgroup = task_cgroup(task);
  key.call = entry->call;
  key.unfinished = 1;
  bpf_core_read(key.comm, sizeof key.comm, &task->comm);
  add(&key, now - began);
  return 0;
}
