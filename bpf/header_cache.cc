#include "bpf/header_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "bpf/kernel_support.h"
#include "bpf/shipped_headers.h"
#include "bpf/vmlinux_header.h"
#include "format/file.h"
#include "format/trusted_path.h"

namespace tacho::bpf {
namespace {

constexpr const char* kKernelBtf = "/sys/kernel/btf/vmlinux";

// FNV-1a: tells contents apart that differ by accident; the folder is ours alone, so nobody makes them
// collide.
constexpr std::uint64_t kHashStart = 0xcbf29ce484222325;
std::uint64_t hash(std::string_view text, std::uint64_t state = kHashStart) {
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return state;
}

std::string hex(std::uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

// The headers go into what root compiles and loads into the kernel: nobody else may be able to write there.
Result<std::string> own_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string path;
  if (cache != nullptr && *cache == '/') {
    path = cache;
  } else if (home != nullptr && *home == '/') {
    path = std::string(home) + "/.cache";
  } else {
    return Error{"neither XDG_CACHE_HOME nor HOME names a folder"};
  }
  std::error_code code;
  std::filesystem::create_directories(path, code);
  path += "/tacho";
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_error(path, errno);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return system_error(path, errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
    return Error{path + " is not a folder that only this user can enter (mode 0700)"};
  if (auto trusted = format::check_trusted_path(path); !trusted) return std::move(trusted.error());
  return path;
}

Result<> write_file(const std::string& path, std::string_view content) {
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
  const format::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return system_error(path, errno);
  return format::write_at(file.get(), 0, std::as_bytes(std::span(content)));
}

struct HeaderFile {
  std::string path;
  std::string_view content;
};

// `parent`/`name` with these files: written under another name and moved there at once, so that a folder that
// is there is whole.
Result<std::string> folder_of(const std::string& parent, const std::string& name,
                              std::span<const HeaderFile> files) {
  const std::string path = parent + "/" + name;
  auto folder = PrivateFolder::create(parent);
  if (!folder) return std::move(folder.error());
  for (const HeaderFile& file : files)
    if (auto written = write_file(folder->path() + "/" + file.path, file.content); !written)
      return std::move(written.error());
  if (!folder->become(path) && ::access(path.c_str(), R_OK | X_OK) != 0) return system_error(path, errno);
  return path;
}

Result<std::string> shipped_folder(const std::string& parent) {
  std::uint64_t state = kHashStart;
  std::vector<HeaderFile> files;
  for (const ShippedHeader& header : shipped_headers()) {
    state = hash(header.content, hash(header.path, state));
    files.push_back({std::string(header.path), header.content});
  }
  const std::string name = "headers-" + hex(state);
  if (::access((parent + "/" + name).c_str(), R_OK | X_OK) == 0) return parent + "/" + name;
  return folder_of(parent, name, files);
}

// Nothing when this kernel has no BTF: programs that do without vmlinux.h still compile.
Result<std::optional<std::string>> vmlinux_folder(const std::string& parent, const Log& log) {
  if (::access(kKernelBtf, R_OK) != 0) {
    say(log, "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF): compiling without vmlinux.h");
    return std::optional<std::string>();
  }
  auto btf = format::read_file(kKernelBtf);
  if (!btf) return std::move(btf.error());
  const std::string name = "vmlinux-" + kernel_name().release + "-" + hex(hash(format::as_text(*btf)));
  if (::access((parent + "/" + name).c_str(), R_OK | X_OK) == 0) return std::optional(parent + "/" + name);
  auto text = vmlinux_header(*btf);
  if (!text) return std::move(text.error());
  const HeaderFile file{"vmlinux.h", *text};
  auto folder = folder_of(parent, name, std::span(&file, 1));
  if (!folder) return std::move(folder.error());
  say(log, "made " + *folder + "/vmlinux.h from the running kernel's BTF");
  return std::optional(std::move(*folder));
}

Result<std::vector<std::string>> folders_in(const std::string& parent, const Log& log) {
  auto shipped = shipped_folder(parent);
  if (!shipped) return std::move(shipped.error());
  auto vmlinux = vmlinux_folder(parent, log);
  if (!vmlinux) return std::move(vmlinux.error());
  std::vector<std::string> folders{std::move(*shipped)};
  if (*vmlinux) folders.push_back(std::move(**vmlinux));
  return folders;
}

}  // namespace

Result<HeaderCache> HeaderCache::open(const Log& log) {
  HeaderCache cache;
  auto kept = own_cache_folder();
  if (kept) {
    auto folders = folders_in(*kept, log);
    if (folders) {
      cache.folders_ = std::move(*folders);
      return cache;
    }
    say(log, "headers are not kept: " + folders.error().what);
  } else {
    say(log, "headers are not kept: " + kept.error().what);
  }
  auto temporary = PrivateFolder::create();
  if (!temporary) return std::move(temporary.error());
  auto folders = folders_in(temporary->path(), log);
  if (!folders) return std::move(folders.error());
  cache.folders_ = std::move(*folders);
  cache.temporary_ = std::move(*temporary);
  return cache;
}

}  // namespace tacho::bpf
