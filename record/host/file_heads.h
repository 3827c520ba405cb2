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

  // What is given up when a file hangs: of a network or a program (devices without a major number) the whole
  // file system, of a disk the file alone, as it may only be slow. Of device 0:0 nobody told: the mounts of
  // the process in `folder` ("/proc/7") tell then, or else the file's folder is the place.
  static std::string place_of(std::uint32_t major, std::uint32_t minor, const std::string& name,
                              const std::string& folder);

  // A file that takes longer than the patience is given up, and the thread is left behind until it answers.
  // Of a place with two such files none is opened for a while, each time for longer. When 16 threads of the
  // program are left behind, or no thread can be had, no file is opened at all. Of the first of `paths` that
  // is there.
  Bytes head_of(std::vector<ForeignPath> paths, const std::string& place);
  // Whether each of `paths` can be opened and read without waiting for ever; or that it is not there.
  bool answers(std::vector<ForeignPath> paths, const std::string& place);

 private:
  struct Shared;
  enum class Want : std::uint8_t { First, All };  // of the paths
  bool start();
  std::optional<Bytes> ask(std::vector<ForeignPath> paths, Want want, const std::string& place);

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
