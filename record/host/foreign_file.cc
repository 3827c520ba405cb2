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

namespace tacho::record {
namespace {

constexpr int kMostTries = 8;  // a folder that is moved meanwhile stops a lookup
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

// Asked of our own root: what a process's file system answers must not decide how it is looked at.
bool has_openat2() {
  const format::Fd root(open_in(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_MAGICLINKS));
  return static_cast<bool>(root);
}

format::Fd place_of(const ForeignPath& path) {
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

Result<ForeignFile> find_foreign(const ForeignPath& path) {
  const auto refused = [&](std::string_view why) {
    return Error{fmt::format("{}{}: {}", path.root, path.path, why), EINVAL};
  };
  ForeignFile file;
  file.place = place_of(path);
  if (!file.place || ::fstat(file.place.get(), &file.status) != 0)
    return system_error(path.root + path.path, errno);
  if (!S_ISREG(file.status.st_mode)) return refused("is not a regular file");
  if (path.inode != 0 && file.status.st_ino != path.inode) return refused("is another file");
  struct statfs system {};
  if (::fstatfs(file.place.get(), &system) != 0) return system_error(path.root + path.path, errno);
  if (std::ranges::count(kOfTheKernel, static_cast<std::uint32_t>(system.f_type)) != 0)
    return refused("is the kernel's own");
  return file;
}

Result<format::Fd> open_found(const ForeignFile& file, const std::string& path) {
  format::Fd opened(::open(fmt::format("/proc/self/fd/{}", file.place.get()).c_str(),
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
  std::array<char, 2> root{};  // one that is not ours has a longer name
  const ssize_t length = ::readlink((folder + "/root").c_str(), root.data(), root.size());
  if (length <= 0 || ::stat("/proc/self/ns/mnt", &own) != 0 ||
      ::stat((folder + "/ns/mnt").c_str(), &mounts) != 0)
    return View::Unknown;
  const bool has_our_mounts = own.st_dev == mounts.st_dev && own.st_ino == mounts.st_ino;
  return has_our_mounts && length == 1 && root.front() == '/' ? View::Ours : View::Other;
}

}  // namespace tacho::record
