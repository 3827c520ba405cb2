/* Pids and tids in a pid namespace other than the initial one. bpf_get_current_pid_tgid() and task_struct.pid have the numbers
 * of the initial namespace; perf samples and /proc have those of the recorder's. bpf_get_ns_current_pid_tgid() fails for tasks
 * of namespaces below the recorder's (a container in a container), so the numbers are read from struct pid. */
#ifndef TACHO_PID_NAMESPACE_H
#define TACHO_PID_NAMESPACE_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define MOST_PID_LEVELS 33 /* MAX_PID_NS_LEVEL + 1 */

/* The part after ___ is not part of the kernel's name. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common___tacho {
  unsigned int inum;
};
struct pid_namespace___tacho {
  struct ns_common___tacho ns;
};
struct upid___tacho {
  int nr;
  struct pid_namespace___tacho *ns;
};
struct pid___tacho {
  unsigned int level;
  struct upid___tacho numbers[1];
};
struct task_struct___tacho {
  struct task_struct___tacho *group_leader;
  struct pid___tacho *thread_pid;
  int pid;
};
#pragma clang attribute pop

/* The number of `pid` in the namespace with this inode; 0: it has none there, as it is of a task outside. */
static __attribute__((noinline)) __u32 tacho_number_in(const struct pid___tacho *pid, __u32 inode) {
  const __u32 level = BPF_CORE_READ(pid, level);
  for (__u32 i = 0; i < MOST_PID_LEVELS; i++) {
    struct upid___tacho *number;
    if (i > level) break;
    number = (void *)__builtin_preserve_access_index(&pid->numbers) + (level - i) * sizeof *number;
    if (BPF_CORE_READ(number, ns, ns.inum) == inode) return BPF_CORE_READ(number, nr);
  }
  return 0;
}

/* Pid (upper half) and tid of a task in the namespace with this inode; each is 0 if there is none. */
static __always_inline __u64 tacho_numbers_of(const void *task, __u32 inode) {
  const struct task_struct___tacho *of = task;
  const __u64 process = tacho_number_in(BPF_CORE_READ(of, group_leader, thread_pid), inode);
  return process << 32 | tacho_number_in(BPF_CORE_READ(of, thread_pid), inode);
}

#endif
