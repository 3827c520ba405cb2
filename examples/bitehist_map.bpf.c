// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Sizes of block I/O, counted in the kernel: no event for each request, whatever their number.
//
//   tacho record -e ./bitehist_map.bpf.c -a -o io.data -- sleep 10
//   tacho hist -i io.data                                            sizes in powers of two, in KiB
//   tacho record -e ./bitehist_map.bpf.c -a --interval 1 -o io.data -- sleep 10
//   tacho table -i io.data --by value --interval 1                   the same for each second
//
// A map whose key is a number: the key is the value, and the map's number says how often it was there.
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <tacho/event.h>

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 10240);
  __type(key, __u32);  // KiB
  __type(value, __u64);
} dist SEC(".maps");
SUMMARY(bitehist, dist);

SEC("tracepoint/block/block_rq_issue")
int issued(struct trace_event_raw_block_rq *context) {
  __u32 kib = context->bytes / 1024;
  __u64 one = 1, *count = bpf_map_lookup_elem(&dist, &kib);
  if (count)
    __sync_fetch_and_add(count, 1);
  else
    bpf_map_update_elem(&dist, &kib, &one, BPF_NOEXIST);
  return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
