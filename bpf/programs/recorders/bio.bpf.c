// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Block I/O: what disks are asked for, how long it waits for them and how long they take, with the stack that asked.
#include "bpf/programs/recorders/recorder.h"

#include "bpf/programs/recorders/disks.h"

const volatile __u64 min_us HELP("only requests that take so long from begin to end, in microseconds");
const volatile __u64 min_bytes HELP("only requests of this size and more");
const volatile char disk[TACHO_DISK_NAME] HELP("only this disk: disk=sda");
const volatile __u32 dev HELP("only this disk, where it has no name: its major number * 1048576 + its minor number");
const volatile bool max HELP("only requests that take longer than all before them: the last one is the slowest, with its stack");

const volatile struct tacho_disk tacho_disks[TACHO_MOST_DISKS]; /* set by the recorder */

enum op { other, read, write, discard, flush };

struct bio {
  __u64 lat_ns ROLE("value");
  __u64 queue_ns;   /* of it: in the queue of an I/O scheduler */
  __u64 service_ns; /* of it: given to the disk */
  __u64 bytes;
  __u64 sector; /* of 512 bytes */
  __u32 major, minor;
  enum op op ROLE("key");
  enum error_name error;
  char flags[8]; /* as the kernel writes them: W write, S synchronous, M metadata, A ahead, F for flush, ... */
  char disk[TACHO_DISK_NAME]; /* empty: it came after the recording began */
  __u64 kernel_stack[KERNEL_FRAMES] ROLE("stack") FORMAT("kaddr");
  __u64 user_stack[USER_FRAMES] ROLE("stack") FORMAT("uaddr");
};
EVENT(bio, struct bio);
RING_CHANNEL(channel, bio, 8 << 20);

struct place {
  __u64 sector;
  __u64 dev;
};
struct request {
  __u64 insert_ns, issue_ns; /* since boot */
  __u64 bytes;
  __u32 process, thread;
  char flags[8];
  struct stack stack;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, struct place);
  __type(value, struct request);
} requests SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct request);
} rooms SEC(".maps");

// The thread that is here now asked for it, or writes for others (kworker), or sends what others have queued.
static __always_inline int begin(struct trace_event_raw_block_rq *context, bool is_issued) {
  struct place place = {.sector = context->sector, .dev = context->dev};
  struct request *request = bpf_map_lookup_elem(&requests, &place);
  __u64 now = bpf_ktime_get_ns(), who = bpf_get_current_pid_tgid();
  __u32 only = 0;
  if (request && is_issued && !request->issue_ns) {
    request->issue_ns = now;
    return 1;
  }
  if ((dev && context->dev != dev) || context->bytes < min_bytes || !is_wanted_later()) return 1;
  request = bpf_map_lookup_elem(&rooms, &only);
  if (!request) return 1;
  request->insert_ns = now;
  request->issue_ns = is_issued ? now : 0;
  request->bytes = context->bytes;
  request->process = who >> 32;
  request->thread = (__u32)who;
  bpf_core_read_str(request->flags, sizeof request->flags, &context->rwbs);
  take_stack(context, &request->stack);
  bpf_map_update_elem(&requests, &place, request, BPF_ANY);
  return 1;
}

static __always_inline enum op op_of(char letter) {
  return letter == 'R' ? read : letter == 'W' ? write : letter == 'D' ? discard : letter == 'F' ? flush : other;
}

/* Where the name of a disk stands among those that the recorder knew; TACHO_MOST_DISKS: nowhere. */
static __always_inline __u32 disk_of(__u32 number) {
  __u32 found = TACHO_MOST_DISKS;
  for (__u32 i = 0; i < TACHO_MOST_DISKS; ++i) {
    if (!tacho_disks[i].dev) break;
    if (tacho_disks[i].dev != number) continue;
    found = i;
    break;
  }
  return found;
}

/* With `max`: of all requests so far. Two CPUs may both find theirs longer. */
__u64 longest_ns;
static __always_inline bool is_longest(__u64 taken) {
  if (!max) return true;
  if (taken <= longest_ns) return false;
  longest_ns = taken;
  return true;
}

SEC("tracepoint/block/block_rq_insert")
int inserted(struct trace_event_raw_block_rq *context) { return begin(context, false); }

SEC("tracepoint/block/block_rq_issue")
int issued(struct trace_event_raw_block_rq *context) { return begin(context, true); }

SEC("tracepoint/block/block_rq_complete")
int completed(struct trace_event_raw_block_rq_completion *context) {
  struct place place = {.sector = context->sector, .dev = context->dev};
  struct request *request = bpf_map_lookup_elem(&requests, &place);
  struct bio *event;
  __u64 now = bpf_ktime_get_ns();
  if (!request) return 1;
  if ((now - request->insert_ns) / 1000 >= min_us && is_longest(now - request->insert_ns) && is_taken()) {
    event = tacho_reserve_for(channel, struct bio, request->process, request->thread);
    if (event) {
      event->lat_ns = now - request->insert_ns;
      event->queue_ns = request->issue_ns ? request->issue_ns - request->insert_ns : 0;
      event->service_ns = request->issue_ns ? now - request->issue_ns : 0;
      event->bytes = request->bytes;
      event->sector = context->sector;
      event->major = context->dev >> 20;
      event->minor = context->dev & 0xfffff;
      event->error = context->error < 0 ? -context->error : context->error;
      __builtin_memcpy(event->flags, request->flags, sizeof event->flags);
      event->op = op_of(event->flags[0]);
      __u32 at = disk_of(context->dev);
      for (int i = 0; i < TACHO_DISK_NAME; ++i) event->disk[i] = at < TACHO_MOST_DISKS ? tacho_disks[at].name[i] : 0;
      bpf_probe_read_kernel(event->kernel_stack, sizeof event->kernel_stack, request->stack.kernel);
      bpf_probe_read_kernel(event->user_stack, sizeof event->user_stack, request->stack.user);
      tacho_submit(channel, event);
    }
  }
  bpf_map_delete_elem(&requests, &place);
  return 1;
}
