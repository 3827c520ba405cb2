// A walk through JSON by paths: a format lists the paths that it knows, and takes the values there as they
// come. Nothing else is kept, and nesting takes no stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::report {

// A step of a path: from one place to another by a key of an object, or into the items of an array. Places
// are numbers of the format, from 1; 0 is the document.
struct JsonStep {
  int from = 0;
  std::string_view key;  // empty: an item of an array
  int to = 0;
};

struct JsonNumber {
  double real = 0;
  std::uint64_t whole = 0;  // if it is one, from 0 up
  bool is_whole = false;

  // The nearest whole number from 0 up to `most`.
  std::uint64_t clamped(std::uint64_t most) const;
};

// What a format takes. A text is valid during the call.
struct JsonTaker {
  std::function<void(int place, const JsonNumber& number)> number;
  std::function<void(int place, std::string_view text)> text;
  std::function<void(int place)> begin = [](int) {};  // an object or array begins
  std::function<void(int place)> end = [](int) {};    // it ends
};

// An error says where the text is no JSON.
Result<> walk_json(format::Bytes bytes, std::span<const JsonStep> steps, const JsonTaker& taker);

}  // namespace tacho::report
