#include "report/text_output.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace tacho::report {
namespace {

// Numbers are made at the end of the first half of a scratch area; a copy of fixed size from where they begin
// is cheaper than one of their own length.
constexpr std::size_t kHalf = 32;  // bytes; the longest number has 20 digits and a sign

constexpr auto kPairs = [] {  // "00" to "99"
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

constexpr auto kHexPairs = [] {  // "00" to "ff"
  std::array<char, 512> pairs{};
  for (std::size_t i = 0; i < 256; ++i) {
    pairs[2 * i] = "0123456789abcdef"[i >> 4];
    pairs[2 * i + 1] = "0123456789abcdef"[i & 15];
  }
  return pairs;
}();

// Writes the decimal digits of `value` so that they end at `end`; returns where they begin.
char* digits_before(char* end, std::uint64_t value) {
  for (; value >= 100; value /= 100) std::memcpy(end -= 2, kPairs.data() + value % 100 * 2, 2);
  if (value >= 10) {
    std::memcpy(end -= 2, kPairs.data() + value * 2, 2);
  } else {
    *--end = static_cast<char>('0' + value);
  }
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

// Appends what make(end) writes before `end`, filled up on the left.
template <class Make>
void TextBuffer::number(std::size_t width, char filler, Make&& make) {
  char scratch[2 * kHalf];
  char* const end = scratch + kHalf;
  std::memset(scratch, filler, kHalf);
  if (width > kHalf) {
    fill(filler, width - kHalf);
    width = kHalf;
  }
  const char* const begin = std::min<const char*>(make(end), end - width);
  std::memcpy(room(kHalf), begin, kHalf);
  size_ += static_cast<std::size_t>(end - begin);
}

void TextBuffer::decimal(std::uint64_t value, std::size_t width) {
  number(width, ' ', [value](char* end) { return digits_before(end, value); });
}

void TextBuffer::signed_decimal(std::int64_t value, std::size_t width) {
  number(width, ' ', [value](char* end) {
    if (value >= 0) return digits_before(end, static_cast<std::uint64_t>(value));
    char* begin = digits_before(end, 0 - static_cast<std::uint64_t>(value));
    *--begin = '-';
    return begin;
  });
}

void TextBuffer::zero_filled(std::uint64_t value, std::size_t width) {
  number(width, '0', [value](char* end) { return digits_before(end, value); });
}

void TextBuffer::hex(std::uint64_t value, std::size_t width) {
  number(width, ' ', [value](char* end) {
    std::uint64_t rest = value;
    for (; rest >= 256; rest >>= 8) std::memcpy(end -= 2, kHexPairs.data() + (rest & 255) * 2, 2);
    if (rest >= 16) {
      std::memcpy(end -= 2, kHexPairs.data() + rest * 2, 2);
    } else {
      *--end = kHexPairs[rest * 2 + 1];
    }
    return end;
  });
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
