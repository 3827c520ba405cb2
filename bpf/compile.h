// C source of a BPF program -> the bytes of an object, with the host's clang and the headers tacho ships.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bpf/log.h"
#include "format/result.h"

namespace tacho::bpf {

// What the compiler has to say goes to standard error as it is. The error says what to install without a
// clang.
Result<std::vector<std::byte>> compile(const std::string& source, const Log& log);

// $TACHO_CLANG, or "clang", or the newest "clang-N" on the PATH.
Result<std::string> find_clang();

}  // namespace tacho::bpf
