// `tacho record --compile`: a BPF program's C source becomes an object, for hosts without a compiler.
#pragma once

#include <string>

#include "format/base/result.h"

namespace tacho::record {

// Compiles `source`, checks that it is an object of which tacho can record events, and writes it to `output`
// (empty: in the current folder, its name with .o). Returns the path that it wrote.
Result<std::string> compile_program(const std::string& source, std::string output);

}  // namespace tacho::record
