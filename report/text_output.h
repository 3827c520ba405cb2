// Text on its way to standard output: appended to a large buffer by our own number formatting (printf in the
// hot path costs more than everything else together) and written in big pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "format/result.h"

namespace tacho::report {

// Grows as needed. Widths pad on the left with blanks unless said otherwise, as printf's do.
class TextBuffer {
 public:
  void text(std::string_view more) {
    char* to = room(more.size());
    more.copy(to, more.size());
    size_ += more.size();
  }
  void character(char c) {
    *room(1) = c;
    ++size_;
  }
  void blanks(std::size_t count) { fill(' ', count); }
  void fill(char c, std::size_t count);
  void padded(std::string_view more, std::size_t width) {  // %*s
    if (more.size() < width) blanks(width - more.size());
    text(more);
  }
  void left(std::string_view more, std::size_t width) {  // %-*s
    text(more);
    if (more.size() < width) blanks(width - more.size());
  }
  void decimal(std::uint64_t value, std::size_t width = 0);        // %*u
  void signed_decimal(std::int64_t value, std::size_t width = 0);  // %*d
  void zero_filled(std::uint64_t value, std::size_t width);        // %0*u
  void hex(std::uint64_t value, std::size_t width = 0);            // %*x
  void hex_byte(std::uint8_t value) {                              // %02x
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
  void grow(std::size_t more);
  template <class Make>
  void number(std::size_t width, char filler, Make&& make);

  std::unique_ptr<char[]> memory_;
  std::size_t size_ = 0, capacity_ = 0;
};

// A buffer in front of a file descriptor. Closed by its reader (head, less q): quiet, and nothing more is
// written.
class TextOutput : public TextBuffer {
 public:
  explicit TextOutput(int fd) : fd_(fd) {}
  // Writes the buffer when it has grown large; call it at line ends.
  void line_end() {
    if (size() >= kChunk) flush();
  }
  void flush();
  bool is_done() const { return closed_ || error_.has_value(); }  // no reader or no room: stop producing
  // Flushes. An error when something could not be written; a reader who went away is none.
  Result<> finish();

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes
  int fd_;
  bool closed_ = false;
  std::optional<Error> error_;
};

}  // namespace tacho::report
