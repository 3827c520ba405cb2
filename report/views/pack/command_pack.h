// tacho pack: puts names of all addresses that were hit into the capture.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/extensions/attachment.h"
#include "format/extensions/symbol_pack.h"
#include "symbolize/files/file_gate.h"
#include "symbolize/symbol_options.h"

namespace tacho::report {

// Copies of the files that were hit, for `tacho pack --level elf`.

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

// Copies of source files, for `tacho pack --level code`.

struct SourceCopies {
  std::vector<format::Attachment> attachments;
  std::size_t left_out = 0;  // files that are here and found no room
};

// Copies the files among `paths` that are source by their names. The paths come from debugging information,
// which can name any file, and others may get the capture. At most 4 MB of one file and 64 MB of all.
SourceCopies copy_sources(const std::set<std::string>& paths, const symbolize::SymbolOptions& options,
                          symbolize::FileGate& gate);

// A capture written again with another header: its records stay as they are, byte for byte.

struct RewriteOptions {
  std::string input;
  std::string output;  // empty: in place of the input
};

// Why the capture at `input` cannot be rewritten, in words that say what to do; opens it.
Result<> check_rewritable(const std::string& input);
// `change` gets the header's sections: the ones that it drops (format::drop_section) are written from the
// values. The output gets its name when it is whole; one that had the name is kept as NAME.old, but for the
// input itself.
Result<> rewrite(const RewriteOptions& options, const std::function<Result<>(format::Features&)>& change);

Result<cli::ExitStatus> run_pack(const std::vector<std::string>& arguments);

}  // namespace tacho::report
