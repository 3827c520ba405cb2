#include "format/base/trusted_path.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/file.h"

namespace tacho::format {
namespace {

constexpr int kMostLinks = 40;  // the kernel's limit

// Whether `variable`, SUDO_UID or SUDO_GID, has this id. Only root trusts these variables.
bool is_sudo_caller(const char* variable, unsigned id) {
  const char* const text = ::geteuid() == 0 ? std::getenv(variable) : nullptr;
  if (text == nullptr) return false;
  unsigned number = 0;
  const auto [end, code] = std::from_chars(text, text + std::strlen(text), number);
  return code == std::errc() && *end == '\0' && number == id;
}

bool is_trusted_user(uid_t user) {
  return user == 0 || user == ::geteuid() || is_sudo_caller("SUDO_UID", user);
}
bool is_trusted_group(gid_t group) {
  return group == 0 || group == ::getegid() || is_sudo_caller("SUDO_GID", group);
}

// Pushes the components of a path onto `ahead`, a stack of the components to walk.
void add_parts(std::string_view path, std::vector<std::string>& ahead) {
  while (!path.empty()) {
    const auto slash = path.rfind('/');
    const std::string_view part = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
    if (!part.empty() && part != ".") ahead.emplace_back(part);
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
}

// The users and groups that an access control list (acl(5)) lets write: its entries in the extended
// attribute, after a version, are u16 tag, u16 permissions and u32 id.
std::optional<std::string> who_may_write_by_list(Bytes list) {
  constexpr std::uint16_t kUser = 2, kGroup = 8, kOwningGroup = 4, kMask = 16, kWrite = 2;
  std::optional<std::string> found;
  Cursor in(list, std::endian::little);
  in.u32();
  while (in.left() >= 8) {
    const std::uint16_t tag = in.u16(), permissions = in.u16();
    const std::uint32_t id = in.u32();
    if (tag == kMask && (permissions & kWrite) == 0) return std::nullopt;
    if ((permissions & kWrite) == 0 || found || tag == kOwningGroup) continue;
    if (tag == kUser && !is_trusted_user(id)) found = "user " + std::to_string(id);
    if (tag == kGroup && !is_trusted_group(id)) found = "group " + std::to_string(id);
  }
  return found;
}

// Follows a path component by component, and judges each folder, file and link.
class Walk {
 public:
  enum class Last : std::uint8_t { Counts, DoesNotCount };  // the file itself
  enum class Objection : std::uint8_t { Ends, IsNoted };    // an error, or a fact of the result

  Walk(Last last, Objection objection) : last_(last), objection_(objection) {}

  // `root`: the folder of the path's "/"; empty: this machine's. It is judged too.
  Result<FileOnWay> along(const std::string& root, const std::string& path) {
    if (!root.empty()) {
      if (auto walked = walk(root); !walked) return std::move(walked.error());
      root_ = std::move(folder_);
      root_path_ = root.ends_with('/') ? root.substr(0, root.size() - 1) : root;
    }
    if (auto walked = walk(path); !walked) return std::move(walked.error());
    found_.is_public = found_.is_public && (found_.status.st_mode & S_IROTH) != 0;
    found_.file = std::move(folder_);
    return std::move(found_);
  }

 private:
  Result<> walk(const std::string& path) {
    std::array<char, PATH_MAX> here{};
    const bool is_relative = !path.starts_with('/') && !root_;
    if (is_relative && ::getcwd(here.data(), here.size()) == nullptr)
      return system_error("the current folder", errno);
    add_parts(path, ahead_);
    add_parts(here.data(), ahead_);
    if (auto done = begin(); !done) return done;
    while (!ahead_.empty()) {
      const std::string part = std::move(ahead_.back());
      ahead_.pop_back();
      if (auto done = step(part); !done) return done;
    }
    return Done{};
  }

  Result<> begin() {
    reached_ = root_path_ + "/";
    depth_ = 0;
    found_.is_public = true;
    folder_ = root_ ? Fd(::fcntl(root_.get(), F_DUPFD_CLOEXEC, 0))
                    : Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder_ || ::fstat(folder_.get(), &found_.status) != 0) return system_error(reached_, errno);
    return judge(folder_, found_.status);
  }

  Result<> step(const std::string& part) {
    found_.is_public = found_.is_public && (found_.status.st_mode & S_IXOTH) != 0;
    if (part == ".." && root_ && depth_ == 0) return Done{};
    if (!reached_.ends_with('/')) reached_ += '/';
    reached_ += part;
    Fd next(::openat(folder_.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    const bool is_last = ahead_.empty() && last_ == Last::DoesNotCount;
    if (!next && errno == ENOENT && is_last) return Done{};
    if (!next || ::fstat(next.get(), &found_.status) != 0) return system_error(reached_, errno);
    if (S_ISLNK(found_.status.st_mode)) return follow(next, found_.status);
    if (is_last) return Done{};
    if (auto fine = judge(next, found_.status); !fine) return fine;
    folder_ = std::move(next);  // if it is not a folder, the next step fails
    depth_ += part == ".." ? -1 : 1;
    return Done{};
  }

  // The link's owner matters: in a folder with the sticky bit other users can make links.
  Result<> follow(const Fd& link, struct stat status) {
    status.st_mode &= ~mode_t{S_IWGRP | S_IWOTH};  // meaningless for links
    if (auto fine = judge(link, status); !fine) return fine;
    if (++links_ > kMostLinks) return system_error(reached_, ELOOP);
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(link.get(), "", target.data(), target.size());
    if (length <= 0) return system_error(reached_, errno);
    const std::string_view path(target.data(), static_cast<std::size_t>(length));
    add_parts(path, ahead_);
    if (path.starts_with('/')) return begin();
    reached_ = reached_.substr(0, reached_.rfind('/') + 1);
    if (::fstat(folder_.get(), &found_.status) != 0) return system_error(reached_, errno);
    return Done{};
  }

  Result<> judge(const Fd& file, const struct stat& status) {
    const auto other = who_else_may_change(file, status);
    if (!other) return Done{};
    if (found_.objection.empty()) found_.objection = reached_ + " " + *other;
    return objection_ == Objection::Ends ? Result<>(Error{found_.objection, EPERM}) : Done{};
  }

  Last last_;
  Objection objection_;
  std::vector<std::string> ahead_;
  Fd root_;  // none: this machine's "/"
  std::string root_path_, reached_;
  Fd folder_;
  int depth_ = 0;  // folders below the root
  int links_ = 0;
  FileOnWay found_;
};

}  // namespace

std::optional<std::string> who_else_may_change(const struct stat& status) {
  if (!is_trusted_user(status.st_uid)) return "belongs to user " + std::to_string(status.st_uid);
  const bool is_sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  if (is_sticky) return std::nullopt;
  if ((status.st_mode & S_IWOTH) != 0) return "may be changed by all users (chmod o-w forbids it)";
  if ((status.st_mode & S_IWGRP) != 0 && !is_trusted_group(status.st_gid))
    return "may be changed by group " + std::to_string(status.st_gid) + " (chmod g-w forbids it)";
  return std::nullopt;
}

std::optional<std::string> who_else_may_change(const Fd& file, const struct stat& status) {
  auto other = who_else_may_change(status);
  // Where there is a list, the group bits of the mode are its mask: the most that its users and groups may
  // do.
  if (other || S_ISLNK(status.st_mode) || (status.st_mode & S_IWGRP) == 0) return other;
  if (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0) return std::nullopt;
  std::array<std::byte, 4096> list{};
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const ssize_t size = ::getxattr(path.c_str(), "system.posix_acl_access", list.data(), list.size());
  if (size < 0) {
    if (errno == ERANGE) return "has a long access control list";
    return std::nullopt;
  }
  const auto writer = who_may_write_by_list(Bytes(list).first(static_cast<std::size_t>(size)));
  if (!writer) return std::nullopt;
  return "may be changed by " + *writer + " (its access control list; setfacl -b removes it)";
}

Result<> check_trusted_path(const std::string& path) {
  auto walked = Walk(Walk::Last::Counts, Walk::Objection::Ends).along({}, path);
  return walked ? Result<>(Done{}) : std::move(walked.error());
}

Result<> check_trusted_way(const std::string& path) {
  auto walked = Walk(Walk::Last::DoesNotCount, Walk::Objection::Ends).along({}, path);
  return walked ? Result<>(Done{}) : std::move(walked.error());
}

Result<FileOnWay> find_on_way(const std::string& root, const std::string& path) {
  return Walk(Walk::Last::Counts, Walk::Objection::IsNoted).along(root, path);
}

Result<> check_program(const std::string& path) {
  if (::geteuid() != 0) return Done{};
  auto trusted = check_trusted_path(path);
  if (trusted || trusted.error().code != EPERM) return Done{};
  return Error{path + ": root runs no program that other users may change: " + trusted.error().what, EPERM};
}

Result<> check_beside(const std::string& self, const std::string& path) {
  return check_program(self) ? check_program(path) : Done{};
}

namespace {

std::string_view search_path() {
  const char* const variable = std::getenv("PATH");
  return variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
}

}  // namespace

std::string trusted_search_path() {
  if (::geteuid() != 0) return std::string(search_path());
  std::string trusted;
  for (std::string_view rest = search_path(); !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (!folder.starts_with('/') || !check_trusted_path(std::string(folder))) continue;
    trusted.append(trusted.empty() ? "" : ":").append(folder);
  }
  return trusted.empty() ? "/usr/bin:/bin" : trusted;  // an empty PATH is the current folder
}

Result<std::string> find_program(const std::string& name) {
  std::string_view rest = search_path();
  Error refusal{name + ": is not in PATH", ENOENT};
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (folder.empty()) continue;  // the current folder, to a shell
    std::string path = std::string(folder) + '/' + name;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || ::access(path.c_str(), X_OK) != 0)
      continue;
    auto checked = check_program(path);
    if (checked) return path;
    if (refusal.code == ENOENT) refusal = std::move(checked.error());
  }
  return refusal;
}

}  // namespace tacho::format
