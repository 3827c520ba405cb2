// Calls getppid(2) from destructors while exceptions fly, sorts' callbacks, signal handlers, threads and
// children: bench/user_stacks.py takes each call's stack.
#include <alloca.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static void hit() { syscall(SYS_getppid); }
struct Guard {
  ~Guard() { hit(); }
};
__attribute__((noinline)) int throws(int depth, volatile int* sink) {
  Guard guard;
  if (depth == 0) throw std::runtime_error(std::string(40, 'x'));
  int kept[8];
  memset(kept, depth, sizeof kept);
  int r = throws(depth - 1, sink) + kept[depth & 7];
  *sink += r;
  return r;
}
__attribute__((noinline)) int catches(int depth) {
  volatile int sink = 0;
  try {
    return throws(depth, &sink);
  } catch (const std::exception& e) {
    hit();
    return (int)strlen(e.what());
  }
}
int compare(const void* a, const void* b) {
  hit();
  return *(const int*)a - *(const int*)b;
}
void sorts() {
  std::vector<int> v(40);
  int seed = 7;
  for (int& x : v) x = seed = seed * 1103515245 + 12345;
  std::vector<int> w = v;
  qsort(v.data(), v.size(), sizeof(int), compare);
  std::sort(w.begin(), w.end(), [](int a, int b) {
    hit();
    return a < b;
  });
  std::function<void(int)> f = [&](int n) {
    if (n)
      f(n - 1);
    else
      hit();
  };
  f(30);
}
void handler(int) { hit(); }
void big(int n) {
  char* p = (char*)alloca(n * 100 + 16);
  memset(p, n, n * 100 + 16);
  hit();
  asm volatile("" ::"r"(p));
  if (n) big(n - 1);
  asm volatile("" ::: "memory");
}
int main(int argc, char** argv) {
  struct sigaction a {};
  a.sa_handler = handler;
  sigaction(SIGUSR1, &a, nullptr);
  stack_t alt{};
  alt.ss_sp = malloc(65536);
  alt.ss_size = 65536;
  sigaltstack(&alt, nullptr);
  struct sigaction b {};
  b.sa_handler = handler;
  b.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &b, nullptr);
  for (int i = 0; i < atoi(argv[1]); ++i) {
    catches(20);
    sorts();
    raise(SIGUSR1);
    raise(SIGUSR2);
    big(9);
    std::thread([] {
      catches(5);
      sorts();
      raise(SIGUSR1);
    }).join();
    if (i % 8 == 0) {
      pid_t c = vfork();
      if (c == 0) {
        hit();
        execl("/bin/true", "true", nullptr);
        _exit(1);
      }
      waitpid(c, nullptr, 0);
    }
    if (i % 8 == 0) {
      pid_t c = fork();
      if (c == 0) {
        hit();
        sorts();
        _exit(0);
      }
      waitpid(c, nullptr, 0);
    }
  }
}
