// What kernel_probes_test.py's program reads: each call of vfs_read at its entry, and each return, through the
// trampolines that fentry and fexit use. Needs neither vmlinux.h nor a fixed number of CPUs.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <tacho/event.h>

struct asked {
  __u64 bytes;
};
EVENT(asked, struct asked);
struct given {
  __s64 result;
};
EVENT(given, struct given);

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} entries SEC(".maps") EVENT_CHANNEL(asked);

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(key_size, sizeof(int));
  __uint(value_size, sizeof(int));
} returns SEC(".maps") EVENT_CHANNEL(given);

static __always_inline int is_reader(void) {
  static const char reader[] = "reader";
  char name[16];
  bpf_get_current_comm(name, sizeof name);
  for (unsigned i = 0; i < sizeof reader; ++i) {
    if (name[i] != reader[i]) return 0;
  }
  return 1;
}

SEC("fentry/vfs_read")
int BPF_PROG(on_entry, void *file, char *buffer, unsigned long count) {
  struct asked event = {.bytes = count};
  if (is_reader()) bpf_perf_event_output(ctx, &entries, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 0;
}

SEC("fexit/vfs_read")
int BPF_PROG(on_return, void *file, char *buffer, unsigned long count, void *position, long result) {
  struct given event = {.result = result};
  if (is_reader()) bpf_perf_event_output(ctx, &returns, BPF_F_CURRENT_CPU, &event, sizeof event);
  return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
