// Copies of the files that were hit, for `tacho pack --level elf`.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "format/extensions/attachment.h"
#include "format/extensions/symbol_pack.h"
#include "symbolize/files/file_gate.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

inline constexpr std::size_t kMostCopies = std::size_t{1} << 14;

struct FileCopies {
  std::vector<format::Attachment> attachments;  // kMostCopies at most
  std::vector<std::string> omissions;           // "PATH: why it was not copied", the first few
  std::size_t more_omissions = 0;               // that are not listed
};

// Of the programs and libraries of the pack, those with most addresses first, as far as there is room: 128 MB
// of one, 512 MB of all before they are compressed, and 128 MB after. Among `before`, the capture's
// attachments, copies stay and take room, but where a new one of the same file takes its place; a file whose
// old copy stays is no omission. `gate` gets the one that is read.
FileCopies copy_files(const format::SymbolPack& pack, std::span<const format::Attachment> before,
                      const symbolize::SymbolOptions& options, symbolize::FileGate& gate);

}  // namespace tacho::report
