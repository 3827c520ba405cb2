/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* IP addresses as people write them, and states of TCP as the kernel calls them. */
#ifndef TACHO_ADDRESSES_H
#define TACHO_ADDRESSES_H

#include "bpf/programs/recorders/recorder.h"

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define ADDRESS 40 /* bytes of the longest, with its end */

enum tcp_state {
  ESTABLISHED = 1, SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSE, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING,
  NEW_SYN_RECV
};

static const char address_4[] = "%pI4";
static const char address_6[] = "%pI6";

/* Writes ADDRESS bytes. The addresses lie in memory of the kernel. */
static __always_inline void write_address(char *text, __u16 family, const void *four, const void *six) {
  __u64 bytes = (__u64)(family == AF_INET ? four : six);
  text[0] = 0;
  if (family == AF_INET) bpf_snprintf(text, ADDRESS, address_4, &bytes, sizeof bytes);
  if (family == AF_INET6) bpf_snprintf(text, ADDRESS, address_6, &bytes, sizeof bytes);
}

#endif
