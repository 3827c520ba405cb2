// Reads a file on a background thread: the kernel takes some 50 ms to print /proc/kallsyms.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "format/base/result.h"

namespace tacho::symbolize {

class FileAhead {
 public:
  using Content = std::vector<std::byte>;

  // Begins to read; at most `limit` bytes. Where the system gives no thread, next() reads.
  FileAhead(std::string path, std::uint64_t limit);
  FileAhead(const FileAhead&) = delete;
  FileAhead& operator=(const FileAhead&) = delete;

  // The next piece of the content, as soon as it is there; an empty one at the end and from then on. After an
  // error there is no more.
  Result<Content> next();

 private:
  void read(const std::stop_token& stop);
  void put(Content piece);
  void end(Result<> how);

  std::string path_;
  std::uint64_t limit_;
  std::mutex mutex_;  // guards the next three
  std::condition_variable changed_;
  std::deque<Content> pieces_;
  Result<> how_ = Done{};  // it ended
  bool has_ended_ = false;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace tacho::symbolize
