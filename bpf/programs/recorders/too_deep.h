/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls whose return no uretprobe will see: the kernel replaces at most 64 return addresses of a thread at a time
 * (MAX_URETPROBE_DEPTH), including those of other tracers. A call that is nested deeper returns unseen. The program at the entry
 * can count it: it reads utask->depth, by which the kernel decides right after.
 */
#ifndef TACHO_TOO_DEEP_H
#define TACHO_TOO_DEEP_H

#define MOST_RETURNS 64

struct uprobe_task___returns {
  unsigned int depth;
} __attribute__((preserve_access_index));
struct task_struct___probed {
  struct uprobe_task___returns *utask;
} __attribute__((preserve_access_index));

__u64 tacho_too_deep = 0; /* number of such calls */

/* The same by function: by its number in the cookie, from 1 on. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 20000);
  __type(key, __u32);
  __type(value, __u64);
} too_deep SEC(".maps");
#define FUNCTION_NUMBER(cookie) ((__u32)((cookie) >> 8))

static __always_inline bool returns_unseen(void) {
  struct task_struct___probed *task = (void *)bpf_get_current_task();
  struct uprobe_task___returns *returns = 0;
  if (!bpf_core_field_exists(task->utask) || !bpf_core_field_exists(returns->depth)) return false;
  returns = BPF_CORE_READ(task, utask);
  return returns && BPF_CORE_READ(returns, depth) >= MOST_RETURNS;
}

static __always_inline void count_as_lost(__u64 cookie) {
  __u32 function = FUNCTION_NUMBER(cookie);
  __u64 first = 1, *known = bpf_map_lookup_elem(&too_deep, &function);
  __sync_fetch_and_add(&tacho_too_deep, 1);
  if (!known && bpf_map_update_elem(&too_deep, &function, &first, BPF_NOEXIST) == 0) return;
  if (!known) known = bpf_map_lookup_elem(&too_deep, &function); /* another CPU made it meanwhile */
  if (known) __sync_fetch_and_add(known, 1);
}

#endif
