/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options of recorders of off-CPU time, and which waits they choose. Include recorder.h first.
 */
#ifndef TACHO_OFF_CPU_H
#define TACHO_OFF_CPU_H

const volatile __u64 min_us HELP("only off-CPU times of at least N microseconds");
const volatile bool preempted HELP("also runnable threads that were preempted");
const volatile bool uninterruptible HELP("only uninterruptible waits (state D), as for a disk");

/* Bits of prev_state in sched:sched_switch. */
enum state { R = 0, S = 1, D = 2, T = 4, t = 8, X = 16, Z = 32, P = 64, I = 128 };

/* The state in which the current thread leaves the CPU. The kernel sets a bit above these if it was preempted: that is R. */
static __always_inline enum state state_at(const struct trace_event_raw_sched_switch *context) {
  return context->prev_state & 0xff;
}

/* The thread has ended. */
static __always_inline bool is_dead(enum state state) { return state == X || state == Z; }

/* Whether the options choose waits in this state. Not idle kernel workers (state I). */
static __always_inline bool is_state_chosen(enum state state) {
  return state < X && (state != R || preempted) && (!uninterruptible || state == D);
}
/* Whether the wait that begins now is recorded. Not of the idle thread (0). */
static __always_inline bool is_wait_chosen(__u32 thread, enum state state) {
  return thread && is_state_chosen(state) && is_wanted_later();
}

#endif
