/* Maps of the unwinder, the state of a walk, and the look-up of the mapping that an address is in. */
#ifndef TACHO_WALKED_MAPPINGS_H
#define TACHO_WALKED_MAPPINGS_H

#include <asm/unistd.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/ptrace.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/programs/pid_namespace.h"
#include "bpf/programs/saved_registers.h"
#include "bpf/programs/stack_maps.h"

#define WORD 8
#define MAY_EXECUTE 4                /* of a mapping */
#define FRAME_POINTER_REACH 0x100000 /* most bytes from the stack pointer to a frame found by frame pointer */
#define LEAF_REACH 1024              /* most bytes of a leaf function without a frame */
#define SLOTS 4                      /* walks of one CPU at the same time: they interrupt each other */
#define RECENT 4                     /* mappings that a walk caches */
#define TREE_DEPTH 8                 /* 2 or 3 are usual */

volatile const struct tacho_walk_options tacho_options SEC(".rodata.tacho") = {.most_frames = 127};
struct tacho_walk_variables tacho_variables SEC(".data.tacho");

struct segment_map {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, TACHO_SEGMENT_BLOCKS);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(key_size, sizeof(__u32)); /* not __type(): for inner maps clang writes only a forward declaration to BTF */
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
/* If the kernel's structures are known: files, and their module numbers. A file that is not there is requested from the
 * recorder through tacho_file_requests. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, TACHO_MOST_FILES); /* the recorder sets it */
  __type(key, struct tacho_file_key);
  __type(value, __u32);
} tacho_files SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 65536);
} tacho_file_requests SEC(".maps");
/* Stack copies from which the recorder finishes walks, and the memory in which they are made: one for each slot. */
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
/* If the kernel's structures are not known: the mappings, written by the recorder. */
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
  struct tacho_code_range range; /* mapping of the previous frame, which often is this one's too */
  __u64 ip, sp, bp;
  __u64 memory;       /* address of the process's mm_struct */
  __u64 next_return;  /* return_instance at which the next search starts; 0: the thread's first one */
  __u32 first, count; /* of tacho_ranges, without mm_struct */
  __u32 process, thread; /* in the recorder's pid namespace; 0: outside */
  __u32 frames, end;
  bool is_return; /* ip is a return address */
  bool is_guess;  /* ip was found by frame pointer or instructions, and may be wrong */
  bool is_doubtful; /* a table was missing, and a frame was found by frame pointer instead */
  struct { /* the state at the first such frame; none: at the sampled function */
    __u64 sp, bp;
    __u32 frames;
    bool is_return, is_bp_known;
  } stop;
  bool is_bp_known;
  bool is_sp_known;   /* false: sp is at least that; arm64, after a frame that was found by frame pointer */
  bool is_link_known; /* arm64: `link`, x30, has the value that it has in this frame */
  __u64 link;
};

/* State of one walk, and its record. */
struct slot {
  __u32 busy;
  __u32 number;
  __u32 is_in_call; /* in a system call */
  __u32 is_in_exec;
  __u32 is_interrupted; /* user code, by an interrupt or exception */
  struct tacho_registers registers;
  struct walk walk;
  struct tacho_code_range recent[RECENT];
  __u32 oldest; /* entry of `recent` that is replaced next */
  __u64 node[TACHO_MAPLE_NODE_WORDS];
  struct tacho_stack_record head; /* the record: head, frames, and the number of a stack copy if there is one */
  __u64 frames[TACHO_MOST_FRAMES + 1];
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

/* Goes on in code that a signal interrupted: ip and bp are read, and all registers are known. */
static __always_inline int go_to_interrupted(struct slot *slot, __u64 sp) {
  struct walk *walk = &slot->walk;
  walk->sp = sp;
  walk->is_return = false;
  walk->is_guess = false;
  walk->is_bp_known = walk->is_sp_known = true;
  if (walk->frames >= tacho_options.most_frames || walk->frames >= TACHO_MOST_FRAMES) return ends(walk, TACHO_END_CUT);
  slot->frames[walk->frames & (TACHO_MOST_FRAMES - 1)] = TACHO_INTERRUPTED;
  walk->frames++;
  return 0;
}

/* The slot of a maple node that covers `address`. */
__noinline __u64 tacho_entry_of_node(struct slot *slot, __u64 node, __u64 address) {
  if (!slot || bpf_probe_read_kernel(slot->node, sizeof slot->node, (const void *)(node & ~0xffull)) != 0) return 0;
  const __u32 pivots =
      (node >> 3 & 15) == TACHO_MAPLE_RANGES_AND_GAPS ? TACHO_MAPLE_PIVOTS_WITH_GAPS : TACHO_MAPLE_PIVOTS;
  __u32 at = 0;
  while (at < pivots && slot->node[1 + at] < address) at++;
  return slot->node[(1 + pivots + at) & (TACHO_MAPLE_NODE_WORDS - 1)];
}

/* Address of the vm_area_struct that covers ip; 0: none. Read without a lock, so the tree may change meanwhile: the caller
 * checks what it reads there. */
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
    key->changed = seconds * 1000000000 + (nanoseconds & 0x7fffffff); /* Linux 6.13 uses the highest bit as a flag */
  return read_kernel_word(file + layout->file_inode, &inode) &&
         read_kernel_word(inode + layout->inode_number, &key->inode) &&
         read_kernel_word(inode + layout->inode_size, &key->size) &&
         read_kernel_half(inode + layout->inode_generation, &key->generation) &&
         read_kernel_word(inode + layout->inode_super_block, &super_block) &&
         read_kernel_half(super_block + layout->super_block_device, &key->device);
}

/* Pid and tid in the recorder's pid namespace, as its perf events have them; 0: the thread is outside of it. */
static __always_inline __u64 own_numbers(void) {
  if (tacho_options.namespace_inode == 0) return bpf_get_current_pid_tgid();
  return tacho_numbers_of((const void *)bpf_get_current_task(), tacho_options.namespace_inode);
}

/* The module number of a mapped file. If it is unknown, requests it from the recorder, once for each file. */
__noinline __u32 tacho_module_of_file(struct slot *slot, __u64 file, __u64 start, __u64 end) {
  if (!slot) return TACHO_MODULE_OF_NO_FILE;
  struct tacho_file_request request = {.start = start, .end = end};
  if (!read_key(file, &request.key)) return TACHO_MODULE_OF_NO_FILE;
  const __u32 *known = bpf_map_lookup_elem(&tacho_files, &request.key);
  if (known) return *known;
  const __u32 requested = TACHO_MODULE_REQUESTED;
  if (bpf_map_update_elem(&tacho_files, &request.key, &requested, BPF_NOEXIST) != 0) return requested;
  request.process = slot->walk.process;
  if (bpf_ringbuf_output(&tacho_file_requests, &request, sizeof request, 0) != 0)
    bpf_map_delete_elem(&tacho_files, &request.key); /* the next stack requests it again */
  return requested;
}

/* Sets walk.range to the mapping that ip is in, from the kernel's VMAs. Returns 0 if ip is in no executable mapping. */
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
  struct tacho_code_range range = {.start = start, .end = end, .bias = start - (page << layout->page_bits)};
  if (file != 0) {
    range.module = tacho_module_of_file(slot, file, start, end);
  } else if (read_kernel_word(memory + layout->mm_vdso, &vdso) && vdso == start) {
    range.module = TACHO_MODULE_OF_VDSO;
    range.bias = start;
  }
  slot->walk.range = range;
  slot->recent[slot->oldest & (RECENT - 1)] = range;
  slot->oldest++;
  return 1;
}

/* The same from the mappings that the recorder wrote. */
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
