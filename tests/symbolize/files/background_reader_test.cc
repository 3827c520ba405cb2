#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "symbolize/kernel_names.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

TEST(BackgroundReader, ThePiecesAreTheFile) {
  const test::Folder folder;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{1} << 18, std::size_t{700'001}}) {
    std::string content(size, 'x');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>('a' + i % 23);
    folder.write("/text", content);
    BackgroundReader file(folder.path() + "/text", 1'000'000);
    std::string read;
    for (;;) {
      const auto piece = file.next_piece();
      ASSERT_TRUE(piece) << piece.error().what;
      if (piece->empty()) break;
      read.append(reinterpret_cast<const char*>(piece->data()), piece->size());
    }
    EXPECT_EQ(read, content);
    const auto more = file.next_piece();
    EXPECT_TRUE(more && more->empty()) << "the end stays";
  }
}

TEST(BackgroundReader, AFileThatIsLargerThanItsLimitIsAnError) {
  const test::Folder folder;
  folder.write("/text", std::string(5000, 'x'));
  BackgroundReader file(folder.path() + "/text", 4999);
  auto piece = file.next_piece();
  while (piece && !piece->empty()) piece = file.next_piece();
  ASSERT_FALSE(piece);
  EXPECT_NE(piece.error().what.find("larger than the 4999 bytes"), std::string::npos);
}

TEST(BackgroundReader, AFileThatIsNotThereIsAnError) {
  BackgroundReader file("/nowhere/at/all", 10);
  EXPECT_FALSE(file.next_piece());
}

// The most memory that this process has had, in KiB.
long peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(BackgroundReader, OneThatIsNoLongerNeededStopsReading) {
  const test::Folder folder;
  folder.write("/text", "");
  std::filesystem::resize_file(folder.path() + "/text", std::uintmax_t{1} << 30);
  const long before = peak_memory();
  { const BackgroundReader large(folder.path() + "/text", std::uint64_t{1} << 30); }
  EXPECT_LT(peak_memory() - before, 512 << 10) << "it has read the whole file, which nobody waits for";
}

}  // namespace
}  // namespace tacho::symbolize
