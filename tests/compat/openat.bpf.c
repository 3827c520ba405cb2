// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// As programs for perf 6.4 and older were written: perf's section name, the map sized by hand, no description of the
// payload. perf wants the map exactly as large as there are processors: -DPROCESSORS=2.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, 4);
  __uint(value_size, 4);
  __uint(max_entries, PROCESSORS);
} channel SEC(".maps");

SEC("syscalls:sys_enter_openat")
int on_openat(void *context) {
  struct {
    __u64 time;
    char name[16];
  } event = {.time = bpf_ktime_get_ns()};
  bpf_get_current_comm(event.name, sizeof(event.name));
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &event, sizeof(event));
  return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
