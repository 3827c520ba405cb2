#include "symbolize/elf/module_code.h"

#include <gtest/gtest.h>

#include "format/file.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

const std::string kData = TACHO_TEST_DATA;

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
  const auto read = code.read(place.module, 64, 16);
  EXPECT_TRUE(std::ranges::equal(read, std::span(place.content).subspan(64, 16)));
  EXPECT_EQ(code.read(place.module, place.content.size() - 3, 16).size(), 3u);
  EXPECT_TRUE(code.read(place.module, ~std::uint64_t{0} - 2, 16).empty());
  EXPECT_TRUE(code.is_64_bit(place.module));
}

TEST(ModuleCode, OfAnotherBuildIsNotUsed) {
  Place place;
  ModuleCode code{DebugFiles(place.root.path())};
  place.module.build_id = *format::BuildId::from_hex("ffffffffffffffffffffffffffffffffffffffff");
  EXPECT_TRUE(code.read(place.module, 0, 16).empty());
}

TEST(ModuleCode, OfTheKernelAndOfWhatHasNoFileIsNotRead) {
  Place place;
  ModuleCode code{DebugFiles(place.root.path())};
  place.module.kind = ModuleKind::Kernel;
  EXPECT_TRUE(code.read(place.module, 0, 16).empty());
  Module gone;
  gone.path = "/lib/gone.so";
  EXPECT_TRUE(code.read(gone, 0, 16).empty());
  EXPECT_FALSE(code.is_64_bit(gone));
}

}  // namespace
}  // namespace tacho::symbolize
