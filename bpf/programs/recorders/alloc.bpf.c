// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Outstanding heap memory of programs: allocated by malloc() and the like and not freed, by the allocating stack.
//
// Blocks are added to the sum of their stack when they are allocated, and subtracted when they are freed.
#include "bpf/programs/recorders/recorder.h"

#define BLOCKS (1 << 20)
#define BLOCK_FLAGS BPF_F_NO_PREALLOC
#include "bpf/programs/recorders/blocks.h"

const volatile char lib[256] HELP("the library or program with malloc() and free() (default: libc.so.6): lib='./libjemalloc.so'") =
    "libc.so.6";
const volatile __u64 min_bytes HELP("only blocks of at least N bytes");
const volatile bool alive HELP("only processes that still run at the end");

SUMMARY(alloc, outstanding);

struct request {
  __u64 bytes;
  __u64 out;          /* where posix_memalign() writes the block's address; 0: it is returned */
  __u64 old;          /* realloc(): the old block's address */
  struct block block; /* the old block, which is not in the map during the call */
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct request);
} requests SEC(".maps");

static __always_inline int requests_block(__u64 bytes, __u64 out) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct request request = {.bytes = bytes, .out = out};
  if (!is_wanted_later() || bytes < min_bytes) {
    bpf_map_delete_elem(&requests, &thread); /* the next return is not that of an outer call */
    return 0;
  }
  bpf_map_update_elem(&requests, &thread, &request, BPF_ANY);
  return 0;
}

static __always_inline int gets_block(void *context, __u64 result) {
  __u64 who = bpf_get_current_pid_tgid();
  __u32 thread = (__u32)who;
  struct request *request = bpf_map_lookup_elem(&requests, &thread);
  struct block_key key = {.space = who >> 32};
  struct block block = {};
  __u64 old, bytes;
  if (!request) return 0;
  key.address = result;
  bytes = request->bytes;
  old = request->old;
  if (request->out) {
    key.address = 0;
    if (!result) bpf_probe_read_user(&key.address, sizeof key.address, (const void *)request->out);
  }
  if (old && !result && bytes) { /* realloc() failed: the old block is still allocated */
    key.address = old;
    block = request->block;
    bpf_map_delete_elem(&requests, &thread);
    count_block(&key, &block, false);
    return 0;
  }
  bpf_map_delete_elem(&requests, &thread);
  if (!key.address || bytes < min_bytes || !is_wanted_later() || !is_taken()) return 0;
  block.bytes = bytes;
  block.pid = who >> 32;
  block.cgroup = bpf_get_current_cgroup_id();
  block.stack = take_number(context, false);
  block.made_ns = bpf_ktime_get_ns();
  count_block(&key, &block, true);
  return 0;
}

static __always_inline int frees(__u64 address) {
  struct block_key key = {.address = address, .space = bpf_get_current_pid_tgid() >> 32};
  if (address) forget_block(&key, 0);
  return 0;
}

/* Start of realloc(). Removes the old block: once realloc() has freed it another thread may get its address. */
static __always_inline int reallocates(__u64 address, __u64 bytes) {
  __u64 who = bpf_get_current_pid_tgid();
  __u32 thread = (__u32)who;
  struct block_key key = {.address = address, .space = who >> 32};
  struct request request = {.bytes = bytes};
  bool known = address && forget_block(&key, &request.block);
  if (known) request.old = address;
  if (!known && (!is_wanted_later() || bytes < min_bytes)) {
    bpf_map_delete_elem(&requests, &thread);
    return 0;
  }
  bpf_map_update_elem(&requests, &thread, &request, BPF_ANY);
  return 0;
}

/* The attach cookie: the function's index in the section name. A library need not have all of them. */
enum call { MALLOC, CALLOC, REALLOC, POSIX_MEMALIGN, ALIGNED_ALLOC, MEMALIGN, VALLOC, PVALLOC, FREE };
#define ALLOCATING "malloc,calloc,realloc,posix_memalign,aligned_alloc,memalign,valloc,pvalloc"

SEC("uprobe.multi/$lib:" ALLOCATING ",free")
int begins(struct pt_regs *context) {
  __u64 first = PT_REGS_PARM1(context), second = PT_REGS_PARM2(context);
  switch (bpf_get_attach_cookie(context)) {
    case FREE: return frees(first);
    case CALLOC: return requests_block(first * second, 0);
    case REALLOC: return reallocates(first, second);
    case POSIX_MEMALIGN: return requests_block(PT_REGS_PARM3(context), first);
    case ALIGNED_ALLOC:
    case MEMALIGN: return requests_block(second, 0);
    default: return requests_block(first, 0);
  }
}
SEC("uretprobe.multi/$lib:" ALLOCATING)
int returns(struct pt_regs *context) {
  __u64 result = PT_REGS_RC(context);
  return gets_block(context, bpf_get_attach_cookie(context) == POSIX_MEMALIGN ? (__u32)result : result);
}

/* A process's sums are dropped when it executes another program, and with `alive` when it exits. */
struct leaving {
  __u32 process;
};
static long leaves(void *map, struct alloc_key *key, struct alloc_value *value, struct leaving *leaving) {
  struct alloc_key copy = *key;
  if (copy.pid == leaving->process) bpf_map_delete_elem(&outstanding, &copy);
  return 0;
}
static __always_inline int forget_process(void) {
  struct leaving leaving = {.process = bpf_get_current_pid_tgid() >> 32};
  bool has_changed = comm[0] || tacho_filter.steps[0].value; /* comm may have changed since the allocations */
  if (has_changed || is_chosen()) bpf_for_each_map_elem(&outstanding, leaves, &leaving, 0);
  return 1;
}
SEC("?tracepoint/sched/sched_process_exec")
int executes(void *context) { return forget_process(); }
SEC("?tracepoint/sched/sched_process_exit")
int exits(void *context) {
  __u64 who = bpf_get_current_pid_tgid();
  return alive && who >> 32 == (__u32)who ? forget_process() : 1;
}
