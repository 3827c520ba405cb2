// Lines at the end of a recording about what it lost.
#pragma once

#include <cstdint>

#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/options.h"
#include "record/output/record_walk.h"
#include "record/prepared.h"

namespace tacho::record {

// `lost`: events of samples in all.
void report_losses(const RecordCounts& counts, std::uint64_t lost, const Prepared& prepared,
                   const KernelEvents& events, const RecordOptions& options, const Messages& messages);

}  // namespace tacho::record
