// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Run count and run time of all BPF programs, from the kernel's statistics (struct bpf_prog_stats).
//
// A program iterator: tacho-record runs it each time before it reads the map. Samples have the increase since the last read.
#include "bpf/programs/recorders/kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include <tacho/event.h>

#define MOST_CPUS 1024

const volatile char program[16] HELP("only programs of this name (its first 15 characters)");
const volatile __u32 id HELP("only the program with this id; tacho list bpf prints ids");

const volatile __u32 tacho_wants_run_times = 1; /* tacho-record enables the kernel's run-time statistics */

struct bpfstat_key {
  char program[16] ROLE("key");
  enum bpf_prog_type type ROLE("key");
  __u32 id ROLE("table:program,type");
};
struct bpfstat_value {
  __u64 runs ROLE("count");
  __u64 total_ns ROLE("sum");
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, struct bpfstat_key);
  __type(value, struct bpfstat_value);
} programs SEC(".maps");
SUMMARY(bpfstat, programs);

/* A per-CPU map from which the per-CPU offset of a CPU is computed: address of its entry minus the map's __percpu pointer. Not
 * every kernel has the symbol __per_cpu_offset. The verifier forbids arithmetic on the pointers, so they are stored and read back
 * as numbers. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} parts SEC(".maps");

static __always_inline bool distance_of(__u32 cpu, __u64 *distance) {
  __u32 first = 0;
  volatile __u64 *part = bpf_map_lookup_percpu_elem(&parts, &first, cpu);
  __u64 address, common = 0;
  if (!part) return false; /* past the last CPU */
  *part = (__u64)&parts;
  address = *part;
  bpf_core_read(&common, sizeof common, &((struct bpf_array *)address)->pptrs);
  *part = (__u64)part;
  *distance = *part - common;
  return true;
}

SEC("iter/bpf_prog")
int each(struct bpf_iter__bpf_prog *context) {
  struct bpf_prog *one = context->prog;
  struct bpfstat_key key = {};
  struct bpfstat_value value = {};
  __u64 counters;
  if (!one) return 0;
  key.id = BPF_CORE_READ(one, aux, id);
  key.type = BPF_CORE_READ(one, type);
  bpf_core_read(key.program, sizeof key.program, &one->aux->name);
  if (id && key.id != id) return 0;
  if (program[0]) {
    for (int i = 0; i < 16; ++i) {
      if (key.program[i] != program[i]) return 0;
      if (!program[i]) break;
    }
  }
  counters = (__u64)BPF_CORE_READ(one, stats);
  if (!counters) return 0;
  for (__u32 cpu = 0; cpu < MOST_CPUS; ++cpu) {
    __u64 distance;
    if (!distance_of(cpu, &distance)) break;
    struct bpf_prog_stats *here = (void *)(counters + distance);
    __u64 runs = 0, time = 0;
    bpf_core_read(&runs, sizeof runs, &here->cnt);
    bpf_core_read(&time, sizeof time, &here->nsecs);
    value.runs += runs;
    value.total_ns += time;
  }
  if (value.runs) bpf_map_update_elem(&programs, &key, &value, BPF_ANY);
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
