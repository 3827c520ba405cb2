// The vdso of the running kernel, as an ELF file.
#pragma once

#include <cstddef>
#include <vector>

#include "format/base/result.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

// The reason for a missing vdso under --symfs.
inline constexpr const char* kVdsoOfAnother =
    "it is not attached to the capture: --symfs names another machine";

// Its bytes, if it is the one the capture was made with.
Result<std::vector<std::byte>> running_vdso(const format::BuildId& wanted);
// Whatever its build id: for a capture of this very kernel.
Result<std::vector<std::byte>> running_vdso();

}  // namespace tacho::symbolize
