// Templates, closures and inlined calls, for demangling and unwinding. Its argument is for how many seconds
// it runs.
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace shapes {
template <class T, int N>
struct Ring {
  std::vector<T> items = std::vector<T>(N);
  inline T mix(T seed) {
    for (T& item : items) seed = (seed ^ item) * 16777619u + static_cast<T>(N), item = seed;
    return seed;
  }
  __attribute__((noinline)) T turn(T seed) { return mix(seed) + mix(seed / 2); }
};
namespace {
__attribute__((noinline)) unsigned anonymous(const std::function<unsigned(unsigned)>& f, unsigned x) {
  return f(x) + 1;
}
}  // namespace
__attribute__((noinline)) unsigned operator+(const Ring<unsigned, 64>& a, int depth) {
  return depth == 0 ? a.items[0] : (a + (depth - 1)) + a.items[1];
}
}  // namespace shapes

int main(int argc, char** argv) {
  using namespace shapes;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.2;
  Ring<unsigned, 64> ring;
  std::map<std::string, unsigned> sums;
  const auto start = std::clock();
  while (std::clock() - start < seconds * CLOCKS_PER_SEC) {
    for (int i = 0; i < 500; ++i)
      sums["a" + std::to_string(i)] +=
          anonymous([&](unsigned x) { return ring.turn(x) + (ring + 5); }, sums["b"]);
  }
  return sums["a1"] == 42;
}
