/* Stacks with uprobes and uretprobes. A uretprobe replaces the return address on the stack by that of a trampoline, which is in
 * a mapping of the kernel's (xol_area, execute out of line). The original address is in the task's list of return_instances,
 * with its stack address. */
#ifndef TACHO_URETPROBES_H
#define TACHO_URETPROBES_H

#ifdef __TARGET_ARCH_arm64
#include "bpf/programs/walk_arm64.h"
#else
#include "bpf/programs/walk_x86.h"
#endif

#define MOST_RETURNS 64 /* of a thread, as the kernel has it */
#define TRAMPOLINE_SIZE 128
#define TRAMPOLINE_PUSHES 3 /* most words that it has pushed when it enters the kernel */

/* Address of the trampoline, at the start of the xol area; 0: the process has none. */
static __always_inline __u64 trampoline_of(__u64 memory) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 area, code;
  if (!layout->has_uprobes || memory == 0 || !read_kernel_word(memory + layout->mm_xol_area, &area) ||
      area == 0 || !read_kernel_word(area + layout->xol_area_address, &code))
    return 0;
  return code;
}

static __always_inline __u64 first_return(void) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 utask, instance;
  if (!read_kernel_word(bpf_get_current_task() + layout->task_utask, &utask) || utask == 0 ||
      !read_kernel_word(utask + layout->utask_returns, &instance))
    return 0;
  return instance;
}

struct return_search {
  __u64 instance, low, high, address, stack;
};
static long check_return(__u32 index, struct return_search *search) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  const __u64 instance = search->instance;
  __u64 stack;
  if (instance == 0 || !read_kernel_word(instance + layout->return_stack, &stack) || stack > search->high) return 1;
  if (stack >= search->low) {
    search->stack = stack;
    if (!read_kernel_word(instance + layout->return_address, &search->address)) search->address = 0;
    return 1;
  }
  return !read_kernel_word(instance + layout->return_next, &search->instance);
}

/* Returns by the return_instance whose stack address is from `low` to `high`. The list has inner calls first. */
__noinline int tacho_return_to(struct slot *slot, __u64 low, __u64 high) {
  if (!slot) return 0;
  struct walk *walk = &slot->walk;
  struct return_search search = {
      .instance = walk->next_return ? walk->next_return : first_return(), .low = low, .high = high};
  bpf_loop(MOST_RETURNS, check_return, &search, 0);
  if (search.address == 0) return 0;
  walk->next_return = search.instance;
  walk->sp = search.stack + RETURN_SLOT;
  walk->ip = search.address;
  walk->is_return = true;
  return 1;
}

/* If the return address is the trampoline: replaces it by the original one. */
static __always_inline bool skip_trampoline(struct slot *slot) {
  struct walk *walk = &slot->walk;
  if (!walk->is_return || walk->range.module != TACHO_MODULE_OF_NO_FILE || walk->ip != walk->range.start)
    return false;
  if (trampoline_of(walk->memory) != walk->ip) return false;
  return tacho_return_to(slot, walk->sp - RETURN_SLOT, walk->sp - RETURN_SLOT) != 0;
}

/* Returns from the trampoline after its return_instance was removed: the kernel has written the original address to the stack,
 * where the trampoline's last instruction pops it. */
static __always_inline bool return_by_stack(struct walk *walk) {
  for (int i = 0; i < TRAMPOLINE_PUSHES; i++) {
    __u64 caller;
    if (!read_word(walk->sp + i * WORD, &caller)) return false;
    if (!is_return_address(caller)) continue;
    walk->ip = caller;
    walk->sp += (i + 1) * WORD;
    walk->is_return = true;
    return true;
  }
  return false;
}

/* If ip is in the copy of an instruction with a uprobe: moves it to the original instruction. */
static __always_inline bool leave_copied_instruction(struct walk *walk) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 utask, copy, original;
  if (!read_kernel_word(bpf_get_current_task() + layout->task_utask, &utask) || utask == 0 ||
      !read_kernel_word(utask + layout->utask_xol_address, &copy) || walk->ip - copy > LONGEST_INSTRUCTION ||
      !read_kernel_word(utask + layout->utask_address, &original))
    return false;
  walk->ip = original + (walk->ip - copy);
  return true;
}

/* If the sampled code is in the xol area: returns from the trampoline, or moves to the original of a copied instruction. */
static __always_inline bool leave_xol_area(struct slot *slot) {
  struct walk *walk = &slot->walk;
  if (trampoline_of(walk->memory) != walk->range.start) return false;
  if (walk->ip - walk->range.start >= TRAMPOLINE_SIZE) return leave_copied_instruction(walk);
  return tacho_return_to(slot, walk->sp - RETURN_SLOT, walk->sp + (TRAMPOLINE_PUSHES - 1) * WORD) != 0 || return_by_stack(walk);
}

struct copy_search {
  struct tacho_stack_copy *copy;
  __u64 instance, trampoline, sp, size;
};
static long restore_return(__u32 index, struct copy_search *search) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  struct tacho_stack_copy *const copy = search->copy;
  __u64 stack, address;
  if (search->instance == 0 || !read_kernel_word(search->instance + layout->return_stack, &stack) ||
      !read_kernel_word(search->instance + layout->return_address, &address))
    return 1;
  const __u64 at = stack - search->sp;
  if (at < search->size && at <= sizeof copy->bytes - WORD) {
    __u64 *const word = (__u64 *)(copy->bytes + at);
    if (*word == search->trampoline) *word = address;
  }
  return !read_kernel_word(search->instance + layout->return_next, &search->instance);
}

/* Replaces trampoline addresses in a stack copy by the original ones: the recorder, which walks it later, has no
 * return_instances. */
__noinline int tacho_restore_returns(struct slot *slot, __u64 sp, __u32 size) {
  if (!slot) return 0;
  const __u64 trampoline = trampoline_of(slot->walk.memory);
  if (trampoline == 0) return 0;
  const __u32 key = slot->number;
  struct copy_search search = {.copy = bpf_map_lookup_elem(&tacho_copied, &key),
                               .instance = first_return(),
                               .trampoline = trampoline,
                               .sp = sp,
                               .size = size};
  if (search.copy) bpf_loop(MOST_RETURNS, restore_return, &search, 0);
  return 0;
}

#endif
