// Records that are no samples as text, as perf 6.1's `script --show-...-events` prints them.
#pragma once

#include "format/records/record.h"
#include "report/output/text_output.h"
#include "symbolize/frame.h"

namespace tacho::report {

enum class RecordGroup : std::uint8_t { None, Task, Mmap, Switch, Namespaces, Lost, Bpf, Cgroup, TextPoke };

// Which --show option a record belongs to.
RecordGroup group_of(const format::Record& record);
// "PERF_RECORD_COMM exec: dd:12/12" and the line's end.
void write_record(TextBuffer& out, std::uint32_t type, const format::Record& record, Names names);
// The same for changed kernel code, with the function it is in.
void write_text_poke(TextBuffer& out, const format::TextPokeRecord& record, const symbolize::Frame& place,
                     Names names);

}  // namespace tacho::report
