// Calls inside calls, for the readers of DWARF: names that are the linker's and names that are not.
volatile int sink;

static inline __attribute__((always_inline)) int twice(int x) {
  return x + sink;
}

namespace geo {
struct Box {
  int side;
  __attribute__((always_inline)) int area() const {
    return twice(side) * sink;
  }
};
}  // namespace geo

static __attribute__((noinline)) int alone(int n) {
  sink = n;
  return sink + 1;
}

extern "C" int outer(const geo::Box& box) {
  auto more = [&](int n) __attribute__((always_inline)) {
    return box.area() + n * sink;
  };
  return more(3) - sink + alone(box.side);
}

extern "C" int late(int n) {
  sink = n;
  return twice(n * 3);
}
