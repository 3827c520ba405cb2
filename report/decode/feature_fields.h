// Decodes all feature sections of the header into named fields, for `tacho dump` and `tacho header --json`.
#pragma once

#include <cstdint>

#include "format/container/capture_reader.h"
#include "format/container/features.h"
#include "report/output/field_sinks.h"

namespace tacho::report {

void describe_layout(FieldSink& to, const format::CaptureLayout& layout);
// One event: its index, perf_event_attr and ids.
void describe_event(FieldSink& to, std::size_t index, const format::EventSet& events);
// One feature section. For large contents (attachments, tracepoint formats, BPF programs) it gives size and
// hash, with which two captures can be compared.
void describe_feature(FieldSink& to, std::uint32_t feature, const format::Features& features);

}  // namespace tacho::report
