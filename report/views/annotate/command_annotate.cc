#include "report/views/annotate/command_annotate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/absent_options.h"
#include "cli/nearest.h"
#include "format/container/file_head.h"
#include "format/records/perf_abi.h"
#include "report/decode/bpf_functions.h"
#include "report/filter_options.h"
#include "report/output/terminal.h"
#include "report/samples/hook_functions.h"
#include "report/samples/resolver.h"
#include "report/samples/sum_view.h"
#include "symbolize/names/demangle.h"

namespace tacho::report {
namespace {

using cli::Takes;

Result<> set_share(CodeOptions& options, std::string_view text) {
  struct Row {
    std::string_view name, turned;
    ShareOf of;
    ShareBy by;
  };
  constexpr Row kRows[] = {{"local-period", "period-local", ShareOf::Function, ShareBy::Period},
                           {"global-period", "period-global", ShareOf::Everything, ShareBy::Period},
                           {"local-hits", "hits-local", ShareOf::Function, ShareBy::Samples},
                           {"global-hits", "hits-global", ShareOf::Everything, ShareBy::Samples}};
  const auto* const row =
      std::ranges::find_if(kRows, [text](const Row& one) { return one.name == text || one.turned == text; });
  if (row == std::end(kRows))
    return use_error("--percent-type: '" + std::string(text) +
                     "' is not local-period, global-period, local-hits or global-hits");
  options.of = row->of;
  options.by = row->by;
  return Done{};
}

Result<> set_syntax(AsmSyntax& syntax, std::string_view text) {
  if (text != "intel" && text != "att")
    return use_error("-M: '" + std::string(text) +
                     "' is not known; x86 code is written as att or intel has it");
  syntax = text == "intel" ? AsmSyntax::Intel : AsmSyntax::Att;
  return Done{};
}

Result<> set_limit(double& limit, std::string_view text) {
  const auto percent = parse_percentage(text);
  if (!percent) return use_error("--percent-limit: '" + std::string(text) + "' is no number from 0 to 100");
  limit = *percent;
  return Done{};
}

void add_code_options(std::vector<cli::Option>& rows, AnnotateOptions& options) {
  using Column = CodeOptions::Column;
  rows.push_back(cli::text("-s,--symbol", "SYMBOL",
                           "only this function, as SYMBOL without an option: as reports name it, with its "
                           "parameters, or as a mangled name",
                           options.symbol));
  rows.push_back(
      cli::text("--bpf", "PROGRAM",
                "only functions of this BPF program: its name, number or tag (tacho bpf lists them)",
                options.bpf_program));
  rows.push_back(kcore_option(options.reading));
  rows.push_back(sets("--stdio",
                      "in the layout of perf annotate --stdio: its columns and counters, without arrows; the "
                      "texts of instructions are capstone's",
                      options.form, CodeForm::Perf));
  rows.push_back(sets("--stdio2", "text with jumps as arrows, which pipes get without an option",
                      options.face, CodeFace::Text));
  rows.push_back(sets("--tui",
                      "the view on the terminal, which opens without an option; an error where there is no "
                      "terminal",
                      options.face, CodeFace::Screen));
  rows.push_back(sets("--json", "a JSON object a function, each on a line (docs/annotate.md)", options.form,
                      CodeForm::Json));
  rows.push_back({"-M,--disassembler-style", Takes::Value, "STYLE",
                  "how x86 code is written: att (default) or intel",
                  [&options](std::string_view text) { return set_syntax(options.syntax, text); }});
  rows.push_back(sets("-S,--source", "source lines between the instructions (the default)",
                      options.code.has_source, true));
  rows.push_back(sets("--no-source", "instructions alone", options.code.has_source, false));
  rows.push_back(
      cli::flag("--asm-raw", "the bytes of each instruction before its text", options.code.has_bytes));
  rows.push_back(cli::flag("-l,--print-line",
                           "with --stdio: first the source lines that weigh most, and after instructions "
                           "where they come from",
                           options.code.has_line_summary));
  rows.push_back(
      cli::flag("-P,--full-paths", "paths of files with their folders", options.code.has_full_paths));
  rows.push_back({"--percent-type", Takes::Value, "TYPE",
                  "what 100 % are: the function (local-period, the default, and local-hits), or all samples "
                  "(global-period, global-hits); hits counts samples instead of periods",
                  [&options](std::string_view text) { return set_share(options.code, text); }});
  rows.push_back({"--percent-limit", Takes::Value, "P", "leave out functions with less of all samples",
                  [&options](std::string_view text) { return set_limit(options.percent_limit, text); }});
  rows.push_back(sets("-n,--show-nr-samples", "numbers of samples instead of percents", options.code.column,
                      Column::Samples));
  rows.push_back(
      sets("--show-total-period", "periods instead of percents", options.code.column, Column::Period));
  rows.push_back(sets(
      "--group", "the events of a group side by side (the default); in a capture without groups, all of them",
      options.grouping, Grouping::Always));
  rows.push_back(sets("--no-group", "each event of a group by itself", options.grouping, Grouping::Never));
  rows.push_back({"--stdio-color", Takes::Value, "WHEN",
                  "colours: always, never, or auto: on a terminal (default)",
                  [&options](std::string_view text) -> Result<> {
                    const auto colour = parse_colour("--stdio-color", text);
                    if (!colour) return colour.error();
                    options.colour = *colour;
                    return Done{};
                  }});
  rows.push_back(
      cli::flag("-q,--quiet", "say nothing about functions that cannot be shown", options.is_quiet));
  for (const std::string names : {"--skip-missing", "--ignore-vmlinux", "-m,--modules", "-v,--verbose"})
    rows.push_back(cli::accepted(names, Takes::Nothing, ""));  // perf's names for the default
}

constexpr cli::AbsentOption kAbsent[] = {
    {"--gtk", Takes::Nothing, "--tui opens the view on the terminal"},
    {"--objdump", Takes::Value,
     "no objdump runs: instructions are disassembled here, by capstone; leave it out"},
    {"--addr2line", Takes::Value, "no addr2line runs: source lines are read from DWARF here; leave it out"},
    {"--prefix", Takes::Value, "--symfs DIR: binaries and source files are looked for below DIR"},
    {"--prefix-strip", Takes::Value, "--symfs DIR: binaries and source files are looked for below DIR"},
    {"-D,--dump-raw-trace", Takes::Nothing, "tacho dump shows the records of a capture"},
    {"--demangle-kernel", Takes::Nothing, "names of the kernel are demangled like all others; leave it out"},
    {"--itrace", Takes::Optional,
     "processor traces (AUX) are not decoded here; perf makes samples of them, which every command reads: "
     "perf inject --itrace=i1ms -i FILE -o DECODED"},
    {"--data-type", Takes::Optional,
     "types of data are not known here; perf annotate --data-type of perf 6.7 has them"},
    {"--type-stat", Takes::Nothing,
     "types of data are not known here; perf annotate --type-stat of perf 6.7 has them"},
};

}  // namespace

cli::CommandLine describe_annotate(AnnotateOptions& options) {
  auto line = command_line(
      "annotate",
      "Shows functions as source and instructions, with the share of samples that each "
      "instruction has: those with most samples first, or the one that is named. Instructions "
      "are disassembled here (x86, arm64) from the binary, from the code that tacho pack --level "
      "code put into the capture, or from a jitdump; kernel code from the file that -k or --kcore "
      "names. Where the capture has branch stacks, each instruction has numbers of branches and "
      "cycles.");
  line.synopsis = "[FILE] [SYMBOL] [options]";
  auto& rows = line.options;
  add_code_options(rows, options);
  rows.push_back(event_option(options.reading.session.filter));
  add_reading_options(rows, options.reading);
  add_filter_options(rows, options.reading.session.filter, {"-S", "--symbols", "--symbol"});
  cli::add_absent_options(rows, kAbsent);
  line.words = [&options,
                usual = options.reading.session.input](const std::vector<std::string>& words) -> Result<> {
    std::string& input = options.reading.session.input;
    for (const std::string& word : words) {
      // As other views take FILE.
      if (&word == &words.front() && format::is_capture_file(word)) {
        if (input != usual) return use_error("the capture is named twice: -i " + input + " and " + word);
        input = word;
      } else if (!options.symbol.empty()) {
        return use_error("'" + word + "' is a second function; annotate shows one, or all without a name");
      } else {
        options.symbol = word;
      }
    }
    return Done{};
  };
  line.epilog =
      "Examples:\n"
      "  tacho annotate add_up\n"
      "  tacho annotate --dso libc.so.6 --percent-limit 1\n"
      "  tacho annotate --stdio -l -M intel add_up\n\n" +
      line.epilog;
  return line;
}

namespace {

class AnnotateSink : public Sink, private SumView {
 public:
  explicit AnnotateSink(const Session& session) : hits_(session.events().size()) {
    const auto has_branches = [](const format::Event& event) {
      return event.attr.samples(format::abi::kSampleBranchStack);
    };
    has_branches_ = session.layout().is_pipe || std::ranges::any_of(session.events(), has_branches);
    needs_stack_ = std::ranges::any_of(session.events(), [](const format::Event& event) {
      return event.attr.is_bpf_output() || is_taken_by_hook(event.attr);
    });
  }
  bool takes_non_samples() const override { return false; }
  SumView* sum_view() override { return has_branches_ ? nullptr : this; }
  Flow on_sample(const ResolvedSample& sample) override {
    hits_.add_sample(sample);
    if (has_branches_) hits_.add_branches(sample);
    return Flow::Continue;
  }
  const CodeHits& hits() const { return hits_; }

 private:
  SumShape shape() const override { return {.by_stack = needs_stack_, .by_comm = false}; }
  RowId row_of(const SumGroup& group) override { return hits_.row_of(group.event, group.location); }
  void count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) override {
    hits_.count(row, event, {samples, period});
  }

  CodeHits hits_;
  bool has_branches_ = false;
  bool needs_stack_ = false;  // the location of some samples is the first frame of the stack, not the ip
};

class Annotation {
 public:
  Annotation(Session& session, TextOutput& out, const AnnotateOptions& options, const CodeHits& hits)
      : session_(session),
        out_(out),
        options_(options),
        code_options_(options.code),
        hits_(hits),
        files_(session.resolver()),
        annotator_(session, options.syntax) {
    code_options_.names = options.reading.names;
    code_options_.has_colour =
        options.form != CodeForm::Json && has_colour(options.colour, out.is_for_person());
  }

  Result<Shown> write() {
    functions_ = hits_.functions(session_.resolver());
    if (auto found = choose_functions(session_, options_, functions_); !found)
      return std::move(found.error());
    const auto groups = groups_of(session_, options_.grouping);
    const bool is_grouped = options_.grouping != Grouping::Never;
    const auto by_event = hottest(functions_);
    for (const EventBlock& block :
         blocks_of(session_.events().size(),
                   is_grouped ? std::span(groups) : std::span<const format::EventGroup>())) {
      for (const std::size_t number : functions_of(block, by_event)) write(functions_[number], block, groups);
      if (out_.is_done()) break;
    }
    Shown shown(Symbols::Used);
    const std::string input = printable(options_.reading.session.input);
    const bool is_any_sample =
        std::ranges::any_of(hits_.totals(), [](const HitCount& total) { return total.samples != 0; });
    if (!options_.is_quiet) shown.notes = missing_code_.lines(input);
    if (!missing_code_.empty()) shown.status = cli::kIncomplete;
    if (functions_.empty() && is_any_sample) {
      shown.notes.push_back("tacho: " + input + ": no sample is in a function that has a name");
      shown.status = cli::kIncomplete;
    }
    if (!is_any_sample)
      shown.notes.push_back("tacho: " + input + ": no samples are there, or none that filters let through");
    return shown;
  }

 private:
  // The functions to show: with samples of the block's first event, hottest first, then with samples of its
  // other events only.
  std::vector<std::size_t> functions_of(
      const EventBlock& block, const std::map<std::uint32_t, std::vector<std::size_t>>& by_event) const {
    std::vector<std::size_t> order;
    std::set<std::size_t> known;
    for (std::uint32_t event = block.leader; event < block.leader + block.members; ++event) {
      const auto found = by_event.find(event);
      if (found == by_event.end()) continue;
      for (const std::size_t number : found->second)
        if (known.insert(number).second) order.push_back(number);
      if (options_.form == CodeForm::Perf)
        break;  // perf shows only functions with samples of its first event
    }
    return order;
  }

  void write(const HitFunction& function, const EventBlock& block,
             std::span<const format::EventGroup> groups) {
    if (out_.is_done()) return;
    const HitCount all = block.leader < hits_.totals().size() ? hits_.totals()[block.leader] : HitCount();
    const HitCount mine = function.total(block.leader);
    if (all.period != 0 &&
        100.0 * static_cast<double>(mine.period) / static_cast<double>(all.period) < options_.percent_limit)
      return;
    const AnnotatedCode code =
        is_spent(function, block) ? too_much() : annotator_.annotate(function, block.leader, block.members);
    (void)budgets_[block.leader].take_instructions(function.module, code.lines.size());
    if (!code.missing_reason.empty()) missing_code_.add_function(function, code);
    if (code.lines.empty()) return;
    ShownCode shown{.function = function, .code = code};
    for (std::uint32_t event = block.leader; event < block.leader + block.members; ++event) {
      shown.events.push_back(session_.events()[event].name);
      shown.totals.push_back(function.total(event));
      shown.everything.push_back(event < hits_.totals().size() ? hits_.totals()[event] : HitCount());
    }
    shown.event_name = name_of(shown.events, block, groups);
    if (!is_first_ && options_.form == CodeForm::Text) out_.character('\n');
    is_first_ = false;
    switch (options_.form) {
      case CodeForm::Text:
        return write_code_text(out_, shown, files_, code_options_);
      case CodeForm::Perf:
        return write_perf_layout(out_, shown, files_, code_options_);
      case CodeForm::Json:
        return write_code_json(out_, shown, files_, code_options_);
    }
  }

  bool is_spent(const HitFunction& function, const EventBlock& block) {
    return budgets_[block.leader].is_spent(function.module);
  }
  static AnnotatedCode too_much() {
    AnnotatedCode code;
    code.missing_reason = fmt::format("{} instructions of its file are shown already; name one function",
                                      InstructionBudget::kMost);
    return code;
  }

  // "cycles", "anon group { cycles, instructions }".
  static std::string name_of(const std::vector<std::string>& events, const EventBlock& block,
                             std::span<const format::EventGroup> groups) {
    if (events.size() == 1) return events.front();
    const auto group = std::ranges::find(groups, block.leader, &format::EventGroup::leader);
    const bool is_named = group != groups.end() && !group->name.empty() && group->name != "{anon_group}";
    return fmt::format("{} {{ {} }}", is_named ? group->name : "anon group", fmt::join(events, ", "));
  }

  Session& session_;
  TextOutput& out_;
  const AnnotateOptions& options_;
  CodeOptions code_options_;
  const CodeHits& hits_;
  SourceFiles files_;
  CodeAnnotator annotator_;
  std::map<std::uint32_t, InstructionBudget> budgets_;  // by the first event of a block
  std::vector<HitFunction> functions_;
  MissingCode missing_code_;
  bool is_first_ = true;
};

Result<Shown> show(Session& session, TextOutput& out, const AnnotateOptions& options) {
  if (auto checked = check_events(session, options.reading); !checked) return checked.error();
  AnnotateSink sink(session);
  run_with_progress(session, sink, out);
  return Annotation(session, out, options, sink.hits()).write();
}

// Keeps only the functions of the BPF program.
Result<> choose_program(const Session& session, const AnnotateOptions& options,
                        std::vector<HitFunction>& functions) {
  const format::Environment& environment = session.features().environment;
  const std::string input = printable(options.reading.shown_input()), wanted = printable(options.bpf_program);
  BpfFunctions known(environment);
  std::set<std::uint64_t> addresses;
  bool is_there = false;
  for (const format::BpfProgramInfo& info : environment.bpf_programs) {
    if (!known.program(info).is_called(options.bpf_program)) continue;
    is_there = true;
    for (const BpfFunction& function : known.functions_of(info)) addresses.insert(function.address);
  }
  if (!is_there)
    return use_error(fmt::format("{}: has no BPF program '{}'; tacho bpf FILE lists them", input, wanted));
  std::erase_if(functions, [&](const HitFunction& function) {
    return !addresses.contains(function.location.ip.value - (function.shown_address - function.start));
  });
  if (functions.empty())
    return use_error(
        fmt::format("{}: no sample is in the BPF program '{}'; tacho bpf -i FILE -s PROGRAM shows its "
                    "code without samples",
                    input, wanted));
  return Done{};
}

}  // namespace

Result<> choose_functions(const Session& session, const AnnotateOptions& options,
                          std::vector<HitFunction>& functions) {
  if (!options.bpf_program.empty())
    if (auto found = choose_program(session, options, functions); !found) return found;
  const std::string& wanted = options.symbol;
  if (wanted.empty()) return Done{};
  std::vector<std::string> names;
  for (const HitFunction& function : functions) names.push_back(function.name);
  std::erase_if(functions, [&wanted](const HitFunction& function) {
    return function.name != wanted && function.linker_name != wanted &&
           whole_name(function.name, function.linker_name) != wanted &&
           symbolize::demangle(function.linker_name, symbolize::NameForm::Parameters) != wanted;
  });
  if (!functions.empty()) return Done{};
  const std::string guess = cli::suggestion(wanted, names);
  return use_error(fmt::format("{}: no sample is in a function '{}'{}",
                               printable(options.reading.shown_input()), printable(wanted),
                               guess.empty() ? "; tacho report --sort sym lists those with samples" : guess));
}

void MissingCode::add_function(const HitFunction& function, const AnnotatedCode& code) {
  if (code.lines.empty())
    ++by_module_[{std::string(function.module->path), code.missing_reason}];
  else
    cut_.push_back(function.name + ": " + code.missing_reason);
}

std::vector<std::string> MissingCode::lines(const std::string& input) const {
  constexpr std::size_t kMostLines = 20;
  std::vector<std::string> lines;
  for (const auto& [what, count] : by_module_)
    lines.push_back(fmt::format("{}: {} not shown, as {}", what.first,
                                count == 1 ? "1 function is" : fmt::format("{} functions are", count),
                                what.second));
  lines.insert(lines.end(), cut_.begin(), cut_.end());
  if (lines.size() > kMostLines) lines.resize(kMostLines);
  for (std::string& line : lines) line = "tacho: " + input + ": " + printable(line);
  return lines;
}

std::string_view AnnotateOptions::text_option() const {
  return first_text_option({{form == CodeForm::Perf, "--stdio"},
                            {form == CodeForm::Json, "--json"},
                            {code.has_line_summary, "-l"},
                            {code.has_bytes, "--asm-raw"}},
                           is_quiet, colour, reading);
}

void prepare_annotate(AnnotateOptions& options) {
  auto& symbols = options.reading.session.symbols;
  // As objdump, which names functions without a linkage name in DWARF.
  if (options.form == CodeForm::Perf) symbols.use_symbol_name = symbolize::UseSymbolName::AsPerf;
  if (symbols.inlines == symbolize::Inlines::No) symbols.source_lines = symbolize::SourceLines::Yes;
}

Result<cli::ExitStatus> print_annotate(const AnnotateOptions& options) {
  return show_session(options.reading,
                      [&options](Session& session, TextOutput& out) { return show(session, out, options); });
}

}  // namespace tacho::report
