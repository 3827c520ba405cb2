#include "format/base/text_pool.h"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

namespace tacho::format {
namespace {

TEST(TextPool, EqualTextsAreOne) {
  TextPool pool;
  const auto dd = pool.add_text("dd");
  EXPECT_EQ(pool.add_text(std::string("dd")), dd);
  EXPECT_NE(pool.add_text("de"), dd);
  EXPECT_NE(pool.add_text(""), dd);
  EXPECT_EQ(pool[dd], "dd");
  EXPECT_EQ(pool[pool.add_text("")], "");
  EXPECT_EQ(pool.keep("dd").data(), pool[dd].data());
}

TEST(TextPool, FindsWhatWasAddedAndAddsNothing) {
  TextPool pool;
  EXPECT_EQ(pool.find_text("dd"), TextPool::kNone);
  const auto dd = pool.add_text("dd");
  EXPECT_EQ(pool.find_text("dd"), dd);
  EXPECT_EQ(pool.find_text(""), TextPool::kNone);
}

TEST(TextPool, TextsDifferThatDifferInZerosAtTheirEnd) {
  using std::string_view_literals::operator""sv;
  TextPool pool;
  EXPECT_NE(pool.add_text("a"sv), pool.add_text("a\0"sv));
  EXPECT_NE(pool.add_text("12345678"sv), pool.add_text("12345678\0"sv));
  EXPECT_EQ(pool[pool.find_text("a\0"sv)].size(), 2u);
}

TEST(TextPool, WhatWasGivenOutStays) {
  TextPool pool;
  std::vector<std::pair<TextPool::Number, std::string_view>> given;
  for (int i = 0; i < 100000; ++i) {
    const std::string text = "comm" + std::to_string(i);
    given.emplace_back(pool.add_text(text), pool.keep(text));
  }
  const TextPool moved = std::move(pool);
  for (int i = 0; i < 100000; ++i) {
    const std::string text = "comm" + std::to_string(i);
    ASSERT_EQ(given[i].second, text);
    ASSERT_EQ(moved[given[i].first].data(), given[i].second.data());
    ASSERT_EQ(moved.find_text(text), given[i].first);
  }
}

// Texts about as long as the pool's pieces, and far longer, between short ones.
TEST(TextPool, RefusesATextOf4GiB) {
  TextPool pool;
  const char start = 'a';  // the text is refused before it is read
  EXPECT_THROW((void)pool.add_text({&start, std::size_t{1} << 32}), std::bad_alloc);
}

TEST(TextPool, KeepsTextsOfAnyLength) {
  TextPool pool;
  std::vector<TextPool::Number> numbers;
  std::vector<std::string> texts;
  for (const std::size_t size : {65531, 65532, 65533, 65536, 131072, 131064, 1000000, 5}) {
    texts.emplace_back(size, 'a');
    texts.emplace_back("short" + std::to_string(size));
  }
  for (const std::string& text : texts) numbers.push_back(pool.add_text(text));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(pool[numbers[i]], texts[i]);
    EXPECT_EQ(pool.find_text(texts[i]), numbers[i]);
  }
}

}  // namespace
}  // namespace tacho::format
