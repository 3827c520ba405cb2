// Records other than samples, as perf report -D prints them behind their bytes.
#pragma once

#include <string_view>

#include "format/records/event_attr.h"
#include "format/records/record_view.h"
#include "report/output/printable.h"
#include "report/output/text_output.h"

namespace tacho::report {

// "0x158@perf.data [0x50]: event: 1" and the bytes, 16 a line, between blank lines.
void write_record_bytes(TextBuffer& out, const format::RecordView& record, std::string_view file);

// What stands behind "PERF_RECORD_MMAP" and the like, to the end of the line, and lines of its own below it.
// A type of which perf 6.1 prints no fields: nothing, and no end of the line either. `event`: the name of the
// record's event.
void write_raw_record(TextBuffer& out, const format::RecordView& record, const format::EventAttr& attr,
                      std::string_view event, Names names);

}  // namespace tacho::report
