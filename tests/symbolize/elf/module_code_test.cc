#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "format/base/file.h"
#include "format/extensions/attachment.h"
#include "symbolize/elf/module_files.h"
#include "tests/symbolize/folder.h"
#include "tests/symbolize/pinned.h"
#include "unwind/cfi.h"
#include "unwind/elf_image.h"
#include "unwind/fde_index.h"

namespace tacho::symbolize {
namespace {

struct Place {
  test::Folder root;
  std::vector<std::byte> content;
  Module module;
  Place() {
    content = *format::read_file(kData + "/names.so", 1 << 20);
    root.write("/lib/names.so", {reinterpret_cast<const char*>(content.data()), content.size()});
    module.path = "/lib/names.so";
  }
};

TEST(ModuleCode, IsWhatStandsAtThatOffsetUpToTheFilesEnd) {
  Place place;
  ModuleCode code{DebugFiles(place.root.path())};
  const auto read = code.read_code(place.module, 64, 16);
  EXPECT_TRUE(std::ranges::equal(read, std::span(place.content).subspan(64, 16)));
  EXPECT_EQ(code.read_code(place.module, place.content.size() - 3, 16).size(), 3u);
  EXPECT_TRUE(code.read_code(place.module, ~std::uint64_t{0} - 2, 16).empty());
  EXPECT_TRUE(code.is_64_bit(place.module));
}

TEST(ModuleCode, OfAnotherBuildIsNotUsed) {
  Place place;
  ModuleCode code{DebugFiles(place.root.path())};
  place.module.build_id = *format::BuildId::from_hex("ffffffffffffffffffffffffffffffffffffffff");
  EXPECT_TRUE(code.read_code(place.module, 0, 16).empty());
}

TEST(ModuleCode, WithoutABuildIdTheFileOfThatNameComesLast) {
  Place place;
  std::string ran(reinterpret_cast<const char*>(place.content.data()), place.content.size());
  ran.back() ^= 1;
  const auto last = [&](const PinnedFiles* held, const format::Features* features) {
    ModuleCode code{DebugFiles(place.root.path(), {}, held), features};
    const auto read = code.read_code(place.module, ran.size() - 1, 1);
    return read.empty() ? -1 : static_cast<signed char>(read[0]);
  };
  const int by_name = static_cast<signed char>(place.content.back());
  format::Features none, copies;
  auto packed = format::pack_attachment("elf//lib/names.so", "/lib/names.so", std::as_bytes(std::span(ran)));
  ASSERT_TRUE(packed);
  copies.attachments.push_back(std::move(*packed));
  test::Held once, twice;
  once.file("/lib/names.so", ran);
  twice.file("/lib/names.so", ran).file("/lib/names.so", ran);
  EXPECT_EQ(last(nullptr, &none), by_name);
  EXPECT_EQ(last(once.files(), &none), ran.back());
  EXPECT_EQ(last(nullptr, &copies), ran.back());
  EXPECT_EQ(last(twice.files(), &copies), -1) << "either could be the one";
}

TEST(ModuleCode, OfTheKernelAndOfWhatHasNoFileIsNotRead) {
  Place place;
  ModuleCode code{DebugFiles(place.root.path())};
  place.module.kind = ModuleKind::Kernel;
  EXPECT_TRUE(code.read_code(place.module, 0, 16).empty());
  Module gone;
  gone.path = "/lib/gone.so";
  EXPECT_TRUE(code.read_code(gone, 0, 16).empty());
  EXPECT_FALSE(code.is_64_bit(gone));
}

// Of this program, against the list of all its FDEs.
TEST(FunctionRanges, AreThoseOfTheFdes) {
  const std::string path = std::filesystem::read_symlink("/proc/self/exe");
  auto file = format::open_input(path);
  ASSERT_TRUE(file);
  const auto image = unwind::ElfImage::open(std::move(*file));
  const auto frames = unwind::eh_frame_of(*image);
  ASSERT_TRUE(frames);
  Module module;
  module.path = path;
  const auto functions = ModuleFiles(DebugFiles(""), nullptr, nullptr).function_ranges(module);
  ASSERT_NE(functions, nullptr);
  const auto code = image->code_segments();
  ASSERT_EQ(code.size(), 1u);
  std::set<std::uint32_t> numbers;
  std::size_t fdes = 0;
  const unwind::CfiSection section{frames->bytes, frames->address};
  for (const unwind::FdeRange& fde : unwind::list_fdes(section)) {
    if (fde.is_signal_frame) continue;
    ++fdes;
    const std::uint64_t start = fde.start - code[0].address + code[0].offset,
                        end = start + fde.end - fde.start;
    for (const std::uint64_t address : {start, end - 1}) {
      const auto found = functions->find_function(address);
      ASSERT_TRUE(found) << std::hex << address;
      EXPECT_EQ(found->range.start, start);
      EXPECT_EQ(found->range.end, end);
      EXPECT_LT(found->number, functions->size());
      numbers.insert(found->number);
    }
    const auto after = functions->find_function(end);
    EXPECT_TRUE(!after || after->range.start == end);
  }
  EXPECT_GT(fdes, 1000u);
  EXPECT_EQ(numbers.size(), fdes);
  EXPECT_FALSE(functions->find_function(0));
  EXPECT_FALSE(functions->find_function(~std::uint64_t{0}));
}

}  // namespace
}  // namespace tacho::symbolize
