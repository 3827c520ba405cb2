#include "report/output/pager.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "format/base/trusted_path.h"
#include "report/output/text_output.h"

namespace tacho::report {
namespace {

// The reason for not running a pager: root runs no program from PATH that other users may change. Anything
// that is no plain program name is left to the shell.
Result<> check_pager(const std::string& command) {
  const std::string name = command.substr(0, command.find(' '));
  if (::geteuid() != 0 || name.find_first_of("/$\"'`=;|&") != std::string::npos) return Done{};
  auto found = format::find_program(name);
  return found || found.error().code != EPERM ? Result<>(Done{}) : std::move(found.error());
}

}  // namespace

std::string pager_command(const char* tacho_pager, const char* pager, bool has_less) {
  const char* const named = tacho_pager != nullptr ? tacho_pager : pager;
  const std::string_view command = named != nullptr ? named : has_less ? "less" : "";
  return std::string(command == "cat" ? std::string_view() : command);
}

OutputFile standard_output(Paging paging) {
  if (paging == Paging::Never || ::isatty(STDOUT_FILENO) == 0) return OutputFile(STDOUT_FILENO);
  const bool has_less = static_cast<bool>(format::find_program("less"));
  std::string command = pager_command(std::getenv("TACHO_PAGER"), std::getenv("PAGER"), has_less);
  if (command.empty()) return OutputFile(STDOUT_FILENO);
  if (const auto checked = check_pager(command); !checked) {
    std::fprintf(stderr, "tacho: no pager: %s\n", printable(checked.error().what).c_str());
    return OutputFile(STDOUT_FILENO);
  }
  return OutputFile::to_command(std::move(command));
}

}  // namespace tacho::report
