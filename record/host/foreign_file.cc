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
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "format/base/file.h"
#include "record/host/host.h"
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

Result<ForeignFile> find_foreign(const ForeignPath& path) {
  const auto refused = [&](std::string_view why) {
    return Error{fmt::format("{}{}: {}", path.root, path.path, why), EINVAL};
  };
  ForeignFile file;
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

Result<format::Fd> open_found(const ForeignFile& file, const std::string& path) {
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

// Notes of nearly every binary are in its first page; some linkers put them after the symbol tables.
constexpr std::size_t kHeadOfBinary = std::size_t{64} << 10;
constexpr int kMostHanging = 2;  // of one scope
constexpr std::chrono::seconds kShortestRest{10};
constexpr int kLongestRest = 9;  // exponent of 2, of the pause: 1.4 hours
constexpr int kMostAbandoned = 16;
constexpr std::size_t kMostPlaces = 4096;
constexpr std::uint64_t kMostMounts = 1 << 20;  // bytes of the list of mounts

// Threads that wait for files, of all objects of TimedFileReader in the program.
std::atomic<int>& abandoned_threads() {
  static std::atomic<int> count = 0;
  return count;
}

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

struct TimedFileReader::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::vector<ForeignPath>> paths;  // of the requested file
  Want want = Want::First;
  std::optional<Bytes> found;
  bool is_over = false;
  bool is_left = false;  // counted as abandoned

  static Bytes read(const std::vector<ForeignPath>& paths, Want want, const Reader& reader) {
    Bytes first;
    for (const ForeignPath& path : paths) {
      auto bytes = reader(path);
      if (bytes && !first) first = std::move(bytes);
      if (first && want == Want::First) break;
    }
    return first;
  }

  void run(const Reader& reader) {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return is_over || paths; });
      if (is_over) return;
      const std::vector<ForeignPath> asked = *std::exchange(paths, std::nullopt);
      const Want wanted = want;
      lock.unlock();
      Bytes bytes;
      try {
        bytes = read(asked, wanted, reader);
      } catch (const std::bad_alloc&) {
        // Then the file has no build id.
      }
      lock.lock();
      if (is_left) --abandoned_threads();
      found = std::move(bytes);
      changed.notify_all();
    }
  }
};

TimedFileReader::Bytes TimedFileReader::read_head(const ForeignPath& path) {
  const auto file = open_foreign(path);
  if (!file) return std::nullopt;
  auto head = format::read_at(file->get(), 0, kHeadOfBinary);
  return head ? Bytes(std::move(*head)) : std::nullopt;
}

std::string TimedFileReader::scope_of(std::uint32_t major, std::uint32_t minor, const std::string& name,
                                      const std::string& folder) {
  std::string device = std::to_string(major) + ":" + std::to_string(minor);
  if (major == 0 && minor == 0) device = device_of(name, folder + "/mountinfo");
  if (device.empty()) device = device_of(name, "/proc/self/mountinfo");
  if (device.empty()) return name.substr(0, name.rfind('/'));
  return device.starts_with("0:") ? device : name;
}

TimedFileReader::~TimedFileReader() {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->is_over = true;
  shared_->changed.notify_all();
}

bool TimedFileReader::start() {
  auto shared = std::make_shared<Shared>();
  try {
    std::thread([shared, reader = reader_] {
      // The thread may hang in a read before the recorder drops its rights, and would keep them.
      (void)drop_rights({.holds_files = true}, "");
      shared->run(reader);
    }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  shared_ = std::move(shared);
  return true;
}

TimedFileReader::Bytes TimedFileReader::head_of(std::vector<ForeignPath> paths, const std::string& scope) {
  return ask(std::move(paths), Want::First, scope).value_or(std::nullopt);
}

bool TimedFileReader::answers(std::vector<ForeignPath> paths, const std::string& scope) {
  return ask(std::move(paths), Want::All, scope).has_value();
}

// nullopt: the file did not answer.
std::optional<TimedFileReader::Bytes> TimedFileReader::ask(std::vector<ForeignPath> paths, Want want,
                                                           const std::string& scope) {
  using Clock = std::chrono::steady_clock;
  if (const auto known = hanging_.find(scope);
      known != hanging_.end() && known->second.files >= kMostHanging) {
    const auto rest = kShortestRest * (1 << std::min(known->second.files, kLongestRest));
    if (Clock::now() - known->second.since < rest) return std::nullopt;
  }
  if (abandoned_threads() >= kMostAbandoned || (!shared_ && !start())) return std::nullopt;
  std::unique_lock lock(shared_->mutex);
  shared_->paths = std::move(paths);
  shared_->want = want;
  shared_->changed.notify_all();
  if (shared_->changed.wait_for(lock, patience_, [this] { return shared_->found.has_value(); })) {
    if (!hanging_.empty()) hanging_.erase(scope);
    return *std::exchange(shared_->found, std::nullopt);
  }
  shared_->is_over = shared_->is_left = true;
  ++abandoned_threads();
  lock.unlock();
  shared_.reset();  // the next file gets another thread
  if (hanging_.size() >= kMostPlaces) hanging_.clear();
  Hanging& hanging = hanging_[scope];
  ++hanging.files;
  hanging.since = Clock::now();
  return std::nullopt;
}

}  // namespace tacho::record
