/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The members of kernel types that recorders read, by name: libbpf finds them in the running kernel's BTF. The host that
 * builds tacho need not run a kernel like that of the host that records. */
#ifndef TACHO_KERNEL_TYPES_H
#define TACHO_KERNEL_TYPES_H

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
  __u8 bytes[16]; /* not the kernel's name */
};
struct sock_common {
  __u32 skc_daddr, skc_rcv_saddr;
  __u16 skc_dport, skc_num, skc_family;
  __u8 skc_state;
  struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};
struct sock {
  struct sock_common __sk_common;
  __u8 sk_userlocks : 4;
  __u16 sk_protocol;
};
struct socket {
  struct sock *sk;
};
struct inet_bind_bucket {
  signed char fastreuse;
};
struct inet_connection_sock {
  struct inet_bind_bucket *icsk_bind_hash;
};
struct sockaddr_un {
  __u16 sun_family;
  char sun_path[108];
};
struct unix_address {
  int len;
  struct sockaddr_un name[1];
};
struct unix_sock {
  struct unix_address *addr;
  struct sock *peer;
};
struct gendisk {
  int major, first_minor;
  char disk_name[32];
};
struct block_device {
  struct gendisk *bd_disk;
};
struct super_block {
  unsigned long s_magic;
  struct block_device *s_bdev;
};
struct inode {
  __u16 i_mode;
  struct super_block *i_sb;
  unsigned long i_ino;
};
struct qstr {
  const unsigned char *name;
};
struct dentry {
  struct dentry *d_parent;
  struct qstr d_name;
};
struct path {
  struct dentry *dentry;
};
struct file {
  struct path f_path;
  struct inode *f_inode;
  void *private_data;
};
struct fdtable {
  unsigned int max_fds;
  struct file **fd;
};
struct files_struct {
  struct fdtable *fdt;
};
struct tcp_sock {
  __u64 bytes_received, bytes_acked;
};

struct mm_struct {
  unsigned long arg_start, arg_end;
};

struct kernfs_node {
  __u64 id;
};
struct cgroup {
  int level;
  struct kernfs_node *kn;
  struct cgroup *ancestors[1];
};
struct css_set {
  struct cgroup *dfl_cgrp;
};

struct list_head {
  struct list_head *next;
};
struct epoll_filefd {
  struct file *file;
};
struct epitem {
  struct list_head rdllink;
  struct epoll_filefd ffd;
};
struct eventpoll {
  struct list_head rdllist;
};
struct signal_struct {
  struct list_head thread_head;
};
struct cfs_rq {
  int throttle_count;
};
struct cfs_bandwidth {
  __u64 throttled_time; /* ns, of all its run queues */
};
struct task_group {
  struct task_group *parent;
  struct cfs_bandwidth cfs_bandwidth;
};
struct sched_entity {
  struct cfs_rq *cfs_rq;
};

struct task_struct {
  int pid, tgid;
  struct list_head thread_node;
  struct signal_struct *signal;
  struct sched_entity se;
  struct task_group *sched_task_group;
  bool throttled; /* since Linux 6.18 */
  int on_cpu;
  unsigned int flags, __state;
  int exit_state;
  unsigned long nvcsw, nivcsw;
  int prio;
  struct mm_struct *mm;
  struct files_struct *files;
  struct task_struct *real_parent;
  struct css_set *cgroups;
  char comm[16];
};

/* What programs on classic tracepoints get. */
struct trace_entry {
  int pid;
};
struct trace_event_raw_sys_enter {
  struct trace_entry ent;
  long id;
  unsigned long args[6];
};
struct trace_event_raw_sys_exit {
  struct trace_entry ent;
  long id;
  long ret;
};
struct trace_event_raw_sched_process_exec {
  struct trace_entry ent;
  __u32 __data_loc_filename; /* offset in the record, and size << 16 */
};

struct trace_event_raw_sched_switch {
  struct trace_entry ent;
  int prev_pid;
  long prev_state;
  int next_pid;
};
struct trace_event_raw_sched_wakeup_template {
  struct trace_entry ent;
  int pid;
};
struct trace_event_raw_block_rq { /* block_rq_insert, block_rq_issue */
  struct trace_entry ent;
  __u32 dev;
  __u64 sector;
  unsigned int bytes;
  char rwbs[8];
};
struct trace_event_raw_block_rq_completion {
  struct trace_entry ent;
  __u32 dev;
  __u64 sector;
  int error;
};
struct trace_event_raw_inet_sock_set_state {
  struct trace_entry ent;
  const void *skaddr;
  int oldstate, newstate;
  __u16 sport, dport, family, protocol;
  __u8 saddr[4], daddr[4], saddr_v6[16], daddr_v6[16];
};
struct trace_event_raw_tcp_retransmit_skb {
  struct trace_entry ent;
  int state;
  __u16 sport, dport, family;
  __u8 saddr[4], daddr[4], saddr_v6[16], daddr_v6[16];
};
/* Before 6.1x it had a name that it shared with others. */
struct trace_event_raw_tcp_event_sk_skb {
  struct trace_entry ent;
  int state;
  __u16 sport, dport, family;
  __u8 saddr[4], daddr[4], saddr_v6[16], daddr_v6[16];
};
struct trace_event_raw_mm_filemap_op_page_cache_range {
  struct trace_entry ent;
  unsigned long i_ino, index, last_index;
  __u32 s_dev;
};
struct trace_event_raw_mm_filemap_op_page_cache {
  struct trace_entry ent;
  unsigned long i_ino, index;
  __u32 s_dev;
  unsigned char order;
};
struct trace_event_raw_writeback_folio_template {
  struct trace_entry ent;
  unsigned long ino, index;
};
struct trace_event_raw_signal_generate {
  struct trace_entry ent;
  int sig, errno, code;
  char comm[16];
  int pid, group, result;
};
struct trace_event_raw_cap_capable {
  struct trace_entry ent;
  int cap, ret;
};
struct trace_event_raw_mark_victim {
  struct trace_entry ent;
  int pid;
  __u32 __data_loc_comm;
  unsigned long total_vm, anon_rss, file_rss, shmem_rss, pgtables;
  __u32 uid;
  short oom_score_adj;
};
struct bpf_array {
  void *pptrs[1];
};
struct bpf_run_counter { /* since Linux 5.16 */
  long v;
};
struct bpf_prog_stats {
  struct bpf_run_counter cnt, nsecs;
};
struct bpf_prog_aux {
  __u32 id;
  char name[16];
};
struct bpf_prog {
  enum bpf_prog_type type;
  struct bpf_prog_stats *stats; /* per CPU: add the offset of a CPU */
  struct bpf_prog_aux *aux;
};
struct seq_file;
struct bpf_iter_meta {
  struct seq_file *seq;
};
struct bpf_iter__bpf_prog {
  struct bpf_prog *prog;
};
struct bpf_iter__task {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
};

#pragma clang attribute pop

#endif
