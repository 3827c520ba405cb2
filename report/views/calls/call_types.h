// The types of functions that a capture has, by where they begin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/container/features.h"
#include "report/decode/prototype_text.h"

namespace tacho::report {

// Where a function begins: in which file, and how far from its first byte.
struct CallFunction {
  std::string_view file;
  std::uint64_t offset = 0;
};

class CallTypes {
 public:
  // Attachments that cannot be read, and those that would take too much memory beside the ones before them,
  // are as if they were not there.
  explicit CallTypes(const format::Features& features);
  // Null: nothing is known.
  const Prototype* of(const CallFunction& function) const;

 private:
  // By the file's path.
  std::unordered_map<std::string, std::unordered_map<std::uint64_t, Prototype>> prototypes_;
};

}  // namespace tacho::report
