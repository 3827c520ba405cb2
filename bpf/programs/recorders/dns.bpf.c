// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Host name look-ups through the C library: getaddrinfo(), gethostbyname().
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/unseen_ends.h"

const volatile __u64 min_us HELP("only look-ups of at least N microseconds");

struct dns {
  __u64 lat_ns ROLE("value");
  __s64 ret; /* getaddrinfo(): 0 or EAI_...; gethostbyname() and gethostbyname2(): a pointer, 0: not found */
  char host[128] ROLE("key");
};
EVENT(dns, struct dns);
CHANNEL(channel, dns);

struct lookup {
  __u64 time_ns, host;
};
IN_FLIGHT(lookups, struct lookup);

static __always_inline int begin(const void *host) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct lookup lookup = {.host = (__u64)host}, *open;
  if (!host || !is_chosen()) return 1;
  open = bpf_map_lookup_elem(&lookups, &thread);
  if (open) close_unseen(&open->time_ns, min_us);
  lookup.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&lookups, &thread, &lookup, BPF_ANY);
  return 1;
}

static __always_inline int end(void *context, __s64 ret) {
  __u64 now = bpf_ktime_get_ns();
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct lookup *lookup = bpf_map_lookup_elem(&lookups, &thread);
  struct dns event = {.ret = ret};
  if (!lookup) return 1;
  event.lat_ns = now - lookup->time_ns;
  bpf_probe_read_user_str(event.host, sizeof event.host, (const void *)lookup->host);
  bpf_map_delete_elem(&lookups, &thread);
  if (event.lat_ns / 1000 < min_us || !IS_WANTED(dns, &event)) return 1;
  EMIT(context, channel, &event);
  return 1;
}

SEC("uprobe/libc.so.6:getaddrinfo")
int BPF_KPROBE(asks, const char *host) { return begin(host); }
SEC("uretprobe/libc.so.6:getaddrinfo")
int BPF_KRETPROBE(answered, int ret) { return end(ctx, ret); }
SEC("uprobe/libc.so.6:gethostbyname")
int BPF_KPROBE(asks_by_name, const char *host) { return begin(host); }
SEC("uretprobe/libc.so.6:gethostbyname")
int BPF_KRETPROBE(answered_by_name, long ret) { return end(ctx, ret); }
SEC("uprobe/libc.so.6:gethostbyname2")
int BPF_KPROBE(asks_by_name2, const char *host) { return begin(host); }
SEC("uretprobe/libc.so.6:gethostbyname2")
int BPF_KRETPROBE(answered_by_name2, long ret) { return end(ctx, ret); }
