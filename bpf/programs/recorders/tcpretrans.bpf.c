// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// TCP retransmissions.
#include "bpf/programs/recorders/addresses.h"

const volatile __u32 port HELP("only connections with this port on either side");

struct tcpretrans {
  enum tcp_state state ROLE("key");
  __u16 local_port ROLE("table:state,remote"), remote_port;
  char local[ADDRESS], remote[ADDRESS];
};
EVENT(tcpretrans, struct tcpretrans);
CHANNEL(channel, tcpretrans);

#define EMIT_FROM(context)                                                                           \
  struct tcpretrans event = {.state = BPF_CORE_READ(context, state),                            \
                             .local_port = BPF_CORE_READ(context, sport),                       \
                             .remote_port = BPF_CORE_READ(context, dport)};                     \
  __u16 family = BPF_CORE_READ(context, family);                                                \
  if (port && event.local_port != port && event.remote_port != port) return 1;                  \
  write_address(event.local, family, &(context)->saddr, &(context)->saddr_v6);                  \
  write_address(event.remote, family, &(context)->daddr, &(context)->daddr_v6);                 \
  if (IS_WANTED(tcpretrans, &event)) EMIT(context, channel, &event);                            \
  return 1

// Not filtered by thread: the retransmission timer interrupts an unrelated thread.
SEC("tracepoint/tcp/tcp_retransmit_skb")
int sent_again(void *context) {
  struct trace_event_raw_tcp_retransmit_skb *now = context;
  struct trace_event_raw_tcp_event_sk_skb *before = context;
  if (bpf_core_type_exists(struct trace_event_raw_tcp_retransmit_skb)) {
    EMIT_FROM(now);
  }
  EMIT_FROM(before);
}
