// The threads of a capture below their parents (--tasks), and the final mappings of each process (--mmaps):
// perf's text, in perf's order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/base/result.h"
#include "format/base/seeded_hash.h"
#include "report/command.h"
#include "report/output/text_output.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"

namespace tacho::report {

class TaskList : public Sink {
 public:
  enum class Maps : std::uint8_t { No, Yes };
  explicit TaskList(Maps maps);

  Flow on_sample(const ResolvedSample&) override { return Flow::Continue; }
  Flow on_non_sample(const NonSampleRecord& other) override;

  // The error if there were too many mappings.
  const std::optional<Error>& failure() const { return failure_; }
  void write(TextOutput& out, Names names) const;

 private:
  struct Map {
    std::uint64_t start = 0, end = 0, page_offset = 0, inode = 0;
    std::uint32_t protection = 0, flags = 0;  // PROT_*, MAP_*
    std::shared_ptr<const std::string> name;
  };
  using MapsByStart = std::map<std::uint64_t, Map>;
  struct Task {
    std::uint32_t pid = 0, tid = 0;
    std::int64_t parent = -1;  // a tid
    std::string comm;
    bool is_named = false;
    std::shared_ptr<MapsByStart> maps = {};  // shared by processes until one of them changes its own
  };

  Task& find_or_make(std::uint32_t pid, std::uint32_t tid);
  Task& make(std::uint32_t pid, std::uint32_t tid);
  void take_record(const format::CommRecord& record);
  void take_record(const format::TaskRecord& record, bool inherits_maps);
  void take_record(const format::MmapRecord& record, bool is_kernel);
  void insert(MapsByStart& maps, Map map);
  std::vector<const Task*> in_perfs_order() const;
  void write_task(TextOutput& out, const Task& task, std::size_t level, Names names) const;

  Maps wants_maps_;
  std::unordered_map<std::uint32_t, Task, format::SeededHash> tasks_;  // by tid
  std::uint64_t stored_ = 0;                                           // mappings, with copies
  std::optional<Error> failure_;
};

// Reads the session and writes the list.
Result<Shown> show_tasks(Session& session, TextOutput& out, TaskList::Maps maps, Names names);

enum class ValueForm : std::uint8_t {
  Table,  // a row for each thread, a column for each event
  Raw,    // one value after another, with the event's number; without line ends, as perf
};

// Counts of events by thread, as `report -T` lists them: the sums of READ records (record -s).
class ThreadValues {
 public:
  void add_record(const NonSampleRecord& other);  // ignores records other than READ
  void write(TextOutput& out, const Session& session, Names names, ValueForm form) const;

 private:
  void write_table(TextOutput& out, std::span<const std::string> events) const;
  void write_raw(TextOutput& out, std::span<const std::string> events) const;
  struct Row {
    std::uint32_t pid = 0, tid = 0;
    std::map<std::size_t, std::uint64_t> values{};  // by the event's index in events_
    std::uint64_t value(std::size_t column) const {
      const auto found = values.find(column);
      return found == values.end() ? 0 : found->second;
    }
  };
  std::vector<std::size_t> events_;  // in the order of their first values
  std::vector<Row> rows_;            // in the order of their first values
  // Indices: a capture can have as many threads and events as records.
  std::unordered_map<std::size_t, std::size_t> column_of_;  // by event
  std::unordered_map<std::uint64_t, std::size_t> row_of_;   // by process and thread
};

}  // namespace tacho::report
