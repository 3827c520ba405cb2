// Events that perf made of a processor trace (`perf inject --itrace`): what their bytes say, as words.
#pragma once

#include <cstdint>

#include "format/base/cursor.h"
#include "report/output/text_output.h"

namespace tacho::report {

// `config` of the event says which kind it is. Nothing for kinds that are not known and bytes that are too
// few.
void write_synth(TextBuffer& out, std::uint64_t config, format::Bytes raw, std::endian order);

}  // namespace tacho::report
