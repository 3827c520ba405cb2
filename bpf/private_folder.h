// A folder that only we can read, under a name nobody could guess; removed with all it holds when destroyed.
#pragma once

#include <string>
#include <utility>

#include "format/result.h"

namespace tacho::bpf {

class PrivateFolder {
 public:
  // In `parent`, or where $TMPDIR points, or in /tmp. Where others may replace what is in it, another folder
  // is taken than $TMPDIR; anywhere else it is an error.
  static Result<PrivateFolder> create(const std::string& parent = "");
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PrivateFolder& operator=(PrivateFolder&& other) noexcept;
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }
  // Gives the folder its final name, at once; false when something stands there already, or it failed.
  bool become(const std::string& path);

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace tacho::bpf
