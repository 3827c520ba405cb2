#include "report/views/page/page_columns.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

namespace tacho::report {
namespace {

constexpr std::size_t kElement = std::size_t{3}
                                 << 20;  // bytes, a multiple of 3: base64 needs no padding within
constexpr std::size_t kPiece = std::size_t{1} << 18;

}  // namespace

void PageColumn::varint(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
  bytes_ += static_cast<char>(number);
}

void PageColumn::add(std::uint64_t number) {
  varint(number);
  ++count_;
}

void PageColumn::add_signed(std::int64_t number) {
  std::int64_t shown = number;
  if (form_ == ColumnForm::Differences) {
    shown = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) - static_cast<std::uint64_t>(last_));
    last_ = number;
  }
  varint((static_cast<std::uint64_t>(shown) << 1) ^ static_cast<std::uint64_t>(shown >> 63));
  ++count_;
}

void PageColumn::add_real(double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  ++count_;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t word = 0;
    const std::size_t size = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i)
      word = word << 8 | (i < size ? static_cast<std::uint8_t>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += i <= size ? kDigits[word >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

struct PackedElements::Packer {
  z_stream stream{};
  bool is_sound = false;
};

PackedElements::PackedElements(TextOutput& out) : out_(out), packer_(std::make_unique<Packer>()) {
  constexpr int kLevel = 6, kGzip = 16 + MAX_WBITS, kMemory = 9;
  packer_->is_sound =
      ::deflateInit2(&packer_->stream, kLevel, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) == Z_OK;
}

PackedElements::~PackedElements() {
  if (packer_->is_sound) ::deflateEnd(&packer_->stream);
}

void PackedElements::add(std::string_view bytes) {
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max() / 2;
  for (; bytes.size() > kMost; bytes.remove_prefix(kMost)) deflate(bytes.substr(0, kMost), false);
  deflate(bytes, false);
}

void PackedElements::deflate(std::string_view bytes, bool is_last) {
  if (!packer_->is_sound) return;
  z_stream& stream = packer_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    const std::size_t size = packed_.size();
    packed_.resize(size + kPiece);
    stream.next_out = reinterpret_cast<Bytef*>(packed_.data() + size);
    stream.avail_out = kPiece;
    ::deflate(&stream, is_last ? Z_FINISH : Z_NO_FLUSH);
    packed_.resize(size + kPiece - stream.avail_out);
    while (packed_.size() >= kElement) write_element(kElement);
  } while (stream.avail_out == 0);
}

void PackedElements::write_element(std::size_t size) {
  out_.text("<script type=\"application/octet-stream\" class=\"data\">");
  out_.text(base64(std::string_view(packed_).substr(0, size)));
  out_.text("</script>\n");
  out_.line_end();
  packed_.erase(0, size);
}

Result<> PackedElements::finish() {
  if (!packer_->is_sound) return Error{"zlib has no memory to pack the page's data"};
  deflate({}, true);
  write_element(packed_.size());
  return Done{};
}

}  // namespace tacho::report
