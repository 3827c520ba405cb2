/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user registers of a thread, as the kernel saves them at the base of its kernel stack (struct pt_regs of each machine) when
 * the thread enters the kernel. C, compiled for BPF programs and for the recorder. */
#ifndef TACHO_SAVED_REGISTERS_H
#define TACHO_SAVED_REGISTERS_H

#include <linux/types.h>

#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)

struct tacho_registers {
  __u64 x[31], sp, pc, pstate;
  __u64 first_argument; /* orig_x0 */
  __s32 call;           /* syscallno */
  __u32 unused;
};
#define TACHO_USER_IP(registers) ((registers)->pc)
#define TACHO_USER_SP(registers) ((registers)->sp)
#define TACHO_USER_FP(registers) ((registers)->x[29])
#define TACHO_USER_EXTRA(registers) ((registers)->x[30]) /* a leaf function returns there */
#define TACHO_PSTATE_MODE 0xf /* 0: user; idle threads have all zeros */
#define TACHO_PSTATE_32_BIT 0x10
#define TACHO_IS_USER(registers) (((registers)->pstate & TACHO_PSTATE_MODE) == 0 && (registers)->pc != 0)
#define TACHO_IS_32_BIT(registers) (((registers)->pstate & TACHO_PSTATE_32_BIT) != 0)
#define TACHO_CALL_NUMBER(registers) ((long)(registers)->call) /* -1: the kernel was entered otherwise */
#define TACHO_CALL_ARGUMENTS(registers) \
  (registers)->first_argument, (registers)->x[1], (registers)->x[2], (registers)->x[3], (registers)->x[4], (registers)->x[5]

#else /* x86-64 */

struct tacho_registers {
  __u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, rflags, rsp, ss;
};
#define TACHO_CODE_32 0x23 /* the code segment of 32-bit programs */
#define TACHO_USER_IP(registers) ((registers)->rip)
#define TACHO_USER_SP(registers) ((registers)->rsp)
#define TACHO_USER_FP(registers) ((registers)->rbp)
#define TACHO_USER_EXTRA(registers) ((registers)->rbx) /* some functions find their frame by it */
#define TACHO_IS_USER(registers) (((registers)->cs & 3) == 3)
#define TACHO_IS_32_BIT(registers) ((registers)->cs == TACHO_CODE_32)
#define TACHO_CALL_NUMBER(registers) ((long)(registers)->orig_rax) /* -1: the kernel was entered otherwise */
#define TACHO_CALL_ARGUMENTS(registers) \
  (registers)->rdi, (registers)->rsi, (registers)->rdx, (registers)->r10, (registers)->r8, (registers)->r9

#endif
#endif
