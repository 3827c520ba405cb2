// A long text whose pieces are made on several threads and leave in their order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "report/output/text_output.h"

namespace tacho::report {

class TextPieces {
 public:
  // Appends a piece to a buffer. Called for each piece once, for several at the same time.
  using Make = std::function<void(std::size_t piece, TextBuffer& text)>;

  // Pieces are numbered from 0 up to `count`. Other threads begin with them at once, where the machine has
  // more than one processor and the system gives threads; they run ahead of write() by a few pieces.
  TextPieces(std::size_t count, Make make);
  // Waits for the pieces that are being made.
  ~TextPieces();
  TextPieces(const TextPieces&) = delete;
  TextPieces& operator=(const TextPieces&) = delete;

  // Writes all pieces, of which it makes some itself; ends early when the output is done. Once only.
  void write(TextOutput& out);

 private:
  static constexpr std::size_t kAhead = 8;  // pieces that are in memory
  // A piece on its way; piece n is in slot n % kAhead.
  struct Slot {
    TextBuffer text;
    bool is_made = false;
  };
  bool has_next() const { return next_ < count_ && next_ < written_ + kAhead; }
  // Makes the next piece; `lock` is free meanwhile.
  void make_next(std::unique_lock<std::mutex>& lock);
  void work();

  const std::size_t count_;
  const Make make_;
  std::mutex mutex_;  // guards what follows, but for the text of a slot that is not made yet
  std::condition_variable changed_;
  std::vector<Slot> slots_ = std::vector<Slot>(kAhead);
  std::size_t next_ = 0, written_ = 0;  // pieces
  bool is_stopped_ = false;
  std::vector<std::jthread> threads_;  // last: joined first
};

}  // namespace tacho::report
