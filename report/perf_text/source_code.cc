#include "report/perf_text/source_code.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacho::report {

// A file that cannot be read has no lines; it is not tried again.
const std::vector<std::string>& SourceCode::lines_of(std::string_view file) {
  if (const auto known = files_.find(file); known != files_.end()) return known->second;
  std::vector<std::string>& lines = files_[std::string(file)];
  const auto bytes = resolver_->recorded_file(std::string(file));
  if (!bytes) return lines;
  std::string_view rest(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

void SourceCode::write(TextBuffer& out, const Thread& thread, const symbolize::Frame& frame) {
  if (frame.line_state != symbolize::LineState::Known || frame.line == 0) return;
  auto& [file, line] = shown_last_[&thread];
  if (file == frame.file && line == frame.line) return;
  const auto& lines = lines_of(frame.file);
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
