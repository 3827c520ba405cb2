/* Replaces tacho/event.h's weak functions when a user's program is to have its user stacks unwound. Hidden: the
 * kernel then verifies them with their arguments, as it does static functions. The license is that of the program,
 * which libbpf wants only once. */
#include "bpf/programs/stack_walk.h"

__hidden int tacho_walk_stack(void *context) {
  struct slot *slot = take_slot();
  if (!slot) return 0;
  if (read_user_registers(slot)) walk_and_write(context, slot, false);
  slot->busy = 0;
  return 0;
}

/* Where the frames end when there is room: readers know no other end, and the memory may hold an earlier event's. */
static __always_inline void end_frames(void *frames, __u32 at, __u32 bytes) {
  const __u64 nothing = 0;
  __u64 place = at;
  /* In a register of its own: Linux 6.1 does not track comparisons of copies. */
  __asm__ volatile("" : "+r"(place));
  if (bytes >= WORD && place <= bytes - WORD) bpf_probe_read_kernel(frames + place, WORD, &nothing);
}

__hidden long tacho_user_stack(void *context, void *frames, __u32 bytes) {
  struct slot *slot = take_slot();
  long written = -1;
  end_frames(frames, 0, bytes); /* until there are some, and when there are none */
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
