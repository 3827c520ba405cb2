// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Stacks of function calls or of a tracepoint, counted in the kernel: no event for each hit.
//
// tacho-record attaches the first program to all functions that it finds in a program or library (uprobe.multi) or in the kernel
// (kprobe.multi), or the second one to the tracepoint.
#include "bpf/programs/recorders/recorder.h"

#define STACK_FLAGS 0 /* preallocated: a tracepoint may be in code that must not allocate memory */
#include "bpf/programs/recorders/stack_numbers.h"

const volatile char name[256] HELP("functions, with * and ?: name='libc.so.6:malloc', name='./prog:parse_*'; of the kernel: name='vfs_*'");
const volatile char tracepoint[128] HELP("instead of name: tracepoint='block:block_rq_issue'");
const volatile bool count = true; /* for tacho-record: no program at returns */
const volatile bool no_user HELP("without user stacks: events with one kernel stack are counted together");
const volatile bool no_kernel HELP("without kernel stacks");

const volatile __u32 tacho_in_kernel; /* set by tacho-record */

struct stackcount_key {
  __u64 pid;
  __u64 cgroup ROLE("cgroup");
  __u64 function ROLE("function") FORMAT("uaddr"); /* 0: the tracepoint */
  __u64 kernel_stack ROLE("stack:stacks");
  __u64 user_stack ROLE("stack:stacks");
  char comm[16];
};
struct stackcount_value {
  __u64 count ROLE("count");
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 32768);
  __type(key, struct stackcount_key);
  __type(value, struct stackcount_value);
} counted SEC(".maps");
SUMMARY(stackcount, counted);

static __always_inline void count_stack(void *context, __u64 function, bool has_kernel_part) {
  struct stackcount_key key = {.pid = bpf_get_current_pid_tgid() >> 32, .cgroup = bpf_get_current_cgroup_id(), .function = function};
  struct stackcount_value *value;
  if (!is_wanted_later() || !is_taken()) return;
  bpf_get_current_comm(key.comm, sizeof key.comm);
  if (has_kernel_part && !no_kernel) key.kernel_stack = take_number(context, true);
  if (!no_user) key.user_stack = take_number(context, false);
  value = tacho_entry(counted, &key);
  if (value) __sync_fetch_and_add(&value->count, 1);
}

SEC("?uprobe.multi")
int enters(struct pt_regs *context) {
  __u64 function = tacho_in_kernel ? bpf_get_func_ip(context) : function_start(PT_REGS_IP(context), bpf_get_attach_cookie(context));
  count_stack(context, function, tacho_in_kernel);
  return 0;
}

SEC("?tracepoint/tacho/named")
int hits(void *context) {
  count_stack(context, 0, true);
  return 1;
}
