#include "record/events/cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "cli/nearest.h"

namespace tacho::record {
namespace {

namespace fs = std::filesystem;

// Of the cgroups there are, so many are looked at, and so many named in a message.
constexpr std::size_t kMostLookedAt = 100'000;
constexpr std::size_t kMostNamed = 4;

std::string_view take_word(std::string_view& text, char end) {
  const std::string_view word = text.substr(0, text.find(end));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

bool has_option(std::string_view options, std::string_view wanted) {
  while (!options.empty()) {
    if (take_word(options, ',') == wanted) return true;
  }
  return false;
}

// Blanks in a path are written as \040 there.
std::string unescaped(std::string_view text) {
  const auto is_octal = [](char letter) { return letter >= '0' && letter <= '7'; };
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view digits = text.substr(at).substr(1, 3);
    if (text[at] != '\\' || digits.size() != 3 || !std::ranges::all_of(digits, is_octal)) {
      out += text[at];
      continue;
    }
    out += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0'));
    at += 3;
  }
  return out;
}

// A line is "36 35 98:0 /root /mount options [optional]... - type source super-options".
struct MountLine {
  std::string_view where, type, super_options;
};
MountLine parse_mount_line(std::string_view line) {
  MountLine out;
  for (int i = 0; i < 4; ++i) take_word(line, ' ');
  out.where = take_word(line, ' ');
  while (!line.empty() && take_word(line, ' ') != "-") {
  }
  out.type = take_word(line, ' ');
  take_word(line, ' ');
  out.super_options = line;
  return out;
}

std::string second_version_mount(std::string_view mountinfo) {
  while (!mountinfo.empty()) {
    const MountLine line = parse_mount_line(take_word(mountinfo, '\n'));
    if (line.type == "cgroup2") return unescaped(line.where);
  }
  return {};
}

std::string without_slashes(std::string_view name) {
  while (name.starts_with('/')) name.remove_prefix(1);
  while (name.ends_with('/')) name.remove_suffix(1);
  return std::string(name);
}

// Those that hold the name's last part come first; else the spelling that is nearest.
std::string named_alike(const std::string& mount, const std::string& name) {
  const std::vector<std::string> all = all_cgroups(mount);
  const std::string part = name.substr(name.rfind('/') + 1);
  std::string found;
  std::size_t count = 0;
  for (const std::string& each : all) {
    if (part.empty() || each.find(part) == std::string::npos) continue;
    if (++count <= kMostNamed) found += (found.empty() ? "" : ", ") + each;
  }
  if (count > kMostNamed) found += ", ... (" + std::to_string(count) + " in all)";
  if (count != 0) return "; names like it: " + found;
  return cli::suggestion("/" + name, all);
}

}  // namespace

std::string cgroup_mount(std::string_view mountinfo) {
  std::string second;
  while (!mountinfo.empty()) {
    const MountLine line = parse_mount_line(take_word(mountinfo, '\n'));
    if (line.type == "cgroup" && has_option(line.super_options, "perf_event")) return unescaped(line.where);
    if (line.type == "cgroup2" && second.empty()) second = unescaped(line.where);
  }
  return second;
}

std::vector<std::string> all_cgroups(const std::string& mount) {
  std::vector<std::string> names;
  std::error_code code;
  const auto skip = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(mount, skip, code), end;
       !code && entry != end && names.size() < kMostLookedAt; entry.increment(code)) {
    std::error_code unknown;
    if (entry->is_directory(unknown)) names.push_back(entry->path().string().substr(mount.size()));
  }
  std::ranges::sort(names);
  return names;
}

Result<format::Fd> open_cgroup(const std::string& mount, const std::string& name) {
  const bool is_whole_path = name.starts_with(mount + "/") || name == mount;
  const std::string below = without_slashes(is_whole_path ? name.substr(mount.size()) : name);
  format::Fd folder(open((mount + "/" + below).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder && (errno == ENOENT || errno == ENOTDIR))
    return use_error("-G: there is no cgroup '" + name + "' below " + mount + named_alike(mount, below));
  if (!folder) return system_error("-G: " + mount + "/" + below, errno);
  struct statfs kind {};
  const bool is_cgroup = fstatfs(folder.get(), &kind) == 0 &&
                         (kind.f_type == CGROUP2_SUPER_MAGIC || kind.f_type == CGROUP_SUPER_MAGIC);
  if (!is_cgroup) return use_error("-G: '" + name + "' leads out of " + mount + ", where cgroups are");
  return folder;
}

Result<CgroupNumber> number_of_cgroup(std::string_view path) {
  constexpr ino_t kFirstCgroupNamespace = 0xEFFFFFFB;  // of the one that every host begins with
  struct stat space {};
  if (::stat("/proc/self/ns/cgroup", &space) == 0 && space.st_ino != kFirstCgroupNamespace)
    return Error{"this is a cgroup namespace, from which cgroups have other paths; use cgroup_id"};
  const auto mounts = format::read_file("/proc/self/mountinfo");
  if (!mounts) return mounts.error();
  const std::string mount = second_version_mount(format::as_text(*mounts));
  if (mount.empty())
    return Error{"no cgroups of version 2 are mounted here, and the kernel's programs know no others"};
  const std::string below = without_slashes(path);
  const std::string folder = below.empty() ? mount : mount + "/" + below;
  struct stat found {};
  struct statfs kind {};
  if (::stat(folder.c_str(), &found) != 0)
    return use_error("there is no cgroup '/" + below + "' below " + mount + named_alike(mount, below));
  if (::statfs(folder.c_str(), &kind) != 0 || kind.f_type != CGROUP2_SUPER_MAGIC)
    return use_error("'/" + below + "' leads out of " + mount + ", where cgroups are");
  const auto slashes = static_cast<std::uint16_t>(std::ranges::count(below, '/'));
  return CgroupNumber{found.st_ino, static_cast<std::uint16_t>(below.empty() ? 0 : slashes + 1)};
}

std::vector<std::string> parse_cgroup_list(std::string_view text) {
  std::vector<std::string> names;
  for (;;) {
    const auto comma = text.find(',');
    names.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return names;
    text.remove_prefix(comma + 1);
  }
}

Result<std::string> mounted_cgroups() {
  const auto mounts = format::read_file("/proc/self/mountinfo");
  if (!mounts) return mounts.error();
  std::string mount = cgroup_mount(format::as_text(*mounts));
  if (!mount.empty()) return mount;
  return Error{"no cgroup file system is mounted here; mount it with: mount -t cgroup2 none /sys/fs/cgroup"};
}

Result<std::vector<format::Fd>> open_cgroups(const std::vector<std::string>& names) {
  std::vector<format::Fd> folders;
  if (names.empty()) return folders;
  const auto mount = mounted_cgroups();
  if (!mount) return mount.error();
  for (const std::string& name : names) {
    if (name.empty()) {
      folders.emplace_back();
      continue;
    }
    auto folder = open_cgroup(*mount, name);
    if (!folder) return std::move(folder.error());
    folders.push_back(std::move(*folder));
  }
  return folders;
}

}  // namespace tacho::record
