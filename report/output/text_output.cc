#include "report/output/text_output.h"

#include <fmt/format.h>

#include <cctype>
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

std::string xml_text(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<std::uint8_t>(c);
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if ((byte < 0x20 && c != '\t' && c != '\n') || byte == 0x7f) {
      escaped += fmt::format("\\x{:02x}", byte);
    } else if (text.substr(i).starts_with("\xef\xbf\xbe") || text.substr(i).starts_with("\xef\xbf\xbf")) {
      escaped += fmt::format("\\xef\\xbf\\x{:02x}", static_cast<std::uint8_t>(text[i + 2]));
      i += 2;
    } else {
      escaped += c;
    }
  }
  return escaped;
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

std::string fitting_text(std::string_view text, double width) {
  double left = (width - 6) / kSvgLetter;
  if (left < 2) return {};
  std::size_t at = 0, letters = 0, before_last = 0;
  while (at < text.size()) {
    std::size_t size = 1;
    while (at + size < text.size() && (static_cast<std::uint8_t>(text[at + size]) & 0xc0) == 0x80) ++size;
    left -= size > 2 ? 2 : 1;
    if (left < 0) break;
    before_last = letters == 0 ? 0 : at;
    at += size;
    ++letters;
  }
  if (at == text.size()) return std::string(text);
  if (letters < 3) return {};
  return std::string(text.substr(0, before_last)) + "…";
}

std::string without_template_arguments(std::string_view name) {
  constexpr std::string_view kOperator = "operator";
  std::string shown;
  std::size_t depth = 0, from = 0;
  for (std::size_t i = 1; i < name.size(); ++i) {
    const char before = name[i - 1];
    const bool is_name = std::isalnum(static_cast<std::uint8_t>(before)) != 0 || before == '_';
    if (name[i] == '<' && (depth > 0 || (is_name && !name.substr(0, i).ends_with(kOperator)))) {
      if (depth++ == 0) shown.append(name.substr(from, i - from)).append("<...>");
    } else if (name[i] == '>' && depth > 0 && before != '-' && --depth == 0) {
      from = i + 1;
    }
  }
  return depth > 0 ? std::string(name) : shown.append(name.substr(from));
}

std::string fitting_name(std::string_view name, double width) {
  if (fitting_text(name, width) == name) return std::string(name);
  const std::string shorter = without_template_arguments(name);
  std::string shown = fitting_text(shorter, width);
  constexpr double kLeastParts = 8;
  const double room = std::floor((width - 6) / kSvgLetter) - 1;
  if (shown.empty() || shown == shorter || room < kLeastParts) return shown;
  double left = std::floor(room / 3);  // for the end
  std::size_t end = shorter.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && (static_cast<std::uint8_t>(shorter[begin]) & 0xc0) == 0x80) --begin;
    const double wide = end - begin > 2 ? 2 : 1;
    if (left < wide) break;
    left -= wide;
    end = begin;
  }
  const double wide_end = std::floor(room / 3) - left;
  shown = fitting_text(shorter, width - wide_end * kSvgLetter);  // ends in "…"
  return shown.append(std::string_view(shorter).substr(end));
}

}  // namespace tacho::report
