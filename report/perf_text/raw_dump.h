// perf report -D: every record with its bytes and fields. Records of perf itself come in file order, those of
// the kernel in the order of their times.
#pragma once

#include <string_view>

#include "format/container/capture_reader.h"
#include "format/records/event_attr.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Reads all of `capture`; the counts of --stats follow. `file` is the capture's name in the records'
// positions. Symbols are not resolved; samples show the mapped file.
void write_raw_trace(TextOutput& out, format::CaptureReader& capture, format::Diagnostics& diagnostics,
                     std::string_view file, Names names);

// The fields of a sample: the text after "PERF_RECORD_SAMPLE" and the lines below it. `record` is the record
// of `sample`, `arch` the architecture of its registers (register_machine()).
void write_raw_sample(TextBuffer& out, const format::RecordView& record, const format::Sample& sample,
                      const format::EventAttr& attr, std::string_view arch);

// "0x158@perf.data [0x50]: event: 1" and the record's bytes, 16 a line, between blank lines.
void write_record_bytes(TextBuffer& out, const format::RecordView& record, std::string_view file);

// The fields of other records: the text after "PERF_RECORD_MMAP" and so on with the newline, and lines below
// it. For types without fields in perf 6.1, nothing, not even the newline. `event` is the name of the
// record's event.
void write_raw_record(TextBuffer& out, const format::RecordView& record, const format::EventAttr& attr,
                      std::string_view event, Names names);

}  // namespace tacho::report
