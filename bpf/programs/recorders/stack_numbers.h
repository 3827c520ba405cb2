/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A map of stacks by a number made from their addresses: like BPF_MAP_TYPE_STACK_TRACE, but without collisions that lose
 * stacks, and with user stacks unwound by tacho.
 *
 * To include it: first recorder.h, and define STACK_FLAGS, flags of the map.
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

/* Memory for a stack while its number is made. Several for each CPU, since a program on a uprobe can be preempted by another one. */
#define BUFFERS 4
struct buffer {
  __u32 busy, pad;
  struct frames stack;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, BUFFERS);
  __type(key, __u32);
  __type(value, struct buffer);
} buffers SEC(".maps");

static __always_inline struct buffer *take_buffer(void) {
  for (__u32 i = 0; i < BUFFERS; ++i) {
    __u32 at = i;
    struct buffer *buffer = bpf_map_lookup_elem(&buffers, &at);
    if (buffer && __sync_val_compare_and_swap(&buffer->busy, 0, 1) == 0) return buffer;
  }
  return 0;
}

/* Adds the stack, of `bytes`, to the map, and returns its number; 0: it is empty. */
static __always_inline __u64 number_of_stack(struct buffer *buffer, long bytes) {
  __u64 number;
  if (bytes < 0) bytes = 0;
  if (bytes < (long)sizeof buffer->stack) buffer->stack.frames[(bytes / 8) & (USER_FRAMES - 1)] = 0;
  number = number_of_frames(buffer->stack.frames, USER_FRAMES);
  if (!number) return 0;
  if (!bpf_map_lookup_elem(&stacks, &number)) bpf_map_update_elem(&stacks, &number, &buffer->stack, BPF_NOEXIST);
  return number;
}

/* The number of the current kernel or user stack; 0: there is none. */
static __always_inline __u64 take_number(void *context, bool of_kernel) {
  struct buffer *buffer = take_buffer();
  __u64 number;
  if (!buffer) return 0;
  number = number_of_stack(buffer, of_kernel ? bpf_get_stack(context, &buffer->stack, sizeof buffer->stack, 0)
                                             : tacho_user_stack(context, &buffer->stack, sizeof buffer->stack));
  buffer->busy = 0;
  return number;
}

#endif
