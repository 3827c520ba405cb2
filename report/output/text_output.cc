#include "report/output/text_output.h"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <utility>

namespace tacho::report {
namespace {

std::size_t decimal_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 10; value /= 10) ++size;
  return size;
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

void TextBuffer::long_decimal(std::uint64_t value, std::size_t width, char filler) {
  const std::size_t size = decimal_size(value);
  if (size < width) fill(filler, width - size);
  if (value < kEightDigits) return decimal(value, 0, filler);
  decimal(value / kEightDigits, 0, filler);
  decimal(value % kEightDigits, kWordDigits, '0');
}

void TextBuffer::negative(std::int64_t value, std::size_t width) {
  const std::uint64_t magnitude = 0 - static_cast<std::uint64_t>(value);
  const std::size_t size = 1 + decimal_size(magnitude);
  if (size < width) blanks(width - size);
  character('-');
  decimal(magnitude, 0, ' ');
}

void TextBuffer::hex(std::uint64_t value, std::size_t width) {
  const auto size = static_cast<std::size_t>(std::bit_width(value | 1) + 3) / 4;
  if (size < width) blanks(width - size);
  char* const to = room(2 * kWordDigits);
  const std::uint64_t low = eight_hex_digits(static_cast<std::uint32_t>(value));
  if (size <= kWordDigits) {
    store_text(to, low >> 8 * (kWordDigits - size));
  } else {
    const std::uint64_t high = eight_hex_digits(static_cast<std::uint32_t>(value >> 32));
    store_text(to, high >> 8 * (2 * kWordDigits - size));
    store_text(to + size - kWordDigits, low);
  }
  size_ += size;
}

void TextOutput::flush() {
  if (size() > 0 && before_first_write_) std::exchange(before_first_write_, nullptr)();
  if (!is_done()) {
    if (const auto reader = file_.write(view()); !reader) {
      error_ = reader.error();
    } else {
      closed_ = *reader == OutputFile::Reader::Gone;
    }
  }
  clear();
}

Result<> TextOutput::finish() {
  flush();
  if (error_) return *error_;
  auto done = file_.finish();
  closed_ = closed_ || file_.is_reader_gone();
  return done;
}

void write_pieces(TextOutput& out, format::WorkerPool& pool, std::size_t count, const MakePiece& make) {
  const std::size_t together = std::size_t{2} * pool.workers();
  std::vector<TextBuffer> made(together), next(together);
  std::size_t ready = 0;  // pieces in `made`
  for (std::size_t begin = 0; (begin < count || ready > 0) && !out.is_done();) {
    const std::size_t more = std::min(together, count - begin);
    auto making = pool.fork(more, [&](std::size_t at, unsigned worker) -> Result<> {
      next[at].clear();
      make(begin + at, worker, next[at]);
      return Done{};
    });
    for (const TextBuffer& text : std::span(made).first(ready)) {
      out.text(text.view());
      out.line_end();
    }
    static_cast<void>(making.join());  // no piece returns an error
    made.swap(next);
    ready = more;
    begin += more;
  }
}

std::string with_commas(double value) {
  constexpr double kWithFraction = 100;
  if (value != std::floor(value) && std::abs(value) < kWithFraction) return fmt::format("{:.3g}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string with_origin(std::string what, const format::Environment& environment) {
  if (environment.hostname) what += (what.empty() ? "on " : " on ") + printable(*environment.hostname);
  std::string command;
  for (const std::string& word : environment.command_line) command += (command.empty() ? "" : " ") + word;
  constexpr std::size_t kMost = 200;
  std::string shown = printable(command);
  if (shown.size() > kMost) shown = shown.substr(0, kMost) + "...";
  if (!shown.empty()) what += ": " + printable(shown);  // it may have been cut within a letter
  return what;
}

}  // namespace tacho::report
