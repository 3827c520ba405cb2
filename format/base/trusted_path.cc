#include "format/base/trusted_path.h"

#include <fcntl.h>
#include <limits.h>
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

// Follows a path component by component, and judges each folder, file and link.
class Walk {
 public:
  Result<> along(const std::string& path) {
    std::array<char, PATH_MAX> here{};
    if (!path.starts_with('/') && ::getcwd(here.data(), here.size()) == nullptr)
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

 private:
  Result<> begin() {
    reached_ = "/";
    folder_ = Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    if (!folder_ || ::fstat(folder_.get(), &status) != 0) return system_error(reached_, errno);
    return judge(status);
  }

  Result<> step(const std::string& part) {
    if (!reached_.ends_with('/')) reached_ += '/';
    reached_ += part;
    Fd next(::openat(folder_.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!next || ::fstat(next.get(), &status) != 0) return system_error(reached_, errno);
    if (S_ISLNK(status.st_mode)) return follow(next, status);
    if (auto fine = judge(status); !fine) return fine;
    folder_ = std::move(next);  // if it is not a folder, the next step fails
    return Done{};
  }

  // The link's owner matters: in a folder with the sticky bit other users can make links.
  Result<> follow(const Fd& link, struct stat status) {
    status.st_mode &= ~mode_t{S_IWGRP | S_IWOTH};  // meaningless for links
    if (auto fine = judge(status); !fine) return fine;
    if (++links_ > kMostLinks) return system_error(reached_, ELOOP);
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(link.get(), "", target.data(), target.size());
    if (length <= 0) return system_error(reached_, errno);
    const std::string_view path(target.data(), static_cast<std::size_t>(length));
    add_parts(path, ahead_);
    if (path.starts_with('/')) return begin();
    reached_ = reached_.substr(0, reached_.rfind('/') + 1);
    return Done{};
  }

  Result<> judge(const struct stat& status) const {
    const auto other = who_else_may_change(status);
    return other ? Result<>(Error{reached_ + " " + *other, EPERM}) : Done{};
  }

  std::vector<std::string> ahead_;
  std::string reached_;
  Fd folder_;
  int links_ = 0;
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

Result<> check_trusted_path(const std::string& path) { return Walk().along(path); }

Result<> check_program(const std::string& path) {
  if (::geteuid() != 0) return Done{};
  auto trusted = check_trusted_path(path);
  if (trusted || trusted.error().code != EPERM) return Done{};
  return Error{path + ": root runs no program that other users may change: " + trusted.error().what, EPERM};
}

Result<> check_beside(const std::string& self, const std::string& path) {
  return check_program(self) ? check_program(path) : Done{};
}

Result<std::string> find_program(const std::string& name) {
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
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
