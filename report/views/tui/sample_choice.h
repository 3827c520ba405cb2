// Filters for the samples of the list's rows, and further readings of the capture with these filters: rows
// are sums, so a view of single samples must read the capture again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/compare/comparison.h"
#include "report/profile/function_table.h"
#include "report/profile/named_rows.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"
#include "report/views/heatmap/heat_forms.h"
#include "report/views/heatmap/heat_map.h"

namespace tacho::report {

class ReportTable;

// A box of a heat map as a filter. `request`: the field of its values.
struct BoxChoice {
  HeatRequest request;
  HeatBox box;
  std::string text;  // "12.5 s to 12.6 s, lat_ns 1024..2047"
  bool operator==(const BoxChoice& other) const { return text == other.text; }
};

// The path by which a choice names a module; empty: unknown module.
inline std::string_view path_of(const symbolize::Module* module) {
  return module == nullptr ? std::string_view() : module->path;
}
inline bool is_kernel(const symbolize::Module* module) {
  using symbolize::ModuleKind;
  return module != nullptr && (module->kind == ModuleKind::Kernel || module->kind == ModuleKind::GuestKernel);
}

struct SampleChoice {
  std::optional<std::pair<std::size_t, std::size_t>> events;  // index of the first, count; nullopt: all
  std::optional<std::uint32_t> tid, pid;
  std::optional<std::string> comm;
  std::optional<std::uint32_t> socket;  // from the topology in the header
  // Conditions on functions: one function of the sample must meet all of them. With `looks_at_callers` any of
  // its call chain, otherwise its own.
  std::optional<std::string> module;  // path; empty: unknown module
  bool has_kernel_only = false;
  std::string symbol;  // part of the name
  struct Named {
    std::string name, module;  // module: short name
    std::uint64_t start = 0;   // for functions without a name
  };
  std::optional<Named> function;
  bool looks_at_callers = false;
  std::optional<BoxChoice> box;

  bool looks_at_functions() const { return module || has_kernel_only || !symbol.empty() || function; }
};

// Sink that passes the samples of a choice on.
class ChosenSamples : public Sink {
 public:
  // All must outlive it.
  ChosenSamples(Session& session, const SampleChoice& choice, Sink& to);
  // Finds the field of the choice's box. Call it when the events are known.
  Result<> find_box();

  MergeBy merge_by() const override { return to_.merge_by(); }
  bool takes_non_samples() const override { return to_.takes_non_samples(); }
  Flow on_sample(const ResolvedSample& sample) override {
    return accepts(sample) ? to_.on_sample(sample) : Flow::Continue;
  }
  Flow on_non_sample(const NonSampleRecord& other) override { return to_.on_non_sample(other); }

 private:
  enum class Answer : std::uint8_t { Unknown, No, Yes };
  bool accepts(const ResolvedSample& sample);
  bool accepts_function(FunctionId function);
  bool accepts_stack(const Stack& stack);

  Session& session_;
  const SampleChoice& choice_;
  Sink& to_;
  HeatSource box_source_;
  FunctionTable functions_;
  FunctionStacks stacks_;
  IdMap<FunctionId, Answer> of_function_{Answer::Unknown};
  IdMap<StackId, Answer> of_stack_{Answer::Unknown};
};

// Further readings of the list's capture, and of the one it is compared with.
class CaptureReadings {
 public:
  virtual ~CaptureReadings() = default;
  // A new session with the list's options, changed by `change`.
  virtual Result<Session> open_session(const std::function<void(SessionOptions&)>& change) = 0;
  // Runs it and shows the progress. False: a key stopped it.
  virtual bool run_session(Session& session, Sink& sink) = 0;
  // The rows of the capture to compare with, with the facts for these sort keys. `path` empty: the one
  // compared with before.
  virtual Result<const ReportTable*> base(const std::string& path, const std::string& sort) = 0;
  virtual const std::string& base_name() const = 0;
  // Functions that were renamed between that capture and the list's. It is also an error if a
  // key stopped the reading.
  virtual Result<const RenamedFunctions*> renames() = 0;
  // The capture's name, for messages.
  virtual const std::string& input() const = 0;
  // Other captures in the working directory, by name.
  virtual std::vector<std::string> captures() const = 0;
  // Makes later readings use that capture.
  virtual Result<> change_to(const std::string& path) = 0;
};

}  // namespace tacho::report
