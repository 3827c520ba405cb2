// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Block I/O requests: time in the I/O scheduler's queue and on the disk, with the stack that submitted them.
//
// A request is identified by its address (struct request) from insert or issue to completion. Device and sector are not enough:
// flushes have no sector, and several may be in flight.
#include "bpf/programs/recorders/recorder.h"

#include "bpf/programs/recorders/shared_constants.h"

const volatile __u64 min_us HELP("only requests that take at least N microseconds, queue and disk");
const volatile __u64 min_bytes HELP("only requests of at least N bytes");
const volatile char disk[TACHO_DISK_NAME] HELP("only this disk: disk=sda");
const volatile __u32 dev HELP("only this disk, by number: major * 1048576 + minor");
const volatile bool max HELP("only requests that take longer than all before: the last event is the slowest");

const volatile struct tacho_disk tacho_disks[TACHO_MOST_DISKS]; /* set by the recorder */

enum op { other, read, write, discard, flush };

struct bio {
  __u64 lat_ns ROLE("value");
  __u64 queue_ns;   /* part of lat_ns in the I/O scheduler's queue */
  __u64 service_ns; /* part of lat_ns after issue to the disk */
  __u64 bytes;
  __u64 sector; /* of 512 bytes; flush: 0 */
  __u32 major, minor;
  enum op op ROLE("key");
  enum error_name error ROLE("table:major,minor,op,comm");
  char flags[8]; /* rwbs of the tracepoint: W write, S synchronous, M metadata, A read-ahead, F flush, ... */
  char disk[TACHO_DISK_NAME]; /* empty: added after the recording started */
  __u64 unfinished; /* 1: in flight when the recording ended */
  __u64 kernel_stack[KERNEL_FRAMES] ROLE("stack") FORMAT("kaddr");
  __u64 user_stack[USER_FRAMES] ROLE("stack") FORMAT("uaddr");
};
EVENT(bio, struct bio);
RING_CHANNEL(channel, bio, 8 << 20);

/* Members of a request that the tracepoint reports, which does not have its address. */
struct seen {
  __u64 sector;
  __u32 dev, bytes;
};
struct known {
  __u64 insert_ns, issue_ns; /* since boot */
  __u64 cgroup;
  struct seen seen;
  __u32 process, thread;
  char flags[8];
  struct stack stack;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, __u64); /* the address of the request */
  __type(value, struct known);
} requests SEC(".maps");

/*
 * Two programs run at each tracepoint, one after the other on the same CPU: the tp_btf program gets the request's address, the
 * tracepoint program gets the stack without frames of the BPF program. Which one runs first depends on other users of the
 * tracepoint. The first one stores its data here, and the second one joins both.
 */
struct handover {
  __u64 address; /* from the tp_btf program; 0: none */
  struct seen seen;
  __u32 is_issued, is_waiting; /* is_waiting: `known` is from the tracepoint program */
  struct known known;
};
PER_CPU(handovers, struct handover);

static __always_inline bool is_same(const struct seen *one, const struct seen *other) {
  return one->sector == other->sector && one->dev == other->dev && one->bytes == other->bytes;
}

struct request_queue {
  struct gendisk *disk;
} __attribute__((preserve_access_index));
struct request {
  struct request_queue *q;
  unsigned int __data_len;
  __u64 __sector;
} __attribute__((preserve_access_index));
struct request___before_5_17 {
  struct gendisk *rq_disk;
} __attribute__((preserve_access_index));

/* Before Linux 5.11 the queue was the first argument of tracepoints. */
extern int LINUX_KERNEL_VERSION __kconfig;
#define FIRST_WITHOUT_QUEUE (5 << 16 | 11 << 8)
#define REQUEST_OF(context) ((struct request *)(LINUX_KERNEL_VERSION < FIRST_WITHOUT_QUEUE ? (context)[1] : (context)[0]))

/* The same members as the tracepoint reports them. */
static __always_inline struct seen seen_of(struct request *request) {
  struct request___before_5_17 *old = (void *)request;
  struct gendisk *disk =
      bpf_core_field_exists(old->rq_disk) ? BPF_CORE_READ(old, rq_disk) : BPF_CORE_READ(request, q, disk);
  struct seen seen = {.sector = BPF_CORE_READ(request, __sector), .bytes = BPF_CORE_READ(request, __data_len)};
  if (seen.sector == ~0ULL) seen.sector = 0;
  if (disk) seen.dev = (__u32)BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor);
  return seen;
}

/* Sets the issue time of a queued request. False: its insert was not seen. */
static __always_inline bool is_issued_now(__u64 address, __u64 now) {
  struct known *known = bpf_map_lookup_elem(&requests, &address);
  if (!known || known->issue_ns) return false;
  known->issue_ns = now;
  return true;
}

// The tp_btf program's part.
static __always_inline int add_address(struct request *request, bool is_issued) {
  struct seen seen = seen_of(request);
  __u64 address = (__u64)request, now = bpf_ktime_get_ns();
  __u32 only = 0;
  struct handover *handover = bpf_map_lookup_elem(&handovers, &only);
  bool is_waiting;
  if (!handover) return 0;
  is_waiting = handover->is_waiting && handover->is_issued == is_issued && is_same(&handover->known.seen, &seen);
  handover->is_waiting = 0;
  if (!is_waiting) {
    handover->address = address;
    handover->seen = seen;
    handover->is_issued = is_issued;
    return 0;
  }
  if (!is_issued || !is_issued_now(address, now)) bpf_map_update_elem(&requests, &address, &handover->known, BPF_ANY);
  return 0;
}

// The tracepoint program's part. The current thread submitted the request, or is a kworker that issues it for another thread.
static __always_inline int begin(struct trace_event_raw_block_rq *context, bool is_issued) {
  struct seen seen = {.sector = context->sector, .dev = context->dev, .bytes = context->bytes};
  __u64 now = bpf_ktime_get_ns(), who = bpf_get_current_pid_tgid(), address;
  __u32 only = 0;
  struct handover *handover = bpf_map_lookup_elem(&handovers, &only);
  bool is_known;
  if (!handover) return 1;
  handover->is_waiting = 0;
  address = handover->address;
  is_known = address && handover->is_issued == is_issued && is_same(&handover->seen, &seen);
  handover->address = 0;
  if (is_known && is_issued && is_issued_now(address, now)) return 1;
  // Requests may still be merged into a queued one: its size is checked at completion.
  if ((dev && seen.dev != dev) || (is_issued && seen.bytes < min_bytes) || !is_wanted_later()) return 1;
  handover->known.insert_ns = now;
  handover->known.issue_ns = is_issued ? now : 0;
  handover->known.seen = seen;
  handover->known.process = who >> 32;
  handover->known.thread = (__u32)who;
  handover->known.cgroup = bpf_get_current_cgroup_id();
  bpf_core_read_str(handover->known.flags, sizeof handover->known.flags, &context->rwbs);
  take_stack(context, &handover->known.stack);
  if (is_known) {
    bpf_map_update_elem(&requests, &address, &handover->known, BPF_ANY);
  } else {
    handover->is_issued = is_issued;
    handover->is_waiting = 1;
  }
  return 1;
}

static __always_inline enum op op_of(char letter) {
  return letter == 'R' ? read : letter == 'W' ? write : letter == 'D' ? discard : letter == 'F' ? flush : other;
}

/* Index of a disk in tacho_disks; TACHO_MOST_DISKS: none. */
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

/* errno by BLK_STS_*, which the tracepoint reports since Linux 5.16; a negative status is an errno. */
static const enum error_name errors_of_status[] = {
    OK,     EOPNOTSUPP, ETIMEDOUT, ENOSPC, ENOLINK, EREMOTEIO,    EBADE,     ENODATA, EILSEQ, ENOMEM,
    EIO,    EREMCHG,    EAGAIN,    EBUSY,  ETOOMANYREFS, EOVERFLOW, ENODEV,  ETIME,  EINVAL};
static __always_inline enum error_name error_of_status(int status) {
  __u32 at = status;
  if (status < 0) return error_of(status);
  return at < sizeof errors_of_status / sizeof errors_of_status[0] ? errors_of_status[at] : EIO;
}

/* With `max`: the longest time so far. Not atomic: two CPUs may both report a request. */
__u64 longest_ns;
static __always_inline bool is_longest(__u64 taken) {
  if (!max) return true;
  if (taken <= longest_ns) return false;
  longest_ns = taken;
  return true;
}

SEC("tp_btf/block_rq_insert")
int inserts(__u64 *context) { return add_address(REQUEST_OF(context), false); }
SEC("tracepoint/block/block_rq_insert")
int inserted(struct trace_event_raw_block_rq *context) { return begin(context, false); }

SEC("tp_btf/block_rq_issue")
int issues(__u64 *context) { return add_address(REQUEST_OF(context), true); }
SEC("tracepoint/block/block_rq_issue")
int issued(struct trace_event_raw_block_rq *context) { return begin(context, true); }

/* A queued request is merged into another one: only that one completes. */
SEC("?tp_btf/block_rq_merge")
int merges(__u64 *context) {
  __u64 address = (__u64)REQUEST_OF(context);
  bpf_map_delete_elem(&requests, &address);
  return 0;
}

static __always_inline void emit(struct known *known, enum error_name error, bool unfinished) {
  __u64 now = bpf_ktime_get_ns(), since = take_start(&known->insert_ns);
  struct bio *event;
  __u32 at;
  if (!since || (now - since) / 1000 < min_us || known->seen.bytes < min_bytes || !is_longest(now - since) || !is_taken()) return;
  event = tacho_reserve_for_cgroup(channel, struct bio, known->process, known->thread, known->cgroup);
  if (!event) return;
  event->lat_ns = now - since;
  event->queue_ns = known->issue_ns ? elapsed_ns(since, known->issue_ns) : unfinished ? now - since : 0;
  event->service_ns = known->issue_ns ? elapsed_ns(known->issue_ns, now) : 0;
  event->bytes = known->seen.bytes;
  event->sector = known->seen.sector;
  event->major = known->seen.dev >> 20;
  event->minor = known->seen.dev & 0xfffff;
  event->error = error;
  event->unfinished = unfinished;
  __builtin_memcpy(event->flags, known->flags, sizeof event->flags);
  event->op = op_of(event->flags[0]);
  at = disk_of(known->seen.dev);
  for (int i = 0; i < TACHO_DISK_NAME; ++i) event->disk[i] = at < TACHO_MOST_DISKS ? tacho_disks[at].name[i] : 0;
  bpf_probe_read_kernel(event->kernel_stack, sizeof event->kernel_stack, known->stack.kernel);
  bpf_probe_read_kernel(event->user_stack, sizeof event->user_stack, known->stack.user);
  tacho_submit(channel, event);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(completes, struct request *request, int status, unsigned int bytes) {
  __u64 address = (__u64)request;
  struct known *known;
  if (bytes < BPF_CORE_READ(request, __data_len)) return 0; /* partial completion */
  known = bpf_map_lookup_elem(&requests, &address);
  if (!known) return 0;
  emit(known, error_of_status(status), false);
  bpf_map_delete_elem(&requests, &address);
  return 0;
}

#define EMIT_UNFINISHED(address, known) emit(known, OK, true)
AT_END_BY(requests, __u64, struct known, EMIT_UNFINISHED)
