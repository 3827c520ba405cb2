#include "report/perf_text/source_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tacho::report {

void SourceCode::write(TextBuffer& out, const Thread& thread, const symbolize::Frame& frame) {
  if (frame.line_state != symbolize::LineState::Known || frame.line == 0) return;
  auto& [file, line] = shown_last_[&thread];
  if (file == frame.file && line == frame.line) return;
  const auto& lines = files_.lines_of(frame.file);
  if (frame.line > lines.size()) return;
  out.text(fmt::format("|{:<8} ", frame.line));
  // A tab is what source is indented with, and no danger.
  std::string_view rest = lines[frame.line - 1];
  for (std::size_t at = 0; at <= rest.size();) {
    const std::size_t tab = std::min(rest.find('\t', at), rest.size());
    out.text(printable(rest.substr(at, tab - at), names_));
    if (tab < rest.size()) out.character('\t');
    at = tab + 1;
  }
  out.character('\n');
  file = frame.file;
  line = frame.line;
}

}  // namespace tacho::report
