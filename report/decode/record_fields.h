// Decodes records into named fields, for `tacho dump`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/container/capture_reader.h"
#include "format/container/features.h"
#include "format/records/event_attr.h"
#include "format/records/record.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/output/field_sinks.h"

namespace tacho::report {

// perf_event_attr as text, in the forms of perf's header and of `perf evlist -v`: the fields that are not
// zero,
// ", type = 1, size = 128" (Header), "type: 1, size: 128" (Evlist).
enum class AttrList : std::uint8_t { Header, Evlist };
std::string attr_text(const format::EventAttr& attr, AttrList form);

void describe_attr(FieldSink& to, const format::EventAttr& attr);
// The fields that attr.sample_type selects.
void describe_sample(FieldSink& to, const format::Sample& sample, const format::EventAttr& attr);
// `view` has the record's bytes, from which some types are decoded.
void describe_record(FieldSink& to, const format::Record& record, const format::RecordView& view);
// The sample_id at the end of kernel records other than samples (attr.sample_id_all).
void describe_sample_id(FieldSink& to, const format::SampleId& id, const format::EventAttr& attr);

// The header, for `tacho dump` and `tacho header --json`.
void describe_layout(FieldSink& to, const format::CaptureLayout& layout);
// One event: its index, perf_event_attr and ids.
void describe_event(FieldSink& to, std::size_t index, const format::EventSet& events);
// One feature section. For large contents (attachments, tracepoint formats, BPF programs) it gives size and
// hash, with which two captures can be compared.
void describe_feature(FieldSink& to, std::uint32_t feature, const format::Features& features);

}  // namespace tacho::report
