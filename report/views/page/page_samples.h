// A page: its data, samples and their payloads as columns of numbers, and its HTML file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "format/base/seeded_hash.h"
#include "format/base/worker_pool.h"
#include "report/decode/payload.h"
#include "report/output/field_sinks.h"
#include "report/output/packed_data.h"
#include "report/output/text_output.h"
#include "report/profile/function_names.h"
#include "report/profile/function_table.h"
#include "report/profile/profile.h"
#include "report/profile/weight.h"
#include "report/redaction.h"
#include "report/samples/session.h"
#include "report/samples/sink.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Nothing here is recursive: a stack may be 100,000 frames deep.

// Interned texts that are safe to print. Number 0 is the empty text.
class PageTexts {
 public:
  PageTexts() { number_of(""); }
  std::uint32_t number_of(std::string_view text);
  std::string_view operator[](std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }
  std::size_t bytes() const { return store_.size(); }

 private:
  TextStore store_;
  std::unordered_map<std::string_view, std::uint32_t, format::SeededTextHash> numbers_;
  std::vector<std::string_view> texts_;
};

// page/flame.js has the letters of the kinds.
struct PageFrame {
  std::uint32_t name = 0, module = 0;  // texts; no module: 0
  FrameKind kind = FrameKind::User;
  std::uint32_t function = 0;  // of PageParts::functions, plus 1; 0: no function
  bool operator==(const PageFrame&) const = default;
};

// Call chains as a prefix tree: a node for each frame below its caller's node. Node 0 is the root.
class PageTree {
 public:
  PageTree() { nodes_.push_back({0, frame_of({0, 0, FrameKind::All})}); }
  std::uint32_t frame_of(const PageFrame& frame);
  // The node of a chain, root first, by numbers of frames.
  std::uint32_t node_of(std::span<const std::uint32_t> chain);
  // Each frame becomes frames[frame], and nodes that are then equal are merged. Returns by node its new
  // number.
  std::vector<std::uint32_t> replace_frames(std::span<const std::uint32_t> frames);
  // After all frames have numbers: overloads get their parameters.
  void show_parameters(FunctionNames& functions, PageTexts& texts);

  struct Node {
    std::uint32_t parent = 0, frame = 0;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<PageFrame>& frames() const { return frames_; }

  // The nodes in the order of a page: siblings by name, callees before their caller, so that a subtree is a
  // range.
  struct Order {
    std::vector<std::uint32_t> nodes;      // by position
    std::vector<std::uint32_t> positions;  // by node
  };
  Order order(const PageTexts& texts) const;

 private:
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame);

  IndexTable<> by_frame_, by_node_;
  std::vector<PageFrame> frames_;
  std::vector<Node> nodes_;
  // Nodes of the last chain, root first: most chains share a prefix with it.
  std::vector<std::uint32_t> path_;
};

// Tables that all captures of a page share.
struct PageParts {
  PageTexts texts;
  FunctionNames functions{FunctionNames::Texts::Copied};
  PageTree tree;
};

// Names in a page: as they are, hidden, or as pseudonyms.
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
  enum class Roots : std::uint8_t { Comm, None };  // whether stacks begin with the thread's name
  PageSamples(Session& session, const PageNames& names, PageParts& parts, std::uint64_t most, Take take,
              Roots roots);

  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override { return merge_by_; }
  Flow on_sample(const ResolvedSample& sample) override;

  // Names the rows that have no node yet. Call it after the run.
  void name_new_rows();
  // By frame: the number of its source line's text, for the heaviest functions; 0: not known.
  std::vector<std::uint32_t> lines();
  // By frame: whether it is in a call chain of this capture.
  std::vector<bool> used_frames() const;
  // After PageTree::replace_frames(), with its result.
  void move_nodes(std::span<const std::uint32_t> moved) {
    for (std::uint32_t& node : row_nodes_) node = moved[node];
  }
  std::uint64_t left_out() const { return left_out_; }
  bool empty() const { return samples_ == 0; }

  // The columns, with nodes numbered in the page's order. Called once: they are moved out.
  std::vector<PackedColumn> columns(const PageTree::Order& order);
  // The same as sums by event and node: "NUMBER.node", "NUMBER.weight", "NUMBER.samples" after `prefix`.
  std::vector<PackedColumn> sums(const PageTree::Order& order, const std::string& prefix) const;
  // "start", "left_out" and "events", whose names are numbers of texts.
  void describe(JsonFields& to);

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
  FrameNames frames_;
  MergeBy merge_by_;
  bool reads_payloads_;
  std::uint64_t left_out_ = 0;

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
  std::uint64_t samples_ = 0, first_time_ = 0;
  PackedColumn times_{"time", ColumnForm::Differences}, cpus_{"cpu", ColumnForm::Numbers},
      of_threads_{"thread", ColumnForm::Numbers}, of_events_{"event", ColumnForm::Numbers},
      rows_of_samples_{"", ColumnForm::Numbers}, weights_of_samples_{"weight", ColumnForm::Wide},
      cgroups_{"cgroup", ColumnForm::Numbers};
  bool has_cgroups_ = false;
};

// Writes a page as one HTML file: markup, style, script and data, and a Content-Security-Policy that allows
// nothing else. `head`: the JSON object that the page reads. `columns`: of the samples; the columns of
// texts, frames and nodes are written before them.
Result<> write_page(TextOutput& out, const std::string& head, const PageParts& parts,
                    const PageTree::Order& order, std::vector<PackedColumn> columns,
                    format::WorkerPool& pool);

}  // namespace tacho::report
