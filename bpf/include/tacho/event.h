/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 OR BSD-2-Clause */
/*
 * Declarations in a BPF program for tacho: what its events look like, which map carries which event, and
 * which programs stand in for each other. All of it lives in the object's BTF; nothing runs in the kernel.
 *
 *   #include "vmlinux.h"            // made by tacho from the running kernel; <linux/bpf.h> does as well
 *   #include <bpf/bpf_helpers.h>
 *   #include <tacho/event.h>
 *
 *   struct slow_read {
 *     __u64 latency_ns ROLE("value");    // "_ns" says the unit already; ROLE: what histograms show
 *     __u64 bytes;                       // so does the name "bytes"
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
 * Order members by size: a hole between them carries whatever the stack held, into the capture too.
 *
 * Programs that do the same thing on different kernels are alternatives; the first that can be attached wins:
 *
 *   SEC("fexit/vfs_read") ALTERNATIVE(read) int BPF_PROG(by_fexit, ...) { ... }
 *   SEC("kretprobe/vfs_read") ALTERNATIVE(read) int BPF_KRETPROBE(by_kretprobe, long ret) { ... }
 *   SEC("tracepoint/syscalls/sys_exit_read") ALTERNATIVE(read) int by_syscall(...) { ... }
 *
 * Where one alternative takes several programs (an entry and an exit), ALTERNATIVE_SET(group, set) keeps those of
 * one set together. A program that may be missing altogether is written SEC("?tracepoint/...").
 *
 * End a program on a tracepoint (SEC("tracepoint/...")) with `return 1`. When it returns 0 the kernel drops that hit
 * for every perf event on the same tracepoint, of every recorder on the machine, and counts no loss. tacho warns of such
 * programs, and tries them last among alternatives; on raw_tp/, tp_btf/ and kprobe/ the result does not matter.
 *
 * A program that asks tacho_wants() (tacho/emit.h) leaves out in the kernel what the recording is not about.
 *
 * A global `const volatile __u32 tacho_recorder;` is set to the recorder's own process id before the program is
 * loaded, so that a program can leave out what the recorder itself does.
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
 * The event `name` carries a payload of `type`. A type that programs only use locally does not get into
 * BTF; this unused pointer brings it there with all its members.
 */
#define EVENT(name, type) \
  const type *__event_##name __attribute__((section(".events"), used)) TACHO_FILTER_OF(name)
/* With tacho/emit.h: where --filter puts its condition on that event. */
#define TACHO_FILTER_OF(name)

/* On a member of the payload: "ns", "us", "ms", "s", "bytes", "sectors", "pages" or any word. Not needed for
 * names that are or end in a unit, as latency_ns, delta_us, bytes, read_bytes, nr_pages. */
#define UNIT(unit) TACHO_TAG("unit:" unit)
/* "value": what `tacho hist` shows (default: the only member with a unit of time or size);
 * "key": what it groups by, unless --by says otherwise; several members may be keys;
 * "weight": what `tacho folded` weighs stacks with, unless --weight says otherwise;
 * "table:KEYS": on any member that has no other role: what `tacho table` groups by, unless --by says otherwise. Names of
 *          members and of what every sample has, as "table:comm,error" (default: the members with role "key");
 * "queued": of an event that is a wait, the part of its value in which the thread could run already;
 * "why_queued": of an event whose value is a time in which the thread could run and did not, the reason; one that is
 *          called "woken" follows a wait (tacho flamegraph --wall);
 * "wakes": the number of the thread whose wait ends by this (tacho folded --wakers); "waker": the name of the
 *          thread that ended it, where the event may be reported as another thread's;
 * "stack": an array of __u64 that bpf_get_stack() or bpf_get_task_stack() filled, up to its first 0. It is the event's
 *          call chain, in place of the one that `tacho record -g` has the kernel record. Several members follow one
 *          another (the kernel's part first). In events of a ring buffer they should be the last members: the recorder
 *          makes them the sample's own call chain then, and the "weight" (or the value) its period, for every reader of captures. */
#define ROLE(role) TACHO_TAG("role:" role)
/* "hex", "oct", "kaddr" or "uaddr" (an address in the kernel or in the process; shown with its function's name). */
#define FORMAT(format) TACHO_TAG("format:" format)

/*
 * What a map holds for each key is an event `name`, too, without an event for each value: programs count in the map, and
 * the recorder reads it (at the end, and with --interval in between) and makes a sample of each key that was counted.
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
 * The members of key and value are those of the sample's payload. Roles of a key's members: "key" (all that have none);
 * "log2" (values from 2^n up to 2^(n+1) are counted under n, 0 and 1 under 0) and "linear:N" (under value / N): a slot,
 * shown as the least value in it; "value"; "stack": a 32-bit number that bpf_get_stackid() gave, the sample's call chain
 * ("stack:MAP" where the object has several maps of stacks; the kernel's stands before the user's), or one of 64 bits, above 0,
 * that is a key of a hash MAP of the program's own, whose values are arrays of addresses up to their first 0. Members `pid` and `tid`
 * are those of the sample, which is how its stack gets names. A key that is a number and no struct is a value.
 * Roles of a value's members: "count", "sum" (both only grow), "live" (goes up and down: what is there at the end; "live:count"
 * is the number of things that it is the sum of), "max", and "log2" or "linear:N" on an array: its elements are the counts of slots. A value that is a number and no struct is a count.
 * With " unless NAME" after the role the member is there only while NAME, a `const volatile bool` of the object, is false:
 * ROLE("sum unless count").
 * The sample's period is the live number, else the sum, else the count.
 *
 * A program SEC("syscall") is run by the recorder, once, when the recording ends and before it reads maps for the last time:
 * what it puts into maps and ring buffers is part of the recording. A program SEC("iter/task"),
 * SEC("iter/bpf_prog"), ... is run before each reading, for all there are: it stores what the kernel counts itself, and
 * samples have by how much "count" and "sum" grew since the recording began, or since the last reading.
 */
#define SUMMARY(name, map)                                                                                           \
  const __typeof__(map) *__summary_##name __attribute__((section(".events"), used)) TACHO_TAG("summary:" #map); \
  __attribute__((unused)) unsigned long long tacho_lost_##map = 0

/* On a perf event array (or a ring buffer, see tacho/emit.h): the event that it carries. Not needed when the object has
 * one such map and one EVENT. */
#define EVENT_CHANNEL(name) TACHO_TAG("event:" #name)

/* On a program: one of several that do the same; order of appearance is the order in which they are tried. */
#define ALTERNATIVE(group) TACHO_TAG("alternative:" #group)
/* As above; all programs of the same set stand or fall together. */
#define ALTERNATIVE_SET(group, set) TACHO_TAG("alternative:" #group "/" #set)

/* On a `const volatile` global: what its value does, in a line. */
#define HELP(text) TACHO_TAG("help:" text)

/*
 * Where -g is to find users' stacks of binaries without frame pointers, tacho links its unwinder into the object in the
 * place of this function, which writes the stack just in front of the event. It is called by bpf_perf_event_output() as it
 * stands below; loaded by others than tacho, the object has this function, which does nothing.
 */
__attribute__((weak, noinline, visibility("hidden"))) int tacho_walk_stack(void *context) {
  __asm__ volatile("" : : "r"(context));
  return 0;
}
#define bpf_perf_event_output(context, map, flags, data, size) \
  (tacho_walk_stack(context), bpf_perf_event_output(context, map, flags, data, size))

#endif
