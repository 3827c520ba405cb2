/* The maps of the program that walks stacks, the state of a walk, and which mapped file an address belongs to. */
#ifndef TACHO_WALKED_MAPPINGS_H
#define TACHO_WALKED_MAPPINGS_H

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/ptrace.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/programs/stack_maps.h"

#define WORD 8
#define PAGE_BITS 12
#define USER_CODE_64 0x33
#define CALL_EXECVE 59
#define CALL_EXECVEAT 322
#define MAY_EXECUTE 4                /* of a mapping */
#define FRAME_POINTER_REACH 0x100000 /* bytes to the caller's frame that a guess may span */
#define SAVED_REGISTERS 5            /* beside rbp, that a function may save */
#define LEAF_REACH 1024              /* bytes of a function that keeps no frame pointer */
#define SLOTS 4                      /* walks of one CPU that may be under way at once */
#define RECENT 4                     /* mappings that a walk remembers */
#define TREE_DEPTH 8                 /* 2 or 3 are usual */

volatile const struct tacho_walk_options tacho_options SEC(".rodata.tacho") = {.most_frames = 127};
struct tacho_walk_variables tacho_variables SEC(".data.tacho");

struct segment_map {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, TACHO_SEGMENT_BLOCKS);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(key_size, sizeof(__u32)); /* a type would be known by its name only, in here */
  __uint(value_size, sizeof(struct tacho_unwind_block));
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, TACHO_MOST_SEGMENTS);
  __type(key, __u32);
  __array(values, struct segment_map);
} tacho_segments SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, TACHO_MOST_MODULES);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, struct tacho_unwind_module);
} tacho_modules SEC(".maps");
/* With the layout of the kernel's structures: maps a file to its module, and asks the recorder about unknown
 * files. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, TACHO_MOST_FILES); /* the recorder sets it */
  __type(key, struct tacho_file_key);
  __type(value, __u32);
} tacho_files SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 65536);
} tacho_questions SEC(".maps");
/* Stacks that the recorder finishes (struct tacho_stack_copy), and where they are put together: one for each slot. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096); /* the recorder sets it */
} tacho_copies SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, SLOTS);
  __type(key, __u32);
  __type(value, struct tacho_stack_copy);
} tacho_copied SEC(".maps");
/* Without it: mappings that the recorder writes. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 65536); /* the recorder sets it */
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, struct tacho_code_range);
} tacho_ranges SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096); /* the recorder sets it */
  __type(key, __u32);
  __type(value, struct tacho_process_ranges);
} tacho_processes SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} tacho_stacks SEC(".maps");

struct walk {
  struct tacho_code_range range; /* of the frame before, mostly of this one too */
  __u64 ip, sp, bp;
  __u64 memory;       /* the kernel's description of the process's memory */
  __u64 next_return;  /* its list of return addresses, from the last one that was found on; 0: from its start */
  __u32 first, count; /* or ranges of the process */
  __u32 frames, end;
  bool is_return; /* ip stands behind a call */
  bool is_guess;  /* found by a frame pointer, which may be wrong */
  bool is_doubtful; /* some frame was found so for want of a table; the first of them, or else the sampled function: */
  struct {
    __u64 sp, bp;
    __u32 frames;
    bool is_return, is_bp_known;
  } stop;
  bool is_bp_known;
};

/* Where a walk is done and its record is put together. */
struct slot {
  __u32 busy;
  __u32 number;
  __u32 is_in_call; /* of the system */
  __u32 is_in_exec;
  __u32 is_interrupted; /* at this instruction, not at a call */
  struct pt_regs registers;
  struct walk walk;
  struct tacho_code_range recent[RECENT];
  __u32 oldest; /* of the recent ones */
  __u64 node[TACHO_MAPLE_NODE_WORDS];
  struct tacho_stack_record head; /* what follows it is the record */
  __u64 frames[TACHO_MOST_FRAMES + 1]; /* and the number of a copy */
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, SLOTS);
  __type(key, __u32);
  __type(value, struct slot);
} tacho_slots SEC(".maps");

static __always_inline bool read_word(__u64 address, __u64 *word) {
  return bpf_probe_read_user(word, WORD, (const void *)address) == 0;
}
static __always_inline bool read_kernel_word(__u64 address, __u64 *word) {
  return bpf_probe_read_kernel(word, WORD, (const void *)address) == 0;
}
static __always_inline bool read_kernel_half(__u64 address, __u32 *half) {
  return bpf_probe_read_kernel(half, sizeof *half, (const void *)address) == 0;
}

static __always_inline int ends(struct walk *walk, __u32 how) {
  walk->end = how;
  return 1;
}

/* The entry of a maple tree's node for `address`. */
__noinline __u64 tacho_entry_of_node(struct slot *slot, __u64 node, __u64 address) {
  if (!slot || bpf_probe_read_kernel(slot->node, sizeof slot->node, (const void *)(node & ~0xffull)) != 0) return 0;
  const __u32 pivots =
      (node >> 3 & 15) == TACHO_MAPLE_RANGES_AND_GAPS ? TACHO_MAPLE_PIVOTS_WITH_GAPS : TACHO_MAPLE_PIVOTS;
  __u32 at = 0;
  while (at < pivots && slot->node[1 + at] < address) at++;
  return slot->node[(1 + pivots + at) & (TACHO_MAPLE_NODE_WORDS - 1)];
}

/* The kernel's vm_area_struct that the address is in. The tree may change meanwhile: the result is checked before
 * it is used. */
__noinline __u64 tacho_mapping_of(struct slot *slot) {
  if (!slot) return 0;
  __u64 entry = 0;
  if (!read_kernel_word(slot->walk.memory + tacho_options.layout.mm_mappings, &entry)) return 0;
  if ((entry & 3) != 2) return 0; /* no node */
  for (int i = 0; i < TREE_DEPTH; i++) {
    const __u32 type = entry >> 3 & 15;
    if (type < TACHO_MAPLE_LEAF || type > TACHO_MAPLE_RANGES_AND_GAPS) return 0;
    entry = tacho_entry_of_node(slot, entry, slot->walk.ip);
    if (type == TACHO_MAPLE_LEAF) return entry;
    if (entry < 4096) return 0;
  }
  return 0;
}

static __always_inline bool read_key(__u64 file, struct tacho_file_key *key) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 inode, super_block, seconds;
  __u32 nanoseconds;
  if (layout->inode_changed != 0 && read_kernel_word(file + layout->file_inode, &inode) &&
      read_kernel_word(inode + layout->inode_changed, &seconds) &&
      read_kernel_half(inode + layout->inode_changed_ns, &nanoseconds))
    key->changed = seconds * 1000000000 + (nanoseconds & 0x7fffffff); /* Linux 6.13 keeps a mark in the highest bit */
  return read_kernel_word(file + layout->file_inode, &inode) &&
         read_kernel_word(inode + layout->inode_number, &key->inode) &&
         read_kernel_word(inode + layout->inode_size, &key->size) &&
         read_kernel_half(inode + layout->inode_generation, &key->generation) &&
         read_kernel_word(inode + layout->inode_super_block, &super_block) &&
         read_kernel_half(super_block + layout->super_block_device, &key->device);
}

/* The process, as the recorder counts processes. */
static __always_inline __u32 own_process(void) {
  struct bpf_pidns_info inside = {};
  if (tacho_options.namespace_inode != 0 &&
      bpf_get_ns_current_pid_tgid(tacho_options.namespace_device, tacho_options.namespace_inode, &inside,
                                  sizeof inside) == 0)
    return inside.tgid;
  return bpf_get_current_pid_tgid() >> 32;
}

/* The module of a mapped file. Asks the recorder for it, once. */
__noinline __u32 tacho_module_of_file(__u64 file, __u64 start, __u64 end) {
  struct tacho_file_question question = {.start = start, .end = end};
  if (!read_key(file, &question.key)) return TACHO_MODULE_OF_NOTHING;
  const __u32 *known = bpf_map_lookup_elem(&tacho_files, &question.key);
  if (known) return *known;
  const __u32 asked = TACHO_MODULE_ASKED_FOR;
  if (bpf_map_update_elem(&tacho_files, &question.key, &asked, BPF_NOEXIST) != 0) return asked;
  question.process = own_process();
  if (bpf_ringbuf_output(&tacho_questions, &question, sizeof question, 0) != 0)
    bpf_map_delete_elem(&tacho_files, &question.key); /* the next stack asks again */
  return asked;
}

/* Finds the mapping in the kernel's tree. */
__noinline int tacho_find_mapping(struct slot *slot) {
  if (!slot) return 0;
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  const __u64 ip = slot->walk.ip;
  for (int i = 0; i < RECENT; i++) {
    if (ip < slot->recent[i].start || ip >= slot->recent[i].end) continue;
    slot->walk.range = slot->recent[i];
    return 1;
  }
  const __u64 mapping = tacho_mapping_of(slot);
  __u64 start, end, memory, flags, page, file, vdso;
  if (mapping == 0 || !read_kernel_word(mapping + layout->vma_start, &start) ||
      !read_kernel_word(mapping + layout->vma_end, &end) || !read_kernel_word(mapping + layout->vma_mm, &memory) ||
      !read_kernel_word(mapping + layout->vma_flags, &flags) ||
      !read_kernel_word(mapping + layout->vma_page_offset, &page) ||
      !read_kernel_word(mapping + layout->vma_file, &file))
    return 0;
  if (ip < start || ip >= end || memory != slot->walk.memory || !(flags & MAY_EXECUTE)) return 0;
  struct tacho_code_range range = {.start = start, .end = end, .bias = start - (page << PAGE_BITS)};
  if (file != 0) {
    range.module = tacho_module_of_file(file, start, end);
  } else if (read_kernel_word(memory + layout->mm_vdso, &vdso) && vdso == start) {
    range.module = TACHO_MODULE_OF_VDSO;
    range.bias = start;
  }
  slot->walk.range = range;
  slot->recent[slot->oldest & (RECENT - 1)] = range;
  slot->oldest++;
  return 1;
}

/* Finds it among the mappings that the recorder wrote. */
__noinline int tacho_find_range(struct slot *slot) {
  if (!slot) return 0;
  const __u32 first = slot->walk.first, count = slot->walk.count;
  if (count == 0) return 0;
  __u32 at = 0; /* the last range that begins at or below the address */
  for (__u32 step = TACHO_MOST_RANGES_OF_PROCESS / 2; step > 0; step /= 2) {
    if (at + step >= count) continue;
    const __u32 key = first + at + step;
    const struct tacho_code_range *range = bpf_map_lookup_elem(&tacho_ranges, &key);
    if (!range) return 0;
    if (range->start <= slot->walk.ip) at += step;
  }
  const __u32 key = first + at;
  const struct tacho_code_range *range = bpf_map_lookup_elem(&tacho_ranges, &key);
  if (!range || range->start > slot->walk.ip || range->end <= slot->walk.ip) return 0;
  slot->walk.range = *range;
  return 1;
}

#endif
