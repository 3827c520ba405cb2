/* Probes at the return of functions: while one waits, the return address on the stack is that of a trampoline
 * which the kernel has mapped for them. The kernel keeps the original one, with its place on the stack. */
#ifndef TACHO_RETURN_PROBES_H
#define TACHO_RETURN_PROBES_H

#include "bpf/programs/walked_mappings.h"

#define MOST_RETURNS 64 /* of a thread, as the kernel has it */
#define RETURN_CODE_SIZE 128
#define RETURN_CODE_PUSHES 3 /* words that it may have on the stack when it calls the kernel */
#define LONGEST_INSTRUCTION 15

/* Address of that code in the process; 0: none. It is at the start of a mapping. */
static __always_inline __u64 return_code_of(__u64 memory) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 area, code;
  if (!layout->knows_returns || memory == 0 || !read_kernel_word(memory + layout->mm_probe_area, &area) ||
      area == 0 || !read_kernel_word(area + layout->probe_area_address, &code))
    return 0;
  return code;
}

static __always_inline __u64 first_return(void) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 task, known;
  if (!read_kernel_word(bpf_get_current_task() + layout->task_probes, &task) || task == 0 ||
      !read_kernel_word(task + layout->probes_returns, &known))
    return 0;
  return known;
}

struct return_search {
  __u64 known, low, high, address, place;
};
static long look_at_return(__u32 index, struct return_search *search) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  const __u64 known = search->known;
  __u64 place;
  if (known == 0 || !read_kernel_word(known + layout->return_place, &place) || place > search->high) return 1;
  if (place >= search->low) {
    search->place = place;
    if (!read_kernel_word(known + layout->return_address, &search->address)) search->address = 0;
    return 1;
  }
  return !read_kernel_word(known + layout->return_next, &search->known);
}

/* The address to which the call returns whose return address is, or was, between `low` and `high` on the stack.
 * Inner calls come first. */
__noinline int tacho_return_to(struct slot *slot, __u64 low, __u64 high) {
  if (!slot) return 0;
  struct walk *walk = &slot->walk;
  struct return_search search = {
      .known = walk->next_return ? walk->next_return : first_return(), .low = low, .high = high};
  bpf_loop(MOST_RETURNS, look_at_return, &search, 0);
  if (search.address == 0) return 0;
  walk->next_return = search.known;
  walk->sp = search.place + WORD;
  walk->ip = search.address;
  walk->is_return = true;
  return 1;
}

/* The walk came to that code by a return address: goes on from the right one. */
static __always_inline bool return_past_probe(struct slot *slot) {
  struct walk *walk = &slot->walk;
  if (!walk->is_return || walk->range.module != TACHO_MODULE_OF_NOTHING || walk->ip != walk->range.start)
    return false;
  if (return_code_of(walk->memory) != walk->ip) return false;
  return tacho_return_to(slot, walk->sp - WORD, walk->sp - WORD) != 0;
}

/* Whether a call instruction is before an address: it may be a return address. */
static __always_inline bool is_behind_call(__u64 address) {
  __u64 code;
  if (!read_word(address - WORD, &code)) return false;
  return (code >> 24 & 0xff) == 0xe8 ||    /* call rel32 */
         (code >> 16 & 0xffff) == 0x15ff ||  /* call *disp32(%rip) */
         (code >> 48 & 0x38ff) == 0x10ff ||  /* call *register, call *(register) */
         (code >> 40 & 0x38ff) == 0x10ff ||  /* call *disp8(register) */
         (code >> 16 & 0x38ff) == 0x10ff ||  /* call *disp32(register) */
         (code >> 32 & 0x38ff) == 0x10ff ||  /* call *disp8(register, register) */
         (code >> 8 & 0x38ff) == 0x10ff;     /* call *disp32(register, register) */
}

/* The thread came to the probe at a function's begin, and the kernel has not set it back to the instruction yet. Linkers fill
 * up with the same byte, so only of a thread that has met probes. */
static __always_inline bool is_behind_breakpoint(const struct walk *walk) {
  __u64 code, caller, task;
  if (!read_kernel_word(bpf_get_current_task() + tacho_options.layout.task_probes, &task) || task == 0) return false;
  return read_word(walk->ip - WORD, &code) && code >> 56 == 0xcc && read_word(walk->sp, &caller) && is_behind_call(caller);
}

/* The kernel has forgotten the call: it wrote the right address where the last thing that this code pops is. */
static __always_inline bool return_by_stack(struct walk *walk) {
  for (int i = 0; i < RETURN_CODE_PUSHES; i++) {
    __u64 caller;
    if (!read_word(walk->sp + i * WORD, &caller)) return false;
    if (!is_behind_call(caller)) continue;
    walk->ip = caller;
    walk->sp += (i + 1) * WORD;
    walk->is_return = true;
    return true;
  }
  return false;
}

/* An instruction with a probe runs out of line, from a copy in the same mapping: continues as if it ran in its
 * place. */
static __always_inline bool go_to_place(struct walk *walk) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 task, copy, place;
  if (!read_kernel_word(bpf_get_current_task() + layout->task_probes, &task) || task == 0 ||
      !read_kernel_word(task + layout->probes_copy, &copy) || walk->ip - copy > LONGEST_INSTRUCTION ||
      !read_kernel_word(task + layout->probes_place, &place))
    return false;
  walk->ip = place + (walk->ip - copy);
  return true;
}

/* The sampled code is the kernel's: a function has returned to it, and it is about to return to the caller. Or else it is
 * that of a probe. */
static __always_inline bool leave_probe_code(struct slot *slot) {
  struct walk *walk = &slot->walk;
  if (return_code_of(walk->memory) != walk->range.start) return false;
  if (walk->ip - walk->range.start >= RETURN_CODE_SIZE) return go_to_place(walk);
  return tacho_return_to(slot, walk->sp - WORD, walk->sp + (RETURN_CODE_PUSHES - 1) * WORD) != 0 || return_by_stack(walk);
}

struct copy_search {
  struct tacho_stack_copy *copy;
  __u64 known, code, sp, size;
};
static long mend_return(__u32 index, struct copy_search *search) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  struct tacho_stack_copy *const copy = search->copy;
  __u64 place, address;
  if (search->known == 0 || !read_kernel_word(search->known + layout->return_place, &place) ||
      !read_kernel_word(search->known + layout->return_address, &address))
    return 1;
  const __u64 at = place - search->sp;
  if (at < search->size && at <= sizeof copy->bytes - WORD) {
    __u64 *const word = (__u64 *)(copy->bytes + at);
    if (*word == search->code) *word = address;
  }
  return !read_kernel_word(search->known + layout->return_next, &search->known);
}

/* The same in a copy of the stack, for the recorder, which continues there without the kernel. */
__noinline int tacho_mend_copy(struct slot *slot, __u64 sp, __u32 size) {
  if (!slot) return 0;
  const __u64 code = return_code_of(slot->walk.memory);
  if (code == 0) return 0;
  const __u32 key = slot->number;
  struct copy_search search = {.copy = bpf_map_lookup_elem(&tacho_copied, &key),
                               .known = first_return(),
                               .code = code,
                               .sp = sp,
                               .size = size};
  if (search.copy) bpf_loop(MOST_RETURNS, mend_return, &search, 0);
  return 0;
}

#endif
