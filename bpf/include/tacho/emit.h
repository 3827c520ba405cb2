/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/*
 * Filters of a BPF program by the recording's target and options, in the kernel and before a stack is walked; and ring buffers.
 *
 *   #include <tacho/emit.h>             // after vmlinux.h or <linux/bpf.h>; includes tacho/event.h
 *
 *   SEC("tp_btf/sys_enter")
 *   int on_call(void *ctx) {
 *     if (!tacho_wants()) return 1;     // a thread that is not recorded
 *     ...
 *
 * With a COMMAND, -p or -t the recorder keeps a table of the recorded threads and all threads that they start, from their
 * first instruction on. tacho_wants() looks the current thread up in it: one load from an array; with -a the kernel removes
 * the code. tacho_wants_of(thread) is for another thread. Events of a program that does not call it are recorded too; then
 * the recorder drops those of other threads, which costs a stack and a record each time.
 * Before the recording starts, and while --control or -D has disabled events, tacho_wants() is false.
 *
 * It also evaluates --filter: `-e ./slow.bpf.c --filter 'comm == "dd" && uid >= 1000'`. A program that passes its filled
 * event allows members of it in --filter too ('bytes > 4k'):
 *
 *     struct slow_read event = {...};                      // EVENT(slow_read, struct slow_read)
 *     if (!tacho_wants_this(slow_read, &event)) return 1;
 *     bpf_perf_event_output(ctx, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
 *
 * Events through a ring buffer, which all CPUs share:
 *
 *   RING_CHANNEL(slow, slow_read, 4 << 20);              // a map of 4 MiB for EVENT(slow_read, struct slow_read)
 *
 *   struct slow_read *event = tacho_reserve(slow, struct slow_read);
 *   if (!event) return 1;                                // not wanted, or the buffer is full (counted as lost)
 *   event->bytes = ...;                                  // set all members: the memory is not cleared
 *   tacho_submit(slow, event);                           // or tacho_discard(slow, event)
 *
 * tacho_submit() evaluates the members in --filter, and discards the event if it is not wanted. A header before each event
 * has time (CLOCK_MONOTONIC), CPU, thread and cgroup of tacho_reserve(); the recorder makes a sample of it. Events for which the
 * buffer is full are reported as lost, by CPU and cgroup (tacho_reserve_for(): by CPU only). A ring buffer adds no stack:
 * see ROLE("stack") in event.h. If stacks are needed, use a perf event array; this one reports losses by cgroup too (the
 * kernel counts them by event and CPU):
 *
 *   OUTPUT_CHANNEL(channel, slow_read);
 *
 *   tacho_output(ctx, channel, &event);                  // bpf_perf_event_output() of *(&event), with its result
 */
#ifndef TACHO_EMIT_H
#define TACHO_EMIT_H

#include <bpf/bpf_helpers.h>
#include <tacho/event.h>

/* 1: only the threads of the table are recorded. Set by the recorder. Static, like those below: the recorder recognizes a
 * program that does not call tacho_wants() by their absence. */
static const volatile __u32 tacho_follows = 0;

/* A byte for each tid; 1: it is recorded. The recorder replaces this map by its own. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(key_size, 4);
  __uint(value_size, 4096);
  __uint(max_entries, 1);
} tacho_followed SEC(".maps");

/* N of --sample-rate 1/N and --max-rate N; 0: not given. Set by the recorder. */
static const volatile __u32 tacho_one_in = 0;
static const volatile __u64 tacho_most_a_second = 0;

/* Whether the recorder enables and disables events, and whether they are enabled. Both set by the recorder. */
static const volatile __u32 tacho_is_switched = 0;
__u32 tacho_is_on = 0;

/*
 * The condition of --filter as steps, from the first one on. Each step is a comparison, and names the next step (always a
 * later one) or the result for both outcomes. Set by the recorder; without steps all events pass.
 */
struct tacho_step {
  __u8 value;     /* enum tacho_value; 0: there is none */
  __u8 test;      /* enum tacho_test */
  __u8 yes, no;   /* number of the next step, or one of the two results below */
  __u16 at;       /* offset in the payload; half of the name; level of the cgroup */
  __u8 size;      /* bytes: 1, 2, 4 or 8 */
  __u8 is_signed;
  __u64 mask;     /* bits of the value to compare */
  __u64 than;
};
#define TACHO_STEPS 32
#define TACHO_TAKES 254
#define TACHO_LEAVES 255
struct tacho_filter {
  struct tacho_step steps[TACHO_STEPS];
};
enum tacho_value {
  TACHO_PROCESS = 1,
  TACHO_THREAD,
  TACHO_USER,
  TACHO_GROUP,
  TACHO_CPU,
  TACHO_CGROUP,
  TACHO_CGROUP_ABOVE,
  TACHO_NAME,
  TACHO_MEMBER,
};
enum tacho_test {
  TACHO_EQUAL,
  TACHO_LESS,
  TACHO_LESS_OR_EQUAL,
  TACHO_SIGNED_LESS,
  TACHO_SIGNED_LESS_OR_EQUAL,
};
/* Conditions of tacho_wants(), and of tacho_wants_this() for each event. */
static const volatile struct tacho_filter tacho_filter;
#undef TACHO_FILTER_OF
#define TACHO_FILTER_OF(name) \
  ;                           \
  static const volatile __attribute__((unused)) struct tacho_filter tacho_filter_of_##name

/* Hits of the recorded threads, counted on each CPU. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(key_size, 4);
  __uint(value_size, 8);
  __uint(max_entries, 1);
} tacho_hits SEC(".maps");
__u64 tacho_second = 0, tacho_this_second = 0; /* the current second, and its number of events */
__u64 tacho_over_rate = 0;                     /* events beyond the rate so far */

/* Whether events are enabled and the thread is recorded. It need not be the current one: a woken thread, or one whose I/O
 * has completed. */
static __always_inline int tacho_follows_thread(__u32 thread) {
  __u32 page = thread >> 12;
  const __u8 *states;
  if (tacho_is_switched && !*(volatile __u32 *)&tacho_is_on) return 0;
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

static __always_inline __u64 tacho_member(const volatile struct tacho_step *step, const void *payload) {
  const void *at = payload + step->at;
  if (step->size == 1) {
    __u8 byte = 0;
    bpf_probe_read_kernel(&byte, sizeof byte, at);
    return step->is_signed ? (__u64)(__s64)(__s8)byte : byte;
  }
  if (step->size == 2) {
    __u16 half = 0;
    bpf_probe_read_kernel(&half, sizeof half, at);
    return step->is_signed ? (__u64)(__s64)(__s16)half : half;
  }
  if (step->size == 4) {
    __u32 word = 0;
    bpf_probe_read_kernel(&word, sizeof word, at);
    return step->is_signed ? (__u64)(__s64)(__s32)word : word;
  }
  __u64 whole = 0;
  bpf_probe_read_kernel(&whole, sizeof whole, at);
  return whole;
}

/* The value to compare in a step. */
static __always_inline __u64 tacho_value_of(const volatile struct tacho_step *step, const void *payload) {
  __u8 value = step->value;
  if (value == TACHO_PROCESS) return bpf_get_current_pid_tgid() >> 32;
  if (value == TACHO_THREAD) return (__u32)bpf_get_current_pid_tgid();
  if (value == TACHO_USER) return (__u32)bpf_get_current_uid_gid();
  if (value == TACHO_GROUP) return bpf_get_current_uid_gid() >> 32;
  if (value == TACHO_CPU) return bpf_get_smp_processor_id();
  if (value == TACHO_CGROUP) return bpf_get_current_cgroup_id();
  if (value == TACHO_CGROUP_ABOVE) return bpf_get_current_ancestor_cgroup_id(step->at);
  if (value == TACHO_NAME) {
    __u64 name[2] = {0, 0};
    bpf_get_current_comm(name, sizeof name);
    return step->at ? name[1] : name[0];
  }
  return payload ? tacho_member(step, payload) : 0;
}

/* All numbers of the filter are constants when the kernel verifies the program, so unused steps cost
 * nothing. */
static __always_inline int tacho_passes(const volatile struct tacho_filter *filter, const void *payload) {
  __u32 next = 0;
  if (!filter->steps[0].value) return 1;
#pragma clang loop unroll(disable)
  for (__u32 i = 0; i < TACHO_STEPS; ++i) {
    const volatile struct tacho_step *step = &filter->steps[i];
    __u64 value, than;
    int holds;
    __u8 test;
    if (i < next) continue;
    value = tacho_value_of(step, payload) & step->mask;
    than = step->than;
    test = step->test;
    if (test == TACHO_EQUAL)
      holds = value == than;
    else if (test == TACHO_LESS)
      holds = value < than;
    else if (test == TACHO_LESS_OR_EQUAL)
      holds = value <= than;
    else if (test == TACHO_SIGNED_LESS)
      holds = (__s64)value < (__s64)than;
    else
      holds = (__s64)value <= (__s64)than;
    if (holds)
      next = step->yes;
    else
      next = step->no;
    if (next >= TACHO_STEPS) return next == TACHO_TAKES;
  }
  return 0;
}

static __always_inline int tacho_is_chosen(void) {
  if (tacho_one_in > 1 && !tacho_is_sampled(tacho_one_in)) return 0;
  return !tacho_most_a_second || tacho_is_within_rate(tacho_most_a_second);
}

static __always_inline int tacho_follows_current(void) {
  return tacho_follows_thread((__u32)bpf_get_current_pid_tgid());
}

/* Whether to record the current event: the current thread is recorded, and the event passes --filter, --sample-rate and
 * --max-rate. Call it once for each event, as the last check; tacho_reserve() calls it itself. */
static __always_inline int tacho_wants(void) {
  return tacho_follows_current() && tacho_passes(&tacho_filter, 0) && tacho_is_chosen();
}
/* The same for an event of another thread. --filter, which is about the current thread, cannot be used then. */
static __always_inline int tacho_wants_of(__u32 thread) {
  return tacho_follows_thread(thread) && tacho_is_chosen();
}

/* Like tacho_wants(), with a pointer to the filled event. `name`: as in EVENT(name, type). */
#define tacho_wants_this(name, event) tacho_wants_filled(&tacho_filter_of_##name, event)
static __always_inline int tacho_wants_filled(const volatile struct tacho_filter *filter, const void *payload) {
  return tacho_follows_current() && tacho_passes(filter, payload) && tacho_is_chosen();
}

/* The header of every event in a ring buffer of RING_CHANNEL(). */
struct tacho_head {
  __u32 magic; /* TACHO_HEAD */
  __u32 cpu;
  __u64 time_ns; /* CLOCK_MONOTONIC */
  __u32 process, thread;
  __u64 cgroup; /* of version 2; 0: unknown */
};
#define TACHO_HEAD 0x32434154

/* Lost events by CPU and cgroup, with the times of the first and the last one. */
struct tacho_loser {
  __u64 cgroup; /* 0: unknown, from tacho_reserve_for() */
  __u32 cpu, unused;
};
struct tacho_loss {
  __u64 lost, first_ns, last_ns; /* CLOCK_MONOTONIC */
};

#define TACHO_LOSERS(map)             \
  struct {                            \
    __uint(type, BPF_MAP_TYPE_HASH);  \
    __uint(max_entries, 512);         \
    __type(key, struct tacho_loser);  \
    __type(value, struct tacho_loss); \
  } tacho_losers_of_##map SEC(".maps")

/* A ring buffer `map` of `bytes` (a power of two) for the event `name`; a counter of lost events, and a map that counts them
 * by CPU and cgroup. */
#define RING_CHANNEL(map, name, bytes)          \
  struct {                                      \
    __uint(type, BPF_MAP_TYPE_RINGBUF);         \
    __uint(max_entries, bytes);                 \
  } map SEC(".maps") EVENT_CHANNEL(name);       \
  TACHO_LOSERS(map);                            \
  static const volatile __attribute__((unused)) struct tacho_filter tacho_filter_of_ring_##map; \
  __u64 tacho_lost_##map = 0

#define tacho_reserve(map, type) \
  ((type *)tacho_reserve_in(&(map), &tacho_lost_##map, &tacho_losers_of_##map, sizeof(struct tacho_head) + sizeof(type)))
#define tacho_submit(map, event)                                                   \
  do {                                                                             \
    if (tacho_passes(&tacho_filter_of_ring_##map, event))                          \
      bpf_ringbuf_submit((struct tacho_head *)(event)-1, tacho_wakeup(&(map)));    \
    else                                                                           \
      tacho_discard(map, event);                                                   \
  } while (0)
/* Copies the payload into the ring buffer, if there is room. */
#define tacho_tell(map, payload)                                            \
  ({                                                                        \
    __typeof__(payload) tacho_event = tacho_reserve(map, __typeof__(*(payload))); \
    if (tacho_event) {                                                      \
      *tacho_event = *(payload);                                            \
      tacho_submit(map, tacho_event);                                       \
    }                                                                       \
  })
#define tacho_discard(map, event) bpf_ringbuf_discard((struct tacho_head *)(event)-1, BPF_RB_NO_WAKEUP)

/* Like tacho_reserve(), for an event of any thread, for which tacho_wants_of() was called before; and the same with its
 * cgroup, as of bpf_get_current_cgroup_id(). */
#define tacho_reserve_for(map, type, process, thread) tacho_reserve_for_cgroup(map, type, process, thread, 0)
#define tacho_reserve_for_cgroup(map, type, process, thread, cgroup) \
  ((type *)tacho_reserve_head(&(map), &tacho_lost_##map, &tacho_losers_of_##map, sizeof(struct tacho_head) + sizeof(type), \
                              process, thread, cgroup))

/* The counter has all lost events; those for which the map is full are not attributed to a cgroup. */
static __always_inline void tacho_count_loss(void *losers, __u64 cgroup) {
  struct tacho_loser loser = {cgroup, bpf_get_smp_processor_id(), 0};
  __u64 now = bpf_ktime_get_ns();
  struct tacho_loss first = {0, now, now}, *loss = bpf_map_lookup_elem(losers, &loser);
  if (!loss) {
    bpf_map_update_elem(losers, &loser, &first, BPF_NOEXIST);
    loss = bpf_map_lookup_elem(losers, &loser);
    if (!loss) return;
  }
  __sync_fetch_and_add(&loss->lost, 1);
  loss->last_ns = now;
}

/* A perf event array `map` for the event `name`, and a map of its lost events by CPU and cgroup. */
#define OUTPUT_CHANNEL(map, name)                \
  struct {                                       \
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); \
    __uint(key_size, sizeof(int));               \
    __uint(value_size, sizeof(int));             \
  } map SEC(".maps") EVENT_CHANNEL(name);        \
  TACHO_LOSERS(map)

#define tacho_output(context, map, event) tacho_output_bytes(context, map, event, sizeof *(event))
/* Only the first `size` bytes of the event. */
#define tacho_output_bytes(context, map, event, size) \
  tacho_after_output(&tacho_losers_of_##map, bpf_perf_event_output(context, &(map), BPF_F_CURRENT_CPU, event, size))
#define TACHO_NO_ROOM (-28) /* ENOSPC */
static __always_inline long tacho_after_output(void *losers, long result) {
  if (result == TACHO_NO_ROOM) tacho_count_loss(losers, bpf_get_current_cgroup_id());
  return result;
}

static __always_inline void *tacho_reserve_head(void *ring, __u64 *lost, void *losers, __u64 bytes, __u32 process,
                                                __u32 thread, __u64 cgroup) {
  struct tacho_head *head = bpf_ringbuf_reserve(ring, bytes, 0);
  if (!head) {
    __sync_fetch_and_add(lost, 1);
    tacho_count_loss(losers, cgroup);
    return 0;
  }
  head->magic = TACHO_HEAD;
  head->cpu = bpf_get_smp_processor_id();
  head->time_ns = bpf_ktime_get_ns();
  head->process = process;
  head->thread = thread;
  head->cgroup = cgroup;
  return head + 1;
}

static __always_inline void *tacho_reserve_in(void *ring, __u64 *lost, void *losers, __u64 bytes) {
  __u64 who = bpf_get_current_pid_tgid();
  if (!tacho_wants()) return 0;
  return tacho_reserve_head(ring, lost, losers, bytes, who >> 32, (__u32)who, bpf_get_current_cgroup_id());
}

/*
 * The entry of a key in the map of a SUMMARY() (event.h), which is made if needed; 0: the map is full, which is counted and
 * reported. A map that is not per-CPU needs atomic operations: __sync_fetch_and_add(&entry->count, 1).
 *
 *   struct read_key key = {.pid = pid, .slot = tacho_log2(bytes)};
 *   __u64 *count = tacho_entry(sizes, &key);
 *   if (count) ++*count;
 */
#define tacho_entry(map, key)                                                                                      \
  ({                                                                                                               \
    static const __typeof__(*(map).value) tacho_nothing;                                                           \
    (__typeof__((map).value)) tacho_entry_of(&(map), key, (const void *)&tacho_nothing, &tacho_lost_##map);        \
  })
static __always_inline void *tacho_entry_of(void *map, const void *key, const void *nothing,
                                            unsigned long long *lost) {
  void *entry = bpf_map_lookup_elem(map, key);
  if (entry) return entry;
  bpf_map_update_elem(map, key, nothing, BPF_NOEXIST); /* fails if another CPU has made it meanwhile */
  entry = bpf_map_lookup_elem(map, key);
  if (!entry) __sync_fetch_and_add(lost, 1);
  return entry;
}

/* Declares maps in a line: per-CPU counts of a SUMMARY(), and an LRU map, as for in-flight calls.
 *
 *   SUMMARY_MAP(sizes, struct read_key, __u64, 4096);
 *   LRU_MAP(begun, __u32, struct begun, 16384); */
#define SUMMARY_MAP(map, key_type, value_type, most)          \
  TACHO_MAP(map, PERCPU_HASH, key_type, value_type, most);   \
  SUMMARY(map, map)
#define LRU_MAP(map, key_type, value_type, most) TACHO_MAP(map, LRU_HASH, key_type, value_type, most)
#define TACHO_MAP(map, kind, key_type, value_type, most) \
  struct {                                               \
    __uint(type, BPF_MAP_TYPE_##kind);                   \
    __uint(max_entries, most);                           \
    __type(key, key_type);                               \
    __type(value, value_type);                           \
  } map SEC(".maps")

/* The bucket of ROLE("log2") for a value. */
static __always_inline __u32 tacho_log2(__u64 value) {
  __u32 slot = 0;
  for (__u32 bits = 32; bits; bits >>= 1) {
    if (value >> bits) {
      value >>= bits;
      slot += bits;
    }
  }
  return slot;
}

/* The recorder polls ten times a second; waking it for every event would cost more than the event. */
static __always_inline __u64 tacho_wakeup(void *ring) {
  return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / 4
             ? BPF_RB_FORCE_WAKEUP
             : BPF_RB_NO_WAKEUP;
}

/*
 * Writes the user stack of the current thread to `frames`, up to `bytes`, like bpf_get_stack(context, frames, bytes,
 * BPF_F_USER_STACK). With --call-graph ehframe tacho links its unwinder in place of this weak function. Returns the number
 * of bytes, or a negative error.
 */
__attribute__((weak, noinline, visibility("hidden"))) long tacho_user_stack(void *context, void *frames, __u32 bytes) {
  return bpf_get_stack(context, frames, bytes, BPF_F_USER_STACK);
}

#endif
