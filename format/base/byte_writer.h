// Appends fields in native byte order; the counterpart of Cursor.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::format {

class ByteWriter {
 public:
  template <std::unsigned_integral T>
  ByteWriter& write(T value) {
    const auto at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  ByteWriter& u8(std::uint8_t value) { return write(value); }
  ByteWriter& u16(std::uint16_t value) { return write(value); }
  ByteWriter& u32(std::uint32_t value) { return write(value); }
  ByteWriter& u64(std::uint64_t value) { return write(value); }
  ByteWriter& bytes(std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  ByteWriter& zeros(std::size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  // Zeros up to the next multiple of `alignment`, counted from the start of this writer.
  ByteWriter& align(std::size_t alignment) {
    return zeros((alignment - bytes_.size() % alignment) % alignment);
  }
  // The text, a NUL, and zeros up to a multiple of `alignment` bytes for the field alone.
  ByteWriter& padded_text(std::string_view text, std::size_t alignment) {
    const std::size_t field = (text.size() + 1 + alignment - 1) / alignment * alignment;
    bytes(std::as_bytes(std::span(text)));
    return zeros(field - text.size());
  }
  // A header string: u32 length of what follows, then the text padded to a multiple of 64
  // (perf-data-format: "string").
  ByteWriter& header_string(std::string_view text) {
    u32(static_cast<std::uint32_t>((text.size() + 1 + 63) / 64 * 64));
    return padded_text(text, 64);
  }
  // Overwrites a field that was written earlier.
  template <std::unsigned_integral T>
  void patch(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }

  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }
  std::span<const std::byte> view() const { return bytes_; }
  std::vector<std::byte> take_bytes() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace tacho::format
