/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The record that the task iterator (threads.bpf.c) writes for each thread, and bpf/thread_list.cc reads. */
#ifndef TACHO_THREAD_RECORD_H
#define TACHO_THREAD_RECORD_H

#include <linux/types.h>

#include "bpf/programs/saved_registers.h"

#define TACHO_THREAD_FRAMES 128
#define TACHO_THREAD_REGISTERS (sizeof(struct tacho_registers) / sizeof(__u64))

/* Which threads are written. */
enum tacho_thread_choice {
  TACHO_ALL_THREADS = 0,
  TACHO_THREADS_OF_PROCESSES = 1,
  TACHO_NAMED_THREADS = 2,
};

struct tacho_thread_settings {
  __u32 choice;          /* enum tacho_thread_choice */
  __u32 namespace_inode; /* of the reader's pid namespace; 0: the initial one */
};

struct tacho_thread_record {
  __u64 switches; /* voluntary and involuntary; unchanged between two reads: the thread did not run */
  __u64 registers[TACHO_THREAD_REGISTERS]; /* user registers at the last entry into the kernel; stale while it is on a CPU */
  __u32 pid, tid;   /* in the reader's pid namespace */
  __u32 state;      /* task_struct.__state and exit_state */
  __u32 flags;      /* PF_... */
  __u32 is_on_cpu;
  __u32 has_memory; /* 0: a kernel thread */
  __u32 frames;     /* of kernel[]; the rest of it is not written */
  __u32 kernel_tid; /* in the initial pid namespace */
  char comm[16];
  __u64 kernel[TACHO_THREAD_FRAMES];
};

#endif
