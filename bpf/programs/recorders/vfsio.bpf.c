// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Reads, writes and syncs of files: duration, bytes, file and file system.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/unseen_ends.h"

enum op { any, read, write, sync };
enum file_system {
  all = 0, ext4 = 0xef53, xfs = 0x58465342, btrfs = 0x9123683e, tmpfs = 0x01021994, nfs = 0x6969, overlay = 0x794c7630,
  f2fs = 0xf2f52010, zfs = 0x2fc12fc1, fuse = 0x65735546, proc = 0x9fa0, sysfs = 0x62656572, cgroup1 = 0x27e0eb,
  cgroup2 = 0x63677270, pipe = 0x50495045, sockets = 0x534f434b, devtmpfs_or_blocks = 0x62646576, devpts = 0x1cd1,
  ninep = 0x01021997, squashfs = 0x73717368, iso9660 = 0x9660, vfat = 0x4d44
};

const volatile enum op op HELP("only read, write or sync");
const volatile enum file_system fs HELP("only files of this file system: ext4, xfs, btrfs, nfs, tmpfs, ...");
const volatile __u64 min_us HELP("only operations of at least N microseconds");
const volatile __u64 min_bytes HELP("only operations of at least N bytes");

struct vfsio {
  __u64 lat_ns ROLE("value");
  __s64 ret; /* bytes, or a negative errno */
  __u64 bytes;
  __u64 inode;
  enum op op ROLE("key");
  enum error_name error;
  enum file_system fs;
  __u32 unfinished; /* 1: not returned when the recording ended; bytes are not known */
  char name[64] ROLE("table:name,op,fs"); /* the file's name without its directory */
};
EVENT(vfsio, struct vfsio);
CHANNEL(channel, vfsio);
UNFINISHED_CHANNEL(vfsio);

struct call {
  __u64 time_ns, file, cgroup;
  __u64 process;
};
/* In-flight operations by thread and kind: a write with O_DSYNC calls fsync inside. */
struct begun {
  __u32 thread, op;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, struct begun);
  __type(value, struct call);
} calls SEC(".maps");

static __always_inline int begin(struct file *file, enum op what) {
  __u64 who = bpf_get_current_pid_tgid();
  struct begun begun = {(__u32)who, what};
  struct call call = {.file = (__u64)file, .cgroup = bpf_get_current_cgroup_id(), .process = who >> 32}, *open;
  if (!file || (op != any && op != what) || !is_chosen()) return 1;
  if (fs != all && BPF_CORE_READ(file, f_inode, i_sb, s_magic) != (__u32)fs) return 1;
  open = bpf_map_lookup_elem(&calls, &begun);
  if (open) close_unseen(&open->time_ns, min_us);
  call.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&calls, &begun, &call, BPF_ANY);
  return 1;
}

static __always_inline void describe(struct vfsio *event, struct file *file) {
  event->fs = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
  event->inode = BPF_CORE_READ(file, f_inode, i_ino);
  bpf_probe_read_kernel_str(event->name, sizeof event->name, BPF_CORE_READ(file, f_path.dentry, d_name.name));
}

static __always_inline int end(void *context, long ret, enum op what) {
  __u64 now = bpf_ktime_get_ns(), began;
  struct begun begun = {(__u32)bpf_get_current_pid_tgid(), what};
  struct call *call = bpf_map_lookup_elem(&calls, &begun);
  struct vfsio event = {.ret = ret, .bytes = ret > 0 ? ret : 0, .error = error_of(ret)};
  struct file *file;
  if (!call) return 1;
  file = (struct file *)call->file;
  began = take_start(&call->time_ns);
  if (!began) return 1;
  event.lat_ns = now - began;
  event.op = what;
  bpf_map_delete_elem(&calls, &begun);
  if (event.lat_ns / 1000 < min_us || event.bytes < min_bytes) return 1;
  describe(&event, file);
  if (IS_WANTED(vfsio, &event)) EMIT(context, channel, &event);
  return 1;
}

// Functions that all reads and writes call: read, pread, readv, splice, and those of the kernel itself.
SEC("fentry/vfs_read") ALTERNATIVE_SET(files, trampolines)
int BPF_PROG(begin_read_f, struct file *file) { return begin(file, read); }
SEC("fexit/vfs_read") ALTERNATIVE_SET(files, trampolines)
int BPF_PROG(end_read_f, struct file *file, char *to, unsigned long size, void *at, long ret) { return end(ctx, ret, read); }
SEC("fentry/vfs_write") ALTERNATIVE_SET(files, trampolines)
int BPF_PROG(begin_write_f, struct file *file) { return begin(file, write); }
SEC("fexit/vfs_write") ALTERNATIVE_SET(files, trampolines)
int BPF_PROG(end_write_f, struct file *file, char *from, unsigned long size, void *at, long ret) { return end(ctx, ret, write); }
SEC("fentry/vfs_fsync_range") ALTERNATIVE_SET(files, trampolines)
int BPF_PROG(begin_sync_f, struct file *file) { return begin(file, sync); }
SEC("fexit/vfs_fsync_range") ALTERNATIVE_SET(files, trampolines)
int BPF_PROG(end_sync_f, struct file *file, long first, long last, int only_data, int ret) { return end(ctx, ret, sync); }

SEC("kprobe/vfs_read") ALTERNATIVE_SET(files, kprobes)
int BPF_KPROBE(begin_read_k, struct file *file) { return begin(file, read); }
SEC("kretprobe/vfs_read") ALTERNATIVE_SET(files, kprobes)
int BPF_KRETPROBE(end_read_k, long ret) { return end(ctx, ret, read); }
SEC("kprobe/vfs_write") ALTERNATIVE_SET(files, kprobes)
int BPF_KPROBE(begin_write_k, struct file *file) { return begin(file, write); }
SEC("kretprobe/vfs_write") ALTERNATIVE_SET(files, kprobes)
int BPF_KRETPROBE(end_write_k, long ret) { return end(ctx, ret, write); }
SEC("kprobe/vfs_fsync_range") ALTERNATIVE_SET(files, kprobes)
int BPF_KPROBE(begin_sync_k, struct file *file) { return begin(file, sync); }
SEC("kretprobe/vfs_fsync_range") ALTERNATIVE_SET(files, kprobes)
int BPF_KRETPROBE(end_sync_k, int ret) { return end(ctx, ret, sync); }

// If neither fentry nor kprobes can be attached: system calls with a file descriptor.
static __always_inline struct file *file_of(__u64 descriptor) {
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  struct fdtable *table = BPF_CORE_READ(task, files, fdt);
  struct file **slot = BPF_CORE_READ(table, fd), *file = 0;
  __u32 number = descriptor;
  if (number < BPF_CORE_READ(table, max_fds)) bpf_probe_read_kernel(&file, sizeof file, slot + number);
  return file;
}

#define CALL(name, what)                                            \
  SEC("tracepoint/syscalls/sys_enter_" #name) ALTERNATIVE_SET(files, calls)      \
  int enter_##name(struct trace_event_raw_sys_enter *context) {     \
    return begin(file_of(context->args[0]), what);                  \
  }                                                                 \
  SEC("tracepoint/syscalls/sys_exit_" #name) ALTERNATIVE_SET(files, calls)       \
  int exit_##name(struct trace_event_raw_sys_exit *context) { return end(context, context->ret, what); }
CALL(read, read)
CALL(pread64, read)
CALL(readv, read)
CALL(preadv, read)
CALL(write, write)
CALL(pwrite64, write)
CALL(writev, write)
CALL(pwritev, write)
CALL(fsync, sync)
CALL(fdatasync, sync)

static __always_inline void emit_open(struct begun begun, struct call *call) {
  __u64 now = bpf_ktime_get_ns(), began = take_start(&call->time_ns);
  struct vfsio event = {.lat_ns = now - began, .op = begun.op, .unfinished = 1};
  if (!began || event.lat_ns / 1000 < min_us || min_bytes) return;
  describe(&event, (struct file *)call->file);
  EMIT_OPEN(vfsio, (__u32)call->process, begun.thread, call->cgroup, &event);
}
AT_END_BY(calls, struct begun, struct call, emit_open)
