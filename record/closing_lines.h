// Lines at the end of a recording about what ended it, and what was made of its files.
#pragma once

#include <string>

#include "record/messages.h"
#include "record/options.h"
#include "record/prepared.h"
#include "record/pump.h"

namespace tacho::record {

// Whether --max-size or --min-free ended it.
void report_limit(const PumpReport& report, const RecordOptions& options, const Messages& messages);
// Whether events of --switch-output-event came closer together than files are begun.
void report_merged_switches(const PumpReport& report, const Messages& messages);
// Why a recording has no sample, as far as it can be said.
void report_nothing(const Prepared& prepared, const RecordOptions& options, const Messages& messages);
// What follows a failure by which --redact could not be kept; empty where it was not wanted.
std::string not_redacted(const RecordOptions& options);

}  // namespace tacho::record
