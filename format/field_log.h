// Which bytes of a record or section are numbers: what must be known to put it into the other byte order. A
// Cursor given such a log notes every field that a parser reads, so the parsers themselves are the only
// description of the formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacho::format {

// How a field's bytes look to a machine of the other byte order.
enum class FieldShape : std::uint8_t {
  Number,    // its bytes the other way round
  BitBytes,  // bit fields within bytes (the flag word of an attr): the bits of each byte mirrored
  Branches,  // triples of words; the third is bit fields over the whole word
};

class FieldLog {
 public:
  struct Fields {
    const std::byte* at;
    std::size_t count;  // fields that follow each other
    std::size_t width;  // bytes of one
    FieldShape shape;
  };
  // Kept out of line: parsers without a log, which are the fast ones, stay small.
  [[gnu::noinline, gnu::cold]] void add(const std::byte* at, std::size_t count, std::size_t width,
                                        FieldShape shape = FieldShape::Number) {
    fields_.push_back({at, count, width, shape});
  }
  void clear() { fields_.clear(); }
  const std::vector<Fields>& fields() const { return fields_; }

 private:
  std::vector<Fields> fields_;
};

}  // namespace tacho::format
