#include "format/records/build_id.h"

#include <gtest/gtest.h>

#include <array>

#include "format/base/byte_writer.h"

namespace tacho::format {
namespace {

ByteWriter gnu_note(std::uint32_t type, std::size_t size, std::uint8_t fill) {
  ByteWriter out;
  out.u32(4).u32(static_cast<std::uint32_t>(size)).u32(type).padded_text("GNU", 4);
  for (std::size_t i = 0; i < size; ++i) out.u8(fill);
  out.align(4);
  return out;
}

// A 64-bit ELF header with one program header that points at `notes`.
ByteWriter elf_with_notes(std::span<const std::byte> notes) {
  ByteWriter out;
  out.u32(0x464C457F).u8(2).u8(1).u8(1).zeros(9);
  out.u16(3).u16(62).u32(1).u64(0).u64(64).u64(0).u32(0).u16(64).u16(56).u16(1).u16(64).u16(0).u16(0);
  out.u32(4).u32(4).u64(120).u64(0).u64(0).u64(notes.size()).u64(notes.size()).u64(4);
  out.bytes(notes);
  return out;
}

TEST(BuildId, HexGoesBothWays) {
  const auto id = BuildId::from_hex("00ff10");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->size, 3);
  EXPECT_EQ(id->hex(), "00ff10");
  EXPECT_FALSE(BuildId::from_hex("0"));
  EXPECT_FALSE(BuildId::from_hex("zz"));
  EXPECT_FALSE(BuildId::from_hex(std::string(42, '0'))) << "longer than 20 bytes";
}

TEST(BuildId, IsFoundAfterOtherNotes) {
  ByteWriter notes = gnu_note(1, 16, 1);
  notes.bytes(gnu_note(3, 20, 0xab).view());
  const auto id = build_id_in_notes(notes.view());
  ASSERT_TRUE(id);
  EXPECT_EQ(id->hex(), std::string(40, ' ').replace(0, 40, "abababababababababababababababababababab"));
}

TEST(BuildId, ANoteLongerThanWhatIsThereIsNone) {
  ByteWriter notes = gnu_note(3, 20, 0xab);
  notes.patch<std::uint32_t>(4, 4000);
  EXPECT_FALSE(build_id_in_notes(notes.view()));
  notes.patch<std::uint32_t>(0, 0xffffffff);
  EXPECT_FALSE(build_id_in_notes(notes.view()));
}

TEST(BuildId, IsReadOutOfAnElfFile) {
  const ByteWriter note = gnu_note(3, 20, 0x11);
  const ByteWriter elf = elf_with_notes(note.view());
  const auto id = build_id_in_elf(elf.view());
  ASSERT_TRUE(id);
  EXPECT_EQ(id->hex(), "1111111111111111111111111111111111111111");
}

TEST(BuildId, OfACutElfFileIsNone) {
  const ByteWriter note = gnu_note(3, 20, 0x11);
  const ByteWriter elf = elf_with_notes(note.view());
  for (std::size_t size = 0; size < elf.size(); size += 4)
    EXPECT_FALSE(build_id_in_elf(elf.view().first(size))) << size;
}

TEST(BuildId, ZerosThatFillAFieldAreNoPartOfTheId) {
  const auto padded = [](std::size_t size, std::uint8_t last) {
    std::array<std::byte, 20> field{};
    for (std::size_t i = 0; i < size; ++i) field[i] = std::byte{static_cast<std::uint8_t>(i + 1)};
    if (size > 0) field[size - 1] = std::byte{last};
    return BuildId::from_padded(field);
  };
  EXPECT_EQ(padded(16, 0xff), *BuildId::from_hex("0102030405060708090a0b0c0d0e0fff"));
  EXPECT_EQ(padded(8, 0xff), *BuildId::from_hex("01020304050607ff"));
  EXPECT_EQ(padded(16, 0).size, 16) << "a zero at the end may be the id's own";
  EXPECT_EQ(padded(20, 0).size, 20);
  EXPECT_EQ(padded(20, 0xff).size, 20);
  EXPECT_TRUE(padded(0, 0).empty());
}

}  // namespace
}  // namespace tacho::format
