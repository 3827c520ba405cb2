/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rate= of waits. The cost of a wait is mostly that of its stack, so what is recorded is chosen when a wait begins, at random: of a
 * thread that waits often one of 2^n waits. Its event has 2^n times its time as weight. Each wait of LONG_NS has an event, perhaps
 * without its user stack, since chance is no estimate of a few long ones. Include this in place of recorder.h.
 */
#ifndef TACHO_WAIT_SAMPLING_H
#define TACHO_WAIT_SAMPLING_H

#define RATE_HELP "about N waits a second have events and stand for the others: fewer of threads that wait often"
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/unseen_ends.h"

#define SLOTS 16 /* of a second, in which waits are counted */
#define SLOT_NS (1000000000ULL / SLOTS)
#define LONG_NS SLOT_NS
#define EACH_UNIT 256
#define MOST_IN_2 20

/* Of one thread. */
struct wait_sampling {
  __u64 slot;
  __u64 skipped_ns;      /* waits without events since its last event: their time */
  __u32 skipped;         /* and number */
  __u32 before, in_slot; /* waits in the slot before, and in this one */
  __u32 one_in;          /* of such waits as this one, one in so many has an event; 0: this has none because of the rate */
};

/* How many waits of a thread have events in a slot, in 1/EACH_UNIT; 0: all. */
__u64 waits_of_each = 0;
__u64 sampled_slot = 0, sampled_in_slot = 0;

static __always_inline __u64 most_a_second(void) { return rate ? rate : tacho_most_a_second; }
static __always_inline __u64 most_in_slot(void) { return most_a_second() > SLOTS ? most_a_second() / SLOTS : 1; }

/* Fewer waits of each thread if there were too many events in the last slot, more if there were too few. */
static __always_inline void adapt_sampling(__u64 slot) {
  __u64 sampled = sampled_in_slot, most = most_in_slot(), each = waits_of_each;
  if (slot == sampled_slot) return;
  sampled_slot = slot;
  sampled_in_slot = 0;
  if (sampled > most) {
    each = (each ? each : most * EACH_UNIT) * most / sampled;
    waits_of_each = each ? each : 1;
  } else if (sampled < most / 2) {
    waits_of_each = each < most * EACH_UNIT ? each * 2 : 0;
  }
}

/* One in 2^n waits of the thread is to have an event. */
static __always_inline __u32 power_of(struct wait_sampling *of, __u64 slot) {
  __u64 each = waits_of_each, busy;
  __u32 power = 0;
  if (slot != of->slot) {
    of->before = slot == of->slot + 1 ? of->in_slot : 0;
    of->in_slot = 0;
    of->slot = slot;
  }
  ++of->in_slot;
  busy = (__u64)(of->in_slot > of->before ? of->in_slot : of->before) * EACH_UNIT;
  while (each && power < MOST_IN_2 && each << power < busy) ++power;
  return power;
}

/* Whether a wait that begins is recorded. A thread's number of context switches makes it random, so recorders choose the same ones. */
static __always_inline bool begin_sampling(struct wait_sampling *of, struct task_struct *task, __u64 now) {
  __u32 power, random;
  of->one_in = 1;
  if (!most_a_second()) return true;
  adapt_sampling(now / SLOT_NS);
  power = power_of(of, now / SLOT_NS);
  random = ((__u32)task->pid + (__u32)(task->nvcsw + task->nivcsw) * 0x9e3779b1) * 0x85ebca6b;
  of->one_in = 0;
  if (power && random >> (32 - power)) return false;
  if (__sync_fetch_and_add(&sampled_in_slot, 1) >= 2 * most_in_slot()) return false;
  of->one_in = 1 << power;
  return true;
}

static __always_inline bool is_long(__u64 ns) { return ns >= LONG_NS; }

/* Whether a wait that has ended has an event. */
static __always_inline bool is_in_sample(const struct wait_sampling *of, __u64 ns) { return of->one_in || is_long(ns); }
static __always_inline __u64 weight_of(const struct wait_sampling *of, __u64 ns) { return is_long(ns) || !of->one_in ? ns : ns * of->one_in; }

/* The wait of `ns` has no event. */
static __always_inline void skip(struct wait_sampling *of, __u64 ns) {
  ++of->skipped;
  of->skipped_ns += ns;
}

/* close_unseen() of a wait that would have had an event. */
static __always_inline void close_unseen_sampled(__u64 *since_ns, const struct wait_sampling *of, __u64 least_us) {
  if (of->one_in)
    close_unseen(since_ns, least_us);
  else
    take_start(since_ns);
}

#endif
