// What a verdict costs: tests of 10,000 functions, of which some can matter. Run:
// build-bench/bin/compare_bench; arguments are captures a side and functions that can matter.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "report/compare/statistics.h"

namespace tacho::report {
namespace {

constexpr std::size_t kFunctions = 10'000;

std::vector<std::vector<double>> shares(std::size_t captures, std::size_t moving) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise;
  std::vector<std::vector<double>> rows(kFunctions, std::vector<double>(captures));
  for (std::size_t f = 0; f < kFunctions; ++f)
    for (double& share : rows[f]) share = f < moving ? 0.1 + 0.03 * noise(random) : 0.001 * noise(random);
  return rows;
}

void BM_CompareSides(benchmark::State& state) {
  const auto before = static_cast<std::size_t>(state.range(0));
  const auto rows = shares(2 * before, static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(compare_sides(rows, before, {}));
}
BENCHMARK(BM_CompareSides)
    ->Args({5, 20})
    ->Args({5, 1'000})
    ->Args({10, 20})
    ->Args({10, 1'000})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tacho::report
