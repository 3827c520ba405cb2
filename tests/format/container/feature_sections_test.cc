#include "format/container/feature_sections.h"

#include <gtest/gtest.h>

#include "format/records/perf_abi.h"

namespace tacho::format {
namespace {

std::vector<std::byte> counted(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

// The EVENT_UPDATE records in `records`.
std::vector<EventUpdateRecord> updates(Bytes records) {
  std::vector<EventUpdateRecord> list;
  while (records.size() >= kRecordHeaderSize) {
    Cursor header(records);
    RecordView record;
    record.type = header.u32();
    record.misc = header.u16();
    const std::size_t size = header.u16();
    EXPECT_EQ(size % 8, 0u);
    record.bytes = records.first(size);
    const auto parsed = parse_record(record, {});
    EXPECT_TRUE(parsed);
    list.push_back(std::get<EventUpdateRecord>(*parsed));
    records = records.subspan(size);
  }
  EXPECT_TRUE(records.empty());
  return list;
}

class SectionPiecesTest : public testing::TestWithParam<std::size_t> {};

TEST_P(SectionPiecesTest, ASectionOfAnySizeComesBack) {
  const auto section = counted(GetParam());
  ByteWriter out;
  write_section_pieces(out, 225, section);
  SectionPieces pieces;
  std::optional<SectionPieces::Section> whole;
  for (const EventUpdateRecord& update : updates(out.view())) {
    EXPECT_EQ(update.kind, kSectionPiece);
    EXPECT_EQ(update.id, 0u) << "perf must find an event for it";
    EXPECT_FALSE(whole) << "the last piece makes it whole";
    auto taken = pieces.add_piece(update, std::endian::native);
    ASSERT_TRUE(taken) << taken.error().what;
    whole = std::move(*taken);
  }
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->feature, 225u);
  EXPECT_EQ(whole->bytes, section);
  EXPECT_FALSE(pieces.is_open());
}

INSTANTIATE_TEST_SUITE_P(Sizes, SectionPiecesTest, testing::Values(0, 1, 8, 65024, 65025, 300000));

TEST(SectionPieces, AMissingPieceIsSaidAndTheNextSectionIsRead) {
  ByteWriter out;
  write_section_pieces(out, 225, counted(200000));
  auto list = updates(out.view());
  ASSERT_GE(list.size(), 4u);
  SectionPieces pieces;
  ASSERT_TRUE(pieces.add_piece(list[0], std::endian::native));
  EXPECT_TRUE(pieces.is_open());
  EXPECT_FALSE(pieces.add_piece(list[2], std::endian::native));
  ByteWriter small;
  write_section_pieces(small, 226, counted(3));
  const auto next = pieces.add_piece(updates(small.view())[0], std::endian::native);
  ASSERT_TRUE(next && *next);
  EXPECT_EQ((*next)->bytes, counted(3));
}

TEST(SectionPieces, ASizeThatCannotBeTrueTakesNoMemory) {
  ByteWriter body;
  body.u32(225).u32(0).u64(~std::uint64_t{0}).u64(0);
  EventUpdateRecord update;
  update.kind = kSectionPiece;
  update.data = body.view();
  SectionPieces pieces;
  EXPECT_FALSE(pieces.add_piece(update, std::endian::native));
  update.data = body.view().first(12);
  EXPECT_FALSE(pieces.add_piece(update, std::endian::native));
}

}  // namespace
}  // namespace tacho::format
