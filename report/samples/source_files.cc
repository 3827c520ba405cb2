#include "report/samples/source_files.h"

#include <algorithm>

namespace tacho::report {

const std::vector<std::string>& SourceFiles::lines_of(std::string_view file) {
  if (const auto known = files_.find(file); known != files_.end()) return known->second;
  std::vector<std::string>& lines = files_[std::string(file)];
  const auto bytes = resolver_->source_file(std::string(file));
  if (!bytes) return lines;
  std::string_view rest(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

}  // namespace tacho::report
