// A capture twice: as it is, and with noise in misc of perf's own records, which perf 3.4 to 6.8 left
// uninitialized. Where the capture is sound, both read the same.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "format/container/capture_reader.h"
#include "fuzz/memory_file.h"

using namespace tacho;
using namespace tacho::format;

namespace {

struct Reading {
  bool is_sound = false;
  std::vector<std::string> records;           // without misc
  std::vector<std::uint64_t> offsets_of_own;  // in the file, of records whose misc says nothing
};

Reading read(const std::vector<std::uint8_t>& capture) {
  const fuzz::MemoryFile file(capture.data(), capture.size());
  Diagnostics diagnostics;
  ReadOptions options;
  options.inflate.record = std::size_t{1} << 20;
  Reading reading;
  auto reader = CaptureReader::open(file.path(), diagnostics, options);
  if (!reader) return reading;
  while (const auto record = reader->next_record()) {
    const auto* const bytes = reinterpret_cast<const char*>(record->bytes.data());
    reading.records.push_back(std::string(bytes, 4) + std::string(bytes + 6, record->bytes.size() - 6));
    // Of an inflated record it is the offset of another one.
    const bool is_there = record->offset <= capture.size() &&
                          capture.size() - record->offset >= kRecordHeaderSize &&
                          std::memcmp(capture.data() + record->offset, bytes, kRecordHeaderSize) == 0;
    if (is_there && record->type >= abi::kRecordUserStart && record->type != abi::kRecordBuildId)
      reading.offsets_of_own.push_back(record->offset);
  }
  reading.is_sound = !diagnostics.incomplete();
  return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> capture(data, data + size);
  const Reading reading = read(capture);
  if (!reading.is_sound) return 0;
  std::uint64_t state = size;
  for (const std::uint64_t offset : reading.offsets_of_own) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const auto noise = state >> 62 == 0 ? std::uint16_t{0x7f88} : static_cast<std::uint16_t>(state >> 33);
    std::memcpy(capture.data() + offset + 4, &noise, sizeof noise);
  }
  const Reading noisy = read(capture);
  if (noisy.is_sound && noisy.records == reading.records) return 0;
  std::fprintf(stderr, "%zu records, %zu with noise in misc\n", reading.records.size(), noisy.records.size());
  std::abort();
}
