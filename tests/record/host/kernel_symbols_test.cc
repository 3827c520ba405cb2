#include "record/host/kernel_symbols.h"

#include <gtest/gtest.h>

#include "format/file.h"

namespace tacho::record {
namespace {

TEST(KernelSymbols, WhatIsReadAheadIsTakenOnce) {
  constexpr std::size_t kPage = 4096;
  KernelSymbolsAhead ahead(kPage);
  const auto first = ahead.take();
  ASSERT_TRUE(first);
  ASSERT_TRUE(*first) << first->error().what;
  EXPECT_FALSE(ahead.take()) << "a later capture reads the list as it is then";
  const KernelSymbols& symbols = **first;
  EXPECT_EQ(symbols.lack.empty(), symbols.list.has_value()) << symbols.lack;
  if (!symbols.list) GTEST_SKIP() << symbols.lack;
  ASSERT_TRUE(symbols.text);
  const auto list = format::unpack_attachment(*symbols.list);
  ASSERT_TRUE(list) << list.error().what;
  EXPECT_NE(format::as_text(*list).find(" T " + symbols.text->reference + "\n"), std::string_view::npos);
}

}  // namespace
}  // namespace tacho::record
