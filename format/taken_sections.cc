#include "format/taken_sections.h"

#include <functional>
#include <string>
#include <string_view>

#include "format/features.h"
#include "format/file.h"
#include "format/perf_abi.h"

namespace tacho::format {
namespace {

// What a recorder writes again when there is more to say (record/session/capture_end.cc). Nobody holds parts
// of it.
bool may_come_again(std::uint32_t feature) {
  return feature == abi::kFeatureEventDesc || feature == abi::kFeatureAttachedPrograms ||
         feature == abi::kFeatureUserStacks;
}

std::size_t digest_of(Bytes bytes) { return std::hash<std::string_view>()(as_text(bytes)); }

}  // namespace

bool TakenSections::leaves_out(std::uint32_t feature, Bytes bytes, std::uint64_t offset,
                               Diagnostics& diagnostics) const {
  const auto taken = digests_.find(feature);
  if (taken == digests_.end() || may_come_again(feature)) return false;
  if (taken->second == digest_of(bytes)) return true;
  const std::string_view name = feature_name(feature);
  diagnostics.add(Damage::BadFeature, offset,
                  (name.empty() ? "section " + std::to_string(feature) : std::string(name)) +
                      " comes a second time and differs from the first: left out");
  return true;
}

void TakenSections::add(std::uint32_t feature, Bytes bytes) {
  digests_.insert_or_assign(feature, digest_of(bytes));
}

}  // namespace tacho::format
