#include "record/host/attachments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/nearest.h"
#include "format/base/file.h"
#include "format/records/record.h"
#include "record/events/target.h"
#include "record/host/process_maps.h"

namespace tacho::record {

std::vector<std::byte> own_vdso() {
  const auto maps = format::read_file("/proc/self/maps");
  const std::uint64_t address = getauxval(AT_SYSINFO_EHDR);
  if (!maps || address == 0) return {};
  MapsReader reader(format::as_text(*maps));
  while (const auto parsed = reader.next_line()) {
    if (parsed->mapping.start != address) continue;
    const auto* const begin = reinterpret_cast<const std::byte*>(address);
    return {begin, begin + parsed->mapping.length};
  }
  return {};
}

Result<std::vector<format::Attachment>> gather_attachments(std::optional<format::Attachment> kallsyms) {
  std::vector<format::Attachment> out;
  if (kallsyms) out.push_back(std::move(*kallsyms));
  const std::vector<std::byte> vdso = own_vdso();
  if (vdso.empty()) return out;
  auto packed = format::pack_attachment("vdso", "[vdso]", vdso);
  if (!packed) return std::move(packed.error());
  out.push_back(std::move(*packed));
  return out;
}

namespace {

namespace fs = std::filesystem;

// The kernel's file handle of a cgroup's folder has 8 bytes, which are the cgroup's id.
std::optional<std::uint64_t> cgroup_id(const std::string& folder) {
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
    const auto id = cgroup_id(folder);
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
  const auto mount = mounted_cgroups();
  return mount ? cgroups_below(*mount) : std::vector<Cgroup>();
}

void write_cgroup_records(format::ByteWriter& out, std::size_t trailer) {
  for (const Cgroup& cgroup : all_cgroups()) format::write_cgroup(out, {cgroup.id, cgroup.path}, trailer);
}

namespace {

// sysfs has '!' for a slash in a name.
std::string with(std::string name, char from, char to) {
  std::ranges::replace(name, from, to);
  return name;
}

// The sysfs folder of a partition is inside its disk's.
std::string disk_of(const fs::path& folder) {
  std::error_code failed;
  if (!fs::exists(folder / "partition", failed)) return {};
  const fs::path target = fs::canonical(folder, failed);
  return failed ? std::string() : with(target.parent_path().filename().string(), '!', '/');
}

}  // namespace

std::vector<BlockDevice> block_devices(std::string_view partitions, const std::string& folder) {
  std::vector<BlockDevice> found;
  std::istringstream lines{std::string(partitions)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::uint32_t major = 0, minor = 0;
    std::uint64_t blocks = 0;
    std::string name;
    if (!(words >> major >> minor >> blocks >> name)) continue;
    const std::string disk = disk_of(fs::path(folder) / with(name, '/', '!'));
    found.push_back({major << 20 | minor, name, disk});
  }
  return found;
}

Result<BlockDevice> disk_named(const std::vector<BlockDevice>& devices, std::string_view name) {
  constexpr std::string_view kFolder = "/dev/";
  if (name.starts_with(kFolder)) name.remove_prefix(kFolder.size());
  const auto found = std::ranges::find(devices, name, &BlockDevice::name);
  if (found == devices.end()) {
    std::vector<std::string> disks;
    for (const BlockDevice& each : devices)
      if (each.disk.empty()) disks.push_back(each.name);
    return Error{fmt::format("there is no disk '{}'{}", name, cli::suggestion(name, disks))};
  }
  if (!found->disk.empty())
    return Error{
        fmt::format("'{}' is a partition, whose requests count as its disk's: disk={}", name, found->disk)};
  return *found;
}

}  // namespace tacho::record
