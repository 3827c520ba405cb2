// The samples of a page and their payloads, as columns of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/compare/function_match.h"
#include "report/decode/payload.h"
#include "report/output/field_sinks.h"
#include "report/output/packed_data.h"
#include "report/profile/event_blocks.h"
#include "report/profile/frame_address.h"
#include "report/profile/frame_names.h"
#include "report/profile/profile.h"
#include "report/profile/stack_events.h"
#include "report/profile/weight_unit.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"
#include "report/samples/tables.h"
#include "report/views/page/page_names.h"
#include "report/views/page/page_tree.h"

namespace tacho::report {

// The number of a function in the page's tree.
std::uint32_t number_of_frame(const symbolize::Frame& frame, PageParts& parts, const PageNames& names);

// A clock or a counter: its samples say where CPU time goes.
bool is_of_cpu(const format::EventAttr& attr);

class PageSamples : public Sink {
 public:
  // At most `most` samples are kept: the first ones. With Take::Stacks payloads and control groups are left
  // out; with Take::Addresses each address has a location. What is passed by reference must outlive this.
  enum class Take : std::uint8_t { Everything, Addresses, Stacks };
  enum class Roots : std::uint8_t { Comm, None };  // whether stacks begin with the thread's name
  PageSamples(Session& session, const PageNames& names, PageParts& parts, std::uint64_t most, Take take,
              Roots roots);

  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override { return merge_by_; }
  Flow on_sample(const ResolvedSample& sample) override;

  // Names the rows that have no node yet. Call it after the run.
  void name_new_rows();
  // Looks up the source lines of the heaviest functions. Call it after the report of missing symbols: missing
  // lines are not reported.
  void look_up_lines();
  // By node of the tree: the samples of this capture in it and its callees.
  std::vector<double> node_weights() const;
  const ModuleBuilds& builds() const { return builds_; }
  // After PageTree::replace_frames(), with its result.
  void move_nodes(std::span<const std::uint32_t> moved) {
    for (std::uint32_t& node : row_nodes_) node = moved[node];
  }
  std::uint64_t left_out() const { return left_out_; }
  bool empty() const { return samples_ == 0; }
  std::uint64_t size() const { return samples_; }
  std::uint64_t first_time() const { return first_time_; }  // ns, of the recording clock
  std::uint64_t last_time() const { return last_time_; }
  // The number of a thread in the page, which gets it if it has no sample.
  std::uint32_t thread_number(std::uint32_t pid, std::uint32_t tid, std::string_view comm);

  // The columns, with nodes numbered in the page's order. Called once: they are moved out.
  std::vector<PackedColumn> columns(const PageTree::Order& order);
  // The same as sums by event and node: "NUMBER.node", "NUMBER.weight", "NUMBER.samples" after `prefix`.
  std::vector<PackedColumn> sums(const PageTree::Order& order, const std::string& prefix) const;
  // "start", "left_out" and "events", whose names are numbers of texts.
  void describe_samples(JsonFields& to);

 private:
  struct FieldColumn {
    const PayloadField* field = nullptr;
    bool is_text = false;
    PackedColumn values, missing;  // missing: 1 for a sample without the field
    bool has_missing = false;
  };
  struct EventColumns {
    std::uint64_t samples = 0;
    bool is_known = false;  // its schema was looked up
    bool has_stacks = false;
    const PayloadField* value = nullptr;  // its value; null: it has none
    std::vector<FieldColumn> fields;
  };

  RowId row_of(const ResolvedSample& sample);
  std::uint32_t thread_of(const ResolvedSample& sample);
  EventColumns& event_of(const ResolvedSample& sample);
  void add_columns(EventColumns& event, const ResolvedSample& sample, RowId row, std::uint64_t weight);
  void add_payload(EventColumns& event, const ResolvedSample& sample);
  // The node of each sample: "stack" numbers the nodes that samples end in, "stack.node" has these, those of
  // the most samples first. The most frequent numbers are the smallest, which pack better.
  std::vector<PackedColumn> nodes_of_samples(const PageTree::Order& order) const;
  std::string text_of(const PayloadField& field, const ResolvedSample& sample) const;
  std::string unit_of(std::size_t event);

  Session& session_;
  const PageNames& names_;
  PageParts& parts_;
  std::uint64_t most_;
  Take take_;
  Roots roots_;
  StackEvents weights_;
  EventSchemas schemas_;
  PeriodFields periods_;
  FrameAddresses addresses_of_frames_;
  ModuleBuilds builds_;
  FrameNames frames_;
  MergeBy merge_by_;
  bool reads_payloads_;
  std::uint64_t left_out_ = 0;
  std::vector<std::uint32_t> lines_;  // by frame: the number of its source line's text; 0: not known

  std::unordered_map<const char*, std::uint32_t> comms_;  // frames; equal names share their bytes
  // Of one event with one thread name and one call chain. The facts are the event's index; samples without a
  // chain differ by their location.
  Profile rows_{{EventBlock{}}, ProfileShape{}};
  IdVector<RowId, std::uint32_t> row_nodes_;  // of the rows that are named
  std::vector<std::uint32_t> chain_;          // scratch

  struct ThreadName {
    std::uint32_t pid = 0, tid = 0, comm = 0;  // comm: text
  };
  std::vector<ThreadName> threads_;
  std::unordered_map<std::uint64_t, std::uint32_t> thread_numbers_;
  std::vector<EventColumns> events_;

  // Columns with an entry for each sample, encoded at once to save memory. Empty with Take::Stacks.
  std::uint64_t samples_ = 0, first_time_ = 0, last_time_ = 0;
  PackedColumn times_{"time", ColumnForm::Differences}, cpus_{"cpu", ColumnForm::Numbers},
      of_threads_{"thread", ColumnForm::Numbers}, of_events_{"event", ColumnForm::Numbers},
      rows_of_samples_{"", ColumnForm::Numbers}, weights_of_samples_{"weight", ColumnForm::Wide},
      cgroups_{"cgroup", ColumnForm::Numbers};
  bool has_cgroups_ = false;
};

}  // namespace tacho::report
