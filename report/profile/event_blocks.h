// Which events of a capture stand side by side in a report or in annotated code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/container/environment.h"
#include "report/profile/profile.h"
#include "report/samples/session.h"

namespace tacho::report {

// Which events stand side by side.
enum class Grouping : std::uint8_t {
  AsRecorded,  // those of each group
  Always,      // of a capture without groups, all of them
  Never,
};

// Members of a group that are shown side by side. Each row has a number for every member, so that a few bytes
// in a capture's header could ask for any amount of memory.
inline constexpr std::uint64_t kMostMembers = 64;

// Groups of more than one event, by leader. A group of all events only where the capture has none; it has no
// name.
std::vector<format::EventGroup> groups_of(const Session& session, Grouping grouping);
// The events of a group side by side, unless there are too many, and all others alone. `events`: how many.
std::vector<EventBlock> blocks_of(std::size_t events, std::span<const format::EventGroup> groups);

// What a reader should know of the first group that is too large to stand side by side.
std::optional<std::string> split_group(std::span<const format::EventGroup> groups);

}  // namespace tacho::report
