// What a capture has beside its records, redacted: names of events, feature sections, the symbol pack,
// attached files.
#pragma once

#include <cstdint>

#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "report/aliases.h"
#include "report/kaslr_remap.h"
#include "report/redaction.h"

namespace tacho::report {

// Drops everything without a rule: sections that are not parsed, unknown attachments. `time_shift` (ns) is
// subtracted from each time. An error when the symbol pack cannot be read, since its content is unknown then.
Result<> redact_head(format::EventSet& events, format::Features& features, const Redaction& redaction,
                     const Aliases& aliases, const KaslrRemap& kernel, std::uint64_t time_shift);

}  // namespace tacho::report
