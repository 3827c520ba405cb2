#include "sandbox/network_files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "format/base/file.h"
#include "format/base/parse_text.h"

namespace tacho::sandbox {
namespace {

constexpr int kMostWait = 1000;  // ms without an answer
constexpr off_t kParts = 16;     // of a file; each ends with a page that is read

// Types of file systems whose files come from a server, which may not answer.
bool has_server(std::string_view type) {
  constexpr std::array<std::string_view, 9> kTypes{"9p",  "afs",  "ceph", "cifs",    "lustre",
                                                   "nfs", "nfs4", "smb3", "virtiofs"};
  return type.starts_with("fuse") || std::ranges::count(kTypes, type) != 0;
}

void close_from(unsigned first, unsigned last) {
  if (first <= last) (void)::close_range(first, last, 0);
}

// In a child: writes a byte to `to` after each answer, the last one after the last part. Descriptors are
// closed first, so that a pipe does not wait for a child that cannot be ended.
[[noreturn]] void read_parts(const char* path, int to) {
  const auto kept = static_cast<unsigned>(to);
  close_from(0, kept - 1);
  close_from(kept + 1, ~0U);
  const auto answered = [to](char what) { (void)!::write(to, &what, 1); };
  const int file = ::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat info {};
  std::array<char, 4096> page{};
  if (file >= 0 && ::fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
    answered('.');
    for (off_t part = 0; part <= kParts; ++part) {
      const off_t end = info.st_size / kParts * part + (part == kParts ? info.st_size % kParts : 0);
      const off_t begin = std::max<off_t>(end - static_cast<off_t>(page.size()), 0);
      (void)!::pread(file, page.data(), page.size(), begin);
      answered('.');
    }
  }
  answered('!');  // also of a file that cannot be read: that is an answer
  ::_exit(0);
}

}  // namespace

std::string network_mount_of(std::string_view path) {
  constexpr std::uint64_t kMostMounts = 1 << 20;  // bytes
  const auto mounts = format::read_file("/proc/self/mountinfo", kMostMounts);
  if (!mounts) return {};
  std::string found;
  std::string_view type;
  for (std::string_view text = format::as_text(*mounts); !text.empty();) {
    // 36 35 0:52 / /mnt rw,noatime master:1 - nfs4 server:/export rw
    std::string_view line = format::take_until(text, '\n');
    for (int field = 0; field < 4; ++field) format::take_until(line, ' ');
    const std::string folder = format::without_octal_escapes(format::take_until(line, ' '));
    const bool is_below =
        folder == "/" || (path.starts_with(folder) && path.substr(folder.size()).starts_with('/'));
    if (!is_below || folder.size() < found.size()) continue;
    found = folder;
    const std::size_t dash = line.find(" - ");
    type = dash == line.npos ? std::string_view() : line.substr(dash + 3);
    type = type.substr(0, type.find(' '));
  }
  return has_server(type) ? found : std::string();
}

bool NetworkFiles::answers(std::string_view path) {
  const std::lock_guard lock(mutex_);
  if (!path.starts_with('/')) return true;
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  const std::string name(path), mount = network_mount_of(path);
  bool is_there = mount.empty() || silent_mounts_.count(mount) == 0;
  if (is_there && !mount.empty() && !try_file(name)) {
    is_there = false;
    silent_mounts_.insert(mount);
    found_silent_(path);
  }
  known_.emplace(name, is_there);
  return is_there;
}

// True also if there can be no child.
bool NetworkFiles::try_file(const std::string& path) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return true;
  const format::Fd from(ends[0]);
  format::Fd to(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return true;
  if (child == 0) read_parts(path.c_str(), to.get());
  to = format::Fd();
  for (char got = '.'; got == '.';) {
    pollfd news{from.get(), POLLIN, 0};
    const auto ready = TEMP_FAILURE_RETRY(::poll(&news, 1, kMostWait));
    if (ready == 0) return false;
    if (ready < 0 || TEMP_FAILURE_RETRY(::read(from.get(), &got, 1)) != 1) break;
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  return true;
}

}  // namespace tacho::sandbox
