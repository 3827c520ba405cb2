/* Offsets of the members that the recorder `follow` shows. C, and compiled on both sides. */
#ifndef TACHO_MEMBER_PLACES_H
#define TACHO_MEMBER_PLACES_H

#include <linux/types.h>

enum tacho_followed_sizes {
  TACHO_MOST_SHOWN = 8,    /* members */
  TACHO_MOST_POINTERS = 3, /* that are followed on the way to one */
};

/* The cookie of a probe: the number of the argument, from 1 on, and the kind of function. */
enum tacho_followed_cookie {
  TACHO_ARGUMENT = 7,
  TACHO_STARTS = 8, /* objects that it gets are followed from then on */
  TACHO_STOPS = 16, /* and no longer once it has returned */
};

struct tacho_member_place {
  __u32 pointers;               /* that are followed: the first is at[0] bytes into the object, the next
                                 * at[1] bytes into what that points to, ... */
  __u32 at[TACHO_MOST_POINTERS + 1]; /* behind the pointers': offset of the member */
  __u32 bytes;                  /* that hold it, 1 to 8; 0: there is no member */
  __u32 left, right;            /* shifts, in 64 bits, after which its bits alone are left */
  __u32 is_signed;
};

#endif
