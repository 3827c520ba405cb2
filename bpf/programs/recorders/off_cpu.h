/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which of the times that threads are off the CPU are meant: what recorders of such times have in common. Before: recorder.h.
 */
#ifndef TACHO_OFF_CPU_H
#define TACHO_OFF_CPU_H

const volatile __u64 min_us HELP("only times off the CPU that last so long, in microseconds");
const volatile bool preempted HELP("also threads that were put aside while they could run");
const volatile bool uninterruptible HELP("only waits in state D, as for a disk");

/* The kernel's numbers, as in sched:sched_switch. */
enum state { R = 0, S = 1, D = 2, T = 4, t = 8, X = 16, Z = 32, P = 64, I = 128 };

/* In which state the thread leaves that runs now. A bit above these says that it was put aside: that is R. */
static __always_inline enum state state_at(const struct trace_event_raw_sched_switch *context) {
  return context->prev_state & 0xff;
}

/* The thread ends, and will not come back. */
static __always_inline bool is_dead(enum state state) { return state == X || state == Z; }

/* Whether such a time is meant. Idle CPUs, and the kernel's idle workers (state I), wait for nothing. */
static __always_inline bool is_state_meant(enum state state) {
  return state < X && (state != R || preempted) && (!uninterruptible || state == D);
}
/* The one that begins now. */
static __always_inline bool is_meant(__u32 thread, enum state state) {
  return thread && is_state_meant(state) && is_wanted_later();
}

#endif
