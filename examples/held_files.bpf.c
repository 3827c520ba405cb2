// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// How long files stay open: an event for each that was open long, with the stack that had opened it, and a histogram of
// all, counted in the kernel.
//
//   tacho record -e ./held_files.bpf.c/min_ms=50/ -g -o held.data -- make
//   tacho script -i held.data --event held -F comm,event,payload,ip,sym
//   tacho hist -i held.data --event holds
//
// Their output: docs/recording.md, "A recorder of your own". A file that is closed by the end of its process,
// by dup2() or by another thread's close_range() is not seen.
#include "vmlinux.h"
#include <tacho/emit.h>

const volatile __u32 min_ms HELP("only files that were open so long, in milliseconds") = 10;

struct held {
  __u64 held_ns ROLE("value");
  __u64 fd;
  __u64 stack[32] ROLE("stack");  // of open(), not of close()
};
EVENT(held, struct held);
RING_CHANNEL(channel, held, 1 << 20);

struct hold_key {
  char comm[16];
  __u32 slot ROLE("log2") UNIT("us");
};
SUMMARY_MAP(holds, struct hold_key, __u64, 4096);
LRU_MAP(files, __u64, struct held, 16384);  // by process and file descriptor; held_ns: when it was opened

static __always_inline __u64 file_of(__u32 fd) { return (bpf_get_current_pid_tgid() >> 32) << 32 | fd; }

SEC("tracepoint/syscalls/sys_exit_openat")
int opens(struct trace_event_raw_sys_exit *context) {
  struct held opened = {.held_ns = bpf_ktime_get_ns(), .fd = context->ret};
  __u64 file = file_of(opened.fd);
  if (context->ret < 0 || !tacho_wants()) return 1;
  tacho_user_stack(context, opened.stack, sizeof opened.stack);
  bpf_map_update_elem(&files, &file, &opened, BPF_ANY);
  return 1;
}

SEC("tracepoint/syscalls/sys_enter_close")
int closes(struct trace_event_raw_sys_enter *context) {
  __u64 file = file_of(context->args[0]), *count;
  struct held *opened = bpf_map_lookup_elem(&files, &file);
  if (!opened) return 1;
  opened->held_ns = bpf_ktime_get_ns() - opened->held_ns;
  struct hold_key key = {.slot = tacho_log2(opened->held_ns / 1000)};
  bpf_get_current_comm(key.comm, sizeof key.comm);
  if ((count = tacho_entry(holds, &key))) ++*count;
  if (opened->held_ns >= min_ms * 1000000ULL) tacho_tell(channel, opened);
  bpf_map_delete_elem(&files, &file);
  return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
