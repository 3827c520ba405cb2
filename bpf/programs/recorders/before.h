/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits that began before the recording. A task iterator, which tacho-record runs when events are enabled, adds each thread that
 * is off CPU to the map of waits, with the current time as the start. Include recorder.h first.
 */
#ifndef TACHO_BEFORE_H
#define TACHO_BEFORE_H

/* User stacks of threads that are off CPU. A BPF program cannot read the user memory of another thread, so tacho-record unwinds
 * copies of the stacks and writes the frames here before it runs the program (record/stacks/sleeping_stacks.h). */
struct tacho_sleeping {
  __u64 switches; /* the thread's context switches then; another number now: the stack is out of date */
  __u64 user[USER_FRAMES];
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 16384);
  __type(key, __u32);
  __type(value, struct tacho_sleeping);
} tacho_sleeping SEC(".maps");

static __always_inline __u64 switches_of(struct task_struct *task) { return task->nvcsw + task->nivcsw; }

static __always_inline void take_stack_of(struct task_struct *task, struct stack *stack) {
  __u32 thread = task->pid;
  struct tacho_sleeping *known = bpf_map_lookup_elem(&tacho_sleeping, &thread);
  long bytes = bpf_get_task_stack(task, stack->kernel, sizeof stack->kernel, 0);
  if (bytes < 0) bytes = 0;
  if (bytes < (long)sizeof stack->kernel) stack->kernel[(bytes / 8) & (KERNEL_FRAMES - 1)] = 0;
  stack->user[0] = 0;
  if (known && known->switches == switches_of(task)) bpf_probe_read_kernel(stack->user, sizeof stack->user, known->user);
}

/* Whether there is a --filter. It checks the current thread, so it cannot check waits that began before the recording. Use it
 * only in recorders that support --filter, since reading tacho_filter declares that (bpf::UserObject::supports_filter()). */
static __always_inline bool has_filter(void) { return tacho_filter.steps[0].value; }

/* Whether the task may be in a wait that is recorded. Not the command to be recorded, which waits in the recorder's child until
 * the recording starts. */
static __always_inline bool may_wait(struct task_struct *task) {
  if (!task->pid || task->on_cpu) return false;
  return task->real_parent->tgid != tacho_recorder && is_task_chosen(task);
}

/* Adds `entry`, whose first member is since_ns, to the map of waits if the thread has none there. Removes it again if the thread
 * ran meanwhile. */
#define NOTE_WAIT(map, task, entry)                                               \
  do {                                                                            \
    __u32 thread_ = (task)->pid;                                                  \
    __u64 switches_ = switches_of(task);                                          \
    (entry)->since_ns = bpf_ktime_get_ns();                                       \
    if (bpf_map_update_elem(&(map), &thread_, entry, BPF_NOEXIST)) break;         \
    if (!(task)->on_cpu && switches_of(task) == switches_) break;                 \
    bpf_map_delete_elem(&(map), &thread_);                                        \
  } while (0)

/* The same for an entry with the members process, cgroup, began_before and stack, which it sets. */
#define NOTE_WAIT_WITH_STACK(map, task, entry)      \
  do {                                              \
    (entry)->process = (task)->tgid;                \
    (entry)->cgroup = task_cgroup(task);            \
    (entry)->began_before = 1;                      \
    take_stack_of(task, &(entry)->stack);           \
    NOTE_WAIT(map, task, entry);                    \
  } while (0)

/* Program that runs when events are enabled: calls `note`(task) for each thread. Needs Linux 5.15. */
#define AT_BEGIN(note)                                                \
  SEC("?iter/task")                                                   \
  int at_begin(struct bpf_iter__task *context) {                      \
    struct task_struct *task = context->task;                         \
    if (task && may_wait(task)) note(task);                           \
    return 0;                                                         \
  }

#endif
