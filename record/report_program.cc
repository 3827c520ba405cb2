#include "record/report_program.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace tacho::record {

std::optional<std::string> report_program() {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  std::string path = self.parent_path() / "tacho-report";
  return ::access(path.c_str(), X_OK) == 0 ? std::optional(std::move(path)) : std::nullopt;
}

}  // namespace tacho::record
