// Access to files of modules: decides which may be read, and records which one is being read. If a sandboxed
// process dies, its supervisor (sandbox/process.h) can name the file, and the next process gets no access to
// it.
#pragma once

#include <string>
#include <string_view>

namespace tacho::symbolize {

class FileAccess {
 public:
  FileAccess() = default;
  FileAccess(const FileAccess&) = delete;
  FileAccess& operator=(const FileAccess&) = delete;
  virtual ~FileAccess() = default;

  // The file that is read from now on; empty: none.
  virtual void set_current(std::string_view path) = 0;
  // Why the file must not be read; empty: it may be.
  virtual std::string refusal(std::string_view path) const = 0;
};

// Records a file as being read, for the lifetime of this object. `access` may be null.
class ScopedRead {
 public:
  ScopedRead(FileAccess* access, std::string_view path) : access_(access), path_(path) {
    if (access_ != nullptr) access_->set_current(path_);
  }
  ScopedRead(const ScopedRead&) = delete;
  ScopedRead& operator=(const ScopedRead&) = delete;
  ~ScopedRead() {
    if (access_ != nullptr) access_->set_current({});
  }
  bool is_refused() const { return access_ != nullptr && !access_->refusal(path_).empty(); }

 private:
  FileAccess* access_;
  std::string_view path_;
};

}  // namespace tacho::symbolize
