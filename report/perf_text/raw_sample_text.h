// A sample with its fields, as perf report -D prints it below the record's bytes.
#pragma once

#include <string_view>

#include "format/records/event_attr.h"
#include "format/records/sample.h"
#include "report/output/text_output.h"

namespace tacho::report {

// From what stands behind "PERF_RECORD_SAMPLE" to the end of the last field's line. `record`: that of
// `sample`; `arch`: whose registers they are (register_machine()).
void write_raw_sample(TextBuffer& out, const format::RecordView& record, const format::Sample& sample,
                      const format::EventAttr& attr, std::string_view arch);

}  // namespace tacho::report
