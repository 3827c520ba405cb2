#include "record/output/capture_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include "format/container/content_classes.h"
#include "format/container/pipe_writer.h"

namespace tacho::record {

namespace {

// Both writers take records in the same way.
template <class Writer>
class WriterOutput : public CaptureOutput {
 public:
  explicit WriterOutput(Writer writer) : writer_(std::move(writer)) {}
  Result<> write_plain(format::Bytes records) override { return writer_.write_plain(records); }
  Result<> write_records(format::Bytes records) override { return writer_.write_records(records); }
  Result<bool> write_within(format::Bytes records, std::uint64_t most_bytes) override {
    return writer_.write_records_within(records, most_bytes);
  }
  std::uint64_t closing_room() const override { return writer_.closing_room(); }
  Result<> finish_round() override { return writer_.finish_round(); }

 protected:
  Writer writer_;
};

class FileOutput final : public WriterOutput<format::CaptureWriter> {
 public:
  using WriterOutput::WriterOutput;
  Result<> write_packed(format::Bytes packed, std::uint64_t inflated, const RecordCounts&) override {
    return writer_.write_packed(packed, inflated);
  }
  Result<> close(const format::Features& late) override { return writer_.close(late); }
  Result<> close_after_failure() override { return writer_.close_after_failure(); }
  std::uint64_t bytes() const override { return writer_.file_bytes(); }
};

class PipeOutput final : public WriterOutput<format::PipeWriter> {
 public:
  using WriterOutput::WriterOutput;
  Result<> close(const format::Features& late) override {
    for (std::uint32_t feature = 0; feature < format::abi::kFeatureCount; ++feature) {
      format::ByteWriter section;
      if (!format::write_feature(feature, late, section)) continue;
      if (auto done = writer_.write_section(feature, section.view()); !done) return done;
    }
    return Done{};
  }
  // Data in a pipe cannot be removed.
  Result<> close_after_failure() override { return Done{}; }
  std::uint64_t bytes() const override { return writer_.bytes(); }
};

// Writes to a pipe until its reader has ended.
format::PipeWriter::Write write_to_reader(format::Fd out, int reader) {
  return [out = std::make_shared<format::Fd>(std::move(out)), reader](format::Bytes bytes) -> Result<> {
    while (!bytes.empty()) {
      std::array<pollfd, 2> news{{{out->get(), POLLOUT, 0}, {reader, POLLIN, 0}}};
      if (poll(news.data(), news.size(), -1) < 0 && errno != EINTR) return system_error("poll", errno);
      if (news[1].revents != 0) return output_error("the view has ended", EPIPE);
      const ssize_t count = write(out->get(), bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR && errno != EAGAIN)
        return output_error(system_error("write", errno).what, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    return Done{};
  };
}

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

Result<std::unique_ptr<CaptureOutput>> open_file_output(const std::string& path,
                                                        const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options) {
  features.environment.content = format::content_by_head(events, features);
  auto writer = format::CaptureWriter::create(path, events, std::move(features), options);
  if (!writer) return std::move(writer.error());
  return std::unique_ptr<CaptureOutput>(std::make_unique<FileOutput>(std::move(*writer)));
}

Result<std::unique_ptr<CaptureOutput>> open_pipe_output(format::Fd out, const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options, int reader) {
  features.environment.content = format::content_by_head(events, features);
  auto writer = reader < 0 ? format::PipeWriter::create(std::move(out), events, std::move(features), options)
                           : format::PipeWriter::create(write_to_reader(std::move(out), reader), events,
                                                        std::move(features), options);
  if (!writer) return std::move(writer.error());
  return std::unique_ptr<CaptureOutput>(std::make_unique<PipeOutput>(std::move(*writer)));
}

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
