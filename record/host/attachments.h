// Files of this host that travel inside the capture, so that it can be read elsewhere.
#pragma once

#include <cstddef>
#include <vector>

#include "format/attachment.h"
#include "format/cursor.h"
#include "format/result.h"

namespace tacho::record {

// kallsyms as it was read (with the BPF programs that are loaded), and the vdso of this kernel. `kallsyms`
// empty: left out.
Result<std::vector<format::Attachment>> gather_attachments(format::Bytes kallsyms);
// The vdso, an ELF file that is no file: our own mapping of it is the same as everybody's. Empty: there is none.
std::vector<std::byte> own_vdso();

}  // namespace tacho::record
