// The memory of a kernel as an ELF core file: /proc/kcore, or the copy of it that perf record --kcore makes.
// It has the instructions as the kernel ran them, patched since it was built.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/elf.h"
#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

class KernelCore {
 public:
  // `file` must outlive it. An error: it is no core file of 64 bits in this machine's byte order.
  static Result<KernelCore> open(int file);

  // Facts from the note VMCOREINFO; perf's copies have no such note.
  const format::BuildId& build_id() const { return build_id_; }                      // empty: unknown
  const std::optional<std::uint64_t>& start_of_text() const { return text_start_; }  // of _stext
  // Memory from `address` on, at most `size` bytes; empty: the file has none there. Valid as long as this.
  format::Bytes read_memory(std::uint64_t address, std::size_t size);

 private:
  explicit KernelCore(int file) : file_(file) {}
  void read_notes(format::Cursor notes);

  int file_;
  std::vector<format::ElfSegment> segments_;
  format::BuildId build_id_;
  std::optional<std::uint64_t> text_start_;
  std::deque<std::vector<std::byte>> read_;
};

}  // namespace tacho::symbolize
