// Reading a capture of our own making, beside the floor: walking the same bytes with nothing but the size
// field. Run: build-bench/bin/format_bench; each figure is bytes and records a second.
#include <benchmark/benchmark.h>

#include <cstring>

#include "format/base/file.h"
#include "format/codec/compression.h"
#include "format/container/capture_reader.h"
#include "format/records/sample.h"
#include "tests/support/capture_builder.h"

namespace tacho::format {
namespace {

constexpr std::uint32_t kSamples = 400000;
constexpr std::size_t kDepth = 10;

test::CaptureBuilder build() {
  test::CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
  test::SampleFields sample;
  sample.id = 1;
  for (std::uint32_t i = 0; i < kSamples; ++i) {
    sample.pid = sample.tid = i % 50;
    sample.time = i * 1000 + (i % 7) * 10000;
    sample.callchain.assign(1, abi::kContextUser);
    for (std::size_t depth = 0; depth < kDepth; ++depth)
      sample.callchain.push_back(0x400000 + (i * 31 + depth) % 5000);
    builder.sample(sample);
    if (i % 20000 == 19999) builder.round();
  }
  return builder;
}

const test::TemporaryFile& capture(bool compressed) {
  static const test::TemporaryFile plain(build().file());
  static const test::TemporaryFile packed([] {
    auto source = build();
    std::vector<std::byte> records;
    auto compressor = RecordCompressor::create(1);
    if (!compressor || !compressor->compress(source.data().view(), records)) std::abort();
    test::CaptureBuilder builder;
    builder.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "cpu-clock", {1});
    builder.data().bytes(records);
    return builder.file();
  }());
  return compressed ? packed : plain;
}

void count(benchmark::State& state, std::uint64_t records, std::uint64_t bytes) {
  state.SetItemsProcessed(static_cast<std::int64_t>(records));
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

void BM_Floor(benchmark::State& state) {
  const auto bytes = read_file(capture(false).path());
  const std::uint64_t data = Cursor(Bytes(*bytes).subspan(40)).u64();
  std::uint64_t records = 0;
  std::uint64_t all = 0;
  for (auto _ : state) {
    std::uint64_t hash = 0;
    for (std::size_t at = data; at + 8 <= bytes->size();) {
      std::uint16_t size;
      std::memcpy(&size, bytes->data() + at + 6, sizeof size);
      if (size < 8 || at + size > bytes->size()) break;
      for (std::size_t word = at; word + 8 <= at + size; word += 8) {
        std::uint64_t value;
        std::memcpy(&value, bytes->data() + word, sizeof value);
        hash = hash * 31 + value;
      }
      ++records;
      all += size;
      at += size;
    }
    benchmark::DoNotOptimize(hash);
  }
  count(state, records, all);
}
BENCHMARK(BM_Floor)->Unit(benchmark::kMillisecond);

template <class Each>
void read_capture(benchmark::State& state, Each&& each) {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    Diagnostics diagnostics;
    auto reader = CaptureReader::open(capture(state.range(0) != 0).path(), diagnostics);
    while (const auto record = reader->next_record()) {
      each(*reader, *record);
      ++records;
      bytes += record->bytes.size();
    }
  }
  count(state, records, bytes);
}

void BM_Walk(benchmark::State& state) {
  read_capture(state,
               [](CaptureReader&, const RecordView& record) { benchmark::DoNotOptimize(record.type); });
}
BENCHMARK(BM_Walk)->ArgName("compressed")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_DecodeSamples(benchmark::State& state) {
  read_capture(state, [](CaptureReader& reader, const RecordView& record) {
    const auto event = reader.events().event_of(record);
    if (record.type != abi::kRecordSample || !event) return;
    const auto sample = parse_sample(record, reader.events()[*event].attr);
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < sample->callchain.size(); ++i) hash = hash * 31 + sample->callchain[i];
    benchmark::DoNotOptimize(hash);
  });
}
BENCHMARK(BM_DecodeSamples)->ArgName("compressed")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_TimeOrder(benchmark::State& state) {
  std::uint64_t records = 0;
  for (auto _ : state) {
    Diagnostics diagnostics;
    auto reader = CaptureReader::open(capture(false).path(), diagnostics);
    TimeOrder order;
    while (const auto record = reader->next_record()) {
      if (const auto time = record_time(*record, reader->events()[0].attr))
        order.push(*record, *time, reader->block());
      if (record->type == abi::kRecordFinishedRound) order.finished_round();
      while (order.pop()) ++records;
    }
    order.flush();
    while (order.pop()) ++records;
  }
  count(state, records, 0);
}
BENCHMARK(BM_TimeOrder)->Unit(benchmark::kMillisecond);

void BM_Compress(benchmark::State& state) {
  auto source = build();
  auto compressor = RecordCompressor::create(1);
  std::vector<std::byte> out;
  for (auto _ : state) {
    out.clear();
    if (!compressor->compress(source.data().view(), out)) std::abort();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * source.data().size()));
  state.counters["ratio"] = static_cast<double>(source.data().size()) / static_cast<double>(out.size());
}
BENCHMARK(BM_Compress)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tacho::format
