/* What the walk of a stack must know of x86-64: the rules of unwind rows, calls and signal frames. */
#ifndef TACHO_WALK_X86_H
#define TACHO_WALK_X86_H

#include "bpf/programs/walked_mappings.h"

#define USER_CODE_64 0x33
#define SAVED_REGISTERS 5 /* most registers that a function saves besides rbp */
#define RETURN_SLOT WORD  /* bytes from a function's return address to the stack pointer after its return */
#define LONGEST_INSTRUCTION 15

static __always_inline bool is_64_bit_code(const struct tacho_registers *registers) { return registers->cs == USER_CODE_64; }

/* Whether `address` may be a return address: a call instruction ends there. */
static __always_inline bool is_return_address(__u64 address) {
  __u64 code;
  if (!read_word(address - WORD, &code)) return false;
  return (code >> 24 & 0xff) == 0xe8 ||    /* call rel32 */
         (code >> 16 & 0xffff) == 0x15ff ||  /* call *disp32(%rip) */
         (code >> 48 & 0x38ff) == 0x10ff ||  /* call *register, call *(register) */
         (code >> 40 & 0x38ff) == 0x10ff ||  /* call *disp8(register) */
         (code >> 16 & 0x38ff) == 0x10ff ||  /* call *disp32(register) */
         (code >> 32 & 0x38ff) == 0x10ff ||  /* call *disp8(register, register) */
         (code >> 8 & 0x38ff) == 0x10ff;     /* call *disp32(register, register) */
}

/* Whether ip is after the int3 of a uprobe at a function's start: the kernel has not moved it back yet. Only in threads that
 * have hit a uprobe (utask), since linkers pad code with int3. */
static __always_inline bool is_after_breakpoint(const struct walk *walk) {
  __u64 code, caller, utask;
  if (!read_kernel_word(bpf_get_current_task() + tacho_options.layout.task_utask, &utask) || utask == 0) return false;
  return read_word(walk->ip - WORD, &code) && code >> 56 == 0xcc && read_word(walk->sp, &caller) && is_return_address(caller);
}

/* A register other than rsp and rbp. Known in the sampled function only. */
static __always_inline bool register_of_leaf(const struct tacho_registers *registers, __u32 number, __u64 *value) {
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

__noinline int tacho_leave_signal_frame(struct slot *slot) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  const __u64 frame = walk->sp;
  __u64 sp;
  if (!read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RIP, &walk->ip) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RBP, &walk->bp) ||
      !read_word(frame + WORD * TACHO_UNWIND_SIGNAL_RSP, &sp))
    return ends(walk, TACHO_END_UNREADABLE);
  return go_to_interrupted(slot, sp);
}

/* Returns from the sampled function if a return address is on top of the stack: assembly that pushed nothing. */
static __always_inline bool leave_bare_leaf(struct walk *walk) {
  __u64 caller;
  if (!read_word(walk->sp, &caller) || !is_return_address(caller)) return false;
  walk->ip = caller;
  walk->sp += WORD;
  walk->is_return = true;
  walk->is_guess = true;
  return true;
}

/* The same, but only if the call instruction before that return address calls the sampled function. Then the function has not
 * pushed anything yet, or never does, as Go's leaf functions without a frame. */
static __always_inline bool leave_called_leaf(struct walk *walk) {
  __u64 caller, code;
  if (!read_word(walk->sp, &caller) || !read_word(caller - WORD, &code)) return false;
  const __u64 target = caller + (__s64)(__s32)(code >> 32);
  if ((code >> 24 & 0xff) != 0xe8 /* call rel32 */ || walk->ip - target >= LEAF_REACH) return false;
  walk->ip = caller;
  walk->sp += WORD;
  walk->is_return = true;
  walk->is_guess = true;
  return true;
}

/* Assembly may push other registers before rbp and then set rbp to the stack pointer: the return address is above them.
 * Returns their size in bytes; 0: no return address was found. */
static __always_inline __u64 saved_before(__u64 frame, __u64 *caller) {
  for (int i = 1; i <= SAVED_REGISTERS; i++) {
    __u64 word;
    if (!read_word(frame + (1 + i) * WORD, &word)) return 0;
    if (!is_return_address(word)) continue;
    *caller = word;
    return i * WORD;
  }
  return 0;
}

/* Finds the caller of code without an unwind row: a signal trampoline by its instructions; other code by its frame pointer, if
 * that is up to FRAME_POINTER_REACH above the stack pointer and the return address is in mapped code. If there is no caller, the
 * walk ends with `end`; TACHO_END_COUNT means that the module has no table. */
__noinline int tacho_guess(struct slot *slot, __u32 end) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  __u64 code = 0, caller = 0;
  const __u64 trampoline = walk->frames == 1 ? walk->ip - 9 : walk->ip; /* called by the kernel; or at its call */
  if (walk->is_return && read_word(trampoline, &code) && code == 0x0f0000000fc0c748)
    return tacho_leave_signal_frame(slot); /* mov $15, %rax; syscall */
  const bool is_bare = end == TACHO_END_COUNT;
  if (is_bare) end = TACHO_END_NO_RULE;
  const bool is_unknown = is_bare || walk->is_doubtful;
  if (walk->frames == 1 && (is_unknown ? leave_called_leaf(walk) : leave_bare_leaf(walk))) return 0;
  if (!walk->is_bp_known) return ends(walk, end);
  __u64 frame = walk->bp;
  if (frame == 0) return ends(walk, is_bare ? TACHO_END_FRAME_ZERO : end);
  if (frame % WORD != 0 || frame < walk->sp || frame - walk->sp > FRAME_POINTER_REACH) return ends(walk, end);
  if (!read_word(frame, &walk->bp) || !read_word(frame + WORD, &caller)) return ends(walk, TACHO_END_UNREADABLE);
  if (walk->frames == 1 && !is_return_address(caller)) frame += saved_before(frame, &caller);
  if (caller == 0) return ends(walk, TACHO_END_FRAME_ZERO);
  walk->ip = caller;
  walk->sp = frame + 2 * WORD;
  walk->is_return = true;
  walk->is_guess = true;
  return 0;
}

/* Returns from a sampled function whose return address is in a register: vfork(), since its child overwrites the stack. */
static __always_inline int return_to_register(struct slot *slot, __s64 offset, __u32 number) {
  struct walk *walk = &slot->walk;
  if (walk->frames != 1 || !register_of_leaf(&slot->registers, number, &walk->ip)) return ends(walk, TACHO_END_ODD_RULE);
  walk->sp += offset;
  walk->is_return = true;
  walk->is_guess = false;
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
  /* A thread's first function has return address 0. The sampled function has one, so it is leaving its frame in a way that
   * CFI does not describe, as the exception unwinder does. */
  if (caller == 0) return ends(walk, walk->frames == 1 ? TACHO_END_NO_RULE : TACHO_END_WHOLE);
  walk->ip = caller;
  walk->sp = cfa;
  walk->is_return = true;
  walk->is_guess = false;
  return 0;
}

__noinline int tacho_follow(struct slot *slot, __u64 packed) {
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
    return return_from(walk, cfa + WORD, rbp); /* the caller has another stack, at any address */
  } else if (kind == TACHO_UNWIND_RETURN_IN) {
    return return_to_register(slot, offset, (__u8)rbp);
  } else if (kind == TACHO_UNWIND_SIGNAL) {
    return tacho_leave_signal_frame(slot);
  } else if (kind == TACHO_UNWIND_END) {
    return ends(walk, TACHO_END_WHOLE);
  } else if (kind == TACHO_UNWIND_OTHER) {
    return ends(walk, TACHO_END_ODD_RULE);
  } else {
    return tacho_guess(slot, TACHO_END_NO_RULE);
  }
  /* The sampled function may have popped its return address, which is still there: Go's rawVforkSyscall. */
  if (cfa < walk->sp || (cfa == walk->sp && walk->frames != 1)) return ends(walk, TACHO_END_LOOP);
  return return_from(walk, cfa, rbp);
}

/* In a system call, rip is after the syscall instruction. */
static __always_inline bool is_after_system_call(__u64 ip) {
  __u64 code;
  return read_word(ip - WORD, &code) && code >> 48 == 0x050f;
}

/* Nothing else is known of the sampled function. */
static __always_inline void take_other_registers(struct slot *slot) {}

/* The registers of an event, as its program gets them. */
static __always_inline void copy_registers(struct tacho_registers *to, const void *context) {
  *to = *(const struct tacho_registers *)context;
}

#endif
