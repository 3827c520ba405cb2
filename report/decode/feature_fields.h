// Every header section, decoded, by name: what `tacho dump` begins with and `tacho header --json` prints.
#pragma once

#include <cstdint>

#include "format/container/capture_reader.h"
#include "format/container/features.h"
#include "report/output/field_sinks.h"

namespace tacho::report {

void describe_layout(FieldSink& to, const format::CaptureLayout& layout);
// The event with this number, its attribute and ids.
void describe_event(FieldSink& to, std::size_t index, const format::EventSet& events);
// The contents of one section that `features` holds. Large ones (attachments, tracepoint formats, BPF
// programs) are given by their sizes and a hash of their bytes, so that two captures can be compared.
void describe_feature(FieldSink& to, std::uint32_t feature, const format::Features& features);

}  // namespace tacho::report
