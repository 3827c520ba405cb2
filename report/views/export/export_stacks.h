// Samples as the formats of tacho export take them: sums of every weight by event, labels and stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/decode/payload.h"
#include "report/profile/field_key.h"
#include "report/profile/profile.h"
#include "report/profile/stack_names.h"
#include "report/profile/weight_unit.h"
#include "report/samples/session.h"
#include "report/samples/sum_view.h"
#include "report/samples/tables.h"
#include "report/views/export/export_code.h"

namespace tacho::report {

// Which facts of samples keep rows apart.
struct ExportLabels {
  bool comm = false, pid = false, tid = false, cpu = false, cgroup = false;
  bool fields = false;  // keys, enums, flags and texts of payloads
};

struct ExportChoice {
  ExportLabels labels;
  ExportPlaces places = ExportPlaces::Functions;
};

struct ExportWeight {
  std::string name, unit;  // unit: "ns", "bytes", "samples", ...; safe to print
};
struct ExportEvent {
  std::size_t index = 0;  // in the session
  std::string name;       // safe to print
  // The first is the number of samples, the second the period, unless that is equal; then fields of payloads.
  std::vector<ExportWeight> weights;
  std::size_t main_weight = 0;  // the one that tacho report shows
};

// The facts of a thread and of samples that rows share.
struct ExportLabelSet {
  std::string_view comm;  // unchecked bytes
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t cpu = 0;     // plus 1; 0: not recorded
  std::uint64_t cgroup = 0;  // id; 0: not recorded
  std::uint32_t fields = 0;  // for ExportStacks::fields()
  bool operator==(const ExportLabelSet&) const = default;
};
struct ExportField {
  std::uint32_t name = 0, value = 0;  // of code().texts()
};

struct ExportRow {
  std::size_t event = 0;                  // in events()
  std::uint32_t labels = 0;               // in label_sets()
  std::uint32_t stack = 0;                // of code()
  std::span<const std::uint64_t> values;  // one for each weight of the event
};

class ExportStacks : public Sink, private SumView {
 public:
  // The session's events must be known (read_head()), and it must outlive this.
  ExportStacks(Session& session, const ExportChoice& choice);

  void read_stacks(const RunSession& run);

  // Then, each in the order of the first samples:
  const std::vector<ExportEvent>& events() const { return events_; }  // those with samples
  void each(const std::function<void(const ExportRow&)>& take) const;
  std::size_t rows() const { return rows_.size(); }
  const std::vector<ExportLabelSet>& label_sets() const { return label_sets_; }
  std::span<const ExportField> fields(std::uint32_t number) const { return field_lists_[number]; }
  std::string_view cgroup_path(std::uint64_t id) const {
    return cgroups_ == nullptr ? std::string_view("unknown") : cgroups_->find_path(id);
  }
  ExportCode& code() { return code_; }
  const ExportCode& code() const { return code_; }
  const ExportChoice& choice() const { return choice_; }

  bool has_samples() const { return samples_ > 0; }
  std::uint64_t first_time() const { return first_time_; }  // ns, of the recording clock
  std::uint64_t last_time() const { return last_time_; }
  // Lines about values that could not be read.
  std::vector<std::string> notes() const;

  // Sink:
  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override { return merge_by_; }
  SumView* sum_view() override { return is_serial_ ? nullptr : this; }
  Flow on_sample(const ResolvedSample& sample) override;

 private:
  struct Event {
    std::vector<const PayloadField*> weights;
    std::vector<FieldKey> labels;
    std::vector<std::uint32_t> label_names;  // texts
    const PayloadField* role_weight = nullptr;
    std::uint64_t samples = 0;
    bool has_other_periods = false;  // a period that is not 1
  };
  // The facts of a Profile's row, in order.
  enum Fact : std::size_t { kEvent, kCpu, kCgroup, kFields };

  SumShape shape() const override;
  RowId row_of(const SumGroup& group) override;
  void count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) override;
  void end(const SumTotals& totals) override;

  void find_fields();
  ProfileShape profile_shape();
  bool reads_samples() const;
  std::uint32_t fields_of(const ResolvedSample& sample);
  RowId row_of(const ResolvedSample& sample);
  void count_fields(RowId row, const ResolvedSample& sample);
  void name_new_rows();
  bool has_period(std::size_t index) const;
  // The field that the period is; null: none, or the period is no weight.
  const PayloadField* period_field(std::size_t index) const {
    return has_period(index) ? periods_.field_of(index) : nullptr;
  }
  bool has_event(std::string_view name) const;
  bool is_imported_count(const std::string& event) const;
  bool has_imported_count(const std::string& event) const;
  ExportEvent described(std::size_t index);
  void merge_rows();
  void add_values(RowId id, std::size_t index, std::span<std::uint64_t> values) const;
  std::uint32_t label_set_of(const ProfileRow& row, std::span<const std::uint64_t> facts);

  Session& session_;
  ExportChoice choice_;
  EventSchemas schemas_;
  PeriodFields periods_;
  std::vector<Event> by_index_;  // of the session's events
  MergeBy merge_by_;
  bool is_serial_ = true;
  const CgroupNames* cgroups_ = nullptr;
  std::uint64_t samples_ = 0, first_time_ = 0, last_time_ = 0;
  bool has_times_ = false;
  std::uint64_t unreadable_ = 0;  // values of weights

  ExportCode code_;
  IndexTable<> by_label_set_;
  std::map<std::vector<std::pair<std::uint32_t, std::uint32_t>>, std::uint32_t> by_fields_;
  std::vector<std::vector<ExportField>> field_lists_{{}};

  Profile profile_;
  IdVector<RowId, std::uint32_t> stacks_of_rows_;  // of the rows that are named
  IdVector<RowId, std::size_t> fields_of_rows_;    // index in field_sums_ of the sums of its event's fields
  std::vector<std::uint64_t> field_sums_;

  struct Row {
    std::uint32_t event = 0, labels = 0, stack = 0;
  };
  std::vector<ExportEvent> events_;
  std::vector<ExportLabelSet> label_sets_;
  std::vector<Row> rows_;
  std::vector<std::size_t> values_at_;  // by row, in values_
  std::vector<std::uint64_t> values_;
};

// A weight's unit as a word, which pprof scales: "nanoseconds", or "count" of samples and of events.
std::string_view unit_word(std::string_view unit, std::string_view event);
// A sum does not wrap around.
void add_saturated(std::uint64_t& sum, std::uint64_t more);

}  // namespace tacho::report
