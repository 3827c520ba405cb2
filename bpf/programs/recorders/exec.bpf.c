// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls of execve() and execveat(), with arguments, also those that fail.
#include "bpf/programs/recorders/recorder.h"

#define PATH 256
#define ARGUMENTS 512
#define MOST_ARGUMENTS 24 /* of a failed call */

const volatile bool failed HELP("only calls that fail");
const volatile __u32 ppid HELP("only programs started by this process");

struct exec {
  __u32 ppid, uid;
  enum error_name error;
  char path[PATH] ROLE("key");
  char args[ARGUMENTS]; /* separated by blanks */
};
EVENT(exec, struct exec);
CHANNEL(channel, exec);

struct attempt {
  __u64 path, arguments;
};
IN_FLIGHT(attempts, struct attempt);

struct buffer {
  struct exec event;
  char more[ARGUMENTS]; /* for the verifier: a string that starts in `args` may end here */
};
PER_CPU(buffers, struct buffer);

static __always_inline struct exec *new_event(void) {
  __u32 only = 0;
  struct exec *event = bpf_map_lookup_elem(&buffers, &only);
  if (!event) return 0;
  event->ppid = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), real_parent, tgid);
  event->uid = (__u32)bpf_get_current_uid_gid();
  event->error = OK;
  __builtin_memset(event->path, 0, sizeof event->path);
  __builtin_memset(event->args, 0, sizeof event->args);
  return ppid && event->ppid != ppid ? 0 : event;
}

// Arguments are read from the new program's stack, where the kernel has just written them one after the other.
SEC("tracepoint/sched/sched_process_exec")
int started(struct trace_event_raw_sched_process_exec *context) {
  struct mm_struct *memory = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), mm);
  __u64 begin = BPF_CORE_READ(memory, arg_start), size = BPF_CORE_READ(memory, arg_end) - begin;
  struct exec *event;
  if (failed || !is_chosen()) return 1;
  event = new_event();
  if (!event) return 1;
  bpf_probe_read_kernel_str(event->path, sizeof event->path, (void *)context + (context->__data_loc_filename & 0xffff));
  if (size > ARGUMENTS - 1) size = ARGUMENTS - 1;
  bpf_probe_read_user(event->args, size, (const void *)begin);
  for (__u32 i = 0; i < ARGUMENTS - 1; ++i)
    if (i + 1 < size && !event->args[i]) event->args[i] = ' ';
  if (IS_WANTED(exec, event)) EMIT(context, channel, event);
  return 1;
}

static __always_inline int begin(__u64 file, __u64 arguments) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct attempt attempt = {file, arguments};
  if (is_chosen()) bpf_map_update_elem(&attempts, &thread, &attempt, BPF_ANY);
  return 1;
}

static __always_inline void read_arguments(struct exec *event, __u64 from) {
  __u32 at = 0;
  for (int i = 0; i < MOST_ARGUMENTS && at < ARGUMENTS - 1; ++i) {
    __u64 argument = 0;
    long size;
    if (bpf_probe_read_user(&argument, sizeof argument, (const void *)(from + i * sizeof argument)) || !argument) break;
    if (at) event->args[at++ & (ARGUMENTS - 1)] = ' ';
    size = bpf_probe_read_user_str(&event->args[at & (ARGUMENTS - 1)], ARGUMENTS - 1, (const void *)argument);
    if (size <= 0) break;
    at += size - 1;
  }
  event->args[ARGUMENTS - 1] = 0;
}

// Reports failed calls: the arguments are still in the caller's memory. Successful ones are reported by started().
static __always_inline int end(void *context, long ret) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct attempt *attempt = bpf_map_lookup_elem(&attempts, &thread), was;
  struct exec *event;
  if (!attempt) return 1;
  was = *attempt;
  bpf_map_delete_elem(&attempts, &thread);
  if (ret >= 0) return 1;
  event = new_event();
  if (!event) return 1;
  event->error = error_of(ret);
  bpf_probe_read_user_str(event->path, sizeof event->path, (const void *)was.path);
  read_arguments(event, was.arguments);
  if (IS_WANTED(exec, event)) EMIT(context, channel, event);
  return 1;
}

SEC("?tracepoint/syscalls/sys_enter_execve")
int enter_execve(struct trace_event_raw_sys_enter *context) { return begin(context->args[0], context->args[1]); }
SEC("?tracepoint/syscalls/sys_exit_execve")
int exit_execve(struct trace_event_raw_sys_exit *context) { return end(context, context->ret); }
SEC("?tracepoint/syscalls/sys_enter_execveat")
int enter_execveat(struct trace_event_raw_sys_enter *context) { return begin(context->args[1], context->args[2]); }
SEC("?tracepoint/syscalls/sys_exit_execveat")
int exit_execveat(struct trace_event_raw_sys_exit *context) { return end(context, context->ret); }
