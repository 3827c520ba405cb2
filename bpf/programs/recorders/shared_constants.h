/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Types of the constants that tacho-record sets in recorders before it loads them: C, compiled on both sides. */
#ifndef TACHO_SHARED_CONSTANTS_H
#define TACHO_SHARED_CONSTANTS_H

#include <linux/types.h>

/* Disk names by device number, for bio: tracepoints have only the number. */
#define TACHO_MOST_DISKS 64
#define TACHO_DISK_NAME 32 /* bytes, with the NUL */

struct tacho_disk {
  __u32 dev; /* the kernel's: major << 20 | minor; 0: after the last disk */
  char name[TACHO_DISK_NAME];
};

/* The members that follow shows. */
enum tacho_followed_sizes {
  TACHO_MOST_SHOWN = 8,    /* members */
  TACHO_MOST_POINTERS = 3, /* dereferenced on the way to one */
  TACHO_MOST_ARGUMENTS = 6, /* registers in which the object is looked for */
};

/* Bits of a probe's cookie. */
enum tacho_followed_cookie {
  TACHO_ARGUMENT = 7, /* mask of the argument's number, from 1 on */
  TACHO_STARTS = 8,   /* objects are followed from a call of this function on */
  TACHO_STOPS = 16,   /* and until this function returns */
};

struct tacho_member_offset {
  __u32 pointers;                    /* number of pointers to dereference */
  __u32 at[TACHO_MOST_POINTERS + 1]; /* offset of the first pointer in the object, of the next one in its target, ..., and of
                                      * the member in the last target */
  __u32 bytes;                       /* to read, 1 to 8; 0: no member */
  __u32 left, right;                 /* shifts of the 64-bit value that remove the bits around a bit field */
  __u32 is_signed;
};

#endif
