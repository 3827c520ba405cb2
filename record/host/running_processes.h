// What ran before we started: FORK, COMM and MMAP2 records from /proc, as the kernel would have written them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/build_id.h"
#include "format/byte_writer.h"
#include "format/record.h"
#include "record/host/file_heads.h"

namespace tacho::record {

// One line of /proc/PID/maps.
struct MapsLine {
  format::MmapRecord mapping;  // all but pid, tid and build id; the filename points into the line
  bool is_executable = false;
};
std::optional<MapsLine> parse_maps_line(std::string_view line);

// What is told beside names and mappings of code.
struct ProcessRecords {
  bool data_mappings = false;  // also what is mapped and never run
  bool namespaces = false;
  bool build_ids = true;
};

class RunningProcesses {
 public:
  // `proc`: the directory, "/proc" outside of tests. `trailer`: bytes of sample_id_all in every record.
  RunningProcesses(std::string proc, std::size_t trailer, ProcessRecords records = {})
      : proc_(std::move(proc)), trailer_(trailer), records_(records) {}

  // Every process there is, ascending.
  std::vector<int> all() const;
  enum class Tell : std::uint8_t { All, AllButMappings };
  // Appends the records of one process and its threads; nothing when it has ended meanwhile.
  void describe(int process, format::ByteWriter& out, Tell tell = Tell::All);

 private:
  struct FileKey {
    std::uint32_t major, minor;
    std::uint64_t inode;
    auto operator<=>(const FileKey&) const = default;
  };
  void describe_mappings(int process, format::ByteWriter& out);
  void describe_namespaces(int process, format::ByteWriter& out) const;
  format::BuildId build_id_of(int process, const format::MmapRecord& mapping);

  std::string proc_;
  std::size_t trailer_;
  ProcessRecords records_;
  FileHeads heads_;
  std::map<FileKey, format::BuildId> build_ids_;  // a file is read once, however many processes map it
};

}  // namespace tacho::record
