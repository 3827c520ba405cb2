// What programs of an object say in ways that no capture hears.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bpf/object.h"

namespace tacho::bpf {

enum class IteratorsAre : std::uint8_t { Run, Idle };  // by the recorder, before it reads summaries

// A line for each kind, for a warning.
std::vector<std::string> unheard_programs(const Object& object, IteratorsAre iterators);

}  // namespace tacho::bpf
