// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Calls of a program's functions, one event at each return: duration and depth.
//
// The programs are attached to every function that tacho-record finds in `binary`. In-flight calls are kept by thread and depth.
// The stack pointer identifies the call that returns, and those that were left without a return (longjmp).
#include "bpf/programs/recorders/recorder.h"
#include "bpf/programs/recorders/function_registers.h"

#define ARGUMENTS 6
#define TEXT_BYTES 48  /* of a string, with its NUL */
#define RETURNS_TEXT 6 /* bit of a cookie: the return value is a string; bits 0 to 5: the argument is */

const volatile char binary[256] HELP("the program or library whose functions are traced, in all processes that use it: binary='./prog'");
const volatile char functions[128] HELP("only functions of these names, with * and ?: functions='parse_*'");
const volatile __u32 depth HELP("only calls up to this depth; 1: calls from functions that are not traced");
const volatile __u64 min_us HELP("only calls of at least N microseconds");

struct call {
  __u64 dur_ns ROLE("value");
  __u64 function ROLE("function") FORMAT("uaddr");
  __u64 level ROLE("depth"); /* 1: called by a function that is not traced */
  __u64 ret FORMAT("hex") ROLE("returned");   /* the register; undefined after void functions */
  __u64 args[ARGUMENTS] FORMAT("hex") ROLE("arguments"); /* registers */
  /* The first two arguments that are strings, and a string that is returned. Left out of functions without strings. */
  __u64 unread ROLE("unread_texts"); /* could not be read: 1, 2: text1, text2; 4: returned_text */
  char text1[TEXT_BYTES] ROLE("argument_text"), text2[TEXT_BYTES] ROLE("argument_text");
  char returned_text[TEXT_BYTES] ROLE("returned_text");
};
#define BYTES_WITHOUT_TEXTS __builtin_offsetof(struct call, unread)
EVENT(call, struct call);
CHANNEL(channel, call);

const volatile __u32 tacho_wants_types = 1; /* tacho-record reads the functions' prototypes */

struct begun {
  __u64 time_ns, function, stack;
  __u64 args[ARGUMENTS];
  __u64 missing; /* 1, 2: text1, text2 could not be read */
  char text1[TEXT_BYTES], text2[TEXT_BYTES];
};

/* Whether the call was left by longjmp(): its frame is below the current stack pointer. */
static __always_inline bool is_stale(const struct begun *call, __u64 function, __u64 stack) { return call->stack < stack; }

#include "bpf/programs/recorders/inflight_calls.h"
#include "bpf/programs/recorders/too_deep.h"

/* For an entry with the same stack pointer as an in-flight call: whether it is a tail call of that one, so that both return
 * together. Otherwise that call was left by longjmp(). Of a tail call the return address is already the uretprobe trampoline, which
 * starts a page; no return address of a call does. */
static __always_inline bool is_tail_call(struct pt_regs *context) { return !(returns_to(context) & 4095); }

/* Reads string arguments: bits of `which` are arguments, bits of `wanted` are text1 and text2. Returns the bits of those that
 * could not be read: a page that is not present cannot be faulted in here. */
static __always_inline __u64 read_texts(const __u64 *args, __u64 which, __u64 wanted, char *text1, char *text2) {
  __u64 missing = 0;
  int count = 0;
  for (int i = 0; i < ARGUMENTS; ++i) {
    if (!(which & 1 << i)) continue;
    if (count == 0 && (wanted & 1) && bpf_probe_read_user_str(text1, TEXT_BYTES, (const void *)args[i]) < 0) missing |= 1;
    if (count == 1 && (wanted & 2) && bpf_probe_read_user_str(text2, TEXT_BYTES, (const void *)args[i]) < 0) missing |= 2;
    ++count;
  }
  return missing;
}

SEC("uprobe.multi")
int enters(struct pt_regs *context) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid(), level, *known;
  struct begun call;
  struct call_key at = {thread, 0};
  if (!is_chosen()) return 0;
  call.function = function_start(PT_REGS_IP(context), bpf_get_attach_cookie(context));
  call.stack = PT_REGS_SP(context);
  known = bpf_map_lookup_elem(&levels, &thread);
  level = live_level(thread, known ? *known : 0, call.function, is_tail_call(context) ? call.stack : call.stack + 1);
  if (returns_unseen()) {
    if (!depth || level < depth) count_as_lost(bpf_get_attach_cookie(context));
    bpf_map_update_elem(&levels, &thread, &level, BPF_ANY);
    return 0;
  }
  at.level = level++;
  const __u64 arguments[ARGUMENTS] = {ARGUMENT_REGISTERS((function_registers *)context)};
  __builtin_memcpy(call.args, arguments, sizeof call.args);
  __builtin_memset(call.text1, 0, sizeof call.text1 + sizeof call.text2);
  /* Read at the entry, since the function may change them. */
  call.missing = read_texts(call.args, bpf_get_attach_cookie(context), 3, call.text1, call.text2);
  bpf_map_update_elem(&levels, &thread, &level, BPF_ANY);
  call.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&calls, &at, &call, BPF_ANY);
  return 0;
}

SEC("uretprobe.multi")
int returns(struct pt_regs *context) {
  __u64 now = bpf_ktime_get_ns(), stack = STACK_AT_ENTRY(context);
  __u64 texts = bpf_get_attach_cookie(context) & (TACHO_AFTER_ENDBR - 1);
  __u32 thread = (__u32)bpf_get_current_pid_tgid(), level, *known;
  struct call event = {};
  struct call_key at = {thread, 0};
  struct begun *begun;
  known = bpf_map_lookup_elem(&levels, &thread);
  if (!known) return 0;
  level = live_level(thread, *known, 0, stack);
  at.level = level - 1;
  begun = level ? bpf_map_lookup_elem(&calls, &at) : 0;
  if (!begun || begun->stack != stack) {
    bpf_map_update_elem(&levels, &thread, &level, BPF_ANY);
    return 0;
  }
  event.dur_ns = now - begun->time_ns;
  event.function = begun->function;
  event.level = level;
  event.ret = PT_REGS_RC(context);
  for (int i = 0; i < ARGUMENTS; ++i) event.args[i] = begun->args[i];
  if (texts) {
    __builtin_memcpy(event.text1, begun->text1, sizeof event.text1);
    __builtin_memcpy(event.text2, begun->text2, sizeof event.text2);
    if (begun->missing) event.unread = read_texts(event.args, texts, begun->missing, event.text1, event.text2);
    if ((texts & 1 << RETURNS_TEXT) && bpf_probe_read_user_str(event.returned_text, TEXT_BYTES, (const void *)event.ret) < 0)
      event.unread |= 4;
  }
  bpf_map_delete_elem(&calls, &at);
  --level;
  bpf_map_update_elem(&levels, &thread, &level, BPF_ANY);
  if ((depth && event.level > depth) || event.dur_ns / 1000 < min_us || !is_taken()) return 0;
  if (texts)
    EMIT(context, channel, &event);
  else
    tacho_output_bytes(context, channel, &event, BYTES_WITHOUT_TEXTS);
  return 0;
}
