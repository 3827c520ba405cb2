// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The page cache: pages requested, pages missed, and pages dirtied.
#include "bpf/programs/recorders/recorder.h"

enum what { asked, missed, dirtied };

const volatile __u64 inode HELP("only pages of the file with this inode number");

struct pagecache {
  __u64 pages ROLE("value");
  __u64 inode, index; /* index: of the first page in the file */
  __u32 major, minor; /* of the disk or file system */
  enum what what ROLE("key");
};
EVENT(pagecache, struct pagecache);
CHANNEL(channel, pagecache);

static __always_inline int emit(void *context, enum what what, __u64 pages, __u64 of, __u64 index, __u32 dev) {
  struct pagecache event = {.pages = pages, .inode = of, .index = index, .major = dev >> 20, .minor = dev & 0xfffff, .what = what};
  if ((inode && of != inode) || !is_chosen() || !IS_WANTED(pagecache, &event)) return 1;
  EMIT(context, channel, &event);
  return 1;
}

// A thread's last range. A large read has several events, each for the rest of the range: they are counted once.
struct range {
  __u64 inode, index, end; /* end: of the last page */
};
IN_FLIGHT(ranges, struct range);

SEC("?tracepoint/filemap/mm_filemap_get_pages")
int asks(struct trace_event_raw_mm_filemap_op_page_cache_range *context) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct range now = {context->i_ino, context->index, context->last_index};
  struct range *before = bpf_map_lookup_elem(&ranges, &thread);
  bool goes_on = before && before->inode == now.inode && before->end == now.end && before->index < now.index;
  bpf_map_update_elem(&ranges, &thread, &now, BPF_ANY);
  if (goes_on || now.end < now.index) return 1;
  return emit(context, asked, now.end - now.index + 1, now.inode, now.index, context->s_dev);
}

SEC("tracepoint/filemap/mm_filemap_add_to_page_cache")
int adds(struct trace_event_raw_mm_filemap_op_page_cache *context) {
  __u64 pages = 1;
  if (bpf_core_field_exists(context->order)) pages <<= context->order & 31;
  return emit(context, missed, pages, context->i_ino, context->index, context->s_dev);
}

SEC("?tracepoint/writeback/writeback_dirty_folio")
int dirties(struct trace_event_raw_writeback_folio_template *context) {
  return emit(context, dirtied, 1, context->ino, context->index, 0);
}
