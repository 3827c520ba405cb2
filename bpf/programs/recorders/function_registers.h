/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the calling convention of the machine says of the registers at a function's entry and after its return. Include recorder.h
 * first.
 */
#ifndef TACHO_FUNCTION_REGISTERS_H
#define TACHO_FUNCTION_REGISTERS_H

/* ARGUMENT_REGISTERS: the first six integer arguments. POPPED_BY_RETURN: bytes of the stack. returns_to(): the return address, at
 * the entry. */
#ifdef __TARGET_ARCH_arm64
typedef const volatile struct user_pt_regs function_registers;
#define ARGUMENT_REGISTERS(r) (r)->regs[0], (r)->regs[1], (r)->regs[2], (r)->regs[3], (r)->regs[4], (r)->regs[5]
#define POPPED_BY_RETURN 0
static __always_inline __u64 returns_to(struct pt_regs *context) { return PT_REGS_RET(context); }
#else
typedef const volatile struct pt_regs function_registers;
#define ARGUMENT_REGISTERS(r) (r)->rdi, (r)->rsi, (r)->rdx, (r)->rcx, (r)->r8, (r)->r9
#define POPPED_BY_RETURN 8
static __always_inline __u64 returns_to(struct pt_regs *context) {
  __u64 back = 0;
  bpf_probe_read_user(&back, sizeof back, (const void *)PT_REGS_SP(context));
  return back;
}
#endif

/* The stack pointer that the function had at its entry, after its return. */
#define STACK_AT_ENTRY(context) (PT_REGS_SP(context) - POPPED_BY_RETURN)

#endif
