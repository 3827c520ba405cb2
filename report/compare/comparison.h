// A comparison of two sides, each of several captures: the merged call tree of all captures, the functions
// that changed, and what explains each change. Prints nothing: views and checks read the findings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "report/compare/function_match.h"
#include "report/compare/statistics.h"
#include "report/profile/stack_names.h"
#include "report/samples/session.h"

namespace tacho::report {

struct ComparedFunction {
  std::string name, module;  // name_of_source(); the module's short name, empty: none
  bool is_kernel = false;
  auto operator<=>(const ComparedFunction&) const = default;
};

struct ComparisonQuestion {
  StackSource source;  // the events and weights; `roots` are not used
  std::string per;     // an event: costs are per one of them. Empty: see `work`
  std::uint64_t work =
      0;             // units of work of each capture: costs are per unit. 0: shares of the capture's total
  TestOptions test;  // minimal_effect: a part of the total
  bool matches_calls = true;  // functions with equal callers and callees are one under two names
  // Which functions are tested, and so share the chance of a false alarm; null: all.
  std::function<bool(const ComparedFunction&)> takes{};
  bool is_of_shares() const { return per.empty() && work == 0; }
};

struct SideCapture {
  std::string name;
  bool is_after = false;
  double units = 0;  // of work; 0: shares
  // What should be equal in all captures: "CPU", "8 cores"; in a fixed order.
  std::vector<std::pair<std::string, std::string>> facts;
};

struct RenamedFunctions {
  std::vector<std::pair<ComparedFunction, ComparedFunction>> pairs;  // before, after
  std::string text;                                                  // MatchedFunctions::renames
};

// What is compared of a function.
enum class CostPart : std::uint8_t {
  Self,   // its own code
  Total,  // with all that it calls; recursive calls count once
};

enum class ChangeCause : std::uint8_t {
  None,      // nothing changed, or it is not known
  OwnCode,   // its own code
  Callee,    // `others[0]`, at the end of the path
  Callees,   // several functions that it calls: `others`, the largest first; none: they trade
  Moved,     // to or from `others[0]`, below a caller whose cost stays
  Inlined,   // gone: its cost is in its callers, `others`
  Outlined,  // new: its cost was in its callers, `others`
  Absorbed,  // its own code, since `others`, which it called, are inlined into it, or no longer are
  Appeared,  // its cost is added
  Vanished,
};

struct FunctionChange {
  std::uint32_t function = 0;
  CostPart part = CostPart::Self;
  Tested tested;
  ChangeCause cause = ChangeCause::None;
  std::vector<std::uint32_t> others;
  std::vector<std::uint32_t> path;  // below the function, down to what explains the change
};

// One event.
struct ComparedEvent {
  std::string name, unit;      // unit: of its weights ("ns"); of shares there is none
  TestedRun run;               // without `of`
  double minimal_effect = 0;   // in the unit of the values
  std::vector<double> totals;  // weight of each capture
  std::size_t functions = 0;
  std::size_t empty_captures() const {  // that have no sample of the event
    return static_cast<std::size_t>(std::ranges::count(totals, 0.0));
  }
  std::vector<FunctionChange>
      findings;  // one for each function that has weight: changed ones first, causes before what they explain
};

// The facts of SideCapture, of a session whose head was read.
std::vector<std::pair<std::string, std::string>> environment_facts(const Session& session);
// The environment's differences between the captures, one line each.
std::vector<std::string> differences_of(std::span<const SideCapture> captures);

class Comparison {
 public:
  // `captures`: how many are going to be added.
  Comparison(ComparisonQuestion question, std::size_t captures)
      : question_(std::move(question)), most_(captures) {}

  // Adds a capture: all of one side, then those of the other. Returns notes about it.
  Result<std::vector<std::string>> add_capture(Session& session, const std::string& name, bool is_after,
                                               const RunSession& run);
  // Functions that only one side has become those of the other side that they are (function_match.h). After
  // all captures. Returns which modules and functions are taken for each other, or nothing.
  std::string match_sides();
  // The functions that were renamed. After match_sides().
  const RenamedFunctions& renamed() const { return renamed_; }

  const std::vector<SideCapture>& captures() const { return captures_; }
  const std::vector<ComparedFunction>& functions() const { return functions_; }
  const ComparisonQuestion& question() const { return question_; }
  // Calls `take` for each stack of an event, root first, with its weight in one capture. After match_sides().
  void each_stack(const std::string& event, std::size_t capture,
                  const std::function<void(std::span<const std::uint32_t> stack, double weight)>& take) const;
  // Tests every event that has samples. An error: none has.
  Result<std::vector<ComparedEvent>> judge() const;

 private:
  friend class ComparedNames;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Node {
    std::uint32_t parent = kNone, function = kNone;  // the root, node 0, has no function
  };
  struct Tree {
    std::string unit;                                           // of weights
    std::vector<Node> nodes{1};                                 // parents before children
    std::unordered_map<std::uint64_t, std::uint32_t> by_place;  // parent << 32 | function
    std::vector<double> self;                     // of the first node, by capture; then of the next
    std::vector<std::uint32_t> last, last_nodes;  // the stack that was added last
  };
  friend class EventJudge;
  std::uint32_t function_of(std::string name, std::string module, bool is_kernel);
  void mark_sides(const Tree& tree, std::vector<FunctionToMatch>& functions, CallsToMatch& calls) const;
  ModuleBuilds& builds_of(bool is_after) { return is_after ? builds_after_ : builds_before_; }
  void rename_functions(Tree& tree, std::span<const std::uint32_t> same) const;
  void add_stack(Tree& tree, std::span<const std::uint32_t> stack, double weight);

  ComparisonQuestion question_;
  std::size_t most_;
  std::vector<SideCapture> captures_;
  std::vector<ComparedFunction> functions_;
  std::map<std::string, std::uint32_t> by_key_;
  std::map<std::string, Tree> events_;  // by name
  ModuleBuilds builds_before_, builds_after_;
  RenamedFunctions renamed_;
};

// The functions that were renamed between two captures, which are read with the options of `wanted` except
// for its conditions on single samples. `run` reads one.
Result<RenamedFunctions> renamed_between(const std::string& before, const std::string& after,
                                         SessionOptions wanted,
                                         const std::function<Result<>(Session&, Sink&)>& run);

// What explains a change: "through parse > scan", "moved from render, below main". Names are safe to print.
std::string cause_text(const Comparison& comparison, const FunctionChange& change);

}  // namespace tacho::report
