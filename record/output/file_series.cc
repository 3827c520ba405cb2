#include "record/output/file_series.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace tacho::record {

namespace {

// More files than this cannot be finished within a hundredth of a second.
constexpr int kMostOfOneTime = 1000;

// Never replaces an existing file; checks first on file systems that cannot do this atomically.
int rename_new(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (access(to.c_str(), F_OK) == 0) return EEXIST;
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// "20240131235959" and hundredths of a second: now, in local time, as perf.
std::string time_for_name() {
  timespec now{};
  tm parts{};
  std::array<char, 32> text{};
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &parts);
  const std::size_t size = strftime(text.data(), text.size(), "%Y%m%d%H%M%S", &parts);
  return fmt::format("{}{:02}", std::string_view(text.data(), size), now.tv_nsec / 10'000'000);
}

}  // namespace

Result<> FinishedFiles::add_file() {
  struct stat info {};
  if (lstat(path_.c_str(), &info) != 0) return output_system_error(path_, errno);
  const std::string wanted = path_ + "." + time_for_name();
  for (int number = 1; number <= kMostOfOneTime; ++number) {
    const std::string name = number == 1 ? wanted : fmt::format("{}-{}", wanted, number);
    const int code = rename_new(path_, name);
    if (code == EEXIST) continue;
    if (code != 0) return output_system_error(name, code);
    ++count_;
    const std::lock_guard lock(mutex_);
    files_.push_back({name, info.st_dev, info.st_ino});
    news_.push_back(name);
    return Done{};
  }
  return output_error(wanted + ": there are too many files of that time already");
}

// Removes only files of this recording: not a file that has replaced one.
void FinishedFiles::make_room() {
  const std::lock_guard lock(mutex_);
  while (most_ != 0 && files_.size() > most_ - 1) {
    const File oldest = std::move(files_.front());
    files_.pop_front();
    if (oldest.name == rewritten_) is_rewritten_removed_ = true;
    struct stat info {};
    const bool is_of_recording =
        lstat(oldest.name.c_str(), &info) == 0 && info.st_dev == oldest.device && info.st_ino == oldest.inode;
    if (is_of_recording) unlink(oldest.name.c_str());
  }
}

bool FinishedFiles::begin_rewrite(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(files_, name, &File::name) == files_.end()) return false;
  rewritten_ = name;
  is_rewritten_removed_ = false;
  return true;
}

// A file that was removed meanwhile may be there again.
void FinishedFiles::end_rewrite() {
  const std::lock_guard lock(mutex_);
  const std::string name = std::exchange(rewritten_, {});
  if (is_rewritten_removed_) unlink(name.c_str());
  const auto file = std::ranges::find(files_, name, &File::name);
  struct stat info {};
  if (file == files_.end() || lstat(name.c_str(), &info) != 0) return;
  file->device = info.st_dev;
  file->inode = info.st_ino;
}

std::string FinishedFiles::place() const {
  const std::lock_guard lock(mutex_);
  if (count_ == 1 && !files_.empty()) return files_.back().name;
  const std::size_t removed = count_ - files_.size();
  return fmt::format("{} files {}.*{}", count_, path_,
                     removed == 0 ? "" : fmt::format(", the first {} removed again", removed));
}

std::vector<std::string> FinishedFiles::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const File& file : files_) names.push_back(file.name);
  return names;
}

std::vector<std::string> FinishedFiles::take_new_names() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

}  // namespace tacho::record
