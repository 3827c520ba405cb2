// Compiles a user's BPF program with clang, with embedded headers and a cached vmlinux.h.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bpf/support/libbpf_log.h"
#include "format/base/result.h"

namespace tacho::bpf {

// A private folder (mode 0700) under an unpredictable name; removed with all its files when destroyed.
class PrivateFolder {
 public:
  // In `parent`, or in $TMPDIR, or in /tmp. A $TMPDIR that other users may change is not used; a `parent`
  // that they may change is an error.
  static Result<PrivateFolder> create(const std::string& parent = "");
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PrivateFolder& operator=(PrivateFolder&& other) noexcept;
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }
  // Renames the folder to its final name, atomically; false if that exists, or on an error.
  bool rename_to(const std::string& path);

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

using Stop = std::function<bool()>;  // true: stop now

// Compiles C source of a BPF program with the host's clang and tacho's headers, and returns the object. The
// compiler's messages go to standard error. If clang is missing, the error says what to install. `stop` is
// called many times a second and can end the compiler: the error's code is EINTR then.
Result<std::vector<std::byte>> compile(const std::string& source, const Log& log, const Stop& stop = {});

// $TACHO_CLANG, or "clang", or the newest "clang-N" on the PATH.
Result<std::string> find_clang();

}  // namespace tacho::bpf
