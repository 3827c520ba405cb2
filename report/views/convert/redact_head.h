// The head of a capture without what is to be hidden: its events' names and its sections, the symbol pack and
// the attached files among them.
#pragma once

#include <cstdint>
#include <vector>

#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "report/aliases.h"
#include "report/kernel_places.h"
#include "report/redaction.h"

namespace tacho::report {

struct HeadRedaction {
  const Redaction& redaction;
  const Aliases& aliases;
  const KernelPlaces& kernel;
  std::uint64_t time_shift = 0;                 // ns
  std::vector<format::ContentClass> content{};  // section CONTENT of the copy
};

// Changes both. What no rule is written for goes: sections that are not taken apart, attachments that are not
// known. An error when the symbol pack cannot be read: its contents are unknown.
Result<> redact_head(const HeadRedaction& rules, format::EventSet& events, format::Features& features);

}  // namespace tacho::report
