/* Programs that walk the user stack for one perf event: samples of counters and clocks, tracepoints, probes. */
#include "bpf/programs/stack_walk.h"

/* Returns 1 always: the kernel drops the sample otherwise. */
SEC("perf_event")
int walk_on_sample(struct bpf_perf_event_data *context) {
  __sync_fetch_and_add(&tacho_variables.samples, 1);
  struct slot *slot = take_slot();
  if (!slot) return 1;
  if (take_registers(slot, &context->regs)) walk_and_write(context, slot, false);
  slot->busy = 0;
  return 1;
}

SEC("tracepoint")
int walk_on_tracepoint(void *context) {
  struct slot *slot = take_slot();
  if (!slot) return 1;
  if (read_user_registers(slot)) walk_and_write(context, slot, tacho_options.only_recorded_tasks != 0);
  slot->busy = 0;
  return 1;
}

SEC("kprobe")
int walk_on_probe(struct pt_regs *context) {
  struct slot *slot = take_slot();
  if (!slot) return 1;
  if (take_registers(slot, context)) walk_and_write(context, slot, tacho_options.only_recorded_tasks != 0);
  slot->busy = 0;
  return 1;
}

/* Programs that read a probe's arguments and write the sample, by the attach cookie of the probe. */
struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u32);
} tacho_readers SEC(".maps");

/* Its caller has checked that the thread is recorded. */
SEC("kprobe")
int walk_before_reader(struct pt_regs *context) {
  struct slot *slot = take_slot();
  if (slot) {
    if (take_registers(slot, context)) walk_and_write(context, slot, false);
    slot->busy = 0;
  }
  bpf_tail_call(context, &tacho_readers, bpf_get_attach_cookie(context));
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
