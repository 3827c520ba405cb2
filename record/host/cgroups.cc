#include "record/host/cgroups.h"

#include <fcntl.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "format/file.h"
#include "format/record.h"
#include "record/events/cgroup.h"

namespace tacho::record {
namespace {

namespace fs = std::filesystem;

// A folder of a cgroup hierarchy is known to the kernel by a handle of 8 bytes: the cgroup's number.
std::optional<std::uint64_t> number_of(const std::string& folder) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + sizeof(std::uint64_t)> room{};
  auto* handle = reinterpret_cast<file_handle*>(room.data());
  handle->handle_bytes = sizeof(std::uint64_t);
  int mount = 0;
  if (name_to_handle_at(AT_FDCWD, folder.c_str(), handle, &mount, 0) != 0) return std::nullopt;
  std::uint64_t id = 0;
  std::memcpy(&id, room.data() + sizeof(file_handle), sizeof id);
  return id;
}

}  // namespace

std::vector<Cgroup> cgroups_below(const std::string& mount, std::size_t most) {
  std::vector<Cgroup> found;
  const auto add = [&](const std::string& folder) {
    const auto id = number_of(folder);
    if (id) found.push_back({*id, folder.size() == mount.size() ? "/" : folder.substr(mount.size())});
  };
  add(mount);
  std::error_code code;
  fs::recursive_directory_iterator entry(mount, fs::directory_options::skip_permission_denied, code), end;
  for (; !code && entry != end && found.size() < most; entry.increment(code)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) add(entry->path().string());
  }
  return found;
}

std::vector<Cgroup> all_cgroups() {
  const auto mounts = format::read_file("/proc/self/mountinfo");
  const std::string mount = mounts ? cgroup_mount(format::as_text(*mounts)) : "";
  return mount.empty() ? std::vector<Cgroup>() : cgroups_below(mount);
}

void write_cgroup_records(format::ByteWriter& out, std::size_t trailer) {
  for (const Cgroup& cgroup : all_cgroups()) format::write_cgroup(out, {cgroup.id, cgroup.path}, trailer);
}

}  // namespace tacho::record
