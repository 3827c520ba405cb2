/* Strong definitions of the weak functions in tacho/event.h, linked into a user's program so that its user stacks are unwound.
 * Hidden, so that the verifier checks them with the caller's arguments, as static functions. Without a license section, which
 * the user's program has: libbpf allows one. */
#include "bpf/programs/stack_walk.h"

__hidden int tacho_walk_stack(void *context) {
  struct slot *slot = take_slot();
  if (!slot) return 0;
  if (read_user_registers(slot)) walk_and_write(context, slot, false);
  slot->busy = 0;
  return 0;
}

/* Writes the 0 that ends the frames, if there is room: the memory may hold frames of an earlier event. */
static __always_inline void end_frames(void *frames, __u32 at, __u32 bytes) {
  const __u64 nothing = 0;
  __u64 offset = at;
  /* Forced into a register: the verifier of Linux 6.1 does not apply a comparison to copies of the register. */
  __asm__ volatile("" : "+r"(offset));
  if (bytes >= WORD && offset <= bytes - WORD) bpf_probe_read_kernel(frames + offset, WORD, &nothing);
}

__hidden long tacho_user_stack(void *context, void *frames, __u32 bytes) {
  struct slot *slot = take_slot();
  long written = -1;
  end_frames(frames, 0, bytes); /* if the walk fails there are none */
  if (!slot) return -1;
  if (read_user_registers(slot) && walk_user_stack(slot, false)) {
    __u32 size = slot->walk.frames * WORD;
    if (size > bytes) size = bytes;
    if (bpf_probe_read_kernel(frames, size, slot->frames) == 0) {
      end_frames(frames, size, bytes);
      written = size;
    } else {
      end_frames(frames, 0, bytes);
    }
  }
  slot->busy = 0;
  return written;
}
