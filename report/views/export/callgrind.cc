// The format of callgrind: costs by source line, and inclusive costs of calls, for KCachegrind and
// callgrind_annotate.
#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/views/export/export_formats.h"
#include "report/views/export/export_output.h"
#include "report/views/export/export_view.h"

namespace tacho::report {
namespace {

// Costs by source line of each function, and by call.
class CallgrindCosts {
 public:
  explicit CallgrindCosts(const ExportStacks& stacks)
      : stacks_(stacks), code_(stacks.code()), sums_(width_of(stacks)) {
    std::size_t begin = 0;
    for (const ExportEvent& event : stacks.events()) {
      begins_.push_back(begin);
      begin += event.weights.size();
    }
    stacks.each([this](const ExportRow& row) { add(row); });
  }

  using Costs = std::vector<std::uint64_t>;  // one for each weight of each event
  struct Call {
    ExportLine line;
    std::uint32_t callee = 0;
    auto operator<=>(const Call&) const = default;
  };
  const std::map<ExportLine, Costs>& lines() const { return lines_; }
  const std::map<Call, Costs>& calls() const { return calls_; }
  const Costs& sums() const { return sums_; }

 private:
  static std::size_t width_of(const ExportStacks& stacks) {
    std::size_t width = 0;
    for (const ExportEvent& event : stacks.events()) width += event.weights.size();
    return width;
  }
  void add_costs(Costs& costs, const ExportRow& row) const {
    costs.resize(sums_.size());
    for (std::size_t i = 0; i < row.values.size(); ++i)
      add_saturated(costs[begins_[row.event] + i], row.values[i]);
  }
  void add(const ExportRow& row) {
    frames_.clear();
    for (const std::uint32_t place : code_.stack(row.stack))
      for (const std::uint32_t line : code_.lines_at(place)) frames_.push_back(code_.lines()[line]);
    add_costs(sums_, row);
    add_costs(lines_[frames_.front()], row);
    // Of a function that is in the stack more than once, only the innermost call counts: so its own costs and
    // those of its calls add up to the samples with the function in their stack.
    seen_.resize(code_.functions().size());
    ++stack_;
    seen_[frames_.front().function] = stack_;
    for (std::size_t i = 1; i < frames_.size(); ++i) {
      const ExportLine& caller = frames_[i];
      if (std::exchange(seen_[caller.function], stack_) == stack_) continue;
      add_costs(calls_[{caller, frames_[i - 1].function}], row);
    }
  }

  const ExportStacks& stacks_;
  const ExportCode& code_;
  std::vector<std::size_t> begins_;  // by event: of its costs
  Costs sums_;
  std::map<ExportLine, Costs> lines_;
  std::map<Call, Costs> calls_;
  std::vector<ExportLine> frames_;   // scratch
  std::vector<std::uint64_t> seen_;  // by function: the last stack with it
  std::uint64_t stack_ = 0;
};

class CallgrindWriter {
 public:
  CallgrindWriter(Session& session, ExportStacks& stacks, ExportOutput& out)
      : session_(session), stacks_(stacks), code_(stacks.code()), costs_(stacks), out_(out) {}

  void write() {
    write_head();
    auto call = costs_.calls().begin();
    auto line = costs_.lines().begin();
    for (std::uint32_t function = 0; function < code_.functions().size(); ++function) {
      write_function("", function);
      file_ = code_.functions()[function].file;
      for (; line != costs_.lines().end() && line->first.function == function; ++line) {
        change_file(line->first.file);
        write_costs(line->first.line, line->second);
      }
      for (; call != costs_.calls().end() && call->first.line.function == function; ++call) {
        change_file(call->first.line.file);
        write_function("c", call->first.callee);
        out_.text("calls=");
        out_.decimal(samples_of(call->second));
        out_.text(" 0\n");
        write_costs(call->first.line.line, call->second);
      }
      out_.character('\n');
      out_.piece_end();
    }
    out_.text("totals:");
    write_values(costs_.sums());
    out_.finish();
  }

 private:
  void write_head() {
    out_.text("# callgrind format\nversion: 1\ncreator: tacho\n");
    for (const std::string& about : capture_lines(session_))
      out_.text((about.starts_with("command: ") ? "cmd: " + about.substr(9) : "desc: " + about) + "\n");
    out_.text("positions: line\nevents:");
    for (const ExportEvent& event : stacks_.events())
      for (const ExportWeight& weight : event.weights) out_.text(" " + column_name(event, weight));
    out_.text("\nsummary:");
    write_values(costs_.sums());
    out_.character('\n');
  }
  // A word: readers split the line at blanks, and take ':' for the beginning of a formula.
  std::string column_name(const ExportEvent& event, const ExportWeight& weight) const {
    const bool is_alone = stacks_.events().size() == 1 || weight.name == event.name;
    std::string name = is_alone ? weight.name : event.name + "_" + weight.name;
    std::ranges::replace_if(
        name,
        [](char c) {
          return !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '-';
        },
        '_');
    return name;
  }
  // The samples of a call, of all events: the number of times it is said to be made.
  std::uint64_t samples_of(const CallgrindCosts::Costs& costs) const {
    std::uint64_t samples = 0;
    std::size_t at = 0;
    for (const ExportEvent& event : stacks_.events()) {
      add_saturated(samples, costs[at]);
      at += event.weights.size();
    }
    return samples;
  }
  // A name is written out where it is first used, and is a number then.
  void write_name(std::string_view prefix, std::string_view key, std::uint32_t number, bool& is_known,
                  const std::string& name) {
    out_.text(prefix);
    out_.text(key);
    out_.text("=(");
    out_.decimal(number + 1);
    out_.character(')');
    if (!std::exchange(is_known, true)) {
      out_.character(' ');
      out_.text(name);
    }
    out_.character('\n');
  }
  void write_file(std::string_view prefix, std::string_view key, std::uint32_t file) {
    const std::string name = file == 0 ? "???" : std::string(code_.texts()[file]);
    write_name(prefix, key, file, known_files_[file], name);
  }
  // Before costs of lines in another file than the last ones of the function.
  void change_file(std::uint32_t file) {
    if (std::exchange(file_, file) != file) write_file("", "fi", file);
  }
  void write_function(std::string_view prefix, std::uint32_t number) {
    const ExportFunction& function = code_.functions()[number];
    const std::string module = function.module == 0 ? "???" : code_.module_path(function);
    write_name(prefix, "ob", function.module, known_modules_[function.module], module);
    write_file(prefix, prefix.empty() ? "fl" : "fi", function.file);
    write_name(prefix, "fn", number, known_functions_[number], code_.function_name(function));
  }
  void write_costs(std::uint32_t line, const CallgrindCosts::Costs& costs) {
    out_.decimal(line);
    write_values(costs);
  }
  void write_values(const CallgrindCosts::Costs& costs) {
    for (const std::uint64_t cost : costs) {
      out_.character(' ');
      out_.decimal(cost);
    }
    out_.character('\n');
  }

  Session& session_;
  ExportStacks& stacks_;
  ExportCode& code_;
  CallgrindCosts costs_;
  ExportOutput& out_;
  std::uint32_t file_ = 0;
  std::map<std::uint32_t, bool> known_modules_, known_files_, known_functions_;
};

Result<Shown> show_callgrind(Session& session, TextOutput& out, const ExportOptions& options) {
  return export_stacks(
      session, out, options, packing_of(options.reading.output),
      [&](ExportStacks& stacks, ExportOutput& to) { CallgrindWriter(session, stacks, to).write(); });
}

}  // namespace

Result<cli::ExitStatus> export_callgrind(const std::vector<std::string>& arguments) {
  return export_samples({.name = "callgrind", .lines = ExportTraits::Lines::Always}, arguments,
                        show_callgrind);
}

}  // namespace tacho::report
