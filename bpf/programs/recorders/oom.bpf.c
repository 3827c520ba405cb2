// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Victims of the OOM killer. The sample's thread is the one whose allocation failed.
#include "bpf/programs/recorders/recorder.h"

struct oom {
  __u64 anon_kb, file_kb, shmem_kb; /* resident memory; these and the next members are 0 in older kernels */
  __u64 total_vm_kb, pgtables_kb;
  __u32 victim_pid;
  __s32 score_adj;
  char victim[16] ROLE("key");
};
EVENT(oom, struct oom);
CHANNEL(channel, oom);

SEC("tracepoint/oom/mark_victim")
int killed(struct trace_event_raw_mark_victim *context) {
  struct oom event = {.victim_pid = context->pid};
  if (!is_chosen()) return 1;
  if (bpf_core_field_exists(context->anon_rss)) {
    event.anon_kb = context->anon_rss;
    event.file_kb = context->file_rss;
    event.shmem_kb = context->shmem_rss;
    event.total_vm_kb = context->total_vm;
    event.pgtables_kb = context->pgtables;
    event.score_adj = context->oom_score_adj;
    bpf_probe_read_kernel_str(event.victim, sizeof event.victim, (void *)context + (context->__data_loc_comm & 0xffff));
  }
  if (IS_WANTED(oom, &event)) EMIT(context, channel, &event);
  return 1;
}
