// What reading a whole capture costs, as ratios to a floor: a loop that does nothing but find where each
// record ends and hash its words.
//   whole_file FILE...            walking, and decoding every field of every sample, against the floor
//   whole_file --inflate A B      two compressed captures of the same data: B's wall time against A's
// CPU time for the first, wall time for the second; medians of nine rounds, each measuring everything once,
// so that what else the machine does falls on all alike.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/file.h"
#include "format/container/capture_reader.h"
#include "format/records/sample.h"

namespace tacho::format {
namespace {

constexpr int kRounds = 9;

struct Totals {
  std::uint64_t records = 0, bytes = 0, hash = 0;
};

std::uint64_t hash_words(Bytes bytes, std::uint64_t hash) {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    hash = hash * 31 + word;
  }
  return hash;
}

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "whole_file: %s\n", what.c_str());
  std::exit(2);
}

// The floor: no byte order, no damage, no compression, nothing kept; the same size of reads as CaptureReader.
Totals walk_floor(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<std::uint64_t, 13> head{};
  if (::read(file.get(), head.data(), sizeof head) != sizeof head) give_up(path + ": cannot be read");
  const bool is_pipe = head[1] == 16;
  std::uint64_t left = is_pipe ? ~std::uint64_t{0} : head[6];
  ::lseek(file.get(), static_cast<off_t>(is_pipe ? 16 : head[5]), SEEK_SET);
  static std::vector<std::byte> buffer(std::size_t{1} << 20);
  Totals totals;
  std::size_t kept = 0;  // bytes of an unfinished record at the buffer's start
  for (;;) {
    const std::size_t room = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size() - kept, left));
    const ssize_t count = ::read(file.get(), buffer.data() + kept, room);
    if (count <= 0) return totals;
    left -= static_cast<std::uint64_t>(count);
    const std::size_t end = kept + static_cast<std::size_t>(count);
    std::size_t at = 0;
    while (at + 8 <= end) {
      std::uint16_t size;
      std::memcpy(&size, buffer.data() + at + 6, sizeof size);
      if (size < 8 || at + size > end) break;
      totals.hash = hash_words(Bytes(buffer).subspan(at, size), totals.hash);
      ++totals.records;
      totals.bytes += size;
      at += size;
    }
    kept = end - at;
    std::memmove(buffer.data(), buffer.data() + at, kept);
  }
}

template <class Each>
Totals read_capture(const std::string& path, Each&& each) {
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(path, diagnostics);
  if (!reader) give_up(reader.error().what);
  Totals totals;
  while (const auto record = reader->next_record()) {
    ++totals.records;
    totals.bytes += record->bytes.size();
    each(*reader, *record, totals.hash);
  }
  return totals;
}

Totals count_only(const std::string& path) {
  return read_capture(path, [](const CaptureReader&, const RecordView&, std::uint64_t&) {});
}

Totals walk(const std::string& path) {
  return read_capture(path, [](const CaptureReader&, const RecordView& record, std::uint64_t& hash) {
    hash = hash_words(record.bytes, hash);
  });
}

std::uint64_t hash_sample(const Sample& sample, std::uint64_t hash) {
  const std::uint64_t fixed[] = {sample.identifier,
                                 sample.ip,
                                 sample.pid,
                                 sample.tid,
                                 sample.time,
                                 sample.addr,
                                 sample.stream_id,
                                 sample.cpu,
                                 sample.period,
                                 sample.read.time_enabled,
                                 sample.branch_hw_index,
                                 sample.weight,
                                 sample.data_source,
                                 sample.transaction,
                                 sample.phys_addr,
                                 sample.cgroup,
                                 sample.data_page_size,
                                 sample.code_page_size};
  for (const std::uint64_t field : fixed) hash ^= field;
  for (std::size_t i = 0; i < sample.read.size(); ++i) hash ^= sample.read.entry(i).value;
  for (std::size_t i = 0; i < sample.branch_count(); ++i) hash ^= sample.branch(i).from;
  for (const U64Array* words :
       {&sample.callchain, &sample.user_registers.values, &sample.interrupt_registers.values})
    for (std::size_t i = 0; i < words->size(); ++i) hash = hash * 31 + (*words)[i];
  for (const Bytes bytes : {sample.raw, sample.user_stack, sample.aux}) hash = hash_words(bytes, hash);
  return hash;
}

Totals decode(const std::string& path) {
  return read_capture(path, [](const CaptureReader& reader, const RecordView& record, std::uint64_t& hash) {
    const auto event = reader.events().event_of(record);
    if (record.type != abi::kRecordSample || !event) return;
    if (const auto sample = parse_sample(record, reader.events()[*event].attr))
      hash = hash_sample(*sample, hash);
  });
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Run>
double measure(double (*clock)(), Run&& run) {
  const double start = clock();
  const Totals totals = run();
  const double took = clock() - start;
  if (totals.records == 0) give_up("no records were read");
  return took;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double megabytes_at_most() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void compare_with_floor(const std::string& path) {
  std::vector<double> floors, walks, decodes, walk_ratios, decode_ratios;
  const Totals all = walk_floor(path);
  for (int round = 0; round < kRounds; ++round) {
    floors.push_back(measure(cpu_seconds, [&] { return walk_floor(path); }));
    walks.push_back(measure(cpu_seconds, [&] { return walk(path); }));
    decodes.push_back(measure(cpu_seconds, [&] { return decode(path); }));
    walk_ratios.push_back(walks.back() / floors.back());
    decode_ratios.push_back(decodes.back() / floors.back());
  }
  std::printf(
      "%s: %.1f MB, %.3f M records: floor %.1f ms, walk %.1f ms (%.2f x), every field %.1f ms (%.2f x), "
      "peak %.0f MB\n",
      path.c_str(), static_cast<double>(all.bytes) / 1e6, static_cast<double>(all.records) / 1e6,
      median(floors) * 1e3, median(walks) * 1e3, median(walk_ratios), median(decodes) * 1e3,
      median(decode_ratios), megabytes_at_most());
}

void compare_inflating(const std::string& one, const std::string& other, Totals (*read)(const std::string&),
                       const char* what) {
  std::vector<double> ones, others, ratios;
  for (int round = 0; round < kRounds; ++round) {
    ones.push_back(measure(wall_seconds, [&] { return read(one); }));
    others.push_back(measure(wall_seconds, [&] { return read(other); }));
    ratios.push_back(ones.back() / others.back());
  }
  std::printf("%s: A %.1f ms, B %.1f ms, %.2f x faster\n", what, median(ones) * 1e3, median(others) * 1e3,
              median(ratios));
}

}  // namespace
}  // namespace tacho::format

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.size() == 3 && arguments[0] == "--inflate") {
    tacho::format::compare_inflating(arguments[1], arguments[2], tacho::format::count_only,
                                     "inflated, records counted");
    tacho::format::compare_inflating(arguments[1], arguments[2], tacho::format::walk,
                                     "inflated, every word hashed");
    return 0;
  }
  if (arguments.empty() || arguments[0].starts_with("-")) {
    std::fputs("usage: whole_file FILE... | whole_file --inflate A B\n", stderr);
    return 1;
  }
  for (const std::string& path : arguments) tacho::format::compare_with_floor(path);
  return 0;
}
