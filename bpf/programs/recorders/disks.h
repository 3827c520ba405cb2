/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The disks of the host by number, set by the recorder: tracepoints have numbers only. */
#ifndef TACHO_DISKS_H
#define TACHO_DISKS_H

#include <linux/types.h>

#define TACHO_MOST_DISKS 64
#define TACHO_DISK_NAME 32 /* with its end */

struct tacho_disk {
  __u32 dev; /* as in the kernel: major number << 20 | minor number; 0: no more disks */
  char name[TACHO_DISK_NAME];
};

#endif
