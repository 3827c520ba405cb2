// Whether a file is the one that a module was mapped from, by their build ids.
#pragma once

#include <cstdint>

#include "format/records/build_id.h"

namespace tacho::symbolize {

enum class BuildIdMatch : std::uint8_t {
  Same,
  Other,    // or the file has none, and one was recorded
  Unknown,  // none was recorded, so any file may be it
};

inline BuildIdMatch match_build_ids(const format::BuildId& file, const format::BuildId& recorded) {
  if (recorded.empty()) return BuildIdMatch::Unknown;
  return file == recorded ? BuildIdMatch::Same : BuildIdMatch::Other;
}

}  // namespace tacho::symbolize
