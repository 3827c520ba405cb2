// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Capability checks of the kernel (cap_capable), and their results.
#include "bpf/programs/recorders/recorder.h"

enum capability {
  CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, LINUX_IMMUTABLE, NET_BIND_SERVICE,
  NET_BROADCAST, NET_ADMIN, NET_RAW, IPC_LOCK, IPC_OWNER, SYS_MODULE, SYS_RAWIO, SYS_CHROOT, SYS_PTRACE, SYS_PACCT,
  SYS_ADMIN, SYS_BOOT, SYS_NICE, SYS_RESOURCE, SYS_TIME, SYS_TTY_CONFIG, MKNOD, LEASE, AUDIT_WRITE, AUDIT_CONTROL,
  SETFCAP, MAC_OVERRIDE, MAC_ADMIN, SYSLOG, WAKE_ALARM, BLOCK_SUSPEND, AUDIT_READ, PERFMON, BPF, CHECKPOINT_RESTORE,
  ALL = -1
};

const volatile enum capability only HELP("only this capability: SYS_ADMIN, ...") = ALL;
const volatile bool failed HELP("only checks that fail");

struct cap {
  enum capability cap ROLE("key");
  enum error_name error ROLE("table:comm,cap,error");
};
EVENT(cap, struct cap);
CHANNEL(channel, cap);

static __always_inline int emit(void *context, int capability, int answer) {
  struct cap event = {.cap = capability, .error = error_of(answer)};
  if ((only != ALL && capability != only) || (failed && !answer) || !is_chosen() || !IS_WANTED(cap, &event)) return 1;
  EMIT(context, channel, &event);
  return 1;
}

SEC("tracepoint/capability/cap_capable") ALTERNATIVE(asked)
int by_tracepoint(struct trace_event_raw_cap_capable *context) { return emit(context, context->cap, context->ret); }

SEC("fexit/cap_capable") ALTERNATIVE(asked)
int BPF_PROG(by_fexit, const void *credentials, void *space, int capability, unsigned int options, int answer) {
  return emit(ctx, capability, answer);
}

struct question {
  __u64 capability;
};
IN_FLIGHT(questions, struct question);

SEC("kprobe/cap_capable") ALTERNATIVE_SET(asked, kprobes)
int BPF_KPROBE(by_kprobe, const void *credentials, void *space, int capability) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct question question = {capability};
  bpf_map_update_elem(&questions, &thread, &question, BPF_ANY);
  return 1;
}
SEC("kretprobe/cap_capable") ALTERNATIVE_SET(asked, kprobes)
int BPF_KRETPROBE(by_kretprobe, int answer) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct question *question = bpf_map_lookup_elem(&questions, &thread);
  return question ? emit(ctx, question->capability, answer) : 1;
}
