#include "report/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "format/base/printable.h"
#include "report/profile/stack_events.h"
#include "report/profile/stack_sums.h"
#include "report/profile/unit_count.h"
#include "report/profile/weight_unit.h"

namespace tacho::report {

// The functions of a capture's stacks.
class ComparedNames : public StackNames {
 public:
  ComparedNames(Session& session, Comparison& to, bool is_after)
      : to_(to),
        builds_(to.builds_of(is_after)),
        code_(session, FrameNames::Of::Functions,
              [this](const symbolize::Frame& frame, const FrameAddress& /*address*/,
                     std::vector<std::uint32_t>& numbers) { numbers.push_back(function_of(frame)); }) {}
  FrameNames& code_below(std::string_view /*root*/) override { return code_; }
  std::uint32_t number_of(std::string_view text, FrameKind /*kind*/) override {
    return to_.function_of(std::string(text), "", false);
  }

 private:
  std::uint32_t function_of(const symbolize::Frame& frame) {
    std::string module;
    if (frame.module != nullptr) {
      module = frame.module->short_name;
      builds_[module].insert(frame.module->build_id);
    }
    return to_.function_of(name_of_source(name_of_frame(frame, {})), std::move(module),
                           kind_of_code(frame) == FrameKind::Kernel);
  }
  Comparison& to_;
  ModuleBuilds& builds_;
  FrameNames code_;
};

namespace {

// Samples without a call chain, by event and location; gives all others to another sink.
class StacklessSums : public Sink {
 public:
  StacklessSums(Session& session, const StackSource& source)
      : events_(session, source.event, source.weight, false) {}
  // Whether a capture may have such samples.
  static bool is_needed(const Session& session) {
    return std::ranges::any_of(session.events(), [](const format::Event& event) {
      return !event.attr.is_dummy() && !event.attr.samples(format::abi::kSampleCallchain);
    });
  }
  void run(Sink& others, const RunSession& run) {
    others_ = &others;
    run(*this);
  }
  const std::map<std::pair<std::size_t, LocationId>, std::uint64_t>& sums() const { return sums_; }

  MergeBy merge_by() const override { return others_->merge_by(); }
  bool takes_non_samples() const override { return others_->takes_non_samples(); }
  Flow on_non_sample(const NonSampleRecord& record) override { return others_->on_non_sample(record); }
  Flow on_sample(const ResolvedSample& sample) override {
    if (sample.stack != nullptr) return others_->on_sample(sample);
    if (!events_.takes(sample)) return Flow::Continue;
    if (const auto weight = events_.weight_of(sample))
      sums_[{sample.event_index, sample.location_id}] += *weight;
    return Flow::Continue;
  }

 private:
  StackEvents events_;
  std::map<std::pair<std::size_t, LocationId>, std::uint64_t> sums_;
  Sink* others_ = nullptr;
};

std::string text_of(std::optional<std::uint32_t> number) { return number ? std::to_string(*number) : ""; }

std::string values_of(std::span<const SideCapture> captures, std::size_t fact, bool is_after) {
  std::set<std::string> values;
  for (const SideCapture& capture : captures)
    if (capture.is_after == is_after) values.insert(capture.facts[fact].second);
  std::string text;
  for (const std::string& value : values)
    text +=
        (text.empty() ? "" : " or ") + (value.empty() ? std::string("unknown") : format::printable(value));
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> environment_facts(const Session& session) {
  const format::Environment& host = session.features().environment;
  std::vector<std::pair<std::string, std::string>> facts{{"CPU", host.cpu_description.value_or("")},
                                                         {"CPUs online", text_of(host.cpus_online)},
                                                         {"kernel", host.os_release.value_or("")},
                                                         {"machine", host.arch.value_or("")},
                                                         {"recorded by version", host.version.value_or("")}};
  std::string events;
  for (const format::Event& event : session.events()) {
    if (event.attr.is_dummy()) continue;
    const bool is_rate = event.attr.has(format::abi::kFreq);
    events += fmt::format("{}{} ({} {})", events.empty() ? "" : ", ", event.name,
                          is_rate ? "frequency" : "period", event.attr.sample_period);
  }
  facts.emplace_back("events", std::move(events));
  std::string command;
  for (const std::string& word : host.command_line) command += (command.empty() ? "" : " ") + word;
  facts.emplace_back("command", std::move(command));
  return facts;
}

std::vector<std::string> differences_of(std::span<const SideCapture> captures) {
  std::vector<std::string> lines;
  if (captures.empty()) return lines;
  for (std::size_t fact = 0; fact < captures[0].facts.size(); ++fact) {
    const bool is_equal = std::ranges::all_of(captures, [&](const SideCapture& capture) {
      return capture.facts[fact].second == captures[0].facts[fact].second;
    });
    if (is_equal) continue;
    const std::string before = values_of(captures, fact, false), after = values_of(captures, fact, true);
    const std::string& name = captures[0].facts[fact].first;
    lines.push_back(before == after ? fmt::format("{}: {} on both sides", name, before)
                                    : fmt::format("{}: {} before, {} after", name, before, after));
  }
  return lines;
}

std::uint32_t Comparison::function_of(std::string name, std::string module, bool is_kernel) {
  const auto next = static_cast<std::uint32_t>(functions_.size());
  const auto [at, is_new] = by_key_.try_emplace(name + '\0' + module + (is_kernel ? 'k' : 'u'), next);
  if (is_new) functions_.push_back({std::move(name), std::move(module), is_kernel});
  return at->second;
}

void Comparison::add_stack(Tree& tree, std::span<const std::uint32_t> stack, double weight) {
  const auto [here, there] = std::ranges::mismatch(stack, tree.last);
  const auto shared = static_cast<std::size_t>(here - stack.begin());
  tree.last_nodes.resize(shared);
  std::uint32_t node = shared == 0 ? 0 : tree.last_nodes.back();
  for (const std::uint32_t function : stack.subspan(shared)) {
    const auto next = static_cast<std::uint32_t>(tree.nodes.size());
    const auto [at, is_new] = tree.by_place.try_emplace(std::uint64_t{node} << 32 | function, next);
    if (is_new) tree.nodes.push_back({node, function});
    node = at->second;
    tree.last_nodes.push_back(node);
  }
  tree.last.assign(stack.begin(), stack.end());
  if (tree.self.size() < tree.nodes.size() * most_) tree.self.resize(tree.nodes.size() * most_);
  tree.self[node * most_ + captures_.size() - 1] += weight;
}

Result<std::vector<std::string>> Comparison::add_capture(Session& session, const std::string& name,
                                                         bool is_after, const RunSession& run) {
  std::optional<UnitCount> units;
  if (!question_.per.empty()) {
    auto found = UnitCount::of(session, question_.per);
    if (!found) return std::move(found.error());
    units.emplace(std::move(*found));
  }
  StackSource source = question_.source;
  source.roots.clear();
  ComparedNames names(session, *this, is_after);
  NamedStacks stacks;
  EventSchemas schemas(session.events(), session.features());
  PeriodFields periods(schemas);
  StackSums sums(session, source, {.periods = &periods}, names, stacks);
  const RunSession run_counted = [&](Sink& sink) { units ? units->run(sink, run) : run(sink); };
  std::optional<StacklessSums> stackless;
  if (StacklessSums::is_needed(session)) stackless.emplace(session, source);
  const RunSession run_all = [&](Sink& sink) {
    stackless ? stackless->run(sink, run_counted) : run_counted(sink);
  };
  if (auto sound = sums.read(run_all); !sound) return std::move(sound.error());
  captures_.push_back({name, is_after, static_cast<double>(question_.work), environment_facts(session)});
  if (units) captures_.back().units = units->count();
  if (units && units->count() == 0)
    return use_error("--per: " + format::printable(name) + " has no sample of " +
                     format::printable(question_.per));
  const auto tree_of = [&](std::size_t event) -> Tree& {
    const format::Event& described = session.events()[event];
    Tree& tree = events_[described.name];
    tree.unit = weight_unit(source.weight, described, schemas.schema_of(event), periods.field_of(event));
    return tree;
  };
  std::vector<Tree*> of_events;
  sums.each([&](const StackSums::Sum& sum) {
    if (sum.event >= of_events.size()) of_events.resize(sum.event + 1);
    if (of_events[sum.event] == nullptr) of_events[sum.event] = &tree_of(sum.event);
    // The first name of a stack is that of its event.
    add_stack(*of_events[sum.event], stacks[sum.stack].subspan(1), static_cast<double>(sum.weight));
  });
  if (!stackless || stackless->sums().empty()) return sums.notes(StackEvents::Several::Compared);
  std::vector<std::uint32_t> stack;
  for (const auto& [place, weight] : stackless->sums()) {
    stack.clear();
    names.code_below("").append(std::span(&place.second, 1), FrameNames::Order::RootFirst, stack);
    add_stack(tree_of(place.first), stack, static_cast<double>(weight));
  }
  return std::vector<std::string>{
      "samples without a stack: a function has no callers; record with -g to see them"};
}

// Which sides have each function, with which share, and which calls.
void Comparison::mark_sides(const Tree& tree, std::vector<FunctionToMatch>& functions,
                            CallsToMatch& calls) const {
  using BothSides = std::array<double, 2>;
  std::vector<BothSides> weights(tree.nodes.size());
  for (std::size_t node = tree.nodes.size(); node-- > 0;) {
    for (std::size_t capture = 0; capture < captures_.size(); ++capture) {
      const std::size_t at = node * most_ + capture;
      if (at < tree.self.size()) weights[node][captures_[capture].is_after ? 1 : 0] += tree.self[at];
    }
    for (const std::size_t side : {0U, 1U})
      if (node > 0) weights[tree.nodes[node].parent][side] += weights[node][side];
  }
  std::vector<BothSides> shares(functions.size());
  for (std::size_t node = 1; node < tree.nodes.size(); ++node) {
    const Node& of = tree.nodes[node];
    const bool is_before = weights[node][0] > 0, is_after = weights[node][1] > 0;
    functions[of.function].is_before |= is_before;
    functions[of.function].is_after |= is_after;
    BothSides own{};
    for (const std::size_t side : {0U, 1U})
      if (weights[0][side] > 0) own[side] = weights[node][side] / weights[0][side];
    for (const std::size_t side : {0U, 1U}) shares[of.function][side] += own[side];
    if (of.parent != 0) calls.add_call({tree.nodes[of.parent].function, of.function, own[0], own[1]});
  }
  for (std::size_t i = 0; i < functions.size(); ++i)
    functions[i].share = std::max({functions[i].share, shares[i][0], shares[i][1]});
}

std::string Comparison::match_sides() {
  std::vector<FunctionToMatch> functions;
  for (const ComparedFunction& function : functions_)
    functions.push_back({.name = function.name,
                         .module = function.module,
                         .kind = function.is_kernel ? 'k' : 'u',
                         .share = 0});
  CallsToMatch calls;
  for (const auto& [name, tree] : events_) mark_sides(tree, functions, calls);
  MatchEvidence evidence{.calls = {}, .before = builds_before_, .after = builds_after_};
  if (question_.matches_calls) evidence.calls = calls.all();
  const MatchedFunctions matched = match_functions(functions, evidence);
  if (!matched.is_any()) return {};
  for (auto& [name, tree] : events_) rename_functions(tree, matched.same);
  renamed_.text = matched.renames;
  for (std::uint32_t i = 0; i < functions.size(); ++i)
    if (matched.by[i] == MatchedBy::Calls)
      renamed_.pairs.emplace_back(functions_[i], functions_[matched.same[i]]);
  return matched.text();
}

Result<RenamedFunctions> renamed_between(const std::string& before, const std::string& after,
                                         SessionOptions wanted,
                                         const std::function<Result<>(Session&, Sink&)>& run) {
  wanted.wants_stacks = true;
  wanted.filter.time_text.clear();
  wanted.filter.condition = nullptr;
  Comparison comparison({}, 2);
  for (const bool is_after : {false, true}) {
    wanted.input = is_after ? after : before;
    auto session = Session::open(wanted);
    if (!session) return std::move(session.error());
    Result<> was_read = Done{};
    auto added =
        comparison.add_capture(*session, {}, is_after, [&](Sink& sink) { was_read = run(*session, sink); });
    if (!was_read) return std::move(was_read.error());
    if (!added) return std::move(added.error());
  }
  (void)comparison.match_sides();
  return comparison.renamed();
}

void Comparison::each_stack(
    const std::string& event, std::size_t capture,
    const std::function<void(std::span<const std::uint32_t> stack, double weight)>& take) const {
  const auto found = events_.find(event);
  if (found == events_.end()) return;
  const Tree& tree = found->second;
  std::vector<std::uint32_t> stack;
  for (std::size_t node = 1; node < tree.nodes.size(); ++node) {
    const std::size_t at = node * most_ + capture;
    if (at >= tree.self.size() || tree.self[at] == 0) continue;
    stack.clear();
    for (auto above = static_cast<std::uint32_t>(node); above != 0; above = tree.nodes[above].parent)
      stack.push_back(tree.nodes[above].function);
    std::ranges::reverse(stack);
    take(stack, tree.self[at]);
  }
}

void Comparison::rename_functions(Tree& tree, std::span<const std::uint32_t> same) const {
  Tree renamed;
  renamed.unit = tree.unit;
  std::vector<std::uint32_t> new_node(tree.nodes.size());
  renamed.self.resize(most_);
  for (std::size_t node = 0; node < tree.nodes.size(); ++node) {
    if (node > 0) {
      const std::uint32_t parent = new_node[tree.nodes[node].parent];
      const std::uint32_t function = same[tree.nodes[node].function];
      const auto [at, is_new] = renamed.by_place.try_emplace(
          std::uint64_t{parent} << 32 | function, static_cast<std::uint32_t>(renamed.nodes.size()));
      if (is_new) renamed.nodes.push_back({parent, function});
      new_node[node] = at->second;
      renamed.self.resize(renamed.nodes.size() * most_);
    }
    for (std::size_t capture = 0; capture < most_ && node * most_ + capture < tree.self.size(); ++capture)
      renamed.self[new_node[node] * most_ + capture] += tree.self[node * most_ + capture];
  }
  tree = std::move(renamed);
}

// Judges one event: its values by function, their tests, and what explains them.
class EventJudge {
 public:
  EventJudge(const Comparison& comparison, const Comparison::Tree& tree)
      : all_(comparison), tree_(tree), captures_(comparison.captures_.size()) {
    before_ = static_cast<std::size_t>(std::ranges::count(all_.captures_, false, &SideCapture::is_after));
  }

  ComparedEvent judge(const std::string& name) {
    event_.name = name;
    event_.unit = tree_.unit;
    sum_up();
    make_values();
    TestOptions test = all_.question_.test;
    // Shares have a total of 1; costs are compared with the mean of all captures, whichever their side.
    event_.minimal_effect = test.minimal_effect *= all_.question_.is_of_shares() ? 1 : mean_cost();
    choose_tested();
    if (tested_.empty()) return std::move(event_);
    event_.run = all_.question_.takes ? compare_sides(values_of_tested(), before_, test)
                                      : compare_sides(values_, before_, test);
    event_.functions = tested_.size();
    take_findings();
    for (FunctionChange& finding : event_.findings)
      if (finding.tested.verdict == Verdict::Changed || is_indicative(finding)) explain(finding);
    sort_findings();
    event_.run.of.clear();
    return std::move(event_);
  }

 private:
  using Node = std::uint32_t;
  using FunctionOf = std::uint32_t;  // a function's number in the comparison
  static constexpr std::uint32_t kNone = Comparison::kNone;

  void choose_tested() {
    const auto& takes = all_.question_.takes;
    for (std::size_t i = 0; i < functions_.size(); ++i)
      if (!takes || takes(all_.functions_[functions_[i]])) tested_.push_back(i);
  }
  std::vector<std::vector<double>> values_of_tested() const {
    std::vector<std::vector<double>> values;
    for (const std::size_t i : tested_) {
      values.push_back(values_[2 * i]);
      values.push_back(values_[2 * i + 1]);
    }
    return values;
  }

  double self_weight(std::size_t node, std::size_t capture) const {
    const std::size_t at = node * all_.most_ + capture;
    return at < tree_.self.size() ? tree_.self[at] : 0;
  }
  bool is_indicative(const FunctionChange& finding) const {
    return finding.tested.verdict == Verdict::Indicative &&
           std::abs(finding.tested.shift) >= event_.minimal_effect;
  }

  // Totals of captures, the unit of each, and each node's differences.
  void sum_up() {
    const std::size_t nodes = tree_.nodes.size();
    event_.totals.assign(captures_, 0);
    for (std::size_t node = 0; node < nodes; ++node)
      for (std::size_t capture = 0; capture < captures_; ++capture)
        event_.totals[capture] += self_weight(node, capture);
    for (std::size_t capture = 0; capture < captures_; ++capture) {
      const double units =
          all_.question_.is_of_shares() ? event_.totals[capture] : all_.captures_[capture].units;
      scale_.push_back(units > 0 ? 1 / units : 0);
    }
    self_delta_.assign(nodes, 0);
    delta_.assign(nodes, 0);
    children_.resize(nodes);
    for (std::size_t node = nodes; node-- > 0;) {
      for (std::size_t capture = 0; capture < captures_; ++capture)
        self_delta_[node] += self_weight(node, capture) * scale_[capture] * side(capture);
      delta_[node] += self_delta_[node];
      if (node == 0) break;
      const Node parent = tree_.nodes[node].parent;
      delta_[parent] += delta_[node];
      children_[parent].push_back(static_cast<Node>(node));
    }
  }
  // A mean after minus the mean before is the sum of values times this.
  double side(std::size_t capture) const {
    return capture < before_ ? -1 / static_cast<double>(before_)
                             : 1 / static_cast<double>(captures_ - before_);
  }
  double mean_cost() const {
    double sum = 0;
    for (std::size_t capture = 0; capture < captures_; ++capture)
      sum += event_.totals[capture] * scale_[capture];
    return sum / static_cast<double>(captures_);
  }

  // Two rows for each function with weight, those of its own code and of its total, in the order of numbers;
  // and the topmost nodes of each function.
  void make_values() {
    const std::size_t all = all_.functions_.size();
    std::vector<std::vector<double>> self(all), total(all);
    top_.assign(all, {});
    std::vector<double> totals(tree_.nodes.size() * captures_);
    for (std::size_t node = tree_.nodes.size(); node-- > 1;) {
      const Comparison::Node& of = tree_.nodes[node];
      for (std::size_t capture = 0; capture < captures_; ++capture) {
        double& here = totals[node * captures_ + capture];
        here += self_weight(node, capture) * scale_[capture];
        totals[of.parent * captures_ + capture] += here;
      }
    }
    find_topmost();
    for (std::size_t node = 1; node < tree_.nodes.size(); ++node) {
      const FunctionOf function = tree_.nodes[node].function;
      for (auto* const row : {&self[function], &total[function]}) row->resize(captures_);
      for (std::size_t capture = 0; capture < captures_; ++capture)
        self[function][capture] += self_weight(node, capture) * scale_[capture];
      if (!is_topmost_[node]) continue;
      top_[function].push_back(static_cast<Node>(node));
      for (std::size_t capture = 0; capture < captures_; ++capture)
        total[function][capture] += totals[node * captures_ + capture];
    }
    for (FunctionOf function = 0; function < all; ++function) {
      if (total[function].empty()) continue;
      functions_.push_back(function);
      values_.push_back(std::move(self[function]));
      values_.push_back(std::move(total[function]));
    }
  }

  // Whether a node's function is in none of its callers. A walk of the whole tree, with the functions on its
  // way.
  void find_topmost() {
    is_topmost_.assign(tree_.nodes.size(), false);
    std::vector<std::uint32_t> on_path(all_.functions_.size());
    std::vector<std::pair<Node, std::size_t>> path{{0, 0}};
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < children_[node].size()) {
        const Node child = children_[node][next++];
        is_topmost_[child] = on_path[tree_.nodes[child].function]++ == 0;
        path.emplace_back(child, 0);
        continue;
      }
      if (node != 0) --on_path[tree_.nodes[node].function];
      path.pop_back();
    }
  }

  // One finding for each function: of its own code, unless only its total changed, or says more.
  void take_findings() {
    const auto rank = [](Verdict verdict) {
      return verdict == Verdict::Changed ? 0 : verdict == Verdict::Inconclusive ? 1 : 2;
    };
    for (std::size_t i = 0; i < tested_.size(); ++i) {
      const Tested &self = event_.run.of[2 * i], &total = event_.run.of[2 * i + 1];
      const bool is_self_larger = std::abs(self.shift) >= 0.9 * std::abs(total.shift);
      const bool takes_self = rank(self.verdict) != rank(total.verdict)
                                  ? rank(self.verdict) < rank(total.verdict)
                                  : is_self_larger;
      event_.findings.push_back({functions_[tested_[i]],
                                 takes_self ? CostPart::Self : CostPart::Total,
                                 takes_self ? self : total,
                                 ChangeCause::None,
                                 {},
                                 {}});
    }
  }

  double sum_of(const std::vector<Node>& nodes, const std::vector<double>& of) const {
    return std::accumulate(nodes.begin(), nodes.end(), 0.0,
                           [&](double sum, Node node) { return sum + of[node]; });
  }
  static bool is_about(double value, double expected) {
    return std::abs(value - expected) <= 0.3 * std::abs(expected);
  }
  bool is_zero(FunctionOf function, bool is_after) const {
    const auto at = std::ranges::lower_bound(functions_, function) - functions_.begin();
    const std::vector<double>& total = values_[2 * static_cast<std::size_t>(at) + 1];
    for (std::size_t capture = 0; capture < captures_; ++capture)
      if ((capture >= before_) == is_after && total[capture] > 0) return false;
    return true;
  }

  void explain(FunctionChange& finding) const {
    const bool is_new = is_zero(finding.function, false), is_gone = is_zero(finding.function, true);
    if (is_new || is_gone) {
      finding.cause = is_new ? ChangeCause::Appeared : ChangeCause::Vanished;
      if (take_inlining(finding)) finding.cause = is_new ? ChangeCause::Outlined : ChangeCause::Inlined;
      return;
    }
    if (finding.part == CostPart::Self) {
      finding.cause = take_absorbed(finding) ? ChangeCause::Absorbed : ChangeCause::OwnCode;
      if (finding.cause == ChangeCause::Absorbed) return;
    } else {
      walk_down(finding);
    }
    const bool is_moved_code = finding.cause == ChangeCause::Callee && is_flat(finding, finding.path.back());
    if (finding.cause != ChangeCause::Callee || is_moved_code) take_trade(finding, is_moved_code);
  }
  // Whether the function costs as much as before, so that its cost only moved.
  bool is_flat(const FunctionChange& finding, FunctionOf function) const {
    return std::abs(sum_of(top_[function], delta_)) <= 0.3 * std::abs(sum_of(top_[finding.function], delta_));
  }

  // The deepest frame that explains the change: down while one child has 90 % of it, and while no other child
  // makes up for a part of it. Where children trade, the function whose own code has 90 % of the change.
  void walk_down(FunctionChange& finding) const {
    std::vector<Node> at = top_[finding.function];
    const double whole = sum_of(at, delta_);
    // The change is one of medians; means may say something else.
    if (whole * finding.tested.shift <= 0) {
      finding.cause = ChangeCause::Callees;
      return;
    }
    for (;;) {
      std::map<FunctionOf, std::vector<Node>> below;
      for (const Node node : at)
        for (const Node child : children_[node]) below[tree_.nodes[child].function].push_back(child);
      const auto most = std::ranges::max_element(
          below, {}, [&](const auto& one) { return sum_of(one.second, delta_) / whole; });
      if (most == below.end() || sum_of(most->second, delta_) / whole < 0.9) break;
      const bool is_trade = std::ranges::any_of(
          below, [&](const auto& one) { return sum_of(one.second, delta_) / whole < -0.3; });
      if (is_trade) return take_own_code_below(at, whole, finding);
      finding.path.push_back(most->first);
      at = most->second;
    }
    const bool is_own = sum_of(at, self_delta_) / whole >= 0.5;
    if (finding.path.empty()) {
      finding.cause = is_own ? ChangeCause::OwnCode : ChangeCause::Callees;
      if (!is_own) finding.others = largest_below(at, whole);
      return;
    }
    finding.cause = ChangeCause::Callee;
    finding.others = {finding.path.back()};
  }

  // The functions that these nodes call, as far as each has a tenth of the change.
  std::vector<FunctionOf> largest_below(const std::vector<Node>& at, double whole) const {
    std::map<FunctionOf, double> below;
    for (const Node node : at)
      for (const Node child : children_[node]) below[tree_.nodes[child].function] += delta_[child] / whole;
    std::vector<std::pair<double, FunctionOf>> parts;
    for (const auto& [function, part] : below)
      if (part >= 0.1) parts.emplace_back(-part, function);
    std::ranges::sort(parts);
    std::vector<FunctionOf> functions;
    for (const auto& [part, function] : parts) functions.push_back(function);
    return functions;
  }

  // The function whose own code in all of these subtrees has 90 % of the change; what only moved within them
  // is zero.
  void take_own_code_below(const std::vector<Node>& at, double whole, FunctionChange& finding) const {
    std::map<FunctionOf, double> own;
    std::vector<Node> open = at;
    while (!open.empty()) {
      const Node node = open.back();
      open.pop_back();
      own[tree_.nodes[node].function] += self_delta_[node];
      open.insert(open.end(), children_[node].begin(), children_[node].end());
    }
    pair_off(own);
    const auto most = std::ranges::max_element(own, {}, [&](const auto& one) { return one.second / whole; });
    if (most->second / whole < 0.8) {
      finding.cause = ChangeCause::Callees;
      finding.path.clear();
      return;
    }
    finding.path.push_back(most->first);
    finding.cause = ChangeCause::Callee;
    finding.others = {most->first};
  }

  // Leaves out functions of which one gained what another one lost: inlined into it, or called in its place.
  static void pair_off(std::map<FunctionOf, double>& own) {
    for (auto& [loser, loss] : own) {
      if (loss >= 0) continue;
      const double lost = -loss;
      const auto nearest =
          std::ranges::min_element(own, {}, [lost](const auto& one) { return std::abs(one.second - lost); });
      if (!is_about(nearest->second, lost)) continue;
      nearest->second = loss = 0;
    }
  }

  // The callers' own code of a function that is new or gone.
  bool take_inlining(FunctionChange& finding) const {
    std::map<FunctionOf, double> callers;
    std::set<Node> seen;
    for (const Node node : top_[finding.function]) {
      const Node parent = tree_.nodes[node].parent;
      if (parent != 0 && seen.insert(parent).second)
        callers[tree_.nodes[parent].function] += self_delta_[parent];
    }
    double sum = 0;
    for (const auto& [function, delta] : callers) {
      if (delta * finding.tested.shift >= 0) continue;
      sum += delta;
      finding.others.push_back(function);
    }
    if (!finding.others.empty() && makes_up_for(sum, -finding.tested.shift)) return true;
    finding.others.clear();
    return false;
  }
  // Whether the two differ by less than what matters.
  bool makes_up_for(double change, double expected) const {
    return is_about(change, expected) || std::abs(change - expected) < event_.minimal_effect;
  }

  // Callees on one side alone, gone or new, whose cost makes up for the change of the function's own code.
  bool take_absorbed(FunctionChange& finding) const {
    std::map<FunctionOf, double> below;
    double own = 0;
    for (std::size_t node = 1; node < tree_.nodes.size(); ++node) {
      if (tree_.nodes[node].function == finding.function) own += self_delta_[node];
      const Node parent = tree_.nodes[node].parent;
      if (parent != 0 && tree_.nodes[parent].function == finding.function)
        below[tree_.nodes[node].function] += delta_[node];
    }
    std::vector<std::pair<double, FunctionOf>> parts;
    double sum = 0;
    for (const auto& [function, delta] : below) {
      if (delta * own >= 0 || function == finding.function) continue;
      if (!is_zero(function, false) && !is_zero(function, true)) continue;
      sum += delta;
      parts.emplace_back(-std::abs(delta), function);
    }
    if (parts.empty() || !makes_up_for(sum, -own)) return false;
    std::ranges::sort(parts);
    for (const auto& [size, function] : parts)
      if (-size >= 0.1 * std::abs(own)) finding.others.push_back(function);
    return !finding.others.empty();
  }

  // Another function below the same caller that has what this one lost, while the caller stays. With shares,
  // a caller of nearly everything always stays, so it says nothing. Of code that is known to have moved, the
  // caller may have changed otherwise.
  void take_trade(FunctionChange& finding, bool is_moved_code) const {
    std::set<FunctionOf> callers;
    for (const Node node : top_[finding.function])
      if (tree_.nodes[node].parent != 0) callers.insert(tree_.nodes[tree_.nodes[node].parent].function);
    const double whole = sum_of(top_[finding.function], delta_);
    for (const FunctionOf caller : callers) {
      if (!is_moved_code) {
        if (std::abs(sum_of(top_[caller], delta_)) > 0.3 * std::abs(whole)) continue;
        if (all_.question_.is_of_shares() && share_of(caller) > 0.9) continue;
      }
      std::map<FunctionOf, double> deltas;
      for (const Node node : top_[caller])
        for (const Node child : children_[node]) deltas[tree_.nodes[child].function] += delta_[child];
      for (const auto& [function, delta] : deltas) {
        if (function == finding.function || !is_about(delta, -whole)) continue;
        finding.cause = ChangeCause::Moved;
        finding.others = {function, caller};
        return;
      }
    }
  }
  double share_of(FunctionOf function) const {
    const auto at = std::ranges::lower_bound(functions_, function) - functions_.begin();
    const std::vector<double>& total = values_[2 * static_cast<std::size_t>(at) + 1];
    return std::accumulate(total.begin(), total.end(), 0.0) / static_cast<double>(captures_);
  }

  void sort_findings() {
    const auto rank = [this](const FunctionChange& finding) {
      const bool is_through = finding.cause == ChangeCause::Callee || finding.cause == ChangeCause::Callees;
      switch (finding.tested.verdict) {
        case Verdict::Changed:
          return is_through ? 1 : 0;
        case Verdict::Inconclusive:
          return 2;
        case Verdict::Indicative:
          return is_indicative(finding) && !is_through ? 0 : 3;
        case Verdict::Same:
          break;
      }
      return 3;
    };
    std::ranges::sort(event_.findings, [&](const FunctionChange& a, const FunctionChange& b) {
      if (rank(a) != rank(b)) return rank(a) < rank(b);
      if (std::abs(a.tested.shift) != std::abs(b.tested.shift))
        return std::abs(a.tested.shift) > std::abs(b.tested.shift);
      return a.function < b.function;
    });
  }

  const Comparison& all_;
  const Comparison::Tree& tree_;
  std::size_t captures_, before_ = 0;
  ComparedEvent event_;
  std::vector<double> scale_;               // by capture
  std::vector<double> delta_, self_delta_;  // by node: the means' difference
  std::vector<std::vector<Node>> children_;
  std::vector<bool> is_topmost_;
  std::vector<std::vector<Node>> top_;  // by function: its topmost nodes
  std::vector<FunctionOf> functions_;   // with weight, ascending
  std::vector<std::size_t> tested_;     // indices of functions_
  std::vector<std::vector<double>> values_;
};

std::string cause_text(const Comparison& comparison, const FunctionChange& change) {
  constexpr std::size_t kShown = 4;  // functions of a path
  const auto name = [&](std::uint32_t function) {
    return format::printable(comparison.functions()[function].name);
  };
  const auto names = [&](std::span<const std::uint32_t> functions, std::string_view between) {
    std::string text;
    for (const std::uint32_t function : functions)
      text += (text.empty() ? "" : std::string(between)) + name(function);
    return text;
  };
  const auto others = [&] {
    const std::span<const std::uint32_t> all(change.others);
    return names(all.first(std::min(all.size(), kShown)), ", ") + (all.size() > kShown ? " and others" : "");
  };
  switch (change.cause) {
    case ChangeCause::None:
      break;
    case ChangeCause::OwnCode:
      return "its own code";
    case ChangeCause::Callee: {
      // The end of a long path says more than its middle.
      const std::span<const std::uint32_t> path(change.path);
      return std::string("through ") + (path.size() > kShown ? "... > " : "") +
             names(path.last(std::min(path.size(), kShown)), " > ");
    }
    case ChangeCause::Callees:
      return "several functions that it calls" + (change.others.empty() ? "" : ": " + others());
    case ChangeCause::Moved:
      return fmt::format("moved {} {}, below {}", change.tested.shift > 0 ? "from" : "to",
                         name(change.others[0]), name(change.others[1]));
    case ChangeCause::Inlined:
      return "gone: inlined into " + others();
    case ChangeCause::Outlined:
      return "new: was inlined into " + others();
    case ChangeCause::Absorbed:
      return (change.tested.shift > 0 ? "now inlined into it: " : "no longer inlined into it: ") + others();
    case ChangeCause::Appeared:
      return "new";
    case ChangeCause::Vanished:
      return "gone";
  }
  return "";
}

Result<std::vector<ComparedEvent>> Comparison::judge() const {
  std::vector<ComparedEvent> judged;
  for (const auto& [name, tree] : events_) judged.push_back(EventJudge(*this, tree).judge(name));
  if (judged.empty()) return Error{"no capture has a sample that the options ask for"};
  return judged;
}

}  // namespace tacho::report
