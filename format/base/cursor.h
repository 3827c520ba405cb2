// The only reader of foreign bytes. U64Array: an array in them; FieldLog: the fields read, to swap them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace tacho::format {

// How a field's bytes change between the byte orders.
enum class FieldShape : std::uint8_t {
  Number,    // the bytes are reversed
  BitBytes,  // bit fields within bytes (the flag word of an attr): the bits of each byte are reversed
  Branches,  // triples of words; the third consists of bit fields over the whole word
};

// The fields that a parser reads, logged for converting a record or section to the other byte order. So the
// parsers are the only description of the formats.
class FieldLog {
 public:
  struct Fields {
    const std::byte* at;
    std::size_t count;  // fields that follow each other
    std::size_t width;  // bytes of one
    FieldShape shape;
  };
  // Kept out of line: parsers without a log, which are the fast ones, stay small.
  [[gnu::noinline, gnu::cold]] void add_fields(const std::byte* at, std::size_t count, std::size_t width,
                                               FieldShape shape = FieldShape::Number) {
    fields_.push_back({at, count, width, shape});
  }
  void clear() { fields_.clear(); }
  const std::vector<Fields>& fields() const { return fields_; }

 private:
  std::vector<Fields> fields_;
};

using Bytes = std::span<const std::byte>;

// Both texts point into the bytes.
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// The text of a field: its bytes up to the first NUL.
inline std::string_view text_of(Bytes field) {
  const std::string_view all = as_text(field);
  return all.substr(0, all.find('\0'));
}

// An array of u64 inside a record, at any alignment and in the capture's byte order.
class U64Array {
 public:
  U64Array() = default;
  U64Array(Bytes bytes, std::endian order) : bytes_(bytes), order_(order) {}
  std::size_t size() const { return bytes_.size() / sizeof(std::uint64_t); }
  bool empty() const { return size() == 0; }
  std::uint64_t operator[](std::size_t index) const {
    std::uint64_t value;
    std::memcpy(&value, bytes_.data() + index * sizeof value, sizeof value);
    return order_ == std::endian::native ? value : __builtin_bswap64(value);
  }
  Bytes bytes() const { return bytes_; }
  std::endian order() const { return order_; }

 private:
  Bytes bytes_;
  std::endian order_ = std::endian::native;
};

// Reads fields one after another from bytes it does not own. Reading past the end yields zero and marks
// the cursor failed for good: a parser checks failed() once, at the end.
class Cursor {
 public:
  // With a `log`, which must outlive the cursor, every field that is read is logged.
  explicit Cursor(Bytes bytes, std::endian order = std::endian::native, FieldLog* log = nullptr)
      : rest_(bytes), log_(log), order_(order), is_plain_(order == std::endian::native && log == nullptr) {}
  // A cursor over a part of the bytes, in the same order and with the same log.
  Cursor over(Bytes part) const { return Cursor(part, order_, log_); }

  template <std::unsigned_integral T>
  T read() {
    if (sizeof(T) > rest_.size()) {
      fail();
      return 0;
    }
    T value;
    const std::byte* at = rest_.data();
    std::memcpy(&value, at, sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    if (is_plain_) [[likely]]
      return value;
    if (log_ != nullptr) log_->add_fields(at, 1, sizeof(T));
    return order_ == std::endian::native ? value : swapped(value);
  }
  std::uint8_t u8() { return read<std::uint8_t>(); }
  std::uint16_t u16() { return read<std::uint16_t>(); }
  std::uint32_t u32() { return read<std::uint32_t>(); }
  std::uint64_t u64() { return read<std::uint64_t>(); }

  Bytes take_bytes(std::uint64_t size) {
    if (size > rest_.size()) {
      fail();
      return {};
    }
    const auto head = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(head.size());
    return head;
  }
  void skip(std::uint64_t size) { take_bytes(size); }
  // `count` fields of `width` bytes each; refuses a product that does not fit.
  Bytes fields(std::uint64_t count, std::size_t width, FieldShape shape = FieldShape::Number) {
    const Bytes all = take_items(count, width);
    if (log_ != nullptr && !all.empty()) log_->add_fields(all.data(), all.size() / width, width, shape);
    return all;
  }
  // `count` groups of `group` words.
  U64Array words(std::uint64_t count, std::size_t group = 1, FieldShape shape = FieldShape::Number) {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    const Bytes all = take_items(count, group * kWord);
    if (log_ != nullptr && !all.empty()) log_->add_fields(all.data(), all.size() / kWord, kWord, shape);
    return {all, order_};
  }
  // `count` items of `item_size` bytes that are not numbers, or that another cursor reads.
  Bytes take_items(std::uint64_t count, std::size_t item_size) {
    if (count > rest_.size() / item_size) {
      fail();
      return {};
    }
    return take_bytes(count * item_size);
  }
  // A field of `size` bytes, up to its first NUL.
  std::string_view text(std::uint64_t size) { return text_of(take_bytes(size)); }
  // Bytes up to a NUL, which is consumed; fails if there is none.
  std::string_view terminated() {
    const std::string_view all = as_text(rest_);
    const auto end = all.find('\0');
    if (end == std::string_view::npos) {
      fail();
      return {};
    }
    take_bytes(end + 1);
    return all.substr(0, end);
  }
  void fail() {
    failed_ = true;
    rest_ = {};
  }

  Bytes rest() const { return rest_; }
  std::size_t left() const { return rest_.size(); }
  bool failed() const { return failed_; }
  std::endian order() const { return order_; }

  template <std::unsigned_integral T>
  static T swapped(T value) {
    if constexpr (sizeof(T) == 1) return value;
    if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(value));
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  }

 private:
  Bytes rest_;
  FieldLog* log_;
  std::endian order_;
  bool is_plain_;  // native byte order and no log
  bool failed_ = false;
};

}  // namespace tacho::format
