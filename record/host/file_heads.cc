#include "record/host/file_heads.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "format/file.h"

namespace tacho::record {
namespace {

// The notes of nearly every binary lie in its first page; some linkers put them behind the symbol tables.
constexpr std::size_t kHeadOfBinary = std::size_t{64} << 10;
constexpr int kMostHanging = 2;  // files of a place
constexpr std::chrono::seconds kShortestRest{10};
constexpr int kLongestRest = 9;  // as a power of two: 1.4 hours

}  // namespace

FileHeads::Bytes FileHeads::first_of(const std::vector<ForeignPath>& paths, const Reader& reader) {
  for (const ForeignPath& path : paths)
    if (auto bytes = reader(path)) return bytes;
  return std::nullopt;
}

struct FileHeads::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::vector<ForeignPath>> paths;  // of the file that is asked for
  std::optional<Bytes> found;
  bool is_over = false;

  void run(const Reader& reader) {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return is_over || paths; });
      if (is_over) return;
      const std::vector<ForeignPath> asked = *std::exchange(paths, std::nullopt);
      lock.unlock();
      Bytes bytes;
      try {
        bytes = first_of(asked, reader);
      } catch (const std::bad_alloc&) {
        // It has no build id, then.
      }
      lock.lock();
      found = std::move(bytes);
      changed.notify_all();
    }
  }
};

FileHeads::Bytes FileHeads::read_head(const ForeignPath& path) {
  const auto file = open_foreign(path);
  if (!file) return std::nullopt;
  auto head = format::read_at(file->get(), 0, kHeadOfBinary);
  return head ? Bytes(std::move(*head)) : std::nullopt;
}

FileHeads::~FileHeads() {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->is_over = true;
  shared_->changed.notify_all();
}

bool FileHeads::start() {
  auto shared = std::make_shared<Shared>();
  try {
    std::thread([shared, reader = reader_] { shared->run(reader); }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  shared_ = std::move(shared);
  return true;
}

FileHeads::Bytes FileHeads::head_of(std::vector<ForeignPath> paths, const std::string& place) {
  return ask(std::move(paths), place).value_or(std::nullopt);
}

bool FileHeads::answers(std::vector<ForeignPath> paths, const std::string& place) {
  return ask(std::move(paths), place).has_value();
}

// Nothing: it does not answer.
std::optional<FileHeads::Bytes> FileHeads::ask(std::vector<ForeignPath> paths, const std::string& place) {
  using Clock = std::chrono::steady_clock;
  if (const auto known = hanging_.find(place);
      known != hanging_.end() && known->second.files >= kMostHanging) {
    const auto rest = kShortestRest * (1 << std::min(known->second.files, kLongestRest));
    if (Clock::now() - known->second.since < rest) return std::nullopt;
  }
  if (!shared_ && !start()) return first_of(paths, reader_);
  std::unique_lock lock(shared_->mutex);
  shared_->paths = std::move(paths);
  shared_->changed.notify_all();
  if (shared_->changed.wait_for(lock, patience_, [this] { return shared_->found.has_value(); })) {
    if (!hanging_.empty()) hanging_.erase(place);
    return *std::exchange(shared_->found, std::nullopt);
  }
  shared_->is_over = true;
  lock.unlock();
  shared_.reset();  // the next file has a thread of its own
  Hanging& hanging = hanging_[place];
  ++hanging.files;
  hanging.since = Clock::now();
  return std::nullopt;
}

}  // namespace tacho::record
