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
 * With a COMMAND, -p or -t the recorder keeps a table of the threads that are recorded: the threads that exist and
 * all that they start, from their first instruction on. tacho_wants() looks the current thread up in it: one load from an
 * array, and nothing at all with -a, where the kernel removes the code. tacho_wants_of(thread) asks of another one. A
 * program that does not ask is recorded all the same; then the recorder drops what other threads did, which costs a stack
 * and a record each time.
 * Before the recording begins, and while --control or -D has switched samples off, nothing is wanted.
 *
 * It also answers for --filter: `-e ./slow.bpf.c --filter 'comm == "dd" && uid >= 1000'`. A program that has filled its
 * event asks with it, and then --filter may name its members, too ('bytes > 4k'):
 *
 *     struct slow_read event = {...};                      // EVENT(slow_read, struct slow_read)
 *     if (!tacho_wants_this(slow_read, &event)) return 1;
 *     bpf_perf_event_output(ctx, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
 *
 * And how it sends events through a ring buffer, which all CPUs share:
 *
 *   RING_CHANNEL(slow, slow_read, 4 << 20);              // a map of 4 MiB for EVENT(slow_read, struct slow_read)
 *
 *   struct slow_read *event = tacho_reserve(slow, struct slow_read);
 *   if (!event) return 1;                                // not wanted, or no room, which is counted
 *   event->bytes = ...;                                  // all of it: the memory is not cleared
 *   tacho_submit(slow, event);                           // or tacho_discard(slow, event)
 *
 * tacho_submit() asks about the members that --filter names, and gives the room back when the event is not wanted.
 * A header before each event says when (CLOCK_MONOTONIC), on which CPU and in which thread it was reserved; the recorder
 * makes a sample of it. What finds no room is reported as lost events of that name, by CPU and cgroup (of tacho_reserve_for()
 * by CPU alone). A ring buffer brings no stack of its own: see ROLE("stack") in event.h. Where stacks are wanted a perf event
 * array is the better channel; here is one that reports losses by cgroup as well (the kernel counts them by event and CPU):
 *
 *   OUTPUT_CHANNEL(channel, slow_read);
 *
 *   tacho_output(ctx, channel, &event);                  // bpf_perf_event_output() of *(&event), and what it returns
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

/* Whether the recorder switches events on and off, and whether they are on. Both are set by the recorder. */
static const volatile __u32 tacho_is_switched = 0;
__u32 tacho_is_on = 0;

/*
 * The condition of --filter: comparisons, the first of which is asked first. Each says which is asked next when it holds
 * and when it does not, always a later one, or how it ends. Set by the recorder; with none at all everything is wanted.
 */
struct tacho_step {
  __u8 value;     /* enum tacho_value; 0: there is none */
  __u8 test;      /* enum tacho_test */
  __u8 yes, no;   /* the number of a step, or one of the two below */
  __u16 at;       /* bytes into the payload; which half of the name; which level of cgroups */
  __u8 size;      /* bytes there: 1, 2, 4 or 8 */
  __u8 is_signed;
  __u64 mask;     /* bits of the value that count */
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
/* What tacho_wants() asks, and for each event what tacho_wants_this() does. */
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
__u64 tacho_second = 0, tacho_this_second = 0; /* the present second, and what it has seen */
__u64 tacho_over_rate = 0;                     /* what was too much, so far */

/* Whether events are on and the recording is about a thread, which need not be the current one: one that is woken, or whose I/O has ended. */
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

/* The value that the step compares. */
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

/* Whether the current event is to be recorded: the current thread is followed, and neither --filter,
 * --sample-rate nor --max-rate leaves it out. Ask once for each event, as the last check;
 * tacho_reserve() asks itself. */
static __always_inline int tacho_wants(void) {
  return tacho_follows_current() && tacho_passes(&tacho_filter, 0) && tacho_is_chosen();
}
/* What happens to another thread than the current one. --filter, which asks about the current one, cannot be used then. */
static __always_inline int tacho_wants_of(__u32 thread) {
  return tacho_follows_thread(thread) && tacho_is_chosen();
}

/* As tacho_wants(), of an event that is filled: `name` as in EVENT(name, type), and a pointer to it. */
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
};
#define TACHO_HEAD 0x31434154

/* Of events that found no room: whose they were, and when the first and the last one were lost. */
struct tacho_loser {
  __u64 cgroup; /* 0: of a thread that need not be the current one */
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

/* The map `map`, a ring buffer of `bytes` (a power of two), for the event `name`; a counter of events
 * that found no room, and a map that counts them by CPU and cgroup. */
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
/* A copy of what `payload` points to, where there is room. */
#define tacho_tell(map, payload)                                            \
  ({                                                                        \
    __typeof__(payload) tacho_event = tacho_reserve(map, __typeof__(*(payload))); \
    if (tacho_event) {                                                      \
      *tacho_event = *(payload);                                            \
      tacho_submit(map, tacho_event);                                       \
    }                                                                       \
  })
#define tacho_discard(map, event) bpf_ringbuf_discard((struct tacho_head *)(event)-1, BPF_RB_NO_WAKEUP)

/* As tacho_reserve(), for an event of a thread that need not be the current one, and that was checked
 * before. */
#define tacho_reserve_for(map, type, process, thread) \
  ((type *)tacho_reserve_head(&(map), &tacho_lost_##map, &tacho_losers_of_##map, sizeof(struct tacho_head) + sizeof(type), \
                              process, thread, 0))

/* The counter beside `losers` counts all of them; losses that the map has no room for have no owner. */
static __always_inline void tacho_count_loss(void *losers, int is_current) {
  struct tacho_loser loser = {is_current ? bpf_get_current_cgroup_id() : 0, bpf_get_smp_processor_id(), 0};
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

/* The map `map` of the samples of the event `name`, and one of whose samples found no room in the kernel's rings. */
#define OUTPUT_CHANNEL(map, name)                \
  struct {                                       \
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); \
    __uint(key_size, sizeof(int));               \
    __uint(value_size, sizeof(int));             \
  } map SEC(".maps") EVENT_CHANNEL(name);        \
  TACHO_LOSERS(map)

#define tacho_output(context, map, event) tacho_output_bytes(context, map, event, sizeof *(event))
/* The first `size` bytes of what `event` points to. */
#define tacho_output_bytes(context, map, event, size) \
  tacho_after_output(&tacho_losers_of_##map, bpf_perf_event_output(context, &(map), BPF_F_CURRENT_CPU, event, size))
#define TACHO_NO_ROOM (-28) /* ENOSPC */
static __always_inline long tacho_after_output(void *losers, long result) {
  if (result == TACHO_NO_ROOM) tacho_count_loss(losers, 1);
  return result;
}

static __always_inline void *tacho_reserve_head(void *ring, __u64 *lost, void *losers, __u64 bytes, __u32 process,
                                                __u32 thread, int is_current) {
  struct tacho_head *head = bpf_ringbuf_reserve(ring, bytes, 0);
  if (!head) {
    __sync_fetch_and_add(lost, 1);
    tacho_count_loss(losers, is_current);
    return 0;
  }
  head->magic = TACHO_HEAD;
  head->cpu = bpf_get_smp_processor_id();
  head->time_ns = bpf_ktime_get_ns();
  head->process = process;
  head->thread = thread;
  return head + 1;
}

static __always_inline void *tacho_reserve_in(void *ring, __u64 *lost, void *losers, __u64 bytes) {
  __u64 who = bpf_get_current_pid_tgid();
  if (!tacho_wants()) return 0;
  return tacho_reserve_head(ring, lost, losers, bytes, who >> 32, (__u32)who, 1);
}

/*
 * The entry of a key in the map of a SUMMARY() (event.h), made when it does not exist; 0: the map is full, which is counted and
 * reported. In a map without PERCPU several CPUs count at a time: __sync_fetch_and_add(&entry->count, 1).
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
  bpf_map_update_elem(map, key, nothing, BPF_NOEXIST); /* another CPU may have made it meanwhile */
  entry = bpf_map_lookup_elem(map, key);
  if (!entry) __sync_fetch_and_add(lost, 1);
  return entry;
}

/* Maps in a line: the counts of a SUMMARY() for each CPU, and what has begun, of which the oldest go when it is full.
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

/* The slot of ROLE("log2") that a value is counted in. */
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
 * The user's stack of the current thread into `frames`, up to `bytes`: what bpf_get_stack(context, frames, bytes,
 * BPF_F_USER_STACK) finds, and where -g is to find stacks without frame pointers, what tacho's unwinder does, which is linked
 * in the place of this function. Bytes written, or below 0.
 */
__attribute__((weak, noinline, visibility("hidden"))) long tacho_user_stack(void *context, void *frames, __u32 bytes) {
  return bpf_get_stack(context, frames, bytes, BPF_F_USER_STACK);
}

#endif
