// Copies of the files that were hit, for `tacho pack --level elf`.
#pragma once

#include <string>
#include <vector>

#include "format/attachment.h"
#include "format/symbol_pack.h"
#include "symbolize/files/file_gate.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

struct FileCopies {
  std::vector<format::Attachment> attachments;
  std::vector<std::string> omissions;  // "PATH: why it was not copied"
};

// Of the programs and libraries of the pack, those with most addresses first, as far as there is room: 128 MB
// of one, 512 MB of all before they are compressed, and 128 MB after. `gate` is told which one is read.
FileCopies copy_files(const format::SymbolPack& pack, const symbolize::SymbolOptions& options,
                      symbolize::FileGate& gate);

}  // namespace tacho::report
