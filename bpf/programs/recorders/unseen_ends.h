/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits and calls whose end the kernel did not trace, as happens for some context switches: the thread begins another one, or
 * leaves the CPU again, while they are open. How long they took is unknown, so they are counted as lost. Include recorder.h first.
 */
#ifndef TACHO_UNSEEN_ENDS_H
#define TACHO_UNSEEN_ENDS_H

__u64 tacho_unseen_ends = 0; /* number of such waits and calls */

static __always_inline void count_unseen_end(void) {
  if (tacho_is_switched && !*(volatile __u32 *)&tacho_is_on) return;
  if (is_taken()) __sync_fetch_and_add(&tacho_unseen_ends, 1);
}

/* The thread is in no wait or call any more. `since_ns`: the start of the one that is open, if it is not 0. It is
 * counted only if it began at least `least_us` ago: shorter ones are not recorded anyway. */
static __always_inline void close_unseen(__u64 *since_ns, __u64 least_us) {
  __u64 since = take_start(since_ns);
  if (since && elapsed_ns(since, bpf_ktime_get_ns()) / 1000 >= least_us) count_unseen_end();
}

#endif
