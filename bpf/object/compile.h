// Compiles a user's BPF program with clang, against embedded headers and a vmlinux.h that is made once and
// cached.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bpf/support/libbpf_log.h"
#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::bpf {

// A private folder (mode 0700) under an unpredictable name; removed with all its files when destroyed.
class PrivateFolder {
 public:
  // In `parent`, or in $TMPDIR, or in /tmp. Where other users may replace its contents, another folder is
  // taken than $TMPDIR; anywhere else it is an error.
  static Result<PrivateFolder> create(const std::string& parent = "");
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PrivateFolder& operator=(PrivateFolder&& other) noexcept;
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }
  // Gives the folder its final name, atomically; false when that exists already, or it failed.
  bool become(const std::string& path);

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The folders with the headers that BPF programs are compiled against: the embedded ones, and vmlinux.h of
// the running kernel. Made once and kept in $XDG_CACHE_HOME/tacho or ~/.cache/tacho; where that is not
// possible or another user can write there, in a private folder for this run.

class HeaderCache {
 public:
  static Result<HeaderCache> open(const Log& log);
  // To be given to the compiler with -I. Valid while this lives.
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  std::vector<std::string> folders_;
  std::optional<PrivateFolder> temporary_;
};

// "vmlinux.h": every type of a kernel as C, from its BTF.

// `btf` as in /sys/kernel/btf/vmlinux.
Result<std::string> vmlinux_header(format::Bytes btf);

// C source of a BPF program -> the bytes of an object, with the host's clang and the headers tacho ships.

using Stop = std::function<bool()>;  // whether to end now

// The compiler's messages go to standard error. The error says what to install where clang is missing.
// Polled many times a second, `stop` may end the compiler: the error's code is EINTR then.
Result<std::vector<std::byte>> compile(const std::string& source, const Log& log, const Stop& stop = {});

// $TACHO_CLANG, or "clang", or the newest "clang-N" on the PATH.
Result<std::string> find_clang();

}  // namespace tacho::bpf
