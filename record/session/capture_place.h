// Where a capture is written: the checks of the place before it, and what is removed after a failure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "format/base/result.h"
#include "record/options/options.h"
#include "record/output/capture_output.h"

namespace tacho::record {

// The folder of the capture.
std::string folder_of_capture(const RecordOptions& options);
// Checks --min-free.
Result<> check_disk(const RecordOptions& options);
// Checks that a capture can be made at the path, and --min-free.
Result<> check_place(const RecordOptions& options);
// Removes the capture if its start leaves no room for samples (--max-size).
Result<> check_size(const CaptureOutput& output, const RecordOptions& options);

// Removes a capture that has no sample.
void remove_output(const RecordOptions& options);

// The file at a path: (device, inode), or nothing.
using FileIdentity = std::optional<std::pair<dev_t, ino_t>>;
FileIdentity identity_of(const std::string& path);
// Removes a capture that failed before its first sample. If there was an older file of this name (`before`),
// the error says how it is named now.
Error without_unusable_file(Error failure, const FileIdentity& before, const std::string& output);

}  // namespace tacho::record
