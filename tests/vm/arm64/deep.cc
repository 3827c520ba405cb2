// deep [SECONDS]: stacks of C++: virtual functions, std::sort, std::function, exceptions that are caught, and
// a thread.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline))
namespace {

volatile unsigned long sink;
using Clock = std::chrono::steady_clock;

struct Shape {
  virtual ~Shape() = default;
  virtual long area(int depth) const = 0;
};
struct Square final : Shape {
  NOINLINE long area(int depth) const override {
    for (int i = 0; i < 20000; ++i) sink = sink + static_cast<unsigned long>(i ^ depth);
    return depth;
  }
};
struct Nested final : Shape {
  std::unique_ptr<Shape> inner;
  NOINLINE long area(int depth) const override { return inner->area(depth + 1) + 1; }
};

NOINLINE std::unique_ptr<Shape> nested(int levels) {
  if (levels == 0) return std::make_unique<Square>();
  auto made = std::make_unique<Nested>();
  made->inner = nested(levels - 1);
  return made;
}
NOINLINE long throws_at(int depth) {
  if (depth == 0) throw std::runtime_error("deep");
  return throws_at(depth - 1) + 1;
}
NOINLINE long catches() {
  try {
    return throws_at(12);
  } catch (const std::exception& error) {
    return error.what()[0];
  }
}
NOINLINE void sorts() {
  std::mt19937 random(1);
  std::vector<double> numbers(4000);
  for (double& number : numbers) number = static_cast<double>(random());
  std::sort(numbers.begin(), numbers.end(), [](double a, double b) { return a < b; });
  sink = sink + static_cast<unsigned long>(numbers[7]);
}
NOINLINE void works_until(Clock::time_point end) {
  const auto shape = nested(20);
  const std::function<long()> area = [&shape] { return shape->area(0); };
  while (Clock::now() < end) {
    sink = sink + static_cast<unsigned long>(area() + catches());
    sorts();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto end =
      Clock::now() + std::chrono::milliseconds(static_cast<int>(1000 * (argc > 1 ? std::atof(argv[1]) : 1)));
  std::thread other(works_until, end);
  works_until(end);
  other.join();
}
