#include "record/host/foreign_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "format/base/file.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

constexpr int kMostTries = 8;  // a folder that is moved meanwhile aborts a look-up
constexpr std::uint32_t kConfigFs = 0x62656570;
constexpr std::array<std::uint32_t, 11> kOfTheKernel = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,       TRACEFS_MAGIC, SECURITYFS_MAGIC, kConfigFs,
    BPF_FS_MAGIC,     CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SELINUX_MAGIC, EFIVARFS_MAGIC};

int open_in(int root, const std::string& path, std::uint64_t flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = flags;
  how.resolve = resolve;
  return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
}

// Relative to this process's root: another process's file system must not decide how it is examined.
bool has_openat2() {
  const format::Fd root(open_in(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_MAGICLINKS));
  return static_cast<bool>(root);
}

format::Fd open_path(const ForeignPath& path) {
  if (path.root.empty()) return format::Fd(::open(path.path.c_str(), O_PATH | O_CLOEXEC));
  static const bool is_new_kernel = has_openat2();
  if (!is_new_kernel)
    return format::Fd(::open((path.root + path.path).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const format::Fd root(::open(path.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return {};
  for (int tries = 0; tries < kMostTries; ++tries) {
    format::Fd found(open_in(root.get(), path.path, O_PATH | O_NOFOLLOW | O_CLOEXEC,
                             RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS));
    if (found || errno != EAGAIN) return found;
  }
  return {};
}

}  // namespace

Result<FoundFile> find_foreign(const ForeignPath& path) {
  const auto refused = [&](std::string_view why) {
    return Error{fmt::format("{}{}: {}", path.root, path.path, why), EINVAL};
  };
  FoundFile file;
  file.path_fd = open_path(path);
  if (!file.path_fd || ::fstat(file.path_fd.get(), &file.status) != 0)
    return system_error(path.root + path.path, errno);
  if (!S_ISREG(file.status.st_mode)) return refused("is not a regular file");
  if (path.inode != 0 && file.status.st_ino != path.inode) return refused("is another file");
  struct statfs system {};
  if (::fstatfs(file.path_fd.get(), &system) != 0) return system_error(path.root + path.path, errno);
  if (std::ranges::count(kOfTheKernel, static_cast<std::uint32_t>(system.f_type)) != 0)
    return refused("is the kernel's own");
  return file;
}

Result<format::Fd> open_found(const FoundFile& file, const std::string& path) {
  format::Fd opened(::open(fmt::format("/proc/self/fd/{}", file.path_fd.get()).c_str(),
                           O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!opened) return system_error(path, errno);
  return opened;
}

Result<format::Fd> open_foreign(const ForeignPath& path) {
  const auto found = find_foreign(path);
  if (!found) return found.error();
  return open_found(*found, path.root + path.path);
}

View view_of(const std::string& folder) {
  struct stat own {
  }, mounts{};
  std::array<char, 2> root{};  // another root has a longer name
  const ssize_t length = ::readlink((folder + "/root").c_str(), root.data(), root.size());
  if (length <= 0 || ::stat("/proc/self/ns/mnt", &own) != 0 ||
      ::stat((folder + "/ns/mnt").c_str(), &mounts) != 0)
    return View::Unknown;
  const bool has_our_mounts = own.st_dev == mounts.st_dev && own.st_ino == mounts.st_ino;
  return has_our_mounts && length == 1 && root.front() == '/' ? View::Ours : View::Other;
}

namespace {

constexpr std::uint64_t kMostMounts = 1 << 20;  // bytes of the list of mounts

bool is_below(std::string_view name, std::string_view folder) {
  if (folder == "/") return true;
  return name.starts_with(folder) && (name.size() == folder.size() || name[folder.size()] == '/');
}

// "8:1" of the mount with a file; the last one if several are stacked. Empty: none.
std::string device_of(std::string_view name, const std::string& mounts_path) {
  const auto mounts = format::read_file(mounts_path, kMostMounts);
  if (!mounts) return {};
  std::string device;
  std::size_t longest = 0;
  std::string_view text = format::as_text(*mounts);
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    take_until(line, ' ');
    take_until(line, ' ');
    const std::string_view number = take_until(line, ' ');
    take_until(line, ' ');
    const std::string folder = without_octal_escapes(take_until(line, ' '));
    if (folder.size() < longest || !is_below(name, folder)) continue;
    longest = folder.size();
    device = number;
  }
  return device;
}

}  // namespace

std::string scope_of_file(std::uint32_t major, std::uint32_t minor, const std::string& name,
                          const std::string& folder) {
  std::string device = std::to_string(major) + ":" + std::to_string(minor);
  if (major == 0 && minor == 0) device = device_of(name, folder + "/mountinfo");
  if (device.empty()) device = device_of(name, "/proc/self/mountinfo");
  if (device.empty()) return name.substr(0, name.rfind('/'));
  return device.starts_with("0:") ? device : name;
}

}  // namespace tacho::record
