/* One row of a compact unwind table: how the caller's frame is found, for all code from `pc` up to the next
 * row. C, because the unwinder (a BPF program) reads the rows that row_table.h makes. Of x86-64 and arm64,
 * whose stack pointer and frame pointer are sp and x29: here rsp and rbp stand for these, too. */
#ifndef TACHO_UNWIND_ROW_H
#define TACHO_UNWIND_ROW_H

#include <linux/types.h>

struct tacho_unwind_row {
  __u32 pc;  /* bytes behind the table's first address */
  __s16 cfa; /* a word count: 8 bytes each */
  __s8 rbp;  /* see below */
  __u8 kind; /* see below */
};

/* What `kind` says of the CFA, the stack pointer once the function has returned; on arm64 also of where x29
 * and the return address are. On x86-64 the return address is in the word below the CFA, except for
 * TACHO_UNWIND_SIGNAL. */
enum tacho_unwind_kind {
  /* 0 to 15: 8 * cfa above the register with this DWARF number. */
  TACHO_UNWIND_RBP = 6,
  TACHO_UNWIND_RSP = 7,
  TACHO_UNWIND_LAST_REGISTER = 15,
  TACHO_UNWIND_AT_RBP = 16, /* what the word 8 * cfa above rbp holds: main() that aligned its stack */
  TACHO_UNWIND_AT_RSP = 17, /* what the word 8 * cfa above rsp holds, and 8: stacks changed by assembly */
  /* 8 * cfa above rsp, and 8 more when the last four bits of the instruction pointer are at least `rbp`: an
   * entry of the procedure linkage table, which pushes a word on its way. */
  TACHO_UNWIND_PLT = 18,
  TACHO_UNWIND_SIGNAL = 19,  /* the kernel's signal frame is at rsp, with all registers */
  TACHO_UNWIND_END = 20,     /* no caller: _start, or a thread's first function */
  TACHO_UNWIND_NOTHING = 21, /* no function is described here */
  TACHO_UNWIND_OTHER = 22,   /* rules that a row cannot hold */
  /* 8 * cfa above rsp, and the return address is in the register `rbp` (a number of DWARF's): vfork(). */
  TACHO_UNWIND_RETURN_IN = 23,
  /* arm64: 8 * cfa above sp or x29; the return address alone is saved, and x29 is unchanged. */
  TACHO_UNWIND_LINK_RSP = 24,
  TACHO_UNWIND_LINK_RBP = 25,
  /* 32 to 63, arm64: 8 * cfa above sp; x29 is where `rbp` says, and the return address kind - 48 words above
     it: x29 is no frame pointer there, as in Rust's functions. */
  TACHO_UNWIND_APART = 32,
  TACHO_UNWIND_SIDE_BY_SIDE = 48,
  TACHO_UNWIND_LAST_APART = 63,
};

/* `rbp`, where the caller's rbp is: 0: still in rbp; below 0: in the word 8 * rbp below the CFA.
 * On arm64, where the frame record is (x29 and, above it, the return address), or for the LINK kinds the
 * return address: 0: they are still in x29 and x30; below 0: 8 * rbp below the CFA; above 0: 8 * (rbp - 1)
 * above the register of `kind`, since in a large frame they may be far below the CFA. */
enum tacho_unwind_rbp {
  TACHO_UNWIND_RBP_SAME = 0,
  /* Not on arm64: */
  TACHO_UNWIND_RBP_AT_RBP = 1, /* in the word that rbp points to */
  TACHO_UNWIND_RBP_LOST = 2,
};

/* A signal frame: words above rsp at the trampoline. There struct ucontext begins; on arm64 siginfo, and
 * ucontext behind it. */
enum tacho_unwind_signal_frame {
#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
  TACHO_UNWIND_SIGNAL_RBP = 68,
  TACHO_UNWIND_SIGNAL_LINK = 69, /* x30 */
  TACHO_UNWIND_SIGNAL_RSP = 70,
  TACHO_UNWIND_SIGNAL_RIP = 71,
#else
  TACHO_UNWIND_SIGNAL_RBP = 15,
  TACHO_UNWIND_SIGNAL_RSP = 20,
  TACHO_UNWIND_SIGNAL_RIP = 21,
#endif
};

#endif
