// The first fields of a line of `script`, as perf 6.1 prints them: "comm tid [cpu] time: ".
#pragma once

#include <cstdint>
#include <string_view>

#include "report/output/text_output.h"
#include "report/perf_text/script_fields.h"
#include "report/perf_text/time_text.h"

namespace tacho::report {

struct LineStart {
  std::string_view comm;  // made safe already
  std::uint32_t pid = ~0U, tid = ~0U, cpu = ~0U;
  std::uint64_t time = ~std::uint64_t{0};  // ns
  std::uint16_t misc = 0;
  std::uint32_t record_type = 0;
  bool is_comm_padded = true;
};
void write_line_start(TextBuffer& out, const Fields& fields, const LineStart& start, TimeText& times);

}  // namespace tacho::report
