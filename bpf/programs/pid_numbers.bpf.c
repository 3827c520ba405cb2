// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The numbers of threads in the recorder's pid namespace, by their numbers in the initial one, and the reverse. The iterator
// adds the threads that run at the start, the other program each new one.
#include "bpf/programs/pid_namespace.h"
#include "bpf/programs/pid_numbers.h"
#include "bpf/programs/recorders/kernel_types.h"

const volatile __u32 namespace_inode;

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH); /* entries outlive their threads, whose last events come later */
  __uint(max_entries, 65536);
  __type(key, __u32); /* kernel's tid */
  __type(value, struct tacho_own_numbers);
} own_numbers SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, __u32); /* tid in the recorder's namespace */
  __type(value, __u32);
} kernel_tids SEC(".maps");

static __always_inline void note(const struct task_struct___tacho *task) {
  const __u32 kernel_tid = BPF_CORE_READ(task, pid);
  const __u64 both = tacho_numbers_of(task, namespace_inode);
  const struct tacho_own_numbers own = {both >> 32, (__u32)both};
  if (own.thread == 0) {
    bpf_map_delete_elem(&own_numbers, &kernel_tid); /* an earlier thread had this tid */
    return;
  }
  bpf_map_update_elem(&own_numbers, &kernel_tid, &own, BPF_ANY);
  bpf_map_update_elem(&kernel_tids, &own.thread, &kernel_tid, BPF_ANY);
}

SEC("raw_tracepoint/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *context) {
  note((const struct task_struct___tacho *)context->args[1]);
  return 0;
}

SEC("iter/task")
int each(struct bpf_iter__task *context) {
  struct task_struct *task = context->task; /* the verifier checks each read of the member by itself */
  if (!task) return 0;
  note((const struct task_struct___tacho *)task);
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
