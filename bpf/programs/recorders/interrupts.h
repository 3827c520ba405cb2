/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The waker of a thread: the current thread, or a timer or device whose interrupt handler runs in it. Include recorder.h first.
 */
#ifndef TACHO_INTERRUPTS_H
#define TACHO_INTERRUPTS_H

/* Numbers of handlers that run on this CPU: they may be nested. */
struct serving {
  __u32 timers, devices;
};
PER_CPU(serving_here, struct serving);

static __always_inline struct serving *serving(void) {
  __u32 only = 0;
  return bpf_map_lookup_elem(&serving_here, &only);
}

/* Two programs, at a handler's start and end. The end of a handler may be seen without its start, when the recording starts. */
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

/* Writes the waker's name: the thread's comm, or [timer] or [irq]; then returns false. */
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
