/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The waker of a thread: the current thread, or a timer or device whose interrupt handler runs in it. Include recorder.h first.
 */
#ifndef TACHO_INTERRUPTS_H
#define TACHO_INTERRUPTS_H

/* Which kinds of handlers run on this CPU now. Of one kind only an hrtimer of a softirq can be interrupted by another: the rest of
 * it then counts for the current thread. */
struct serving {
  bool hrtimer, timer, device;
};
PER_CPU(serving_here, struct serving);

static __always_inline struct serving *serving(void) {
  __u32 only = 0;
  return bpf_map_lookup_elem(&serving_here, &only);
}

/* Two programs, at a handler's end and start. Programs are attached in this order: attached between the start and the end of a
 * handler, the other order would see the start alone. Flags and not counts, so that an unseen end is made good by the next one. */
#define SERVES(hook_begin, hook_end, kind)          \
  SEC(hook_end) int kind##_ends(void *context) {    \
    struct serving *here = serving();               \
    if (here) here->kind = false;                   \
    return 1;                                       \
  }                                                 \
  SEC(hook_begin) int kind##_begins(void *context) {\
    struct serving *here = serving();               \
    if (here) here->kind = true;                    \
    return 1;                                       \
  }
SERVES("?tp_btf/hrtimer_expire_entry", "?tp_btf/hrtimer_expire_exit", hrtimer)
SERVES("?tp_btf/timer_expire_entry", "?tp_btf/timer_expire_exit", timer)
SERVES("?tp_btf/irq_handler_entry", "?tp_btf/irq_handler_exit", device)

/* Writes the waker's name: the thread's comm, or [timer] or [irq]; then returns false. */
static __always_inline bool name_waker(char name[16]) {
  const struct serving *here = serving();
  if (here && (here->hrtimer || here->timer || here->device)) {
    const char timer[16] = "[timer]", irq[16] = "[irq]";
    __builtin_memcpy(name, here->hrtimer || here->timer ? timer : irq, sizeof timer);
    return false;
  }
  bpf_get_current_comm(name, 16);
  return true;
}

#endif
