/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 OR BSD-2-Clause */
/*
 * How a BPF program leaves out, in the kernel and before a stack is walked, what the recording is not about.
 *
 *   #include <tacho/emit.h>             // after vmlinux.h or <linux/bpf.h>; includes tacho/event.h
 *
 *   SEC("tp_btf/sys_enter")
 *   int on_call(void *ctx) {
 *     if (!tacho_wants()) return 1;     // of another process than the recorded ones
 *     ...
 *
 * With a COMMAND, -p or -t the recorder keeps a table of the threads that are recorded: those that were there, and
 * whatever they start, from their first moment on. tacho_wants() looks the current thread up in it: one load from an
 * array, and nothing at all with -a, where the kernel removes the code. tacho_wants_of(thread) asks of another one. A program that does not ask is
 * recorded all the same; then the recorder drops what other threads did, which costs a stack and a record each time.
 *
 * And how it sends events through a ring buffer, which all CPUs share:
 *
 *   RING_CHANNEL(slow, slow_read, 4 << 20);              // a map of 4 MiB for EVENT(slow_read, struct slow_read)
 *
 *   struct slow_read *event = tacho_reserve(slow, struct slow_read);
 *   if (!event) return 1;                                // nobody wants it, or there is no room: that is counted
 *   event->bytes = ...;                                  // all of it: the memory is not cleared
 *   tacho_submit(slow, event);                           // or tacho_discard(slow, event)
 *
 * A head in front of each event says when (CLOCK_MONOTONIC), on which CPU and in which thread it was reserved; the recorder
 * makes a sample of it. What finds no room is reported as lost events of that name. A ring buffer brings
 * no stack of its own: see ROLE("stack") in event.h. Where stacks are wanted a perf event array is the better channel.
 */
#ifndef TACHO_EMIT_H
#define TACHO_EMIT_H

#include <bpf/bpf_helpers.h>
#include <tacho/event.h>

/* 1: only the threads of the table are recorded. Set by the recorder. Static, as are those below: in a program that does
 * not ask they are not there, by which the recorder knows. */
static const volatile __u32 tacho_follows = 0;

/* A byte for each thread number; 1: it is recorded. The recorder puts its own map in this one's place. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(key_size, 4);
  __uint(value_size, 4096);
  __uint(max_entries, 1);
} tacho_followed SEC(".maps");

/* What --sample-rate 1/N and --max-rate N say; 0: nothing. Set by the recorder. */
static const volatile __u32 tacho_one_in = 0;
static const volatile __u64 tacho_most_a_second = 0;

/* Hits of the recorded threads, counted on each CPU. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(key_size, 4);
  __uint(value_size, 8);
  __uint(max_entries, 1);
} tacho_hits SEC(".maps");
__u64 tacho_second = 0, tacho_this_second = 0; /* the present second, and what it has seen */
__u64 tacho_over_rate = 0;                     /* what was too much, so far */

/* Of a thread that need not be the current one: one that is woken, or whose I/O has ended. */
static __always_inline int tacho_follows_thread(__u32 thread) {
  __u32 page = thread >> 12;
  const __u8 *states;
  if (!tacho_follows) return 1;
  states = bpf_map_lookup_elem(&tacho_followed, &page);
  return states && states[thread & 4095] == 1;
}

static __always_inline int tacho_is_sampled(__u32 one_in) {
  __u32 only = 0;
  __u64 *hits = bpf_map_lookup_elem(&tacho_hits, &only);
  return hits && (*hits)++ % one_in == 0;
}

static __always_inline int tacho_is_within_rate(__u64 most_a_second) {
  __u64 second = bpf_ktime_get_ns() / 1000000000;
  if (tacho_second != second) {
    tacho_second = second;
    tacho_this_second = 0;
  }
  __sync_fetch_and_add(&tacho_this_second, 1);
  if (tacho_this_second <= most_a_second) return 1;
  __sync_fetch_and_add(&tacho_over_rate, 1);
  return 0;
}

/* Whether what happens to `thread` now is to be recorded: it is followed, and neither --sample-rate nor --max-rate leaves it
 * out. Ask once for each event, when everything else speaks for it. */
static __always_inline int tacho_wants_of(__u32 thread) {
  if (!tacho_follows_thread(thread)) return 0;
  if (tacho_one_in > 1 && !tacho_is_sampled(tacho_one_in)) return 0;
  return !tacho_most_a_second || tacho_is_within_rate(tacho_most_a_second);
}
/* The same for the current thread, which tacho_reserve() asks by itself. */
static __always_inline int tacho_wants(void) { return tacho_wants_of((__u32)bpf_get_current_pid_tgid()); }

/* What stands in front of every event in a ring buffer of RING_CHANNEL(). */
struct tacho_head {
  __u32 magic; /* TACHO_HEAD */
  __u32 cpu;
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 process, thread;
};
#define TACHO_HEAD 0x31434154

/* The map `map`, a ring buffer of `bytes` (a power of two), for the event `name`, with a counter of what found no room. */
#define RING_CHANNEL(map, name, bytes)          \
  struct {                                      \
    __uint(type, BPF_MAP_TYPE_RINGBUF);         \
    __uint(max_entries, bytes);                 \
  } map SEC(".maps") EVENT_CHANNEL(name);       \
  __u64 tacho_lost_##map = 0

#define tacho_reserve(map, type) \
  ((type *)tacho_reserve_in(&(map), &tacho_lost_##map, sizeof(struct tacho_head) + sizeof(type)))
#define tacho_submit(map, event) bpf_ringbuf_submit((struct tacho_head *)(event)-1, tacho_wakeup(&(map)))
#define tacho_discard(map, event) bpf_ringbuf_discard((struct tacho_head *)(event)-1, BPF_RB_NO_WAKEUP)

/* As tacho_reserve(), for an event of a thread that need not be the current one, and that was asked about before. */
#define tacho_reserve_for(map, type, process, thread) \
  ((type *)tacho_reserve_head(&(map), &tacho_lost_##map, sizeof(struct tacho_head) + sizeof(type), process, thread))

static __always_inline void *tacho_reserve_head(void *ring, __u64 *lost, __u64 bytes, __u32 process, __u32 thread) {
  struct tacho_head *head = bpf_ringbuf_reserve(ring, bytes, 0);
  if (!head) {
    __sync_fetch_and_add(lost, 1);
    return 0;
  }
  head->magic = TACHO_HEAD;
  head->cpu = bpf_get_smp_processor_id();
  head->time_ns = bpf_ktime_get_ns();
  head->process = process;
  head->thread = thread;
  return head + 1;
}

static __always_inline void *tacho_reserve_in(void *ring, __u64 *lost, __u64 bytes) {
  __u64 who = bpf_get_current_pid_tgid();
  if (!tacho_wants()) return 0;
  return tacho_reserve_head(ring, lost, bytes, who >> 32, (__u32)who);
}

/* The recorder looks by itself ten times a second; waking it for every event would cost more than the event. */
static __always_inline __u64 tacho_wakeup(void *ring) {
  return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / 4
             ? BPF_RB_FORCE_WAKEUP
             : BPF_RB_NO_WAKEUP;
}

#endif
