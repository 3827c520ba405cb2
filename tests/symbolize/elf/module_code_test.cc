#include <gtest/gtest.h>

#include "format/base/file.h"
#include "format/extensions/attachment.h"
#include "symbolize/elf/module_files.h"
#include "tests/symbolize/folder.h"
#include "tests/symbolize/pinned.h"

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

TEST(ModuleCode, WithoutABuildIdTheFileOfThatNameComesLast) {
  Place place;
  std::string ran(reinterpret_cast<const char*>(place.content.data()), place.content.size());
  ran.back() ^= 1;
  const auto last = [&](const PinnedFiles* held, const format::Features* features) {
    ModuleCode code{DebugFiles(place.root.path(), {}, held), features};
    const auto read = code.read(place.module, ran.size() - 1, 1);
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
  EXPECT_TRUE(code.read(place.module, 0, 16).empty());
  Module gone;
  gone.path = "/lib/gone.so";
  EXPECT_TRUE(code.read(gone, 0, 16).empty());
  EXPECT_FALSE(code.is_64_bit(gone));
}

}  // namespace
}  // namespace tacho::symbolize
