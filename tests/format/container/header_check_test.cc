#include "format/container/header_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "format/base/byte_writer.h"
#include "format/container/capture_reader.h"
#include "tests/support/capture_builder.h"

namespace tacho::format {
namespace {

using test::CaptureBuilder;
using test::TemporaryFile;

CaptureBuilder capture() {
  CaptureBuilder builder;
  builder.event(test::software_event(abi::kCpuClock), "clock", {7, 8});
  builder.text_feature(abi::kFeatureHostname, "builder").text_feature(abi::kFeatureArch, "x86_64");
  builder.comm(1, 1, "init");
  return builder;
}

// What is found in the capture after its u64 at `offset` was changed by `more`.
Diagnostics after_change(std::size_t offset, std::uint64_t more) {
  auto bytes = capture().file();
  const std::uint64_t value = Cursor(Bytes(bytes).subspan(offset)).u64() + more;
  ByteWriter changed;
  changed.u64(value);
  std::ranges::copy(changed.view(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  const TemporaryFile file(bytes);
  Diagnostics diagnostics;
  auto reader = CaptureReader::open(file.path(), diagnostics);
  EXPECT_TRUE(reader) << (reader ? "" : reader.error().what);
  while (reader && reader->next_record()) continue;
  return diagnostics;
}

std::size_t word_at(std::size_t offset) {
  const auto bytes = capture().file();
  return static_cast<std::size_t>(Cursor(Bytes(bytes).subspan(offset)).u64());
}
std::size_t attrs_offset() { return word_at(24); }
std::size_t table_offset() { return word_at(40) + word_at(48); }

TEST(HeaderCheck, ASoundCaptureHasNothingToTell) { EXPECT_TRUE(after_change(0, 0).findings().empty()); }

TEST(HeaderCheck, EverySectionsPlaceIsHeldByItsNeighbours) {
  for (std::size_t entry = 0; entry < 3; ++entry) {
    for (const std::uint64_t more : {std::uint64_t{8}, ~std::uint64_t{7}, std::uint64_t{40}}) {
      EXPECT_TRUE(after_change(table_offset() + 16 * entry, more).incomplete()) << entry << ' ' << more;
      EXPECT_TRUE(after_change(table_offset() + 16 * entry + 8, more).incomplete()) << entry << ' ' << more;
    }
  }
}

TEST(HeaderCheck, AFeatureBitTooManyOrTooFewIsTold) {
  for (const std::uint64_t bit : {2, 5, 30}) EXPECT_TRUE(after_change(72, 1ULL << bit).incomplete()) << bit;
  EXPECT_TRUE(after_change(80, 1).incomplete());
  EXPECT_TRUE(after_change(72, -(1ULL << abi::kFeatureArch)).incomplete());
  EXPECT_TRUE(after_change(72, -word_at(72)).incomplete()) << "no feature at all, but their bytes are there";
}

TEST(HeaderCheck, AnAttributeThatItsDescriptionDoesNotRepeatIsTold) {
  for (const std::size_t field : {8, 16, 24, 32, 40, 56, 64})
    EXPECT_TRUE(after_change(attrs_offset() + field, 1).incomplete()) << field;
}

TEST(HeaderCheck, EventIdsThatCannotBeThoseOfTheEventAreTold) {
  const std::size_t ids = attrs_offset() + kCompatibleAttrSize;
  EXPECT_TRUE(after_change(ids, 8).incomplete());
  EXPECT_TRUE(after_change(ids, -word_at(ids)).incomplete());
  EXPECT_TRUE(after_change(ids + 8, 8).incomplete());
  EXPECT_TRUE(after_change(ids + 8, -8).incomplete());
  EXPECT_TRUE(after_change(ids + 8, -1).incomplete());
}

TEST(HeaderCheck, AnAttributesOddSizeIsTold) {
  const std::uint64_t one_less_in_the_upper_half = ~std::uint64_t{0} << 32;
  EXPECT_TRUE(after_change(attrs_offset(), one_less_in_the_upper_half).incomplete());
}

TEST(HeaderCheck, AnAttributeSmallerThanItsRoomAndItsDescriptionIsTold) {
  EXPECT_TRUE(after_change(attrs_offset(), -(std::uint64_t{16} << 32)).incomplete());
  EXPECT_TRUE(after_change(attrs_offset(), -(std::uint64_t{kCompatibleAttrSize} << 32)).incomplete())
      << "0: 64";
}

TEST(HeaderCheck, AnUnknownSampleFieldIsTold) {
  EventAttr attr = test::software_event(abi::kCpuClock);
  Diagnostics known, unknown, values;
  check_known(attr, 0, known);
  EXPECT_TRUE(known.findings().empty());
  attr.sample_type |= 1ULL << 40;
  check_known(attr, 0, unknown);
  EXPECT_TRUE(unknown.incomplete());
  attr.sample_type = 0;
  attr.read_format = 1ULL << 9;
  check_known(attr, 0, values);
  EXPECT_TRUE(values.incomplete());
}

TEST(HeaderCheck, ADamagedTableOfAttributesIsTold) { EXPECT_TRUE(after_change(32, 8).incomplete()); }

TEST(HeaderCheck, AHeaderOfAnotherSizeIsRefused) {
  for (const std::uint64_t more : {std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{8}}) {
    auto bytes = capture().file();
    bytes[8] = std::byte{static_cast<std::uint8_t>(104 + more)};
    EXPECT_FALSE(parse_file_head(bytes)) << more;
  }
}

}  // namespace
}  // namespace tacho::format
