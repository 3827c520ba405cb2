// The instructions of a module, from the file it was loaded from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/container/features.h"
#include "symbolize/files/debug_files.h"
#include "symbolize/frame.h"

namespace tacho::symbolize {

class ModuleCode {
 public:
  // `features`: of the capture, which may have copies of files; null, or to outlive this.
  explicit ModuleCode(DebugFiles files, const format::Features* features = nullptr)
      : files_(std::move(files)), features_(features) {}

  // At most `size` bytes from `offset` of the file on; fewer at its end. Empty for what has no file, or whose
  // file is another build. Valid as long as this object.
  format::Bytes read(const Module& module, std::uint64_t offset, std::size_t size);
  // The same of a kernel's file that the user names, which the symbolizer found to be the recorded one.
  format::Bytes read_vmlinux(const std::string& path, std::uint64_t offset, std::size_t size);
  bool is_64_bit(const Module& module) { return file_of(module).is_64_bit; }

 private:
  struct File {
    std::vector<std::byte> bytes;
    bool is_64_bit = false;
  };
  const File& file_of(const Module& module);

  DebugFiles files_;
  const format::Features* features_;
  std::unordered_map<const Module*, File> by_module_;
  std::deque<std::vector<std::byte>> kernel_code_;
};

}  // namespace tacho::symbolize
