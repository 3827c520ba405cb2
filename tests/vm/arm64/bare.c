// A small program without libc, which is kept beside its capture in tests/data/arm64: recursion, a callback, a handler whose
// return leads through a trampoline of its own, as the vdso's is no file. It ends after some rounds.
#define NOINLINE __attribute__((noinline))
typedef unsigned long word;

static word call(word number, word a, word b, word c, word d) {
  register word x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
enum { kGetpid = 172, kKill = 129, kSigaction = 134, kExit = 94, kUser1 = 10, kRounds = 150, kSpin = 100000 };
static volatile word sink;

NOINLINE void bare_leaf(void) {
  for (word i = 0; i < kSpin; ++i) sink += i;
}
NOINLINE word bare_recurse(word depth) {
  if (depth == 0) {
    bare_leaf();
    return sink;
  }
  word below = bare_recurse(depth - 1);
  __asm__ volatile("" : "+r"(below));  // no loop in place of calls
  return below + depth;
}
static word bare_callback(word value) {
  bare_leaf();
  return value + sink;
}
NOINLINE word bare_each(word (*function)(word), word count) {
  word sum = 0;
  for (word i = 0; i < count; ++i) sum += function(i);
  return sum;
}
static void bare_handler(int number) { bare_recurse((word)number % 4); }
NOINLINE word bare_raise(void) {
  const word done = call(kKill, call(kGetpid, 0, 0, 0, 0), kUser1, 0, 0);
  return done + sink;
}

void bare_return(void);  // the very instructions of the vdso, without rules
__asm__(".text\n.type bare_return, %function\nnop\nbare_return: mov x8, #139\nsvc #0\n.size bare_return, . - bare_return\n");

static NOINLINE void bare_main(void) {
  struct { void (*handler)(int); word flags; void (*restorer)(void); word mask; } action = {bare_handler, 0x04000000, bare_return, 0};
  call(kSigaction, kUser1, (word)&action, 0, 8);
  for (int i = 0; i < kRounds; ++i) sink += bare_recurse(6) + bare_each(bare_callback, 2) + bare_raise();
}
void _start(void) {
  bare_main();
  call(kExit, 0, 0, 0, 0);
}
