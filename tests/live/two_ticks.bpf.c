// Two programs on samples: the kernel runs one of them on an event, so each needs an event of its own.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("perf_event")
int on_tick(void* context) {
  return 1;  // keep the sample
}

SEC("perf_event")
int on_tock(void* context) { return 1; }

char LICENSE[] SEC("license") = "GPL";
