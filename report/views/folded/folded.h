// Folded stacks: "comm;root;...;leaf WEIGHT", one line for each distinct stack. --as-perf prints the lines
// that stackcollapse-perf.pl makes of perf's script text; its parsing rules are implemented here.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/command.h"
#include "report/output/text_output.h"
#include "report/profile/function_names.h"
#include "report/profile/function_table.h"
#include "report/query/root_frames.h"
#include "report/query/waits.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"
#include "symbolize/frame.h"

namespace tacho::report {

struct FoldOptions {
  FrameMarks marks;
  bool shows_pid = false, shows_tid = false;
  bool as_perl = false;  // PerfBytes::folds_as_perl
  std::vector<RootFrame> roots{RootFrame::Comm};
  bool is_by_comm() const { return roots.size() == 1 && roots.front() == RootFrame::Comm; }
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

// Counts distinct stacks. Names are numbered, so that a stack costs four bytes a frame.
class FoldedStacks {
 public:
  explicit FoldedStacks(Names names) : safety_(names) {}
  // The number of a frame or process name. `linker_name`: see FunctionNames.
  std::uint32_t name(std::string_view text, std::string_view linker_name = {}) {
    return names_.number_of(text, linker_name);
  }
  std::string_view text(std::uint32_t name) const { return names_.name(name); }  // its bytes do not move
  // The row of a stack. Its first name is the process's, then come the frames, root first.
  std::uint32_t row_of(const std::vector<std::uint32_t>& stack);
  void add(std::uint32_t row, std::uint64_t weight) {
    stacks_[row].weight += weight;
    stacks_[row].is_counted = true;
  }
  // Adds weight to the other capture of a comparison. Every line then has two numbers, this one first.
  void add_other(std::uint32_t row, std::uint64_t weight) {
    others_.resize(stacks_.size());
    others_[row] += weight;
    stacks_[row].is_counted = true;
  }
  // Lines get two numbers, even if the other one is always 0.
  void has_two_sides() { others_.resize(stacks_.size()); }
  // All lines, sorted. The first `skipped` names of each stack, which are equal in all, are not written.
  void write(TextOutput& out, std::size_t skipped = 0);
  bool empty() const { return stacks_.empty(); }
  std::size_t bytes() const { return frames_.size() * sizeof(std::uint32_t); }  // of the stacks' names

 private:
  struct Stack {
    std::size_t start = 0, size = 0;  // in frames_
    std::uint64_t weight = 0;
    bool is_counted = false;
  };
  // Names as lines have them, by number, with their ranks in the order of lines.
  struct LineNames {
    std::vector<std::string> texts;
    std::vector<std::uint32_t> ranks;
  };
  LineNames line_names();
  bool is_before(const Stack& a, const Stack& b, const LineNames& names) const;
  Names safety_;
  FunctionNames names_{FunctionNames::Texts::Copied};
  IndexTable by_frames_;
  std::vector<std::uint32_t> frames_;
  std::vector<Stack> stacks_;
  std::vector<std::uint64_t> others_;  // the weights of the other capture, by stack; empty: no comparison
};

enum class Context : std::uint8_t {
  None,
  FileAndLine,  // --context: "run(int):loop.cc:12"
};

// The name of a frame as stackcollapse-perf.pl --inline shows it: addr2line's, whole (parameters, return
// types) and not tidied. nullopt where that script does not ask addr2line or gets no answer: kernel code, JIT
// code, code without a name. Such frames have the same names with and without the option.
std::optional<std::string> expanded_name(const symbolize::Frame& frame, Context context);

struct FoldedInlines {
  bool are_expanded = false;  // --inline: names as expanded_name() has them
  Context context = Context::None;
};
// The names of frames in folded stacks; with --as-perf, as stackcollapse-perf.pl makes them. `folded` numbers
// them. It and the session must outlive the result.
// `is_java`: they are of a process whose name begins with "java"; the script shortens these further.
FrameNames folded_frame_names(Session& session, FoldedStacks& folded, const FoldOptions& options,
                              FoldedInlines inlines, bool is_java = false);

// The names of root frames in a folded line: usually only the name of the sample's thread; with --as-perf,
// what stackcollapse-perf.pl parses as the name from the first line of perf's text.
class FoldedStarts {
 public:
  struct Start {
    bool is_usual = false;  // --as-perf: perf's line shows the name unchanged
    bool is_seen = false;   // false only with --as-perf, for a line in which the script finds no name
    bool is_java = false;
    std::vector<std::uint32_t> names{};
    // Identifies this start: the address and length of its bytes.
    std::string_view key{};
  };
  // `root`: the number of the event's name, under which its lines are. `folded` numbers the names, and must
  // outlive this.
  FoldedStarts(FoldedStacks& folded, std::uint32_t root, const FoldOptions& options)
      : folded_(&folded), root_(root), options_(options) {}
  std::uint32_t root() const { return root_; }

  // `event`: its name in perf's line. Valid until the next sample.
  const Start& of(const ResolvedSample& sample, std::string_view event);

 private:
  // The name's bytes; and pid and tid, if the options show them.
  struct Key {
    const char* comm = nullptr;
    std::uint32_t pid = 0, tid = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    RowHash hash;
    std::size_t operator()(const Key& key) const noexcept {
      return hash(reinterpret_cast<std::uintptr_t>(key.comm), key.pid, key.tid);
    }
  };
  void begin(Start& start, const ResolvedSample& sample);
  const Start& start_of_roots(const ResolvedSample& sample, std::string_view event);
  void read_as_perl(Start& start, const ResolvedSample& sample, std::string_view event);
  struct Recent {
    Key key;
    Start* start = nullptr;
  };

  FoldedStacks* folded_;
  std::uint32_t root_;
  FoldOptions options_;
  KeyHash hash_;
  std::unordered_map<Key, Start, KeyHash> starts_;
  std::unordered_map<std::string, Start> starts_by_roots_;  // unless FoldOptions::is_by_comm()
  std::deque<std::string> keys_;
  std::array<Recent, 64> recent_{};  // some of them, by their hash
};

// The names of a thread's root frames; roots must be are_of_threads().
std::vector<std::uint32_t> names_of_roots(FoldedStacks& folded, const FoldOptions& options, std::uint32_t pid,
                                          std::uint32_t tid, std::string_view comm);

// Prints waits instead of the stacks of an event: "comm;root;...;leaf;-- waker --;leaf;...;root;comm
// NANOSECONDS".
Result<Shown> show_waits(Session& session, TextOutput& out, const WaitOptions& options,
                         const FoldOptions& fold, Names names);
// The same for all the time of threads: "comm;[runnable];root;...;leaf NANOSECONDS".
Result<Shown> show_wall(Session& session, TextOutput& out, const WaitOptions& options,
                        const FoldOptions& fold, Names names);

}  // namespace tacho::report
