#include "report/profile/sort_keys.h"

#include <algorithm>

#include "report/profile/branch_keys.h"
#include "report/profile/key_cells.h"
#include "report/profile/memory_keys.h"
#include "report/profile/usual_keys.h"

namespace tacho::report {
namespace {

// A payload's or a tracepoint's field; not in the table, as captures bring their own.
std::uint64_t read_field_fact(const KeyUse& use, SampleFacts& facts, const ResolvedSample& sample) {
  return sample.event_index == use.event ? facts.field(sample, *use.field, use.is_raw) : 0;
}
// By bytes, the largest first, as perf compares them.
Order field_order(Show show, Row a, Row b) {
  return show.facts.bytes(show.fact(b)) <=> show.facts.bytes(show.fact(a));
}
// perf measures values as the event's text has them. What it prints by itself is cut, but for texts of
// varying length, which it measures with the 0 behind.
std::size_t field_text_width(Show show, Row row) {
  const auto& options = show.facts.options();
  if (!options.has_hex_longs || (!show.use.is_raw && !options.is_raw_trace)) {
    const std::string shown = fact_text(show, row);
    return shown.starts_with("ARRAY[") ? 0 : shown.size();
  }
  const PayloadField& field = *show.use.field;
  const bool varies = field.kind == format::FieldKind::Text && field.format.ends_with("_loc");
  return varies ? show.facts.bytes(show.fact(row)).size() + 1 : 0;
}
constexpr SortKey kFieldKey{.name = "FIELD",
                            .header = "",
                            .help = "a field of a tracepoint or payload",
                            .read = read_field_fact,
                            .identity = fact_of,
                            .order = field_order,
                            .show = fact_text,
                            .width = field_text_width,
                            .fit = SortKey::Fit::Right};

// As wide as its name, and as its longest value can be.
std::size_t field_width(const PayloadField& field) {
  const std::size_t bytes = std::size_t{field.bit_size} * std::max(field.count, 1U) / 8;
  const std::size_t value = field.kind == format::FieldKind::Text ? bytes : bytes * 2 + 2;
  return std::max(field.name.size(), std::min<std::size_t>(value, 1024));
}

void add_fields(std::vector<KeyUse>& uses, SampleFacts& facts, std::size_t event, std::string_view name,
                bool is_raw) {
  const PayloadSchema* const schema = facts.schema_of(event);
  if (schema == nullptr) return;
  for (const PayloadField& field : schema->fields) {
    if (name != "*" && field.name != name) continue;
    uses.push_back({.key = &kFieldKey,
                    .header = field.name,
                    .event = event,
                    .field = &field,
                    .is_raw = is_raw,
                    .least_width = field_width(field)});
  }
}

}  // namespace

std::vector<const SortKey*> sort_keys() {
  std::vector<const SortKey*> all;
  for (const std::span<const SortKey> table : {usual_keys(), branch_keys(), memory_keys()}) {
    for (const SortKey& key : table) all.push_back(&key);
  }
  return all;
}

std::vector<KeyUse> find_sort_keys(std::string_view word, SampleFacts& facts) {
  if (word.empty()) return {};
  for (const SortKey* const key : sort_keys()) {
    if (!key->name.starts_with(word)) continue;
    if (key->mode != ReportMode::Samples && key->mode != facts.options().mode) break;
    return {{.key = key, .header = std::string(key->header), .least_width = key->least_width}};
  }
  const bool is_raw = word.ends_with("/raw");
  if (is_raw) word.remove_suffix(4);
  // The event's own name has colons and may have dots: the field follows the last one that leaves an event.
  const std::size_t dot = word.find('.');
  const format::EventSet& events = facts.session().events();
  std::vector<KeyUse> uses;
  const std::string_view asked = word.substr(0, std::min(dot, word.size()));
  for (std::size_t event = 0; event < events.size(); ++event) {
    const std::string& name = events[event].name;
    const bool ends_so =
        name.size() > asked.size() && name.ends_with(asked) && name[name.size() - asked.size() - 1] == ':';
    if (dot != std::string_view::npos && (asked == name || ends_so)) {
      add_fields(uses, facts, event, word.substr(dot + 1), is_raw);
    } else {
      add_fields(uses, facts, event, word == "trace_fields" ? "*" : word, is_raw);
    }
  }
  return uses;
}

std::string sort_key_names(ReportMode mode) {
  std::string all;
  for (const SortKey* const key : sort_keys()) {
    if (key->mode != mode) continue;
    if (!all.empty()) all += ' ';
    all += key->name;
  }
  return all;
}

}  // namespace tacho::report
