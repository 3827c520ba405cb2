// The gate between a reader of files and the supervisor of its process: a file that a process died of is
// known to the next one.
#pragma once

#include <string>
#include <string_view>

namespace tacho::symbolize {

class FileGate {
 public:
  FileGate() = default;
  FileGate(const FileGate&) = delete;
  FileGate& operator=(const FileGate&) = delete;
  virtual ~FileGate() = default;

  // From here on it is this module's file that is read; empty: none.
  virtual void at(std::string_view path) = 0;
  // Why a module's file is not to be read; empty: it is.
  virtual std::string lack(std::string_view path) const = 0;
};

// Marks a file as being read, at a gate that may be null, for the lifetime of this object.
class AtFile {
 public:
  AtFile(FileGate* gate, std::string_view path) : gate_(gate), path_(path) {
    if (gate_ != nullptr) gate_->at(path_);
  }
  AtFile(const AtFile&) = delete;
  AtFile& operator=(const AtFile&) = delete;
  ~AtFile() {
    if (gate_ != nullptr) gate_->at({});
  }
  bool is_refused() const { return gate_ != nullptr && !gate_->lack(path_).empty(); }

 private:
  FileGate* gate_;
  std::string_view path_;
};

}  // namespace tacho::symbolize
