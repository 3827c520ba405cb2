// One program on many functions of a program or library (uprobe.multi: Linux 6.6), which are attached and
// detached together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/file.h"
#include "format/result.h"

namespace tacho::bpf {

// Where functions begin, in bytes of the file.
struct FunctionTargets {
  std::string path;
  std::vector<std::uint64_t> offsets;
  std::vector<std::string> names;  // as many; or none, for programs that take all of them
  int process = -1;                // whose calls alone are probed; -1: of all that use the file
};

// What the program's bpf_get_attach_cookie() gives: for programs that name their functions
// ("uprobe.multi/$lib:malloc,free") the number of the name, otherwise 0.
struct ChosenFunctions {
  std::vector<std::uint64_t> offsets, cookies;
};
// Of the targets those that the section's target names; all of them when it names none.
ChosenFunctions chosen_functions(const FunctionTargets& targets, std::string_view section_target);

enum class FunctionEnd : std::uint8_t { Entry, Return };

// The attach type of such programs, which is the kernel's to give and newer than our headers.
constexpr std::uint32_t kFunctionsAttachType = 48;

// Closing what comes back detaches all of them. An error has the kernel's errno.
Result<format::Fd> probe_functions(int program_fd, const FunctionTargets& targets,
                                   const ChosenFunctions& functions, FunctionEnd end);

}  // namespace tacho::bpf
