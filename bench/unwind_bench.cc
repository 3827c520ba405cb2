// Unwinding: call chains a second once the rules are known, and rules a second when they are not.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "format/extensions/attachment.h"
#include "format/records/perf_abi.h"
#include "symbolize/unwind/unwind.h"
#include "symbolize/unwind/unwind_module.h"
#include "tests/unwind/cfi_image.h"

namespace {

using namespace tacho;

constexpr std::uint64_t kLoad = 0x7f0000000000, kStack = 0x7ffc00000000;
constexpr std::uint64_t kFunctionSize = 16;

// Functions that each keep 16 bytes of stack and one saved register; the last one is nobody's callee.
std::vector<unwind::test::Function> functions(std::uint64_t count) {
  std::vector<unwind::test::Function> made;
  for (std::uint64_t i = 0; i + 1 < count; ++i) {
    made.push_back({.start = 0x1000 + i * kFunctionSize,
                    .size = kFunctionSize,
                    .program = {0x41, 0x0e, 16, 0x83, 2, 0x41, 0x0e, 24}});
  }
  made.push_back(
      {.start = 0x1000 + (count - 1) * kFunctionSize, .size = kFunctionSize, .program = {0x07, 16}});
  return made;
}

// A chain as deep as those of busy C++ programs.
void unwind_chain(benchmark::State& state) {
  const auto depth = static_cast<std::uint64_t>(state.range(0));
  const std::string image = unwind::test::elf_image(functions(depth));
  format::Features features;
  features.environment.arch = "x86_64";
  auto packed = format::pack_attachment("vdso", "[vdso]", std::as_bytes(std::span(image)));
  if (!packed) return state.SkipWithError("the image cannot be packed");
  features.attachments.push_back(std::move(*packed));
  symbolize::AddressSpaces spaces;
  format::MmapRecord mapping;
  mapping.pid = mapping.tid = 7;
  mapping.start = kLoad;
  mapping.length = 0x5000;
  mapping.filename = "[vdso]";
  mapping.is_mmap2 = true;
  mapping.protection = 5;
  spaces.apply(mapping, format::abi::kCpumodeUser);

  std::vector<std::uint64_t> stack;
  for (std::uint64_t i = 1; i < depth; ++i) {
    stack.insert(stack.end(), {0, 0, kLoad + 0x1000 + i * kFunctionSize + 8});
  }
  stack.insert(stack.end(), 4, 0);
  const std::vector<std::uint64_t> registers{kStack, kLoad + 0x1008};  // sp, ip
  format::Sample sample;
  sample.pid = sample.tid = 7;
  sample.user_registers = {2, 3U << 7,
                           format::U64Array(std::as_bytes(std::span(registers)), std::endian::native)};
  sample.user_stack = std::as_bytes(std::span(stack));
  symbolize::Unwinder unwinder({}, features);
  for (auto _ : state) {
    const auto chain = unwinder.unwind(sample, spaces.version(sample.pid), 127);
    if (chain.size() != depth) return state.SkipWithError("a chain of another depth");
    benchmark::DoNotOptimize(chain.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(unwind_chain)->Arg(5)->Arg(20)->Arg(60);

// Every address asked for the first time.
void evaluate_rules(benchmark::State& state) {
  const std::string file = unwind::test::elf_image(functions(64));
  const auto bytes = std::as_bytes(std::span(file));
  const auto image = unwind::ElfImage::in_memory({bytes.begin(), bytes.end()});
  if (!image) return state.SkipWithError("the image cannot be read");
  constexpr std::uint64_t kFirst = unwind::test::kBase + 0x1000, kCount = 63 * kFunctionSize;
  for (auto _ : state) {
    auto table = symbolize::CfiTable::from_eh_frame(*image);
    for (std::uint64_t i = 0; i < kCount; ++i) benchmark::DoNotOptimize(table->find_row(kFirst + i).row);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kCount));
}
BENCHMARK(evaluate_rules);

}  // namespace
