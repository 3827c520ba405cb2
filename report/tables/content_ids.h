// Ids of captures, stacks and frames that depend on their content alone: files of many hosts can be united
// without coordination, and loading a capture twice adds nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "format/base/result.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// XXH3 of 128 bits. 64 bits would collide at 2^32 stacks.
struct ContentId {
  std::uint64_t high = 0, low = 0;
  bool operator==(const ContentId&) const = default;
  std::string hex() const;  // 32 digits
};

// Of all bytes of a capture: a file, or the files of the directory of perf record --threads.
Result<ContentId> id_of_capture(const std::string& path);

// Of a part of it: the words that chose it, option by option.
ContentId id_of_part(const ContentId& capture, const std::string& choice);

// The code of a frame. Of a return address it is the byte before, in the call.
struct FramePlace {
  const symbolize::Module* module = nullptr;  // null: nothing was mapped there
  std::uint64_t offset = 0;                   // in the module's file; else the address
  std::uint32_t pid = 0;                      // of the process, if its memory has the code
  bool is_of_capture = false;                 // in another capture, the same place has other code
};
FramePlace place_of(const Location& location);

// Over build id and file offset; without a build id over path and address. Never over names: symbols that
// come later name all captures.
std::uint64_t id_of_frame(const FramePlace& place, const ContentId& capture);
// Over the ids of its frames, leaf first.
ContentId id_of_stack(std::span<const std::uint64_t> frames);

}  // namespace tacho::report
