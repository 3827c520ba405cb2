#include <gtest/gtest.h>

#include <span>

#include "symbolize/names/symbol_lists.h"

namespace tacho::symbolize {
namespace {

Result<SymbolTable> parse(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return parse_perf_map({all.begin(), all.end()});
}

TEST(PerfMap, NamesMayHoldBlanks) {
  auto table = parse("7f0010 20 JS:*fib /tmp/app.js:2:13\n0x7f0030 0x10 stub\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->find(0x7f002f)->name, "JS:*fib /tmp/app.js:2:13");
  EXPECT_EQ(table->find(0x7f0030)->name, "stub");
  EXPECT_EQ(table->find(0x7f0040), nullptr);
}

TEST(PerfMap, SkipsLinesOfAnotherForm) {
  auto table =
      parse("\n10\n10 \n10 20\n10 20 \nxyz 20 name\n10 zz name\n10000000000000000 1 too_long\n10 20 good");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->size(), 1u);
  EXPECT_EQ(table->find(0x10)->name, "good");
}

TEST(PerfMap, ASizeBeyondTheEndOfMemoryIsCut) {
  auto table = parse("fffffffffffffff0 ffffffffffffffff high\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->find(0xfffffffffffffff8)->name, "high");
}

TEST(PerfMap, SaysWhenNothingInItIsUsable) {
  const auto table = parse("hello\n");
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().what.find("START SIZE NAME"), std::string::npos);
}

}  // namespace
}  // namespace tacho::symbolize
