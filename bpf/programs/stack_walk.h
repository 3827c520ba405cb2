/* Unwinds the user stack of a sample by unwind rows (made from .eh_frame), and writes the addresses into the ring of the
 * CPU, just before the kernel writes the sample itself. record/stacks joins the two.
 *
 * It is compiled as a program of its own (stack_walk.bpf.c), and linked into users' programs (linked_walk.bpf.c). Names begin
 * with tacho_, and variables that the recorder sets are in sections of their own, so that they do not clash there.
 *
 * The mapping of an address is read from the process's maple tree of VMAs, so a process can be walked from its first
 * instruction on. Kernels before 6.1 have no maple tree; there the recorder writes the mappings into maps.
 *
 * Functions are global (__noinline), since the verifier checks each of them once, apart from its callers: loading a program
 * took 0.7 s with static functions, and a fiftieth of it with these. The verifier assumes that pointer arguments of global
 * functions may be null, and treats pointers within structs as numbers. */
#ifndef TACHO_STACK_WALK_H
#define TACHO_STACK_WALK_H

#include "bpf/programs/uretprobes.h"

static __always_inline const struct tacho_unwind_block *block_of(__u32 number) {
  __u32 key = number / TACHO_SEGMENT_BLOCKS;
  void *segment = bpf_map_lookup_elem(&tacho_segments, &key);
  if (!segment) return 0;
  key = number % TACHO_SEGMENT_BLOCKS;
  return bpf_map_lookup_elem(segment, &key);
}

/* The unwind row that covers `pc` (below 2^32), as its 8 bytes; 0: none does. */
__noinline __u64 tacho_find_row(__u32 first, __u32 count, __u64 pc) {
  if (count == 0) return 0;
  /* 0, but unknown to the verifier: it then checks the loops once for any number, not once for each. */
  const __u32 nothing = pc >> 32;
  __u32 low = nothing; /* the last block that begins at or below `pc` */
  const struct tacho_unwind_block *block;
  for (__u32 step = 1 << 17; step > 0; step /= 2) {
    if (low + step >= count) continue;
    block = block_of(first + low + step);
    if (!block) return 0;
    if (block->rows[0].pc <= pc) low += step;
  }
  block = block_of(first + low);
  if (!block || block->rows[0].pc > pc) return 0;
  __u32 at = nothing & (TACHO_BLOCK_ROWS - 1);
  for (__u32 step = TACHO_BLOCK_ROWS / 2; step > 0; step /= 2) {
    const __u32 next = (at + step) & (TACHO_BLOCK_ROWS - 1);
    if (block->rows[next].pc <= pc) at = next;
  }
  return *(const __u64 *)&block->rows[at];
}

/* The module's table is not loaded: walks on by frame pointer. The stack counts as whole only if the recorder finishes it from
 * a copy of the stack, for which the registers are kept here. */
static __always_inline int walk_without_table(struct slot *slot) {
  struct walk *walk = &slot->walk;
  const bool is_first = !walk->is_doubtful;
  walk->is_doubtful = true;
  if (is_first && walk->is_sp_known) { /* otherwise `stop` stays at the sampled function */
    walk->stop.sp = walk->sp;
    walk->stop.bp = walk->bp;
    walk->stop.frames = walk->frames;
    walk->stop.is_return = walk->is_return;
    walk->stop.is_bp_known = walk->is_bp_known;
  }
  return tacho_guess(slot, TACHO_END_NO_TABLE);
}

/* Adds the frame's address and moves to its caller. Returns 1 at the end of the walk. */
__noinline int tacho_take_step(struct slot *slot) {
  if (!slot) return 1;
  struct walk *walk = &slot->walk;
  const bool is_near = walk->ip >= walk->range.start && walk->ip < walk->range.end;
  const bool is_mapped = is_near || (tacho_options.layout.is_known ? tacho_find_mapping(slot) : tacho_find_range(slot)) != 0;
  if (walk->is_guess && !is_mapped) return ends(walk, TACHO_END_NO_RULE);
  if (is_mapped && skip_trampoline(slot)) return 0;
  if (walk->frames >= tacho_options.most_frames || walk->frames >= TACHO_MOST_FRAMES)
    return ends(walk, TACHO_END_CUT);
  slot->frames[walk->frames & (TACHO_MOST_FRAMES - 1)] = walk->ip;
  walk->frames++;
  if (!is_mapped) return ends(walk, walk->frames == 1 && slot->is_in_exec ? TACHO_END_EXEC : TACHO_END_NO_MAPPING);
  const __u32 key = walk->range.module;
  if (key == TACHO_MODULE_OF_NO_FILE && walk->frames == 1 && leave_xol_area(slot)) {
    slot->frames[1] = TACHO_INTERRUPTED; /* the thread is at the instruction with the probe */
    walk->frames = 2;
    return 0;
  }
  if (key == TACHO_MODULE_REQUESTED) return walk_without_table(slot);
  struct tacho_unwind_module *module = bpf_map_lookup_elem(&tacho_modules, &key);
  if (!module) return tacho_guess(slot, TACHO_END_COUNT);
  if (module->last_used != tacho_variables.now) module->last_used = tacho_variables.now;
  if (module->state == TACHO_MODULE_BARE) return tacho_guess(slot, TACHO_END_COUNT);
  if (module->state != TACHO_MODULE_READY) return walk_without_table(slot);
  const __u64 pc = walk->ip - walk->range.bias - module->base - (walk->is_return ? 1 : 0);
  if (pc >= 0xffffffff) return tacho_guess(slot, TACHO_END_NO_RULE);
  const __u64 row = tacho_find_row(module->first_block, module->blocks, pc);
  if (row == 0) return tacho_guess(slot, TACHO_END_NO_RULE);
  return tacho_follow(slot, row);
}

struct step_context {
  struct slot *slot;
};
static long step(__u32 index, struct step_context *context) { return tacho_take_step(context->slot) != 0; }

static __always_inline struct slot *take_slot(void) {
#pragma unroll
  for (__u32 i = 0; i < SLOTS; i++) {
    const __u32 key = i;
    struct slot *slot = bpf_map_lookup_elem(&tacho_slots, &key);
    if (slot && __sync_val_compare_and_swap(&slot->busy, 0, 1) == 0) {
      slot->number = i;
      return slot;
    }
  }
  return 0;
}

/* The registers with which the thread entered the kernel; false: a kernel thread, which has none. */
static __always_inline bool read_user_registers(struct slot *slot) {
  struct task_struct *task = bpf_get_current_task_btf();
  const void *at = (const void *)bpf_task_pt_regs(task);
  if (bpf_probe_read_kernel(&slot->registers, sizeof slot->registers, at) != 0) return false;
  const long call = TACHO_CALL_NUMBER(&slot->registers);
  slot->is_in_call = call != -1;
  slot->is_interrupted = !slot->is_in_call;
  slot->is_in_exec = call == __NR_execve || call == __NR_execveat;
  return TACHO_IS_USER(&slot->registers);
}

/* `registers`: struct pt_regs, which a program gets. */
static __always_inline bool take_registers(struct slot *slot, const void *registers) {
  if (!TACHO_IS_USER((const struct tacho_registers *)registers)) return read_user_registers(slot);
  copy_registers(&slot->registers, registers);
  slot->is_in_call = slot->is_in_exec = slot->is_interrupted = 0;
  return true;
}

/* Whether a task has perf events. Programs on tracepoints run in all tasks, recorded or not. */
static __always_inline bool is_watched(const struct task_struct *task) {
  const volatile struct tacho_kernel_layout *layout = &tacho_options.layout;
  __u64 context = 0, other = 0;
  read_kernel_word((__u64)task + layout->task_perf_contexts, &context);
  if (layout->perf_contexts > 1) read_kernel_word((__u64)task + layout->task_perf_contexts + WORD, &other);
  return context != 0 || other != 0;
}

/* Sets where the mappings of the process are read from; false: its stacks are not wanted. */
static __always_inline bool find_process(struct walk *walk, bool only_recorded_tasks) {
  const __u32 process = walk->process;
  walk->end = TACHO_END_CUT;
  if (tacho_options.layout.is_known) {
    const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
    if (only_recorded_tasks && !is_watched(task)) return false;
    if (!read_kernel_word((__u64)task + tacho_options.layout.task_mm, &walk->memory) || walk->memory == 0)
      walk->end = TACHO_END_EXITING;
    if (process == 0) walk->end = TACHO_END_OUTSIDE; /* the recorder cannot open its files */
    return true;
  }
  if (process == 0) {
    walk->end = TACHO_END_OUTSIDE;
    return !only_recorded_tasks;
  }
  const struct tacho_process_ranges *known = bpf_map_lookup_elem(&tacho_processes, &process);
  if (!known) {
    walk->end = TACHO_END_NO_PROCESS;
    return !only_recorded_tasks;
  }
  walk->first = known->first;
  walk->count = known->count;
  return true;
}

/* Walks from the slot's registers; false: the process's stacks are not wanted. */
static __always_inline bool walk_user_stack(struct slot *slot, bool only_recorded_tasks) {
  const __u64 numbers = own_numbers();
  struct walk *walk = &slot->walk;
  __builtin_memset(walk, 0, sizeof *walk);
  __builtin_memset(slot->recent, 0, sizeof slot->recent);
  walk->process = numbers >> 32;
  walk->thread = numbers;
  if (!find_process(walk, only_recorded_tasks)) return false;
  walk->is_bp_known = walk->is_sp_known = true;
  walk->ip = TACHO_USER_IP(&slot->registers);
  /* In a system call, ip is after the instruction that calls the kernel, which may be the last one of its function: looked up as a
   * return address. Not if the call ends with a signal: then ip is the first instruction of its handler. */
  if (slot->is_in_call) walk->is_return = is_after_system_call(walk->ip);
  walk->sp = TACHO_USER_SP(&slot->registers);
  walk->bp = TACHO_USER_FP(&slot->registers);
  take_other_registers(slot);
  if (slot->is_interrupted && is_after_breakpoint(walk)) walk->is_return = true;
  walk->stop.sp = walk->sp;
  walk->stop.bp = walk->bp;
  walk->stop.frames = 1;
  walk->stop.is_return = walk->is_return;
  walk->stop.is_bp_known = true;
  if (!is_64_bit_code(&slot->registers) || walk->end != TACHO_END_CUT) {
    slot->frames[0] = walk->ip;
    walk->frames = 1;
    if (walk->end == TACHO_END_CUT) walk->end = TACHO_END_32_BIT;
  } else {
    struct step_context context = {slot};
    bpf_loop(TACHO_MOST_FRAMES + MOST_RETURNS + 1, step, &context, 0);
  }
  if (walk->frames > TACHO_MOST_FRAMES) walk->frames = TACHO_MOST_FRAMES;
  if (walk->is_doubtful && walk->end <= TACHO_END_FRAME_ZERO) walk->end = TACHO_END_NO_TABLE;
  return true;
}

/* Copies a part of the stack page by page, up to the end of the mapping. Returns where the next part starts; 1: there is none;
 * 0: nothing was copied. */
__noinline __u64 tacho_copy_part(struct slot *slot, __u64 number, __u64 sp, __u32 part) {
  if (!slot) return 0;
  const __u32 key = slot->number;
  struct tacho_stack_copy *copy = bpf_map_lookup_elem(&tacho_copied, &key);
  if (!copy) return 0;
  __u32 size = TACHO_STACK_PAGE - (sp & (TACHO_STACK_PAGE - 1)), pages = 1;
  if (bpf_probe_read_user(copy->bytes, size, (const void *)sp) != 0) return 0;
#pragma unroll
  for (int i = 1; i < TACHO_COPIED_PAGES; i++) {
    if (bpf_probe_read_user(copy->bytes + size, TACHO_STACK_PAGE, (const void *)(sp + size)) != 0) break;
    size += TACHO_STACK_PAGE;
    pages++;
  }
  tacho_restore_returns(slot, sp, size);
  copy->number = number;
  copy->sp = sp;
  copy->bp = slot->walk.stop.bp;
  copy->extra = TACHO_USER_EXTRA(&slot->registers);
  copy->is_extra_known = slot->walk.stop.frames == 1;
  copy->frames = slot->walk.stop.frames;
  copy->is_return = slot->walk.stop.is_return;
  copy->is_bp_known = slot->walk.stop.is_bp_known;
  copy->part = part;
  if (size > sizeof copy->bytes) return 0;
  const __u32 all = __builtin_offsetof(struct tacho_stack_copy, bytes) + size;
  if (bpf_ringbuf_output(&tacho_copies, copy, all, BPF_RB_NO_WAKEUP) != 0) return 0;
  return pages == TACHO_COPIED_PAGES ? sp + size : 1;
}

/* Copies the stack from the frame without a table on. A deep stack is copied in several parts, as long as half of the ring
 * buffer is free. Returns the copy's number; 0: there is none. */
__noinline __u64 tacho_copy_stack(struct slot *slot) {
  if (!slot || !tacho_variables.may_copy) return 0;
  const __u64 number = __sync_fetch_and_add(&tacho_variables.copies, 1) + 1;
  __u64 next = tacho_copy_part(slot, number, slot->walk.stop.sp, 0);
  if (next == 0) return 0;
  for (__u32 part = 1; part < TACHO_COPIED_PARTS && next > 1; part++) {
    if (bpf_ringbuf_query(&tacho_copies, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(&tacho_copies, BPF_RB_RING_SIZE) / 2) break;
    next = tacho_copy_part(slot, number, next, part);
  }
  return number;
}

/* Whether the stack is copied, so that the recorder can finish the walk: if a table was missing, or the program cannot evaluate
 * a rule; then at most TACHO_ODD_COPIES a second. */
static __always_inline bool is_worth_a_copy(const struct walk *walk) {
  if (walk->is_doubtful) return true;
  if (walk->end != TACHO_END_ODD_RULE) return false;
  if (tacho_variables.odd_since != tacho_variables.now) {
    tacho_variables.odd_since = tacho_variables.now;
    tacho_variables.odd_copies = 0;
  }
  return tacho_variables.odd_copies++ < TACHO_ODD_COPIES;
}

static __always_inline int walk_and_write(void *context, struct slot *slot, bool only_recorded_tasks) {
  if (!walk_user_stack(slot, only_recorded_tasks)) return 1;
  __u32 frames = slot->walk.frames;
  if (frames > TACHO_MOST_FRAMES) frames = TACHO_MOST_FRAMES;
  slot->head.tid = slot->walk.thread;
  slot->head.end = slot->walk.end;
  slot->head.frames = frames;
  const __u64 copy = is_worth_a_copy(&slot->walk) ? tacho_copy_stack(slot) : 0;
  __u32 size = frames;
  if (copy != 0) {
    slot->head.end |= TACHO_STACK_HAS_COPY;
    slot->frames[size++] = copy;
  }
  bpf_perf_event_output(context, &tacho_stacks, BPF_F_CURRENT_CPU, &slot->head, sizeof slot->head + size * WORD);
  return 1;
}

#endif
