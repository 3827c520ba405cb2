// What the terminal view costs on a million rows with call graphs: a screen drawn, the cursor moved to the
// end and back, rows made anew. A key should be answered within 50 ms. Run: build-bench/bin/tui_bench.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "report/views/tui/browser.h"
#include "report/views/tui/time_strip.h"

namespace tacho::report {
namespace {

constexpr std::size_t kRows = 1'000'000;

class ManyRows : public BrowsedRows {
 public:
  std::size_t size() const override { return kRows; }
  std::vector<BrowsedColumn> columns() const override {
    return {{.header = "Overhead", .width = 8, .is_right = true, .is_share = true},
            {.header = "Shared Object", .width = 30, .is_name = true},
            {.header = "Symbol", .width = 200, .is_name = true}};
  }
  std::vector<Cell> cells(std::size_t row) const override {
    return {{"   0.01%", 0.01}, {"a_shared_object.so.1", 0}, {identity(row), 0}};
  }
  std::string identity(std::size_t row) const override {
    return "std::vector<std::pair<unsigned long, std::basic_string<char>>>::_M_realloc_insert_" +
           std::to_string(row);
  }
  bool has_graph(std::size_t) const override { return true; }
  std::vector<BrowsedNode> graph(std::size_t) const override {
    std::vector<BrowsedNode> nodes(1);
    nodes[0].first_child = 1;
    nodes[0].children = 1;
    for (std::uint32_t depth = 0; depth < 40; ++depth) {
      BrowsedNode& node = nodes.emplace_back();
      node.frames = {"caller_" + std::to_string(depth)};
      node.functions = {FunctionId{depth}};
      node.share = "50.00%";
      if (depth + 1 < 40) {
        node.first_child = depth + 2;
        node.children = 1;
      }
    }
    return nodes;
  }
};

void press(Browser& browser, Key key) { (void)browser.on_key({.key = key, .size = {}}); }

void BM_Draw(benchmark::State& state) {
  const ManyRows rows;
  Browser browser(rows);
  press(browser, Key::End);
  for (auto _ : state) {
    Frame frame({200, 60});
    browser.draw(frame, 1, 58);
    benchmark::DoNotOptimize(encode(frame));
  }
}
BENCHMARK(BM_Draw)->Unit(benchmark::kMillisecond);

void BM_EndHomeAndPages(benchmark::State& state) {
  const ManyRows rows;
  Browser browser(rows);
  press(browser, static_cast<Key>('E'));
  for (auto _ : state) {
    for (const Key key : {Key::End, Key::PageUp, Key::Home, Key::PageDown}) {
      press(browser, key);
      Frame frame({200, 60});
      browser.draw(frame, 1, 58);
    }
  }
  state.SetItemsProcessed(state.iterations() * 4);
}
BENCHMARK(BM_EndHomeAndPages)->Unit(benchmark::kMillisecond);

// The cursor in the middle, and 512 open rows, are found again among all.
void BM_RememberAndRestore(benchmark::State& state) {
  const ManyRows rows;
  Browser browser(rows);
  press(browser, static_cast<Key>('E'));
  browser.move_to({kRows / 2, 0});
  for (auto _ : state) {
    Browser other(rows);
    other.restore(browser.remember());
    benchmark::DoNotOptimize(other.cursor());
  }
}
BENCHMARK(BM_RememberAndRestore)->Unit(benchmark::kMillisecond);

void BM_TimesOfSamples(benchmark::State& state) {
  for (auto _ : state) {
    TimeCounts counts;
    for (std::uint64_t i = 0; i < kRows; ++i) counts.add_time(1'000'000'000 + i * 101'000);
    benchmark::DoNotOptimize(counts.columns(200));
  }
  state.SetItemsProcessed(state.iterations() * kRows);
}
BENCHMARK(BM_TimesOfSamples)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tacho::report
