// Every field of every record, by name.
#pragma once

#include "format/records/event_attr.h"
#include "format/records/record.h"
#include "format/records/sample.h"
#include "report/output/field_sink.h"

namespace tacho::report {

void describe_attr(FieldSink& to, const format::EventAttr& attr);
// The fields that the event's sample_type says are there.
void describe_sample(FieldSink& to, const format::Sample& sample, const format::EventAttr& attr);
// `view`: the record's bytes, for types whose body is described from them.
void describe_record(FieldSink& to, const format::Record& record, const format::RecordView& view);
// What the trailer of another kernel record says (attr.sample_id_all).
void describe_sample_id(FieldSink& to, const format::SampleId& id, const format::EventAttr& attr);

}  // namespace tacho::report
