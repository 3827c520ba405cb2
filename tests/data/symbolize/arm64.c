// Compiled for arm64: call frame information as a compiler writes it there.
__attribute__((noinline)) static long leaf(long* values, long count) {
  long sum = 0;
  for (long i = 0; i < count; ++i) sum += values[i];
  return sum;
}

__attribute__((noinline)) long middle(long count) {
  long values[40];
  for (long i = 0; i < 40; ++i) values[i] = i * count;
  asm volatile("" : : "r"(values) : "memory");
  return leaf(values, 40) + count;
}

__attribute__((noinline)) long outer(long first, long second) {
  const long one = middle(first), two = middle(second);
  return one * two + first;
}
