// Decodes records into named fields, for `tacho dump`.
#pragma once

#include "format/records/event_attr.h"
#include "format/records/record.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/output/field_sinks.h"

namespace tacho::report {

void describe_attr(FieldSink& to, const format::EventAttr& attr);
// The fields that attr.sample_type selects.
void describe_sample(FieldSink& to, const format::Sample& sample, const format::EventAttr& attr);
// `view` has the record's bytes, from which some types are decoded.
void describe_record(FieldSink& to, const format::Record& record, const format::RecordView& view);
// The sample_id at the end of kernel records other than samples (attr.sample_id_all).
void describe_sample_id(FieldSink& to, const format::SampleId& id, const format::EventAttr& attr);

// Records that perf writes itself (types from 64 up) and that tacho does not use: their fields, from a table
// with a row for each type. A type without a row, or a `body` that is too short, is given as bytes.
void describe_user_record(FieldSink& to, const format::RecordView& view, format::Bytes body);
// The body of PERF_RECORD_CPU_MAP and of PERF_EVENT_UPDATE__CPUS: a list, bitmap or range of CPUs.
void describe_cpu_map(FieldSink& to, format::Cursor in);

}  // namespace tacho::report
