/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers of system calls, by which payloads show names. Define NO_CALL first: the name of -1. */
#ifndef TACHO_SYSCALL_NAMES_H
#define TACHO_SYSCALL_NAMES_H

#include <asm/unistd.h>

enum syscall_name {
  NO_CALL = -1,
#include "bpf/syscall_numbers.h" /* of this machine, below 424; made by syscall_numbers.cmake from asm/unistd.h */
  /* From here on (Linux 5.1) all machines have the same numbers; the headers of Debian 12 end at 450. */
  pidfd_send_signal = 424, io_uring_setup = 425, io_uring_enter = 426, io_uring_register = 427,
  open_tree = 428, move_mount = 429, fsopen = 430, fsconfig = 431, fsmount = 432, fspick = 433,
  pidfd_open = 434, clone3 = 435, close_range = 436, openat2 = 437, pidfd_getfd = 438, faccessat2 = 439,
  process_madvise = 440, epoll_pwait2 = 441, mount_setattr = 442, quotactl_fd = 443,
  landlock_create_ruleset = 444, landlock_add_rule = 445, landlock_restrict_self = 446, memfd_secret = 447,
  process_mrelease = 448, futex_waitv = 449, set_mempolicy_home_node = 450, cachestat = 451,
  fchmodat2 = 452, map_shadow_stack = 453, futex_wake = 454, futex_wait = 455, futex_requeue = 456,
  statmount = 457, listmount = 458, lsm_get_self_attr = 459, lsm_set_self_attr = 460,
  lsm_list_modules = 461, mseal = 462, setxattrat = 463, getxattrat = 464, listxattrat = 465,
  removexattrat = 466, open_tree_attr = 467, file_getattr = 468, file_setattr = 469
};

#endif
