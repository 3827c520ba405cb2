// The formats that tacho import reads: one file each, and a row in their table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/base/cursor.h"
#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "report/views/convert/convert.h"

namespace tacho::report {

struct ImportTask {
  format::Bytes bytes;              // of the input, unpacked; they outlive the import
  std::string source;               // name of the input, for modules and threads without one
  std::optional<std::string> comm;  // --comm
};

struct ImportFormat {
  std::string_view name;  // of --from
  std::string_view help;  // one line
  // Whether the bytes look like it; the first such row of the table is taken.
  bool (*matches)(format::Bytes bytes);
  // Writes the capture. An error says what in the input is not of the format.
  Result<> (*import)(const ImportTask& task, const CopyOutput& output, format::Diagnostics& diagnostics);
};

std::span<const ImportFormat> import_formats();

// Each in its file.
bool is_pprof(format::Bytes bytes);
Result<> import_pprof(const ImportTask& task, const CopyOutput& output, format::Diagnostics& diagnostics);
Result<> import_speedscope(const ImportTask& task, const CopyOutput& output,
                           format::Diagnostics& diagnostics);
Result<> import_cpu_profile(const ImportTask& task, const CopyOutput& output,
                            format::Diagnostics& diagnostics);
Result<> import_folded(const ImportTask& task, const CopyOutput& output, format::Diagnostics& diagnostics);

}  // namespace tacho::report
