// Single rows, beside those of whole tables.
#include "unwind/row_finder.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "tests/unwind/cfi_image.h"
#include "unwind/row_table.h"

namespace tacho::unwind {
namespace {

using test::Function;
using test::Headers;
using test::kBase;
using test::Search;

std::string text_of(const Row& row) {
  return std::to_string(row.kind) + " " + std::to_string(row.cfa) + " " + std::to_string(row.rbp);
}

ElfImage image_of(const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file));
  auto image = ElfImage::in_memory({bytes.begin(), bytes.end()});
  EXPECT_TRUE(image);
  return std::move(*image);
}

const std::vector<Function>& functions() {
  static const std::vector<Function> made{
      {.start = 0x1000, .size = 0x40, .program = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6}},
      {.start = 0x1080, .size = 0x20, .program = {}},
      {.start = 0x10c0, .size = 0x20, .program = {0x07, 16}}};
  return made;
}

TEST(RowFinder, RowsAreThoseOfTheTable) {
  for (const Search search : {Search::Table, Search::Index}) {
    for (const Headers headers : {Headers::Sections, Headers::SegmentsOnly}) {
      if (search == Search::Index && headers == Headers::SegmentsOnly) continue;  // nothing leads to it
      const ElfImage image = image_of(test::elf_image(functions(), search, headers));
      auto finder = RowFinder::create(image);
      ASSERT_TRUE(finder) << finder.error().what;
      const auto table = row_table_of(image);
      ASSERT_TRUE(table);
      ASSERT_FALSE(table->rows.empty());
      for (std::uint64_t offset = 0x0ff0; offset < 0x1100; ++offset) {
        const Row* const row = table->find_row(kBase + offset);
        const std::string wanted = row == nullptr ? "21 0 0" : text_of(*row);
        EXPECT_EQ(text_of(finder->row_at(kBase + offset).row), wanted) << offset;
        EXPECT_EQ(text_of(finder->row_at_offset(offset).row), wanted) << offset;
      }
    }
  }
}

TEST(RowFinder, RowsOfDebugFrameAreThoseOfTheTable) {
  const std::vector<Function> more{{.start = 0, .size = 0x2000, .program = {}},  // left out by the linker
                                   {.start = 0x1040, .size = 0x20, .program = {0x41, 0x0e, 32}},
                                   {.start = 0x1080, .size = 0x20, .program = {0x41, 0x0e, 40}},
                                   {.start = 0x1100, .size = 0x20, .program = {0x41, 0x0e, 48}}};
  const test::DebugFrame debug{test::debug_frame(more)};
  const ElfImage separate =
      image_of(test::elf_image({}, Search::Table, Headers::Sections, {}, EM_X86_64, debug));
  for (const std::vector<Function>& in_eh_frame : {functions(), std::vector<Function>()}) {
    const ElfImage own =
        image_of(test::elf_image(in_eh_frame, Search::Table, Headers::Sections, {}, EM_X86_64, debug));
    const ElfImage stripped = image_of(test::elf_image(in_eh_frame));
    for (const auto& [image, beside] :
         {std::pair(&own, static_cast<const ElfImage*>(nullptr)), {&stripped, &separate}}) {
      auto finder = RowFinder::create(*image, {}, beside);
      ASSERT_TRUE(finder) << finder.error().what;
      const auto table = row_table_of(*image, {}, beside);
      ASSERT_TRUE(table);
      EXPECT_EQ(finder->row_at(kBase + 0x1050).row.cfa, 4);
      for (std::uint64_t offset = 0x0ff0; offset < 0x1140; ++offset) {
        const Row* const row = table->find_row(kBase + offset);
        EXPECT_EQ(text_of(finder->row_at(kBase + offset).row), row == nullptr ? "21 0 0" : text_of(*row))
            << offset;
      }
    }
  }
}

// sframe.so has both sections (tests/data/README.md); here its .eh_frame is not to be found.
TEST(RowFinder, RowsOfSframeAloneAreThoseOfItsTable) {
  const auto bytes = format::read_file(std::string(TACHO_TEST_DATA) + "/sframe.so");
  ASSERT_TRUE(bytes);
  std::string file(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  file[file.find(".eh_frame") + 1] = 'x';  // its name
  const ElfImage image = image_of(file);
  ASSERT_FALSE(image.section(".eh_frame"));
  auto finder = RowFinder::create(image);
  ASSERT_TRUE(finder) << finder.error().what;
  const auto table = row_table_of(image);
  ASSERT_TRUE(table);
  ASSERT_GT(table->rows.size(), 10u);
  for (std::uint64_t pc = table->base - 16; pc < table->base + table->rows.back().pc + 16; ++pc) {
    const Row* const row = table->find_row(pc);
    EXPECT_EQ(text_of(finder->row_at(pc).row), row == nullptr ? "21 0 0" : text_of(*row)) << pc;
  }
  EXPECT_GE(finder->bytes(), table->rows.size() * sizeof(Row));
  EXPECT_FALSE(RowFinder::create(image, [] { return true; })) << "it takes too long";
}

// Of this test program: at the begin of each row of its table, and right before.
TEST(RowFinder, RowsOfARealProgramAreThoseOfItsTable) {
  auto opened = format::open_input("/proc/self/exe");
  ASSERT_TRUE(opened);
  const auto image = ElfImage::open(std::move(*opened));
  ASSERT_TRUE(image);
  auto finder = RowFinder::create(*image);
  ASSERT_TRUE(finder);
  const auto table = row_table_of(*image);
  ASSERT_TRUE(table);
  ASSERT_GT(table->rows.size(), 1000u);
  std::size_t different = 0;
  for (const Row& row : table->rows) {
    for (const std::uint64_t address : {table->base + row.pc, table->base + row.pc - 1}) {
      const Row* const wanted = table->find_row(address);
      if (wanted != nullptr && text_of(finder->row_at(address).row) != text_of(*wanted)) ++different;
    }
  }
  EXPECT_EQ(different, 0u);
}

TEST(RowFinder, WhereNothingDescribesTheEntryNobodyCalledIt) {
  std::string file = test::elf_image(functions());
  constexpr std::size_t kEntryField = 24;
  const std::uint64_t entry = kBase + 0x1050;
  std::memcpy(file.data() + kEntryField, &entry, sizeof entry);
  auto finder = RowFinder::create(image_of(file));
  ASSERT_TRUE(finder);
  EXPECT_EQ(finder->row_at(entry).row.kind, TACHO_UNWIND_END);
  EXPECT_EQ(finder->row_at(entry + kEntryBytes).row.kind, finder->row_at(kBase + 0x1090).row.kind);
  EXPECT_EQ(finder->row_at(entry - 1).row.kind, TACHO_UNWIND_NOTHING);
}

// Every word of the index overwritten: answers may be wrong, and are never more than that.
TEST(RowFinder, ADamagedIndexIsSurvived) {
  const std::string sound = test::elf_image(functions());
  for (std::size_t at = test::kHeader; at < test::kHeader + 12 + 8 * functions().size(); ++at) {
    for (const char value : {'\0', '\x7f', '\x80', '\xff'}) {
      std::string file = sound;
      file[at] = value;
      auto finder = RowFinder::create(image_of(file));
      if (!finder) continue;
      for (std::uint64_t offset = 0x1000; offset < 0x1100; offset += 7)
        EXPECT_LE(finder->row_at(kBase + offset).row.kind, TACHO_UNWIND_OTHER);
    }
  }
}

TEST(RowFinder, RowsBeforeDamagedRulesAreKnown) {
  const test::Code program{0x41, 0x0e, 16, 0x44, 0x3f, 0x3f};  // nothing is called 0x3f
  auto finder =
      RowFinder::create(image_of(test::elf_image({{.start = 0x1000, .size = 0x40, .program = program}})));
  ASSERT_TRUE(finder);
  EXPECT_EQ(finder->row_at(kBase + 0x1000).row.cfa, 1);
  EXPECT_EQ(finder->row_at(kBase + 0x1002).row.cfa, 2);
  EXPECT_EQ(finder->row_at(kBase + 0x1010).row.kind, TACHO_UNWIND_OTHER);
}

TEST(RowFinder, AListThatTakesTooLongIsGivenUp) {
  const auto stop = [] { return true; };
  EXPECT_FALSE(RowFinder::create(image_of(test::elf_image(functions(), Search::Index)), stop));
  EXPECT_TRUE(RowFinder::create(image_of(test::elf_image(functions(), Search::Table)), stop)) << "no list";
}

TEST(RowFinder, ItCountsWhatItMadeOfAFile) {
  auto finder = RowFinder::create(image_of(test::elf_image(functions())));
  ASSERT_TRUE(finder);
  const std::size_t before = finder->bytes();
  for (std::uint64_t at = 0x1000; at < 0x1040; ++at) (void)finder->row_at(kBase + at);
  EXPECT_GE(finder->bytes(), before + 0x40 * sizeof(RowFinder::Found));
}

TEST(RowFinder, FilesWithoutDescriptionsAreToldSo) {
  const ElfImage image = image_of(test::elf_image(functions(), Search::Index, Headers::SegmentsOnly));
  EXPECT_FALSE(RowFinder::create(image));
}

// The file with an .eh_frame that is read at `offset` of it, `size` bytes.
std::string with_frames_at(std::string file, std::uint64_t offset, std::uint64_t size) {
  constexpr std::size_t kRow = test::kSections + sizeof(Elf64_Shdr);
  std::memcpy(file.data() + kRow + offsetof(Elf64_Shdr, sh_offset), &offset, sizeof offset);
  std::memcpy(file.data() + kRow + offsetof(Elf64_Shdr, sh_size), &size, sizeof size);
  return file;
}

// Each of its addresses would be looked for from its begin on.
TEST(RowFinder, FunctionsWithEndlessRulesHaveNone) {
  for (const auto& [length, wanted] :
       {std::pair{std::size_t{60000}, "7 2 0"}, {std::size_t{70000}, "22 0 0"}}) {
    test::Code program{0x0e, 16};
    program.resize(length, 0);  // DW_CFA_nop
    const auto frames = test::eh_frame({{.start = 0x1000, .size = 0x40, .program = program},
                                        {.start = 0x1080, .size = 0x20, .program = {0x0e, 24}}},
                                       kBase + test::kFrames);
    std::string file = test::elf_image(functions(), Search::Index);
    file = with_frames_at(file, file.size(), frames.bytes.size());
    file.append(reinterpret_cast<const char*>(frames.bytes.data()), frames.bytes.size());
    auto finder = RowFinder::create(image_of(file));
    ASSERT_TRUE(finder) << finder.error().what;
    EXPECT_EQ(text_of(finder->row_at(kBase + 0x1010).row), wanted) << length;
    EXPECT_EQ(text_of(finder->row_at(kBase + 0x1090).row), "7 3 0") << "the others of the file have theirs";
  }
}

TEST(RowFinder, FilesWithTooMuchInformationAreRefused) {
  constexpr std::uint64_t kMost = std::uint64_t{64} << 20;
  for (const bool is_too_much : {false, true}) {
    const std::string file = with_frames_at(test::elf_image(functions(), Search::Index), test::kFrames,
                                            kMost + (is_too_much ? 1 : 0));
    format::Fd memory(memfd_create("frames", MFD_CLOEXEC));
    ASSERT_EQ(write(memory.get(), file.data(), file.size()), static_cast<ssize_t>(file.size()));
    ASSERT_EQ(ftruncate(memory.get(), static_cast<off_t>(2 * kMost)), 0) << "with holes: it takes no room";
    const auto image = ElfImage::open(std::move(memory));
    ASSERT_TRUE(image);
    const auto finder = RowFinder::create(*image);
    ASSERT_EQ(bool(finder), !is_too_much);
    if (is_too_much) {
      EXPECT_EQ(finder.error().what, "has too much call frame information");
    }
  }
}

}  // namespace
}  // namespace tacho::unwind
