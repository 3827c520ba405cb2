// Ring buffers and summaries of BPF objects know less than the kernel's own events: which options they cannot
// follow.
#pragma once

#include <string>

#include "bpf/channel.h"
#include "format/result.h"
#include "record/options.h"

namespace tacho::record {

// A use error when that map cannot do what `options` ask for. `object`: its path, or the name of a recorder
// that tacho carries.
Result<> check_channel(const std::string& object, const std::string& map, bpf::ChannelKind kind,
                       const RecordOptions& options);

}  // namespace tacho::record
