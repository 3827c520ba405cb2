// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Off-CPU times of threads, with the stack that left the CPU, what it waited for, and the waker.
#include "bpf/programs/recorders/wait_sampling.h"
#include "bpf/programs/recorders/before.h"
#include "bpf/programs/recorders/interrupts.h"
#include "bpf/programs/recorders/off_cpu.h"
#include "bpf/programs/recorders/wait_object.h"

struct offcpu {
  __u64 off_ns ROLE("value");
  __u64 runq_ns ROLE("queued"); /* part of off_ns after the wake-up, waiting for a CPU */
  enum state state;
  __u32 waker_tid;    /* 0: not a thread, or not seen */
  char waker[16];     /* comm; [timer] or [irq]: an interrupt handler */
  __u32 unfinished;   /* 1: still off CPU when the recording ended */
  __u32 began_before; /* 1: off CPU when the recording started: off_ns counts from there */
  enum syscall_name call;     /* that the thread is in; -1: none, as in a page fault */
  enum object object;         /* what it waits for */
  enum object ready;          /* of epoll: what was ready first when the wait ended */
  __u64 lock FORMAT("uaddr"); /* address of the mutex, rwlock or futex; 0: none */
  __u32 holder_tid;           /* the lock's owner when the wait began; 0: unknown */
  char holder[16];            /* its comm */
  char name[OBJECT_NAME];     /* of the file, or the other side's address or path */
  char disk[OBJECT_DISK];     /* of the file's file system; "": none, or several */
  __u32 throttled;            /* 1: runnable, and the CPU quota of its cgroup is used up */
  char runner[16];            /* comm of the thread that left the CPU for this one; "": the idle thread, or unfinished */
  __u32 runner_pid;
  __u32 skipped;    /* waits of the thread before this one that gave no event: sample=, rate=, or the buffer was full */
  __u64 skipped_ns; /* their time */
  __u64 weight_ns ROLE("weight"); /* off_ns, times the waits that this one stands for because of rate= */
  __u64 kernel_stack[KERNEL_FRAMES] ROLE("stack") FORMAT("kaddr");
  __u64 user_stack[USER_FRAMES] ROLE("stack") FORMAT("uaddr");
};
EVENT(offcpu, struct offcpu);
RING_CHANNEL(channel, offcpu, 8 << 20);

struct wait {
  __u64 since_ns, wake_ns; /* wake_ns: 0: not woken yet */
  __u64 queued_ns;         /* put on a run queue; 0: not yet */
  __u64 group, stopped_ns; /* of a runnable thread: its struct task_group, and for how long quotas had stopped that */
  __u64 cgroup;
  struct wait_sampling sampling;
  __u32 process, state, waker_tid, began_before;
  char waker[16];
  __u32 throttled;
  struct wait_object object;
  struct end_text end;
  struct stack stack;
};
WAITS_OF_THREADS(waits, struct wait);

static __always_inline bool is_throttled(struct task_struct *task) {
  if (bpf_core_field_exists(task->throttled)) return BPF_CORE_READ(task, throttled);
  if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(task->se.cfs_rq->throttle_count)) return false;
  return BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
}

/* For how long CPU quotas have stopped a group and those above it, ns. A thread that is put aside for others may be stopped only
 * then. */
#define GROUP_LEVELS 4
static __always_inline __u64 stopped_ns(const struct task_group *group) {
  __u64 sum = 0;
  if (!group || !bpf_core_field_exists(group->cfs_bandwidth)) return 0;
  for (int i = 0; i < GROUP_LEVELS && group; ++i) {
    sum += BPF_CORE_READ(group, cfs_bandwidth.throttled_time);
    group = BPF_CORE_READ(group, parent);
  }
  return sum;
}

static __always_inline void begin_in_queue(struct wait *wait, struct task_struct *task) {
  wait->group = bpf_core_field_exists(task->sched_task_group) ? (__u64)BPF_CORE_READ(task, sched_task_group) : 0;
  wait->stopped_ns = stopped_ns((void *)wait->group);
  wait->throttled = is_throttled(task);
}

/* Most of the wait. */
static __always_inline bool was_throttled(const struct wait *wait, __u64 off) {
  if (wait->state != R) return false;
  return wait->throttled || stopped_ns((void *)wait->group) - wait->stopped_ns > off / 2;
}

static __always_inline void clear_description(struct wait *wait) {
  wait->group = wait->stopped_ns = wait->throttled = 0;
  __builtin_memset(&wait->object, 0, sizeof wait->object);
  wait->object.call = none;
  wait->stack.kernel[0] = wait->stack.user[0] = 0;
}

static __always_inline void leaves(struct trace_event_raw_sched_switch *context) {
  __u32 thread = context->prev_pid;
  enum state state = state_at(context);
  struct task_struct *task = bpf_get_current_task_btf();
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  bool is_new = !wait;
  if (wait) close_unseen_sampled(&wait->since_ns, &wait->sampling, min_us);
  if (is_dead(state)) bpf_map_delete_elem(&waits, &thread);
  if (!is_wait_chosen(thread, state)) return;
  wait = waits_of(thread);
  if (!wait) return;
  if (is_new) know_thread(task);
  wait->wake_ns = wait->queued_ns = 0;
  wait->process = bpf_get_current_pid_tgid() >> 32;
  wait->cgroup = bpf_get_current_cgroup_id();
  wait->state = state;
  wait->waker_tid = 0;
  wait->began_before = 0;
  __builtin_memset(wait->waker, 0, sizeof wait->waker);
  if (begin_sampling(&wait->sampling, task, bpf_ktime_get_ns())) {
    if (state == R) begin_in_queue(wait, task);
    describe_wait(&wait->object, task, state, true);
    take_stack(context, &wait->stack);
  } else {
    clear_description(wait);
  }
  wait->since_ns = bpf_ktime_get_ns();
}

static __always_inline void set_runner(struct offcpu *event, bool unfinished) {
  __u64 runner = unfinished ? 0 : bpf_get_current_pid_tgid();
  __builtin_memset(event->runner, 0, sizeof event->runner);
  event->runner_pid = runner >> 32;
  if (runner) bpf_get_current_comm(event->runner, sizeof event->runner);
}

static __always_inline void emit(__u32 thread, struct wait *wait, bool unfinished) {
  __u64 now = bpf_ktime_get_ns(), since = take_start(&wait->since_ns), off = elapsed_ns(since, now), queued;
  struct offcpu *event = 0;
  if (!since || off / 1000 < min_us) return;
  if ((is_in_sample(&wait->sampling, off) || unfinished) && is_sampled())
    event = tacho_reserve_for_cgroup(channel, struct offcpu, wait->process, thread, wait->cgroup);
  if (!event) return skip(&wait->sampling, off);
  event->off_ns = off;
  queued = wait->queued_ns ? wait->queued_ns : wait->wake_ns;
  event->runq_ns = queued ? elapsed_ns(queued, now) : wait->state == R ? off : 0;
  event->state = wait->state;
  event->waker_tid = wait->waker_tid;
  __builtin_memcpy(event->waker, wait->waker, sizeof event->waker);
  event->unfinished = unfinished;
  event->began_before = wait->began_before;
  event->call = wait->object.call;
  event->object = wait->object.owner.object;
  if (wait->object.polled && !unfinished) describe_ready(&wait->object);
  event->ready = wait->object.ready;
  event->lock = wait->object.owner.lock;
  event->holder_tid = wait->object.owner.tid;
  event->throttled = was_throttled(wait, off);
  __builtin_memcpy(event->holder, wait->object.owner.name, sizeof event->holder);
  write_name(event->name, &wait->object, &wait->end);
  __builtin_memcpy(event->disk, wait->object.disk, sizeof event->disk);
  set_runner(event, unfinished);
  event->skipped = wait->sampling.skipped;
  event->skipped_ns = wait->sampling.skipped_ns;
  event->weight_ns = weight_of(&wait->sampling, off);
  wait->sampling.skipped = 0;
  wait->sampling.skipped_ns = 0;
  bpf_probe_read_kernel(event->kernel_stack, sizeof event->kernel_stack, wait->stack.kernel);
  bpf_probe_read_kernel(event->user_stack, sizeof event->user_stack, wait->stack.user);
  tacho_submit(channel, event);
}

SEC("tracepoint/sched/sched_switch")
int switches(struct trace_event_raw_sched_switch *context) {
  __u32 thread = context->next_pid;
  struct wait *wait;
  leaves(context);
  wait = bpf_map_lookup_elem(&waits, &thread);
  if (wait) emit(thread, wait, false);
  return 1;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(wakes, struct task_struct *task) {
  __u32 thread = task->pid;
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  __u64 now = bpf_ktime_get_ns();
  if (!wait || !wait->since_ns || wait->wake_ns) return 0;
  wait->waker_tid = name_waker(wait->waker) ? (__u32)bpf_get_current_pid_tgid() : 0;
  wait->wake_ns = now;
  if (wait->sampling.one_in || !is_long(elapsed_ns(wait->since_ns, now))) return 0;
  describe_wait(&wait->object, task, wait->state, false);
  take_stack_of(task, &wait->stack);
  return 0;
}

/* From sched_waking on the waker finds a CPU and interrupts it, and other BPF programs run: no time in a run queue. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(is_queued, struct task_struct *task) {
  __u32 thread = task->pid;
  struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
  if (wait && wait->wake_ns && !wait->queued_ns) wait->queued_ns = bpf_ktime_get_ns();
  return 0;
}

PER_CPU(before, struct wait);

static __always_inline void note(struct task_struct *task) {
  __u32 only = 0, state = state_of(task);
  struct wait *wait = bpf_map_lookup_elem(&before, &only);
  know_thread(task);
  if (!wait || has_filter() || !is_state_chosen(state)) return;
  wait->state = state;
  wait->sampling.one_in = 1;
  if (state == R) begin_in_queue(wait, task);
  describe_wait(&wait->object, task, state, false);
  NOTE_WAIT_WITH_STACK(waits, task, wait);
}
AT_BEGIN(note)

#define EMIT_UNFINISHED(thread, wait) emit(thread, wait, true)
AT_END(waits, struct wait, EMIT_UNFINISHED)
