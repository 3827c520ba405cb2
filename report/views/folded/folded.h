// Folded stacks: "comm;root;...;leaf WEIGHT", one line for each distinct stack. --as-perf prints the lines
// that stackcollapse-perf.pl makes of perf's script text; its parsing rules are implemented here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/frame_names.h"
#include "report/profile/function_names.h"
#include "report/profile/stack_names.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "symbolize/frame.h"

namespace tacho::report {

enum class Context : std::uint8_t {
  None,
  FileAndLine,  // --context: "run(int):loop.cc:12"
};

struct FoldOptions {
  FrameMarks marks;
  bool shows_pid = false, shows_tid = false;
  bool as_perl = false;          // PerfBytes::folds_as_perl
  bool expands_inlines = false;  // --inline: names as expanded_name() has them
  Context context = Context::None;
};

// The frames that stackcollapse-perf.pl makes of one line of a call chain ("\t 1272 mix+0x22 (/tmp/spin)");
// empty for lines that it skips.
std::vector<std::string> fold_frame(std::string_view line, const FoldOptions& options, bool is_java);

// What stackcollapse-perf.pl parses from a sample's first line.
struct FoldedStart {
  std::string comm, tid;
};
// Parses `line`, "comm tid [cpu] time: period event: ". False when stackcollapse-perf.pl does not see the
// start of a sample in it: the name has one letter, or begins with a blank.
bool fold_start(std::string_view line, FoldedStart& start);
// The same for a thread whose name has line ends: perf's text then has several lines, and the script takes
// the last one that looks like a start.
bool fold_last_start(std::string_view lines, FoldedStart& start);

// Lines of distinct stacks. Names are numbered, so that a stack costs four bytes a frame.
class FoldedStacks {
 public:
  explicit FoldedStacks(Names names) : safety_(names) {}
  // The number of a name. `linker_name`: see FunctionNames.
  std::uint32_t name(std::string_view text, std::string_view linker_name = {}) {
    return value_of(names_.id_of(text, linker_name));
  }
  NamedStacks& stacks() { return stacks_; }
  // Adds weight to the line of a stack. `other`: of the other side of a comparison.
  void add_weight(NamedStackId stack, std::uint64_t weight, std::uint64_t other = 0);
  // Lines get two numbers, the other side's first.
  void has_two_sides() { has_two_sides_ = true; }
  // The first name of each stack, which is equal in all, is not written.
  void leave_first_out() { skipped_ = 1; }
  void write(TextOutput& out);  // all lines, sorted

 private:
  struct Line {
    std::uint64_t weight = 0, other = 0;
    bool is_counted = false;
  };
  // Names as lines have them, by number, with their ranks in the order of lines.
  struct LineNames {
    std::vector<std::string> texts;
    std::vector<std::uint32_t> ranks;
  };
  LineNames line_names();
  using Stack = std::span<const std::uint32_t>;
  static bool is_before(Stack a, Stack b, const LineNames& names);
  void write_stack(TextOutput& out, Stack stack, const LineNames& names) const;
  Names safety_;
  FunctionNames names_{FunctionNames::Texts::Copied};
  NamedStacks stacks_;
  IdVector<NamedStackId, Line> lines_;
  bool has_two_sides_ = false;
  std::size_t skipped_ = 0;  // names
};

// The name of a frame as stackcollapse-perf.pl --inline shows it: addr2line's, whole (parameters, return
// types) and not tidied. nullopt where that script does not ask addr2line or gets no answer: kernel code, JIT
// code, code without a name. Such frames have the same names with and without the option.
std::optional<std::string> expanded_name(const symbolize::Frame& frame, Context context);

// The names of folded stacks; with --as-perf, as stackcollapse-perf.pl makes them.
class FoldedNames : public StackNames {
 public:
  // The session and `folded`, which numbers them, must outlive this.
  FoldedNames(Session& session, FoldedStacks& folded, const FoldOptions& options);
  std::uint32_t number_of(std::string_view text, FrameKind kind) override;
  FrameNames& code_below(std::string_view root) override;
  std::string thread_name(std::string_view comm, std::uint32_t pid, std::uint32_t tid) const override;
  // With --as-perf, what the script parses as the name from the first line of perf's text.
  std::optional<std::string> thread_name(const ResolvedSample& sample, std::string_view event) const override;
  bool has_fixed_name(const ResolvedSample& sample) const override;

 private:
  FoldedStacks* folded_;
  FoldOptions options_;
  FrameNames code_;
  std::optional<FrameNames> java_code_;  // with --as-perf: of processes whose names begin with "java"
};

}  // namespace tacho::report
