/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stacks in a map of the program's own, by a number that is made of their addresses.
 *
 * Before: recorder.h; STACK_FLAGS, flags of the map.
 */
#ifndef TACHO_STACK_NUMBERS_H
#define TACHO_STACK_NUMBERS_H

/* Stacks by number_of_frames(). */
struct frames {
  __u64 frames[USER_FRAMES]; /* up to the first 0 */
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, STACK_FLAGS);
  __uint(max_entries, 16384);
  __type(key, __u64);
  __type(value, struct frames);
} stacks SEC(".maps");

/* Room for a stack while its number is made. Programs on user functions can be put aside in the middle, and another one
 * run on their CPU. */
#define ROOMS 4
struct room {
  __u32 busy, pad;
  struct frames stack;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, ROOMS);
  __type(key, __u32);
  __type(value, struct room);
} rooms SEC(".maps");

static __always_inline struct room *take_room(void) {
  for (__u32 i = 0; i < ROOMS; ++i) {
    __u32 at = i;
    struct room *room = bpf_map_lookup_elem(&rooms, &at);
    if (room && __sync_val_compare_and_swap(&room->busy, 0, 1) == 0) return room;
  }
  return 0;
}

static __always_inline __u64 number_of_stack(struct room *room, long bytes) {
  __u64 number;
  if (bytes < 0) bytes = 0;
  if (bytes < (long)sizeof room->stack) room->stack.frames[(bytes / 8) & (USER_FRAMES - 1)] = 0;
  number = number_of_frames(room->stack.frames, USER_FRAMES);
  if (!number) return 0;
  if (!bpf_map_lookup_elem(&stacks, &number)) bpf_map_update_elem(&stacks, &number, &room->stack, BPF_NOEXIST);
  return number;
}

/* The number of the present stack; 0: there is none. `of_kernel`: the kernel's part of it. */
static __always_inline __u64 take_number(void *context, bool of_kernel) {
  struct room *room = take_room();
  __u64 number;
  if (!room) return 0;
  number = number_of_stack(room, of_kernel ? bpf_get_stack(context, &room->stack, sizeof room->stack, 0)
                                           : tacho_user_stack(context, &room->stack, sizeof room->stack));
  room->busy = 0;
  return number;
}

#endif
