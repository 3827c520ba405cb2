// Preloaded into a program that was compiled with -pg, -pg -mfentry or -finstrument-functions: each
// return is reported to tacho-record through one probe at tacho_call_ended()
// (bpf/programs/recorders/fastcalls.bpf.c), in place of two breakpoints in every function of any program.
//
// TACHO_CALLS_MIN_NS and TACHO_CALLS_DEPTH leave calls out before they are reported. TACHO_CALLS_RETURNS_OF is
// the file whose functions of -pg have their return addresses replaced: tacho-record has checked that it
// works with that.
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#define OPEN __attribute__((visibility("default")))
#define MOST_DEPTH 1024
#define ARGUMENTS 6

// Arguments of the probe: the event's payload, and whether it goes beyond `level`.
struct call_report {
  uint64_t duration_ns, function, level, returned, arguments[ARGUMENTS];
  uint64_t has_values;
};
// Its first instruction is one that the kernel imitates.
void tacho_call_ended(const struct call_report* report);
__asm__(
    ".text\n"
    ".globl tacho_call_ended\n"
    ".type tacho_call_ended, %function\n"
    "tacho_call_ended:\n"
#ifdef __x86_64__
    "  .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
#else
    "  nop\n"
#endif
    "  ret\n"
    ".size tacho_call_ended, . - tacho_call_ended\n");

struct begun {
  uint64_t function, time_ns, arguments[ARGUMENTS];
  uintptr_t place;  // on the stack; calls with lower places began later
  uint64_t return_address;
};
struct calls {  // of a thread
  uint32_t depth;
  uintptr_t busy_at;  // stack address of a running hook, during which handlers' calls are ignored; 0: none
  struct begun begun[MOST_DEPTH];
};

static __thread struct calls* own_calls __attribute__((tls_model("initial-exec")));
// Functions of other libraries may be called before this library is relocated and its constructor has run:
// such calls are ignored.
static bool is_ready;
static pthread_key_t at_end;
static uint64_t min_ns, most_depth = MOST_DEPTH;

// The code whose functions get their return addresses replaced.
static struct { uintptr_t begin, size; } followed;

// The original return address of each stack slot, as of its last replacement by the trampoline
// (tacho_function_returns). Entries are never removed: after a switch of stacks a function returns later,
// maybe in another thread.
#define STACK_PAGES 16384
#define STACK_PAGE 4096
#define MOST_TRIES 64
struct originals {
  uintptr_t pages[STACK_PAGES];  // page numbers, a hash table; 0: free
  uint64_t addresses[STACK_PAGES][STACK_PAGE / sizeof(uint64_t)];
};
static struct originals* originals;

static void thread_ends(void* calls) {
  own_calls = 0;
  munmap(calls, sizeof(struct calls));
}

static uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* text = getenv(variable);
  return text && *text ? strtoull(text, 0, 10) : otherwise;
}
#ifdef __x86_64__

static int find_in_object(struct dl_phdr_info* object, size_t size, void* wanted) {
  (void)size;
  const struct stat* const file = wanted;
  struct stat own;
  const bool has_name = object->dlpi_name && *object->dlpi_name;
  if (stat(has_name ? object->dlpi_name : "/proc/self/exe", &own)) return 0;
  if (own.st_dev != file->st_dev || own.st_ino != file->st_ino) return 0;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &object->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    const uintptr_t at = object->dlpi_addr + part->p_vaddr;
    if (at < begin) begin = at;
    if (at + part->p_memsz > end) end = at + part->p_memsz;
  }
  if (end <= begin) return 0;
  followed.begin = begin;
  followed.size = end - begin;
  return 1;
}
static void find_followed(void) {
  const char* const path = getenv("TACHO_CALLS_RETURNS_OF");
  struct stat file;
  if (!path || !*path || stat(path, &file)) return;
  void* const memory = mmap(0, sizeof(struct originals), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  madvise(memory, sizeof(struct originals), MADV_NOHUGEPAGE);  // only scattered pages are used
  originals = memory;
  dl_iterate_phdr(find_in_object, &file);
}

#else
static void find_followed(void) {}
#endif

__attribute__((constructor)) static void on_load(void) {
  min_ns = number_in("TACHO_CALLS_MIN_NS", 0);
  most_depth = number_in("TACHO_CALLS_DEPTH", MOST_DEPTH);
  if (most_depth == 0) most_depth = MOST_DEPTH;
  find_followed();
  const bool has_key = !pthread_key_create(&at_end, thread_ends);
  __atomic_store_n(&is_ready, has_key, __ATOMIC_RELEASE);
}

static struct calls* calls_of_thread(void) {
  if (!__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE)) return 0;
  if (own_calls) return own_calls;
  void* const memory =
      mmap(0, sizeof(struct calls), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  own_calls = memory;
  pthread_setspecific(at_end, memory);
  return own_calls;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void report_call(const struct begun* call, uint32_t level, uint64_t returned, bool has_values) {
  struct call_report report = {
      .function = call->function, .level = level, .returned = returned, .has_values = has_values};
  report.duration_ns = now() - call->time_ns;
  if (report.duration_ns < min_ns || level > most_depth) return;
  memcpy(report.arguments, call->arguments, sizeof report.arguments);
  tacho_call_ended(&report);
}

// Removes calls that ended without a return (longjmp): their frames are below the current stack pointer.
static void drop_abandoned(struct calls* calls, uintptr_t place) {
  while (calls->depth && calls->begun[calls->depth - 1].place < place) --calls->depth;
}

// Begins a hook whose frame is at `here`. False: it was called by a signal handler that interrupted another
// hook of this thread. The handler's frames are below the registers that the kernel saved, which take more
// than LEAST_SAVED bytes; a higher frame means that a handler has left the other hook by siglongjmp().
#define LEAST_SAVED 512
static bool enter_hook(struct calls* calls, uintptr_t here) {
  if (calls->busy_at && here + LEAST_SAVED < calls->busy_at) return false;
  calls->busy_at = here;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return true;
}
static void leave_hook(struct calls* calls) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  calls->busy_at = 0;
}

// -finstrument-functions: an inlined function has the place and the return address of the function around it.
OPEN void __cyg_profile_func_enter(void* function, void* site) {
  struct calls* const calls = calls_of_thread();
  const uintptr_t place = (uintptr_t)__builtin_frame_address(0);
  if (!calls || !enter_hook(calls, place)) return;
  drop_abandoned(calls, place);
  // A call at the same place with another return address ended without a return.
  for (; calls->depth && calls->begun[calls->depth - 1].place == place; --calls->depth) {
    const struct begun* const other = &calls->begun[calls->depth - 1];
    const bool returns_here = other->return_address == (uint64_t)(uintptr_t)site;
    if (returns_here && other->function != (uint64_t)(uintptr_t)function) break;
  }
  if (calls->depth < MOST_DEPTH) {
    struct begun* const call = &calls->begun[calls->depth++];
    call->function = (uint64_t)(uintptr_t)function;
    call->place = place;
    call->return_address = (uint64_t)(uintptr_t)site;
    call->time_ns = now();
  }
  leave_hook(calls);
}
OPEN void __cyg_profile_func_exit(void* function, void* site) {
  struct calls* const calls = calls_of_thread();
  (void)site;
  if (!calls || !enter_hook(calls, (uintptr_t)__builtin_frame_address(0))) return;
  uint32_t depth = calls->depth;
  while (depth && calls->begun[depth - 1].function != (uint64_t)(uintptr_t)function) --depth;
  if (depth) {  // 0: it began before the first hook
    report_call(&calls->begun[depth - 1], depth, 0, false);
    calls->depth = depth - 1;
  }
  leave_hook(calls);
}

#ifdef __x86_64__

// A function of -pg is reported by an address inside of it. It starts with the instructions that make a
// frame (-pg needs one), or with the call itself (-mfentry), and either of them with endbr64 before.
static uint64_t with_endbr(const unsigned char* begin) {
  static const unsigned char endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  if (!memcmp(begin - sizeof endbr, endbr, sizeof endbr)) begin -= sizeof endbr;
  return (uint64_t)(uintptr_t)begin;
}
static uint64_t begin_of(uint64_t inside) {
  static const unsigned char frame[] = {0x55, 0x48, 0x89, 0xe5};
  const unsigned char* const code = (const unsigned char*)(uintptr_t)inside;
  const unsigned char* begin = 0;
  // Before a call of 5 or 6 bytes; a prologue pushes registers and makes room.
  for (int back = 5; back < 40 && !begin; ++back)
    if (!memcmp(code - back, frame, sizeof frame)) begin = code - back;
  return begin ? with_endbr(begin) : inside;
}
static uint64_t begin_before_call(uint64_t inside) {
  const unsigned char* const code = (const unsigned char*)(uintptr_t)inside;
  const bool is_long = (code[-6] == 0x67 && code[-5] == 0xe8) || (code[-6] == 0xff && code[-5] == 0x15);
  return with_endbr(code - (is_long ? 6 : 5));
}

// The entry for the original return address of `slot`; null: there is none, and no room for it.
static uint64_t* original_of(uintptr_t slot, bool adds) {
  const uintptr_t page = slot / STACK_PAGE;
  uint64_t at = (page * 0x9e3779b97f4a7c15) >> 32;
  for (int tries = 0; tries < MOST_TRIES; ++tries, ++at) {
    uintptr_t* const number = &originals->pages[at % STACK_PAGES];
    uintptr_t there = __atomic_load_n(number, __ATOMIC_ACQUIRE);
    if (!there && !adds) return 0;
    if (!there &&
        __atomic_compare_exchange_n(number, &there, page, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      there = page;
    if (there == page) return &originals->addresses[at % STACK_PAGES][slot % STACK_PAGE / sizeof(uint64_t)];
  }
  return 0;
}

extern const char tacho_function_returns[] __attribute__((visibility("hidden")));

// `slot`: address of its return address, which is replaced.
__attribute__((visibility("hidden"), used)) void tacho_function_begins(uint64_t* slot, uint64_t inside,
                                                                       const uint64_t* arguments,
                                                                       uint64_t is_first) {
  if (inside - followed.begin >= followed.size || (uintptr_t)slot % sizeof *slot) return;
  struct calls* const calls = calls_of_thread();
  const uint64_t trampoline = (uint64_t)(uintptr_t)tacho_function_returns;
  if (!calls || !enter_hook(calls, (uintptr_t)__builtin_frame_address(0))) return;
  drop_abandoned(calls, (uintptr_t)slot);
  // Of two functions in one place the first has jumped to the second, or ended without a return.
  const bool is_jump = *slot == trampoline;
  if (!is_jump)
    while (calls->depth && calls->begun[calls->depth - 1].place == (uintptr_t)slot) --calls->depth;
  uint64_t* const original = calls->depth < MOST_DEPTH ? original_of((uintptr_t)slot, true) : 0;
  if (original) {
    struct begun* const call = &calls->begun[calls->depth++];
    call->function = is_first ? begin_before_call(inside) : begin_of(inside);
    memcpy(call->arguments, arguments, sizeof call->arguments);
    call->place = (uintptr_t)slot;
    if (!is_jump) {
      *original = *slot;
      __atomic_signal_fence(__ATOMIC_SEQ_CST);  // the entry is there before the slot is replaced
      *slot = trampoline;
    }
    call->return_address = *original;
    call->time_ns = now();
  }
  leave_hook(calls);
}
// Returns the original return address, which is known even if the call is not.
__attribute__((visibility("hidden"), used)) uint64_t tacho_function_ends(uint64_t returned, uintptr_t slot) {
  const uint64_t* const original = original_of(slot, false);
  if (!original || !*original) abort();  // the program has copied a stack to another place
  const uint64_t back = *original;
  struct calls* const calls = own_calls;
  if (!calls || !enter_hook(calls, (uintptr_t)__builtin_frame_address(0))) return back;
  drop_abandoned(calls, slot);
  // Functions in one place have jumped to each other (tail calls), and return together.
  for (; calls->depth && calls->begun[calls->depth - 1].place == slot; --calls->depth) {
    const struct begun* const call = &calls->begun[calls->depth - 1];
    // With another return address it ended without a return, in another thread.
    if (call->return_address == back) report_call(call, calls->depth, returned, true);
  }
  leave_hook(calls);
  return back;
}

// Both are called with all registers in use: by the second instruction of a prologue or after it (mcount),
// or by the first one (__fentry__).
__asm__(
    ".text\n"
    ".globl mcount, _mcount, __fentry__\n"
    ".type mcount, @function\n"
    ".type _mcount, @function\n"
    ".type __fentry__, @function\n"
    "__fentry__:\n"
    "  push %rax\n"
    "  push %rbx\n"
    "  lea 24(%rsp), %rax\n"  // above both and the return address into the function
    "  mov $1, %ebx\n"
    "  jmp 1f\n"
    "mcount:\n"
    "_mcount:\n"
    "  push %rax\n"
    "  push %rbx\n"
    "  lea 8(%rbp), %rax\n"
    "  xor %ebx, %ebx\n"
    "1:\n"
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  push %r11\n"
    "  push %r10\n"
    "  push %r9\n"
    "  push %r8\n"
    "  push %rcx\n"
    "  push %rdx\n"
    "  push %rsi\n"
    "  push %rdi\n"
    "  mov %rax, %rdi\n"
    "  mov 24(%rbp), %rsi\n"
    "  mov %rsp, %rdx\n"
    "  mov %rbx, %rcx\n"
    "  and $-16, %rsp\n"
    "  sub $128, %rsp\n"
    "  movups %xmm0, (%rsp)\n"
    "  movups %xmm1, 16(%rsp)\n"
    "  movups %xmm2, 32(%rsp)\n"
    "  movups %xmm3, 48(%rsp)\n"
    "  movups %xmm4, 64(%rsp)\n"
    "  movups %xmm5, 80(%rsp)\n"
    "  movups %xmm6, 96(%rsp)\n"
    "  movups %xmm7, 112(%rsp)\n"
    "  call tacho_function_begins\n"
    "  movups (%rsp), %xmm0\n"
    "  movups 16(%rsp), %xmm1\n"
    "  movups 32(%rsp), %xmm2\n"
    "  movups 48(%rsp), %xmm3\n"
    "  movups 64(%rsp), %xmm4\n"
    "  movups 80(%rsp), %xmm5\n"
    "  movups 96(%rsp), %xmm6\n"
    "  movups 112(%rsp), %xmm7\n"
    "  lea -64(%rbp), %rsp\n"
    "  pop %rdi\n"
    "  pop %rsi\n"
    "  pop %rdx\n"
    "  pop %rcx\n"
    "  pop %r8\n"
    "  pop %r9\n"
    "  pop %r10\n"
    "  pop %r11\n"
    "  pop %rbp\n"
    "  pop %rbx\n"
    "  pop %rax\n"
    "  ret\n"
    ".size mcount, . - mcount\n"
    ".hidden tacho_function_returns\n"
    ".globl tacho_function_returns\n"
    ".type tacho_function_returns, @function\n"
    "tacho_function_returns:\n"
    "  push $0\n"  // slot for the return address
    "  push %rax\n"
    "  push %rdx\n"
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  mov %rax, %rdi\n"
    "  lea 24(%rbp), %rsi\n"
    "  and $-16, %rsp\n"
    "  sub $32, %rsp\n"
    "  movups %xmm0, (%rsp)\n"
    "  movups %xmm1, 16(%rsp)\n"
    "  call tacho_function_ends\n"
    "  movups (%rsp), %xmm0\n"
    "  movups 16(%rsp), %xmm1\n"
    "  mov %rax, 24(%rbp)\n"
    "  mov %rbp, %rsp\n"
    "  pop %rbp\n"
    "  pop %rdx\n"
    "  pop %rax\n"
    "  ret\n"
    ".size tacho_function_returns, . - tacho_function_returns\n"
    ".section .note.GNU-stack, \"\", @progbits\n"
    ".text\n");

// -pg links code that starts and ends a profile of its own, which is not wanted.
OPEN void __monstartup(unsigned long low, unsigned long high) { (void)low, (void)high; }
OPEN void _mcleanup(void) {}

#endif
