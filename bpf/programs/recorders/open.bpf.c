// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls of open(), openat(), openat2() and creat(), also those that fail.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/unseen_ends.h"

#define PATH 256

const volatile bool failed HELP("only calls that fail");
const volatile __u64 min_us HELP("only calls of at least N microseconds");
const volatile char path[64] HELP("only paths with this prefix, as passed to the call: path='/etc'");

enum folder { AT_FDCWD = -100 };
enum access { O_RDONLY, O_WRONLY, O_RDWR };

struct open {
  __u64 lat_ns ROLE("value");
  __s32 fd; /* -1: none */
  enum error_name error ROLE("table:path,error");
  enum access access;
  __u32 flags FORMAT("hex"); /* O_... without the access mode */
  __u32 mode FORMAT("oct");
  enum folder dirfd; /* directory to which a relative path is relative */
  char path[PATH] ROLE("key");
};
EVENT(open, struct open);
CHANNEL(channel, open);

struct attempt {
  __u64 time_ns, path, flags, mode;
  __s64 dirfd;
};
IN_FLIGHT(attempts, struct attempt);

PER_CPU(events, struct open);

#define O_ACCMODE 3
#define O_CREAT 0100
#define CREAT_FLAGS 01101 /* O_CREAT | O_WRONLY | O_TRUNC */

static __always_inline int begin(long dirfd, __u64 file, __u64 flags, __u64 mode) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  struct attempt attempt = {.path = file, .flags = flags, .mode = mode, .dirfd = dirfd}, *open;
  if (!is_chosen()) return 1;
  open = bpf_map_lookup_elem(&attempts, &thread);
  if (open) close_unseen(&open->time_ns, min_us);
  attempt.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&attempts, &thread, &attempt, BPF_ANY);
  return 1;
}

static __always_inline bool is_below(const char *file) {
  for (int i = 0; i < (int)sizeof path && path[i]; ++i)
    if (file[i] != path[i]) return false;
  return true;
}

// Reads the path at the return: the kernel has read it, so its page is present. If it was paged out since then the path is
// empty.
static __always_inline int end(void *context, long ret) {
  __u64 now = bpf_ktime_get_ns();
  __u32 thread = (__u32)bpf_get_current_pid_tgid(), only = 0;
  struct attempt *attempt = bpf_map_lookup_elem(&attempts, &thread);
  struct open *event = bpf_map_lookup_elem(&events, &only);
  if (!attempt || !event) return 1;
  event->lat_ns = now - attempt->time_ns;
  event->fd = ret < 0 ? -1 : ret;
  event->error = error_of(ret);
  event->access = attempt->flags & O_ACCMODE;
  event->flags = attempt->flags & ~(__u64)O_ACCMODE;
  event->mode = attempt->flags & O_CREAT ? attempt->mode : 0;
  event->dirfd = attempt->dirfd;
  __builtin_memset(event->path, 0, sizeof event->path);
  bpf_probe_read_user_str(event->path, sizeof event->path, (const void *)attempt->path);
  bpf_map_delete_elem(&attempts, &thread);
  if (event->lat_ns / 1000 < min_us || (failed && event->error == OK)) return 1;
  if (!is_below(event->path) || !IS_WANTED(open, event)) return 1;
  EMIT(context, channel, event);
  return 1;
}

SEC("?tracepoint/syscalls/sys_enter_open")
int enter_open(struct trace_event_raw_sys_enter *context) {
  return begin(AT_FDCWD, context->args[0], context->args[1], context->args[2]);
}
SEC("?tracepoint/syscalls/sys_enter_creat")
int enter_creat(struct trace_event_raw_sys_enter *context) {
  return begin(AT_FDCWD, context->args[0], CREAT_FLAGS, context->args[1]);
}
SEC("tracepoint/syscalls/sys_enter_openat")
int enter_openat(struct trace_event_raw_sys_enter *context) {
  return begin(context->args[0], context->args[1], context->args[2], context->args[3]);
}
SEC("?tracepoint/syscalls/sys_enter_openat2")
int enter_openat2(struct trace_event_raw_sys_enter *context) {
  struct {
    __u64 flags, mode;
  } how = {};
  bpf_probe_read_user(&how, sizeof how, (const void *)context->args[2]);
  return begin(context->args[0], context->args[1], how.flags, how.mode);
}

SEC("?tracepoint/syscalls/sys_exit_open")
int exit_open(struct trace_event_raw_sys_exit *context) { return end(context, context->ret); }
SEC("?tracepoint/syscalls/sys_exit_creat")
int exit_creat(struct trace_event_raw_sys_exit *context) { return end(context, context->ret); }
SEC("tracepoint/syscalls/sys_exit_openat")
int exit_openat(struct trace_event_raw_sys_exit *context) { return end(context, context->ret); }
SEC("?tracepoint/syscalls/sys_exit_openat2")
int exit_openat2(struct trace_event_raw_sys_exit *context) { return end(context, context->ret); }
