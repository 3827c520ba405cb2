/* The map value of pid_numbers.bpf.c, read by bpf/attach/pid_numbers.cc. */
#ifndef TACHO_PID_NUMBERS_H
#define TACHO_PID_NUMBERS_H

#include <linux/types.h>

/* A thread's pid and tid in the recorder's pid namespace; 0: it is outside. */
struct tacho_own_numbers {
  __u32 process, thread;
};

#endif
