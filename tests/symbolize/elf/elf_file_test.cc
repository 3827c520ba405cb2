#include "symbolize/elf/elf_file.h"

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

// Places in names.so; see tests/data/symbolize/names.s.
constexpr std::uint64_t kInit = 0x3f0, kPlt = 0x400, kText = 0x500;

Result<ElfFile> open(const std::string& name) {
  auto file = format::open_input(kData + "/" + name);
  if (!file) return std::move(file.error());
  return ElfFile::open(std::move(*file));
}

std::string_view name_at(SymbolTable& table, std::uint64_t offset) {
  const Symbol* const found = table.find_symbol(offset);
  return found ? found->name : "";
}

TEST(ElfFile, TellsItsBuildIdAlsoWhenOnlyDebugInformationIsLeft) {
  for (const char* name : {"names.so", "names-stripped.so", "names.debug"}) {
    auto elf = open(name);
    ASSERT_TRUE(elf) << name;
    EXPECT_EQ(elf->build_id().hex(), "0123456789abcdef0123456789abcdef01234567") << name;
  }
}

TEST(ElfFile, TellsWhatItHas) {
  auto full = open("names.so"), stripped = open("names-stripped.so"), debug = open("names.debug");
  ASSERT_TRUE(full && stripped && debug);
  EXPECT_TRUE(full->has_full_symbols() && full->has_dynamic_symbols());
  EXPECT_TRUE(!stripped->has_full_symbols() && stripped->has_dynamic_symbols());
  EXPECT_TRUE(debug->has_full_symbols() && !debug->has_dynamic_symbols());
  EXPECT_EQ(full->debuglink(), "");
  EXPECT_EQ(stripped->debuglink(), "names.debug");
}

TEST(ElfFile, RefusesWhatIsNotElf) {
  const auto elf = open("names.s");
  ASSERT_FALSE(elf);
  EXPECT_EQ(elf.error().what, "not an ELF file");
  EXPECT_FALSE(ElfFile::in_memory({}));
}

TEST(ReadSymbols, NamesAreChosenAsPerfChooses) {
  auto elf = open("names.so");
  ASSERT_TRUE(elf);
  Demangler demangler;
  auto table = read_symbols(*elf, *elf, &demangler, Labels::All);
  ASSERT_TRUE(table);
  // What perf 6.1 printed for one sample at each of these places.
  EXPECT_EQ(name_at(*table, kInit + 0x1f), "_init");
  EXPECT_EQ(name_at(*table, kPlt + 0x10), "write_it@plt");
  EXPECT_EQ(name_at(*table, kPlt + 0x20), "geo::open@plt");
  EXPECT_EQ(name_at(*table, kPlt + 0x30), "_init") << "perf: none; addr2line: _init";
  EXPECT_EQ(name_at(*table, kText + 0x00), "outer");
  EXPECT_EQ(name_at(*table, kText + 0x10), "inner") << "perf: outer, of overlapping symbols";
  EXPECT_EQ(name_at(*table, kText + 0x20), "label");
  EXPECT_EQ(name_at(*table, kText + 0x30), "label");
  EXPECT_EQ(name_at(*table, kText + 0x40), "global_name");
  EXPECT_EQ(name_at(*table, kText + 0x50), "short_c_longer");
  EXPECT_EQ(name_at(*table, kText + 0x60), "_ZN3geo6volumeEi");
  EXPECT_EQ(name_at(*table, kText + 0x7f), "calls");
  EXPECT_EQ(name_at(*table, kText + 0x80), "");
}

TEST(ReadSymbols, WithoutDemanglingTheMangledNamesAreCompared) {
  auto elf = open("names.so");
  ASSERT_TRUE(elf);
  auto table = read_symbols(*elf, *elf, nullptr);
  ASSERT_TRUE(table);
  EXPECT_EQ(name_at(*table, kPlt + 0x20), "_ZN3geo4openEv@plt");
  EXPECT_EQ(name_at(*table, kText + 0x50), "short_c_longer") << "an underscore counts more than length";
}

TEST(ReadSymbols, ALabelInAFunctionIsPartOfIt) {
  auto elf = open("names.so");
  ASSERT_TRUE(elf);
  auto table = read_symbols(*elf, *elf, nullptr);
  ASSERT_TRUE(table);
  EXPECT_EQ(name_at(*table, kText + 0x10), "inner") << "a function in another one";
  EXPECT_EQ(name_at(*table, kText + 0x20), "outer");
  EXPECT_EQ(name_at(*table, kText + 0x30), "outer");
  EXPECT_EQ(name_at(*table, kText + 0x40), "global_name");
}

TEST(ReadSymbols, AStrippedFileStillHasItsDynamicSymbols) {
  auto elf = open("names-stripped.so");
  ASSERT_TRUE(elf);
  auto table = read_symbols(*elf, *elf, nullptr);
  ASSERT_TRUE(table);
  EXPECT_EQ(name_at(*table, kText + 0x40), "global_name");
  EXPECT_EQ(name_at(*table, kText + 0x20), "outer") << "the label is gone";
}

TEST(ReadSymbols, ADebugFileNamesThePlacesOfTheFileThatRan) {
  auto stripped = open("names-stripped.so"), debug = open("names.debug");
  ASSERT_TRUE(stripped && debug);
  auto table = read_symbols(*debug, *stripped, nullptr);
  ASSERT_TRUE(table);
  EXPECT_EQ(name_at(*table, kText + 0x70), "calls");
  EXPECT_EQ(name_at(*table, kPlt + 0x10), "write_it@plt");
  EXPECT_EQ(name_at(*table, 0x1010), "object") << "the offset in the file, not the address 0x2010";
}

TEST(ReadSymbols, GivesTheSameFromMemory) {
  const auto image = format::read_file(kData + "/names.so");
  ASSERT_TRUE(image);
  auto elf = ElfFile::in_memory(*image);
  ASSERT_TRUE(elf);
  auto table = read_symbols(*elf, *elf, nullptr);
  ASSERT_TRUE(table);
  EXPECT_EQ(name_at(*table, kText + 0x70), "calls");
}

// However much of a file is missing, it gives names or an error.
TEST(ReadSymbols, SurvivesEveryCut) {
  const auto image = format::read_file(kData + "/names.so");
  ASSERT_TRUE(image);
  std::size_t opened = 0;
  for (std::size_t size = 0; size < image->size(); size += 8) {
    const std::vector<std::byte> cut(image->begin(), image->begin() + static_cast<std::ptrdiff_t>(size));
    auto elf = ElfFile::in_memory(cut);
    if (!elf) continue;
    ++opened;
    (void)elf->build_id();
    auto table = read_symbols(*elf, *elf, nullptr);
    EXPECT_FALSE(table) << "the section headers stand at the end, cut at " << size;
  }
  EXPECT_GT(opened, 0u);
}

}  // namespace
}  // namespace tacho::symbolize
