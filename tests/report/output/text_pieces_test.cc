#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "format/base/file.h"
#include "report/output/text_output.h"

namespace tacho::report {
namespace {

// Pieces of different lengths, which take different times.
void make_piece(std::size_t piece, unsigned, TextBuffer& text) {
  for (std::size_t i = 0; i <= piece % 7; ++i) {
    text.decimal(piece);
    text.character(' ');
  }
  for (std::size_t i = 0; i < piece % 5; ++i) std::this_thread::yield();
}

std::string expected(std::size_t count) {
  TextBuffer text;
  for (std::size_t piece = 0; piece < count; ++piece) make_piece(piece, 0, text);
  return std::string(text.view());
}

std::string content(int fd) {
  std::string text(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return text;
}

TEST(TextPieces, LeaveInTheirOrder) {
  for (const unsigned workers : {1U, 2U, 5U}) {
    format::WorkerPool pool(workers);
    for (const std::size_t count : {0, 1, 2, 7, 8, 9, 1000}) {
      const format::Fd file(memfd_create("pieces", MFD_CLOEXEC));
      ASSERT_TRUE(file);
      TextOutput out(file.get());
      out.text("head ");
      write_pieces(out, pool, count, make_piece);
      EXPECT_TRUE(out.finish());
      EXPECT_EQ(content(file.get()), "head " + expected(count)) << count;
    }
  }
}

TEST(TextPieces, AreMadeOnceEach) {
  constexpr std::size_t kCount = 500;
  format::WorkerPool pool(3);
  std::vector<std::atomic<int>> made(kCount);
  const format::Fd file(memfd_create("pieces", MFD_CLOEXEC));
  TextOutput out(file.get());
  write_pieces(out, pool, kCount, [&](std::size_t piece, unsigned, TextBuffer&) { ++made[piece]; });
  for (std::size_t piece = 0; piece < kCount; ++piece) EXPECT_EQ(made[piece], 1) << piece;
}

TEST(TextPieces, EndWhenNobodyReads) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const format::Fd to(ends[1]);
  close(ends[0]);
  std::signal(SIGPIPE, SIG_IGN);
  format::WorkerPool pool(2);
  std::atomic<std::size_t> begun = 0;
  TextOutput out(to.get());
  write_pieces(out, pool, 100'000, [&](std::size_t, unsigned, TextBuffer& text) {
    ++begun;
    text.fill('x', 100'000);
  });
  EXPECT_LT(begun.load(), 1000U);
}

}  // namespace
}  // namespace tacho::report
