#include "format/base/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <utility>

#include "format/base/trusted_path.h"

namespace tacho::format {
namespace {

// A file name in an open folder; `path` is for messages.
struct Place {
  Fd folder;
  std::string name, path;

  Error error(int code) const { return output_system_error(path, code); }
  Error refusal(const std::string& why, int code) const { return output_error(path + ": " + why, code); }
};

constexpr unsigned kMostAttempts = 100;  // to find an unused name

std::string self_path(const Fd& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

// Blocks the signals that end the program, while a file has its temporary name.
class NotInterrupted {
 public:
  NotInterrupted() {
    sigset_t stops;
    sigemptyset(&stops);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&stops, signal);
    ::pthread_sigmask(SIG_BLOCK, &stops, &before_);
  }
  NotInterrupted(const NotInterrupted&) = delete;
  NotInterrupted& operator=(const NotInterrupted&) = delete;
  ~NotInterrupted() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// A temporary name, in which a long name is truncated to the limit of 255 bytes.
std::string temporary_name(const std::string& name, unsigned attempt) {
  constexpr std::size_t kKept = 200;
  return "." + name.substr(0, kKept) + "." + std::to_string(::getpid()) + "." + std::to_string(attempt);
}

Result<Place> find_place(const std::string& path) {
  if (auto allowed = check_output_way(path); !allowed) return std::move(allowed.error());
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  Place place{Fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
              slash == std::string::npos ? path : path.substr(slash + 1), path};
  if (!place.folder) return place.error(errno);
  return place;
}

// Refuses links into /proc, such as /dev/stdout, and links to anything but a regular file: renaming the link
// would break it for all programs.
Result<> refuse_open_file(const Place& place) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(place.folder.get(), place.name.c_str(), target.data(), target.size());
  const std::string_view text(target.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  struct stat status {};
  const bool is_file =
      ::fstatat(place.folder.get(), place.name.c_str(), &status, 0) != 0 || S_ISREG(status.st_mode);
  if (is_file && !text.starts_with("/proc/")) return Done{};
  return place.refusal(
      "is a link to something that is not a regular file; name a file (- is standard output, if the command "
      "supports that)",
      EEXIST);
}

// Whether there is an old file to rename: a regular file or a link (the link itself is renamed). Anything
// else is an error.
Result<bool> can_be_kept(const Place& place) {
  struct stat status {};
  if (::fstatat(place.folder.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Result<bool>(false) : Result<bool>(place.error(errno));
  if (S_ISLNK(status.st_mode))
    if (auto done = refuse_open_file(place); !done) return std::move(done.error());
  if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))
    return place.refusal("exists and is not a regular file; name another file", EEXIST);
  status.st_mode &= ~mode_t{S_IWGRP | S_IWOTH};  // users who may write to it do not matter for renaming
  if (const auto other = who_else_may_change(status); ::geteuid() == 0 && other)
    return place.refusal("exists and " + *other + "; root does not rename it: name another file", EACCES);
  return true;
}

// Renames the old file to NAME.old.
Result<> keep_old(const Place& place) {
  const auto is_there = can_be_kept(place);
  if (!is_there) return is_there.error();
  if (!*is_there) return Done{};
  const std::string old = place.name + ".old";
  if (::renameat(place.folder.get(), place.name.c_str(), place.folder.get(), old.c_str()) == 0) return Done{};
  if (errno == ENAMETOOLONG)
    return place.refusal(
        "exists, and the name NAME.old, under which it would be kept, is too long; move it away, or name "
        "another file",
        ENAMETOOLONG);
  return output_system_error(place.path + ".old", errno);
}

// A new file under a temporary name.
Result<Fd> create_temporary(const Place& place, std::string& temporary) {
  for (unsigned attempt = 0; attempt < kMostAttempts; ++attempt) {
    temporary = temporary_name(place.name, attempt);
    Fd file(::openat(place.folder.get(), temporary.c_str(),
                     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST) continue;
    if (!file) return place.error(errno);
    ::fchmod(file.get(), 0600);  // whatever the umask is
    return file;
  }
  return place.refusal("no free name for a temporary file beside it", EEXIST);
}

}  // namespace

Result<> check_output_way(const std::string& path) {
  if (::geteuid() != 0) return Done{};
  const auto trusted = check_trusted_way(path);
  if (trusted || trusted.error().code != EPERM) return Done{};  // what is missing fails later
  return output_error(path + ": root does not write where other users may replace files, and " +
                          trusted.error().what + "; name a file elsewhere",
                      EACCES);
}

Result<Fd> create_nameless(int at, const std::string& folder, mode_t mode) {
  Fd file(::openat(at, folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (!file) return system_error(folder, errno);
  if (::access(self_path(file).c_str(), F_OK) != 0) return system_error("/proc", errno);
  return file;
}

Result<> give_name(const Fd& file, int at, const std::string& name) {
  if (::linkat(AT_FDCWD, self_path(file).c_str(), at, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
    return output_system_error(name, errno);
  return Done{};
}

struct WholeOutput::State {
  Place place;
  std::string temporary;  // empty: it has no name (O_TMPFILE)
  Fd file;
  Old old;
  bool is_finished = false;

  // A nameless file cannot replace another one atomically, so it gets a temporary name first.
  Result<> name_temporarily() {
    for (unsigned attempt = 0; temporary.empty(); ++attempt) {
      const std::string name = temporary_name(place.name, attempt);
      auto named = give_name(file, place.folder.get(), name);
      if (!named && named.error().code == EEXIST && attempt < kMostAttempts) continue;
      if (!named) return place.error(named.error().code);
      temporary = name;
    }
    return Done{};
  }
};

WholeOutput::WholeOutput(std::unique_ptr<State> state) : state_(std::move(state)) {}
WholeOutput::WholeOutput(WholeOutput&&) noexcept = default;
WholeOutput::~WholeOutput() {
  if (state_ && !state_->is_finished && !state_->temporary.empty())
    ::unlinkat(state_->place.folder.get(), state_->temporary.c_str(), 0);
}

Result<WholeOutput> WholeOutput::create(const std::string& path, Old old) {
  auto place = find_place(path);
  if (!place) return std::move(place.error());
  std::string temporary;
  auto file = create_nameless(place->folder.get(), ".", 0600);
  if (file)
    ::fchmod(file->get(), 0600);  // whatever the umask is
  else
    file = create_temporary(*place, temporary);
  if (!file) return std::move(file.error());
  struct stat status {};
  if (old == Old::Replaced &&
      ::fstatat(place->folder.get(), place->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    // The old mode is only kept with the old group: else another group could read it.
    if (::fchown(file->get(), status.st_uid, status.st_gid) == 0)
      (void)::fchmod(file->get(), status.st_mode & 0777);
  }
  return WholeOutput(
      std::make_unique<State>(State{std::move(*place), std::move(temporary), std::move(*file), old}));
}

Result<Fd> WholeOutput::duplicate() const {
  Fd again(::fcntl(state_->file.get(), F_DUPFD_CLOEXEC, 0));
  return again ? Result<Fd>(std::move(again)) : Result<Fd>(state_->place.error(errno));
}

int WholeOutput::descriptor() const { return state_->file.get(); }

bool WholeOutput::has_temporary_name() const { return !state_->temporary.empty(); }

Result<> WholeOutput::finish() {
  if (::fsync(state_->file.get()) != 0 && errno != EINVAL && errno != ENOSYS)
    return state_->place.error(errno);
  return take_name();
}

Result<> WholeOutput::take_name() {
  const Place& place = state_->place;
  const NotInterrupted until_named;
  if (auto named = state_->name_temporarily(); !named) return named;
  if (state_->old == Old::Kept)
    if (auto kept = keep_old(place); !kept) return kept;
  if (::renameat(place.folder.get(), state_->temporary.c_str(), place.folder.get(), place.name.c_str()) != 0)
    return place.error(errno);
  state_->is_finished = true;
  return Done{};
}

Result<> check_output(const std::string& path) {
  const auto place = find_place(path);
  if (!place) return place.error();
  if (::faccessat(place->folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return place->error(errno);
  if (const auto kept = can_be_kept(*place); !kept) return kept.error();
  return Done{};
}

}  // namespace tacho::format
