/* Walks the user's stack of a sample by tables of the binaries' own unwind information, and writes the
 * addresses into the ring of the CPU, just before the kernel writes the sample itself (record/stacks).
 *
 * Which file an address belongs to is read from the kernel's own tree of the process's mappings: so a process
 * is known from its first instruction on. Kernels before 6.1 have another tree; there the recorder tells.
 *
 * Functions that are not static are verified by themselves, once, whoever calls them from where: with static
 * ones the kernel took 0.7 s for each program, with these a fiftieth of it. What they are given may be null for
 * all they know, and what they are given of a struct is no pointer to them but a number. */
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
#define SLOTS 4                      /* walks of one CPU that may be under way at once */
#define RECENT 4                     /* mappings that a walk remembers */
#define TREE_DEPTH 8                 /* 2 or 3 are usual */

volatile const struct tacho_walk_options tacho_options = {.most_frames = 127};
__u32 tacho_now;

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
} segments SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, TACHO_MOST_MODULES);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, struct tacho_unwind_module);
} modules SEC(".maps");
/* With the layout of the kernel's structures: which module a file is, and questions about those that are not
 * among them. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, TACHO_MOST_FILES); /* the recorder sets it */
  __type(key, struct tacho_file_key);
  __type(value, __u32);
} files SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 65536);
} questions SEC(".maps");
/* Without it: what the recorder tells of processes. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 65536); /* the recorder sets it */
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, struct tacho_code_range);
} ranges SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096); /* the recorder sets it */
  __type(key, __u32);
  __type(value, struct tacho_process_ranges);
} processes SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} stacks SEC(".maps");

struct walk {
  struct tacho_code_range range; /* of the frame before, mostly of this one too */
  __u64 ip, sp, bp;
  __u64 memory;       /* the kernel's description of the process's memory */
  __u32 first, count; /* or ranges of the process */
  __u32 frames, end;
  bool is_return; /* ip stands behind a call */
  bool is_guess;  /* found by a frame pointer that nobody promised */
  bool is_bp_known;
};

/* Where a walk is done and its record is put together. */
struct slot {
  __u32 busy;
  __u32 is_in_call; /* of the system */
  __u32 is_in_exec;
  struct pt_regs registers;
  struct walk walk;
  struct tacho_code_range recent[RECENT];
  __u32 oldest; /* of the recent ones */
  __u64 node[TACHO_MAPLE_NODE_WORDS];
  struct tacho_stack_record head; /* what follows it is the record */
  __u64 frames[TACHO_MOST_FRAMES];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, SLOTS);
  __type(key, __u32);
  __type(value, struct slot);
} slots SEC(".maps");

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

/* What a node of a maple tree holds for `address`. */
__noinline __u64 entry_of_node(struct slot *slot, __u64 node, __u64 address) {
  if (!slot || bpf_probe_read_kernel(slot->node, sizeof slot->node, (const void *)(node & ~0xffull)) != 0) return 0;
  const __u32 pivots =
      (node >> 3 & 15) == TACHO_MAPLE_RANGES_AND_GAPS ? TACHO_MAPLE_PIVOTS_WITH_GAPS : TACHO_MAPLE_PIVOTS;
  __u32 at = 0;
  while (at < pivots && slot->node[1 + at] < address) at++;
  return slot->node[(1 + pivots + at) & (TACHO_MAPLE_NODE_WORDS - 1)];
}

/* The kernel's description of the mapping that the address is in. The tree may change meanwhile: what comes of
 * it is looked at before it is believed. */
__noinline __u64 mapping_of(struct slot *slot) {
  if (!slot) return 0;
  __u64 entry = 0;
  if (!read_kernel_word(slot->walk.memory + tacho_options.layout.mm_mappings, &entry)) return 0;
  if ((entry & 3) != 2) return 0; /* no node */
  for (int i = 0; i < TREE_DEPTH; i++) {
    const __u32 type = entry >> 3 & 15;
    if (type < TACHO_MAPLE_LEAF || type > TACHO_MAPLE_RANGES_AND_GAPS) return 0;
    entry = entry_of_node(slot, entry, slot->walk.ip);
    if (type == TACHO_MAPLE_LEAF) return entry;
    if (entry < 4096) return 0;
  }
  return 0;
}

static __always_inline bool read_key(__u64 file, struct tacho_file_key *key) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 inode, super_block;
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
__noinline __u32 module_of_file(__u64 file, __u64 start, __u64 end) {
  struct tacho_file_question question = {.start = start, .end = end};
  if (!read_key(file, &question.key)) return TACHO_MODULE_OF_NOTHING;
  const __u32 *known = bpf_map_lookup_elem(&files, &question.key);
  if (known) return *known;
  const __u32 asked = TACHO_MODULE_ASKED_FOR;
  if (bpf_map_update_elem(&files, &question.key, &asked, BPF_NOEXIST) != 0) return asked;
  question.process = own_process();
  if (bpf_ringbuf_output(&questions, &question, sizeof question, 0) != 0)
    bpf_map_delete_elem(&files, &question.key); /* the next stack asks again */
  return asked;
}

/* Finds the mapping in the kernel's tree. */
__noinline int find_mapping(struct slot *slot) {
  if (!slot) return 0;
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  const __u64 ip = slot->walk.ip;
  for (int i = 0; i < RECENT; i++) {
    if (ip < slot->recent[i].start || ip >= slot->recent[i].end) continue;
    slot->walk.range = slot->recent[i];
    return 1;
  }
  const __u64 mapping = mapping_of(slot);
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
    range.module = module_of_file(file, start, end);
  } else if (read_kernel_word(memory + layout->mm_vdso, &vdso) && vdso == start) {
    range.module = TACHO_MODULE_OF_VDSO;
    range.bias = start;
  }
  slot->walk.range = range;
  slot->recent[slot->oldest & (RECENT - 1)] = range;
  slot->oldest++;
  return 1;
}

/* Finds it among what the recorder told. */
__noinline int find_range(struct slot *slot) {
  if (!slot) return 0;
  const __u32 first = slot->walk.first, count = slot->walk.count;
  if (count == 0) return 0;
  __u32 at = 0; /* the last range that begins at or below the address */
  for (__u32 step = TACHO_MOST_RANGES_OF_PROCESS / 2; step > 0; step /= 2) {
    if (at + step >= count) continue;
    const __u32 key = first + at + step;
    const struct tacho_code_range *range = bpf_map_lookup_elem(&ranges, &key);
    if (!range) return 0;
    if (range->start <= slot->walk.ip) at += step;
  }
  const __u32 key = first + at;
  const struct tacho_code_range *range = bpf_map_lookup_elem(&ranges, &key);
  if (!range || range->start > slot->walk.ip || range->end <= slot->walk.ip) return 0;
  slot->walk.range = *range;
  return 1;
}

static __always_inline const struct tacho_unwind_block *block_of(__u32 number) {
  __u32 key = number / TACHO_SEGMENT_BLOCKS;
  void *segment = bpf_map_lookup_elem(&segments, &key);
  if (!segment) return 0;
  key = number % TACHO_SEGMENT_BLOCKS;
  return bpf_map_lookup_elem(segment, &key);
}

/* The row of `pc`, which is below 2^32, as its 8 bytes; 0 when there is none. */
__noinline __u64 find_row(__u32 first, __u32 count, __u64 pc) {
  if (count == 0) return 0;
  /* 0, which the verifier does not know: it follows one number for all, and not each of them. */
  const __u32 nothing = pc >> 32;
  __u32 low = nothing; /* the last block that begins at or below `pc` */
  const struct tacho_unwind_block *block;
  for (__u32 step = 1 << 17; step > 0; step /= 2) {
    if (low + step >= count) continue;
    block = block_of(first + low + step);
    if (!block) return 0;
    if (block->rows[0].pc <= pc) low += step;
  }
  block = block_of(first + low);
  if (!block || block->rows[0].pc > pc) return 0;
  __u32 at = nothing & (TACHO_BLOCK_ROWS - 1);
  for (__u32 step = TACHO_BLOCK_ROWS / 2; step > 0; step /= 2) {
    const __u32 next = (at + step) & (TACHO_BLOCK_ROWS - 1);
    if (block->rows[next].pc <= pc) at = next;
  }
  return *(const __u64 *)&block->rows[at];
}

/* Registers other than rsp and rbp are known of the sampled function alone. */
static __always_inline bool register_of_leaf(const struct pt_regs *registers, __u32 number, __u64 *value) {
  switch (number) {
    case 0: *value = registers->rax; return true;
    case 1: *value = registers->rdx; return true;
    case 2: *value = registers->rcx; return true;
    case 3: *value = registers->rbx; return true;
    case 4: *value = registers->rsi; return true;
    case 5: *value = registers->rdi; return true;
    case 8: *value = registers->r8; return true;
    case 9: *value = registers->r9; return true;
    case 10: *value = registers->r10; return true;
    case 11: *value = registers->r11; return true;
    case 12: *value = registers->r12; return true;
    case 13: *value = registers->r13; return true;
    case 14: *value = registers->r14; return true;
    case 15: *value = registers->r15; return true;
    default: return false;
  }
}

__noinline int leave_signal_frame(struct slot *slot) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  const __u64 frame = walk->sp;
  __u64 sp;
  if (!read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RIP, &walk->ip) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RBP, &walk->bp) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RSP, &sp))
    return ends(walk, TACHO_END_UNREADABLE);
  walk->sp = sp;
  walk->is_return = false; /* it was interrupted, and called nobody */
  walk->is_guess = false;
  walk->is_bp_known = true;
  return 0;
}

/* Whether a call stands before an address: it may be one to return to. */
static __always_inline bool is_behind_call(__u64 address) {
  __u64 code;
  if (!read_word(address - WORD, &code)) return false;
  return (code >> 24 & 0xff) == 0xe8 ||    /* call rel32 */
         (code >> 16 & 0xffff) == 0x15ff ||  /* call *disp32(%rip) */
         (code >> 48 & 0x38ff) == 0x10ff ||  /* call *register, call *(register) */
         (code >> 40 & 0x38ff) == 0x10ff ||  /* call *disp8(register) */
         (code >> 16 & 0x38ff) == 0x10ff;    /* call *disp32(register) */
}

/* The sampled function may be assembly that pushed nothing: what called it lies on top of the stack. */
static __always_inline bool leave_bare_leaf(struct walk *walk) {
  __u64 caller;
  if (!read_word(walk->sp, &caller) || !is_behind_call(caller)) return false;
  walk->ip = caller;
  walk->sp += WORD;
  walk->is_return = true;
  walk->is_guess = true;
  return true;
}

/* Code that nothing describes: the signal trampoline of a library without unwind information, or else it may
 * keep a frame pointer, which is believed when it points a little above and to a return into mapped code. */
__noinline int guess(struct slot *slot, __u32 lack /* or TACHO_END_COUNT: the module has no table */) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  __u64 code = 0, caller = 0;
  const __u64 trampoline = walk->frames == 1 ? walk->ip - 9 : walk->ip; /* called by the kernel; or at its call */
  if (walk->is_return && read_word(trampoline, &code) && code == 0x0f0000000fc0c748)
    return leave_signal_frame(slot); /* mov $15, %rax; syscall */
  const bool is_bare = lack == TACHO_END_COUNT;
  if (is_bare)
    lack = TACHO_END_NO_RULE;
  else if (walk->frames == 1 && leave_bare_leaf(walk))
    return 0;
  if (!walk->is_bp_known) return ends(walk, lack);
  const __u64 frame = walk->bp;
  if (frame == 0) return ends(walk, is_bare ? TACHO_END_FRAME_ZERO : lack);
  if (frame % WORD != 0 || frame < walk->sp || frame - walk->sp > FRAME_POINTER_REACH) return ends(walk, lack);
  if (!read_word(frame, &walk->bp) || !read_word(frame + WORD, &caller)) return ends(walk, TACHO_END_UNREADABLE);
  if (caller == 0) return ends(walk, TACHO_END_FRAME_ZERO);
  walk->ip = caller;
  walk->sp = frame + 2 * WORD;
  walk->is_return = true;
  walk->is_guess = true;
  return 0;
}

static __always_inline int return_from(struct walk *walk, __u64 cfa, __s8 rbp) {
  __u64 caller;
  if (!read_word(cfa - WORD, &caller)) return ends(walk, TACHO_END_UNREADABLE);
  if (rbp < 0) {
    if (!read_word(cfa + (__s64)rbp * WORD, &walk->bp)) return ends(walk, TACHO_END_UNREADABLE);
    walk->is_bp_known = true;
  } else if (rbp == TACHO_UNWIND_RBP_AT_RBP) {
    if (!walk->is_bp_known || !read_word(walk->bp, &walk->bp)) return ends(walk, TACHO_END_UNREADABLE);
  } else if (rbp == TACHO_UNWIND_RBP_LOST) {
    walk->is_bp_known = false;
  }
  if (caller == 0) return ends(walk, TACHO_END_WHOLE);
  walk->ip = caller;
  walk->sp = cfa;
  walk->is_return = true;
  walk->is_guess = false;
  return 0;
}

__noinline int follow(struct slot *slot, __u64 packed) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  const __u32 kind = packed >> 56;
  const __s64 offset = (__s64)(__s16)(packed >> 32) * WORD;
  __s8 rbp = (__s8)(packed >> 48);
  __u64 cfa;
  if (kind == TACHO_UNWIND_RSP) {
    cfa = walk->sp + offset;
  } else if (kind == TACHO_UNWIND_RBP) {
    if (!walk->is_bp_known) return ends(walk, TACHO_END_ODD_RULE);
    cfa = walk->bp + offset;
  } else if (kind <= TACHO_UNWIND_LAST_REGISTER) {
    if (walk->frames != 1 || !register_of_leaf(&slot->registers, kind, &cfa))
      return ends(walk, TACHO_END_ODD_RULE);
    cfa += offset;
  } else if (kind == TACHO_UNWIND_PLT) {
    cfa = walk->sp + offset + ((__s8)(walk->ip & 15) >= rbp ? WORD : 0);
    rbp = TACHO_UNWIND_RBP_SAME;
  } else if (kind == TACHO_UNWIND_AT_RBP) {
    if (!walk->is_bp_known) return ends(walk, TACHO_END_ODD_RULE);
    if (!read_word(walk->bp + offset, &cfa)) return ends(walk, TACHO_END_UNREADABLE);
  } else if (kind == TACHO_UNWIND_AT_RSP) {
    if (!read_word(walk->sp + offset, &cfa)) return ends(walk, TACHO_END_UNREADABLE);
    return return_from(walk, cfa + WORD, rbp); /* from another stack, which may lie anywhere */
  } else if (kind == TACHO_UNWIND_SIGNAL) {
    return leave_signal_frame(slot);
  } else if (kind == TACHO_UNWIND_END) {
    return ends(walk, TACHO_END_WHOLE);
  } else if (kind == TACHO_UNWIND_OTHER) {
    return ends(walk, TACHO_END_ODD_RULE);
  } else {
    return guess(slot, TACHO_END_NO_RULE);
  }
  if (cfa <= walk->sp) return ends(walk, TACHO_END_LOOP);
  return return_from(walk, cfa, rbp);
}

/* One frame: notes its address and goes to its caller. */
__noinline int take_step(struct slot *slot) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  const bool is_near = walk->ip >= walk->range.start && walk->ip < walk->range.end;
  const bool is_mapped = is_near || (tacho_options.layout.is_known ? find_mapping(slot) : find_range(slot)) != 0;
  if (walk->is_guess && !is_mapped) return ends(walk, TACHO_END_NO_RULE);
  if (walk->frames >= tacho_options.most_frames || walk->frames >= TACHO_MOST_FRAMES)
    return ends(walk, TACHO_END_CUT);
  slot->frames[walk->frames & (TACHO_MOST_FRAMES - 1)] = walk->ip;
  walk->frames++;
  if (!is_mapped) return ends(walk, walk->frames == 1 && slot->is_in_exec ? TACHO_END_EXEC : TACHO_END_NO_MAPPING);
  const __u32 key = walk->range.module;
  if (key == TACHO_MODULE_ASKED_FOR) return ends(walk, TACHO_END_NO_TABLE);
  struct tacho_unwind_module *module = bpf_map_lookup_elem(&modules, &key);
  if (!module) return guess(slot, TACHO_END_COUNT);
  if (module->last_used != tacho_now) module->last_used = tacho_now;
  if (module->state == TACHO_MODULE_BARE) return guess(slot, TACHO_END_COUNT);
  if (module->state != TACHO_MODULE_READY) return ends(walk, TACHO_END_NO_TABLE);
  const __u64 pc = walk->ip - walk->range.bias - module->base - (walk->is_return ? 1 : 0);
  if (pc >= 0xffffffff) return guess(slot, TACHO_END_NO_RULE);
  const __u64 row = find_row(module->first_block, module->blocks, pc);
  if (row == 0) return guess(slot, TACHO_END_NO_RULE);
  return follow(slot, row);
}

struct place {
  struct slot *slot;
};
static long step(__u32 index, struct place *place) { return take_step(place->slot) != 0; }

static __always_inline struct slot *take_slot(void) {
#pragma unroll
  for (__u32 i = 0; i < SLOTS; i++) {
    const __u32 key = i;
    struct slot *slot = bpf_map_lookup_elem(&slots, &key);
    if (slot && __sync_val_compare_and_swap(&slot->busy, 0, 1) == 0) return slot;
  }
  return 0;
}

/* The registers with which the thread left user space; false for a thread that has none. */
static __always_inline bool read_user_registers(struct slot *slot) {
  struct task_struct *task = bpf_get_current_task_btf();
  const void *at = (const void *)bpf_task_pt_regs(task);
  if (bpf_probe_read_kernel(&slot->registers, sizeof slot->registers, at) != 0) return false;
  slot->is_in_call = slot->registers.orig_rax != (__u64)-1;
  slot->is_in_exec = slot->registers.orig_rax == CALL_EXECVE || slot->registers.orig_rax == CALL_EXECVEAT;
  return (slot->registers.cs & 3) == 3;
}

static __always_inline bool take_registers(struct slot *slot, const struct pt_regs *registers) {
  if ((registers->cs & 3) != 3) return read_user_registers(slot);
  slot->registers = *registers;
  slot->is_in_call = slot->is_in_exec = 0;
  return true;
}

/* Programs on tracepoints run for whoever comes by. Only tasks that are watched have events of their own. */
static __always_inline bool is_watched(const struct task_struct *task) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 context = 0, other = 0;
  read_kernel_word((__u64)task + layout->task_perf_contexts, &context);
  if (layout->perf_contexts > 1) read_kernel_word((__u64)task + layout->task_perf_contexts + WORD, &other);
  return context != 0 || other != 0;
}

/* Where the mappings of this process are found; false: the process is not to be walked. */
static __always_inline bool find_process(struct walk *walk, __u32 process, bool skips_strangers) {
  walk->end = TACHO_END_CUT;
  if (tacho_options.layout.is_known) {
    const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
    if (skips_strangers && !is_watched(task)) return false;
    if (!read_kernel_word((__u64)task + tacho_options.layout.task_mm, &walk->memory) || walk->memory == 0)
      walk->end = TACHO_END_EXITING;
    return true;
  }
  const struct tacho_process_ranges *known = bpf_map_lookup_elem(&processes, &process);
  if (!known) {
    walk->end = TACHO_END_NO_PROCESS;
    return !skips_strangers;
  }
  walk->first = known->first;
  walk->count = known->count;
  return true;
}

static __always_inline int walk_and_tell(void *context, struct slot *slot, bool skips_strangers) {
  const __u64 ids = bpf_get_current_pid_tgid();
  struct walk *walk = &slot->walk;
  __builtin_memset(walk, 0, sizeof *walk);
  __builtin_memset(slot->recent, 0, sizeof slot->recent);
  if (!find_process(walk, ids >> 32, skips_strangers)) return 1;
  walk->is_bp_known = true;
  walk->ip = slot->registers.rip;
  __u64 code;
  /* Behind the instruction that called the kernel, which may be the last one of its function; but at the first
   * one of a signal's handler when the call ends with a signal. */
  if (slot->is_in_call && read_word(walk->ip - WORD, &code)) walk->is_return = code >> 48 == 0x050f;
  walk->sp = slot->registers.rsp;
  walk->bp = slot->registers.rbp;
  if (slot->registers.cs != USER_CODE_64 || walk->end != TACHO_END_CUT) {
    slot->frames[0] = walk->ip;
    walk->frames = 1;
    if (walk->end == TACHO_END_CUT) walk->end = TACHO_END_32_BIT;
  } else {
    struct place place = {slot};
    bpf_loop(TACHO_MOST_FRAMES + 1, step, &place, 0);
  }
  __u32 frames = walk->frames;
  if (frames > TACHO_MOST_FRAMES) frames = TACHO_MOST_FRAMES;
  slot->head.tid = ids;
  slot->head.end = walk->end;
  slot->head.frames = frames;
  bpf_perf_event_output(context, &stacks, BPF_F_CURRENT_CPU, &slot->head, sizeof slot->head + frames * WORD);
  return 1;
}

/* The kernel drops a sample whose program does not return 1. */
SEC("perf_event")
int walk_on_sample(struct bpf_perf_event_data *context) {
  struct slot *slot = take_slot();
  if (!slot) return 1;
  if (take_registers(slot, &context->regs)) walk_and_tell(context, slot, false);
  slot->busy = 0;
  return 1;
}

SEC("tracepoint")
int walk_on_tracepoint(void *context) {
  struct slot *slot = take_slot();
  if (!slot) return 1;
  if (read_user_registers(slot)) walk_and_tell(context, slot, tacho_options.skips_strangers != 0);
  slot->busy = 0;
  return 1;
}

SEC("kprobe")
int walk_on_probe(struct pt_regs *context) {
  struct slot *slot = take_slot();
  if (!slot) return 1;
  if (take_registers(slot, context)) walk_and_tell(context, slot, tacho_options.skips_strangers != 0);
  slot->busy = 0;
  return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
