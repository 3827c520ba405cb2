#include "report/views/report/report_mode.h"

#include <algorithm>
#include <cstdint>

#include "report/samples/chain_sources.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

bool any_samples(const Session& session, abi::SampleType bit) {
  return std::ranges::any_of(session.events(), [bit](const auto& event) { return event.attr.samples(bit); });
}

}  // namespace

// As perf, where a header with branch stacks makes -b the default; in a pipe the header comes too late. If no
// event has branch stacks, such a header is damaged, and samples are shown.
ReportMode mode_of(const Session& session, const ReportOptions& options) {
  if (options.waits.is_asked_for) return ReportMode::Samples;
  if (options.is_mem_mode) return ReportMode::Memory;
  if (options.branches.extend_chains) return ReportMode::Samples;
  const bool has_branches = !session.layout().is_pipe && session.features().environment.has_branch_stack &&
                            any_samples(session, abi::kSampleBranchStack);
  return options.branches.are_rows.value_or(has_branches) ? ReportMode::Branches : ReportMode::Samples;
}

Result<> check_mode(const Session& session, const ReportOptions& options, ReportMode mode) {
  const bool asks_for_others = options.is_mem_mode || options.branches.extend_chains ||
                               options.branches.shows_cycles || options.branches.are_rows.value_or(false) ||
                               options.shows_other_chains;
  if (options.waits.is_asked_for && asks_for_others)
    return use_error(
        "--off-cpu: rows are of waits; leave -b, --branch-history, --total-cycles, --mem-mode and "
        "--show-ref-call-graph out");
  const bool chooses_events = !options.weight.empty() || !options.reading.session.filter.events.empty();
  if (options.waits.is_asked_for && chooses_events)
    return use_error(
        "--off-cpu: rows are weighted by time, whatever the event; leave --weight and --event out");
  if (options.chains.has_parent_only && !options.chains.parent && !options.reading.perf_bytes.is_asked_for)
    return use_error("-x: rows are of the functions of --parent; give --parent too");
  if (options.is_mem_mode && options.branches.are_rows.value_or(false))
    return use_error("--mem-mode: rows are of memory accesses or of branches (-b), not of both");
  constexpr std::uint64_t kCallStack = 1U << 11;  // PERF_SAMPLE_BRANCH_CALL_STACK
  const bool has_lbr = std::ranges::any_of(session.events(), [](const format::Event& event) {
    return event.attr.samples(abi::kSampleBranchStack) && (event.attr.branch_sample_type & kCallStack) != 0;
  });
  if (options.stitches_lbr && has_lbr)
    return use_error("--stitch-lbr: call stacks that the processor kept (LBR) are taken as recorded");
  if (mode == ReportMode::Branches && !any_samples(session, abi::kSampleBranchStack))
    return use_error("-b: the capture has no branch stacks; perf record -b records them");
  if (mode == ReportMode::Memory && !any_samples(session, abi::kSampleDataSrc))
    return use_error("--mem-mode: the capture has no data sources; perf mem record does");
  if (options.branches.shows_cycles && options.is_for_programs())
    return use_error("--total-cycles: blocks are printed as text only; leave out --json and --csv");
  if (options.branches.extend_chains && !any_samples(session, abi::kSampleBranchStack))
    return use_error("--branch-history: the capture has no branch stacks; perf record -b records them");
  return Done{};
}

bool keeps_every_branch(const Session& session) {
  constexpr std::uint64_t kAny = 1U << 3;  // PERF_SAMPLE_BRANCH_ANY
  return std::ranges::any_of(session.events(), [](const format::Event& event) {
    return (event.attr.branch_sample_type & kAny) != 0;
  });
}

// As perf, which shows how branches went if the header has branches and no stack copies were recorded.
// Without call chains, branches are the only thing to show.
BranchHistory branch_history_of(const Session& session, const ReportOptions& options) {
  BranchHistory history;
  history.is_wanted = (options.branches.extend_chains || options.graph.adds_branches) &&
                      !options.waits.is_asked_for && any_samples(session, abi::kSampleBranchStack);
  const bool is_in_header = !session.layout().is_pipe && session.features().environment.has_branch_stack &&
                            !any_samples(session, abi::kSampleStackUser);
  history.shows_counts = history.is_wanted && options.branches.extend_chains &&
                         (is_in_header || !has_stacks(session.events(), session.features()));
  return history;
}

bool needs_source_lines(const ReportOptions& options) {
  return options.graph.key != ChainKey::Function || options.branches.shows_cycles ||
         names_key_with(options.columns, SortKey::Needs::SourceLines);
}

bool asks_for_parallelism(const ReportOptions& options) {
  return options.columns.prefers_latency || !options.filter.parallelism.empty() ||
         names_latency(options.columns) || names_key_with(options.columns, SortKey::Needs::Switches);
}

Result<> check_switches(const Session& session, const ReportColumns& columns, const ReportOptions& options) {
  const bool has_key =
      std::ranges::any_of(columns.keys, [](const KeyUse& use) { return use.key->name == "parallelism"; });
  if (!has_key && !shows_latency(columns) && options.filter.parallelism.empty()) return Done{};
  const bool has_switches = std::ranges::any_of(
      session.events(), [](const format::Event& event) { return event.attr.has(abi::kContextSwitch); });
  if (has_switches) return Done{};
  return use_error(
      "--latency, --parallelism and the keys latency and parallelism need to know when threads ran; record "
      "with --switch-events (perf 7: --latency) to have that");
}

std::function<Weight(const ProfileRow&, const Weight&)> weighed_by_latency(const Profile& profile,
                                                                           std::size_t fact) {
  return [&profile, fact](const ProfileRow& row, const Weight& weight) {
    return Weight{weight.period / std::max<std::uint64_t>(profile.facts(row)[fact], 1), weight.samples};
  };
}

}  // namespace tacho::report
