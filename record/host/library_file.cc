#include "record/host/library_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
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

constexpr const char* kCache = "/etc/ld.so.cache";
// sysdeps/generic/ldconfig.h of glibc: an ELF library for libc 6, of this machine.
#if defined(__x86_64__)
constexpr std::uint32_t kOfThisMachine = 0x0303;
#elif defined(__aarch64__)
constexpr std::uint32_t kOfThisMachine = 0x0a03;
#else
constexpr std::uint32_t kOfThisMachine = 0x0003;
#endif

std::optional<std::string> in_cache(const std::string& name) {
  const auto cache = format::read_file(kCache);
  if (!cache) return std::nullopt;
  auto path = cached_library(*cache, name);
  return path && is_file(*path) ? path : std::nullopt;
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
  const auto in_variable = [&name](const char* variable) {
    const char* const folders = std::getenv(variable);
    return folders == nullptr ? std::nullopt : in_folders(folders, name);
  };
  if (auto path = in_variable("LD_LIBRARY_PATH")) return std::move(*path);
  if (auto path = in_cache(name)) return std::move(*path);
  if (auto path = in_folders(kFolders, name)) return std::move(*path);
  if (auto path = in_variable("PATH")) return std::move(*path);
  return use_error(fmt::format("{}: no such library or program", name));
}

// A header (its mark, how many entries there are, bytes of texts, 20 bytes more), entries, texts; offsets of
// texts are from the begin of the file.
std::optional<std::string> cached_library(format::Bytes cache, std::string_view name) {
  constexpr std::string_view kMark = "glibc-ld.so.cache1.1";
  constexpr std::size_t kRestOfHeader = 24;
  format::Cursor in(cache);
  if (format::as_text(in.take(kMark.size())) != kMark) return std::nullopt;
  const std::uint32_t entries = in.u32();
  in.skip(kRestOfHeader);
  const auto text_at = [cache](std::uint32_t offset) {
    const std::string_view all = format::as_text(cache);
    return offset < all.size() ? all.substr(offset, all.find('\0', offset) - offset) : std::string_view();
  };
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::uint32_t flags = in.u32(), key = in.u32(), value = in.u32();
    in.skip(sizeof(std::uint32_t));
    const std::uint64_t wanted_hardware = in.u64();  // for other processors, perhaps
    if (in.failed()) return std::nullopt;
    if (flags == kOfThisMachine && wanted_hardware == 0 && text_at(key) == name)
      return std::string(text_at(value));
  }
  return std::nullopt;
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
