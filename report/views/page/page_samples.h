// The samples of a capture as a page carries them: columns of numbers, payloads included.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "report/aliases.h"
#include "report/decode/payload.h"
#include "report/output/field_sinks.h"
#include "report/profile/frame_names.h"
#include "report/profile/stack_events.h"
#include "report/redaction.h"
#include "report/samples/index_table.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"
#include "report/views/page/page_columns.h"
#include "report/views/page/page_tree.h"

namespace tacho::report {

// What a page shows in the place of names that others should not see.
class PageNames {
 public:
  // Both must outlive this.
  PageNames(const Redaction& redaction, const Aliases& aliases)
      : redaction_(&redaction), aliases_(&aliases) {}

  How how(Content content) const { return redaction_->of(content); }
  // Safe to print.
  std::string of(Content content, std::string_view text) const;
  std::string path(std::string_view path) const;
  std::string event(std::string_view name) const;
  std::string text_with_paths(std::string_view text) const;

 private:
  const Redaction* redaction_;
  const Aliases* aliases_;
};

class PageSamples : public Sink {
 public:
  // At most `most` samples are kept: the first ones. With Take::Stacks payloads and control groups are left
  // out. What is passed by reference must outlive this.
  enum class Take : std::uint8_t { Everything, Stacks };
  PageSamples(Session& session, const PageNames& names, PageParts& parts, std::uint64_t most, Take take);

  Needs needs() const override { return Needs::Names; }
  Places places() const override { return places_; }
  Reads reads() const override { return reads_; }
  Flow on_sample(const ResolvedSample& sample) override;

  // After the run: names what was not named yet.
  void finish();
  // By frame: its source line as a text, of the functions that weigh most; 0: none is known.
  std::vector<std::uint32_t> lines();
  std::uint64_t left_out() const { return left_out_; }
  bool empty() const { return samples_ == 0; }

  // The columns, by the places of nodes in a page's order. Once: they are moved out.
  std::vector<PageColumn> columns(const PageTree::Order& order);
  // The same as sums by event and node: "NUMBER.node", "NUMBER.weight", "NUMBER.samples" behind `prefix`.
  std::vector<PageColumn> sums(const PageTree::Order& order, const std::string& prefix) const;
  // "start", "left_out" and "events", whose names are numbers of texts.
  void describe(JsonFields& to);

 private:
  struct Row {                // samples of one event with one thread name and one call chain
    std::uint32_t event = 0;  // in the capture
    std::uint32_t comm = 0;   // in comms_
    const Stack* stack = nullptr;
    std::uint32_t place = 0;  // of samples without a stack
    std::uint64_t weight = 0, samples = 0;
  };
  struct Comm {
    std::uint32_t frame = 0;
    bool is_java = false;
  };
  struct FieldColumn {
    const PayloadField* field = nullptr;
    bool is_text = false;
    PageColumn values;
    std::string missing;  // a byte for each sample
    bool has_missing = false;
  };
  struct EventColumns {
    std::uint64_t samples = 0;
    bool is_known = false;  // its schema was looked for
    bool has_stacks = false;
    const PayloadField* value = nullptr;  // what its values are; null: it has none
    std::vector<FieldColumn> fields;
  };

  std::uint32_t row_of(const ResolvedSample& sample);
  std::uint32_t thread_of(const ResolvedSample& sample);
  void name_new_rows();
  EventColumns& event_of(const ResolvedSample& sample);
  void add_columns(EventColumns& event, const ResolvedSample& sample, std::uint32_t row,
                   std::uint64_t weight);
  void add_payload(EventColumns& event, const ResolvedSample& sample);
  std::string text_of(const PayloadField& field, const ResolvedSample& sample) const;
  std::string unit_of(std::size_t event);

  Session& session_;
  const PageNames& names_;
  PageParts& parts_;
  std::uint64_t most_;
  Take take_;
  StackEvents weights_;
  EventSchemas schemas_;
  PeriodFields periods_;
  std::vector<FramePlace> places_of_frames_;  // where each frame was met first
  FrameNames frames_;
  Places places_;
  Reads reads_;
  std::uint64_t left_out_ = 0;

  std::vector<Comm> comms_;
  std::unordered_map<const char*, std::uint32_t> comm_numbers_;  // equal names share their bytes
  IndexTable by_row_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> row_nodes_;  // of the rows that are named
  std::vector<std::uint32_t> chain_;      // scratch

  struct ThreadName {
    std::uint32_t pid = 0, tid = 0, comm = 0;  // comm: text
  };
  std::vector<ThreadName> threads_;
  std::unordered_map<std::uint64_t, std::uint32_t> thread_numbers_;
  std::vector<EventColumns> events_;

  // By sample: encoded at once, as a capture may have millions. A base has none.
  std::uint64_t samples_ = 0, first_time_ = 0;
  PageColumn times_{"time", ColumnForm::Differences}, cpus_{"cpu", ColumnForm::Numbers},
      of_threads_{"thread", ColumnForm::Numbers}, of_events_{"event", ColumnForm::Numbers},
      rows_of_samples_{"", ColumnForm::Numbers}, weights_of_samples_{"weight", ColumnForm::Wide},
      cgroups_{"cgroup", ColumnForm::Numbers};
  bool has_cgroups_ = false;
};

}  // namespace tacho::report
