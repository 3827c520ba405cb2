// What events counted in each thread, as `report -T` lists them: the sums of READ records (record -s).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/container/features.h"
#include "report/output/text_output.h"
#include "report/samples/session.h"

namespace tacho::report {

enum class ValueForm : std::uint8_t {
  Table,  // a row for each thread, a column for each event
  Raw,    // one value after the other, with the event's number; as perf without line ends
};

class ThreadValues {
 public:
  void add(const OtherEvent& other);  // others than READ are passed over
  void write(TextOutput& out, const Session& session, Names names, ValueForm form) const;

 private:
  void write_table(TextOutput& out, std::span<const std::string> events) const;
  void write_raw(TextOutput& out, std::span<const std::string> events) const;
  struct Row {
    std::uint32_t pid = 0, tid = 0;
    std::vector<std::uint64_t> values;  // by the event's place in events_
  };
  std::vector<std::size_t> events_;  // in the order of their first values
  std::vector<Row> rows_;            // likewise
  // Their places: a capture can hold as many threads and events as it has records.
  std::unordered_map<std::size_t, std::size_t> place_of_;  // by event
  std::unordered_map<std::uint64_t, std::size_t> row_of_;  // by process and thread
};

}  // namespace tacho::report
