// The folders with the headers that BPF programs are compiled against: those tacho ships, and vmlinux.h of
// the running kernel. Made once and kept in $XDG_CACHE_HOME/tacho or ~/.cache/tacho; where that is not
// possible or not ours alone, in a private folder for this one run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bpf/log.h"
#include "bpf/private_folder.h"
#include "format/result.h"

namespace tacho::bpf {

class HeaderCache {
 public:
  static Result<HeaderCache> open(const Log& log);
  // To be given to the compiler with -I. Valid while this lives.
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  std::vector<std::string> folders_;
  std::optional<PrivateFolder> temporary_;
};

}  // namespace tacho::bpf
