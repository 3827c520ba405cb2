// Makes the tables of a capture: the sandboxed child reads it, the parent writes files.
#pragma once

#include <cstdint>
#include <string>

#include "report/command.h"
#include "report/tables/capture_tables.h"
#include "report/tables/table_stream.h"

namespace tacho::report {

// Refuse: a damaged capture is an error. Tell: its samples are taken, and lines on stderr say what is lost.
enum class DamagedCaptures : std::uint8_t { Tell, Refuse };

struct TablesRequest {
  CaptureLabels labels;
  DamagedCaptures damaged = DamagedCaptures::Tell;
};
// The capture is ReadingOptions::session.input, which must be a file; `files.capture_id` is that of `id`.
Result<cli::ExitStatus> make_tables(ReadingOptions reading, const TablesRequest& request, const ContentId& id,
                                    const TableFiles& files);

// A folder for the duration of a command.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create();
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tacho::report
