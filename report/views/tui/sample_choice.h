// The samples behind the rows of the list: what chooses them, and readings of the capture that count them.
// Rows hold sums; a view of single samples reads the capture again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/profile/function_table.h"
#include "report/profile/named_rows.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"
#include "report/views/heatmap/heat_forms.h"
#include "report/views/heatmap/heat_map.h"

namespace tacho::report {

class ReportSink;

// A box of a heat map as a filter: `question` finds the field whose values it bounds.
struct BoxChoice {
  HeatQuestion question;
  HeatBox box;
  std::string text;  // "12.5 s to 12.6 s, lat_ns 1024..2047"
  bool operator==(const BoxChoice& other) const { return text == other.text; }
};

struct SampleChoice {
  std::optional<std::pair<std::size_t, std::size_t>> events;  // the first, and how many; nothing: all
  std::optional<std::uint32_t> tid;
  std::optional<std::string> comm;
  std::optional<std::uint32_t> socket;  // by the header's topology
  // Of functions: a sample is taken when its own one, or with `looks_at_callers` one of its call chain, meets
  // all.
  std::optional<std::string> module;  // path; empty: none is known
  bool has_kernel_only = false;
  std::string symbol;  // part of the name
  struct Named {
    std::string name, module;  // module: short name
    std::uint64_t start = 0;   // of one without a name
  };
  std::optional<Named> function;
  bool looks_at_callers = false;
  std::optional<BoxChoice> box;

  bool looks_at_functions() const { return module || has_kernel_only || !symbol.empty() || function; }
};

// Gives the samples of a choice to another sink.
class ChosenSamples : public Sink {
 public:
  // All must outlive it.
  ChosenSamples(Session& session, const SampleChoice& choice, Sink& to);
  // Finds the field of the choice's box; once the events are known.
  Result<> find();

  MergeBy merge_by() const override { return to_.merge_by(); }
  bool takes_non_samples() const override { return to_.takes_non_samples(); }
  Flow on_sample(const ResolvedSample& sample) override {
    return accepts(sample) ? to_.on_sample(sample) : Flow::Continue;
  }
  Flow on_non_sample(const NonSampleRecord& other) override { return to_.on_non_sample(other); }

 private:
  enum class Answer : std::uint8_t { Unasked, No, Yes };
  bool accepts(const ResolvedSample& sample);
  bool accepts_function(std::uint32_t function);
  bool accepts_stack(const Stack& stack);

  Session& session_;
  const SampleChoice& choice_;
  Sink& to_;
  HeatSource box_source_;
  FunctionTable functions_;
  FunctionStacks stacks_;
  std::vector<Answer> of_function_;             // by id
  ByNumber<Answer> of_stack_{Answer::Unasked};  // by number
};

// Reads the capture of the list again, and the one it is compared with.
class CaptureReadings {
 public:
  virtual ~CaptureReadings() = default;
  // Another session, not run yet, with the options of the list's one after `change`.
  virtual Result<Session> open(const std::function<void(SessionOptions&)>& change) = 0;
  // Runs it, and shows how far it is; a key may end it early. Whether all was read.
  virtual bool run(Session& session, Sink& sink) = 0;
  // The rows of the capture that this one is compared with, which have the facts for these sort keys. `path`:
  // empty: the one of before.
  virtual Result<const ReportSink*> base(const std::string& path, const std::string& sort) = 0;
  virtual const std::string& base_name() const = 0;
  // The capture's name, for messages.
  virtual const std::string& input() const = 0;
  // Other captures in the working directory, by name.
  virtual std::vector<std::string> captures() const = 0;
  // The next reading is of that capture.
  virtual Result<> change_to(const std::string& path) = 0;
};

}  // namespace tacho::report
