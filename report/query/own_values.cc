#include "report/query/own_values.h"

#include <algorithm>
#include <iterator>

namespace tacho::report {
namespace {

constexpr std::string_view kPrefix = "sample.";

// The kernel's own threads and idle ones are pid 0 and -1.
FieldValue number(std::uint32_t value) { return std::int64_t{static_cast<std::int32_t>(value)}; }

constexpr OwnValue kOwn[] = {
    {"comm", "", true, [](const ResolvedSample& sample) -> FieldValue { return sample.comm; }},
    {"pid", "", false, [](const ResolvedSample& sample) { return number(sample.pid()); }},
    {"tid", "", false, [](const ResolvedSample& sample) { return number(sample.tid()); }},
    {"cpu", "", false, [](const ResolvedSample& sample) { return number(sample.raw->cpu); }},
    // As script prints it.
    {"time", "s", false,
     [](const ResolvedSample& sample) -> FieldValue { return static_cast<double>(sample.raw->time) / 1e9; }},
    {"period", "", false, [](const ResolvedSample& sample) -> FieldValue { return sample.period; }},
    {"cgroup", "", true, [](const ResolvedSample& sample) -> FieldValue { return sample.cgroup(); }},
    {"event", "", true,
     [](const ResolvedSample& sample) -> FieldValue { return std::string_view(sample.event().name); }},
};

}  // namespace

std::span<const OwnValue> own_values() { return kOwn; }

const OwnValue* find_own_value(std::string_view name) {
  if (is_own_name(name)) name.remove_prefix(kPrefix.size());
  const auto row = std::ranges::find(kOwn, name, &OwnValue::name);
  return row == std::end(kOwn) ? nullptr : row;
}

bool is_own_name(std::string_view name) { return name.starts_with(kPrefix); }

std::string own_value_names() {
  std::string names;
  for (const OwnValue& one : kOwn) names.append(names.empty() ? "" : ", ").append(one.name);
  return names;
}

}  // namespace tacho::report
