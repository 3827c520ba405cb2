// One program on many functions of a program or library (uprobe.multi: Linux 6.6), which are attached and
// detached together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/file.h"
#include "format/result.h"

namespace tacho::bpf {

// Where functions begin, in bytes of the file.
struct FunctionTargets {
  std::string path;
  std::vector<std::uint64_t> offsets;
};

enum class FunctionEnd : std::uint8_t { Entry, Return };

// The attach type of such programs, which is the kernel's to give and newer than our headers.
constexpr std::uint32_t kFunctionsAttachType = 48;

// Closing what comes back detaches all of them. An error has the kernel's errno.
Result<format::Fd> probe_functions(int program_fd, const FunctionTargets& targets, FunctionEnd end);

}  // namespace tacho::bpf
