// Types of arguments and return values of functions as lines of text: the attachment "prototypes" of captures
// of calls, made from debug information (docs/capture-format.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "symbolize/elf/function_parameters.h"

namespace tacho::report {

using symbolize::Prototype;

class PrototypeWriter {
 public:
  // Adds the function that starts at this offset of the file.
  void add_prototype(std::uint64_t offset, const Prototype& prototype);
  const std::string& text() const { return text_; }

 private:
  std::string type_text(const symbolize::ValueType& type);

  std::string text_;
  std::unordered_map<const symbolize::EnumNames*, std::size_t> enumerations_;
};

// Reads the lines back, by the functions' offsets in the file. Invalid lines are skipped. `left` limits how
// many functions, arguments and enumerators are made in all; at 0 reading ends.
std::unordered_map<std::uint64_t, Prototype> read_prototypes(std::string_view text, std::size_t& left);

}  // namespace tacho::report
