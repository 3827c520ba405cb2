// Calls that the compiler inlines, of functions with parameters and of templates.
#include <cstdlib>

namespace work {
template <class T>
[[gnu::always_inline]] inline T mixed(T value, T more) {
  for (int i = 0; i < 64; ++i) value = value * 31 + (more ^ i);
  return value;
}
[[gnu::always_inline]] inline unsigned long twice(unsigned long value) {
  return mixed(mixed(value, 1UL), 2UL);
}
[[gnu::noinline]] unsigned long spin(unsigned long rounds, const char* /*name*/) {
  unsigned long value = 1;
  for (unsigned long i = 0; i < rounds; ++i) value = twice(value + i);
  return value;
}
}  // namespace work

int main(int argc, char** argv) {
  const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2000000;
  return work::spin(rounds, "x") == 0;
}
