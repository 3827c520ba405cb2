/* Walks the user's stack of a sample by tables of the binaries' own unwind information, and writes the
 * addresses into the ring of the CPU, just before the kernel writes the sample itself (record/stacks). */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/ptrace.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/programs/stack_maps.h"

#define WORD 8
#define USER_CODE_64 0x33
#define FRAME_POINTER_REACH 0x100000 /* bytes to the caller's frame that a guess may span */
#define SLOTS 4                      /* walks of one CPU that may be under way at once */

volatile const __u32 tacho_most_frames = 127;
volatile const __u32 tacho_skips_strangers; /* programs on tracepoints: processes that are not watched */
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

/* Where a record is put together. */
struct slot {
  __u32 busy;
  __u32 is_in_call; /* of the system */
  struct pt_regs registers;
  struct tacho_stack_record head; /* what follows it is the record */
  __u64 frames[TACHO_MOST_FRAMES];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, SLOTS);
  __type(key, __u32);
  __type(value, struct slot);
} slots SEC(".maps");

struct walk {
  struct slot *slot;
  struct tacho_code_range range; /* of the frame before, mostly of this one too */
  __u64 ip, sp, bp;
  __u32 first, count; /* ranges of the process */
  __u32 frames, end;
  bool is_return;   /* ip stands behind a call */
  bool is_guess;    /* found by a frame pointer that nobody promised */
  bool is_bp_known;
};

static __always_inline bool read_word(__u64 address, __u64 *word) {
  return bpf_probe_read_user(word, WORD, (const void *)address) == 0;
}

static __always_inline long ends(struct walk *walk, __u32 how) {
  walk->end = how;
  return 1;
}

static __noinline long find_range(struct walk *walk) {
  __u32 low = 0, high = walk->count;
  for (int i = 0; i < 15 && low < high; i++) {
    const __u32 middle = (low + high) / 2, key = walk->first + middle;
    const struct tacho_code_range *range = bpf_map_lookup_elem(&ranges, &key);
    if (!range) return 0;
    if (range->end <= walk->ip) {
      low = middle + 1;
    } else if (range->start > walk->ip) {
      high = middle;
    } else {
      walk->range = *range;
      return 1;
    }
  }
  return 0;
}

static __always_inline const struct tacho_unwind_block *block_of(__u32 number) {
  __u32 key = number / TACHO_SEGMENT_BLOCKS;
  void *segment = bpf_map_lookup_elem(&segments, &key);
  if (!segment) return 0;
  key = number % TACHO_SEGMENT_BLOCKS;
  return bpf_map_lookup_elem(segment, &key);
}

/* The row of `pc`, as its 8 bytes; 0 when there is none. */
static __noinline __u64 find_row(__u32 first, __u32 count, __u32 pc) {
  __u32 low = 0, high = count; /* the first block that begins behind `pc` */
  const struct tacho_unwind_block *block;
  for (int i = 0; i < 18 && low < high; i++) {
    const __u32 middle = (low + high) / 2;
    block = block_of(first + middle);
    if (!block) return 0;
    if (block->rows[0].pc <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return 0;
  block = block_of(first + low - 1);
  if (!block) return 0;
  __u32 at = 0;
#pragma unroll
  for (__u32 step = TACHO_BLOCK_ROWS / 2; step > 0; step /= 2)
    if (block->rows[(at + step) & (TACHO_BLOCK_ROWS - 1)].pc <= pc) at += step;
  return *(const __u64 *)&block->rows[at & (TACHO_BLOCK_ROWS - 1)];
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

static __noinline long leave_signal_frame(struct walk *walk) {
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
static __noinline long leave_bare_leaf(struct walk *walk) {
  __u64 caller;
  if (!read_word(walk->sp, &caller) || !is_behind_call(caller)) return 0;
  walk->ip = caller;
  walk->sp += WORD;
  walk->is_return = true;
  walk->is_guess = true;
  return 1;
}

/* Code that nothing describes: the signal trampoline of a library without unwind information, or else it may
 * keep a frame pointer, which is believed when it points a little above and to a return into mapped code. */
static __noinline long guess(struct walk *walk, __u32 lack /* or TACHO_END_COUNT: the module has no table */) {
  __u64 code = 0, caller = 0;
  const __u64 trampoline = walk->frames == 1 ? walk->ip - 9 : walk->ip; /* called by the kernel; or at its call */
  if (walk->is_return && read_word(trampoline, &code) && code == 0x0f0000000fc0c748)
    return leave_signal_frame(walk); /* mov $15, %rax; syscall */
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

static __always_inline long return_from(struct walk *walk, __u64 cfa, __s8 rbp) {
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

static __noinline long follow(struct walk *walk, __u64 packed) {
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
    if (walk->frames != 1 || !walk->slot || !register_of_leaf(&walk->slot->registers, kind, &cfa))
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
    return leave_signal_frame(walk);
  } else if (kind == TACHO_UNWIND_END) {
    return ends(walk, TACHO_END_WHOLE);
  } else if (kind == TACHO_UNWIND_OTHER) {
    return ends(walk, TACHO_END_ODD_RULE);
  } else {
    return guess(walk, TACHO_END_NO_RULE);
  }
  if (cfa <= walk->sp) return ends(walk, TACHO_END_LOOP);
  return return_from(walk, cfa, rbp);
}

/* One frame: notes its address and goes to its caller. */
static long step(__u32 index, struct walk *walk) {
  const bool is_near = walk->ip >= walk->range.start && walk->ip < walk->range.end;
  const bool is_mapped = is_near || find_range(walk);
  if (walk->is_guess && !is_mapped) return ends(walk, TACHO_END_NO_RULE);
  if (walk->frames >= tacho_most_frames || walk->frames >= TACHO_MOST_FRAMES || !walk->slot)
    return ends(walk, TACHO_END_CUT);
  walk->slot->frames[walk->frames & (TACHO_MOST_FRAMES - 1)] = walk->ip;
  walk->frames++;
  if (!is_mapped) return ends(walk, TACHO_END_NO_MAPPING);
  const __u32 key = walk->range.module;
  struct tacho_unwind_module *module = bpf_map_lookup_elem(&modules, &key);
  if (!module) return guess(walk, TACHO_END_COUNT);
  if (module->last_used != tacho_now) module->last_used = tacho_now;
  if (module->state == TACHO_MODULE_BARE) return guess(walk, TACHO_END_COUNT);
  if (module->state != TACHO_MODULE_READY) return ends(walk, TACHO_END_NO_TABLE);
  const __u64 pc = walk->ip - walk->range.bias - module->base - (walk->is_return ? 1 : 0);
  if (pc >= 0xffffffff) return guess(walk, TACHO_END_NO_RULE);
  const __u64 row = find_row(module->first_block, module->blocks, pc);
  if (row == 0) return guess(walk, TACHO_END_NO_RULE);
  return follow(walk, row);
}

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
  return (slot->registers.cs & 3) == 3;
}

static __always_inline bool take_registers(struct slot *slot, const struct pt_regs *registers) {
  if ((registers->cs & 3) != 3) return read_user_registers(slot);
  slot->registers = *registers;
  slot->is_in_call = 0;
  return true;
}

static __always_inline int walk_and_tell(void *context, struct slot *slot, bool skips_strangers) {
  const __u64 ids = bpf_get_current_pid_tgid();
  const __u32 process = ids >> 32;
  struct walk walk = {.slot = slot, .is_bp_known = true};
  walk.ip = slot->registers.rip;
  __u64 code;
  /* Behind the instruction that called the kernel, which may be the last one of its function; but at the first
   * one of a signal's handler when the call ends with a signal. */
  if (slot->is_in_call && read_word(walk.ip - WORD, &code)) walk.is_return = code >> 48 == 0x050f;
  walk.sp = slot->registers.rsp;
  walk.bp = slot->registers.rbp;
  const struct tacho_process_ranges *known = bpf_map_lookup_elem(&processes, &process);
  if (!known && skips_strangers) return 1;
  if (slot->registers.cs != USER_CODE_64 || !known) {
    slot->frames[0] = walk.ip;
    walk.frames = 1;
    walk.end = known ? TACHO_END_32_BIT : TACHO_END_NO_PROCESS;
  } else {
    walk.first = known->first;
    walk.count = known->count;
    walk.end = TACHO_END_CUT;
    bpf_loop(TACHO_MOST_FRAMES + 1, step, &walk, 0);
  }
  __u32 frames = walk.frames;
  if (frames > TACHO_MOST_FRAMES) frames = TACHO_MOST_FRAMES;
  slot->head.tid = ids;
  slot->head.end = walk.end;
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
  if (read_user_registers(slot)) walk_and_tell(context, slot, tacho_skips_strangers != 0);
  slot->busy = 0;
  return 1;
}

SEC("kprobe")
int walk_on_probe(struct pt_regs *context) {
  struct slot *slot = take_slot();
  if (!slot) return 1;
  if (take_registers(slot, context)) walk_and_tell(context, slot, tacho_skips_strangers != 0);
  slot->busy = 0;
  return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
