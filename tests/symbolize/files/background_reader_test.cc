#include <gtest/gtest.h>

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
      const auto piece = file.next();
      ASSERT_TRUE(piece) << piece.error().what;
      if (piece->empty()) break;
      read.append(reinterpret_cast<const char*>(piece->data()), piece->size());
    }
    EXPECT_EQ(read, content);
    const auto more = file.next();
    EXPECT_TRUE(more && more->empty()) << "the end stays";
  }
}

TEST(BackgroundReader, AFileThatIsLargerThanItsLimitIsAnError) {
  const test::Folder folder;
  folder.write("/text", std::string(5000, 'x'));
  BackgroundReader file(folder.path() + "/text", 4999);
  auto piece = file.next();
  while (piece && !piece->empty()) piece = file.next();
  ASSERT_FALSE(piece);
  EXPECT_NE(piece.error().what.find("larger than the 4999 bytes"), std::string::npos);
}

TEST(BackgroundReader, AFileThatIsNotThereIsAnError) {
  BackgroundReader file("/nowhere/at/all", 10);
  EXPECT_FALSE(file.next());
}

TEST(BackgroundReader, NobodyNeedsToTakeAnything) {
  const test::Folder folder;
  folder.write("/text", std::string(3'000'000, 'x'));
  const BackgroundReader file(folder.path() + "/text", 4'000'000);
}

}  // namespace
}  // namespace tacho::symbolize
