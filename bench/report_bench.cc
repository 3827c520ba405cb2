// Views of a capture of our own making, from the file to the last byte of text, beside the floor: the session
// alone, with a sink that does nothing. Run: build-bench/bin/report_bench; each figure is samples a second.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "report/commands.h"
#include "report/samples/session.h"
#include "tests/support/capture_builder.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint32_t kSamples = 400000;
constexpr std::size_t kDepth = 10;

// 5000 distinct call chains.
const test::TemporaryFile& capture() {
  static const test::TemporaryFile file([] {
    test::CaptureBuilder builder;
    builder.event(test::software_event(abi::kBpfOutput, abi::kSampleCallchain | abi::kSampleRaw), "evt", {1});
    builder.mmap(7, 0x400000, 0x100000, 0, "/bin/none").comm(7, 7, "load");
    test::SampleFields sample;
    sample.id = 1;
    sample.pid = sample.tid = 7;
    sample.raw.resize(36);
    for (std::uint32_t i = 0; i < kSamples; ++i) {
      sample.time = 1000 + i * 1000;
      sample.ip = 0x400000 + i * 31 % 5000;
      sample.callchain.assign(1, abi::kContextUser);
      for (std::size_t depth = 0; depth < kDepth; ++depth)
        sample.callchain.push_back(0x400000 + (i * 31 + depth) % 5000);
      builder.sample(sample);
      if (i % 20000 == 19999) builder.round();
    }
    return builder.file();
  }());
  return file;
}

void BM_SessionAlone(benchmark::State& state) {
  class Nothing : public Sink {
   public:
    Flow on_sample(const ResolvedSample&) override { return Flow::Continue; }
  };
  for (auto _ : state) {
    SessionOptions options;
    options.input = capture().path();
    auto session = Session::open(options);
    if (!session) std::abort();
    Nothing sink;
    session->run(sink);
  }
  state.SetItemsProcessed(state.iterations() * kSamples);
}
BENCHMARK(BM_SessionAlone)->Unit(benchmark::kMillisecond);

// The command as the program runs it, its output to /dev/null.
void run_command(benchmark::State& state, std::string_view name, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"-i", capture().path(), "--symfs", "/nonexistent"});
  const auto command = std::ranges::find(commands(), name, &Command::name);
  const int kept = ::dup(STDOUT_FILENO), kept_error = ::dup(STDERR_FILENO),
            null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(null, STDERR_FILENO);
  for (auto _ : state) benchmark::DoNotOptimize(command->run(arguments));
  ::dup2(kept, STDOUT_FILENO);
  ::dup2(kept_error, STDERR_FILENO);
  for (const int fd : {kept, kept_error, null}) ::close(fd);
  state.SetItemsProcessed(state.iterations() * kSamples);
}

void BM_Script(benchmark::State& state) { run_command(state, "script", {}); }
void BM_ScriptOneLine(benchmark::State& state) { run_command(state, "script", {"-G", "-F", "-bpf-output"}); }
void BM_Folded(benchmark::State& state) { run_command(state, "folded", {}); }
void BM_Report(benchmark::State& state) { run_command(state, "report", {}); }
BENCHMARK(BM_Script)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ScriptOneLine)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Folded)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Report)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tacho::report
