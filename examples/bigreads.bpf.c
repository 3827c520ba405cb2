// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Reads of 1 MiB and more, with the stack that asked for them.
//
//   tacho record -e ./bigreads.bpf.c -a -g -o b.data -- dd if=/dev/zero of=/dev/null bs=2M count=3
//   tacho record -e './bigreads.bpf.c/min_bytes=65536/' ...         reads of 64 KiB and more
//   tacho script -i b.data                  each read: who, when, bytes=2097152, kernel and user stack
//   tacho hist -i b.data                    how many of which size
//
// The number is what the kernel returned: from vfs_read where a kretprobe can be put on it (every read through a
// file: read, pread, readahead of the kernel's own), otherwise from the read system call. `tacho record -v` says
// which of the two runs.
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <tacho/emit.h>

const volatile __s64 min_bytes = 1024 * 1024;

struct bigread {
  __u64 bytes;
};
EVENT(bigread, struct bigread);

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} channel SEC(".maps") EVENT_CHANNEL(bigread);

// It returns 1 in any case: a program on a tracepoint that returns 0 takes the hit away from every perf event on the
// same tracepoint, of every recorder.
static __always_inline int report(void *context, long returned) {
  struct bigread event = {.bytes = returned};
  if (returned < min_bytes) return 1;  // also errors, which are negative
  if (!tacho_wants()) return 1;  // of a process that is not recorded: before its stack is walked
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 1;
}

SEC("kretprobe/vfs_read") ALTERNATIVE(read)
int BPF_KRETPROBE(vfs_read_returns, long returned) {
  return report(ctx, returned);
}

SEC("tracepoint/syscalls/sys_exit_read") ALTERNATIVE(read)
int read_returns(struct trace_event_raw_sys_exit *context) {
  return report(context, context->ret);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
