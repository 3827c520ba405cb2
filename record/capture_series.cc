#include "record/capture_series.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <utility>

#include "format/cursor.h"
#include "format/perf_abi.h"
#include "format/record_view.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// What a reader needs of the time before the samples that it explains.
constexpr std::uint32_t kSideband[] = {abi::kRecordMmap,    abi::kRecordComm,     abi::kRecordExit,
                                       abi::kRecordFork,    abi::kRecordMmap2,    abi::kRecordNamespaces,
                                       abi::kRecordKsymbol, abi::kRecordBpfEvent, abi::kRecordCgroup,
                                       abi::kRecordTextPoke};

// So many files may have been finished within a hundredth of a second.
constexpr int kMostOfOneTime = 1000;

// Never over a file that is there; file systems that cannot promise that are asked first.
int rename_new(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (access(to.c_str(), F_OK) == 0) return EEXIST;
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

void append_sideband(format::Bytes records, std::vector<std::byte>& out) {
  while (records.size() >= format::kRecordHeaderSize) {
    format::Cursor header(records);
    const std::uint32_t type = header.u32();
    header.u16();  // misc
    const std::size_t size = header.u16();
    if (size < format::kRecordHeaderSize || size > records.size()) return;
    if (std::ranges::find(kSideband, type) != std::end(kSideband))
      out.insert(out.end(), records.begin(), records.begin() + static_cast<long>(size));
    records = records.subspan(size);
  }
}

std::string time_for_name() {
  timespec now{};
  tm parts{};
  std::array<char, 32> text{};
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &parts);
  const std::size_t size = strftime(text.data(), text.size(), "%Y%m%d%H%M%S", &parts);
  return fmt::format("{}{:02}", std::string_view(text.data(), size), now.tv_nsec / 10'000'000);
}

CaptureSeries::CaptureSeries(std::string path, std::size_t most_files, std::unique_ptr<CaptureOutput> first,
                             Means means)
    : path_(std::move(path)), most_files_(most_files), current_(std::move(first)), means_(std::move(means)) {}
CaptureSeries::~CaptureSeries() = default;

Result<> CaptureSeries::write_plain(format::Bytes records) { return current_->write_plain(records); }

Result<> CaptureSeries::write_records(format::Bytes records) {
  count_records(records, counts_);
  if (next_) append_sideband(records, carried_);
  return current_->write_records(records);
}

Result<> CaptureSeries::finish_round() { return current_->finish_round(); }

Result<> CaptureSeries::close(const format::Features& late) {
  if (auto done = current_->close(late); !done) return done;
  finished_bytes_ += current_->bytes();
  current_.reset();
  return name_finished();
}

Result<> CaptureSeries::close_after_failure() {
  if (!current_) return Done{};  // what is finished is whole
  return current_->close_after_failure();
}

std::uint64_t CaptureSeries::bytes() const { return current_ ? current_->bytes() : 0; }

std::string CaptureSeries::place(const std::string& path) const {
  if (finished_files_ == 0) return path;
  if (finished_files_ == 1) return finished_.back().name;
  const std::size_t removed = finished_files_ - finished_.size();
  return fmt::format("{} files {}.*{}", finished_files_, path,
                     removed == 0 ? "" : fmt::format(", the first {} removed again", removed));
}

Result<> CaptureSeries::prepare_next() {
  auto beginning = means_.describe();
  if (!beginning) return std::move(beginning.error());
  next_ = std::move(*beginning);
  return Done{};
}

Result<> CaptureSeries::begin_next() {
  if (!next_) return Error{"the next file was not prepared"};
  if (auto done = finish(); !done) return done;
  if (most_files_ != 0) remove_old(most_files_ - 1);
  auto opened = means_.open(std::move(next_->features));
  if (!opened) return std::move(opened.error());
  current_ = std::move(*opened);
  counts_ = {};
  if (auto done = current_->write_plain(next_->records); !done) return done;
  if (auto done = current_->write_records(carried_); !done) return done;
  next_.reset();
  carried_ = {};
  return current_->finish_round();
}

Result<> CaptureSeries::finish() { return means_.end(counts_, *this); }

Result<> CaptureSeries::name_finished() {
  struct stat info {};
  if (lstat(path_.c_str(), &info) != 0) return output_error(system_error(path_, errno).what, errno);
  const std::string wanted = path_ + "." + time_for_name();
  for (int number = 1; number <= kMostOfOneTime; ++number) {
    const std::string name = number == 1 ? wanted : fmt::format("{}-{}", wanted, number);
    const int code = rename_new(path_, name);
    if (code == EEXIST) continue;
    if (code != 0) return output_error(system_error(name, code).what, code);
    ++finished_files_;
    finished_.push_back({name, info.st_dev, info.st_ino});
    const std::lock_guard lock(mutex_);
    news_.push_back(name);
    return Done{};
  }
  return output_error(wanted + ": there are too many files of that time already");
}

// Only what we made: whoever put another file in its place keeps it.
void CaptureSeries::remove_old(std::size_t most) {
  while (finished_.size() > most) {
    const Finished oldest = std::move(finished_.front());
    finished_.pop_front();
    struct stat info {};
    const bool is_ours =
        lstat(oldest.name.c_str(), &info) == 0 && info.st_dev == oldest.device && info.st_ino == oldest.inode;
    if (is_ours) unlink(oldest.name.c_str());
  }
}

std::vector<std::string> CaptureSeries::take_finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

}  // namespace tacho::record
