// Files of this host that travel inside the capture, so that it can be read elsewhere.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "format/attachment.h"
#include "format/cursor.h"
#include "format/result.h"

namespace tacho::record {

// The kernel's list of symbols, where there is one, and the vdso of this kernel.
Result<std::vector<format::Attachment>> gather_attachments(std::optional<format::Attachment> kallsyms);
// The vdso, an ELF file that is no file: our own mapping of it is the same as everybody's. Empty: there is
// none.
std::vector<std::byte> own_vdso();

}  // namespace tacho::record
