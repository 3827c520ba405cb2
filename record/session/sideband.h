// The records that a reader needs to understand later samples: mappings, names, forks and ends of processes.
#pragma once

#include <cstddef>
#include <vector>

#include "format/base/cursor.h"

namespace tacho::record {

// Appends the sideband records (mmap, comm, fork, exit) among whole `records` to `sideband`, and all others
// to `others` (null: they are dropped).
void append_sideband(format::Bytes records, std::vector<std::byte>& sideband,
                     std::vector<std::byte>* others = nullptr);

}  // namespace tacho::record
