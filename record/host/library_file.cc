#include "record/host/library_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "format/file.h"

namespace tacho::record {
namespace {

constexpr std::string_view kFolders =
    "/lib64:/usr/lib64:/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:"
    "/usr/lib/aarch64-linux-gnu:/lib:/usr/lib:/usr/local/lib";

bool is_file(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_regular_file(path, failed);
}

// The path of the first mapped file of that name, as the process itself sees it. Lines of /proc/PID/maps end
// with it; a removed file's with " (deleted)", too, and that cannot be probed.
std::optional<std::string> mapped_file(std::string_view maps, const std::string& name) {
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    const std::size_t slash = line.find('/');
    if (slash != std::string_view::npos && line.ends_with("/" + name)) return std::string(line.substr(slash));
  }
  return std::nullopt;
}

std::optional<std::string> in_folders(std::string_view folders, const std::string& name) {
  while (!folders.empty()) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(folder.size() + 1, folders.size()));
    std::string path = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && is_file(path)) return path;
  }
  return std::nullopt;
}

Result<std::string> file_of_process(const std::string& name, int process) {
  const std::string folder = fmt::format("/proc/{}", process);
  const auto maps = format::read_file(folder + "/maps");
  if (!maps) return use_error(fmt::format("there is no process {}, or it may not be looked at", process));
  const bool is_path = name.find('/') != std::string::npos;
  const auto mapped = is_path ? std::optional(name) : mapped_file(format::as_text(*maps), name);
  if (!mapped) return use_error(fmt::format("process {} has no {} mapped", process, name));
  // Of the process's own root folder, where it is another one.
  const std::string inside = folder + "/root" + (mapped->starts_with('/') ? "" : "/") + *mapped;
  if (mapped->starts_with('/') && is_file(inside)) return inside;
  if (is_file(*mapped)) return *mapped;
  return use_error(fmt::format("{}: no such file", *mapped));
}

}  // namespace

Result<std::string> library_file(const std::string& name, int process) {
  if (name.empty()) return use_error("a file without a name");
  if (process >= 0) return file_of_process(name, process);
  if (name.find('/') != std::string::npos) {
    if (is_file(name)) return name;
    return use_error(fmt::format("{}: no such file", name));
  }
  if (const auto maps = format::read_file("/proc/self/maps"); maps) {
    auto mapped = mapped_file(format::as_text(*maps), name);
    if (mapped && is_file(*mapped)) return std::move(*mapped);
  }
  for (const char* variable : {"LD_LIBRARY_PATH", "", "PATH"}) {
    const char* const folders = *variable == '\0' ? kFolders.data() : std::getenv(variable);
    if (folders == nullptr) continue;
    if (auto path = in_folders(folders, name)) return std::move(*path);
  }
  return use_error(fmt::format("{}: no such library or program", name));
}

std::optional<std::string> own_library(const std::string& name) {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  const auto folder = program.parent_path();
  for (const auto& place : {folder / name, folder.parent_path() / TACHO_LIBRARY_FOLDER / name})
    if (is_file(place)) return place.string();
  return std::nullopt;
}

}  // namespace tacho::record
