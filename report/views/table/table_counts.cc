#include "report/views/table/table_counts.h"

#include <algorithm>
#include <utility>

namespace tacho::report {
namespace {

// Whether a text is a valid JSON number: no leading 0, no version number, no lone sign.
bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto digits = [&text] {
    const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count;
  };
  const bool begins_with_0 = text.starts_with('0');
  const std::size_t whole = digits();
  if (whole == 0 || (begins_with_0 && whole > 1)) return false;
  if (!text.starts_with('.')) return text.empty();
  text.remove_prefix(1);
  return digits() != 0 && text.empty();
}

// " -> 15" behind 8, the least value of a slot.
std::string end_of_slot(const FieldKey& key, const KeyValue& value) {
  if (key.field() == nullptr || !has_slots(*key.field())) return {};
  const auto* const low = std::get_if<std::uint64_t>(&value);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  if (low == nullptr || *low > kMost) return {};
  return " -> " + std::to_string(slot_of(*key.field(), static_cast<std::int64_t>(*low)).highest);
}

}  // namespace

Result<> TableCounts::find(const TableQuestion& question, const std::string& columns, const std::string& sort,
                           Session& session) {
  session_ = &session;
  if (auto found = source_.find(question, session); !found) return found;
  const std::string_view usual = source_.has_values() ? "count,sum,mean,min,p50,p99,max" : "count";
  auto parsed = parse_columns("--columns", columns.empty() ? usual : columns);
  if (!parsed) return std::move(parsed.error());
  columns_ = std::move(*parsed);
  return find_order(sort);
}

TableHead TableCounts::head(Names names) const {
  TableHead head;
  for (const std::string& name : source_.key_names()) head.keys.push_back(printable(name, names));
  for (const TableColumn& column : columns_) head.numbers.push_back(column.name);
  head.title = source_.title(names);
  return head;
}

TableCounts::Keys TableCounts::keys_of(const TableEvent& event, const ResolvedSample& sample) const {
  Keys keys;
  keys.reserve(event.keys.size());
  for (const FieldKey& key : event.keys) keys.push_back(key.named_value(sample, session_->resolver()));
  return keys;
}

void TableCounts::add(Rows& rows, Keys&& keys, TableEvent& event, const ResolvedSample& sample) {
  auto& [shown_by, row] = rows[std::move(keys)];
  shown_by = &event;
  const std::uint64_t count = count_of(event.count, sample);
  row.samples += count;
  if (!event.value) return;
  const ExpressionValue value = event.value->value(sample);
  add_values(row.values, event.how, value, count, sample);
}

Result<> TableCounts::find_order(const std::string& sort) {
  const std::string name = !sort.empty() ? sort : source_.has_values() ? "sum" : "count";
  const auto& keys = source_.key_names();
  if (const auto key = std::ranges::find(keys, name); key != keys.end()) {
    sort_key_ = static_cast<std::size_t>(key - keys.begin());
    return Done{};
  }
  auto column = parse_columns("--sort", name);
  if (!column || column->size() != 1) {
    std::string known;
    for (const std::string& one : keys) known.append(known.empty() ? "" : ", ").append(one);
    return use_error("--sort: '" + name +
                     "' is neither a column (count, sum, mean, min, max, p99) nor a key here (" + known +
                     ")");
  }
  sort_column_ = std::move(column->front());
  return Done{};
}

std::vector<const TableCounts::Rows::value_type*> TableCounts::in_order(const Rows& rows) const {
  std::vector<const Rows::value_type*> order;
  for (const auto& row : rows) order.push_back(&row);
  if (sort_key_) {
    std::ranges::stable_sort(order, [this](const auto* a, const auto* b) {
      return compare(a->first[*sort_key_], b->first[*sort_key_]) < 0;
    });
    return order;
  }
  std::vector<std::pair<ExpressionValue, const Rows::value_type*>> valued;
  for (const auto* const row : order) valued.emplace_back(sort_column_.value(row->second.row), row);
  std::ranges::stable_sort(valued, [](const auto& a, const auto& b) {
    if (b.first.is_nothing()) return !a.first.is_nothing();
    return apply(cli::Operation::Greater, a.first, b.first).is_true();
  });
  std::ranges::transform(valued, order.begin(), [](const auto& one) { return one.second; });
  return order;
}

TableLine TableCounts::line_of(const Rows::value_type& row, Names names, TableForm form) const {
  TableLine line;
  const auto& keys = row.second.event->keys;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const KeyValue& value = row.first[i];
    TableKey key{keys[i].show(value, names)};
    if (form == TableForm::Text) key.text += end_of_slot(keys[i], value);
    const bool is_text =
        std::holds_alternative<std::string>(value) || std::holds_alternative<std::monostate>(value);
    key.is_number = !is_text && is_json_number(key.text);
    line.keys.push_back(std::move(key));
  }
  for (const TableColumn& column : columns_) line.numbers.push_back(column.value(row.second.row));
  return line;
}

}  // namespace tacho::report
