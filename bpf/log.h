// Lines for -v: what was chosen, what was left out and why.
#pragma once

#include <functional>
#include <string_view>

namespace tacho::bpf {

using Log = std::function<void(std::string_view)>;

inline void say(const Log& log, std::string_view line) {
  if (log) log(line);
}

}  // namespace tacho::bpf
