// Processes that run at the start of a recording: mmap, comm and fork records for them, and facts that no
// perf record holds (namespaces, container).
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/build_id.h"
#include "format/records/record.h"
#include "record/host/foreign_reader.h"

namespace tacho::record {

class ProcessTable {
 public:
  // `reader`: for processes that do not answer, which are left out. `proc`: the directory, "/proc" outside of
  // tests.
  explicit ProcessTable(std::shared_ptr<ForeignReader> reader, std::string proc = "/proc");
  // Adds a line for the process; nothing if it has ended, or there are too many.
  void add_process(int process);
  // Lines of fields separated by tabs; the first one has their names (docs/capture-format.md, attachment
  // "processes").
  const std::string& text() const { return text_; }

 private:
  std::shared_ptr<ForeignReader> reader_;
  std::string proc_, text_;
  std::size_t count_ = 0;
};

// The pids of a process in its pid namespaces, outermost first: "812,7,1" from the field NSpid of
// /proc/PID/status; empty: there is no such field (before Linux 4.1).
std::string numbers_in_namespaces(std::string_view status);
// The start time in ns after boot, from /proc/PID/stat; 0: it cannot be read.
unsigned long long start_of(std::string_view stat, long ticks_a_second);
// Its path in the cgroup hierarchy of perf events, from /proc/PID/cgroup.
std::string cgroup_path(std::string_view lines);

// What is described besides names of threads and code mappings.
struct ProcessRecords {
  bool data_mappings = false;  // also mappings without execute permission
  bool namespaces = false;
  bool build_ids = true;
};

// Processes that ran before the recording: FORK, COMM and MMAP2 records from /proc, as the kernel would have
// written them.
class RunningProcesses {
 public:
  // `proc`: the directory, "/proc" outside of tests. `trailer`: bytes of sample_id_all in every record.
  // `reader`: of mappings and build ids; null: describe_process() leaves them out.
  RunningProcesses(std::string proc, std::size_t trailer, std::shared_ptr<ForeignReader> reader = {},
                   ProcessRecords records = {})
      : proc_(std::move(proc)), trailer_(trailer), reader_(std::move(reader)), records_(records) {}

  // All processes, ascending.
  std::vector<int> all() const;
  // The pids of all processes: state R (running or runnable) first, then by CPU time divided by the time
  // since the process's start.
  std::vector<int> busiest_first() const;
  enum class Describe : std::uint8_t { All, AllButMappings };
  // Appends the records of one process and its threads; nothing if it has ended.
  void describe_process(int process, format::ByteWriter& out, Describe describe = Describe::All);

 private:
  struct FileKey {
    std::uint32_t major, minor;
    std::uint64_t inode;
    auto operator<=>(const FileKey&) const = default;
  };
  void describe_mappings(int process, format::ByteWriter& out);
  void describe_namespaces(int process, format::ByteWriter& out) const;
  // `folder`: of the process.
  format::BuildId build_id_of(const std::string& folder, const format::MmapRecord& mapping);

  std::string proc_;
  std::size_t trailer_;
  std::shared_ptr<ForeignReader> reader_;
  ProcessRecords records_;
  std::map<FileKey, format::BuildId> build_ids_;  // a file is read once, even if many processes map it
};

// CPU time of the calling thread.
std::chrono::nanoseconds thread_cpu_time();

}  // namespace tacho::record
