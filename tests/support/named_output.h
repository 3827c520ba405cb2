// An output file that gets its name before it is complete, like the capture of a recording.
#pragma once

#include <string>
#include <utility>

#include "format/base/output.h"

namespace tacho::test {

inline Result<format::Fd> named_output(const std::string& path) {
  auto out = format::WholeOutput::create(path, format::WholeOutput::Old::Kept);
  if (!out) return std::move(out.error());
  if (auto named = out->take_name(); !named) return std::move(named.error());
  return out->duplicate();
}

}  // namespace tacho::test
