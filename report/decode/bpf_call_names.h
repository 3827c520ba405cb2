// Names of the kernel's functions that BPF programs call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/features.h"

namespace tacho::report {

// The lines of kallsyms that name what the BPF programs of a capture call: `tacho pack` keeps these.
inline constexpr std::string_view kBpfCallsAttachment = "bpf-calls";

class BpfCallNames {
 public:
  // Reads the attached kallsyms or, in a packed capture, attachment bpf-calls. Without both nothing has a
  // name.
  explicit BpfCallNames(const format::Features& features);

  // The function that begins at the address; empty: not known. Unchecked bytes, not safe to print.
  std::string_view at(std::uint64_t address) const;
  // The function called by a translated instruction, whose immediate is the distance from __bpf_call_base.
  std::string_view called(std::int32_t distance) const;

  // The lines of kallsyms that name what the capture's programs call. Empty: they call nothing that has a
  // name.
  std::string lines_of_calls(const format::Environment& environment) const;

 private:
  std::vector<std::byte> text_;
  std::vector<std::pair<std::uint64_t, std::string_view>> names_;  // ascending
  std::uint64_t base_ = 0;                                         // of __bpf_call_base; 0: not known
};

}  // namespace tacho::report
