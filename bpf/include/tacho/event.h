/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/*
 * Declarations of a BPF program for tacho: the members of its events, the maps that carry them, and alternative
 * programs. They are stored in the object's BTF; no code runs in the kernel for them.
 *
 *   #include "vmlinux.h"            // made by tacho from the running kernel; <linux/bpf.h> does as well
 *   #include <bpf/bpf_helpers.h>
 *   #include <tacho/event.h>
 *
 *   struct slow_read {
 *     __u64 latency_ns ROLE("value");    // unit by the suffix "_ns"; ROLE: the value of histograms
 *     __u64 bytes;                       // unit by the name
 *     __u32 queue_depth UNIT("requests");
 *     __u64 flags FORMAT("hex");
 *     char comm[16];                     // text
 *   };
 *   EVENT(slow_read, struct slow_read);
 *
 *   struct {
 *     __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
 *     __uint(key_size, sizeof(int));
 *     __uint(value_size, sizeof(int));
 *   } channel SEC(".maps") EVENT_CHANNEL(slow_read);
 *
 * `tacho record -e ./slow_read.bpf.c -a` then opens an event "slow_read" on every CPU, and every reader of the
 * capture shows `latency_ns=5120 bytes=4096 ...`. The map needs no max_entries: tacho sizes it to the CPUs.
 *
 * Members of enum types show the names of their enumerators up to "___": a name that C allows once in a source only can be
 * `futex___object` in one enum and `futex` in another.
 *
 * Order members by size: padding between them has old contents of the stack, which get into the capture.
 *
 * Programs that do the same on different kernels are alternatives; the first one that can be attached is used:
 *
 *   SEC("fexit/vfs_read") ALTERNATIVE(read) int BPF_PROG(by_fexit, ...) { ... }
 *   SEC("kretprobe/vfs_read") ALTERNATIVE(read) int BPF_KRETPROBE(by_kretprobe, long ret) { ... }
 *   SEC("tracepoint/syscalls/sys_exit_read") ALTERNATIVE(read) int by_syscall(...) { ... }
 *
 * If an alternative has several programs (entry and exit), ALTERNATIVE_SET(group, set) joins the programs of a set.
 * An optional program is declared with SEC("?tracepoint/...").
 *
 * End a program on a tracepoint (SEC("tracepoint/...")) with `return 1`. If it returns 0, the kernel drops the sample
 * of every perf event on that tracepoint, of all recorders on the machine, without counting a loss. tacho warns of
 * such programs and tries them last among alternatives. For raw_tp/, tp_btf/ and kprobe/ the result is ignored.
 *
 * A program that calls tacho_wants() (tacho/emit.h) filters by the recording's target in the kernel.
 *
 * A global `const volatile __u32 tacho_recorder;` is set to the recorder's pid before the program is loaded, so that
 * the program can ignore the recorder.
 */
#ifndef TACHO_EVENT_H
#define TACHO_EVENT_H

#ifndef __has_attribute
#define __has_attribute(name) 0
#endif
#if !__has_attribute(btf_decl_tag)
#error "tacho/event.h needs clang 14 or newer (the btf_decl_tag attribute)"
#endif
#define TACHO_TAG(text) __attribute__((btf_decl_tag(text)))

/*
 * The event `name` has a payload of `type`. The unused pointer adds the type to BTF, which has no types that are
 * used only in functions.
 */
#define EVENT(name, type) \
  const type *__event_##name __attribute__((section(".events"), used)) TACHO_FILTER_OF(name)
/* With tacho/emit.h: the condition of --filter for the event. */
#define TACHO_FILTER_OF(name)

/* On a member of the payload: "ns", "us", "ms", "s", "bytes", "sectors", "pages" or any word. Not needed for
 * names that are or end in a unit, as latency_ns, delta_us, bytes, read_bytes, nr_pages. */
#define UNIT(unit) TACHO_TAG("unit:" unit)
/* "value": the value of `tacho hist` (default: the only member with a unit of time or size);
 * "key": its keys (default of --by); several members may be keys;
 * "weight": the weight of stacks in `tacho folded` (default of --weight);
 * "table:KEYS": on any member without another role: the keys of `tacho table` (default of --by), a list of members and
 *          sample values, as "table:comm,error". Without it: the members with role "key";
 * "queued": of an event that is a wait: the part of its value in which the thread was runnable;
 * "why_queued": of an event whose value is run-queue time: the reason; "woken" means after a wait
 *          (tacho flamegraph --wall);
 * "wakes": the tid of the thread that is woken (tacho folded --wakers); "waker": the name of the waker, if the event
 *          may be attributed to another thread;
 * "stack": an array of __u64 filled by bpf_get_stack() or bpf_get_task_stack(), up to the first 0. It is the event's
 *          call chain, instead of the kernel's by `tacho record -g`. Several members are joined (kernel stack first). In
 *          events of a ring buffer they should be the last members: the recorder then makes them the call chain of the
 *          sample, and the "weight" (or the value) its period, for every reader of captures. */
#define ROLE(role) TACHO_TAG("role:" role)
/* "hex", "oct", "kaddr" or "uaddr" (a kernel or user address, shown as a symbol). */
#define FORMAT(format) TACHO_TAG("format:" format)

/*
 * A summary: the entries of a map become samples of the event `name`. Programs count in the map; the recorder reads it at
 * the end, and with --interval in between, and makes a sample of each key with counts.
 *
 *   struct read_key { __u32 pid; __u32 slot ROLE("log2") UNIT("bytes"); };
 *   struct {
 *     __uint(type, BPF_MAP_TYPE_PERCPU_HASH);      // or HASH, LRU_HASH, ARRAY and those with PERCPU
 *     __uint(max_entries, 10240);
 *     __type(key, struct read_key);
 *     __type(value, __u64);
 *   } sizes SEC(".maps");
 *   SUMMARY(read_sizes, sizes);
 *
 * The members of key and value are the sample's payload. Roles of key members:
 * "key": the default;
 * "log2": a bucket of a histogram: values from 2^n up to 2^(n+1) are counted under n, 0 and 1 under 0; "linear:N": under
 *          value / N. Shown as the least value of the bucket;
 * "value";
 * "cgroup": an id as bpf_get_current_cgroup_id() returns it; it becomes that of the sample and is not in the payload;
 * "stack": the call chain, by a 32-bit id of bpf_get_stackid(), or a 64-bit id above 0 which is a key of a hash map of
 *          arrays of addresses up to the first 0. "stack:MAP" if the object has several such maps; the kernel stack is
 *          declared before the user stack.
 * Members `pid` and `tid` become those of the sample, by which its stack is symbolized. A key that is a number is a value.
 * Roles of value members:
 * "count", "sum": only grow; "max";
 * "live": grows and shrinks, and the state at the end is recorded; "live:count": the number of things of which "live" is
 *          the sum;
 * "log2", "linear:N" on an array: its elements are the counts of buckets. A value that is a number is a count.
 * " unless NAME" after a role: the member is left out if NAME, a `const volatile bool` of the object, is true:
 * ROLE("sum unless count").
 * The sample's period is the live value, else the sum, else the count.
 *
 * The recorder runs a program SEC("syscall") once, at the end of the recording, before it reads the maps for the last time.
 * It runs programs SEC("iter/task"), SEC("iter/bpf_prog"), ... before each reading: they store counts of the kernel, and
 * samples have the increase of "count" and "sum" since the start of the recording or the previous reading.
 */
#define SUMMARY(name, map)                                                                                           \
  const __typeof__(map) *__summary_##name __attribute__((section(".events"), used)) TACHO_TAG("summary:" #map); \
  __attribute__((unused)) unsigned long long tacho_lost_##map = 0

/* On a perf event array (or a ring buffer, see tacho/emit.h): its event. Not needed if the object has one such map and one
 * EVENT. */
#define EVENT_CHANNEL(name) TACHO_TAG("event:" #name)

/* On a program: one of several alternatives, tried in the order of the source. */
#define ALTERNATIVE(group) TACHO_TAG("alternative:" #group)
/* The same; all programs of a set are attached, or none. */
#define ALTERNATIVE_SET(group, set) TACHO_TAG("alternative:" #group "/" #set)

/* On a `const volatile` global: its help text, one line. */
#define HELP(text) TACHO_TAG("help:" text)

/*
 * Hook of the unwinder: with --call-graph ehframe tacho links a strong definition of this weak function into the object,
 * which writes the user stack just before the event. bpf_perf_event_output() as defined below calls it. If another loader
 * loads the object, it does nothing.
 */
__attribute__((weak, noinline, visibility("hidden"))) int tacho_walk_stack(void *context) {
  __asm__ volatile("" : : "r"(context));
  return 0;
}
#define bpf_perf_event_output(context, map, flags, data, size) \
  (tacho_walk_stack(context), bpf_perf_event_output(context, map, flags, data, size))

#endif
