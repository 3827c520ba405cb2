// Names for addresses: a lookup seen before and one not seen, a kernel's symbols of real size, this program's
// own ELF file and DWARF, mappings and demangling. Run: build-bench/bin/symbolize_bench
#include <benchmark/benchmark.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/records/perf_abi.h"
#include "symbolize/elf/dwarf_lines.h"
#include "symbolize/elf/elf_file.h"
#include "symbolize/names/symbol_lists.h"
#include "symbolize/symbolizer.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kKernel = 0xffffffff81000000;
constexpr std::uint64_t kSymbols = 122000, kSymbolSize = 0x100;
constexpr std::uint32_t kPid = 7;

// As long as a distribution kernel's, with names of the usual length.
const std::string& kallsyms_text() {
  static const std::string text = [] {
    std::string all;
    std::array<char, 96> line{};
    for (std::uint64_t i = 0; i < kSymbols; ++i) {
      const int size = std::snprintf(line.data(), line.size(), "%016llx %c some_function_name_%llu\n",
                                     static_cast<unsigned long long>(kKernel + i * kSymbolSize),
                                     i % 2 ? 't' : 'T', static_cast<unsigned long long>(i));
      all.append(line.data(), static_cast<std::size_t>(size));
    }
    return all;
  }();
  return text;
}

void parse_kallsyms(benchmark::State& state) {
  const auto bytes = std::as_bytes(std::span(kallsyms_text()));
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<std::byte> text(bytes.begin(), bytes.end());
    state.ResumeTiming();
    auto parsed = Kallsyms::parse(std::move(text), std::nullopt);
    benchmark::DoNotOptimize(parsed);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kSymbols));
}
BENCHMARK(parse_kallsyms)->Unit(benchmark::kMillisecond);

struct Kernel {
  format::Features features;
  AddressSpaces spaces;
  Kernel() {
    const auto bytes = std::as_bytes(std::span(kallsyms_text()));
    if (auto packed = format::pack_attachment("kallsyms", "bench", bytes)) {
      features.attachments.push_back(std::move(*packed));
    }
    format::MmapRecord record;
    record.start = kKernel;
    record.length = kSymbols * kSymbolSize;
    record.filename = "[kernel.kallsyms]_text";
    spaces.apply(record, format::abi::kCpumodeKernel);
  }
};

// `range` different addresses, again and again: what a sample's frame costs once its address was seen.
void resolve_seen(benchmark::State& state) {
  const Kernel kernel;
  Symbolizer symbolizer({}, kernel.features, kernel.spaces);
  const auto count = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t next = 0;
  for (auto _ : state) {
    const format::RuntimeAddress ip{kKernel + (next++ % count) * 0x55};
    const Mapping* const mapping = kernel.spaces.find_mapping(kPid, ip, format::abi::kCpumodeKernel);
    benchmark::DoNotOptimize(symbolizer.resolve(mapping, ip, format::abi::kCpumodeKernel));
  }
}
BENCHMARK(resolve_seen)->Arg(1000)->Arg(100000);

void resolve_new(benchmark::State& state) {
  const Kernel kernel;
  Symbolizer symbolizer({}, kernel.features, kernel.spaces);
  const Mapping* const mapping = kernel.spaces.find_mapping(kPid, {kKernel}, format::abi::kCpumodeKernel);
  symbolizer.resolve(mapping, {kKernel}, format::abi::kCpumodeKernel);  // reads kallsyms
  std::uint64_t next = 1;
  for (auto _ : state) {
    const format::RuntimeAddress ip{kKernel + (next++ * 0x9E37) % (kSymbols * kSymbolSize)};
    benchmark::DoNotOptimize(symbolizer.resolve(mapping, ip, format::abi::kCpumodeKernel));
  }
}
BENCHMARK(resolve_new)->Iterations(2000000);

void find_mapping(benchmark::State& state) {
  AddressSpaces spaces;
  for (std::uint64_t i = 0; i < 200; ++i) {
    format::MmapRecord record;
    record.pid = kPid;
    record.start = i * 0x10000;
    record.length = 0x8000;
    record.filename = "/usr/lib/libx.so";
    record.is_mmap2 = true;
    record.protection = 5;
    spaces.apply(record, format::abi::kCpumodeUser);
  }
  std::uint64_t next = 0;
  for (auto _ : state) {
    const format::RuntimeAddress ip{(next++ * 0x9E37) % (200 * 0x10000)};
    benchmark::DoNotOptimize(spaces.find_mapping(kPid, ip, format::abi::kCpumodeUser));
  }
}
BENCHMARK(find_mapping);

void load_elf(benchmark::State& state) {
  std::size_t symbols = 0;
  for (auto _ : state) {
    auto file = format::open_input("/proc/self/exe");
    if (!file) return state.SkipWithError(file.error().what.c_str());
    auto elf = ElfFile::open(std::move(*file));
    if (!elf) return state.SkipWithError(elf.error().what.c_str());
    Demangler demangler;
    auto table = read_symbols(*elf, *elf, &demangler);
    if (!table) return state.SkipWithError(table.error().what.c_str());
    symbols = table->size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * symbols));
}
BENCHMARK(load_elf)->Unit(benchmark::kMillisecond);

void demangle_name(benchmark::State& state) {
  const std::string name = "_ZNSt8functionIFdRKN3geo5ShapeEEEC1IRZ4mainEUlS3_E_vEEOT_";
  for (auto _ : state) benchmark::DoNotOptimize(demangle(name));
}
BENCHMARK(demangle_name);

// This program's own code, which is compiled with -g: every 16th byte of it.
constexpr std::uint64_t kStep = 16;

std::vector<std::uint64_t> own_addresses() {
  std::vector<std::uint64_t> addresses;
  auto file = format::open_input("/proc/self/exe");
  const auto elf = file ? ElfFile::open(std::move(*file)) : Result<ElfFile>(file.error());
  if (!elf) return addresses;
  const auto first = elf->address_of("_init"), last = elf->address_of("_fini");
  if (!first || !last) return addresses;
  for (std::uint64_t at = first->value; at < last->value; at += kStep) addresses.push_back(at);
  return addresses;
}

void find_calls(benchmark::State& state) {
  const auto addresses = own_addresses();
  auto file = format::open_input("/proc/self/exe");
  auto lines = file ? DwarfLines::open(std::move(*file), "") : Result<DwarfLines>(file.error());
  if (!lines || addresses.empty()) {
    state.SkipWithError("this program has no DWARF: compile it with -g");
    return;
  }
  std::vector<Call> calls;
  std::size_t found = 0;
  for (auto _ : state) {
    for (const std::uint64_t address : addresses) {
      lines->find_calls({address}, {}, UseSymbolName::Outermost, calls);
      found += calls.size();
    }
  }
  state.counters["calls"] = static_cast<double>(found) / static_cast<double>(state.iterations());
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * addresses.size()));
}
BENCHMARK(find_calls)->Unit(benchmark::kMillisecond);

// The first lookup reads the unit that the address is in.
void open_and_find_first(benchmark::State& state) {
  const auto addresses = own_addresses();
  std::vector<Call> calls;
  for (auto _ : state) {
    auto file = format::open_input("/proc/self/exe");
    auto lines = file ? DwarfLines::open(std::move(*file), "") : Result<DwarfLines>(file.error());
    if (!lines || addresses.empty()) {
      state.SkipWithError("this program has no DWARF: compile it with -g");
      return;
    }
    lines->find_calls({addresses[addresses.size() / 2]}, {}, UseSymbolName::Outermost, calls);
  }
}
BENCHMARK(open_and_find_first)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tacho::symbolize
