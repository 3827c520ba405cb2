// What the sandbox costs: a child that does nothing, and text through its pipe. Run:
// build-bench/bin/sandbox_bench.
#include <benchmark/benchmark.h>

#include <string>

#include "sandbox/process.h"

namespace tacho::sandbox {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;

// Text of the given size from a child, which is dropped.
void text_of_a_child(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  std::size_t written = 0;
  Task task;
  task.input = "perf.data";
  task.open_output = [&]() -> Result<Output> {
    return Output{.write = [&](std::string_view text) -> Result<Reader> {
                    written += text.size();
                    return Reader::There;
                  },
                  .finish = []() -> Result<> { return Done{}; },
                  .is_reader_gone = [] { return false; }};
  };
  task.work = [size](Child& child) -> Result<cli::ExitStatus> {
    const Output output = child.open_output();
    const std::string piece(kPiece, 'x');
    for (std::size_t done = 0; done < size; done += kPiece)
      if (const auto reader = output.write(piece); !reader) return reader.error();
    if (auto done = output.finish(); !done) return done.error();
    return cli::kWhole;
  };
  for (auto _ : state) {
    bool is_confined = false;
    if (const auto status = run_view(task, is_confined); !status) {
      state.SkipWithError(status.error().what.c_str());
      return;
    }
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(written));
}
BENCHMARK(text_of_a_child)->Arg(0)->Arg(100 << 20)->UseRealTime();

}  // namespace
}  // namespace tacho::sandbox
