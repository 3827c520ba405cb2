#include "report/views/heatmap/heat_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "report/output/field_sinks.h"
#include "report/output/terminal.h"

namespace tacho::report {
namespace {

// Values that every sample has, except the thread, which is a finding of its own kind.
constexpr std::string_view kOwnFields[] = {"comm", "pid", "cpu", "cgroup", "event"};
constexpr std::size_t kFewValues = 64;  // a field with at most this many numbers has no ranges

bool is_measure(const PayloadField& field) {
  using format::FieldKind;
  const bool is_number =
      field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed || field.kind == FieldKind::Float;
  return is_number && !is_shown_in_hex(field) && !is_named_address(field);
}

std::optional<Int128> number_in(const KeyValue& value) {
  if (const auto* const number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* const bits = std::get_if<std::uint64_t>(&value)) return *bits;
  const auto* const real = std::get_if<double>(&value);
  return real == nullptr ? std::nullopt : number_of(*real);
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double log_likelihood_ratio(const Tally& part, const Tally& whole) {
  const auto real = [](std::uint64_t count) { return static_cast<double>(count); };
  const double all = real(whole.inside) + real(whole.outside);
  const double with = real(part.inside) + real(part.outside), without = all - with;
  const auto term = [all](double seen, double row, double column) {
    return seen > 0 ? seen * std::log(seen * all / (row * column)) : 0;
  };
  const double inside = real(whole.inside), outside = real(whole.outside);
  return 2 * (term(real(part.inside), with, inside) + term(real(part.outside), with, outside) +
              term(inside - real(part.inside), without, inside) +
              term(outside - real(part.outside), without, outside));
}

std::vector<BoxSink::Facet>& BoxSink::facets_of(std::size_t event) {
  while (facets_.size() <= event) facets_.emplace_back();
  has_facets_.resize(facets_.size());
  std::vector<Facet>& facets = facets_[event];
  if (has_facets_[event]) return facets;
  has_facets_[event] = true;
  const PayloadSchema* const schema = source_.schemas().schema_of(event);
  const auto add = [&](const std::string& name, const PayloadSchema& fields) {
    if (auto key = FieldKey::find_field("", name, fields, "")) facets.emplace_back(std::move(*key));
  };
  for (const std::string_view own : kOwnFields) {
    const bool is_hidden = schema != nullptr && field_named(*schema, own) != nullptr;
    if (source_.own() == nullptr || source_.own()->name != own)
      add((is_hidden ? "sample." : "") + std::string(own), no_payload_);
  }
  for (std::size_t i = 0; schema != nullptr && i < schema->fields.size(); ++i) {
    const PayloadField& field = schema->fields[i];
    if (&field == source_.field() || is_list(field)) continue;
    add(field.name, *schema);
    facets.back().has_ranges = facets.back().key.field() != nullptr && is_measure(field);
  }
  return facets;
}

Sink::Flow BoxSink::on_sample(const ResolvedSample& sample) {
  if (!source_.takes(sample.event_index)) return Flow::Continue;
  const auto value = source_.value_of(sample);
  if (!times_.has(sample) || !value) return Flow::Continue;
  const bool is_inside = box_.has(sample.fields->time, *value);
  const std::uint64_t count = source_.count_of(sample);
  all_.add_samples(is_inside, count);
  if (is_inside) {
    events_inside_.resize(std::max(events_inside_.size(), sample.event_index + 1));
    events_inside_[sample.event_index] = true;
  }
  ThreadCount& thread = threads_[{sample.pid(), sample.tid(), sample.comm.data()}];
  thread.comm = sample.comm;
  thread.tally.add_samples(is_inside, count);
  add_fields(sample, is_inside, count);
  add_stack(sample, is_inside, count);
  return Flow::Continue;
}

void BoxSink::add_fields(const ResolvedSample& sample, bool is_inside, std::uint64_t count) {
  for (Facet& facet : facets_of(sample.event_index)) {
    KeyValue value = facet.key.named_value(sample, session_.resolver());
    if (std::holds_alternative<std::monostate>(value)) continue;
    if (facet.has_ranges)
      if (const auto number = number_in(value))
        facet.ranges[powers_.index_of(*number)].add_samples(is_inside, count);
    if (const auto known = facet.values.find(value); known != facet.values.end()) {
      known->second.add_samples(is_inside, count);
    } else if (facet.values.size() < (facet.has_ranges ? kMostNumbers : kMostTexts)) {
      facet.values[std::move(value)].add_samples(is_inside, count);
    } else {
      facet.is_overfull = true;
    }
  }
}

// A call chain gets its functions at its first sample, before other files are mapped at its addresses.
void BoxSink::add_stack(const ResolvedSample& sample, bool is_inside, std::uint64_t count) {
  if (sample.stack == nullptr || sample.stack->frames.empty()) {
    if (sample.location != nullptr)
      by_function_[functions_.of_location(sample.location_id)].add_samples(is_inside, count);
    return;
  }
  has_stacks_ = has_stacks_ || is_inside;
  ChainId& chain = chain_of_stack_[sample.stack->id];
  if (chain == kNo<ChainId>) chain = stacks_.chain_of(*sample.stack);
  if (!chains_.has(chain)) chains_.resize(stacks_.size());
  chains_[chain].add_samples(is_inside, count);
}

Finding* BoxSink::add_finding(std::vector<Finding>& found, Finding finding) const {
  constexpr std::uint64_t kFewest = 2;  // one sample alone is no pattern
  if (finding.tally.inside < kFewest ||
      share(finding.tally.inside, all_.inside) <= share(finding.tally.outside, all_.outside))
    return nullptr;
  finding.g2 = log_likelihood_ratio(finding.tally, all_);
  return finding.g2 >= kLeastG2 ? &found.emplace_back(std::move(finding)) : nullptr;
}

void BoxSink::find_fields(std::vector<Finding>& found, Names names) {
  // Merges fields of the same name of several events.
  struct Merged {
    const Facet* shown_by = nullptr;
    std::map<std::string, Tally> values;
    std::map<Int128, Tally> ranges;
    bool is_overfull = false;
  };
  std::map<std::pair<std::string, bool>, Merged> by_name;
  for (const auto& facets : facets_) {
    for (const Facet& facet : facets) {
      Merged& merged = by_name[{facet.key.name(), facet.key.field() != nullptr}];
      merged.shown_by = &facet;
      merged.is_overfull = merged.is_overfull || facet.is_overfull;
      for (const auto& [value, tally] : facet.values) merged.values[facet.key.show(value, names)] += tally;
      for (const auto& [range, tally] : facet.ranges) merged.ranges[range] += tally;
    }
  }
  for (auto& [key, field] : by_name) {
    Finding finding{.kind = Finding::Kind::Field, .name = printable(key.first, names)};
    const bool has_ranges = field.shown_by->has_ranges && field.values.size() > kFewValues;
    if (field.is_overfull && !has_ranges) overfull_.push_back(finding.name);
    // If there are too many numbers, only their ranges are ranked.
    if (!field.is_overfull || !has_ranges) {
      for (const auto& [value, tally] : field.values) {
        finding.value = value;
        finding.tally = tally;
        add_finding(found, finding);
      }
    }
    if (!has_ranges) continue;
    for (const auto& [range, tally] : field.ranges) {
      const Bucket bucket = powers_.bucket_at(range);
      finding.value = decimal_text(bucket.low) + ".." + decimal_text(bucket.high);
      finding.tally = tally;
      add_finding(found, finding);
    }
  }
}

std::string BoxSink::name_of(FunctionId function, Names names) const {
  const Function& one = functions_[function];
  if (!one.name().empty()) return printable(one.shown_name(), names);
  return one.module == nullptr ? "[unknown]" : "[" + printable(one.module->short_name, names) + "]";
}

void BoxSink::find_functions(std::vector<Finding>& found, Names names) const {
  struct Counted {
    Tally tally;
    std::size_t depth = 0;
    ChainId last_chain = kNo<ChainId>;  // a recursive function counts once in each
  };
  std::map<FunctionId, Counted> functions;
  for (const ChainId chain : chains_.ids()) {
    const auto frames = stacks_.frames(chain);
    const Tally& tally = chains_[chain];
    for (std::size_t depth = 0; depth < frames.size(); ++depth) {
      Counted& counted = functions[frames[depth]];
      if (tally.inside > 0) counted.depth = std::max(counted.depth, depth);
      if (std::exchange(counted.last_chain, chain) == chain) continue;
      counted.tally += tally;
    }
    Finding* const stack = add_finding(found, {.kind = Finding::Kind::Stack, .tally = tally});
    if (stack == nullptr) continue;
    for (const FunctionId function : frames) stack->frames.push_back(name_of(function, names));
    stack->name = fmt::format("{}", fmt::join(stack->frames, ";"));
  }
  for (const auto& [function, tally] : by_function_) functions[function].tally += tally;
  // Of functions with equal counts only the deepest one is listed: the others are mostly its callers.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<FunctionId>> by_counts;
  for (const auto& [function, counted] : functions)
    by_counts[{counted.tally.inside, counted.tally.outside}].push_back(function);
  for (auto& [counts, equal] : by_counts) {
    if (counts.first == 0) continue;
    std::ranges::stable_sort(
        equal, [&](FunctionId a, FunctionId b) { return functions[a].depth > functions[b].depth; });
    const symbolize::Module* const module = functions_[equal.front()].module;
    const Counted& counted = functions[equal.front()];
    Finding* const deepest =
        add_finding(found, {.kind = Finding::Kind::Function,
                            .name = name_of(equal.front(), names),
                            .value = module == nullptr ? "" : printable(module->short_name, names),
                            .depth = counted.depth,
                            .tally = counted.tally});
    if (deepest == nullptr) continue;
    for (const FunctionId function : std::span(equal).subspan(1))
      deepest->same_counts.push_back(name_of(function, names));
  }
}

std::vector<Finding> BoxSink::findings(Names names) {
  std::vector<Finding> found;
  if (all_.inside == 0 || all_.outside == 0) return found;
  for (const auto& [key, thread] : threads_) {
    const auto pid = static_cast<std::int32_t>(key.pid), tid = static_cast<std::int32_t>(key.tid);
    add_finding(found, {.kind = Finding::Kind::Thread,
                        .name = printable(thread.comm, names),
                        .value = fmt::format("{}/{}", pid, tid),
                        .tally = thread.tally});
  }
  find_fields(found, names);
  functions_.show_parameters();
  find_functions(found, names);
  const auto order = [](const Finding& one) {
    return std::tuple(-one.g2, one.kind, std::string_view(one.name), std::string_view(one.value));
  };
  std::ranges::sort(found, {}, order);
  return found;
}

namespace {

constexpr std::string_view kKinds[] = {"thread", "field", "function", "stack"};

std::string what_text(const Finding& finding) {
  switch (finding.kind) {
    case Finding::Kind::Thread:
      return "thread " + finding.name + " (" + finding.value + ")";
    case Finding::Kind::Field:
      return finding.name + " " + finding.value;
    case Finding::Kind::Stack:
      return "stack " + finding.name;
    case Finding::Kind::Function:
      break;
  }
  std::string text = "function " + finding.name;
  if (!finding.value.empty()) text += " (" + finding.value + ")";
  if (!finding.same_counts.empty())
    text += fmt::format(" and {} with the same counts", finding.same_counts.size());
  return text;
}

// How many times as frequent it is in the box as outside.
double factor_of(const Finding& finding, const Tally& all) {
  if (finding.tally.outside == 0) return std::numeric_limits<double>::infinity();
  return share(finding.tally.inside, all.inside) / share(finding.tally.outside, all.outside);
}

std::string factor_text(const Finding& finding, const Tally& all) {
  if (finding.tally.outside == 0) return "only";
  const double factor = factor_of(finding, all);
  return factor < 100 ? fmt::format("{:.1f}x", factor) : fmt::format("{:.0f}x", factor);
}

}  // namespace

void write_box_text(TextOutput& out, const HeatFacts& facts, const BoxFacts& box, const Tally& all,
                    const std::vector<Finding>& findings) {
  out.text(facts.title + ", " + box_text(box.box, facts) + "\n");
  out.text(fmt::format("{} sample{} in the box, {} outside\n", with_commas(static_cast<double>(all.inside)),
                       all.inside == 1 ? "" : "s", with_commas(static_cast<double>(all.outside))));
  const std::size_t shown = box.top == 0 ? findings.size() : std::min(box.top, findings.size());
  if (shown > 0) {
    out.text(fmt::format("\n{:>10} {:>9} {:>9} {:>7} {:>7} {:>7}  {}\n", "G2", "inside", "outside", "% in",
                         "% out", "factor", "what"));
  } else if (all.inside > 0) {
    out.text("nothing is significantly more frequent in the box\n");
  }
  constexpr std::size_t kBefore = 57;  // columns
  for (const Finding& finding : std::span(findings).first(shown)) {
    const std::string what = what_text(finding);
    out.text(fmt::format(
        "{:>10.1f} {:>9} {:>9} {:>6.2f}% {:>6.2f}% {:>7}  {}\n", finding.g2, finding.tally.inside,
        finding.tally.outside, 100 * share(finding.tally.inside, all.inside),
        100 * share(finding.tally.outside, all.outside), factor_text(finding, all),
        box.line_width > kBefore + 10 ? cut_in_the_middle(what, box.line_width - kBefore) : what));
    out.line_end();
  }
  if (shown < findings.size())
    out.text(fmt::format("{} more rows; --top {} shows them\n", findings.size() - shown, findings.size()));
  if (all.inside == 0) return;
  if (!box.flamegraph.empty()) out.text("\nas a flame graph:\n  " + box.flamegraph + "\n");
  if (!box.samples.empty()) out.text("\none by one:\n  " + box.samples + "\n");
}

void write_box_json(TextOutput& out, const HeatFacts& facts, const BoxFacts& box, const Tally& all,
                    const std::vector<Finding>& findings) {
  JsonFields to(out);
  to.text("box", box_argument(box.box, facts));
  to.text("field", facts.name);
  if (!facts.unit.empty()) to.text("unit", facts.unit);
  to.number("inside", all.inside);
  to.number("outside", all.outside);
  to.begin_list("rows");
  const std::size_t shown = box.top == 0 ? findings.size() : std::min(box.top, findings.size());
  for (const Finding& finding : std::span(findings).first(shown)) {
    to.begin_object({});
    to.text("kind", kKinds[static_cast<std::size_t>(finding.kind)]);
    if (finding.kind != Finding::Kind::Stack) to.text("name", finding.name);
    if (finding.kind == Finding::Kind::Field) to.text("value", finding.value);
    if (finding.kind == Finding::Kind::Thread) to.text("pid_tid", finding.value);
    if (finding.kind == Finding::Kind::Function && !finding.value.empty()) to.text("module", finding.value);
    const auto list = [&to](std::string_view name, const std::vector<std::string>& texts) {
      if (texts.empty()) return;
      to.begin_list(name);
      for (const std::string& text : texts) to.text({}, text);
      to.end_list();
    };
    list("frames", finding.frames);
    list("same_counts", finding.same_counts);
    to.number("inside", finding.tally.inside);
    to.number("outside", finding.tally.outside);
    to.real("share_inside", share(finding.tally.inside, all.inside));
    to.real("share_outside", share(finding.tally.outside, all.outside));
    to.real("factor", factor_of(finding, all));
    to.real("g2", finding.g2);
    to.end_object();
    out.line_end();
  }
  to.end_list();
  to.number("rows_left_out", findings.size() - shown);
  if (!box.flamegraph.empty()) to.text("flamegraph", box.flamegraph);
  if (!box.samples.empty()) to.text("samples", box.samples);
  to.finish();
  out.character('\n');
}

}  // namespace tacho::report
