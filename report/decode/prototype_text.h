// What functions are called with and what they return, as lines of text: what a capture of calls has of the
// debugging information of the host where it was made (attachment "prototypes", docs/capture-format.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "symbolize/elf/function_prototypes.h"

namespace tacho::report {

using symbolize::Prototype;

class PrototypeWriter {
 public:
  // Of the function that begins at this place of the file.
  void add(std::uint64_t offset, const Prototype& prototype);
  const std::string& text() const { return text_; }

 private:
  std::string type_text(const symbolize::ValueType& type);

  std::string text_;
  std::unordered_map<const symbolize::EnumNames*, std::size_t> enumerations_;
};

// By the functions' places in the file. Invalid lines are left out. Of `left`, the
// functions, arguments and names of numbers that may still be made, each takes one; at 0 reading ends.
std::unordered_map<std::uint64_t, Prototype> read_prototypes(std::string_view text, std::size_t& left);

}  // namespace tacho::report
