/* C's names are the linker's. */
extern volatile int sink;

static inline __attribute__((always_inline)) int step(int n) {
  return n * sink;
}

int walk(int n) {
  return step(n) + sink;
}
