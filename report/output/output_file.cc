#include "report/output/output_file.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "format/base/output.h"
#include "format/base/trusted_path.h"
#include "format/container/file_head.h"

extern char** environ;

namespace tacho::report {
namespace {

// The shell's exit statuses for a program that it cannot run or cannot find.
constexpr int kCannotRun = 126, kNotFound = 127;
constexpr int kMostAttempts = 100;  // at an unused name

// Variables for the pager that the user has not set, as in git: less quits if the text fits the screen (F),
// passes colours (R) and leaves the text on the screen (X); lv passes colours (-c).
std::vector<std::string> pager_variables() {
  std::vector<std::string> extra;
  if (std::getenv("LESS") == nullptr) extra.emplace_back("LESS=FRX");
  if (std::getenv("LV") == nullptr) extra.emplace_back("LV=-c");
  return extra;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// The temporary name of a file; a long name is cut to what the file system allows.
std::string aside_of(const std::string& target, int attempt) {
  constexpr std::size_t kKept = 200;
  const auto name = target.rfind('/') + 1;  // 0 without a slash
  std::string aside = target.substr(0, name) + target.substr(name, kKept);
  aside.append(".tacho-").append(std::to_string(::getpid()));
  return attempt == 0 ? aside : aside + "-" + std::to_string(attempt);
}

// Whether the mode of an existing file may be kept. Root checks that no other user may change the file.
bool keeps_mode(struct stat status) {
  status.st_mode &= ~mode_t{S_IWGRP | S_IWOTH};
  return ::geteuid() != 0 || !format::who_else_may_change(status);
}

// Starts a command in a shell, with the standard input `input`. Signals that this process ignores get their
// default action, and SIGTSTP is not blocked. Returns 0, or an errno.
int spawn_shell(std::string command, int input, pid_t& child) {
  std::vector<std::string> extra = pager_variables();
  extra.push_back("PATH=" + format::trusted_search_path());
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("PATH=")) environment.push_back(*variable);
  for (std::string& variable : extra) environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string shell = "sh", option = "-c";
  std::array<char*, 4> words{shell.data(), option.data(), command.data(), nullptr};
  sigset_t defaults, mask;
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGINT, SIGQUIT}) sigaddset(&defaults, signal);
  // A thread that waits for Ctrl-Z has it blocked (sandbox/job.h).
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  sigdelset(&mask, SIGTSTP);
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const int code = posix_spawn(&child, "/bin/sh", &actions, &attributes, words.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return code;
}

}  // namespace

OutputFile::OutputFile(OutputFile&& other) noexcept
    : name_(std::move(other.name_)),
      owned_(std::move(other.owned_)),
      fd_(std::exchange(other.fd_, -1)),
      target_(std::exchange(other.target_, {})),
      aside_(std::exchange(other.aside_, {})),
      keeps_old_(other.keeps_old_),
      command_(std::exchange(other.command_, {})),
      elsewhere_(std::exchange(other.elsewhere_, std::nullopt)),
      child_(std::exchange(other.child_, -1)),
      interrupt_(other.interrupt_),
      quit_(other.quit_) {}

OutputFile::~OutputFile() {
  if (!aside_.empty()) ::unlink(aside_.c_str());
  if (child_ > 0) (void)end_command();
}

Error OutputFile::failed(std::string_view action, int code) const {
  return output_error(name_ + ": " + std::string(action) + ": " + std::strerror(code), code);
}

Result<OutputFile> OutputFile::create(const std::string& path, mode_t mode) {
  OutputFile file;
  file.name_ = path;
  if (path.empty()) return use_error("-o: the name of the file is empty");
  if (auto allowed = format::check_output_way(path); !allowed) return std::move(allowed.error());
  std::error_code ignored;
  // A symbolic link stays, and its target is replaced.
  const auto real = std::filesystem::canonical(path, ignored);
  const std::string target = real.empty() ? path : real.string();
  struct stat before {};
  const bool exists = ::stat(target.c_str(), &before) == 0;
  if (exists && !S_ISREG(before.st_mode)) {
    file.owned_ = format::Fd(::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!file.owned_) return file.failed("cannot open", errno);
    file.fd_ = file.owned_.get();
    return file;
  }
  if (exists && ::access(target.c_str(), W_OK) != 0) return file.failed("cannot write", errno);
  file.target_ = target;
  // A capture is kept: unlike a text it cannot be made again.
  file.keeps_old_ = exists && format::is_capture_file(target);
  if (auto nameless = format::create_nameless(AT_FDCWD, folder_of(target), mode)) {
    file.owned_ = std::move(*nameless);
  } else {
    for (int attempt = 0; file.aside_.empty(); ++attempt) {
      const std::string aside = aside_of(target, attempt);
      file.owned_ = format::Fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
      if (file.owned_)
        file.aside_ = aside;
      else if (errno != EEXIST || attempt == kMostAttempts)
        return file.failed("cannot create", errno);
    }
  }
  if (exists && keeps_mode(before)) (void)::fchmod(file.owned_.get(), before.st_mode & 07777);
  file.fd_ = file.owned_.get();
  return file;
}

OutputFile OutputFile::to_command(std::string command) {
  OutputFile file;
  file.name_ = "pager '" + command + "'";
  file.command_ = std::move(command);
  return file;
}

Result<> OutputFile::start_command() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("cannot start", errno);
  const format::Fd input(ends[0]);
  owned_ = format::Fd(ends[1]);
  fd_ = owned_.get();
  if (const int code = spawn_shell(command_, input.get(), child_); code != 0) {
    child_ = -1;
    return failed("cannot start", code);
  }
  interrupt_ = std::signal(SIGINT, SIG_IGN);
  quit_ = std::signal(SIGQUIT, SIG_IGN);
  return Done{};
}

Result<OutputFile::Reader> OutputFile::write(std::string_view text) {
  if (text.empty()) return Reader::There;
  if (elsewhere_) return elsewhere_->write(text);
  if (!command_.empty() && fd_ < 0) {
    if (auto started = start_command(); !started) return std::move(started.error());
  }
  while (!text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      return Reader::Gone;
    } else if (errno != EINTR) {
      return failed("cannot write", errno);
    }
  }
  return Reader::There;
}

Result<> OutputFile::end_command() {
  owned_ = format::Fd();
  fd_ = -1;
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  std::signal(SIGINT, interrupt_);
  std::signal(SIGQUIT, quit_);
  const int exit = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (exit == kCannotRun || exit == kNotFound)
    return output_error(name_ + ": the shell cannot run it; --no-pager prints without a pager");
  return Done{};
}

Result<> OutputFile::name_file() {
  // EINVAL: this kind of file system has nothing to flush.
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP) return failed("cannot write", errno);
  const NoStopping until_named;
  // An unnamed file (O_TMPFILE) cannot replace another one atomically: give it a temporary name first.
  for (int attempt = 0; aside_.empty(); ++attempt) {
    const std::string aside = aside_of(target_, attempt);
    auto named = format::give_name(owned_, AT_FDCWD, aside);
    if (named)
      aside_ = aside;
    else if (named.error().code != EEXIST || attempt == kMostAttempts)
      return failed("cannot name what was written", named.error().code);
  }
  if (keeps_old_ && ::rename(target_.c_str(), (target_ + ".old").c_str()) != 0 && errno != ENOENT)
    return failed("cannot keep the capture of that name as .old", errno);
  if (::rename(aside_.c_str(), target_.c_str()) != 0) return failed("cannot rename what was written", errno);
  aside_.clear();
  target_.clear();
  return Done{};
}

Result<> OutputFile::finish() {
  if (elsewhere_) return elsewhere_->finish();
  if (child_ > 0) return end_command();
  if (!target_.empty()) return name_file();
  return Done{};
}

bool OutputFile::is_for_person() const {
  if (elsewhere_) return elsewhere_->is_for_person;
  return !command_.empty() || ::isatty(fd_) != 0;
}

mode_t mode_of_output(std::span<const std::string> inputs) {
  constexpr mode_t kOwner = 0600, kGroup = 0060, kOthers = 0006;
  mode_t mode = kOwner | kGroup | kOthers;
  for (const std::string& input : inputs) {
    struct stat status {};
    const bool is_known =
        (input == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(input.c_str(), &status)) == 0;
    const bool is_file = is_known && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
    const bool is_public = is_file && (status.st_mode & S_IROTH) != 0;
    const bool is_of_group = is_file && (status.st_mode & S_IRGRP) != 0 && status.st_gid == ::getegid();
    if (!is_public) mode &= ~kOthers;
    if (!is_public && !is_of_group) mode &= ~kGroup;
  }
  return mode;
}

Result<sandbox::Output> output_of(Result<OutputFile> file) {
  if (!file) return std::move(file.error());
  const auto shared = std::make_shared<OutputFile>(std::move(*file));
  return sandbox::Output{.write = [shared](std::string_view text) { return shared->write(text); },
                         .finish = [shared] { return shared->finish(); },
                         .is_reader_gone = [shared] { return shared->is_reader_gone(); },
                         .is_for_person = shared->is_for_person()};
}

}  // namespace tacho::report
