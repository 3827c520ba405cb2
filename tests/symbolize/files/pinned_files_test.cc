#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "format/base/file.h"
#include "symbolize/files/debug_files.h"

namespace tacho::symbolize {
namespace {

using namespace std::string_literals;

class PinnedFilesTest : public testing::Test {
 protected:
  // A file with this content, open.
  static format::Fd file(std::string_view content) {
    format::Fd made(::memfd_create("held", MFD_CLOEXEC));
    EXPECT_TRUE(format::write_at(made.get(), 0, std::as_bytes(std::span(content))));
    return made;
  }
  static Result<PinnedFiles> listed(const std::string& text) {
    const format::Fd listing = file(text);
    return PinnedFiles::read(listing.get());
  }
  static std::string content(const Result<format::Fd>& found) {
    if (!found) return "";
    const auto bytes = format::read_at(found->get(), 0, 100);
    return bytes ? std::string(format::as_text(*bytes)) : "";
  }

  format::Fd one_ = file("one"), two_ = file("two");
  const std::string one_number_ = std::to_string(one_.get()), two_number_ = std::to_string(two_.get());
  const format::BuildId id_ = *format::BuildId::from_hex("0123456789abcdef0123456789abcdef01234567");
};

TEST_F(PinnedFilesTest, ABinaryIsFoundByItsBuildIdOrElseByItsName) {
  const auto held =
      listed(one_number_ + " b 7 " + id_.hex() + " /a name (deleted)\0"s + two_number_ + " b 8 - /two\0"s);
  ASSERT_TRUE(held) << held.error().what;
  EXPECT_EQ(content(held->binary("/whatever", id_)), "one");
  EXPECT_EQ(content(held->binary("/two", {})), "two");
  EXPECT_EQ(content(held->binary("/a name (deleted)", {})), "one");
  EXPECT_FALSE(held->binary("/three", {}));
  EXPECT_FALSE(held->perf_map(7));
}

TEST_F(PinnedFilesTest, WhatSeveralHadTheNameOfIsNobodys) {
  const auto held = listed(one_number_ + " b 7 - /app\0"s + two_number_ + " b 8 - /app\0"s + one_number_ +
                           " m 9 - \0"s + two_number_ + " m 9 - \0"s + one_number_ + " m 5 - \0"s);
  ASSERT_TRUE(held) << held.error().what;
  const auto app = held->binary("/app", {}), map = held->perf_map(9);
  ASSERT_FALSE(app || map);
  EXPECT_EQ(app.error().code, ENOTUNIQ);
  EXPECT_EQ(map.error().code, ENOTUNIQ);
  EXPECT_EQ(held->binary("/other", {}).error().code, ENOENT);
  EXPECT_EQ(content(held->perf_map(5)), "one");
}

TEST_F(PinnedFilesTest, WhatIsNoListingIsAnError) {
  EXPECT_FALSE(listed("1"));
  EXPECT_FALSE(listed(one_number_ + " b 7 - /app"));
  EXPECT_FALSE(listed(one_number_ + " x 7 - /app\0"s));
  EXPECT_FALSE(listed(one_number_ + " b x - /app\0"s));
  EXPECT_FALSE(listed(one_number_ + " b 7 zz /app\0"s));
  EXPECT_FALSE(listed("100000 b 7 - /app\0"s)) << "no such descriptor";
  EXPECT_FALSE(PinnedFiles::read(100000));
  const format::Fd device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(listed(std::to_string(device.get()) + " b 7 - /app\0"s)) << "no file";
}

}  // namespace
}  // namespace tacho::symbolize
