// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Every role and format of tacho/event.h in one payload: reads and writes that moved a megabyte or more, with a stack
// that the program takes itself.
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <tacho/event.h>

#define FRAMES 32
#define READ 0  // system calls of x86-64
#define WRITE 1

struct large_call {
  __u64 bytes ROLE("weight");
  __u64 caller FORMAT("kaddr");
  __u64 stack[FRAMES] ROLE("stack") FORMAT("kaddr");
  __u32 is_huge ROLE("key");  // of 2 MB or more
  char comm[16];  // the same name as the sample's own
};
EVENT(large_call, struct large_call);

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} channel SEC(".maps") EVENT_CHANNEL(large_call);

// Too large for a program's own stack.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct large_call);
} scratch SEC(".maps");

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *registers, long done) {
  __u32 zero = 0;
  struct large_call *event = bpf_map_lookup_elem(&scratch, &zero);
  long number = registers->orig_ax;
  if (!event || (number != READ && number != WRITE) || done < 1 << 20) return 0;
  __builtin_memset(event, 0, sizeof *event);
  event->bytes = done;
  event->is_huge = done >= 2 << 20;
  bpf_get_current_comm(event->comm, sizeof event->comm);
  bpf_get_stack(ctx, event->stack, sizeof event->stack, 0);
  // The last one is the kernel's entry from the process.
  for (int i = 0; i < FRAMES && event->stack[i]; ++i) event->caller = event->stack[i];
  bpf_perf_event_output(ctx, &channel, BPF_F_CURRENT_CPU, event, sizeof *event);
  return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
