// The first bytes of files on file systems that may not answer (a network's, a program's own), read on a
// thread of its own: a recorder must not wait for ever for a file that some process has mapped.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/host/foreign_file.h"

namespace tacho::record {

class FileHeads {
 public:
  using Bytes = std::optional<std::vector<std::byte>>;
  // The head of the file at a path; nothing when it is not there or is none to read (find_foreign()).
  using Reader = std::function<Bytes(const ForeignPath& path)>;
  static Bytes read_head(const ForeignPath& path);

  explicit FileHeads(std::chrono::milliseconds patience = std::chrono::seconds(1), Reader reader = read_head)
      : patience_(patience), reader_(std::move(reader)) {}
  FileHeads(const FileHeads&) = delete;
  FileHeads& operator=(const FileHeads&) = delete;
  FileHeads(FileHeads&&) = default;
  ~FileHeads();

  // A file that takes longer than the patience is given up, and the thread is left behind, which goes with
  // the program. Of a place (a device, or else what the caller takes for one) with two such files none is
  // opened for a while, each time for longer. Of the first of `paths` that is there.
  Bytes head_of(std::vector<ForeignPath> paths, const std::string& place);
  // Whether that can be opened and read without waiting for ever; or that it is not there.
  bool answers(std::vector<ForeignPath> paths, const std::string& place);

 private:
  struct Shared;
  static Bytes first_of(const std::vector<ForeignPath>& paths, const Reader& reader);
  bool start();
  std::optional<Bytes> ask(std::vector<ForeignPath> paths, const std::string& place);

  std::chrono::milliseconds patience_;
  Reader reader_;
  struct Hanging {
    int files = 0;
    std::chrono::steady_clock::time_point since;  // the last one
  };
  std::map<std::string, Hanging> hanging_;  // by place
  std::shared_ptr<Shared> shared_;          // with the thread, when there is one
};

}  // namespace tacho::record
