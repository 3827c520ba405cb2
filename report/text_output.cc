#include "report/text_output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tacho::report {
namespace {

constexpr std::size_t kMostDigits = 20;

// Writes the decimal digits of `value` so that they end at `end`; returns where they begin.
char* digits_before(char* end, std::uint64_t value) {
  do {
    *--end = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  return end;
}

}  // namespace

void TextBuffer::grow(std::size_t more) {
  const std::size_t capacity = std::max(capacity_ * 2, size_ + more + 4096);
  auto memory = std::make_unique_for_overwrite<char[]>(capacity);
  std::copy_n(memory_.get(), size_, memory.get());
  memory_ = std::move(memory);
  capacity_ = capacity;
}

void TextBuffer::fill(char c, std::size_t count) {
  std::memset(room(count), c, count);
  size_ += count;
}

void TextBuffer::decimal(std::uint64_t value, std::size_t width) {
  char scratch[kMostDigits];
  char* const end = scratch + sizeof scratch;
  const char* const begin = digits_before(end, value);
  padded({begin, static_cast<std::size_t>(end - begin)}, width);
}

void TextBuffer::signed_decimal(std::int64_t value, std::size_t width) {
  char scratch[kMostDigits + 1];
  char* const end = scratch + sizeof scratch;
  const auto magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  char* begin = digits_before(end, magnitude);
  if (value < 0) *--begin = '-';
  padded({begin, static_cast<std::size_t>(end - begin)}, width);
}

void TextBuffer::zero_filled(std::uint64_t value, std::size_t width) {
  char scratch[kMostDigits];
  char* const end = scratch + sizeof scratch;
  const char* const begin = digits_before(end, value);
  const auto length = static_cast<std::size_t>(end - begin);
  if (length < width) fill('0', width - length);
  text({begin, length});
}

void TextBuffer::hex(std::uint64_t value, std::size_t width) {
  static constexpr char kDigits[] = "0123456789abcdef";
  char scratch[16];
  char* const end = scratch + sizeof scratch;
  char* begin = end;
  do {
    *--begin = kDigits[value & 15];
    value >>= 4;
  } while (value != 0);
  padded({begin, static_cast<std::size_t>(end - begin)}, width);
}

void TextOutput::flush() {
  std::string_view rest = view();
  while (!rest.empty() && !is_done()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno != EINTR) {
      error_ = output_error("standard output: cannot write: " + std::string(std::strerror(errno)), errno);
    }
  }
  clear();
}

Result<> TextOutput::finish() {
  flush();
  if (error_) return *error_;
  return Done{};
}

}  // namespace tacho::report
