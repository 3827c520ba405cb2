// Text on its way out: appended to a large buffer by fast number formatting (printf in the
// hot path costs more than everything else together) and written in big pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "report/output/digits.h"
#include "report/output/output_file.h"

namespace tacho::report {

// Grows as needed. Widths pad on the left with blanks unless said otherwise, as printf's do.
class TextBuffer {
 public:
  void text(std::string_view more) {
    char* to = room(more.size());
    more.copy(to, more.size());
    size_ += more.size();
  }
  // The first `size` of 16 bytes: a copy of fixed size is no call.
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
  // Nearly every number of a text has eight digits at most.
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

// A buffer in front of an output. Closed by its reader (head, less q): quiet, and nothing more is written.
class TextOutput : public TextBuffer {
 public:
  explicit TextOutput(OutputFile file) : file_(std::move(file)) {}
  // An open descriptor: standard output in messages.
  explicit TextOutput(int fd) : file_(fd) {}
  // Writes the buffer when it has grown large; call it at line ends.
  void line_end() {
    if (size() >= kChunk) flush();
  }
  void flush();
  bool is_done() const { return closed_ || error_.has_value(); }  // no reader or no room: stop producing
  // Flushes and makes the output whole. An error when something could not be written; a reader who went away
  // is none.
  Result<> finish();
  // Called once, before the first byte leaves.
  void before_first_write(std::function<void()> call) { before_first_write_ = std::move(call); }
  bool is_for_person() const { return file_.is_for_person(); }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes
  OutputFile file_;
  std::function<void()> before_first_write_;
  bool closed_ = false;
  std::optional<Error> error_;
};

}  // namespace tacho::report
