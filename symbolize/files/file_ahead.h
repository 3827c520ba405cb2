// A file that is read on a thread of its own until somebody needs it: the kernel takes long to write its list
// of symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "format/result.h"

namespace tacho::symbolize {

class FileAhead {
 public:
  // Begins to read; at most `limit` bytes. Where the system gives no thread, take() reads.
  FileAhead(std::string path, std::uint64_t limit);
  FileAhead(const FileAhead&) = delete;
  FileAhead& operator=(const FileAhead&) = delete;

  // The content, once.
  Result<std::vector<std::byte>> take();

 private:
  void read(const std::stop_token& stop);

  std::string path_;
  std::uint64_t limit_;
  Result<std::vector<std::byte>> content_ = std::vector<std::byte>();
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace tacho::symbolize
