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
 * array, and nothing at all with -a, where the kernel removes the code. A program that does not ask is
 * recorded all the same; then the recorder drops what other threads did, which costs a stack and a record each time.
 */
#ifndef TACHO_EMIT_H
#define TACHO_EMIT_H

#include <bpf/bpf_helpers.h>
#include <tacho/event.h>

/* 1: only the threads of the table are recorded. Set by the recorder. */
const volatile __u32 tacho_follows = 0;

/* A byte for each thread number; 1: it is recorded. The recorder puts its own map in this one's place. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(key_size, 4);
  __uint(value_size, 4096);
  __uint(max_entries, 1);
} tacho_followed SEC(".maps");

/* Whether the current thread is recorded. */
static __always_inline int tacho_wants(void) {
  __u32 thread, page;
  const __u8 *states;
  if (!tacho_follows) return 1;
  thread = (__u32)bpf_get_current_pid_tgid();
  page = thread >> 12;
  states = bpf_map_lookup_elem(&tacho_followed, &page);
  return states && states[thread & 4095] == 1;
}

#endif
