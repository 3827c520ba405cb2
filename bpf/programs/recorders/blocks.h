/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Outstanding memory: allocated blocks by address, and their sums by stack. The program that deletes a block from the map also
 * subtracts it from the sum, so that it is subtracted once.
 *
 * To include it: first recorder.h, and define BLOCKS, the most blocks in the map, and BLOCK_FLAGS, flags of the maps; then
 * SUMMARY(name, outstanding).
 */
#ifndef TACHO_BLOCKS_H
#define TACHO_BLOCKS_H

const volatile __u64 min_age_ms HELP("only blocks at least so old at the end, in milliseconds");

struct alloc_key {
  __u64 pid ROLE("table:comm");
  __u64 cgroup ROLE("cgroup");
  __u64 stack ROLE("stack:stacks");
};
struct alloc_value {
  __u64 bytes ROLE("live");
  __u64 blocks ROLE("live:count");
  __u64 made_bytes, made_blocks; /* including freed ones */
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BLOCK_FLAGS);
  __uint(max_entries, 65536);
  __type(key, struct alloc_key);
  __type(value, struct alloc_value);
} outstanding SEC(".maps");
unsigned long long tacho_lost_outstanding; /* SUMMARY() defines it */

#define STACK_FLAGS BLOCK_FLAGS
#include "bpf/programs/recorders/stack_numbers.h"

struct block_key {
  __u64 address;
  __u32 space; /* pid; 0: the kernel */
  __u32 kind;  /* defined by the recorder */
};
struct block {
  __u64 bytes, stack, made_ns, pid, cgroup;
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BLOCK_FLAGS);
  __uint(max_entries, BLOCKS);
  __type(key, struct block_key);
  __type(value, struct block);
} blocks SEC(".maps");

/* Deletes a block and subtracts it; copies it to `gone` if that is not null. False: there is none. */
static __always_inline bool forget_block(const struct block_key *key, struct block *gone) {
  struct block *block = bpf_map_lookup_elem(&blocks, key);
  struct alloc_key of = {};
  struct alloc_value *sum;
  __u64 bytes;
  if (!block) return false;
  of.pid = block->pid;
  of.cgroup = block->cgroup;
  of.stack = block->stack;
  bytes = block->bytes;
  if (gone) *gone = *block;
  if (bpf_map_delete_elem(&blocks, key) != 0) return false;
  sum = bpf_map_lookup_elem(&outstanding, &of);
  /* After an exec a block of the new program may have the address and stack number of one of the old program. */
  if (!sum || sum->bytes < bytes || !sum->blocks) return true;
  __sync_fetch_and_sub(&sum->bytes, bytes);
  __sync_fetch_and_sub(&sum->blocks, 1);
  return true;
}

/* Adds a block, and adds it to the sums. `is_new`: not moved by a failed realloc(). */
static __always_inline void count_block(const struct block_key *key, struct block *block, bool is_new) {
  struct alloc_key of = {.pid = block->pid, .cgroup = block->cgroup, .stack = block->stack};
  struct alloc_value *sum = tacho_entry(outstanding, &of);
  if (!sum) return;
  if (bpf_map_update_elem(&blocks, key, block, BPF_NOEXIST) != 0) {
    /* The map is full; or the old block at this address was freed unseen. */
    if (!forget_block(key, 0) || bpf_map_update_elem(&blocks, key, block, BPF_NOEXIST) != 0) {
      __sync_fetch_and_add(&tacho_lost_outstanding, 1);
      return;
    }
  }
  __sync_fetch_and_add(&sum->bytes, block->bytes);
  __sync_fetch_and_add(&sum->blocks, 1);
  if (!is_new) return;
  __sync_fetch_and_add(&sum->made_bytes, block->bytes);
  __sync_fetch_and_add(&sum->made_blocks, 1);
}

struct end {
  __u64 now;
};
static long subtract_if_young(void *map, struct block_key *key, struct block *block, struct end *end) {
  struct block_key copy = *key;
  if (end->now - block->made_ns < min_age_ms * 1000000) forget_block(&copy, 0);
  return 0;
}

/* Runs before the maps are read at the end of a recording: subtracts blocks younger than min_age_ms. Needs Linux 5.14. */
SEC("?syscall")
int ends(void *context) {
  struct end end = {.now = bpf_ktime_get_ns()};
  if (min_age_ms) bpf_for_each_map_elem(&blocks, subtract_if_young, &end, 0);
  return 0;
}

#endif
