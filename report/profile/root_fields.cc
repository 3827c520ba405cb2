#include "report/profile/root_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "cli/nearest.h"
#include "format/base/printable.h"

namespace tacho::report {

const std::optional<FieldKey>& RootFields::key_of(const std::string& field, std::size_t event) {
  const auto [known, is_new] = keys_.try_emplace({field, event});
  const PayloadSchema* const schema = is_new ? schemas_.schema_of(event) : nullptr;
  if (schema == nullptr || field_named(*schema, field) == nullptr) return known->second;
  if (auto key = FieldKey::find_field("", field, *schema, session_->events()[event].name))
    known->second = std::move(*key);
  return known->second;
}

std::string RootFields::text(const std::string& field, const ResolvedSample& sample) {
  const std::string none = fmt::format("[no {}]", field);
  const auto& key = key_of(field, sample.event_index);
  if (!key) return none;
  const KeyValue value = key->named_value(sample, session_->resolver());
  if (std::holds_alternative<std::monostate>(value)) return none;
  if (const auto* const text = std::get_if<std::string>(&value)) return text->empty() ? none : *text;
  const auto* const address = is_named_address(*key->field()) ? std::get_if<std::uint64_t>(&value) : nullptr;
  if (address != nullptr && *address == 0) return none;
  const std::string shown = key->show(value, Names::Raw);
  return address != nullptr || key->field()->kind == format::FieldKind::Enum
             ? shown
             : fmt::format("{} {}", field, shown);
}

Result<> RootFields::check(std::string_view option, std::span<const RootFrame> roots) {
  std::vector<std::string> known{"comm", "pid", "tid", "cpu", "cgroup", "event", "none"};
  for (std::size_t event = 0; event < session_->events().size(); ++event)
    if (const PayloadSchema* const schema = schemas_.schema_of(event))
      for (const PayloadField& field : schema->fields) known.push_back(field.name);
  for (const RootFrame& root : roots)
    if (root.kind == RootKind::Field && std::ranges::count(known, root.field) == 0)
      return use_error(fmt::format("{}: no event has '{}'; it is {}{}", option, printable(root.field),
                                   kRootFrameNames, cli::suggestion(root.field, known)));
  return Done{};
}

}  // namespace tacho::report
