// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Task iterator of tacho stacks: writes each thread's state, kernel stack and user registers. Stops no thread: the registers
// are the pt_regs at the base of the kernel stack.
#include "bpf/programs/recorders/kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/programs/pid_namespace.h"
#include "bpf/programs/thread_record.h"

const volatile struct tacho_thread_settings settings;

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1); /* the reader sets it */
  __type(key, __u32);     /* pid or tid, by the choice */
  __type(value, __u32);
} chosen SEC(".maps");

/* Memory for a record, which is larger than the stack of a BPF program. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tacho_thread_record);
} records SEC(".maps");

SEC("iter/task")
int each(struct bpf_iter__task *context) {
  struct task_struct *task = context->task;
  struct tacho_thread_record *record;
  struct pt_regs *registers;
  __u32 key, zero = 0, bytes = 0, pid, tid;
  long got;
  if (!task) return 0;
  pid = task->tgid;
  tid = task->pid;
  if (settings.namespace_inode) {
    const __u64 numbers = tacho_numbers_of(task, settings.namespace_inode);
    pid = numbers >> 32;
    tid = numbers;
    if (!pid || !tid) return 0;
  }
  key = settings.choice == TACHO_THREADS_OF_PROCESSES ? pid : tid;
  if (settings.choice != TACHO_ALL_THREADS && !bpf_map_lookup_elem(&chosen, &key)) return 0;
  record = bpf_map_lookup_elem(&records, &zero);
  if (!record) return 0;
  record->pid = pid;
  record->tid = tid;
  record->kernel_tid = task->pid;
  record->state = task->__state | task->exit_state;
  record->flags = task->flags;
  record->switches = task->nvcsw + task->nivcsw;
  record->is_on_cpu = task->on_cpu;
  record->has_memory = task->mm != 0;
  bpf_probe_read_kernel(record->comm, sizeof record->comm, task->comm);
  __builtin_memset(record->registers, 0, sizeof record->registers);
  registers = (struct pt_regs *)bpf_task_pt_regs(task);
  if (registers) bpf_probe_read_kernel(record->registers, sizeof record->registers, registers);
  got = bpf_get_task_stack(task, record->kernel, sizeof record->kernel, 0);
  if (got > 0) bytes = got > (long)sizeof record->kernel ? sizeof record->kernel : got;
  record->frames = bytes / sizeof(__u64);
  bpf_seq_write(context->meta->seq, record, offsetof(struct tacho_thread_record, kernel) + bytes);
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
