// A program that may be left out, at a tracepoint that no kernel has.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} nothing SEC(".maps");

SEC("?tracepoint/syscalls/sys_enter_no_such_call")
int on_nothing(void* context) {
  __u64 word = 1;
  bpf_perf_event_output(context, &nothing, BPF_F_CURRENT_CPU, &word, sizeof word);
  return 1;
}

char LICENSE[] SEC("license") = "GPL";
