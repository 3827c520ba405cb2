#include "report/output/pager.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace tacho::report {
namespace {

bool is_in_path(std::string_view program) {
  const char* const variable = std::getenv("PATH");
  if (variable == nullptr) return false;
  const std::string_view path = variable;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string file = std::string(path.substr(at, end - at)) + '/' + std::string(program);
    if (::access(file.c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::string pager_command(const char* tacho_pager, const char* pager, bool has_less) {
  const char* const named = tacho_pager != nullptr ? tacho_pager : pager;
  const std::string_view command = named != nullptr ? named : has_less ? "less" : "";
  return std::string(command == "cat" ? std::string_view() : command);
}

OutputFile standard_output(Paging paging) {
  if (paging == Paging::Never || ::isatty(STDOUT_FILENO) == 0) return OutputFile(STDOUT_FILENO);
  std::string command = pager_command(std::getenv("TACHO_PAGER"), std::getenv("PAGER"), is_in_path("less"));
  if (command.empty()) return OutputFile(STDOUT_FILENO);
  return OutputFile::to_command(std::move(command));
}

}  // namespace tacho::report
