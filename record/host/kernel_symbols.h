// The kernel's list of its symbols (/proc/kallsyms), and what of it a capture begins with.
#pragma once

#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "format/attachment.h"
#include "format/result.h"
#include "record/host/running_kernel.h"

namespace tacho::record {

struct KernelSymbols {
  std::optional<KernelText> text;
  std::vector<BpfImage> images;
  std::optional<format::Attachment> list;  // to travel inside the capture
  std::string lack;                        // why there are no names; empty: there are
};
// As they are now.
Result<KernelSymbols> read_kernel_symbols(std::size_t page_size);

// The same on a thread of its own: the kernel takes as long to write the list as all else takes before the
// first sample.
class KernelSymbolsAhead {
 public:
  explicit KernelSymbolsAhead(std::size_t page_size);
  std::optional<Result<KernelSymbols>> take();  // once, then nothing

 private:
  std::future<Result<KernelSymbols>> read_;
};

}  // namespace tacho::record
