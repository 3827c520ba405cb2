/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * In-flight calls by thread and depth: calls that have not returned. Some never return, or return unseen.
 *
 * Before: recorder.h, struct begun, what is known of a call, and bool is_stale(const struct begun *call, __u64 function, __u64
 * stack): whether that call must be over when another one of `function` starts or ends with that stack pointer.
 */
#ifndef TACHO_INFLIGHT_CALLS_H
#define TACHO_INFLIGHT_CALLS_H

#define MOST_STALE 16 /* calls that one step can find left; the verifier of Linux 6.1 takes no more */

struct place {
  __u32 thread, level;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, struct place);
  __type(value, struct begun);
} calls SEC(".maps");
IN_FLIGHT(levels, __u32);

/* Of `level` calls of a thread that have begun. */
static __always_inline __u32 still_there(__u32 thread, __u32 level, __u64 function, __u64 stack) {
  for (int i = 0; i < MOST_STALE && level; ++i) {
    struct place at = {thread, level - 1};
    struct begun *call = bpf_map_lookup_elem(&calls, &at);
    if (call && !is_stale(call, function, stack)) break;
    --level;
  }
  return level;
}

#endif
