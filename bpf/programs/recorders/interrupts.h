/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Waker of a thread: another thread, or a timer or device whose interrupt hit the running thread. Include
 * recorder.h first.
 */
#ifndef TACHO_INTERRUPTS_H
#define TACHO_INTERRUPTS_H

/* What serves timers and devices on this CPU now. They may interrupt each other. */
struct serving {
  __u32 timers, devices;
};
PER_CPU(serving_here, struct serving);

static __always_inline struct serving *serving(void) {
  __u32 only = 0;
  return bpf_map_lookup_elem(&serving_here, &only);
}

/* A handler may end whose start was not seen, or not run at all. */
#define SERVES(hook_begin, hook_end, kind)                      \
  SEC(hook_begin) int kind##_begins(void *context) {            \
    struct serving *here = serving();                           \
    if (here) here->SERVED_##kind++;                            \
    return 1;                                                   \
  }                                                             \
  SEC(hook_end) int kind##_ends(void *context) {                \
    struct serving *here = serving();                           \
    if (here && here->SERVED_##kind) here->SERVED_##kind--;     \
    return 1;                                                   \
  }
#define SERVED_hrtimer timers
#define SERVED_timer timers
#define SERVED_device devices
SERVES("?tracepoint/timer/hrtimer_expire_entry", "?tracepoint/timer/hrtimer_expire_exit", hrtimer)
SERVES("?tracepoint/timer/timer_expire_entry", "?tracepoint/timer/timer_expire_exit", timer)
SERVES("?tracepoint/irq/irq_handler_entry", "?tracepoint/irq/irq_handler_exit", device)

/* The name of the waker. False: it is no thread, and is named by its kind. */
static __always_inline bool name_waker(char name[16]) {
  const struct serving *here = serving();
  if (here && (here->timers || here->devices)) {
    const char timer[16] = "[timer]", irq[16] = "[irq]";
    __builtin_memcpy(name, here->timers ? timer : irq, sizeof timer);
    return false;
  }
  bpf_get_current_comm(name, 16);
  return true;
}

#endif
