// Code that was packed piece by piece, as it is read again.
#pragma once

#include "format/extensions/symbol_pack.h"

namespace tacho::symbolize {

// Joins pieces that overlap or follow each other; of bytes that several have, the first one's
// stay. Pieces must be ascending by their start, and their bytes in the module's `code_bytes`.
void join_code(format::PackedModule& module);

}  // namespace tacho::symbolize
