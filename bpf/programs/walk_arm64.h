/* What the walk of a stack must know of arm64: the rules of unwind rows, calls, signed return addresses and signal frames. */
#ifndef TACHO_WALK_ARM64_H
#define TACHO_WALK_ARM64_H

#include "bpf/programs/walked_mappings.h"
#include "unwind/arm64_caller.h"

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
  if (!walk->is_sp_known) return ends(walk, TACHO_END_NO_RULE);
  if (!read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RIP, &walk->ip) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RBP, &walk->bp) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_LINK, &walk->link) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RSP, &sp))
    return ends(walk, TACHO_END_UNREADABLE);
  walk->is_link_known = true;
  return go_to_interrupted(slot, sp);
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
 * that is up to FRAME_POINTER_REACH above the stack pointer. A frame record may be anywhere in its frame, so that the caller's stack
 * pointer is not known then. If there is no caller, the walk ends with `end`; TACHO_END_COUNT means that the module has no table. */
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
  walk->is_sp_known = false;
  return go_to_caller(walk, caller, frame + 2 * WORD, true);
}

__noinline int tacho_follow(struct slot *slot, __u64 packed) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  const __u32 kind = packed >> 56;
  if (kind == TACHO_UNWIND_SIGNAL) return tacho_leave_signal_frame(slot);
  if (kind == TACHO_UNWIND_END) return ends(walk, TACHO_END_WHOLE);
  if (kind == TACHO_UNWIND_OTHER) return ends(walk, TACHO_END_ODD_RULE);
  if (!tacho_has_arm64_caller(kind)) return tacho_guess(slot, TACHO_END_NO_RULE);
  const struct tacho_arm64_frame frame = {.sp = walk->sp, .x29 = walk->bp, .is_sp_known = walk->is_sp_known};
  struct tacho_arm64_caller caller;
  __u64 link = walk->link;
  if (!tacho_find_arm64_caller(kind, (__s16)(packed >> 32), (__s8)(packed >> 48), &frame, &caller)) return ends(walk, TACHO_END_NO_RULE);
  if (caller.link_at == 0) { /* a leaf function, or the first instructions of one */
    if (!walk->is_link_known || caller.sp < walk->sp) return ends(walk, TACHO_END_LOOP);
  } else {
    if (caller.sp <= walk->sp) return ends(walk, TACHO_END_LOOP);
    if (!read_word(caller.link_at, &link)) return ends(walk, TACHO_END_UNREADABLE);
    if (caller.frame_at != 0 && !read_word(caller.frame_at, &walk->bp)) return ends(walk, TACHO_END_UNREADABLE);
  }
  walk->is_sp_known = true;
  return go_to_caller(walk, link, caller.sp, !frame.is_sp_known);
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
