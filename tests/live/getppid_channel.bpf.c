// An event for every getppid(2) of the program getppid_load, whose number of calls is known: then samples and
// losses must add up. Needs neither vmlinux.h nor a fixed number of CPUs.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct getppid_event {
  __u64 time_ns;  // CLOCK_MONOTONIC
  __u64 padding[2];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} channel SEC(".maps");

SEC("tracepoint/syscalls/sys_enter_getppid")
int on_getppid(void *context) {
  static const char load[] = "getppid_load";
  char name[16];
  bpf_get_current_comm(name, sizeof name);
  for (unsigned i = 0; i < sizeof load; ++i) {
    if (name[i] != load[i]) return 1;
  }
  struct getppid_event event = {.time_ns = bpf_ktime_get_ns()};
  bpf_perf_event_output(context, &channel, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
