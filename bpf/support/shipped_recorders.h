// The BPF objects of the catalogue (programs/recorders), compiled when tacho was built: hosts that record
// need no clang.
#pragma once

#include <string_view>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::bpf {

struct ShippedRecorder {
  std::string_view name;
  format::Bytes object;
};

// Empty when tacho was built without a clang.
std::vector<ShippedRecorder> shipped_recorders();

}  // namespace tacho::bpf
