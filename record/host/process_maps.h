// The mappings of a process, from /proc/PID/maps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "format/records/record.h"
#include "record/host/foreign_reader.h"

namespace tacho::record {

// Whether the files of a process can be read now: an execve that waits for a file system holds up readers of
// most of /proc/PID.
bool answers_now(ForeignReader* reader, const std::string& folder);

// The kernel writes a newline in a path as \012 in maps, and as itself in its own MMAP2 records.
std::string with_newlines(std::string_view path);

// The folder in /proc that has the maps, files and root of a process: "/proc/7", or if its first thread has
// ended, which leaves these empty, that of another thread, "/proc/9".
std::string folder_of_process(std::uint32_t process, const std::string& proc = "/proc");

// One line of /proc/PID/maps.
struct MapsLine {
  format::MmapRecord mapping;  // without pid, tid and build id; the filename points into the line
  bool is_executable = false;
};
std::optional<MapsLine> parse_maps_line(std::string_view line);

// Parses /proc/PID/maps line by line; other lines are skipped.
class MapsReader {
 public:
  explicit MapsReader(std::string_view text) : rest_(text) {}
  std::optional<MapsLine> next_line();

 private:
  std::string_view rest_;
};

// The mapped code of a process that runs, from /proc/PID/maps. `use` gets each mapping until it returns
// false.
void each_code_mapping(std::uint32_t process, ForeignReader& reader,
                       const std::function<bool(const format::MmapRecord&)>& use);

}  // namespace tacho::record
