// Stacks of a known shape: calls that are inlined, of templates and of functions in namespaces, down to a
// system call. elsewhere COUNT [unlink]: with the second word, removes its own file first.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace far_away {
// Has no frame that a walk by frame pointers sees, as syscall() makes none of its own.
[[gnu::noinline]] long enter_kernel() {
  const long parent = syscall(SYS_getppid);
  asm volatile("" ::"r"(parent) : "memory");
  return parent;
}

template <class T>
[[gnu::always_inline]] inline long innermost(T scale) {
  const long parent = enter_kernel();
  return parent * static_cast<long>(scale);
}
[[gnu::always_inline]] inline long middle(int value) { return innermost<short>(3) + value; }

struct Traveller {
  [[gnu::noinline]] long go(int value) const {
    const long sum = middle(value) + innermost<int>(value);
    asm volatile("" ::: "memory");
    return sum;
  }
};
}  // namespace far_away

extern "C" [[gnu::noinline]] long linkers_name(int value) {
  const far_away::Traveller traveller;
  const long sum = traveller.go(value) + far_away::middle(value);
  asm volatile("" ::: "memory");
  return sum;
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 10;
  if (argc > 2 && std::string_view(argv[2]) == "unlink") (void)unlink(argv[0]);
  long sum = 0;
  for (long i = 0; i < count; ++i) sum += linkers_name(static_cast<int>(i));
  return sum == 1;
}
