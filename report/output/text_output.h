// Buffered text output with fast number formatting: in the hot path printf would take most of the time. One
// idea: the buffer, the one that is written to a file, and the store that keeps texts made in it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/printable.h"
#include "format/base/result.h"
#include "format/base/worker_pool.h"
#include "format/container/environment.h"
#include "report/output/output_file.h"

namespace tacho::report {

// Names made safe for printing (format/base/printable.h).
using format::is_plain;
using format::Names;
using format::printable;
using format::printable_csv;
using format::printable_folded;
using format::printable_json;
using format::printable_leaf;
using format::printable_quoted;

// Formats eight digits of a number at a time, in one 64-bit word, without a loop. Formatting digit by digit,
// as printf does, would cost most of the time of a line of numbers.
//
// The word's lowest byte is the first character, on every machine; store_text() keeps it so.
inline constexpr std::size_t kWordDigits = 8;
inline constexpr std::uint64_t kEightDigits = 100'000'000;  // the least number that has nine

inline constexpr std::uint64_t every_byte(std::uint8_t byte) { return byte * 0x0101'0101'0101'0101u; }

// `value` below kEightDigits as eight bytes from 0 to 9. It is divided into groups of four, two and one
// digit, all groups in parallel; for numbers this small, a multiplication and a shift divide exactly.
inline std::uint64_t eight_decimal_digits(std::uint32_t value) {
  const std::uint64_t fours = value / 10'000 | std::uint64_t{value % 10'000} << 32;
  const std::uint64_t hundreds = (fours * 10'486 >> 20) & 0x0000'007f'0000'007f;
  const std::uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
  const std::uint64_t tens = (twos * 103 >> 10) & 0x000f'000f'000f'000f;
  return tens | (twos - tens * 10) << 8;
}

// `value` as eight hexadecimal characters: "0000002a".
inline std::uint64_t eight_hex_digits(std::uint32_t value) {
  std::uint64_t digits = value >> 24 | (value >> 8 & 0xff00) | (value & 0xff00) << 8 | value << 24;
  digits = (digits | digits << 16) & 0x0000'ffff'0000'ffff;
  digits = (digits | digits << 8) & 0x00ff'00ff'00ff'00ff;
  digits = (digits >> 4 | digits << 8) & every_byte(0x0f);
  const std::uint64_t letters = (digits + every_byte(6)) >> 4 & every_byte(1);
  return digits + every_byte('0') + letters * ('a' - '0' - 10);
}

// The number of leading zeros of eight digits; at most seven, so that 0 keeps one digit.
inline std::size_t leading_zeros(std::uint64_t digits) {
  return static_cast<std::size_t>(std::countr_zero(digits | std::uint64_t{1} << 56)) / 8;
}

// Writes all eight characters of a word.
inline void store_text(char* to, std::uint64_t text) {
  char bytes[kWordDigits];
  std::memcpy(bytes, &text, sizeof bytes);
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + kWordDigits);
  std::memcpy(to, bytes, sizeof bytes);
}

// A growing text buffer. Widths pad on the left with blanks, as in printf, unless the comment says otherwise.
class TextBuffer {
 public:
  void text(std::string_view more) {
    char* to = room(more.size());
    more.copy(to, more.size());
    size_ += more.size();
  }
  // Appends the first `size` of 16 bytes: a copy of a fixed size is no call of memcpy().
  static constexpr std::size_t kShort = 16;
  void short_text(const char (&bytes)[kShort], std::size_t size) {
    std::memcpy(room(kShort), bytes, kShort);
    size_ += size;
  }
  void character(char c) {
    *room(1) = c;
    ++size_;
  }
  void blanks(std::size_t count) {
    static constexpr char kBlanks[kShort] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ',
                                             ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};
    count <= kShort ? short_text(kBlanks, count) : fill(' ', count);
  }
  void fill(char c, std::size_t count);
  void padded(std::string_view more, std::size_t width) {  // %*s
    if (more.size() < width) blanks(width - more.size());
    text(more);
  }
  void left(std::string_view more, std::size_t width) {  // %-*s
    text(more);
    if (more.size() < width) blanks(width - more.size());
  }
  void decimal(std::uint64_t value, std::size_t width = 0) { decimal(value, width, ' '); }  // %*u
  void zero_filled(std::uint64_t value, std::size_t width) { decimal(value, width, '0'); }  // %0*u
  void signed_decimal(std::int64_t value, std::size_t width = 0) {                          // %*d
    value >= 0 ? decimal(static_cast<std::uint64_t>(value), width, ' ') : negative(value, width);
  }
  void hex(std::uint64_t value, std::size_t width = 0);  // %*x
  void hex_byte(std::uint8_t value) {                    // %02x
    static constexpr char kDigits[] = "0123456789abcdef";
    char* to = room(2);
    to[0] = kDigits[value >> 4];
    to[1] = kDigits[value & 15];
    size_ += 2;
  }

  std::size_t size() const { return size_; }
  std::string_view view() const { return {memory_.get(), size_}; }
  void clear() { size_ = 0; }
  void cut(std::size_t size) { size_ = size; }

 private:
  char* room(std::size_t more) {
    if (capacity_ - size_ < more) grow(more);
    return memory_.get() + size_;
  }
  [[gnu::cold]] void grow(std::size_t more);
  // The fast path: most numbers have at most eight digits.
  void decimal(std::uint64_t value, std::size_t width, char filler) {
    if (value >= kEightDigits || width > kWordDigits) return long_decimal(value, width, filler);
    const std::uint64_t digits = eight_decimal_digits(static_cast<std::uint32_t>(value));
    const std::size_t zeros = leading_zeros(digits), shown = std::max(kWordDigits - zeros, width);
    const std::uint64_t filled = (std::uint64_t{1} << 8 * zeros) - 1;
    const std::uint64_t text =
        ((digits | every_byte('0')) & ~filled) | (every_byte(static_cast<std::uint8_t>(filler)) & filled);
    store_text(room(kWordDigits), text >> 8 * (kWordDigits - shown));
    size_ += shown;
  }
  void long_decimal(std::uint64_t value, std::size_t width, char filler);
  void negative(std::int64_t value, std::size_t width);

  std::unique_ptr<char[]> memory_;
  std::size_t size_ = 0, capacity_ = 0;
};

// A TextBuffer that writes to an OutputFile. A reader that closes the pipe (head, q in less) is no error.
class TextOutput : public TextBuffer {
 public:
  explicit TextOutput(OutputFile file) : file_(std::move(file)) {}
  // An open descriptor: standard output in messages.
  explicit TextOutput(int fd) : file_(fd) {}
  // To be called after the end of a line: writes the buffer when it is large.
  void line_end() {
    if (size() >= kChunk) flush();
  }
  void end_line() {
    character('\n');
    line_end();
  }
  void flush();
  bool is_done() const { return closed_ || error_.has_value(); }  // no reader or no room: stop producing
  // Flushes and completes the output. An error when something could not be written, other than to a closed
  // pipe.
  Result<> finish();
  // `call` is called once, before the first byte is written.
  void before_first_write(std::function<void()> call) { before_first_write_ = std::move(call); }
  bool is_for_person() const { return file_.is_for_person(); }
  // See OutputFile.
  std::function<void(std::string_view)> show_progress() const { return file_.show_progress(); }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes
  OutputFile file_;
  std::function<void()> before_first_write_;
  bool closed_ = false;
  std::optional<Error> error_;
};

// An arena for texts: copies them into large blocks, without an allocation for each.
class TextStore {
 public:
  // Returns a copy with a stable address.
  std::string_view keep(std::string_view text) {
    if (text.size() > left_) {
      left_ = std::max(text.size(), pieces_.size() < kSmallPieces ? kSmallPiece : 2 * format::kLargePage);
      pieces_.push_back(format::make_large_piece<char>(left_));
      free_ = pieces_.back().get();
    }
    char* const to = free_;
    text.copy(to, text.size());
    free_ += text.size();
    left_ -= text.size();
    size_ += text.size();
    return {to, text.size()};
  }
  std::size_t size() const { return size_; }  // bytes of all texts

 private:
  static constexpr std::size_t kSmallPiece = std::size_t{1} << 16;  // bytes
  static constexpr std::size_t kSmallPieces = 16;                   // then large pages are worth it
  std::vector<format::LargePiece<char>> pieces_;
  char* free_ = nullptr;
  std::size_t left_ = 0, size_ = 0;
};

// Appends a piece of a text to a buffer. Called for each piece once, for several at the same time; `worker`
// as in WorkerPool::Task.
using MakePiece = std::function<void(std::size_t piece, unsigned worker, TextBuffer& text)>;

// Writes a long text, pieces 0 up to `count` in their order. All workers make them: while some are written,
// the next few, two for each worker. Ends early when the output is done.
void write_pieces(TextOutput& out, format::WorkerPool& pool, std::size_t count, const MakePiece& make);

// 1234567 -> "1,234,567", rounded to an integer; fractions below 100 have three digits: "0.125".
std::string with_commas(double value);

// "cycles on HOST: COMMAND": `what` (safe to print, may be empty), the recording host, and the first 200
// characters of the recorder's command line.
std::string with_origin(std::string what, const format::Environment& environment);

}  // namespace tacho::report
