// Every field of every record, by name.
#pragma once

#include "format/records/event_attr.h"
#include "format/records/record.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/output/field_sinks.h"

namespace tacho::report {

void describe_attr(FieldSink& to, const format::EventAttr& attr);
// The fields that the event's sample_type says are there.
void describe_sample(FieldSink& to, const format::Sample& sample, const format::EventAttr& attr);
// `view`: the record's bytes, for types whose body is described from them.
void describe_record(FieldSink& to, const format::Record& record, const format::RecordView& view);
// What the trailer of another kernel record says (attr.sample_id_all).
void describe_sample_id(FieldSink& to, const format::SampleId& id, const format::EventAttr& attr);

// The records that perf itself writes (types from 64 up) and that no reader here acts on: their fields by
// name, straight from the bytes, one row of a table for each type.

// Fields of `body`, which belongs to `view`; a type without a row, or a body that is shorter than its fields
// say, is given as bytes.
void describe_user_record(FieldSink& to, const format::RecordView& view, format::Bytes body);
// A list of CPUs, a bitmap of them, or a range: the body of CPU_MAP and what an EVENT_UPDATE about CPUs
// holds.
void describe_cpu_map(FieldSink& to, format::Cursor in);

}  // namespace tacho::report
