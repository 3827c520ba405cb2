// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// How often functions are called and how long their calls take, counted in the kernel: no event a call.
//
// The recorder finds the functions and puts the two programs on all of them, of a program or library (uprobe.multi) or of the
// kernel (kprobe.multi). With `count` alone there is no probe on returns.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/too_deep.h"

const volatile char name[256] HELP("functions, with * and ?: name='libc.so.6:getenv*', name='./prog:parse_*'; of the kernel: name='vfs_*'");
const volatile bool count HELP("calls are counted when they begin, and not timed");
const volatile __u64 min_us HELP("only calls that take so long, in microseconds");

const volatile __u32 tacho_in_kernel; /* set by the recorder */

struct func_key {
  __u64 pid;
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

/* Calls that have begun. Of a thread's calls of one function no two have the same stack pointer. */
struct call {
  __u64 thread, place, function; /* place: stack pointer, or a CPU */
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
  struct func_key key = {.pid = bpf_get_current_pid_tgid() >> 32, .function = function};
  struct func_value *value;
  if (is_timed) key.ns = tacho_log2(taken);
  value = tacho_entry(counted, &key);
  if (!value) return;
  ++value->calls;
  value->total_ns += taken;
  if (value->longest_ns < taken) value->longest_ns = taken;
}

/* In the kernel, functions are distinguished by their address only: of a function that calls itself the innermost
 * call counts. The idle threads of all CPUs are number 0. */
static __always_inline struct call call_of(struct pt_regs *context, __u64 stack) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  __u64 place = tacho_in_kernel ? (thread ? 0 : bpf_get_smp_processor_id() + 1) : stack;
  struct call call = {thread, place, bpf_get_func_ip(context)};
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
  struct call call = call_of(context, PT_REGS_SP(context) - sizeof(__u64)); /* as at the entry */
  struct begun *begun = bpf_map_lookup_elem(&calls, &call);
  if (!begun) return 0;
  taken = now - begun->time_ns;
  function = begun->function;
  bpf_map_delete_elem(&calls, &call);
  if (taken / 1000 < min_us || !is_taken()) return 0;
  count_call(function, taken, true);
  return 0;
}
