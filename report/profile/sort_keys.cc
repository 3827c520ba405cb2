#include "report/profile/sort_keys.h"

#include <fmt/format.h>

#include <algorithm>

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

std::string shown(Show show, std::string_view name) { return printable(name, show.facts.options().names); }

void add_name(std::string& text, std::string_view name, std::size_t width) {
  text += width < text.size() ? name : name.substr(0, width - text.size());
}

std::uint64_t fact_of(Show show, Row row) { return show.fact(row); }
Order by_fact(Show show, Row a, Row b) { return show.fact(a) <=> show.fact(b); }
Order by_fact_down(Show show, Row a, Row b) { return show.fact(b) <=> show.fact(a); }
Order by_fact_text(Show show, Row a, Row b) {
  return show.facts.text(show.fact(a)) <=> show.facts.text(show.fact(b));
}
std::string fact_number(Show show, Row row) { return std::to_string(show.fact(row)); }
std::string fact_text(Show show, Row row) { return shown(show, show.facts.text(show.fact(row))); }

std::string_view module_name(Show show, const symbolize::Module* module) {
  if (module == nullptr) return {};
  return show.facts.options().is_verbose ? module->path : module->short_name;
}

std::string line_of(Show show, const Function& function) {
  if (function.line().starts_with('+')) return shown(show, function.name()) + std::string(function.line());
  return function.line().empty() ? std::string("??:0") : shown(show, function.line());
}

std::string show_page_size(Show show, Row row) {
  static constexpr std::string_view kUnits = "BKMG";
  std::uint64_t size = show.fact(row);
  if (size == 0) return "N/A";
  std::size_t unit = 0;
  for (; size / 1024 > 1 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return fmt::format("{}{}", size, kUnits[unit]);
}

Order module_order(Show show, Row a, Row b) {
  const bool has_a = a.function->module != nullptr, has_b = b.function->module != nullptr;
  if (has_a != has_b) return has_a ? Order::less : Order::greater;
  return module_name(show, a.function->module) <=> module_name(show, b.function->module);
}

std::uint64_t symbol_identity(Show, Row row) { return row.function->symbol; }

Order symbol_order(Show, Row a, Row b) {
  const bool is_unknown_a = a.function->name().empty(), is_unknown_b = b.function->name().empty();
  if (is_unknown_a != is_unknown_b) return is_unknown_a ? Order::greater : Order::less;
  return a.function->name() <=> b.function->name();
}

std::uint64_t symbol_ordered_by(Show, Row row) { return row.function->name_number; }

std::uint64_t OtherPlace::runtime_start() const {
  const symbolize::Mapping* const mapping = location->mapping;
  if (mapping == nullptr || mapping->is_identity) return function->start;
  return function->start + mapping->start - mapping->page_offset;
}

// 0 has no mark, as with printf's %#x.
std::string verbose_start(std::uint64_t address, char source) {
  return address == 0 ? fmt::format("{:<18} {} ", 0, source) : fmt::format("{:<#18x} {} ", address, source);
}

OtherPlace place_at(Show show, std::uint64_t number) {
  const auto id = static_cast<std::uint32_t>(number);
  FunctionTable& functions = *show.facts.functions;
  OtherPlace place;
  place.location = &show.facts.session().resolver().location(id);
  place.function = &functions[functions.of_place(id)];
  const symbolize::Mapping* const mapping = place.location->mapping;
  place.address =
      mapping == nullptr ? place.location->ip.value : mapping->nameless_address(place.location->ip);
  place.level = mapping == nullptr ? 'H' : place.function->level;  // as perf: it tried all modes in vain
  return place;
}

std::string show_place(Show show, const OtherPlace& place, std::uint64_t address, char level,
                       std::size_t width) {
  std::string text;
  if (show.facts.options().is_verbose) text = verbose_start(address, place.function->source);
  if (!place.has_name())  // 0 has no mark, as with printf's %#x
    return text + fmt::format("[{}] {}{:016x}", level, address == 0 ? "" : "0x", address);
  text += fmt::format("[{}] ", level);
  const bool is_data = place.function->is_data;
  add_name(text, shown(show, place.function->name()), is_data ? kAnyWidth : width);
  if (is_data) text += fmt::format("+0x{:x}", address - place.runtime_start());
  return text;
}

std::size_t place_width(Show show, const OtherPlace& place) {
  constexpr std::size_t kLevel = 4, kVerbose = kAddressWidth + 2 + 3;
  if (!place.has_name()) return kUnknownWidth;
  return shown(show, place.function->name()).size() + kLevel +
         (show.facts.options().is_verbose ? kVerbose : 0);
}

std::string show_place_module(Show show, const OtherPlace& place) {
  const symbolize::Module* const module = place.function->module;
  return module == nullptr ? std::string("[unknown]") : shown(show, module_name(show, module));
}

Order module_order_down(Show show, const OtherPlace& a, const OtherPlace& b) {
  const symbolize::Module *const module_a = a.function->module, *const module_b = b.function->module;
  if ((module_a == nullptr) != (module_b == nullptr))
    return module_a == nullptr ? Order::less : Order::greater;
  return module_name(show, module_b) <=> module_name(show, module_a);
}

Order address_order(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::int64_t>(a) <=> static_cast<std::int64_t>(b);
}

}  // namespace tacho::report
