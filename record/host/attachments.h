// Files of this host that travel inside the capture, so that it can be read elsewhere.
#pragma once

#include <vector>

#include "format/attachment.h"
#include "format/cursor.h"
#include "format/result.h"

namespace tacho::record {

// kallsyms as it was read (with the BPF programs that are loaded), and the vdso of this kernel. `kallsyms`
// empty: left out.
Result<std::vector<format::Attachment>> gather_attachments(format::Bytes kallsyms);

}  // namespace tacho::record
