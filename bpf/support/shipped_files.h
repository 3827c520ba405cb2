// Files embedded in tacho-record at build time: headers for BPF programs (tacho/event.h, libbpf's), so that a
// production host needs only clang; and the recorders (programs/recorders), which do not even need clang.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::bpf {

struct ShippedHeader {
  std::string_view path;  // as programs include it: "bpf/bpf_helpers.h"
  std::string_view content;
};

std::span<const ShippedHeader> shipped_headers();

struct ShippedRecorder {
  std::string_view name;
  format::Bytes object;
};

// Empty when tacho was built without a clang.
std::vector<ShippedRecorder> shipped_recorders();

}  // namespace tacho::bpf
