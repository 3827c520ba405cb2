/* What the walk of a stack must know of arm64: the rules of unwind rows, calls, signed return addresses and signal frames. */
#ifndef TACHO_WALK_ARM64_H
#define TACHO_WALK_ARM64_H

#include "bpf/programs/walked_mappings.h"

#define RETURN_SLOT 0 /* a return pops nothing */
#define LONGEST_INSTRUCTION 4
#define ADDRESS_BITS 48 /* of user addresses; a signed one has its signature above */
#define SYSTEM_CALL 0xd4000001 /* svc #0 */
#define TRAMPOLINE 0xd4000001d2801168 /* mov x8, #139; svc #0: rt_sigreturn() */

static __always_inline bool is_64_bit_code(const struct tacho_registers *registers) { return !TACHO_IS_32_BIT(registers); }

static __always_inline bool read_instruction(__u64 address, __u32 *code) {
  return bpf_probe_read_user(code, sizeof *code, (const void *)address) == 0;
}

static __always_inline __u64 without_signature(__u64 address) { return address & ((1ULL << ADDRESS_BITS) - 1); }

static __always_inline bool is_direct_call(__u32 code) { return (code & 0xfc000000) == 0x94000000; } /* bl */

/* Whether `address` may be a return address: a call instruction ends there. */
static __always_inline bool is_return_address(__u64 address) {
  __u32 code;
  if (!read_instruction(address - sizeof code, &code)) return false;
  return is_direct_call(code) || (code & 0xfefff800) == 0xd63f0800 /* blraa and others */ || (code & 0xfffffc1f) == 0xd63f0000; /* blr */
}

/* pc stays at the instruction of a uprobe. */
static __always_inline bool is_after_breakpoint(const struct walk *walk) { return false; }

static __always_inline bool is_after_system_call(__u64 ip) {
  __u32 code;
  return read_instruction(ip - sizeof code, &code) && code == SYSTEM_CALL;
}

static __always_inline int go_to_caller(struct walk *walk, __u64 caller, __u64 sp, bool is_guess) {
  caller = without_signature(caller);
  /* A thread's first function has return address 0. The sampled function has one. */
  if (caller == 0) return ends(walk, walk->frames == 1 ? TACHO_END_NO_RULE : is_guess ? TACHO_END_FRAME_ZERO : TACHO_END_WHOLE);
  walk->ip = caller;
  walk->sp = sp;
  walk->is_link_known = false;
  walk->is_return = true;
  walk->is_guess = is_guess;
  return 0;
}

__noinline int tacho_leave_signal_frame(struct slot *slot) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  const __u64 frame = walk->sp;
  __u64 sp;
  if (!read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RIP, &walk->ip) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RBP, &walk->bp) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_LINK, &walk->link) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RSP, &sp))
    return ends(walk, TACHO_END_UNREADABLE);
  walk->sp = sp;
  walk->is_return = false; /* it was interrupted at this instruction */
  walk->is_guess = false;
  walk->is_bp_known = walk->is_link_known = true;
  if (walk->frames >= tacho_options.most_frames || walk->frames >= TACHO_MOST_FRAMES) return ends(walk, TACHO_END_CUT);
  slot->frames[walk->frames & (TACHO_MOST_FRAMES - 1)] = TACHO_INTERRUPTED;
  walk->frames++;
  return 0;
}

/* Whether x30 still has the return address of the interrupted function: if so, the call instruction before it calls that function.
 * Where the module has a table, code without rules is assembly, which mostly calls nothing: any call will do. */
static __always_inline bool is_link_of_leaf(const struct walk *walk, bool is_unknown) {
  const __u64 link = without_signature(walk->link);
  __u32 code;
  if (!walk->is_link_known || !read_instruction(link - sizeof code, &code)) return false;
  if (!is_unknown) return is_return_address(link);
  if (!is_direct_call(code)) return false;
  const __s64 distance = (__s64)((__u64)code << 38) >> 36; /* 26 bits, in instructions */
  return walk->ip - (link - sizeof code + distance) < LEAF_REACH;
}

/* Finds the caller of code without an unwind row: a signal trampoline by its instructions; other code by x30 or its frame record, if
 * that is up to FRAME_POINTER_REACH above the stack pointer. If there is no caller, the walk ends with `end`; TACHO_END_COUNT means
 * that the module has no table. */
__noinline int tacho_guess(struct slot *slot, __u32 end) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  __u64 code = 0, caller = 0;
  const __u64 trampoline = walk->frames == 1 ? walk->ip - WORD : walk->ip; /* called by the kernel; or at its call */
  if (walk->is_return && read_word(trampoline, &code) && code == TRAMPOLINE) return tacho_leave_signal_frame(slot);
  const bool is_bare = end == TACHO_END_COUNT;
  if (is_bare) end = TACHO_END_NO_RULE;
  if (is_link_of_leaf(walk, is_bare || walk->is_doubtful)) return go_to_caller(walk, walk->link, walk->sp, true);
  if (!walk->is_bp_known) return ends(walk, end);
  const __u64 frame = walk->bp;
  if (frame == 0) return ends(walk, is_bare ? TACHO_END_FRAME_ZERO : end);
  if (frame % WORD != 0 || frame < walk->sp || frame - walk->sp > FRAME_POINTER_REACH) return ends(walk, end);
  if (!read_word(frame, &walk->bp) || !read_word(frame + WORD, &caller)) return ends(walk, TACHO_END_UNREADABLE);
  if (caller == 0) return ends(walk, TACHO_END_FRAME_ZERO);
  return go_to_caller(walk, caller, frame + 2 * WORD, true);
}

__noinline int tacho_follow(struct slot *slot, __u64 packed) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  const __u32 kind = packed >> 56;
  const __s64 offset = (__s64)(__s16)(packed >> 32) * WORD;
  const __s64 place = (__s64)(__s8)(packed >> 48) * WORD;
  __u64 base, cfa, caller;
  if (kind == TACHO_UNWIND_SIGNAL) return tacho_leave_signal_frame(slot);
  if (kind == TACHO_UNWIND_END) return ends(walk, TACHO_END_WHOLE);
  if (kind == TACHO_UNWIND_OTHER) return ends(walk, TACHO_END_ODD_RULE);
  if (kind == TACHO_UNWIND_RBP || kind == TACHO_UNWIND_LINK_RBP) {
    if (!walk->is_bp_known) return ends(walk, TACHO_END_ODD_RULE);
    base = walk->bp;
  } else if (kind == TACHO_UNWIND_RSP || kind == TACHO_UNWIND_LINK_RSP || kind == TACHO_UNWIND_LINK_AT_RSP) {
    base = walk->sp;
  } else {
    return tacho_guess(slot, TACHO_END_NO_RULE);
  }
  cfa = base + offset;
  if (place == 0 && kind <= TACHO_UNWIND_RSP) { /* a leaf function, or the first instructions of one */
    if (!walk->is_link_known || cfa < walk->sp) return ends(walk, TACHO_END_LOOP);
    return go_to_caller(walk, walk->link, cfa, false);
  }
  if (cfa <= walk->sp) return ends(walk, TACHO_END_LOOP);
  if (kind == TACHO_UNWIND_LINK_AT_RSP) {
    if (!read_word(walk->sp, &caller)) return ends(walk, TACHO_END_UNREADABLE);
  } else if (kind <= TACHO_UNWIND_RSP) {
    const __u64 record = place == WORD * TACHO_UNWIND_RBP_AT_RBP ? base : cfa + place;
    if (!read_word(record, &walk->bp) || !read_word(record + WORD, &caller)) return ends(walk, TACHO_END_UNREADABLE);
    walk->is_bp_known = true;
  } else if (!read_word(cfa + place, &caller)) {
    return ends(walk, TACHO_END_UNREADABLE);
  }
  return go_to_caller(walk, caller, cfa, false);
}

static __always_inline void take_other_registers(struct slot *slot) {
  slot->walk.link = slot->registers.x[30];
  slot->walk.is_link_known = true;
}

/* The registers of an event, as its program gets them: up to pstate. */
static __always_inline void copy_registers(struct tacho_registers *to, const void *context) {
  *(struct user_pt_regs *)to = *(const struct user_pt_regs *)context;
  to->call = -1;
}

#endif
