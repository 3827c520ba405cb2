// Which functions of two captures are the same although their builds differ: compilers rename clones,
// programs and libraries get other file names, and authors rename functions. All views that compare captures
// ask this once, for their distinct functions, so that their totals of a function agree.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/records/build_id.h"

namespace tacho::report {

// The name without what compilers add to clones and parts of a function: ".cold", ".isra.0", ".part.1",
// ".constprop.0", ".llvm.123", ".lto_priv.0", the same as demanglers write it (" [clone .cold]"),
// a Rust hash ("::h" and 16 digits), and ABI tags
// ("[abi:cxx11]").
std::string name_of_source(std::string_view name);

struct FunctionToMatch {
  std::string_view name, module;             // no module: empty
  char kind = 0;                             // functions of different kinds (kernel, user) are different
  bool is_before = false, is_after = false;  // the captures that have it
  double share = 1;                          // of the weight of these captures, with callees; the larger one
};

struct CallToMatch {
  std::uint32_t caller, callee;  // indices of functions
  double before = 0, after = 0;  // shares of the weight of each side; > 0: it has the call
};

// The build ids of modules in the captures of one side, by the name that their functions have. An empty id:
// the capture does not have it.
using ModuleBuilds = std::map<std::string, std::set<format::BuildId>, std::less<>>;

// Whether both sides have the module of one known build id, in which no function was renamed.
bool is_one_build(std::string_view module, const ModuleBuilds& before, const ModuleBuilds& after);

// Distinct calls, from the nodes of call trees.
class CallsToMatch {
 public:
  void add_call(const CallToMatch& call);
  std::vector<CallToMatch> all() const;

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, CallToMatch> by_ends_;
};

// How a function became another one.
enum class MatchedBy : std::uint8_t {
  Itself,  // it did not
  Clone,   // of the same source function in the same module
  Module,  // of the same name in a module that only the other capture has
  Calls,   // the same callers and callees under another name
};

struct MatchedFunctions {
  std::vector<std::uint32_t> same;  // by function: itself, or the function that it becomes
  std::vector<MatchedBy> by;        // by function
  std::string modules;              // "old with new, ..."; empty: none was matched by its module
  std::string renames;              // "old as new, ...", of those matched by calls
  bool is_any() const;              // a function becomes another
  std::string text() const;         // modules and renames: "old with new; renamed: old as new"
};

// Of functions that only one capture has:
// - Clones of a source function become one function. It is one that both captures have, if there is one.
// - A function of a module that only the capture before has becomes that of the same name in a module that
//   only the capture after has, if there is exactly one.
// - With `calls`, a function becomes one of another name in the same module if both have the same callers and
//   callees, and no third function has. This is repeated, as each match makes callers and callees of others
//   equal. It is not done in a module of which both sides have the same build, as no function was renamed
//   there, nor for functions with less than 0.5 % of the weight, of which few stacks are known. Calls with
//   less than a twentieth of the function's weight say nothing: interrupts come in any function.
struct MatchEvidence {
  std::vector<CallToMatch> calls{};
  ModuleBuilds before{}, after{};
};
MatchedFunctions match_functions(std::span<const FunctionToMatch> functions,
                                 const MatchEvidence& evidence = {});

}  // namespace tacho::report
