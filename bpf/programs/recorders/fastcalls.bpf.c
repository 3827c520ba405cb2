// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls of a program compiled with -pg or -finstrument-functions, one event at each return. They are reported by a library
// (record/preload/compiled_calls.c) that tacho-record preloads into the program.
#include "bpf/programs/recorders/recorder.h"

#define ARGUMENTS 6

const volatile char binary[256] HELP("the program, compiled with -pg or -finstrument-functions, that the COMMAND runs: binary='./prog'");
const volatile __u32 depth HELP("only calls up to this depth; 1: calls from functions that are not instrumented");
const volatile __u64 min_us HELP("only calls of at least N microseconds");

const volatile char lib[256];              /* the preloaded library; set by tacho-record */
const volatile __u32 tacho_preloads;       /* for tacho-record to preload it */
const volatile __u32 tacho_wants_types = 1; /* as in calls.bpf.c */

struct call {
  __u64 dur_ns ROLE("value");
  __u64 function ROLE("function") FORMAT("uaddr");
  __u64 level ROLE("depth"); /* 1: called by a function that is not instrumented */
  /* Only with -pg: registers, as in calls.bpf.c. */
  __u64 ret FORMAT("hex") ROLE("returned");
  __u64 args[ARGUMENTS] FORMAT("hex") ROLE("arguments");
};
#define BYTES_WITHOUT_VALUES __builtin_offsetof(struct call, ret)
EVENT(call, struct call);
CHANNEL(channel, call);

struct reported {
  struct call call;
  __u64 has_values;
};

SEC("uprobe.multi/$lib:tacho_call_ended")
int ended(struct pt_regs *context) {
  struct reported reported;
  if (!is_chosen() || bpf_probe_read_user(&reported, sizeof reported, (const void *)PT_REGS_PARM1(context))) return 0;
  if ((depth && reported.call.level > depth) || reported.call.dur_ns / 1000 < min_us || !is_taken()) return 0;
  if (reported.has_values)
    EMIT(context, channel, &reported.call);
  else
    tacho_output_bytes(context, channel, &reported.call, BYTES_WITHOUT_VALUES);
  return 0;
}
