// Every record with its bytes and what they mean, in the order in which records take effect: perf report -D.
// Records of perf's own stand where they were read, the kernel's where their time is due.
#pragma once

#include <string_view>

#include "format/container/capture_reader.h"
#include "format/records/event_attr.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/output/text_output.h"

namespace tacho::report {

// Reads all of `capture`. `file`: what the records' places are called after, as the user named the capture.
// Ends with the numbers of --stats. Symbols are not looked up: samples show the file that they hit.
void write_raw_trace(TextOutput& out, format::CaptureReader& capture, format::Diagnostics& diagnostics,
                     std::string_view file, Names names);

// A sample with its fields, as perf report -D prints it below the record's bytes.

// From what stands behind "PERF_RECORD_SAMPLE" to the end of the last field's line. `record`: that of
// `sample`; `arch`: whose registers they are (register_machine()).
void write_raw_sample(TextBuffer& out, const format::RecordView& record, const format::Sample& sample,
                      const format::EventAttr& attr, std::string_view arch);

// Records other than samples, as perf report -D prints them behind their bytes.

// "0x158@perf.data [0x50]: event: 1" and the bytes, 16 a line, between blank lines.
void write_record_bytes(TextBuffer& out, const format::RecordView& record, std::string_view file);

// What stands behind "PERF_RECORD_MMAP" and the like, to the end of the line, and lines of its own below it.
// A type of which perf 6.1 prints no fields: nothing, and no end of the line either. `event`: the name of the
// record's event.
void write_raw_record(TextBuffer& out, const format::RecordView& record, const format::EventAttr& attr,
                      std::string_view event, Names names);

}  // namespace tacho::report
