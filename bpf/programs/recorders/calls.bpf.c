// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The calls of a program's functions, each when it returns: how long it took, and how deep it was.
//
// The programs sit on every function that the recorder finds in `binary`. A thread's calls that have begun are known by
// the thread and their depth; the stack pointer shows which of them returns, and which were left without a return (longjmp).
#include "bpf/programs/recorders/recorder.h"

#define ARGUMENTS 6
#define TEXT_BYTES 48 /* of a text, its end with it */
#define RETURNS_TEXT 6 /* bit of a cookie: what is returned points to text; those below: arguments do */

const volatile char binary[256] HELP("the program or library whose functions are followed (all processes that use it run into the probes): binary='./prog'");
const volatile char functions[128] HELP("only functions of these names, with * and ?: functions='parse_*'");
const volatile __u32 depth HELP("only calls down to this depth; 1: calls that no followed function made");
const volatile __u64 min_us HELP("only calls that take so long, in microseconds");

struct call {
  __u64 dur_ns ROLE("value");
  __u64 function ROLE("function") FORMAT("uaddr");
  __u64 level ROLE("depth"); /* 1: no followed function called it */
  __u64 ret FORMAT("hex") ROLE("returned");   /* the register; functions that return nothing leave anything there */
  __u64 args[ARGUMENTS] FORMAT("hex") ROLE("arguments"); /* registers, too */
  /* Only where one of these points to text: the first two such arguments, and what is returned. */
  __u64 unread ROLE("unread_texts"); /* 1, 2: the arguments', 4: what is returned points to memory that could not be read */
  char text1[TEXT_BYTES] ROLE("argument_text"), text2[TEXT_BYTES] ROLE("argument_text");
  char returned_text[TEXT_BYTES] ROLE("returned_text");
};
#define BYTES_WITHOUT_TEXTS __builtin_offsetof(struct call, unread)
EVENT(call, struct call);
CHANNEL(channel, call);

const volatile __u32 tacho_wants_types = 1; /* the recorder asks what the functions are called with */

struct begun {
  __u64 time_ns, function, stack;
  __u64 args[ARGUMENTS];
  __u64 missing; /* 1, 2: text1, text2 could not be read */
  char text1[TEXT_BYTES], text2[TEXT_BYTES];
};

/* Its frame is below the current stack pointer (longjmp). */
static __always_inline bool is_stale(const struct begun *call, __u64 function, __u64 stack) { return call->stack < stack; }

#include "bpf/programs/recorders/inflight_calls.h"
#include "bpf/programs/recorders/too_deep.h"

/* At an entry with the stack pointer of a call that has begun: whether it is a jump at that call's end, and both will
 * return together; else that call was left (longjmp), and this is another one in its place. The probe on the first one's
 * return has put its own address in place of the caller's: it begins a page, as no return address does. */
static __always_inline bool is_jump(__u64 stack) {
  __u64 back = 0;
  bpf_probe_read_user(&back, sizeof back, (const void *)stack);
  return !(back & 4095);
}

/* Of the texts that arguments point to, those in `wanted`, as they are now. What could not be read comes back: memory that the
 * program has not touched yet is not there for a probe. */
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
  struct place at = {thread, 0};
  if (!is_chosen()) return 0;
  call.function = function_start(PT_REGS_IP(context), bpf_get_attach_cookie(context));
  call.stack = PT_REGS_SP(context);
  known = bpf_map_lookup_elem(&levels, &thread);
  level = still_there(thread, known ? *known : 0, call.function, is_jump(call.stack) ? call.stack : call.stack + 1);
  if (returns_unseen()) {
    if (!depth || level < depth) count_as_lost(bpf_get_attach_cookie(context));
    bpf_map_update_elem(&levels, &thread, &level, BPF_ANY);
    return 0;
  }
  at.level = level++;
  call.args[0] = PT_REGS_PARM1(context);
  call.args[1] = PT_REGS_PARM2(context);
  call.args[2] = PT_REGS_PARM3(context);
  call.args[3] = PT_REGS_PARM4(context);
  call.args[4] = PT_REGS_PARM5(context);
  call.args[5] = context->r9;
  __builtin_memset(call.text1, 0, sizeof call.text1 + sizeof call.text2);
  /* The function may change them: so they are read now. */
  call.missing = read_texts(call.args, bpf_get_attach_cookie(context), 3, call.text1, call.text2);
  bpf_map_update_elem(&levels, &thread, &level, BPF_ANY);
  call.time_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&calls, &at, &call, BPF_ANY);
  return 0;
}

SEC("uretprobe.multi")
int returns(struct pt_regs *context) {
  __u64 now = bpf_ktime_get_ns(), stack = PT_REGS_SP(context) - sizeof(__u64); /* as at the entry */
  __u64 texts = bpf_get_attach_cookie(context) & (TACHO_BEHIND_MARK - 1);
  __u32 thread = (__u32)bpf_get_current_pid_tgid(), level, *known;
  struct call event = {};
  struct place at = {thread, 0};
  struct begun *begun;
  known = bpf_map_lookup_elem(&levels, &thread);
  if (!known) return 0;
  level = still_there(thread, *known, 0, stack);
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
