/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs of syscall and syscount. Include recorder.h first, and define enter(number) and leave(context, number, returned).
 */
#ifndef TACHO_SYSCALLS_H
#define TACHO_SYSCALLS_H

#define NO_CALL any
#include "bpf/programs/recorders/syscall_names.h"

/* An in-flight call. */
struct entry {
  __u64 time_ns, cgroup;
  __u32 call, process;
};
IN_FLIGHT(entries, struct entry);

/* Whether the call ends the thread and so never returns. */
static __always_inline bool ends_thread(long number) { return number == exit || number == exit_group; }

static __always_inline int enter(long number);
static __always_inline int leave(void *context, long number, long returned);

SEC("tp_btf/sys_enter") ALTERNATIVE(enter)
int BPF_PROG(enter_btf, struct pt_regs *registers, long number) { return enter(number); }

SEC("tracepoint/raw_syscalls/sys_enter") ALTERNATIVE(enter)
int enter_tracepoint(struct trace_event_raw_sys_enter *context) { return enter(context->id); }

/* Not tp_btf: stacks would start with frames of the BPF program. */
SEC("tracepoint/raw_syscalls/sys_exit")
int leave_tracepoint(struct trace_event_raw_sys_exit *context) { return leave(context, context->id, context->ret); }

#endif
