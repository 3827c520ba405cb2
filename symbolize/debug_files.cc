#include "symbolize/debug_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace tacho::symbolize {
namespace {

constexpr const char* kDebugFolder = "/usr/lib/debug";
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

bool climbs(const std::string& path) { return ("/" + path + "/").find("/../") != std::string::npos; }

// As if `root` were "/" for this one call.
int open_below(const std::string& root, const std::string& path) {
  const format::Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return -1;
  open_how how{};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  // Before Linux 5.6, or where a sandbox does not know the call: no links and no "..", which is stricter.
  if (climbs(path)) errno = EXDEV;
  return climbs(path) ? -1 : ::open((root + path).c_str(), kOpenFlags | O_NOFOLLOW);
}

}  // namespace

Result<format::Fd> DebugFiles::open(const std::string& path) const {
  if (root_.empty()) return format::open_input(path);
  format::Fd file(open_below(root_, path));
  if (!file) return system_error(place(path), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error(place(path), errno);
  if (!S_ISREG(status.st_mode)) return Error{place(path) + ": is not a regular file", EINVAL};
  return file;
}

Result<std::vector<std::byte>> DebugFiles::read(const std::string& path, std::uint64_t limit) const {
  const auto file = open(path);
  if (!file) return file.error();
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) return system_error(place(path), errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit) return Error{place(path) + ": larger than " + std::to_string(limit) + " bytes"};
  return format::read_at(file->get(), 0, size);
}

std::vector<Candidate> DebugFiles::candidates(const std::string& module, const format::BuildId& id,
                                              const std::string& debuglink) {
  const std::string folder = module.substr(0, module.rfind('/'));
  std::vector<Candidate> found;
  if (!debuglink.empty()) {
    found.push_back({folder + "/" + debuglink, 'l'});
    found.push_back({folder + "/.debug/" + debuglink, 'l'});
    found.push_back({kDebugFolder + folder + "/" + debuglink, 'l'});
  }
  found.push_back({kDebugFolder + module + ".debug", 'f'});
  found.push_back({kDebugFolder + module, 'u'});
  if (id.size > 1) {
    const std::string hex = id.hex();
    found.push_back(
        {kDebugFolder + ("/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug"), 'b'});
  }
  return found;
}

}  // namespace tacho::symbolize
