#define __TARGET_ARCH_arm64
#include "tests/bpf/unwinder/arm64_walk.h"

#include <linux/types.h>
#include <string.h>

/* What bpf_helpers.h and pid_namespace.h declare for programs; here helpers are functions. */
#define __BPF_HELPERS__
#define TACHO_PID_NAMESPACE_H
#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, type) __typeof__(type) *name
#define __array(name, type) __typeof__(type) *name[]
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))

struct user_pt_regs {
  __u64 regs[31], sp, pc, pstate;
};

static const struct arm64_walk *current;

static long bpf_probe_read_user(void *to, __u32 size, const void *from) {
  const __u64 at = (__u64)from - current->stack_at, bytes = current->words * sizeof *current->stack;
  if (at >= bytes || bytes - at < size) return -1;
  memcpy(to, (const char *)current->stack + at, size);
  return 0;
}
static long bpf_probe_read_kernel(void *to, __u32 size, const void *from) { return -1; }
static void *bpf_map_lookup_elem(void *map, const void *key) { return 0; }
static long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags) { return -1; }
static long bpf_map_delete_elem(void *map, const void *key) { return -1; }
static long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags) { return -1; }
static __u64 bpf_get_current_task(void) { return 0; }
static __u64 bpf_get_current_pid_tgid(void) { return 0; }
static __u64 tacho_numbers_of(const void *task, __u32 inode) { return 0; }

#include "bpf/programs/walk_arm64.h"

static const struct arm64_code *code_at(const struct arm64_walk *in, __u64 address) {
  for (size_t i = 0; i < in->functions; i++)
    if (address - in->code[i].start < in->code[i].size) return &in->code[i];
  return 0;
}

static int step(const struct arm64_walk *in, struct slot *slot) {
  struct walk *walk = &slot->walk;
  const struct arm64_code *code = code_at(in, walk->ip - (walk->is_return ? 1 : 0));
  __u64 row;
  if (!code && walk->is_guess) return ends(walk, TACHO_END_NO_RULE);
  slot->frames[walk->frames++] = walk->ip;
  if (!code) return ends(walk, TACHO_END_NO_MAPPING);
  if (walk->frames == ARM64_WALK_MOST_FRAMES) return ends(walk, TACHO_END_CUT);
  if (code->is_bare) return tacho_guess(slot, TACHO_END_COUNT);
  memcpy(&row, &code->row, sizeof row);
  return tacho_follow(slot, row);
}

void walk_arm64_stack(struct arm64_walk *in) {
  static struct slot slot;
  memset(&slot, 0, sizeof slot);
  current = in;
  slot.walk.ip = in->pc;
  slot.walk.sp = in->sp;
  slot.walk.bp = in->x29;
  slot.walk.link = in->x30;
  slot.walk.is_bp_known = slot.walk.is_sp_known = slot.walk.is_link_known = true;
  while (step(in, &slot) == 0) continue;
  in->count = slot.walk.frames;
  in->end = slot.walk.end;
  memcpy(in->frames, slot.frames, in->count * sizeof *in->frames);
}
