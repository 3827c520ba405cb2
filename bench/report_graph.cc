// Call graphs of report: the tree of a row and its drawing, over chains of a made program whose functions
// call each other with uneven weights. Run: build-bench/bin/report_graph; each figure is chains a second.
#include <benchmark/benchmark.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

#include "report/profile/call_tree.h"
#include "report/views/report/call_graph_text.h"

namespace tacho::report {
namespace {

constexpr std::uint32_t kFunctions = 20000;
constexpr std::size_t kChains = 300000;

// Each function calls four others, the first of them mostly.
struct Program {
  Program() {
    std::mt19937 random(7);
    for (std::uint32_t id = 0; id < kFunctions; ++id) {
      Function function;
      NamedFacts& named = facts.emplace_back();
      named.name = names.emplace_back("function_number_" + std::to_string(id));
      function.named = &named;
      function.start = function.first_ip = 0x1000 + 0x40 * std::uint64_t{id};
      function.name_number = id + 1;
      function.chain_key = ChainKeyId{id};
      function.module_rank = 1;
      functions.push_back(function);
    }
    for (std::size_t i = 0; i < kChains; ++i) {
      auto& chain = chains.emplace_back();
      std::uint32_t at = 0;
      for (std::size_t depth = 10 + random() % 30; depth > 0; --depth) {
        chain.push_back(FunctionId{at});
        const std::uint32_t draw = static_cast<std::uint32_t>(random()) % 16;
        const std::uint32_t way = draw < 10 ? 0 : draw < 13 ? 1 : draw < 15 ? 2 : 3;
        at = (at * 4 + way + 1) % kFunctions;
      }
      strands.push_back({chain, 1 + random() % 1000, 1});
      total += strands.back().period;
    }
  }
  std::deque<std::string> names;
  std::deque<NamedFacts> facts;
  StableArray<Function, FunctionId> functions;
  std::deque<std::vector<FunctionId>> chains;
  std::vector<Strand> strands;
  std::uint64_t total = 0;
};

const Program& program() {
  static const Program made;
  return made;
}

// Its argument: thousandths of a percent that a node must have.
void BM_CallTree(benchmark::State& state) {
  const Program& made = program();
  CallTree tree(made.functions);
  const double percent = static_cast<double>(state.range(0)) / 1000;
  for (auto _ : state) tree.build(made.strands, {CallTreeLimit::Share::OfTotal, percent, made.total});
  state.counters["nodes"] = static_cast<double>(tree.nodes().size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kChains));
}
BENCHMARK(BM_CallTree)->Arg(500)->Arg(10)->Arg(0)->Unit(benchmark::kMillisecond);

void BM_Drawing(benchmark::State& state) {
  const Program& made = program();
  GraphOptions options;
  options.min_percent = static_cast<double>(state.range(0)) / 1000;
  CallTree tree(made.functions);
  tree.build(made.strands, graph_limit(options, made.total));
  const CallGraphText text(options, made.functions, Names::Safe);
  TextBuffer out;
  for (auto _ : state) {
    out.clear();
    text.write(out, tree, {.event_total = made.total, .row_total = made.total});
  }
  state.counters["bytes"] = static_cast<double>(out.size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kChains));
}
BENCHMARK(BM_Drawing)->Arg(500)->Arg(10)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tacho::report
