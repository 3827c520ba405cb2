// Columns of numbers and texts inside a page or a picture, compressed, for its script; packed_data.js reads
// them.
//
// The data are one gzip stream, in base64, in elements <script type="application/octet-stream" class="data">,
// which browsers do not run: 4 bytes with the length of the JSON text that follows, {"columns": [[name, form,
// count, bytes], ...], "head": ...}, then the columns. A column of whole numbers has the lowest bytes of all
// of them, then the second ones, and so on, as many as the largest number has: equal bytes side by side pack
// better than LEB128, by a tenth in a page of 1.4 million samples.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "format/base/worker_pool.h"
#include "report/output/text_output.h"

namespace tacho::report {

// The encoding of a column; packed_data.js has the same letters.
enum class ColumnForm : char {
  Numbers = 'u',  // below 2^32
  Wide = 'w',
  Signed = 'z',       // zigzag: 0, -1, 1, -2, 2, ...
  Differences = 'd',  // each to the one before: zigzag
  Reals = 'f',        // 8 bytes each, little endian
  Byte = 'b',         // 1 byte each
};

class PackedColumn {
 public:
  PackedColumn(std::string name, ColumnForm form) : name_(std::move(name)), form_(form) {}
  void add_number(std::uint64_t number);  // Numbers, Wide
  void add_signed(std::int64_t number);   // Signed, Differences
  void add_real(double number);
  void add_byte(char byte) {
    bytes_ += byte;
    ++count_;
  }
  void add_bytes(std::string_view bytes) {
    bytes_ += bytes;
    count_ += bytes.size();
  }

  // Calls `take` with each number of a column of whole numbers, as it is encoded.
  template <class Take>
  void each(Take&& take) const {
    std::uint64_t number = 0;
    int shift = 0;
    for (const char byte : bytes_) {
      number |= (static_cast<std::uint64_t>(byte) & 0x7f) << shift;
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
  // The bytes of the column in the output, and how many there are.
  std::string packed() const;
  std::size_t packed_size() const { return is_of_planes() ? planes() * count_ : bytes_.size(); }

 private:
  bool is_of_planes() const { return form_ != ColumnForm::Reals && form_ != ColumnForm::Byte; }
  std::size_t planes() const { return (static_cast<std::size_t>(std::bit_width(used_bits_)) + 7) / 8; }
  void varint(std::uint64_t number);
  std::string name_;
  ColumnForm form_;
  std::uint64_t count_ = 0;
  std::int64_t last_ = 0;
  std::uint64_t used_bits_ = 0;  // of all numbers
  std::string bytes_;            // LEB128, which takes less memory than a word each
};

// Texts, by number, as the columns "text.size" and "text.bytes".
class PackedTexts {
 public:
  // Safe to print.
  void add_text(std::string_view text) {
    sizes_.add_number(text.size());
    bytes_.add_bytes(text);
  }
  std::vector<PackedColumn> columns() && {
    std::vector<PackedColumn> columns;
    for (PackedColumn* column : {&sizes_, &bytes_}) columns.push_back(std::move(*column));
    return columns;
  }

 private:
  PackedColumn sizes_{"text.size", ColumnForm::Numbers}, bytes_{"text.bytes", ColumnForm::Byte};
};

std::string base64(std::string_view bytes);

// Writes the elements. `head`: JSON; `columns` in the order in which they are written. Workers of the pool
// compress them; the output is the same for any number of workers.
Result<> write_packed_data(TextOutput& out, std::string_view head, const std::vector<PackedColumn>& columns,
                           format::WorkerPool& pool);

}  // namespace tacho::report
