/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In-flight calls by thread and depth: calls that have not returned. Some never return, or return unseen.
 *
 * To include it: first recorder.h, and define struct begun, the state of a call, and bool is_stale(const struct begun *call,
 * __u64 function, __u64 stack): whether the call is over if another one of `function` starts or returns at this stack pointer.
 */
#ifndef TACHO_INFLIGHT_CALLS_H
#define TACHO_INFLIGHT_CALLS_H

#define MOST_STALE 16 /* most stale calls removed at a time; the verifier of Linux 6.1 accepts no more */

struct call_key {
  __u32 thread, level;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, struct call_key);
  __type(value, struct begun);
} calls SEC(".maps");
IN_FLIGHT(levels, __u32);

/* The number of a thread's `level` in-flight calls without the stale ones at the end. */
static __always_inline __u32 live_level(__u32 thread, __u32 level, __u64 function, __u64 stack) {
  for (int i = 0; i < MOST_STALE && level; ++i) {
    struct call_key at = {thread, level - 1};
    struct begun *call = bpf_map_lookup_elem(&calls, &at);
    if (call && !is_stale(call, function, stack)) break;
    --level;
  }
  return level;
}

#endif
