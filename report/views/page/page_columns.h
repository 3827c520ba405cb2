// How a page carries its data: columns of numbers, packed by gzip, as base64 in script elements that run
// nothing. page/data.js reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Numbers of a column. A letter says how page/data.js reads them:
enum class ColumnForm : char {
  Numbers = 'u',      // below 2^32: LEB128
  Wide = 'w',         // LEB128
  Signed = 'z',       // zigzag LEB128
  Differences = 'd',  // each to the one before: zigzag LEB128
  Reals = 'f',        // 8 bytes each, little endian
  Bytes = 'b',        // 1 byte each
};

class PageColumn {
 public:
  PageColumn(std::string name, ColumnForm form) : name_(std::move(name)), form_(form) {}
  void add(std::uint64_t number);        // Numbers, Wide
  void add_signed(std::int64_t number);  // Signed, Differences
  void add_real(double number);
  void add_byte(char byte) {
    bytes_ += byte;
    ++count_;
  }
  void add_bytes(std::string_view bytes) {
    bytes_ += bytes;
    count_ += bytes.size();
  }

  // The numbers of a column of the same form, in place of this one's.
  void take(PageColumn&& other) {
    count_ = other.count_;
    bytes_ = std::move(other.bytes_);
  }

  // Calls `take` with each number of a column of form Numbers.
  template <class Take>
  void each(Take&& take) const {
    std::uint32_t number = 0;
    int shift = 0;
    for (const char byte : bytes_) {
      number |= (static_cast<std::uint32_t>(byte) & 0x7f) << shift;
      shift += 7;
      if ((static_cast<std::uint8_t>(byte) & 0x80) != 0) continue;
      take(number);
      number = 0;
      shift = 0;
    }
  }

  const std::string& name() const { return name_; }
  ColumnForm form() const { return form_; }
  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t number);
  std::string name_;
  ColumnForm form_;
  std::uint64_t count_ = 0;
  std::int64_t last_ = 0;
  std::string bytes_;
};

std::string base64(std::string_view bytes);

// Writes what is added, packed, as elements <script type="application/octet-stream" class="data">, some
// megabytes each.
class PackedElements {
 public:
  explicit PackedElements(TextOutput& out);
  PackedElements(const PackedElements&) = delete;
  ~PackedElements();
  void add(std::string_view bytes);
  Result<> finish();

 private:
  void deflate(std::string_view bytes, bool is_last);
  void write_element(std::size_t size);
  struct Packer;
  TextOutput& out_;
  std::unique_ptr<Packer> packer_;
  std::string packed_;
};

}  // namespace tacho::report
