/* Walks of arm64 stacks by the BPF program's source (bpf/programs/walk_arm64.h), compiled for the machine of
 * the test. */
#ifndef TACHO_TEST_ARM64_WALK_H
#define TACHO_TEST_ARM64_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/unwind_row.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ARM64_WALK_MOST_FRAMES = 16 };

/* Code from `start` on, with one row; or of a module without a table. */
struct arm64_code {
  uint64_t start, size;
  struct tacho_unwind_row row;
  bool is_bare;
};

struct arm64_walk {
  const uint64_t* stack; /* all the memory that can be read */
  size_t words;
  uint64_t stack_at; /* its address */
  const struct arm64_code* code;
  size_t functions;
  uint64_t pc, sp, x29, x30;
  /* The result: */
  uint64_t frames[ARM64_WALK_MOST_FRAMES];
  uint32_t count, end; /* enum tacho_stack_end */
};

void walk_arm64_stack(struct arm64_walk* walk);

#ifdef __cplusplus
}
#endif

#endif
