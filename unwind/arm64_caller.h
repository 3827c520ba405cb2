/* Unwind rows of arm64 applied to a frame: where its caller's frame is. C, for the BPF program that walks
 * stacks and for the recorder, which finishes walks from copies of stacks. */
#ifndef TACHO_ARM64_CALLER_H
#define TACHO_ARM64_CALLER_H

#ifndef __cplusplus
#include <stdbool.h>
#endif

#include <linux/types.h>

#include "unwind/unwind_row.h"

struct tacho_arm64_frame {
  __u64 sp, x29;
  bool is_sp_known; /* false: sp is at least that; its callee was found by frame pointer */
};

struct tacho_arm64_caller {
  __u64 sp;       /* once its callee has returned */
  __u64 link_at;  /* where the return address is in memory; 0: in x30 */
  __u64 frame_at; /* the same of the caller's x29; 0: in x29 */
};

static inline bool tacho_has_arm64_caller(__u32 kind) {
  return kind == TACHO_UNWIND_RSP || kind == TACHO_UNWIND_RBP || kind == TACHO_UNWIND_LINK_RSP ||
         kind == TACHO_UNWIND_LINK_RBP || (kind >= TACHO_UNWIND_APART && kind <= TACHO_UNWIND_LAST_APART);
}

/* `kind` (for which there is a caller), `cfa` and `place`: of the row. False: the row needs sp, which is not
 * known. */
static inline __attribute__((always_inline)) bool tacho_find_arm64_caller(
    __u32 kind, __s16 cfa, __s8 place, const struct tacho_arm64_frame* frame,
    struct tacho_arm64_caller* caller) {
  const __s64 word = 8;
  const __s64 saved = word * (place < 0 ? cfa + place : place - 1); /* from the base on */
  const bool is_apart = kind >= TACHO_UNWIND_APART,
             is_alone = kind == TACHO_UNWIND_LINK_RSP || kind == TACHO_UNWIND_LINK_RBP;
  const bool has_record = place != 0 && !is_apart && !is_alone;
  const __s64 link = is_apart     ? word * ((__s64)kind - TACHO_UNWIND_SIDE_BY_SIDE)
                     : has_record ? word
                                  : 0; /* above x29 */
  __u64 base = frame->x29;
  if (kind != TACHO_UNWIND_RBP && kind != TACHO_UNWIND_LINK_RBP) {
    /* A function that saves a frame record sets x29 to its address. */
    base = frame->is_sp_known ? frame->sp : frame->x29 - saved;
    if (!frame->is_sp_known && (!has_record || base < frame->sp)) return false;
  }
  caller->sp = base + word * cfa;
  caller->frame_at = has_record || is_apart ? base + saved : 0;
  caller->link_at = place == 0 ? 0 : base + saved + link;
  return true;
}

#endif
