// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Outstanding kernel memory: slab objects and pages that were allocated and not freed, by the allocating stack.
//
// Only allocations are filtered by thread: memory may be freed by another thread, an interrupt, or a process that is not
// recorded.
#include "bpf/programs/recorders/recorder.h"

/* Preallocated: allocating a map entry here would call this program again. */
#define BLOCKS (1 << 18)
#define BLOCK_FLAGS 0
#include "bpf/programs/recorders/blocks.h"

const volatile __u64 min_bytes HELP("only blocks of at least N bytes");
const volatile bool pages HELP("also pages of the page allocator, which include those of processes and files");

SUMMARY(kalloc, outstanding);

enum kind { SLAB, PAGES };
const volatile __u64 tacho_page_bytes; /* of the kernel; set by tacho-record */

struct trace_event_raw_kmalloc {
  const void *ptr;
  unsigned long bytes_alloc;
} __attribute__((preserve_access_index));
struct trace_event_raw_kmem_cache_alloc {
  const void *ptr;
  unsigned long bytes_alloc;
} __attribute__((preserve_access_index));
/* Both before Linux 6.1. */
struct trace_event_raw_kmem_alloc {
  const void *ptr;
  unsigned long bytes_alloc;
} __attribute__((preserve_access_index));
struct trace_event_raw_kfree {
  const void *ptr;
} __attribute__((preserve_access_index));
struct trace_event_raw_kmem_cache_free {
  const void *ptr;
} __attribute__((preserve_access_index));
/* Both before Linux 5.12. */
struct trace_event_raw_kmem_free {
  const void *ptr;
} __attribute__((preserve_access_index));
struct trace_event_raw_mm_page_alloc {
  unsigned long pfn;
  unsigned int order;
} __attribute__((preserve_access_index));
struct trace_event_raw_mm_page_free {
  unsigned long pfn;
  unsigned int order;
} __attribute__((preserve_access_index));

static __always_inline int allocates(void *context, enum kind kind, __u64 address, __u64 bytes) {
  struct block_key key = {.address = address, .kind = kind};
  struct block block = {.bytes = bytes};
  if (!address || bytes < min_bytes || !is_wanted_later() || !is_taken()) return 1;
  block.pid = bpf_get_current_pid_tgid() >> 32;
  block.cgroup = bpf_get_current_cgroup_id();
  block.stack = take_number(context, true);
  block.made_ns = bpf_ktime_get_ns();
  count_block(&key, &block, true);
  return 1;
}

static __always_inline int frees(enum kind kind, __u64 address) {
  struct block_key key = {.address = address, .kind = kind};
  forget_block(&key, 0);
  return 1;
}

/* A member of the current or the old type of context. Read as memory, since the verifier allows only constant offsets into a
 * context. */
#define EITHER(context, old, member)                                                                           \
  ({                                                                                                           \
    __u64 found = 0;                                                                                           \
    if (bpf_core_type_exists(*(context)))                                                                      \
      bpf_core_read(&found, sizeof found, &(context)->member);                                                 \
    else                                                                                                       \
      bpf_core_read(&found, sizeof found, &((old *)(void *)(context))->member);                                \
    found;                                                                                                     \
  })

static __always_inline int kmallocs(struct trace_event_raw_kmalloc *context) {
  return allocates(context, SLAB, EITHER(context, struct trace_event_raw_kmem_alloc, ptr),
               EITHER(context, struct trace_event_raw_kmem_alloc, bytes_alloc));
}
static __always_inline int allocates_object(struct trace_event_raw_kmem_cache_alloc *context) {
  return allocates(context, SLAB, EITHER(context, struct trace_event_raw_kmem_alloc, ptr),
               EITHER(context, struct trace_event_raw_kmem_alloc, bytes_alloc));
}

SEC("tracepoint/kmem/kmalloc")
int on_kmalloc(struct trace_event_raw_kmalloc *context) { return kmallocs(context); }
SEC("?tracepoint/kmem/kmalloc_node")
int on_kmalloc_node(struct trace_event_raw_kmalloc *context) { return kmallocs(context); }
SEC("tracepoint/kmem/kmem_cache_alloc")
int on_cache_alloc(struct trace_event_raw_kmem_cache_alloc *context) { return allocates_object(context); }
SEC("?tracepoint/kmem/kmem_cache_alloc_node")
int on_cache_alloc_node(struct trace_event_raw_kmem_cache_alloc *context) { return allocates_object(context); }

SEC("tracepoint/kmem/kfree")
int kfrees(struct trace_event_raw_kfree *context) {
  return frees(SLAB, EITHER(context, struct trace_event_raw_kmem_free, ptr));
}
SEC("tracepoint/kmem/kmem_cache_free")
int frees_object(struct trace_event_raw_kmem_cache_free *context) {
  return frees(SLAB, EITHER(context, struct trace_event_raw_kmem_free, ptr));
}

SEC("tracepoint/kmem/mm_page_alloc")
int allocates_pages(struct trace_event_raw_mm_page_alloc *context) {
  __u64 number = context->pfn;
  if (!pages || number == ~0UL) return 1; /* the allocation failed */
  return allocates(context, PAGES, number + 1, (__u64)tacho_page_bytes << (context->order & 31));
}
SEC("tracepoint/kmem/mm_page_free")
int frees_pages(struct trace_event_raw_mm_page_free *context) {
  return pages ? frees(PAGES, (__u64)context->pfn + 1) : 1;
}
