// `tacho page`: its options, and the file that it writes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "cli/message_text.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/compare/function_match.h"
#include "report/filter_options.h"
#include "report/samples/filter.h"
#include "report/views/page/page_code.h"
#include "report/views/page/page_file.h"
#include "report/views/page/page_head.h"
#include "report/views/page/page_names.h"
#include "report/views/page/page_samples.h"
#include "report/views/page/page_states.h"
#include "report/views/page/page_tree.h"

namespace tacho::report {
namespace {

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho record -a -g -- sleep 10 && tacho page -o page.html\n"
    "  tacho page -i new.data --base old.data -o comparison.html\n"
    "  tacho page -i perf.data --redact --keep comm -o public.html\n\n";

struct Options {
  ReadingOptions reading;
  std::string title, base, key;
  std::uint64_t most = 2'000'000;
  PageSamples::Roots roots = PageSamples::Roots::Comm;
  Redaction redaction;
  bool has_source = false;    // --source
  bool matches_calls = true;  // with a base: renamed functions are found by their calls
};

cli::Option hide_option(std::string name, std::string help, Redaction& redaction, std::string_view classes) {
  return {std::move(name), cli::Takes::Nothing, "", std::move(help),
          [&redaction, classes](std::string_view) { return redaction.hide(classes); }};
}

cli::CommandLine describe(Options& options) {
  auto line =
      command_line("page",
                   "Writes a capture as one HTML file for a browser: an overview, a timeline by "
                   "processor, process and thread, the flame graph and the functions of the selected "
                   "part, heat maps and histograms of fields, and events one by one. The file needs no "
                   "network. The selection is part of the address (after #), so a copied link shows it too.");
  line.epilog = std::string(kExamples) + line.epilog;
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(truncated_stacks_option(options.reading.session.symbols.cut_mark));
  rows.push_back(
      cli::text("--title", "TEXT", "title of the page (default: the recorded command)", options.title));
  rows.push_back(cli::text("--base", "FILE",
                           "compare with this earlier capture; functions of a program or library that only "
                           "one of them has are compared by name",
                           options.base));
  rows.push_back(no_renames_option(options.matches_calls));
  rows.push_back(
      {"--by", cli::Takes::Value, "comm|none",
       "what stacks begin with: the thread's name (the default), or nothing, to compare programs of "
       "different names",
       [&options](std::string_view given) -> Result<> {
         if (given != "comm" && given != "none")
           return use_error("--by: '" + std::string(given) + "' is not known; it is comm or none");
         options.roots = given == "comm" ? PageSamples::Roots::Comm : PageSamples::Roots::None;
         return Done{};
       }});
  rows.push_back(
      cli::number("--max-samples", "N",
                  "the maximum of samples in the page, from the start of the capture (default: 2000000); it "
                  "says how many are left out",
                  1, 50'000'000, options.most));
  rows.push_back(
      cli::flag("--source",
                "with the source and the instructions of the functions with most samples, as far as "
                "tacho annotate finds them here or in the capture: up to 500 functions, 60,000 "
                "instructions and 4 MB of source",
                options.has_source));
  rows.push_back(kcore_option(options.reading));
  Redaction& redaction = options.redaction;
  rows.push_back(hide_option("--no-args", "leave out command lines", redaction, "cmdline"));
  rows.push_back(hide_option("--no-paths", "leave out folders: only the last part of a path is kept",
                             redaction, "paths"));
  rows.push_back(hide_option(
      "--redact",
      "hide the same as tacho redact: command lines, the host, folders, names of threads, containers "
      "and texts in payloads",
      redaction, "all"));
  rows.push_back(
      class_option("--keep", "with --redact: do not hide these classes", redaction, &Redaction::keep));
  rows.push_back(class_option("--hide", "hide these classes of tacho redact in the usual way for each",
                              redaction, &Redaction::hide));
  rows.push_back(class_option("--drop", "remove these classes", redaction, &Redaction::drop));
  rows.push_back(class_option("--hash", "replace these classes by pseudonyms", redaction, &Redaction::hash));
  rows.push_back(cli::text("--key", "TEXT",
                           "make pseudonyms with this key, as tacho redact does (default: a random one)",
                           options.key));
  rows.push_back(event_option(options.reading.session.filter));
  add_filter_options(rows, options.reading.session.filter);
  return line;
}

// What two captures of a page have in common.
struct CommonFrames {
  std::string renamed;      // modules whose functions are compared by name; empty: none
  bool has_threads = true;  // a thread's name; if not, every frame is new or gone
};

// `code`: of `samples`; null: the page has none.
CommonFrames compare_by_names(PageParts& parts, PageSamples& samples, PageSamples& base, PageCode* code,
                              bool matches_calls) {
  const std::vector<double> before = base.node_weights(), after = samples.node_weights();
  std::vector<FunctionToMatch> frames;
  for (const PageFrame& frame : parts.tree.frames())
    frames.push_back({.name = parts.texts[frame.name],
                      .module = parts.texts[frame.module],
                      .kind = static_cast<char>(frame.kind),
                      .share = 0});
  CallsToMatch calls;
  for (std::size_t node = 1; node < before.size(); ++node) {
    const PageTree::Node& of = parts.tree.nodes()[node];
    FunctionToMatch& frame = frames[of.frame];
    const bool is_before = before[node] > 0, is_after = after[node] > 0;
    frame.is_before |= is_before;
    frame.is_after |= is_after;
    const double share_before = is_before ? before[node] / before[0] : 0,
                 share_after = is_after ? after[node] / after[0] : 0;
    frame.share += std::max(share_before, share_after);
    const std::uint32_t caller = parts.tree.nodes()[of.parent].frame;
    const bool is_call = of.parent != 0 && parts.tree.frames()[caller].kind != FrameKind::Group;
    if (matches_calls && is_call) calls.add_call({caller, of.frame, share_before, share_after});
  }
  bool is_in_both = false, is_in_one = false;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (parts.tree.frames()[i].kind != FrameKind::Group) continue;
    is_in_both |= frames[i].is_before && frames[i].is_after;
    is_in_one |= frames[i].is_before != frames[i].is_after;
  }
  const MatchedFunctions matched = match_functions(frames, {calls.all(), base.builds(), samples.builds()});
  if (matched.is_any()) {
    const std::vector<std::uint32_t> moved = parts.tree.replace_frames(matched.same);
    samples.move_nodes(moved);
    base.move_nodes(moved);
    if (code != nullptr) code->move_frames(matched.same);
  }
  return {matched.text(), is_in_both || !is_in_one || samples.empty() || base.empty()};
}

// Reads the samples of a page, the states of threads if the capture has waits (null: it has none), and what
// the code of the page needs (null: it has none).
class PageSink : public Sink {
 public:
  PageSink(PageSamples& samples, PageStates* states, PageCode* code, Filter chosen)
      : samples_(samples), states_(states), code_(code), chosen_(std::move(chosen)) {}

  MergeBy merge_by() const override { return samples_.merge_by(); }
  bool takes_non_samples() const override { return states_ != nullptr; }
  Flow on_sample(const ResolvedSample& sample) override {
    const std::uint64_t before = samples_.size();
    // With states the session chooses none: samples that are not in the page may end waits.
    const bool is_chosen =
        states_ == nullptr || (chosen_.accepts_start(*sample.fields) && chosen_.accepts_comm(sample.comm));
    const Flow flow = is_chosen ? samples_.on_sample(sample) : Flow::Continue;
    const bool is_kept = samples_.size() > before;
    if (code_ != nullptr && is_kept) code_->add_sample(sample, sample.location_id);
    if (states_ == nullptr) return flow;
    states_->take_sample(sample, is_kept ? std::optional(static_cast<std::uint32_t>(before)) : std::nullopt);
    return Flow::Continue;
  }
  Flow on_non_sample(const NonSampleRecord& event) override {
    states_->take_record(event);
    return Flow::Continue;
  }

 private:
  PageSamples& samples_;
  PageStates* states_;
  PageCode* code_;
  Filter chosen_;  // which samples are in the page
};

Result<Shown> show(Session& session, const SessionOptions& wanted, TextOutput& out, const Options& options) {
  auto aliases = options.key.empty() ? Aliases::create() : Aliases::of_key(options.key);
  if (!aliases) return std::move(aliases.error());
  const PageNames names(options.redaction, *aliases);
  PageParts parts;
  Shown shown(Symbols::NotUsed);
  read_head(session);
  using Take = PageSamples::Take;
  PageSamples samples(session, names, parts, options.most,
                      options.has_source ? Take::Addresses : Take::Everything, options.roots);
  std::optional<PageCode> code;
  if (options.has_source) code.emplace(session, names, parts);
  PageCode* const used_code = code ? &*code : nullptr;
  Filter chosen = session.filter();
  const std::unique_ptr<PageStates> states = PageStates::find(session);
  PageSink sink(samples, states.get(), used_code, std::move(chosen));
  run_with_progress(session, sink, out);
  samples.name_new_rows();
  if (code) code->read_code();
  session.report_missing_symbols();
  samples.look_up_lines();

  std::optional<Session> before;
  std::optional<PageSamples> base;
  CommonFrames common;
  if (!options.base.empty()) {
    SessionOptions like = wanted;
    like.input = options.base;
    auto opened = Session::open(std::move(like));
    if (!opened) return std::move(opened.error()).in("--base");
    before.emplace(std::move(*opened));
    read_head(*before);
    base.emplace(*before, names, parts, options.most, Take::Stacks, options.roots);
    run_with_progress(*before, *base, out);
    base->name_new_rows();
    before->report_missing_symbols();
    std::ranges::move(findings_text(before->diagnostics(), options.base), std::back_inserter(shown.notes));
    if (before->diagnostics().incomplete()) shown.status = cli::kIncomplete;
  }
  parts.tree.show_parameters(parts.functions, parts.texts);
  if (base) {
    common = compare_by_names(parts, samples, *base, used_code, options.matches_calls);
    if (!common.has_threads)
      shown.notes.emplace_back(
          "tacho page: before and after have no thread name in common, so that every frame is new or gone; "
          "--by none leaves thread names out");
  }

  // Threads without samples get names.
  std::vector<PackedColumn> of_states = states ? states->columns(samples) : std::vector<PackedColumn>();
  const PageTree::Order order = parts.tree.order(parts.texts);
  TextBuffer json;
  JsonFields head(json);
  if (!options.title.empty()) head.number("title", parts.texts.number_of(printable(options.title)));
  describe_hiding(head, names);
  head.begin_object("capture");
  describe_capture(head, session, samples, names, parts.texts, wanted.input);
  head.end_object();
  if (base) {
    head.begin_object("base");
    describe_capture(head, *before, *base, names, parts.texts, options.base);
    if (!common.renamed.empty()) head.number("by_name", parts.texts.number_of(common.renamed));
    head.end_object();
  }
  describe_colours(head);
  if (states) describe_states(head);
  head.finish();
  std::vector<PackedColumn> columns = samples.columns(order);
  std::ranges::move(of_states, std::back_inserter(columns));
  if (code) std::ranges::move(code->columns(), std::back_inserter(columns));
  if (base) std::ranges::move(base->sums(order, "base."), std::back_inserter(columns));
  if (auto written =
          write_page(out, std::string(json.view()), parts, order, std::move(columns), session.pool());
      !written)
    return std::move(written.error());
  if (samples.empty())
    shown.notes.emplace_back("tacho page: the capture has no samples, or none that the options select");
  if (code && !code->missing_text().empty()) shown.notes.push_back("tacho page: " + code->missing_text());
  if (samples.left_out() > 0)
    shown.notes.push_back(
        fmt::format("tacho page: the page holds the first {} and leaves {} out; "
                    "--max-samples and --time choose others",
                    cli::counted(options.most, "sample"), samples.left_out()));
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_page(const std::vector<std::string>& arguments) {
  Options options;
  if (auto kept = options.redaction.keep("all"); !kept) return std::move(kept.error());
  return run_command(describe(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    options.reading.paging = Paging::Never;
    if (options.reading.output.empty() && ::isatty(STDOUT_FILENO) != 0)
      return use_error("a page cannot be shown on a terminal; name a file: -o page.html");
    if (options.has_source && options.redaction.hides(Content::Kernel))
      return use_error(
          "--source shows names and addresses that --redact and --hide kernel hide; leave one out");
    auto& symbols = options.reading.session.symbols;
    if (options.has_source && symbols.inlines == symbolize::Inlines::No)
      symbols.source_lines = symbolize::SourceLines::Yes;
    if (!options.base.empty()) options.reading.other_inputs = {options.base};
    if (!options.base.empty() && options.reading.session.filter.condition != nullptr)
      return use_error(
          "--where cannot be used with --base, as it is for one capture; --comm, --pid and --time can");
    return show_session_beside(options.reading,
                               [&options](Session& session, const SessionOptions& wanted, TextOutput& out) {
                                 return show(session, wanted, out, options);
                               });
  });
}

}  // namespace tacho::report
