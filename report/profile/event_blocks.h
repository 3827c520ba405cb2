// Events whose rows are shown together: groups, and events alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/container/environment.h"
#include "report/samples/session.h"

namespace tacho::report {

// The events that share rows: the `members` events of a group from event `leader` on, or a single event.
struct EventBlock {
  std::uint32_t leader = 0, members = 1;
};

// Which events are side by side, in columns of a report or of annotated code.
enum class Grouping : std::uint8_t {
  AsRecorded,  // the events of each group
  Always,      // all events, if the capture has no groups
  Never,
};

// The maximum of members in columns: each row has a number for each member, and the header of a capture could
// name any number of members.
inline constexpr std::uint64_t kMostMembers = 64;

// Groups of more than one event, by leader. A group of all events, only if the capture has no groups, has no
// name.
std::vector<format::EventGroup> groups_of(const Session& session, Grouping grouping);
// A block for each group with few enough members, and one for each other event. `events`: their number.
std::vector<EventBlock> blocks_of(std::size_t events, std::span<const format::EventGroup> groups);

// A note about the first group with too many members; nullopt: there is none.
std::optional<std::string> split_group(std::span<const format::EventGroup> groups);

}  // namespace tacho::report
