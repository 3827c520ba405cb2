// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// How long each system call took, from entry to exit, in nanoseconds; with -g the stack it returns to.
//
//   tacho record -e ./syscall_latency.bpf.c -a -o calls.data -- sleep 1
//   tacho record -e ./syscall_latency.bpf.c -o calls.data -- make         make and all that it starts, nobody else
//   tacho hist -i calls.data                latencies in powers of two, for each system call (ROLE("key"))
//   tacho hist -i calls.data --top 5        the five system calls that were made most often
//   tacho hist -i calls.data --by comm      the same for each command; --by none: for all together
//   tacho script -i calls.data              each call: latency_ns=5120 nr=0 ret=4096
//
// nr is the number of the system call on the recorded machine. What the recorder itself calls is left out: each of
// its writes would otherwise cause events that it has to write. The two programs of one alternative belong
// together; the first pair costs less, the second runs where the kernel cannot attach by BTF.
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <tacho/emit.h>

struct syscall {
  __u64 latency_ns ROLE("value");
  __s64 ret;
  __s64 nr ROLE("key");
};
EVENT(syscall, struct syscall);

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} channel SEC(".maps") EVENT_CHANNEL(syscall);

struct entry {
  __u64 time_ns;
  __s64 nr;
};
// Calls that have not returned. A thread that is killed inside one leaves its entry, so the oldest entries are replaced.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, __u32);  // thread
  __type(value, struct entry);
} entries SEC(".maps");

const volatile __u32 tacho_recorder;  // set by tacho to its own process id

static __always_inline int enter(__s64 nr) {
  __u64 process_and_thread = bpf_get_current_pid_tgid();
  __u32 thread = process_and_thread;
  struct entry entry = {.nr = nr};
  if (process_and_thread >> 32 == tacho_recorder || !tacho_wants()) return 1;
  entry.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&entries, &thread, &entry, BPF_ANY);
  return 1;
}

static __always_inline int leave(void *context, __s64 ret) {
  __u64 now = bpf_ktime_get_ns();
  __u32 thread = bpf_get_current_pid_tgid();
  struct entry *entry = bpf_map_lookup_elem(&entries, &thread);
  struct syscall event = {.ret = ret};
  if (!entry) return 1;  // began before the recording
  event.latency_ns = now - entry->time_ns;
  event.nr = entry->nr;
  bpf_map_delete_elem(&entries, &thread);
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 1;
}

SEC("tp_btf/sys_enter") ALTERNATIVE_SET(syscalls, btf)
int BPF_PROG(enter_btf, struct pt_regs *registers, long nr) {
  return enter(nr);
}

SEC("tp_btf/sys_exit") ALTERNATIVE_SET(syscalls, btf)
int BPF_PROG(exit_btf, struct pt_regs *registers, long ret) {
  return leave(ctx, ret);
}

SEC("tracepoint/raw_syscalls/sys_enter") ALTERNATIVE_SET(syscalls, tracepoint)
int enter_tracepoint(struct trace_event_raw_sys_enter *context) {
  return enter(context->id);
}

SEC("tracepoint/raw_syscalls/sys_exit") ALTERNATIVE_SET(syscalls, tracepoint)
int exit_tracepoint(struct trace_event_raw_sys_exit *context) {
  return leave(context, context->ret);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
