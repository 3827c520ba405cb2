// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// TCP connections: connect, accept, refused and close, with handshake time, lifetime and bytes.
#include "bpf/programs/recorders/addresses.h"

const volatile __u32 port HELP("only connections with this port on either side");
const volatile __u64 min_us HELP("only events with lat_ns of at least N microseconds");

enum what { connect, refused, accept, close };

struct tcp {
  __u64 lat_ns ROLE("value"); /* connect, refused: handshake; accept: wait for accept(); close: lifetime */
  __u64 rx_bytes, tx_bytes;   /* so far; tx: acknowledged bytes; SYN and FIN count one byte each */
  enum what what ROLE("key");
  __u16 local_port ROLE("table:what,comm,remote"), remote_port;
  char local[ADDRESS], remote[ADDRESS];
};
EVENT(tcp, struct tcp);
RING_CHANNEL(channel, tcp, 4 << 20);

struct flow {
  __u64 begin_ns, cgroup;
  __u32 process, thread; /* 0: before accept() */
  __u32 family;
  __u16 local_port, remote_port;
  __u8 local[16], remote[16];
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, __u64);  // address of the struct sock
  __type(value, struct flow);
} flows SEC(".maps");

static __always_inline void emit(struct flow *flow, const struct tcp_sock *socket, enum what what) {
  __u64 took = bpf_ktime_get_ns() - flow->begin_ns;
  struct tcp *event;
  if (took / 1000 < min_us || !is_taken()) return;
  event = tacho_reserve_for_cgroup(channel, struct tcp, flow->process, flow->thread, flow->cgroup);
  if (!event) return;
  event->lat_ns = took;
  event->rx_bytes = BPF_CORE_READ(socket, bytes_received);
  event->tx_bytes = BPF_CORE_READ(socket, bytes_acked);
  event->what = what;
  event->local_port = flow->local_port;
  event->remote_port = flow->remote_port;
  write_address(event->local, flow->family, flow->local, flow->local);
  write_address(event->remote, flow->family, flow->remote, flow->remote);
  tacho_submit(channel, event);
}

static __always_inline void set_addresses(struct flow *flow, struct trace_event_raw_inet_sock_set_state *context) {
  flow->family = context->family;
  flow->local_port = context->sport;
  flow->remote_port = context->dport;
  if (flow->family == AF_INET) {
    bpf_core_read(flow->local, 4, &context->saddr);
    bpf_core_read(flow->remote, 4, &context->daddr);
  } else {
    bpf_core_read(flow->local, 16, &context->saddr_v6);
    bpf_core_read(flow->remote, 16, &context->daddr_v6);
  }
}

static __always_inline void begin(struct trace_event_raw_inet_sock_set_state *context, __u64 who) {
  __u64 key = (__u64)context->skaddr;
  struct flow flow = {.begin_ns = bpf_ktime_get_ns(), .process = who >> 32, .thread = (__u32)who};
  if (port && context->sport != port && context->dport != port) return;
  if (who) flow.cgroup = bpf_get_current_cgroup_id();
  set_addresses(&flow, context);
  bpf_map_update_elem(&flows, &key, &flow, BPF_ANY);
}

SEC("tracepoint/sock/inet_sock_set_state")
int changes(struct trace_event_raw_inet_sock_set_state *context) {
  const struct tcp_sock *socket = context->skaddr;
  __u64 key = (__u64)socket;
  int old = context->oldstate, new = context->newstate;
  struct flow *flow;
  if (context->protocol != IPPROTO_TCP) return 1;
  if (new == SYN_SENT) {  // in the thread that calls connect()
    if (is_wanted_later()) begin(context, bpf_get_current_pid_tgid());
    return 1;
  }
  if (old == SYN_RECV && new == ESTABLISHED) {  // the current thread is unrelated: the packet interrupted it
    begin(context, 0);
    return 1;
  }
  flow = bpf_map_lookup_elem(&flows, &key);
  if (!flow) return 1;
  if (old == SYN_SENT) {
    set_addresses(flow, context);  // the local address is set by now
    emit(flow, socket, new == ESTABLISHED ? connect : refused);
    flow->begin_ns = bpf_ktime_get_ns();
    if (new == CLOSE) bpf_map_delete_elem(&flows, &key);
  } else if (new == CLOSE) {
    if (flow->thread) emit(flow, socket, close);
    bpf_map_delete_elem(&flows, &key);
  }
  return 1;
}

static __always_inline int accepted(long fd) {
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  struct fdtable *table;
  struct file **slot, *file = 0;
  struct socket *socket;
  __u64 key, who = bpf_get_current_pid_tgid();
  struct flow *flow;
  if (fd < 0 || !is_wanted_later()) return 1;
  table = BPF_CORE_READ(task, files, fdt);
  if (fd >= BPF_CORE_READ(table, max_fds)) return 1;
  slot = BPF_CORE_READ(table, fd);
  bpf_probe_read_kernel(&file, sizeof file, slot + fd);
  socket = BPF_CORE_READ(file, private_data);
  key = (__u64)BPF_CORE_READ(socket, sk);
  flow = bpf_map_lookup_elem(&flows, &key);
  if (!flow || flow->thread) return 1;
  flow->process = who >> 32;
  flow->thread = (__u32)who;
  flow->cgroup = bpf_get_current_cgroup_id();
  emit(flow, (struct tcp_sock *)key, accept);
  return 1;
}

SEC("tracepoint/syscalls/sys_exit_accept4")
int exit_accept4(struct trace_event_raw_sys_exit *context) { return accepted(context->ret); }
SEC("?tracepoint/syscalls/sys_exit_accept")
int exit_accept(struct trace_event_raw_sys_exit *context) { return accepted(context->ret); }
