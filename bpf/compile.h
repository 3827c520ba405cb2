// C source of a BPF program -> the bytes of an object, with the host's clang and the headers tacho ships.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bpf/log.h"
#include "format/result.h"

namespace tacho::bpf {

using Stop = std::function<bool()>;  // whether to end now

// What the compiler has to say goes to standard error as it is. The error says what to install without a
// clang. Asked many times a second, `stop` may end the compiler: the error's code is EINTR then.
Result<std::vector<std::byte>> compile(const std::string& source, const Log& log, const Stop& stop = {});

// $TACHO_CLANG, or "clang", or the newest "clang-N" on the PATH.
Result<std::string> find_clang();

}  // namespace tacho::bpf
