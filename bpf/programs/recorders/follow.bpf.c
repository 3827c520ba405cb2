// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The calls of the kernel's functions that take a pointer to one kind of struct, each when it returns: how long it took, how
// deep it was, which object it got, and what some of the object's members held when the call began.
//
// The recorder finds the functions in the kernel's BTF; the cookie of each probe says which argument is the object.
#include "bpf/programs/recorders/recorder.h"

#include "bpf/programs/recorders/member_places.h"

#define MOST_PASSED 16        /* calls that did not return here, between two that did */
#define STACK_BITS 14         /* a kernel's stack is aligned to its size of 16 KiB or more */
#define MOST_RETURN_FRAME 256 /* what the kernel's probe of returns may have on the stack */

const volatile char type[64] HELP("the struct whose pointers functions take: type=struct bio");
const volatile char show[256] HELP("members of it, by path, as they are when a call starts: show=bi_iter.bi_sector,bi_opf");
const volatile char functions[128] HELP("only functions of these names, with * and ?: functions='submit_*'");
const volatile char start[64] HELP("only objects that this function gets in the threads that are recorded, from then on in all threads: start=submit_bio");
const volatile char stop[64] HELP("such an object is forgotten when this function returns: stop=bio_endio");
const volatile __u32 depth HELP("only calls down to this depth; 1: calls that no followed function made");
const volatile __u64 min_us HELP("only calls that take so long, in microseconds");

const volatile struct tacho_member_place tacho_shown[TACHO_MOST_SHOWN]; /* set by the recorder, as the next */
const volatile __u32 tacho_shown_count;

struct follow {
  __u64 dur_ns ROLE("value");
  __u64 function ROLE("function") FORMAT("kaddr");
  __u64 level ROLE("depth"); /* 1: no followed function called it */
  __u64 ret FORMAT("hex");   /* the register; functions that return nothing leave anything there */
  __u64 object FORMAT("hex");
  __u64 shown[TACHO_MOST_SHOWN]; /* the recorder gives them their names, and cuts off the rest */
};
EVENT(follow, struct follow);
CHANNEL(channel, follow);

struct begun {
  __u64 time_ns, function, stack, object;
  __u64 shown[TACHO_MOST_SHOWN];
};

/* Returns may be missed: the kernel has room for some of a function's calls at a time, and probes that hit in programs of probes
 * are left out. A frame at the place of this one or below it is gone; interrupts have stacks of their own, of which this says
 * nothing. Of two functions one may end in a jump to the other: both are there, with one stack pointer. */
static __always_inline bool is_stale(const struct begun *call, __u64 function, __u64 stack) {
  if ((call->stack ^ stack) >> STACK_BITS) return false;
  return call->stack < stack || (call->stack == stack && call->function == function);
}

#include "bpf/programs/recorders/inflight_calls.h"

PER_CPU(rooms, struct begun);

/* With `start`: the objects that it got. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, __u64);
  __type(value, __u8);
} started SEC(".maps");

bool tacho_is_exact; /* returns of this kernel have been seen to report the stack pointer of their entry */

/* Idle threads are one for each CPU, and all have number 0. */
static __always_inline __u32 this_thread(void) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  return thread ? thread : 1U << 31 | bpf_get_smp_processor_id();
}

/* All of them are loaded: the kernel allows a load at a place of the registers that is fixed. */
static __always_inline __u64 object_of(struct pt_regs *context, __u32 argument) {
  const volatile struct pt_regs *registers = context;
  __u64 first = registers->rdi, second = registers->rsi, third = registers->rdx;
  __u64 fourth = registers->rcx, fifth = registers->r8, sixth = registers->r9;
  if (argument == 1) return first;
  if (argument == 2) return second;
  if (argument == 3) return third;
  if (argument == 4) return fourth;
  return argument == 5 ? fifth : sixth;
}

/* An address of the kernel, and no error in the place of one. */
static __always_inline bool is_object(__u64 address) { return (__s64)address < -4095; }

/* Where a member cannot be read it is 0, as the pointer on the way to it was. */
static __always_inline __u64 shown_of(const volatile struct tacho_member_place *place, __u64 object) {
  __u64 value = 0;
#pragma unroll
  for (__u32 i = 0; i < TACHO_MOST_POINTERS; ++i) {
    if (i < place->pointers && bpf_probe_read_kernel(&object, sizeof object, (const void *)(object + place->at[i]))) return 0;
  }
  if (bpf_probe_read_kernel(&value, place->bytes & 15, (const void *)(object + place->at[place->pointers & 3]))) return 0;
  value <<= place->left;
  return place->is_signed ? (__u64)((__s64)value >> place->right) : value >> place->right;
}

/* Whether the call of a function that got `object` is wanted. */
static __always_inline bool is_wanted(__u32 cookie, __u64 object) {
  __u8 yes = 1;
  if (!start[0]) return is_chosen();
  if (cookie & TACHO_STARTS) {
    if (is_chosen()) return !bpf_map_update_elem(&started, &object, &yes, BPF_ANY);
    bpf_map_delete_elem(&started, &object); /* the memory of one that is gone */
    return false;
  }
  return bpf_map_lookup_elem(&started, &object);
}

SEC("uprobe.multi")
int enters(struct pt_regs *context) {
  __u32 cookie = bpf_get_attach_cookie(context), thread = this_thread(), only = 0, level, *known;
  __u64 object = object_of(context, cookie & TACHO_ARGUMENT);
  struct place at = {thread, 0};
  struct begun *call;
  if (!is_object(object) || !is_wanted(cookie, object)) return 0;
  call = bpf_map_lookup_elem(&rooms, &only);
  if (!call) return 0;
  call->function = bpf_get_func_ip(context);
  call->stack = PT_REGS_SP(context);
  call->object = object;
#pragma unroll
  for (__u32 i = 0; i < TACHO_MOST_SHOWN; ++i)
    if (i < tacho_shown_count) call->shown[i] = shown_of(&tacho_shown[i], object);
  known = bpf_map_lookup_elem(&levels, &thread);
  level = still_there(thread, known ? *known : 0, call->function, call->stack);
  at.level = level++;
  bpf_map_update_elem(&levels, &thread, &level, BPF_ANY);
  call->time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&calls, &at, call, BPF_ANY);
  return 0;
}

/* Whether a return with that stack pointer is the end of the call. Some kernels report it as it was at the call's
 * start; others as it is in their own probe, a little below. */
static __always_inline bool is_of(const struct begun *call, __u64 function, __u64 stack) {
  __s64 away = call->stack - stack;
  if (call->function != function) return false;
  if (!away) tacho_is_exact = true;
  return !away || (!tacho_is_exact && away > 0 && away <= MOST_RETURN_FRAME);
}

SEC("uretprobe.multi")
int returns(struct pt_regs *context) {
  __u64 now = bpf_ktime_get_ns(), function = bpf_get_func_ip(context), stack = PT_REGS_SP(context) - sizeof(__u64);
  __u32 thread = this_thread(), level, *known;
  struct place at = {thread, 0};
  struct begun *call = 0;
  struct follow event = {};
  known = bpf_map_lookup_elem(&levels, &thread);
  level = known ? *known : 0;
  for (int i = 0; i < MOST_PASSED && level; ++i) {
    at.level = level - 1;
    call = bpf_map_lookup_elem(&calls, &at);
    if (call && is_of(call, function, stack)) break;
    call = 0;
    --level;
  }
  if (!call || !level) return 0;
  event.dur_ns = now - call->time_ns;
  event.function = function;
  event.level = level;
  event.ret = PT_REGS_RC(context);
  event.object = call->object;
  __builtin_memcpy(event.shown, call->shown, sizeof event.shown);
  bpf_map_delete_elem(&calls, &at);
  --level;
  bpf_map_update_elem(&levels, &thread, &level, BPF_ANY);
  if (start[0] && bpf_get_attach_cookie(context) & TACHO_STOPS) bpf_map_delete_elem(&started, &event.object);
  if ((depth && event.level > depth) || event.dur_ns / 1000 < min_us || !is_taken()) return 0;
  tacho_output_bytes(context, channel, &event,
                     __builtin_offsetof(struct follow, shown) + (tacho_shown_count & 15) * sizeof(__u64));
  return 0;
}
