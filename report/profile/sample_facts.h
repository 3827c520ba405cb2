// Facts of samples for sort keys, besides their addresses: numbers, and texts or bytes that are interned.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/decode/payload.h"
#include "report/decode/tracepoint_text.h"
#include "report/profile/record_facts.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"

namespace tacho::report {

class FunctionTable;

// What the rows of a report count.
enum class ReportMode : std::uint8_t {
  Samples,
  Branches,  // the branches recorded with each sample
  Memory,    // samples, by the memory they accessed
};

// One branch of a sample, set before it is added to a profile.
struct TakenBranch {
  LocationId from{}, to{};
  LocationId own{};         // of the sample
  std::uint64_t flags = 0;  // as format::BranchEntry::flags
  char level = '.';         // of the sample
};

// Options about how facts are printed, and which are equal.
struct FactOptions {
  Names names = Names::Safe;
  bool is_raw_trace = false;                 // --raw-trace: fields of tracepoints as numbers
  bool has_hex_longs = true;                 // as perf prints unsigned long fields that are keys
  bool has_nanoseconds = false;              // --ns
  std::uint64_t time_quantum = 100'000'000;  // ns: times in the same quantum are equal
  bool is_verbose = false;                   // -v
  // "(no address)" and no time for a sample without them, where perf prints zeros and 2^64 ns
  bool marks_missing = true;
  ReportMode mode = ReportMode::Samples;
  bool widens_unknown = true;  // modules of nameless functions have a column of 16 at least
};

class SampleFacts {
 public:
  // The session must outlive this. `records`: the records before this was made.
  SampleFacts(Session& session, FactOptions options, RecordFacts records = {});

  const FactOptions& options() const { return options_; }
  Session& session() const { return *session_; }
  // The schema of an event's payload or record; null: the capture has none.
  const PayloadSchema* schema_of(std::size_t event) { return schemas_.schema_of(event); }
  EventSchemas& schemas() { return schemas_; }

  // The number of a tracepoint's text; for other events, of "N/A".
  std::uint64_t trace(const ResolvedSample& sample);
  // The number of a field's bytes; 0: the sample has none. The text of a number is made for its first bytes.
  std::uint64_t field(const ResolvedSample& sample, const PayloadField& field, bool is_raw);
  // The number of the path of the sample's cgroup, and of its namespace, from the records that take_record()
  // got.
  std::uint64_t cgroup(const ResolvedSample& sample);
  std::uint64_t cgroup_space(const ResolvedSample& sample);
  // The number of threads that run now, from the records that take_record() got.
  std::uint32_t parallelism() const { return records_.parallelism_.now(); }
  void take_record(const format::Record& record) { records_.take_record(record); }
  // Hashes several words to one, for identities.
  const RowHash one_of_several{};
  // The current branch, for the keys of branches.
  TakenBranch branch;
  // Resolves addresses that are facts (branch ends, data addresses); set when rows are made.
  FunctionTable* functions = nullptr;
  // Reports what texts lack because the system refused something. Call it once, at the end.
  void report(format::Diagnostics& diagnostics) const {
    if (traces_) traces_->report(diagnostics);
  }
  // The text, or the bytes, of a number. Stays valid.
  std::string_view text(std::uint64_t number) const { return items_[number].shown; }
  std::string_view bytes(std::uint64_t number) const { return items_[number].bytes; }

  // The socket of a CPU by the header's topology; nullopt: unknown.
  std::optional<std::uint32_t> socket_of(std::uint32_t cpu) const;

 private:
  struct Item {
    std::string_view bytes;  // the bytes that identify it
    std::string shown;
  };
  std::string trace_text(const ResolvedSample& sample);
  std::string raw_trace_text(const ResolvedSample& sample);
  std::string field_text(const ResolvedSample& sample, const PayloadField& field, bool is_raw);
  template <class MakeText>
  std::uint64_t number_of(std::string key, std::size_t bytes_at, MakeText&& make_text);
  std::uint64_t number_of_text(char kind, const std::string& text);

  Session* session_;
  FactOptions options_;
  EventSchemas schemas_;
  RecordFacts records_;
  std::optional<TracepointText> traces_;
  std::deque<Item> items_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace tacho::report
