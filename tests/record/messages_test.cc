#include "record/messages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

#include "cli/message_text.h"

namespace tacho::record {
namespace {

using std::chrono::milliseconds;

TEST(ShownSafely, NothingActsOnATerminal) {
  EXPECT_EQ(cli::printable_message("plain \xc3\xa4\xe2\x82\xac text\n  log"),
            "plain \xc3\xa4\xe2\x82\xac text\n  log");
  EXPECT_EQ(cli::printable_message("a\x1b[2Jb\x7f\r"), "a\\x1b[2Jb\\x7f\\x0d");
  EXPECT_EQ(cli::printable_message("\xc2\x9b"
                                   "1m"),
            "\\xc2\\x9b1m");
  EXPECT_EQ(cli::printable_message("\xe2\x80\xae"
                                   "txt\xe2\x81\xa9"),
            "\\xe2\\x80\\xaetxt\\xe2\\x81\\xa9");
  EXPECT_EQ(cli::printable_message("cut \xe2\x80"), "cut \\xe2\\x80");
  EXPECT_EQ(cli::printable_message("8-bit \x9b"
                                   "2J"),
            "8-bit \\x9b2J");
}

TEST(ShownSafely, ANameCannotPassForAnotherMessage) {
  EXPECT_EQ(cli::printable_message("cgroup a\ntacho record: all is well"),
            "cgroup a\\x0atacho record: all is well");
  EXPECT_EQ(cli::printable_message("refused:\n  R1 !read_ok\n  processed\n"),
            "refused:\n  R1 !read_ok\n  processed\\x0a");
}

TEST(WritePatiently, AFullPipeCostsItsPatienceOnce) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
  const std::string much(1 << 20, 'x');
  ASSERT_GT(::write(ends[1], much.data(), much.size()), 0);
  ::fcntl(ends[1], F_SETFL, 0);
  milliseconds patience{200};
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 50; ++i) write_patiently(ends[1], "line\n", patience);
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, milliseconds(190));
  EXPECT_LT(took, milliseconds(2000));
  EXPECT_EQ(patience, milliseconds(0));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace tacho::record
