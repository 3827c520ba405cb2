// Returns 0 on a tracepoint, which takes its hits from every perf event there: what the recorder has to warn of.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} calls SEC(".maps");

SEC("tracepoint/syscalls/sys_enter_getppid")
int drops(void *context) {
  __u64 word = 1;
  bpf_perf_event_output(context, &calls, BPF_F_CURRENT_CPU, &word, sizeof word);
  return 0;
}

char LICENSE[] SEC("license") = "GPL";
