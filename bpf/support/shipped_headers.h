// The headers that BPF programs are compiled against, embedded so that a production host needs only clang:
// tacho/event.h and headers of the libbpf it was built with. Generated at build time.
#pragma once

#include <span>
#include <string_view>

namespace tacho::bpf {

struct ShippedHeader {
  std::string_view path;  // as programs include it: "bpf/bpf_helpers.h"
  std::string_view content;
};

std::span<const ShippedHeader> shipped_headers();

}  // namespace tacho::bpf
