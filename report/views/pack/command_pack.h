// tacho pack: embeds symbols of all addresses that samples hit into the capture.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "format/extensions/attachment.h"
#include "format/extensions/symbol_pack.h"
#include "report/query/code_gatherer.h"
#include "report/samples/resolver.h"
#include "symbolize/files/file_access.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

// pack --level elf: copies of ELF files that samples hit.
inline constexpr std::size_t kMostCopies = std::size_t{1} << 14;

struct FileCopies {
  std::vector<format::Attachment> attachments;  // kMostCopies at most
  std::vector<std::string> omissions;           // "PATH: why it was not copied", the first few
  std::size_t more_omissions = 0;               // omissions that are not listed
};

// Copies the programs and libraries of the pack, most addresses first, up to 128 MB of one file, 512 MB of
// all, and 128 MB compressed. Copies in `before`, the capture's attachments, stay and count towards the
// limits unless a new copy of the same file replaces them; a file whose old copy stays is no omission.
// `access` records which file is being read.
FileCopies copy_files(const format::SymbolPack& pack, std::span<const format::Attachment> before,
                      const symbolize::SymbolOptions& options, symbolize::FileAccess& access);

// pack --level code: copies of source files.
struct SourceCopies {
  std::vector<format::Attachment> attachments;
  std::size_t left_out = 0;  // files beyond the limits
};

// Copies the source files that annotate would show (Resolver::source_file()): at most 4 MB of one file and 64
// MB of all.
SourceCopies copy_sources(const NamedSources& sources, Resolver& resolver);

}  // namespace tacho::report
