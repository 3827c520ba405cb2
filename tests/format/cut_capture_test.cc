// Captures out of which a few bytes were cut, at every kind of place: what is lost is what the cut touched.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "format/base/file.h"
#include "format/codec/compression.h"
#include "format/container/capture_reader.h"
#include "format/container/file_head.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "tests/support/capture_builder.h"
#include "tests/support/foreign_capture.h"

namespace tacho::format {
namespace {

using test::CaptureBuilder;
using test::TemporaryFile;

constexpr std::uint64_t kMostCut = 12;  // bytes

// The samples of a capture as bytes, and how often each is there.
using Samples = std::map<std::string, int>;

Samples samples_of(const std::string& path, Diagnostics& diagnostics) {
  Samples samples;
  auto reader = CaptureReader::open(path, diagnostics);
  if (!reader) return samples;
  while (const auto record = reader->next_record())
    if (record->type == abi::kRecordSample) ++samples[std::string(as_text(record->bytes))];
  return samples;
}

int count_of(const Samples& samples) {
  int count = 0;
  for (const auto& [bytes, times] : samples) count += times;
  return count;
}

// How many of `samples` are not in `others`.
int missing_in(const Samples& others, const Samples& samples) {
  int count = 0;
  for (const auto& [bytes, times] : samples) {
    const auto found = others.find(bytes);
    count += std::max(0, times - (found == others.end() ? 0 : found->second));
  }
  return count;
}

// The most samples that one record of the data holds: 1, or those of the largest compressed one.
int most_in_a_record(const std::string& path) {
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(path, diagnostics);
  std::map<std::uint64_t, int> at;
  int most = 1;
  while (const auto record = reader->next_record())
    if (record->type == abi::kRecordSample) most = std::max(most, ++at[record->offset]);
  return most;
}

struct Cuts {
  int made = 0, lost = 0, most_lost = 0, invented = 0, unreported = 0;
};

// Cuts 1 to 12 bytes out of the data of the capture `file` at `places` places, and reads what is left.
Cuts cut(const std::vector<std::byte>& file, std::uint64_t from, std::uint64_t until, int places) {
  const TemporaryFile whole_file(file);
  Diagnostics sound;
  const Samples whole = samples_of(whole_file.path(), sound);
  EXPECT_FALSE(sound.incomplete());
  Cuts cuts;
  std::uint64_t state = 1;
  const auto random = [&](std::uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  for (int i = 0; i < places; ++i) {
    const auto size = static_cast<std::ptrdiff_t>(1 + random(kMostCut));
    const auto at = static_cast<std::ptrdiff_t>(from + random(until - from - kMostCut));
    std::vector<std::byte> rest = file;
    rest.erase(rest.begin() + at, rest.begin() + at + size);
    const TemporaryFile cut_file(rest);
    Diagnostics diagnostics;
    const Samples found = samples_of(cut_file.path(), diagnostics);
    const int lost = missing_in(found, whole);
    const int invented = missing_in(whole, found);
    ++cuts.made;
    cuts.lost += lost;
    cuts.most_lost = std::max(cuts.most_lost, lost);
    cuts.invented += invented;
    cuts.unreported += diagnostics.incomplete() ? 0 : 1;
    if (lost > 2 && std::getenv("TACHO_CUT_DEBUG") != nullptr)
      std::printf("%d lost: %d bytes at %d\n", lost, static_cast<int>(size), static_cast<int>(at));
    EXPECT_LE(invented, 1) << size << " bytes cut out at " << at;
  }
  return cuts;
}

// Two events; samples with call chains and payloads of many lengths, other records between them, rounds.
void add_records(CaptureBuilder& builder, ByteWriter& frames, bool is_compressed) {
  auto compressor = RecordCompressor::create(1);
  test::SampleFields sample;
  for (std::uint32_t i = 0; i < 300; ++i) {
    sample.id = i % 3 == 0 ? 9 : 7;
    sample.ip = 0xffffffff81000000 + 64 * i;
    sample.pid = 1000 + i % 5;
    sample.tid = sample.pid + i % 3;
    sample.time = 7'000'000'000'000 + 1000 * i;
    sample.cpu = i % 4;
    sample.callchain.assign(1 + i * 7 % 20, 0x7f0012345678 + i);
    sample.raw.assign(i % 3 == 0 ? 4 + i % 30 : 0, std::byte{static_cast<std::uint8_t>(i)});
    builder.sample(sample, sample.id == 9 ? 1 : 0);
    if (i % 10 == 3) builder.comm(sample.pid, sample.tid, "worker-" + std::to_string(i));
    if (i % 10 == 6) builder.mmap(sample.pid, 0x7f0000000000 + 4096 * i, 4096, 0, "/usr/lib/libsomething.so");
    if (i % 10 != 9) continue;
    if (is_compressed) {
      std::vector<std::byte> packed;
      ASSERT_TRUE(compressor->compress(builder.data().view(), packed));
      builder.data() = ByteWriter();
      frames.bytes(packed);
      write_mark(frames, abi::kRecordFinishedRound);
    } else {
      builder.round();
    }
  }
  if (is_compressed) builder.data() = std::move(frames);
}

CaptureBuilder capture(bool is_compressed) {
  CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock, abi::kSampleCallchain), "clock", {7});
  builder.event(test::software_event(abi::kBpfOutput, abi::kSampleCallchain | abi::kSampleRaw), "reads", {9});
  builder.text_feature(abi::kFeatureHostname, "builder").text_feature(abi::kFeatureArch, "x86_64");
  ByteWriter frames;
  add_records(builder, frames, is_compressed);
  return builder;
}

std::uint64_t data_offset(const std::vector<std::byte>& file) {
  return parse_file_head(Bytes(file).first(FileHead::kSize))->data.offset;
}
std::uint64_t data_end(const std::vector<std::byte>& file) {
  return data_offset(file) + parse_file_head(Bytes(file).first(FileHead::kSize))->data.size;
}

// After a power cut, what a file system had not written yet reads as zeros. The capture, of which the
// recorder closed nothing, has so many of them at `at`.
void write_with_zeros(const std::string& path, const std::vector<std::byte>& file, std::uint64_t at,
                      std::uint64_t zeros) {
  const std::uint64_t none = 0, size_at = 48;  // of the data
  const std::uint64_t end = data_end(file);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(at));
  std::filesystem::resize_file(path, at + zeros);  // nothing is written there
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(size_at));
  out.write(reinterpret_cast<const char*>(&none), sizeof none);
  out.seekp(static_cast<std::streamoff>(at + zeros));
  out.write(reinterpret_cast<const char*>(file.data()) + at, static_cast<std::streamsize>(end - at));
}

TEST(CutCapture, ZerosOfAnyLengthAreSteppedOver) {
  const std::vector<std::byte> file = capture(false).file();
  Diagnostics sound;
  const Samples whole = samples_of(TemporaryFile(file).path(), sound);
  const std::uint64_t middle = (data_offset(file) + data_end(file)) / 2;
  for (const std::uint64_t zeros : {8ULL, 100ULL, 4096ULL, 70001ULL, 1ULL << 20, (1ULL << 34) + 13}) {
    const TemporaryFile holed({});
    write_with_zeros(holed.path(), file, middle, zeros);
    Diagnostics diagnostics;
    const Samples found = samples_of(holed.path(), diagnostics);
    EXPECT_LE(missing_in(found, whole), 2) << zeros;
    EXPECT_EQ(missing_in(whole, found), 0) << zeros;
    EXPECT_TRUE(diagnostics.incomplete());
  }
}

// A record of the other byte order begins with zeros itself: none of them is taken for one that was lost,
// wherever the pieces end that are read at a time.
TEST(CutCapture, ZerosThatARecordBeginsWithAreNotSteppedOver) {
  const std::vector<std::byte> native = capture(false).file();
  const std::vector<std::byte> file = test::ForeignCapture::of(TemporaryFile(native).path(), native);
  ASSERT_FALSE(file.empty());
  Diagnostics sound;
  const Samples whole = samples_of(TemporaryFile(file).path(), sound);
  // Where the first record lies that ends before the middle: the zeros stand in front of it.
  const std::uint64_t start = data_offset(file);
  std::uint64_t at = start;
  for (const std::uint64_t middle = (start + data_end(file)) / 2; at < middle;)
    at += std::to_integer<std::uint64_t>(file[at + 6]) << 8 | std::to_integer<std::uint64_t>(file[at + 7]);
  constexpr std::uint64_t kPiece = 1 << 20;
  for (std::uint64_t lead = 0; lead < 12; ++lead) {
    std::vector<std::byte> holed(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(at));
    holed.resize(start + 3 * kPiece - lead);
    holed.insert(holed.end(), file.begin() + static_cast<std::ptrdiff_t>(at), file.end());
    const std::uint64_t none = 0;
    std::memcpy(holed.data() + 48, &none, sizeof none);  // the size of the data: nobody closed it
    Diagnostics diagnostics;
    const Samples found = samples_of(TemporaryFile(holed).path(), diagnostics);
    EXPECT_EQ(missing_in(found, whole), 0) << lead;
    EXPECT_TRUE(diagnostics.incomplete());
  }
}

TEST(CutCapture, APlainFileLosesTheRecordsThatTheCutTouchedAndANeighbour) {
  const auto file = capture(false).file();
  const Cuts cuts = cut(file, data_offset(file), data_end(file), 600);
  EXPECT_LE(cuts.most_lost, 2);
  EXPECT_EQ(cuts.unreported, 0);
  // A cut within a sample's payload or call chain may leave one that still adds up; not more than now and
  // then.
  EXPECT_LE(cuts.invented * 20, cuts.made);
}

TEST(CutCapture, ACompressedFileLosesTheFramesThatTheCutTouched) {
  const auto file = capture(true).file();
  const Cuts cuts = cut(file, data_offset(file), data_end(file), 300);
  EXPECT_LE(cuts.most_lost, 2 * 10);
  EXPECT_EQ(cuts.unreported, 0);
  EXPECT_EQ(cuts.invented, 0);
}

TEST(CutCapture, APipeLosesTheRecordsThatTheCutTouchedAndANeighbour) {
  const CaptureBuilder builder = capture(false);
  const auto pipe = builder.pipe();
  CaptureBuilder head;
  const std::uint64_t data_size = data_end(builder.file()) - data_offset(builder.file());
  const Cuts cuts = cut(pipe, pipe.size() - data_size, pipe.size(), 300);
  EXPECT_LE(cuts.most_lost, 2);
  EXPECT_EQ(cuts.unreported, 0);
}

TEST(CutCapture, TheHeaderSectionsAreFoundWhereTheyMovedTo) {
  const auto file = capture(false).file();
  for (std::ptrdiff_t size = 1; size <= 40; ++size) {
    std::vector<std::byte> rest = file;
    const auto at = rest.begin() + static_cast<std::ptrdiff_t>(data_offset(file)) + 1000;
    rest.erase(at, at + size);
    const TemporaryFile cut_file(rest);
    Diagnostics diagnostics;
    auto reader = CaptureReader::open(cut_file.path(), diagnostics);
    ASSERT_TRUE(reader) << reader.error().what;
    EXPECT_EQ(reader->features().environment.hostname, "builder") << size;
    EXPECT_EQ(reader->events()[1].name, "reads") << size;
    ASSERT_FALSE(diagnostics.findings().empty());
    EXPECT_EQ(diagnostics.findings()[0].kind, Damage::CutShort);
  }
}

TEST(CutCapture, ForeignRecordsCostNothingElse) {
  // {type, size}: of any length, of a number that perf or the kernel may give out one day, or never.
  const std::pair<std::uint32_t, std::uint16_t> foreign[] = {{200, 12}, {30, 12},   {30, 16}, {99, 8},
                                                             {200, 13}, {5000, 12}, {0, 24}};
  for (const auto& [type, size] : foreign) {
    CaptureBuilder builder;
    builder.event(test::software_event(abi::kCpuClock), "clock", {7});
    test::SampleFields sample;
    sample.id = 7;
    sample.pid = sample.tid = 3;
    for (std::uint32_t i = 0; i < 50; ++i) {
      sample.time = 1'000'000 + i;
      builder.sample(sample);
      if (i != 10 && i != 11 && i != 30) continue;
      builder.data().u32(type).u16(0).u16(size);
      for (std::uint16_t k = 8; k < size; ++k) builder.data().u8(0xa5);
    }
    for (const auto& bytes : {builder.file(), builder.pipe()}) {
      const TemporaryFile file(bytes);
      Diagnostics diagnostics;
      EXPECT_EQ(count_of(samples_of(file.path(), diagnostics)), 50) << type << ' ' << size;
      EXPECT_FALSE(diagnostics.findings().empty()) << type << ' ' << size;
    }
  }
}

TEST(CutCapture, TextAfterAPipesRecordsIsSaidAndNoDamage) {
  auto pipe = capture(false).pipe();
  const std::string said = "[ perf record: Woken up 1 times to write data ]\n";
  const auto text = std::as_bytes(std::span(said));
  pipe.insert(pipe.end(), text.begin(), text.end());
  const TemporaryFile file(pipe);
  Diagnostics diagnostics;
  EXPECT_EQ(count_of(samples_of(file.path(), diagnostics)), 300);
  EXPECT_FALSE(diagnostics.incomplete());
  ASSERT_EQ(diagnostics.findings().size(), 1u);
  EXPECT_EQ(diagnostics.findings()[0].kind, Damage::Note);
  EXPECT_NE(diagnostics.findings()[0].first.find("48 bytes of text"), std::string::npos);
}

// Every capture of a folder, cut at `places` places each.
void cut_all(const std::filesystem::path& folder, int places) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".data" || entry.file_size() > (1U << 20)) continue;
    const auto file = read_file(entry.path());
    ASSERT_TRUE(file);
    const auto head = parse_file_head(*file);
    Diagnostics sound;
    const int samples = head ? count_of(samples_of(entry.path(), sound)) : 0;
    if (samples == 0 || sound.incomplete()) continue;
    const std::uint64_t from = head->is_pipe ? file->size() / 2 : head->data.offset;
    const std::uint64_t until = head->is_pipe ? file->size() : head->data.offset + head->data.size;
    const int most = most_in_a_record(entry.path());
    if (until - from < 100) continue;
    const Cuts cuts = cut(*file, from, until, places);
    std::printf("%-24s %5d samples, %d cuts: %d lost, at most %d, %d invented, %d not reported\n",
                entry.path().filename().c_str(), samples, cuts.made, cuts.lost, cuts.most_lost, cuts.invented,
                cuts.unreported);
    // perf compresses a whole recording as one stream, of which nothing is readable after a gap.
    if (most > 1) continue;
    EXPECT_LE(cuts.most_lost, 2) << entry.path();
  }
}

TEST(CutCapture, PerfsCapturesLoseWhatTheCutTouched) { cut_all(TACHO_GOLDEN_CAPTURES, 60); }

TEST(CutCapture, CapturesOfOtherPeopleLoseWhatTheCutTouched) {
  const char* const folder = std::getenv("TACHO_CORPUS");
  if (folder == nullptr || !std::filesystem::is_directory(folder))
    GTEST_SKIP() << "needs TACHO_CORPUS, a folder of captures";
  cut_all(folder, 500);
}

}  // namespace
}  // namespace tacho::format
