/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread waits for that leaves the CPU: by its system call and the call's arguments. Include recorder.h and off_cpu.h first.
 */
#ifndef TACHO_WAIT_OBJECT_H
#define TACHO_WAIT_OBJECT_H

#define NO_CALL none
#include "bpf/programs/recorders/syscall_names.h"

#include "bpf/programs/recorders/addresses.h"
#include "bpf/programs/recorders/futex_owner.h"
#include "bpf/programs/recorders/system_call.h"

#ifndef __NR_poll /* a machine without the oldest calls: numbers that no call has */
enum { poll = -2, getdents = -3, epoll_wait = -4 };
#endif

#define OBJECT_NAME 64
#define OBJECT_DISK 16
struct socket_end {
  __u16 family, port; /* family 0: none */
  __u32 address[4];
};
struct wait_object {
  struct lock_owner owner;
  enum syscall_name call;
  struct socket_end end; /* instead of a name: text is made when there is an event */
  char name[OBJECT_NAME];
  char disk[OBJECT_DISK];
  struct eventpoll *polled; /* of epoll_wait(); 0: none */
  enum object ready;        /* what ended epoll_wait(); none: time, or a signal */
};
/* The text of the last end that a thread waited for, which is often the next one too. */
struct end_text {
  struct socket_end end;
  char text[OBJECT_NAME];
};

/* Calls that wait for the file of their first argument. */
static __always_inline bool has_fd(long call) {
  switch (call) {
    case read: case write: case pread64: case pwrite64: case readv: case writev: case preadv: case pwritev: case preadv2:
    case pwritev2: case getdents: case getdents64: case fsync: case fdatasync: case syncfs: case sync_file_range: case fallocate:
    case ftruncate: case flock: case fcntl: case ioctl: case readahead: case sendfile: case splice: case vmsplice:
    case copy_file_range: case accept: case accept4: case connect: case sendto: case sendmsg: case sendmmsg: case recvfrom:
    case recvmsg: case recvmmsg: case io_uring_enter:
      return true;
  }
  return false;
}

static __always_inline bool is_epoll(long call) { return call == epoll_wait || call == epoll_pwait || call == epoll_pwait2; }

static __always_inline struct file *file_of(struct task_struct *task, __u32 fd) {
  struct fdtable *table = BPF_CORE_READ(task, files, fdt);
  struct file **slots, *opened = 0;
  if (fd >= BPF_CORE_READ(table, max_fds)) return 0;
  slots = BPF_CORE_READ(table, fd);
  bpf_probe_read_kernel(&opened, sizeof opened, slots + fd);
  return opened;
}

/* The address of this or of the other side. An IPv4 address mapped to IPv6 counts as IPv4. */
static __always_inline void take_end(struct socket_end *end, const struct sock *sock, bool is_own) {
  const struct sock_common *common = &sock->__sk_common;
  end->family = BPF_CORE_READ(common, skc_family);
  end->port = is_own ? BPF_CORE_READ(common, skc_num) : bpf_ntohs(BPF_CORE_READ(common, skc_dport));
  if (end->family == AF_INET) {
    end->address[0] = is_own ? BPF_CORE_READ(common, skc_rcv_saddr) : BPF_CORE_READ(common, skc_daddr);
    return;
  }
  if (is_own)
    bpf_core_read(end->address, sizeof end->address, &common->skc_v6_rcv_saddr);
  else
    bpf_core_read(end->address, sizeof end->address, &common->skc_v6_daddr);
  if (end->address[0] || end->address[1] || end->address[2] != bpf_htonl(0xffff)) return;
  end->family = AF_INET;
  end->address[0] = end->address[3];
  end->address[2] = end->address[3] = 0;
}

/* Whether another side connected to the socket. An accepted TCP socket has the port's bucket of the listening one, whose fastreuse
 * is -1 only if a connect() made the bucket. A socket that was bound to a port itself is accepted only if it is UDP: a server's. */
#define BIND_PORT_LOCK 8
static __always_inline bool is_accepted(const struct sock *sock) {
  const struct inet_connection_sock *connection = (const void *)sock;
  struct inet_bind_bucket *bucket;
  bool is_bound = BPF_CORE_READ_BITFIELD_PROBED(sock, sk_userlocks) & BIND_PORT_LOCK;
  if (BPF_CORE_READ(sock, sk_protocol) != IPPROTO_TCP) return is_bound && !BPF_CORE_READ(sock, __sk_common.skc_dport);
  bucket = BPF_CORE_READ(connection, icsk_bind_hash);
  return !is_bound && bucket && BPF_CORE_READ(bucket, fastreuse) >= 0;
}

/* A name that is longer ends with "...". `size`: of `name`. */
static __always_inline void take_name(char *name, __u32 size, const void *from) {
  char next = 0;
  if (bpf_probe_read_kernel_str(name, size, from) < (long)size) return;
  bpf_probe_read_kernel(&next, 1, from + size - 1);
  if (next) __builtin_memcpy(name + size - sizeof "...", "...", sizeof "...");
}

static __always_inline void take_path(char name[OBJECT_NAME], const struct unix_address *address) {
  const char *path = (const char *)__builtin_preserve_access_index(&address->name[0].sun_path);
  take_name(name, OBJECT_NAME, path);
  if (name[0]) return;
  name[0] = '@'; /* an abstract one, which begins with a NUL */
  bpf_probe_read_kernel_str(name + 1, OBJECT_NAME - 1, path + 1);
}

static __always_inline enum object describe_unix(struct wait_object *to, const struct sock *sock) {
  const struct unix_sock *own = (const void *)sock, *other;
  const struct unix_address *address;
  if (!bpf_core_field_exists(own->addr)) return other_fd;
  address = BPF_CORE_READ(own, addr);
  if (address) {
    take_path(to->name, address);
    return BPF_CORE_READ(sock, __sk_common.skc_state) == LISTEN ? listening : accepted;
  }
  other = (const void *)BPF_CORE_READ(own, peer);
  address = BPF_CORE_READ(other, addr);
  if (address) take_path(to->name, address);
  return connected;
}

static __always_inline enum object describe_socket(struct wait_object *to, struct file *opened) {
  const __u16 unix_family = 1;
  const struct socket *socket = BPF_CORE_READ(opened, private_data);
  const struct sock *sock = BPF_CORE_READ(socket, sk);
  __u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);
  bool is_listening, is_server, has_peer;
  if (family == unix_family) return describe_unix(to, sock);
  if (family != AF_INET && (family != AF_INET6 || !bpf_core_field_exists(sock->__sk_common.skc_v6_daddr))) return other_fd;
  is_listening = BPF_CORE_READ(sock, sk_protocol) == IPPROTO_TCP && BPF_CORE_READ(sock, __sk_common.skc_state) == LISTEN;
  is_server = is_listening || is_accepted(sock);
  has_peer = BPF_CORE_READ(sock, __sk_common.skc_dport);
  if (has_peer || is_server) take_end(&to->end, sock, !has_peer); /* a client's datagram socket may send to many peers: no name */
  return is_listening ? listening : is_server ? accepted : connected;
}

/* "parent/name", or the name alone if the parent is the root or has a long name. */
static __always_inline void take_file_name(char name[OBJECT_NAME], const struct dentry *entry, bool has_parent) {
  const __u32 most = OBJECT_NAME / 2;
  long bytes = 0;
  if (has_parent) bytes = bpf_probe_read_kernel_str(name, most, BPF_CORE_READ(entry, d_parent, d_name.name));
  if (bytes <= 2 || bytes >= most) {
    take_name(name, OBJECT_NAME, BPF_CORE_READ(entry, d_name.name));
    return;
  }
  __asm__ volatile("" : "+r"(bytes)); /* the compiler would leave out the mask, which the verifier of Linux 6.1 needs */
  bytes &= most - 1;
  name[(bytes - 1) & (most - 1)] = '/';
  take_name(name + bytes, most, BPF_CORE_READ(entry, d_name.name));
}

static __always_inline enum object describe_file(struct wait_object *to, struct file *opened) {
  const __u16 types = 0170000, socket_type = 0140000, fifo = 0010000, regular = 0100000, folder = 0040000, disk = 0060000;
  const unsigned long anonymous = 0x09041934; /* ANON_INODE_FS_MAGIC */
  __u16 type = BPF_CORE_READ(opened, f_inode, i_mode) & types;
  bool is_file;
  if (type == socket_type) return describe_socket(to, opened);
  is_file = (type == regular || type == folder || type == disk) && BPF_CORE_READ(opened, f_inode, i_sb, s_magic) != anonymous;
  take_file_name(to->name, BPF_CORE_READ(opened, f_path.dentry), is_file);
  if (is_file) BPF_CORE_READ_STR_INTO(&to->disk, opened, f_inode, i_sb, s_bdev, bd_disk, disk_name);
  return type == fifo ? pipe___object : is_file ? file___object : other_fd;
}

/* The file of poll(2) and ppoll(2) with one, whose number is in the memory of the current thread. */
static __always_inline long polled_fd(const struct system_call *call) {
  __s32 fd = -1;
  if ((call->number != poll && call->number != ppoll) || call->second != 1) return -1;
  bpf_probe_read_user(&fd, sizeof fd, (void *)call->first);
  return fd;
}

/* Sets all of `to` for a task that leaves the CPU in this state. `is_current`: its memory can be read. */
static __noinline int describe_wait(struct wait_object *to, struct task_struct *task, enum state state, bool is_current) {
  struct system_call call;
  struct file *opened;
  long fd;
  __builtin_memset(to, 0, sizeof *to);
  to->call = none;
  if (!read_call(&call, task)) return 0;
  to->call = call.number;
  if (state == R) return 0;
  if (to->call == futex) {
    if (state != S || !is_futex_wait(call.second)) return 0;
    if (is_current)
      find_owner(&to->owner, &(struct futex_wait){call.first, call.second, call.third});
    else
      to->owner = (struct lock_owner){.lock = call.first, .object = futex___object};
    return 0;
  }
  if (is_epoll(to->call)) {
    to->owner.object = epoll;
    opened = file_of(task, call.first);
    if (opened) to->polled = BPF_CORE_READ(opened, private_data);
    return 0;
  }
  fd = has_fd(to->call) ? (int)call.first : is_current ? polled_fd(&call) : -1;
  if (fd < 0) return 0;
  opened = file_of(task, fd);
  if (opened) to->owner.object = describe_file(to, opened);
  return 0;
}

/* What was the first to end epoll_wait(): the list of ready files was empty when the wait began. A peer that this process asked has
 * its name. */
static __noinline int describe_ready(struct wait_object *to) {
  struct eventpoll *polled = to->polled;
  struct list_head *first, *head = __builtin_preserve_access_index(&polled->rdllist);
  struct epitem *item;
  struct file *opened;
  if (!polled || !bpf_core_type_exists(struct epitem)) return 0;
  first = BPF_CORE_READ(polled, rdllist.next);
  if (!first || first == head) return 0;
  item = (void *)first - bpf_core_field_offset(struct epitem, rdllink);
  opened = BPF_CORE_READ(item, ffd.file);
  if (!opened) return 0;
  to->ready = describe_file(to, opened);
  if (to->ready == connected) return 0;
  to->end.family = 0;
  to->name[0] = to->disk[0] = 0;
  return 0;
}

static __always_inline bool is_same_end(const struct socket_end *one, const struct socket_end *other) {
  return one->family == other->family && one->port == other->port && one->address[0] == other->address[0] &&
         one->address[1] == other->address[1] && one->address[2] == other->address[2] && one->address[3] == other->address[3];
}

static const char end_4[] = "%pI4:%u", end_6[] = "[%s]:%u";
static __noinline int write_end(struct end_text *last, const struct socket_end *end) {
  __u64 values[2] = {(__u64)end->address, end->port};
  char text[ADDRESS];
  last->end = *end;
  __builtin_memset(last->text, 0, sizeof last->text);
  if (end->family == AF_INET) return bpf_snprintf(last->text, sizeof last->text, end_4, values, sizeof values);
  write_address_6(text, end->address);
  values[0] = (__u64)text;
  return bpf_snprintf(last->text, sizeof last->text, end_6, values, sizeof values);
}

/* The name of an event's object. */
static __always_inline void write_name(char name[OBJECT_NAME], const struct wait_object *from, struct end_text *last) {
  if (from->end.family && !is_same_end(&last->end, &from->end)) write_end(last, &from->end);
  __builtin_memcpy(name, from->end.family ? last->text : from->name, OBJECT_NAME);
}

#endif
