#include "record/host/disks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "cli/nearest.h"

namespace tacho::record {
namespace {

namespace fs = std::filesystem;

// A slash in a name is '!' in the folders of the kernel.
std::string with(std::string name, char from, char to) {
  std::ranges::replace(name, from, to);
  return name;
}

// The folder of a partition lies in its disk's.
std::string disk_of(const fs::path& folder) {
  std::error_code failed;
  if (!fs::exists(folder / "partition", failed)) return {};
  const fs::path place = fs::canonical(folder, failed);
  return failed ? std::string() : with(place.parent_path().filename().string(), '!', '/');
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
        fmt::format("'{}' is a partition, whose requests are those of its disk: disk={}", name, found->disk)};
  return *found;
}

}  // namespace tacho::record
