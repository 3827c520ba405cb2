// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Sizes of block I/O, one event for each request that is handed to a disk.
//
//   tacho record -e ./bitehist.bpf.c -a -o io.data -- sleep 10
//   tacho hist -i io.data                   sizes in powers of two, in bytes
//   tacho hist -i io.data --by comm         the same for each command
//
// The command is the one that ran when the request was issued: for written data that is often a kernel thread.
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <tacho/event.h>

struct block_request {
  __u64 bytes ROLE("value");
  __u64 sector FORMAT("hex");
  __u32 dev FORMAT("hex");  // major in the upper 12 bits, minor in the lower 20
  char kind[12];            // as the kernel writes it: R read, W write, D discard, S synchronous, M metadata, ...
};
EVENT(block_request, struct block_request);

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} channel SEC(".maps") EVENT_CHANNEL(block_request);

SEC("tracepoint/block/block_rq_issue")
int issued(struct trace_event_raw_block_rq *context) {
  struct block_request event = {
      .bytes = context->bytes,
      .sector = context->sector,
      .dev = context->dev,
  };
  if (event.bytes == 0) return 1;  // a flush carries no data
  bpf_probe_read_kernel_str(event.kind, sizeof event.kind, context->rwbs);
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
