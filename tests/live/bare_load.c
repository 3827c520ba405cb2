// Where stacks begin that frame pointers and unwind information hardly lead out of.
//   bare_load spin    half a second in assembly that nothing describes; it saves other registers before rbp
//   bare_load steps   0.7 s of calls of a function, for a probe at its begin
//   bare_load popped  200 calls of getppid(2) by a function that has popped its return address
//   bare_load vfork   200 calls of vfork(), which keeps its return address in a register meanwhile
//   bare_load deep    writes 60 times to nowhere from 60 KiB of stack below main()
//   bare_load forks   says "ready", waits for a line, and has 200 children that end without another program
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__asm__(
    ".text\n.globl bare_spin\n.type bare_spin, @function\nbare_spin:\n"
    "push %r12\n push %rbx\n push %rbp\n mov %rsp, %rbp\n sub $144, %rsp\n and $-64, %rsp\n"
    "xor %ebx, %ebx\n mov %rdi, %r12\n"  // where a return address would be there is a zero now
    "1: dec %r12\n jnz 1b\n"
    "mov %rbp, %rsp\n pop %rbp\n pop %rbx\n pop %r12\n ret\n.size bare_spin, . - bare_spin\n");
void bare_spin(unsigned long count);

// Its first instruction is one that a probe has run elsewhere.
__asm__(
    ".text\n.globl bare_step\n.type bare_step, @function\nbare_step:\n.cfi_startproc\n"
    "sub $24, %rsp\n .cfi_adjust_cfa_offset 24\n add $24, %rsp\n .cfi_adjust_cfa_offset -24\n ret\n"
    ".cfi_endproc\n.size bare_step, . - bare_step\n");
void bare_step(void);

// As Go's rawVforkSyscall().
__asm__(
    ".text\n.globl bare_popped\n.type bare_popped, @function\nbare_popped:\n.cfi_startproc\n"
    "pop %r9\n .cfi_adjust_cfa_offset -8\n mov $110, %eax\n syscall\n"  // getppid
    "push %r9\n .cfi_adjust_cfa_offset 8\n ret\n"
    ".cfi_endproc\n.size bare_popped, . - bare_popped\n");
int bare_popped(void);

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) int bare_caller(double end) {
  int calls = 0;
  for (; now() < end; ++calls) bare_spin(1000000);
  return calls;
}

__attribute__((noinline)) int bare_steps(double end) {
  int calls = 0;
  for (; now() < end; ++calls)
    for (int i = 0; i < 100; ++i) bare_step();
  return calls;
}

__attribute__((noinline)) int bare_popper(void) { return bare_popped() + 1; }

__attribute__((noinline)) int bare_vfork(void) {
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// 1 KiB of stack for each.
__attribute__((noinline)) long bare_deep(int depth) {
  volatile char frame[960];
  memset((char*)frame, depth, sizeof frame);
  long result = depth == 0 ? write(1, "x", 1) : bare_deep(depth - 1);
  return result + frame[depth % 960];
}

// usleep() is looked for at its first call, in each child anew: the dynamic linker's stack is one of odd
// rules.
__attribute__((noinline)) int bare_fork(void) {
  const pid_t child = fork();
  if (child == 0) {
    usleep(1);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

int main(int count, char** words) {
  const char* const what = count > 1 ? words[1] : "";
  int result = 0;
  if (strcmp(what, "spin") == 0) return bare_caller(now() + 0.5) == 0;
  if (strcmp(what, "steps") == 0) return bare_steps(now() + 0.7) == 0;
  if (strcmp(what, "vfork") == 0)
    for (int i = 0; i < 200; ++i) result += bare_vfork();
  if (strcmp(what, "popped") == 0)
    for (int i = 0; i < 200; ++i) result += bare_popper() == 0;
  if (strcmp(what, "deep") == 0)
    for (int i = 0; i < 60; ++i) result += bare_deep(60) == 0;
  if (strcmp(what, "forks") == 0) {
    (void)puts("ready");
    (void)fflush(stdout);
    (void)getchar();
    for (int i = 0; i < 200; ++i) result += bare_fork();
  }
  return result != 0;
}
