// Source lines of functions that a picture shows: "main.c:12", looked up for what is drawn and nothing else.
#pragma once

#include <cstdint>
#include <string>

#include "report/samples/resolver.h"

namespace tacho::report {

// Where a function was met first.
struct FramePlace {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t location = kNone;
  std::uint32_t inlined = 0;  // which of the calls at that location, the innermost first
};

// The line where the function starts; of names that were packed into the capture, where it was met first; of
// a call that was inlined, the place in it. Safe to print. Empty: nothing knows the line. A file whose lines
// cannot be read is from then on among what Resolver::report_missing() adds.
std::string source_line(Resolver& resolver, const FramePlace& place);

}  // namespace tacho::report
