// A user's BPF program, compiled on another machine (record.py): one event for each file that is opened.
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_helpers.h>
#include <tacho/emit.h>

struct opened {
  __u64 flags FORMAT("hex");
};
EVENT(opened, struct opened);
OUTPUT_CHANNEL(channel, opened);

struct arguments { /* of the tracepoint */
  __u64 common;
  long number, folder, name, flags, mode;
};

SEC("tracepoint/syscalls/sys_enter_openat")
int opens(struct arguments *context) {
  struct opened event = {.flags = context->flags};
  if (!tacho_wants()) return 1;
  tacho_output(context, channel, &event);
  return 1;
}

char LICENSE[] SEC("license") = "GPL";
