#include "report/views/tui/frame.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>

namespace tacho::report {
namespace {

format::Bytes body_of(const std::string& bytes) {
  return std::as_bytes(std::span(bytes)).subspan(kLengthBytes);
}

TEST(Frame, ComesBackAsItWasSent) {
  Frame frame({100, 3});
  frame.bar(0, Style::Bar, "title");
  frame.put_text(1, 7, Style::High, "名前 99.50%");
  frame.rows[1].is_selected = true;
  frame.cursor = {2, 5};
  frame.waits = false;
  frame.begins = true;
  const std::string bytes = encode(frame);
  const auto read = decode_frame(body_of(bytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(encode(*read), bytes);
  EXPECT_EQ(read->rows[1].runs[0].text, "名前 99.50%");
  EXPECT_EQ(read->cursor, (std::pair<std::uint16_t, std::uint16_t>(2, 5)));
}

TEST(Frame, OneThatAsksForAKeyHasNoRows) {
  Frame frame({100, 3});
  frame.bar(0, Style::Bar, "title");
  frame.draws = false;
  frame.saved_bytes = 123456789012;
  const auto read = decode_frame(body_of(encode(frame)));
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->draws);
  EXPECT_TRUE(read->rows.empty());
  EXPECT_EQ(read->saved_bytes, 123456789012U);
}

TEST(Frame, WhatATerminalWouldActOnIsNeverInIt) {
  Frame frame({200, 2});
  frame.put_text(0, 0, Style::Normal, "a\033]0;x\007b\u202e\n");
  EXPECT_EQ(frame.rows[0].runs[0].text, "a\\x1b]0;x\\x07b\\xe2\\x80\\xae\\x0a");
  // A sender that was taken over sends it all the same.
  frame.rows[1].runs.push_back({0, Style::Normal, "\033[2J"});
  const auto read = decode_frame(body_of(encode(frame)));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rows[1].runs[0].text, "\\x1b[2J");
}

TEST(Frame, TextEndsAtTheRightEdge) {
  Frame frame({10, 1});
  frame.put_text(0, 8, Style::Normal, "名名");
  frame.put_text(0, 9, Style::Normal, "名");
  frame.put_text(0, 10, Style::Normal, "x");
  frame.put_text(1, 0, Style::Normal, "x");
  ASSERT_EQ(frame.rows[0].runs.size(), 2u);
  EXPECT_EQ(frame.rows[0].runs[0].text, "名");
  EXPECT_EQ(frame.rows[0].runs[1].text, "") << "half a wide character is none";
}

TEST(Frame, BrokenBytesAreAnErrorAndNoMore) {
  Frame frame({40, 5});
  for (std::size_t row = 0; row < 5; ++row) frame.put_text(row, row, Style::Medium, "some text");
  const std::string bytes = encode(frame);
  for (std::size_t size = kLengthBytes; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_frame(body_of(bytes.substr(0, size))));
  EXPECT_FALSE(decode_frame(body_of(bytes + "x")));
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string changed = bytes;
    for (int j = 0; j < 3; ++j)
      changed[kLengthBytes + random() % (changed.size() - kLengthBytes)] = static_cast<char>(random());
    const auto read = decode_frame(body_of(changed));
    if (!read) continue;
    for (const FrameRow& row : read->rows)
      for (const StyledText& run : row.runs) {
        EXPECT_LE(run.column + columns_of(run.text), read->size.width);
        EXPECT_LT(run.style, Style::kCount);
      }
  }
}

TEST(Frame, KeysComeBack) {
  const KeyPress press{.key = Key::Click, .size = {200, 60}, .row = 7, .column = 9};
  const std::string bytes = encode(press);
  const auto read = decode_key(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key, Key::Click);
  EXPECT_EQ(read->size, (ScreenSize{200, 60}));
  EXPECT_EQ(read->column, 9);
  EXPECT_FALSE(decode_key({}));
}

TEST(Frame, ColumnsAreCountedAsTerminalsShowThem) {
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("héllo"), 5u);
  EXPECT_EQ(columns_of("名前"), 4u);
  EXPECT_EQ(columns_of("e\u0301e\u0301"), 2u);
  EXPECT_EQ(columns_of("\xff\xc3"), 2u) << "a broken byte takes one";
  EXPECT_EQ(fit_middle("std::vector<int>::iterator::next", 20), "std::vect..tor::next");
  EXPECT_EQ(fit_middle("名名名名名名", 8), "名..名");
  EXPECT_EQ(from_column("名前x", 2), "前x");
  EXPECT_EQ(padded_to("名", 4), "名  ");
}

}  // namespace
}  // namespace tacho::report
