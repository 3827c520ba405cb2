// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Numbers and durations of function calls, counted in the kernel: no event for each call.
//
// tacho-record finds the functions and attaches the two programs to all of them: functions of a program or library (uprobe.multi),
// or of the kernel (kprobe.multi). With `count` the second one is not attached.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/function_registers.h"
#include "bpf/programs/recorders/too_deep.h"

const volatile char name[256] HELP("functions, with * and ?: name='libc.so.6:getenv*', name='./prog:parse_*'; of the kernel: name='vfs_*'");
const volatile bool count HELP("count calls, without their durations");
const volatile __u64 min_us HELP("only calls of at least N microseconds");

const volatile __u32 tacho_in_kernel; /* set by tacho-record */

struct func_key {
  __u64 pid;
  __u64 cgroup ROLE("cgroup");
  __u64 function ROLE("function") FORMAT("uaddr");
  __u64 ns ROLE("log2 unless count") UNIT("ns");
};
struct func_value {
  __u64 calls ROLE("count");
  __u64 total_ns ROLE("sum unless count");
  __u64 longest_ns ROLE("max unless count");
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 65536);
  __type(key, struct func_key);
  __type(value, struct func_value);
} counted SEC(".maps");
SUMMARY(func, counted);

/* Key of an in-flight call. A thread's calls of one function have different stack pointers. */
struct call {
  __u64 thread, stack, function; /* stack: stack pointer; for kernel functions 0, or the CPU of an idle thread */
};
struct begun {
  __u64 time_ns, function;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, struct call);
  __type(value, struct begun);
} calls SEC(".maps");

static __always_inline void count_call(__u64 function, __u64 taken, bool is_timed) {
  struct func_key key = {.pid = bpf_get_current_pid_tgid() >> 32, .cgroup = bpf_get_current_cgroup_id(), .function = function};
  struct func_value *value;
  if (is_timed) key.ns = tacho_log2(taken);
  value = tacho_entry(counted, &key);
  if (!value) return;
  ++value->calls;
  value->total_ns += taken;
  if (value->longest_ns < taken) value->longest_ns = taken;
}

/* Kernel functions: the stack pointer of a return differs from that of the entry, so it is not used, and of a recursive function
 * only the innermost call is counted. Idle threads all have id 0 and are distinguished by CPU. */
static __always_inline struct call call_of(struct pt_regs *context, __u64 stack) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  __u64 key = tacho_in_kernel ? (thread ? 0 : bpf_get_smp_processor_id() + 1) : stack;
  struct call call = {thread, key, bpf_get_func_ip(context)};
  return call;
}

SEC("uprobe.multi")
int enters(struct pt_regs *context) {
  struct begun begun = {};
  if (!is_wanted_later()) return 0;
  begun.function = tacho_in_kernel ? bpf_get_func_ip(context) : function_start(PT_REGS_IP(context), bpf_get_attach_cookie(context));
  if (count) {
    if (is_taken()) count_call(begun.function, 0, false);
    return 0;
  }
  if (!tacho_in_kernel && returns_unseen()) {
    count_as_lost(bpf_get_attach_cookie(context));
    return 0;
  }
  struct call call = call_of(context, PT_REGS_SP(context));
  begun.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&calls, &call, &begun, BPF_ANY);
  return 0;
}

SEC("uretprobe.multi")
int returns(struct pt_regs *context) {
  __u64 now = bpf_ktime_get_ns(), taken, function;
  struct call call = call_of(context, STACK_AT_ENTRY(context));
  struct begun *begun = bpf_map_lookup_elem(&calls, &call);
  if (!begun) return 0;
  taken = now - begun->time_ns;
  function = begun->function;
  bpf_map_delete_elem(&calls, &call);
  if (taken / 1000 < min_us || !is_taken()) return 0;
  count_call(function, taken, true);
  return 0;
}
