/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* IP addresses as text, and TCP states by the kernel's names. */
#ifndef TACHO_ADDRESSES_H
#define TACHO_ADDRESSES_H

#include "bpf/programs/recorders/recorder.h"

#include <bpf/bpf_endian.h>

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define ADDRESS 40 /* bytes of the longest text, with its NUL */

enum tcp_state {
  ESTABLISHED = 1, SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSE, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING,
  NEW_SYN_RECV
};

static const char address_4[] = "%pI4";
static const char mapped_4[] = "::ffff:%pI4";
static const char first_group[] = "%x", other_group[] = ":%x", all_groups[] = "%s%s%s%s%s%s%s%s";

/* Text of RFC 5952: lower case, no leading zeros, "::" for the first of the longest runs of two or more zero groups. An
 * IPv4-mapped address ends in the IPv4 form. */
static __noinline int write_address_6(char *text, const void *six) {
  __u16 groups[8];
  char parts[8][8] = {};
  __u64 mapped = (__u64)six + 12, pointers[8];
  __u32 begin = 8, length = 1, zeros = 0;
  if (bpf_probe_read_kernel(groups, sizeof groups, six)) return 0;
  for (__u32 i = 0; i < 8; ++i) {
    zeros = groups[i] ? 0 : zeros + 1;
    if (zeros <= length) continue;
    length = zeros;
    begin = i + 1 - zeros;
  }
  if (begin == 0 && length == 5 && groups[5] == 0xffff) return bpf_snprintf(text, ADDRESS, mapped_4, &mapped, sizeof mapped);
#pragma unroll
  for (__u32 i = 0; i < 8; ++i) {
    __u64 group = bpf_ntohs(groups[i]);
    pointers[i] = (__u64)parts[i];
    if (i == begin) {
      parts[i][0] = ':';
      if (begin + length == 8) parts[i][1] = ':';
    } else if (i < begin || i >= begin + length) {
      if (i == 0) bpf_snprintf(parts[i], sizeof parts[i], first_group, &group, sizeof group);
      if (i != 0) bpf_snprintf(parts[i], sizeof parts[i], other_group, &group, sizeof group);
    }
  }
  return bpf_snprintf(text, ADDRESS, all_groups, pointers, sizeof pointers);
}

/* Writes up to ADDRESS bytes. The addresses are in kernel memory. */
static __always_inline void write_address(char *text, __u16 family, const void *four, const void *six) {
  __u64 bytes = (__u64)(family == AF_INET ? four : six);
  text[0] = 0;
  if (family == AF_INET) bpf_snprintf(text, ADDRESS, address_4, &bytes, sizeof bytes);
  if (family == AF_INET6) write_address_6(text, six);
}

#endif
