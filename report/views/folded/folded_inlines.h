// Frames as stackcollapse-perf.pl shows them with --inline: there addr2line tells the names, so they are
// whole (parameters, return types) and are not tidied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "symbolize/frame.h"

namespace tacho::report {

enum class Context : std::uint8_t {
  None,
  FileAndLine,  // --context: "run(int):loop.cc:12"
};

// Nothing where that program does not ask addr2line, or gets no answer: code of the kernel, of a JIT, without
// a name. Such frames look as they do without the option.
std::optional<std::string> expanded_name(const symbolize::Frame& frame, Context context);

}  // namespace tacho::report
