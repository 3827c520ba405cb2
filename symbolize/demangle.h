// Names as their programmers wrote them: C++, Rust (legacy and v0) and OCaml, in the form perf shows: without
// parameters, return types or the hash of a legacy Rust name.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "tsl/robin_map.h"

namespace tacho::symbolize {

// Nothing when `name` is not mangled, or so that its readable form would be longer than 64 KiB.
std::optional<std::string> demangle(std::string_view name);

// Remembers every name it was asked for.
class Demangler {
 public:
  // The readable form, or `name` itself. `name` must live as long as the demangler, and so does what is
  // returned.
  std::string_view shown(std::string_view name);

 private:
  tsl::robin_map<std::string_view, std::string_view> seen_;
  std::deque<std::string> texts_;
};

}  // namespace tacho::symbolize
