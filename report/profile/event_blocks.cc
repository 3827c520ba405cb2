#include "report/profile/event_blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacho::report {

std::vector<format::EventGroup> groups_of(const Session& session, Grouping grouping) {
  std::vector<format::EventGroup> groups;
  for (const format::EventGroup& group : session.features().environment.groups) {
    if (group.members > 1) groups.push_back(group);
  }
  const std::size_t events = session.events().size();
  if (groups.empty() && grouping == Grouping::Always && events > 1)
    groups.push_back({.name = {}, .leader = 0, .members = static_cast<std::uint32_t>(events)});
  std::ranges::stable_sort(groups, {}, &format::EventGroup::leader);
  return groups;
}

std::vector<EventBlock> blocks_of(std::size_t events, std::span<const format::EventGroup> groups) {
  std::vector<EventBlock> blocks;
  std::size_t next = 0;
  const auto add_alone = [&](std::size_t end) {
    for (; next < end; ++next) blocks.push_back({static_cast<std::uint32_t>(next), 1});
  };
  for (const auto& group : groups) {
    const std::uint64_t end = std::uint64_t{group.leader} + group.members;
    if (group.members > kMostMembers || end > events || group.leader < next) continue;
    add_alone(group.leader);
    blocks.push_back({group.leader, group.members});
    next = static_cast<std::size_t>(end);
  }
  add_alone(events);
  return blocks;
}

std::optional<std::string> split_group(std::span<const format::EventGroup> groups) {
  const auto large =
      std::ranges::find_if(groups, [](const auto& group) { return group.members > kMostMembers; });
  if (large == groups.end()) return std::nullopt;
  return fmt::format(
      "a group of {} events is shown event by event, as more than {} are not printed in columns",
      large->members, kMostMembers);
}

}  // namespace tacho::report
