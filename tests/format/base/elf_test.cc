#include "format/base/elf.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "format/base/file.h"

namespace tacho::format {
namespace {

// This test program, and what is left of it when its bytes are wrong.
class Elf : public testing::Test {
 protected:
  void SetUp() override {
    auto file = read_file("/proc/self/exe");
    ASSERT_TRUE(file);
    file_ = std::move(*file);
  }
  // The file offset of a function by this name; 0: there is none.
  static std::uint64_t offset_of(const ElfView& elf, std::string_view name) {
    std::uint64_t address = 0;
    for (const ElfSection& section : elf.sections()) {
      if (section.type != SHT_SYMTAB && section.type != SHT_DYNSYM) continue;
      elf.each_symbol(section, [&](const ElfSymbol& symbol) {
        if (symbol.name == name && symbol.type() == STT_FUNC) address = symbol.value;
        return address != 0;
      });
    }
    return elf.offset_of(address).value_or(0);
  }

  std::vector<std::byte> file_;
};

TEST_F(Elf, SectionsSegmentsAndSymbolsAreThoseOfTheFile) {
  const auto elf = ElfView::parse(file_);
  ASSERT_TRUE(elf);
  EXPECT_TRUE(elf->header().is_64);
  EXPECT_EQ(elf->sections().size(), elf->header().section_count);
  EXPECT_EQ(elf->segments().size(), elf->header().segment_count);
  EXPECT_NE(offset_of(*elf, "main"), 0U);
  bool has_text = false;
  for (const ElfSection& section : elf->sections())
    has_text |= elf->name(section) == ".text" && elf->content(section).size() == section.size;
  EXPECT_TRUE(has_text);
}

TEST_F(Elf, CountsThatDoNotFitIntoTheHeaderAreInTheFirstSection) {
  const auto before = ElfView::parse(file_);
  ASSERT_TRUE(before);
  const ElfHeader header = before->header();
  const auto put = [this](std::uint64_t at, std::uint32_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i, value >>= 8)
      file_[static_cast<std::size_t>(at) + i] = static_cast<std::byte>(value);
  };
  put(offsetof(Elf64_Ehdr, e_shnum), 0, 2);
  put(offsetof(Elf64_Ehdr, e_shstrndx), SHN_XINDEX, 2);
  put(offsetof(Elf64_Ehdr, e_phnum), PN_XNUM, 2);
  put(header.sections_at + offsetof(Elf64_Shdr, sh_size), header.section_count, 4);
  put(header.sections_at + offsetof(Elf64_Shdr, sh_link), header.names, 4);
  put(header.sections_at + offsetof(Elf64_Shdr, sh_info), header.segment_count, 4);
  const auto elf = ElfView::parse(file_);
  ASSERT_TRUE(elf);
  EXPECT_EQ(elf->sections().size(), header.section_count);
  EXPECT_EQ(elf->segments().size(), header.segment_count);
  EXPECT_EQ(elf->name(elf->sections().back()), before->name(before->sections().back()));
  EXPECT_NE(offset_of(*elf, "main"), 0U);
  put(header.sections_at + offsetof(Elf64_Shdr, sh_type), SHT_PROGBITS, 4);
  EXPECT_TRUE(ElfView::parse(file_)->sections().empty()) << "its first section is no such entry";
}

TEST_F(Elf, ACutFileIsReadAsFarAsItGoes) {
  for (std::size_t size = 0; size < file_.size(); size += size < 4096 ? 1 : 65521) {
    const auto elf = ElfView::parse(Bytes(file_).first(size));
    EXPECT_EQ(bool(elf), size >= ElfHeader::kLongest) << size;
    if (!elf) continue;
    for (const ElfSection& section : elf->sections()) {
      const Bytes content = elf->content(section);
      EXPECT_TRUE(content.empty() || content.size() == section.size);
      elf->each_symbol(section, [](const ElfSymbol&) { return false; });
    }
  }
}

TEST_F(Elf, WhatIsNoElfFileIsNone) {
  file_[1] = std::byte{'F'};
  EXPECT_FALSE(ElfView::parse(file_));
  file_[1] = std::byte{'E'};
  file_[EI_CLASS] = std::byte{3};
  EXPECT_FALSE(ElfView::parse(file_));
}

TEST_F(Elf, OfTheOtherByteOrderNumbersAreTurned) {
  ElfHeader header = *ElfHeader::parse(Bytes(file_).first(ElfHeader::kLongest));
  header.order = std::endian::big;
  const std::vector<std::byte> table = {std::byte{0}, std::byte{0}, std::byte{0}, std::byte{PT_LOAD}};
  std::vector<std::byte> whole(header.segment_size);
  std::copy(table.begin(), table.end(), whole.begin());
  ASSERT_EQ(header.segments(whole).size(), 1U);
  EXPECT_EQ(header.segments(whole)[0].type, std::uint32_t{PT_LOAD});
}

}  // namespace
}  // namespace tacho::format
