// What sort keys read of samples beside their places: numbers as they are, texts and bytes kept once and
// numbered.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/records/record.h"
#include "report/decode/payload.h"
#include "report/decode/tracepoint_text.h"
#include "report/profile/profile.h"
#include "report/samples/index_table.h"
#include "report/samples/session.h"

namespace tacho::report {

// How many threads of what was recorded ran at once, by records of context switches.

class Parallelism {
 public:
  // `processors`: that the host had; nothing: not known.
  explicit Parallelism(std::optional<std::uint32_t> processors = std::nullopt) : processors_(processors) {}
  // The same, where it is known later.
  void limit(std::optional<std::uint32_t> processors) { processors_ = processors; }

  // A record that is no sample, in its place among them.
  void take(const format::Record& record);
  // At least 1, at most the processors.
  std::uint32_t now() const;

 private:
  // A command begins while it runs, with no switch to it. Who was recorded by its number may have been off
  // the processor when the recording began, so this may be off by one for as long as it runs, as in perf.
  std::int64_t running_ = 1;
  std::optional<std::uint32_t> processors_;
};

class FunctionTable;

// What the rows of a report count.
enum class ReportMode : std::uint8_t {
  Samples,
  Branches,  // the branches that the processor kept with each sample
  Memory,    // samples, by the memory that they touched
};

// One branch of a sample: set before each one that is counted.
struct TakenBranch {
  std::uint32_t from = 0, to = 0;  // numbers of locations
  std::uint32_t own = 0;           // the sample's own
  std::uint64_t flags = 0;         // as format::BranchEntry::flags
  char level = '.';                // of the sample
};

// How facts are shown, and which are the same.
struct FactOptions {
  Names names = Names::Safe;
  bool is_raw_trace = false;                 // --raw-trace: fields of tracepoints as numbers
  bool has_hex_longs = true;                 // as perf shows unsigned long fields that stand alone
  bool has_nanoseconds = false;              // --ns
  std::uint64_t time_quantum = 100'000'000;  // ns: times in the same one are the same
  bool is_verbose = false;                   // -v
  bool tells_no_address = true;              // "(no address)" of a sample without one, where perf has zeros
  ReportMode mode = ReportMode::Samples;
  bool widens_unknown = true;  // modules of nameless functions have a column of 16 at least
};

// What records other than samples said so far, for the samples behind them.
class RecordFacts {
 public:
  // A record that is no sample, in its place among them.
  void take(const format::Record& record);

 private:
  friend class SampleFacts;
  struct Cgroup {
    std::string path;
    std::uint64_t number = 0;  // of the path; 0: no sample has asked yet
  };
  Parallelism parallelism_;
  std::unordered_map<std::uint64_t, Cgroup> cgroups_;             // by id
  std::unordered_map<std::uint32_t, std::string> cgroup_spaces_;  // by tid
};

class SampleFacts {
 public:
  // The session must outlive it. `records`: what was recorded before there were facts.
  SampleFacts(Session& session, FactOptions options, RecordFacts records = {});

  const FactOptions& options() const { return options_; }
  Session& session() const { return *session_; }
  // Of an event's payload or record; null when the capture describes none.
  const PayloadSchema* schema_of(std::size_t event) { return schemas_.of(event); }
  EventSchemas& schemas() { return schemas_; }

  // The number of a tracepoint's text; of all other events' samples that of "N/A".
  std::uint64_t trace(const ResolvedSample& sample);
  // The number of a field's bytes; 0: the sample has none. What is shown of them is made with the first.
  std::uint64_t field(const ResolvedSample& sample, const PayloadField& field, bool is_raw);
  // The number of the path of the sample's control group, and of its namespace; what take() was given
  // decides.
  std::uint64_t cgroup(const ResolvedSample& sample);
  std::uint64_t cgroup_space(const ResolvedSample& sample);
  // How many threads run now; what take() was given decides.
  std::uint32_t parallelism() const { return records_.parallelism_.now(); }
  void take(const format::Record& record) { records_.take(record); }
  // Several words as one, for identities.
  const RowHash one_of_several{};
  // The branch at hand, for the keys of branches.
  TakenBranch branch;
  // What names the places that are facts (the ends of branches, data addresses): there when rows are made.
  FunctionTable* functions = nullptr;
  // What the texts lack because the system refused something; once, at the end.
  void report(format::Diagnostics& diagnostics) const {
    if (traces_) traces_->report(diagnostics);
  }
  // The text or the bytes of a number that was given out. Stay valid.
  std::string_view text(std::uint64_t number) const { return items_[number].shown; }
  std::string_view bytes(std::uint64_t number) const { return items_[number].bytes; }

  // Of a processor, as the header's topology says; nothing when it does not.
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

  Session* session_;
  FactOptions options_;
  EventSchemas schemas_;
  RecordFacts records_;
  std::optional<TracepointText> traces_;
  std::deque<Item> items_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace tacho::report
