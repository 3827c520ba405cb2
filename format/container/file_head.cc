#include "format/container/file_head.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "format/base/file.h"

namespace tacho::format {

namespace {

constexpr std::string_view kEarlyMagic = "TACHOHD1";

void set_features(const std::array<std::uint64_t, 4>& words, FileHead& head) {
  for (std::size_t bit = 0; bit < abi::kFeatureCount; ++bit)
    head.features[bit] = (words[bit / 64] >> bit % 64 & 1) != 0;
}

// The bitmap is an array of the writer's longs. In the other byte order it is read as u64, which leaves the
// halves of each u64 exchanged if the writer was a 32-bit machine. They are put right if HOSTNAME, which
// every perf since Linux 3.2 sets, is set only then; or if all bits are in the upper half: older perfs have
// bits below 32 only.
void read_features(Cursor& in, FileHead& head) {
  std::array<std::uint64_t, 4> words{};
  for (std::uint64_t& word : words) word = in.u64();
  set_features(words, head);
  if (head.order == std::endian::native || head.features[abi::kFeatureHostname]) return;
  const bool is_high_only = words[0] != 0 && static_cast<std::uint32_t>(words[0]) == 0;
  for (std::uint64_t& word : words) word = std::rotl(word, 32);
  std::bitset<abi::kFeatureCount> as_u64 = head.features;
  set_features(words, head);
  if (!head.features[abi::kFeatureHostname] && !is_high_only) head.features = as_u64;
}

// The byte order of a file of version 1, by the size of its header.
std::endian order_of_version_1(Bytes start) {
  constexpr std::uint64_t kSizes[] = {FileHead::kSize, FileHead::kSizeWithoutFeatures, FileHead::kPipeSize};
  const std::uint64_t size = Cursor(start.subspan(std::min<std::size_t>(8, start.size()))).u64();
  const bool is_swapped = std::ranges::find(kSizes, Cursor::swapped(size)) != std::end(kSizes);
  constexpr bool kIsLittle = std::endian::native == std::endian::little;
  return is_swapped == kIsLittle ? std::endian::big : std::endian::little;
}

// Archive and compression formats, to name them in the error.
struct PackingRow {
  std::string_view name;
  std::size_t at;  // in the file, bytes
  std::string_view magic;
  std::string_view what_to_do;
};
constexpr PackingRow kPackings[] = {
    {"gzip", 0, "\x1f\x8b", "unpack it with gzip -d"},
    {"zstd", 0, "\x28\xb5\x2f\xfd", "unpack it with zstd -d"},
    {"xz", 0, std::string_view("\xfd\x37zXZ\0", 6), "unpack it with xz -d"},
    {"bzip2", 0, "BZh", "unpack it with bzip2 -d; tacho pack --from reads the archives of perf archive"},
    {"lz4", 0, "\x04\x22\x4d\x18", "unpack it with lz4 -d"},
    {"zip", 0, "PK\x03\x04", "unpack it with unzip"},
    {"tar", 257, "ustar", "unpack it with tar -xf and name the capture in it"},
};

Error no_capture(Bytes start) {
  for (const PackingRow& row : kPackings)
    if (as_text(start.subspan(std::min(row.at, start.size()))).starts_with(row.magic))
      return Error{"is a " + std::string(row.name) + " file, not a capture: " + std::string(row.what_to_do)};
  return Error{
      "is not perf.data: it does not start with PERFILE2; name a file that tacho record or perf record "
      "wrote"};
}

bool is_version_1(std::uint64_t magic) {
  return magic == abi::kMagicVersion1 || magic == Cursor::swapped(abi::kMagicVersion1);
}

}  // namespace

bool is_capture_magic(std::uint64_t magic) {
  return magic == abi::kMagic || magic == abi::kMagicSwapped || is_version_1(magic);
}

bool is_capture_file(const std::string& path) {
  const auto file = open_input(path);
  if (!file) return false;
  const auto start = read_at(file->get(), 0, sizeof(std::uint64_t));
  return start && start->size() == sizeof(std::uint64_t) && is_capture_magic(Cursor(*start).u64());
}

Result<FileHead> parse_file_head(Bytes start) {
  if (start.empty()) return Error{"is empty"};
  const std::uint64_t magic = Cursor(start).u64();
  FileHead head;
  if (is_version_1(magic)) {
    head.order = order_of_version_1(start);
  } else if (magic == abi::kMagicSwapped) {
    head.order = std::endian::native == std::endian::little ? std::endian::big : std::endian::little;
  } else if (magic != abi::kMagic) {
    return no_capture(start);
  }
  Cursor in(start.subspan(8), head.order);
  const std::uint64_t size = in.u64();
  const auto cut_short = [&] {
    return Error{"is cut short: its header ends at byte " + std::to_string(start.size()) +
                 "; copy or record it again"};
  };
  if (in.failed()) return cut_short();
  if (size == FileHead::kPipeSize) {
    head.is_pipe = true;
    return head;
  }
  if (size != FileHead::kSize && size != FileHead::kSizeWithoutFeatures)
    return Error{"has a header of " + std::to_string(size) +
                 " bytes, 104 were expected (72 in the oldest files, 16 in a pipe)"};
  head.attr_size = in.u64();
  head.attrs = {in.u64(), in.u64()};
  head.data = {in.u64(), in.u64()};
  head.event_types = {in.u64(), in.u64()};
  if (in.failed() || start.size() < size) return cut_short();
  if (size == FileHead::kSize) read_features(in, head);
  return head;
}

void write_file_head(ByteWriter& out, const FileHead& head) {
  out.u64(abi::kMagic).u64(FileHead::kSize).u64(head.attr_size);
  out.u64(head.attrs.offset).u64(head.attrs.size).u64(head.data.offset).u64(head.data.size).u64(0).u64(0);
  for (std::size_t word = 0; word < abi::kFeatureCount / 64; ++word) {
    std::uint64_t bits = 0;
    for (std::size_t bit = 0; bit < 64; ++bit) bits |= std::uint64_t{head.features[word * 64 + bit]} << bit;
    out.u64(bits);
  }
}

std::optional<EarlyTable> parse_early_trailer(Bytes trailer, std::endian order) {
  Cursor in(trailer, order);
  EarlyTable table;
  table.offset = in.u64();
  table.entries = in.u32();
  table.is_closed = in.u32() == 1;
  in.u64();
  if (in.text(kEarlyMagic.size()) != kEarlyMagic || in.failed()) return std::nullopt;
  return table;
}

std::vector<FeatureSection> parse_early_entries(Bytes entries, std::endian order) {
  std::vector<FeatureSection> sections;
  Cursor in(entries, order);
  while (in.left() >= EarlyTable::kEntrySize) {
    FeatureSection section;
    section.feature = static_cast<std::uint32_t>(in.u64());
    section.place.offset = in.u64();
    section.place.size = in.u64();
    if (section.feature < abi::kFeatureCount && section.place.size != 0) sections.push_back(section);
  }
  return sections;
}

void write_early_table(ByteWriter& out, const std::vector<FeatureSection>& sections,
                       std::uint64_t table_offset) {
  for (const FeatureSection& section : sections)
    out.u64(section.feature).u64(section.place.offset).u64(section.place.size);
  out.u64(table_offset).u32(static_cast<std::uint32_t>(sections.size())).u32(0).u64(0);
  out.bytes(std::as_bytes(std::span(kEarlyMagic)));
}

}  // namespace tacho::format
