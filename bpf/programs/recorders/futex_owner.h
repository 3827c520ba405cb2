/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Owners of the locks of programs, when a thread begins to wait in futex(2): decided by the words around the futex, as
 * owner_in() of record/now/awaited_locks.cc does. Include recorder.h first.
 */
#ifndef TACHO_FUTEX_OWNER_H
#define TACHO_FUTEX_OWNER_H

#include "bpf/programs/pid_namespace.h"

/* What a thread waits for. Payloads show the names up to ___, since C has one name space for the constants of all enums. */
enum object {
  none___object,
  futex___object, /* a condition, a semaphore, a join, or a lock whose owner is unknown */
  mutex,
  rwlock,
  file___object,
  accepted,  /* a socket that another side connected to: the peer asks, this process answers */
  connected, /* a socket of the side that asks */
  listening,
  pipe___object,
  epoll,
  other_fd
};

enum futex_command { WAIT, WAIT_BITSET = 9, LOCK_PI = 6, WAIT_REQUEUE_PI = 11, LOCK_PI2 = 13 };
#define FUTEX_COMMAND(op) ((op) & 0x7f) /* FUTEX_CMD_MASK without FUTEX_PRIVATE_FLAG */
#define FUTEX_PRIVATE 0x80
#define FUTEX_HAS_WAITERS 0x80000000
#define FUTEX_OWNER 0x3fffffff

/* The arguments of futex(2). */
struct futex_wait {
  __u64 address;
  __u32 op, value;
};
struct lock_owner {
  __u64 lock;         /* address of the futex, or of the rwlock it is part of; 0: no lock */
  enum object object; /* futex___object, mutex or rwlock, if there is a lock */
  __u32 tid;          /* 0: unknown, or a rwlock of readers */
  char name[16];
};

static __always_inline bool is_futex_wait(__u32 op) {
  __u32 command = FUTEX_COMMAND(op);
  return command == WAIT || command == WAIT_BITSET || command == LOCK_PI || command == LOCK_PI2 ||
         command == WAIT_REQUEUE_PI;
}

/* The words around a futex; zeros where memory is not resident. */
#define WORDS_BEFORE 3
#define WORDS_FROM 7
struct futex_words {
  __u32 before[WORDS_BEFORE], from[WORDS_FROM];
};
static __always_inline void read_futex_words(struct futex_words *words, __u64 address) {
  if (!bpf_probe_read_user(words, sizeof *words, (void *)(address - sizeof words->before))) return;
  __builtin_memset(words, 0, sizeof *words);
  if (bpf_probe_read_user(words->from, sizeof words->from, (void *)address))
    bpf_probe_read_user(words->from, sizeof words->from[0], (void *)address);
}

/* glibc's mutex: lock, count, owner, nusers, kind. */
#define KIND_ROBUST 0x10
#define KIND_OTHERS 0x70 /* robust, and those whose lock is the kernel's or has a ceiling */
#define KIND_SHARED 0x80
#define KIND_KNOWN 0x3ff
#define MUTEX_CONTENDED 2
static __always_inline __u32 owner_of_glibc_mutex(const __u32 *words, bool is_private) {
  const __u32 type_bits = 3, recursive = 1, count = words[1], owner = words[2], users = words[3], kind = words[4];
  if (!users || (kind & (~KIND_KNOWN | KIND_OTHERS)) || !(kind & KIND_SHARED) != is_private) return 0;
  return ((kind & type_bits) == recursive) == (count != 0) ? owner : 0;
}

/* A mutex with its owner in the futex: a robust one of glibc, or one of musl, which has the type in the word before. */
static __always_inline __u32 owner_in_futex(const struct futex_words *words) {
  const __u32 musl_types = 0xf, musl_shared = 0x80, kind = words->from[4], type = words->before[WORDS_BEFORE - 1];
  bool is_robust = (kind & KIND_ROBUST) && !(kind & ~KIND_KNOWN);
  bool is_musl = (type & musl_types) && !(type & ~(musl_types | musl_shared));
  return is_robust || is_musl ? words->from[0] & FUTEX_OWNER : 0;
}

/* glibc's rwlock: readers, writers, wrphase_futex, writers_futex, 2 unused, cur_writer, shared. A reader, and a writer that waits
 * for readers, wait at the third word; a writer that waits for a writer at the fourth one. */
#define RWLOCK_WRITER_HAS_IT 3 /* 1, and the bit for "used" */
#define RWLOCK_WRITE_PHASE 1
#define RWLOCK_WRITE_LOCKED 2
#define RWLOCK_ONE_READER 8
static __always_inline bool is_rwlock(const __u32 *cur_writer, bool is_private) {
  return cur_writer[1] <= 1 && (cur_writer[1] == 1) != is_private && !cur_writer[-1] && !cur_writer[-2];
}
static __always_inline void be_rwlock(struct lock_owner *owner, __u64 futex, __u32 words_before, __u32 writer) {
  owner->object = rwlock;
  owner->lock = futex - words_before * sizeof(__u32);
  owner->tid = writer;
}
static __always_inline void find_writer(struct lock_owner *owner, const struct futex_words *words, const struct futex_wait *wait) {
  const __u32 *by_reader = &words->from[4], *by_writer = &words->from[3];
  bool is_private = wait->op & FUTEX_PRIVATE;
  if ((words->before[1] & RWLOCK_WRITE_PHASE) && is_rwlock(by_reader, is_private) && *by_reader)
    be_rwlock(owner, wait->address, 2, *by_reader);
  else if ((words->before[0] & RWLOCK_WRITE_LOCKED) && is_rwlock(by_writer, is_private) && *by_writer)
    be_rwlock(owner, wait->address, 3, *by_writer);
}
static __always_inline void find_readers(struct lock_owner *owner, const struct futex_words *words, const struct futex_wait *wait) {
  const __u32 readers = words->before[1], *writer = &words->from[4];
  if (readers < RWLOCK_ONE_READER || !(readers & RWLOCK_WRITE_LOCKED) || (readers & RWLOCK_WRITE_PHASE)) return;
  if (!*writer && is_rwlock(writer, wait->op & FUTEX_PRIVATE)) be_rwlock(owner, wait->address, 2, 0);
}

/* The lock, and the owner's tid in the innermost pid namespace of the current thread. */
static __always_inline void decide_owner(struct lock_owner *owner, const struct futex_wait *wait) {
  __u32 word, command = FUTEX_COMMAND(wait->op);
  struct futex_words words;
  if (command == WAIT_REQUEUE_PI) return;
  read_futex_words(&words, wait->address);
  word = words.from[0];
  if (command == LOCK_PI || command == LOCK_PI2) {
    owner->tid = word & FUTEX_OWNER;
  } else if (wait->value != word) {
    return;
  } else if (word & FUTEX_HAS_WAITERS) {
    owner->tid = owner_in_futex(&words);
  } else if (word == MUTEX_CONTENDED) {
    owner->tid = owner_of_glibc_mutex(words.from, wait->op & FUTEX_PRIVATE);
    if (!owner->tid) find_readers(owner, &words, wait);
  } else if (word == RWLOCK_WRITER_HAS_IT) {
    find_writer(owner, &words, wait);
  }
  if (owner->tid && owner->object == futex___object) owner->object = mutex;
}

/* Threads that were owners, waited, or ran before the recording, by process and by tid in the innermost pid namespace. The memory
 * of `task` may belong to another thread by now, which has another tid. */
struct thread_key {
  __u32 process, inner;
};
struct known_thread {
  struct task_struct *task; /* 0: it is not in the process, or not among its first threads */
  __u64 tid;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, struct thread_key);
  __type(value, struct known_thread);
} known_threads SEC(".maps");

/* The tid of a task in its innermost pid namespace. */
static __always_inline __u32 inner_tid_of(const struct task_struct *task) {
  const struct pid___tacho *pid = BPF_CORE_READ((const struct task_struct___tacho *)task, thread_pid);
  const __u32 level = BPF_CORE_READ(pid, level);
  const struct upid___tacho *number = (void *)__builtin_preserve_access_index(&pid->numbers) + level * sizeof *number;
  return level < MOST_PID_LEVELS ? BPF_CORE_READ(number, nr) : 0;
}

/* Call it when a thread is seen first: so owners are found in processes of many threads, too. */
static __always_inline void know_thread(struct task_struct *task) {
  struct thread_key key = {BPF_CORE_READ(task, tgid), inner_tid_of(task)};
  struct known_thread known = {task, BPF_CORE_READ(task, pid)};
  bpf_map_update_elem(&known_threads, &key, &known, BPF_ANY);
}

/* Looks among the first threads of the current process. False: it has more, and the thread is not among these. */
#define MOST_THREADS_LOOKED_AT 128
static __noinline bool find_thread(struct known_thread *found, __u32 inner) {
  struct task_struct *current = (struct task_struct *)bpf_get_current_task();
  struct signal_struct *group = BPF_CORE_READ(current, signal);
  const struct list_head *head = __builtin_preserve_access_index(&group->thread_head), *at = BPF_CORE_READ(head, next);
  for (int i = 0; i < MOST_THREADS_LOOKED_AT; ++i) {
    struct task_struct *task = (void *)at - __builtin_preserve_field_info(current->thread_node, 0 /* offset */);
    if (!at || at == head) return true;
    if (inner_tid_of(task) == inner) {
      found->task = task;
      found->tid = BPF_CORE_READ(task, pid);
      return true;
    }
    at = BPF_CORE_READ(at, next);
  }
  return false;
}

static __always_inline bool is_still(const struct known_thread *known, __u32 process) {
  const struct task_struct *task = known->task;
  return !task || (BPF_CORE_READ(task, pid) == (int)known->tid && BPF_CORE_READ(task, tgid) == (int)process);
}

/* Sets the owner's name, and replaces its tid in the innermost pid namespace by that in the initial one. */
static __always_inline void name_owner(struct lock_owner *owner, bool is_private) {
  __u64 who = bpf_get_current_pid_tgid();
  struct thread_key key = {who >> 32, owner->tid};
  struct known_thread *known = bpf_map_lookup_elem(&known_threads, &key), found = {};
  if (!known || !is_still(known, key.process)) {
    bool is_whole = find_thread(&found, owner->tid);
    bool is_initial = inner_tid_of((struct task_struct *)bpf_get_current_task()) == (__u32)who;
    if (!found.task && is_initial && (!is_whole || !is_private)) found.tid = owner->tid;
    bpf_map_update_elem(&known_threads, &key, &found, BPF_ANY);
    known = &found;
  }
  owner->tid = known->tid;
  if (known->task) bpf_probe_read_kernel_str(owner->name, sizeof owner->name, known->task->comm);
}

/* Call it in the thread that begins to wait: sets all of `owner`. */
static __always_inline void find_owner(struct lock_owner *owner, const struct futex_wait *wait) {
  *owner = (struct lock_owner){.lock = wait->address, .object = futex___object};
  decide_owner(owner, wait);
  if (!owner->tid) return;
  name_owner(owner, wait->op & FUTEX_PRIVATE);
  /* The words around the futex are something else, or the owner is outside of the process. */
  if (!owner->tid) *owner = (struct lock_owner){.lock = wait->address, .object = futex___object};
}

#endif
