// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Signals: sender, receiver, and result.
#include "bpf/programs/recorders/recorder.h"

enum signal_name {
  all, HUP, INT, QUIT, ILL, TRAP, ABRT, BUS, FPE, KILL, USR1, SEGV, USR2, PIPE, ALRM, TERM, STKFLT, CHLD, CONT, STOP,
  TSTP, TTIN, TTOU, URG, XCPU, XFSZ, VTALRM, PROF, WINCH, IO, PWR, SYS
};
enum result { delivered, ignored, already_pending, queue_full, without_info };
enum code { user, by_the_kernel = 0x80, queued = -1, timer = -2, message = -3, asynchronous_io = -4, tkill = -6 };

const volatile enum signal_name sig HELP("only this signal: KILL, TERM, ...") = all;
const volatile __u32 target HELP("only signals to this thread, or process");

struct signals {
  enum signal_name sig ROLE("key");
  __u32 target_pid; /* tid of the thread, or pid of the process */
  enum result result;
  enum code code; /* si_code; user: sent by kill() */
  char target[16];
};
EVENT(signals, struct signals);
CHANNEL(channel, signals);

SEC("tracepoint/signal/signal_generate")
int sent(struct trace_event_raw_signal_generate *context) {
  struct signals event = {.sig = context->sig, .target_pid = context->pid, .result = context->result, .code = context->code};
  if ((sig != all && event.sig != sig) || (target && event.target_pid != target)) return 1;
  if (!is_chosen()) return 1;
  bpf_core_read(event.target, sizeof event.target, &context->comm);
  if (!IS_WANTED(signals, &event)) return 1;
  EMIT(context, channel, &event);
  return 1;
}
