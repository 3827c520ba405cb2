/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The system call in which a task is, and its arguments: from the registers that the kernel saved when the task entered it.
 * Include recorder.h first.
 */
#ifndef TACHO_SYSTEM_CALL_H
#define TACHO_SYSTEM_CALL_H

#include "bpf/programs/saved_registers.h"

struct system_call {
  long number;
  __u64 first, second, third; /* arguments */
};

#define READ_SAVED(to, saved, member) \
  (!bpf_probe_read_kernel(to, sizeof *(to), (void *)(saved) + __builtin_offsetof(struct tacho_registers, member)))

/* False: the task is in no system call of a 64-bit program, or the kernel (before 5.15) cannot say. */
static __always_inline bool read_call(struct system_call *call, struct task_struct *task) {
  const __u32 kernel_thread = 0x00200000; /* PF_KTHREAD */
  const void *saved;
  if ((task->flags & kernel_thread) || !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) return false;
  saved = (const void *)bpf_task_pt_regs(task);
#ifdef __TARGET_ARCH_arm64
  struct {
    __u64 pstate, first;
    __s32 number;
  } entered;
  struct {
    __u64 second, third;
  } others;
  if (!READ_SAVED(&entered, saved, pstate) || !READ_SAVED(&others, saved, x[1])) return false;
  *call = (struct system_call){entered.number, entered.first, others.second, others.third};
  return entered.number >= 0 && !TACHO_IS_32_BIT(&entered);
#else
  struct {
    __u64 rdx, rsi, rdi;
    __s64 orig_rax;
    __u64 rip, cs;
  } entered;
  if (!READ_SAVED(&entered, saved, rdx)) return false;
  *call = (struct system_call){entered.orig_rax, entered.rdi, entered.rsi, entered.rdx};
  return entered.orig_rax >= 0 && !TACHO_IS_32_BIT(&entered);
#endif
}

#endif
