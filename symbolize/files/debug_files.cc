#include "symbolize/files/debug_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "format/base/parse_text.h"
#include "format/extensions/map_owner.h"
#include "symbolize/symbol_options.h"

namespace tacho::symbolize {
namespace {

constexpr const char* kDebugFolder = "/usr/lib/debug";
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::string by_build_id(const format::BuildId& id) {
  const std::string hex = id.hex();
  return "/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2);
}

// Opens a path with `root` as its root folder (openat2 RESOLVE_IN_ROOT); empty: this machine's.
int open_below(const std::string& root, const std::string& path, int flags) {
  if (root.empty()) return ::open(path.c_str(), flags);
  const format::Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return -1;
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  // Before Linux 5.6, or if a sandbox forbids openat2.
  format::Fd file(::open((root + path).c_str(), flags | O_NOFOLLOW));
  if (!file || is_below(root + path, root)) return file.release();
  errno = EXDEV;
  return -1;
}

// Opening a device or a FIFO has effects, so the file is first opened with O_PATH and checked, then reopened.
Result<format::Fd> open_regular(const std::string& root, const std::string& path, int more_flags = 0) {
  if (root == kNoFiles) return Error{path + ": is not in the capture, and no file is read", ENOENT};
  const format::Fd seen(open_below(root, path, O_PATH | O_CLOEXEC | more_flags));
  struct stat status {};
  if (!seen || ::fstat(seen.get(), &status) != 0) return system_error(root + path, errno);
  if (S_ISLNK(status.st_mode)) return Error{root + path + ": is a link, which is not followed", ELOOP};
  if (S_ISDIR(status.st_mode)) return Error{root + path + ": is a directory", EISDIR};
  if (!S_ISREG(status.st_mode) || is_pseudo_file(seen.get()))
    return Error{root + path + ": is not a regular file", EINVAL};
  format::Fd file(::open(("/proc/self/fd/" + std::to_string(seen.get())).c_str(), kOpenFlags));
  if (file || errno != ENOENT)
    return file ? std::move(file) : Result<format::Fd>(system_error(root + path, errno));
  // Without /proc: opened again by its name.
  file = format::Fd(open_below(root, path, kOpenFlags | more_flags));
  struct stat again {};
  if (!file || ::fstat(file.get(), &again) != 0) return system_error(root + path, errno);
  const bool is_same = status.st_dev == again.st_dev && status.st_ino == again.st_ino;
  if (!is_same) return Error{root + path + ": changed while it was opened", EINVAL};
  return file;
}

Result<std::vector<std::byte>> read_whole(const Result<format::Fd>& file, const std::string& name,
                                          std::uint64_t limit) {
  return file ? DebugFiles::read_opened(*file, name, limit) : Result<std::vector<std::byte>>(file.error());
}

}  // namespace

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

bool is_below(const std::string& path, const std::string& root) {
  const auto resolved = [](const std::string& name) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(name.c_str(), nullptr), &std::free);
    return std::string(real ? real.get() : "");
  };
  std::string folder = resolved(root);
  if (folder.empty()) return false;
  if (!folder.ends_with('/')) folder += '/';
  return resolved(path).starts_with(folder);
}

bool is_pseudo_file(int file) {
  struct statfs system {};
  constexpr std::array kMagics = {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC};
  return ::fstatfs(file, &system) == 0 && std::ranges::find(kMagics, system.f_type) != kMagics.end();
}

Result<std::vector<std::byte>> DebugFiles::read_opened(const format::Fd& file, const std::string& name,
                                                       std::uint64_t limit) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error(name, errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit) return Error{name + ": larger than " + std::to_string(limit) + " bytes"};
  return format::read_at(file.get(), 0, size);
}

Result<format::Fd> DebugFiles::open_file(const std::string& path) const { return open_regular(root_, path); }
Result<format::Fd> DebugFiles::open_itself(const std::string& path) const {
  return open_regular(root_, path, O_NOFOLLOW);
}

Result<std::vector<std::byte>> DebugFiles::read_file(const std::string& path, std::uint64_t limit) const {
  return read_whole(open_file(path), local_path(path), limit);
}

Result<format::Fd> DebugFiles::open_candidate(const Candidate& candidate) const {
  return candidate.host == Host::This ? open_regular({}, candidate.path) : open_file(candidate.path);
}

Result<format::Fd> DebugFiles::open_pinned(std::string_view path, const format::BuildId& id) const {
  return pinned_ != nullptr ? pinned_->binary(path, id)
                            : Result<format::Fd>(Error{"there are no pinned files", ENOENT});
}

Result<std::vector<std::byte>> DebugFiles::read_pinned(std::string_view path, const format::BuildId& id,
                                                       std::uint64_t limit) const {
  return read_whole(open_pinned(path, id), std::string(path), limit);
}

Result<std::vector<std::byte>> DebugFiles::read_pinned_map(std::string_view process,
                                                           std::uint64_t limit) const {
  const auto number = format::take_number<std::uint32_t>(process);
  if (pinned_ == nullptr || !number) return Error{"there are no pinned files", ENOENT};
  return read_whole(pinned_->perf_map(*number), "its map", limit);
}

bool is_this_host(const format::Environment& environment) {
  utsname running{};
  return ::uname(&running) == 0 && environment.hostname == running.nodename &&
         environment.os_release == running.release;
}

Result<> DebugFiles::check_mapped(const format::Fd& file, const Module& module) const {
  const MappedFile& mapped = module.mapped;
  if (features_ == nullptr || !root_.empty() || mapped.inode == 0 || !is_this_host(features_->environment))
    return Done{};
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return Done{};
  long generation = 0;  // stays 0 on file systems without generations and on old kernels
  (void)::ioctl(file.get(), FS_IOC_GETVERSION, &generation);
  const MappedFile file_now{.major = ::gnu_dev_major(status.st_dev),
                            .minor = ::gnu_dev_minor(status.st_dev),
                            .inode = status.st_ino,
                            .generation = static_cast<std::uint32_t>(generation)};
  if (!file_now.is_other_than(mapped)) return Done{};
  const auto& times = features_->environment.sample_time;
  const auto last = format::time_of_day(times ? times->second : 0);
  constexpr std::int64_t kSecond = 1'000'000'000;
  const bool is_newer = last && status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec > *last;
  if (!module.build_id.empty() && is_newer) return Done{};
  const bool is_number = file_now.inode != mapped.inode;
  return Error{
      fmt::format(
          "{}: is another file than the one that was mapped ({} {}; {} was recorded); --symfs / takes it",
          local_path(std::string(module.path)), is_number ? "inode" : "inode generation",
          is_number ? file_now.inode : file_now.generation, is_number ? mapped.inode : mapped.generation),
      ENOTUNIQ};
}

std::string DebugFiles::local_path(const std::string& path) const {
  return root_ == kNoFiles ? path : root_ + path;
}

std::string DebugFiles::message(const std::string& path, const std::string& reason,
                                std::string_view note) const {
  const std::string here = local_path(path) + ": ";
  return reason.starts_with(here) ? here + std::string(note) + reason.substr(here.size())
                                  : path + ": " + std::string(note) + reason;
}

std::vector<Candidate> DebugFiles::candidates(const std::string& module, const format::BuildId& id,
                                              const std::string& debuglink) const {
  const std::string folder = folder_of(module);
  std::vector<Candidate> found;
  if (!debuglink.empty()) {
    found.push_back({folder + debuglink, 'l'});
    found.push_back({folder + ".debug/" + debuglink, 'l'});
    found.push_back({kDebugFolder + folder + debuglink, 'l'});
  }
  if (!cache_.empty() && id.size > 1) {
    found.push_back({cache_ + by_build_id(id) + "/elf", 'B', Host::This});
    found.push_back({cache_ + by_build_id(id) + "/debug", 'D', Host::This});
  }
  found.push_back({kDebugFolder + module + ".debug", 'f'});
  found.push_back({kDebugFolder + module, 'u'});
  if (id.size > 1) found.push_back({kDebugFolder + by_build_id(id) + ".debug", 'b'});
  return found;
}

std::vector<Candidate> DebugFiles::supplementary_files(const Candidate& file, const std::string& link,
                                                       const format::BuildId& id) {
  std::vector<Candidate> found;
  if (!link.empty()) {
    const std::string path = link.starts_with('/') ? link : folder_of(file.path) + link;
    found.push_back({path, file.source, file.host});
  }
  if (id.size > 1) found.push_back({kDebugFolder + by_build_id(id) + ".debug", 'b'});
  return found;
}

}  // namespace tacho::symbolize
