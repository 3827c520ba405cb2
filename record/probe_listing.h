// `tacho list uprobe:FILE:GLOB` and the like: places that probes can be put on.
#pragma once

#include <string>
#include <string_view>

#include "format/result.h"
#include "record/listing.h"

namespace tacho::record {

// Whether the pattern begins with the word of a probe, "uprobe:/bin/bash:read*", and not with its form alone.
bool asks_for_probes(std::string_view pattern);

// A line for each function or marker that matches, in the order of names; with `fields` what those are called
// with, as far as debugging information, the kernel's BTF or the marker's note tells. An error when none
// does, with the nearest name.
Result<std::string> list_probes(const ListOptions& options);

}  // namespace tacho::record
