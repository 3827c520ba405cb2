// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls of kernel functions that take a pointer to one type of struct, one event at each return: duration, depth, the object,
// and some of its members as they were at the entry.
//
// tacho-record finds the functions in the kernel's BTF. The cookie of each probe has the number of the argument.
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/function_registers.h"

#include "bpf/programs/recorders/shared_constants.h"

#define MOST_PASSED 16        /* most in-flight calls dropped at a return: their own returns were missed */
#define STACK_BITS 14         /* kernel stacks are aligned to their size, 16 KiB or more */
#define MOST_RETURN_FRAME 256 /* most bytes of the kretprobe trampoline's frame */

const volatile char type[64] HELP("the struct to whose objects the functions take pointers: type=struct bio");
const volatile char show[256] HELP("members to report, as they are at a call: show=bi_iter.bi_sector,bi_opf");
const volatile char functions[128] HELP("only functions of these names, with * and ?: functions='submit_*'");
const volatile char start[64] HELP("only objects passed to this function by recorded threads; then followed in all threads: start=submit_bio");
const volatile char stop[64] HELP("with start: follow an object until this function returns: stop=bio_endio");
const volatile __u32 depth HELP("only calls up to this depth; 1: calls from functions that are not traced");
const volatile __u64 min_us HELP("only calls of at least N microseconds");

const volatile struct tacho_member_offset tacho_shown[TACHO_MOST_SHOWN]; /* both set by tacho-record */
const volatile __u32 tacho_shown_count;

struct follow {
  __u64 dur_ns ROLE("value");
  __u64 function ROLE("function") FORMAT("kaddr");
  __u64 level ROLE("depth"); /* 1: called by a function that is not traced */
  __u64 ret FORMAT("hex");   /* the register; undefined after void functions */
  __u64 object FORMAT("hex");
  __u64 shown[TACHO_MOST_SHOWN]; /* tacho-record names the members, and leaves unused ones out */
};
EVENT(follow, struct follow);
CHANNEL(channel, follow);

struct begun {
  __u64 time_ns, function, stack, object;
  __u64 shown[TACHO_MOST_SHOWN];
};

/* Returns may be missed: the kernel limits a function's in-flight kretprobes (maxactive), and skips probes that are hit while a
 * probe's program runs. So a call is over if another call on the same stack has its stack pointer or a higher one. Not if it is
 * another function at the same stack pointer, which is a tail call. Interrupts have stacks of their own. */
static __always_inline bool is_stale(const struct begun *call, __u64 function, __u64 stack) {
  if ((call->stack ^ stack) >> STACK_BITS) return false;
  return call->stack < stack || (call->stack == stack && call->function == function);
}

#include "bpf/programs/recorders/inflight_calls.h"

PER_CPU(buffers, struct begun);

/* With `start`: the objects that are followed. */
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 65536);
  __type(key, __u64);
  __type(value, __u8);
} started SEC(".maps");

bool tacho_is_exact; /* this kernel's kretprobes report the stack pointer at the entry, see is_of() */

/* The thread id; for the idle threads, which all have id 0, a number by CPU. */
static __always_inline __u32 this_thread(void) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  return thread ? thread : 1U << 31 | bpf_get_smp_processor_id();
}

/* Loads all six, since the verifier allows only constant offsets into the registers. */
static __always_inline __u64 object_of(struct pt_regs *context, __u32 argument) {
  const __u64 all[] = {ARGUMENT_REGISTERS((function_registers *)context)};
  if (argument == 1) return all[0];
  if (argument == 2) return all[1];
  if (argument == 3) return all[2];
  if (argument == 4) return all[3];
  return argument == 5 ? all[4] : all[5];
}

/* Whether it is a kernel address, not null or an ERR_PTR. */
static __always_inline bool is_object(__u64 address) { return (__s64)address < -4095; }

/* The value of a member; 0 if it cannot be read. */
static __always_inline __u64 shown_of(const volatile struct tacho_member_offset *member, __u64 object) {
  __u64 value = 0;
#pragma unroll
  for (__u32 i = 0; i < TACHO_MOST_POINTERS; ++i) {
    if (i < member->pointers && bpf_probe_read_kernel(&object, sizeof object, (const void *)(object + member->at[i]))) return 0;
  }
  if (bpf_probe_read_kernel(&value, member->bytes & 15, (const void *)(object + member->at[member->pointers & 3]))) return 0;
  value <<= member->left;
  return member->is_signed ? (__u64)((__s64)value >> member->right) : value >> member->right;
}

/* Whether a call with `object` is recorded. */
static __always_inline bool is_wanted(__u32 cookie, __u64 object) {
  __u8 yes = 1;
  if (!start[0]) return is_chosen();
  if (cookie & TACHO_STARTS) {
    if (is_chosen()) return !bpf_map_update_elem(&started, &object, &yes, BPF_ANY);
    bpf_map_delete_elem(&started, &object); /* a new object at the address of a followed one */
    return false;
  }
  return bpf_map_lookup_elem(&started, &object);
}

SEC("uprobe.multi")
int enters(struct pt_regs *context) {
  __u32 cookie = bpf_get_attach_cookie(context), thread = this_thread(), only = 0, level, *known;
  __u64 object = object_of(context, cookie & TACHO_ARGUMENT);
  struct call_key at = {thread, 0};
  struct begun *call;
  if (!is_object(object) || !is_wanted(cookie, object)) return 0;
  call = bpf_map_lookup_elem(&buffers, &only);
  if (!call) return 0;
  call->function = bpf_get_func_ip(context);
  call->stack = PT_REGS_SP(context);
  call->object = object;
#pragma unroll
  for (__u32 i = 0; i < TACHO_MOST_SHOWN; ++i)
    if (i < tacho_shown_count) call->shown[i] = shown_of(&tacho_shown[i], object);
  known = bpf_map_lookup_elem(&levels, &thread);
  level = live_level(thread, known ? *known : 0, call->function, call->stack);
  at.level = level++;
  bpf_map_update_elem(&levels, &thread, &level, BPF_ANY);
  call->time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&calls, &at, call, BPF_ANY);
  return 0;
}

/* Whether a return of `function` at this stack pointer is the return of the call. Some kernels report the stack pointer of the
 * entry; others the one in the kretprobe trampoline, which is a little lower. */
static __always_inline bool is_of(const struct begun *call, __u64 function, __u64 stack) {
  __s64 away = call->stack - stack;
  if (call->function != function) return false;
  if (!away) tacho_is_exact = true;
  return !away || (!tacho_is_exact && away > 0 && away <= MOST_RETURN_FRAME);
}

SEC("uretprobe.multi")
int returns(struct pt_regs *context) {
  __u64 now = bpf_ktime_get_ns(), function = bpf_get_func_ip(context), stack = STACK_AT_ENTRY(context);
  __u32 thread = this_thread(), level, *known;
  struct call_key at = {thread, 0};
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
