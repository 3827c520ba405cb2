/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Disk names by device number, set by tacho-record: tracepoints have only the number. */
#ifndef TACHO_DISKS_H
#define TACHO_DISKS_H

#include <linux/types.h>

#define TACHO_MOST_DISKS 64
#define TACHO_DISK_NAME 32 /* bytes, with the NUL */

struct tacho_disk {
  __u32 dev; /* the kernel's: major << 20 | minor; 0: after the last disk */
  char name[TACHO_DISK_NAME];
};

#endif
