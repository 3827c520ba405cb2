// The records that perf itself writes (types from 64 up) and that no reader here acts on: their fields by
// name, straight from the bytes, one row of a table for each type.
#pragma once

#include "format/records/record_view.h"
#include "report/output/field_sink.h"

namespace tacho::report {

// Fields of `body`, which belongs to `view`; a type without a row, or a body that is shorter than its fields
// say, is given as bytes.
void describe_user_record(FieldSink& to, const format::RecordView& view, format::Bytes body);
// A list of CPUs, a bitmap of them, or a range: the body of CPU_MAP and what an EVENT_UPDATE about CPUs
// holds.
void describe_cpu_map(FieldSink& to, format::Cursor in);

}  // namespace tacho::report
