#include "report/redaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "report/samples/filter.h"

namespace tacho::report {
namespace {

struct WayRow {
  How usual;
  bool can_drop, can_hash;
};

// The default of each class, and whether it can be dropped and hashed, in the order of enum Content.
constexpr WayRow kWays[] = {
    {How::Drop, true, true},    // cmdline
    {How::Drop, true, true},    // host
    {How::Last, false, true},   // paths: they distinguish modules
    {How::Hash, true, true},    // comm
    {How::Hash, true, true},    // containers
    {How::Hash, true, true},    // payload
    {How::Drop, true, false},   // stacks
    {How::Drop, true, false},   // registers
    {How::Drop, true, false},   // addresses
    {How::Move, false, false},  // kernel
    {How::Drop, true, false},   // time
    {How::Drop, true, false},   // traces
};
static_assert(std::size(kWays) == format::kContentCount);

std::string known_classes() {
  std::string known;
  for (const format::ContentRow& row : format::kContents) known += std::string(row.name) + ", ";
  return known + "all";
}

}  // namespace

std::string_view state_of(How how) {
  // In the order of enum How.
  constexpr std::string_view kStates[] = {format::kAsRecorded, "dropped", "hashed", "last part", "moved"};
  return kStates[static_cast<std::size_t>(how)];
}

Redaction::Redaction() { std::ranges::transform(kWays, how_.begin(), &WayRow::usual); }

PathRule Redaction::path_rule() const {
  if (hides(Content::Paths)) return how_of(Content::Paths) == How::Last ? PathRule::Last : PathRule::Hash;
  return hides(Content::Host) ? PathRule::Users : PathRule::Keep;
}

Result<> Redaction::set(std::string_view option, std::string_view classes, How how, bool is_usual) {
  const std::vector<std::string> names = parse_name_list(classes);
  if (names.empty()) return use_error(std::string(option) + ": name classes, or all");
  const auto can = [&](const WayRow& way) {
    return (how != How::Drop || way.can_drop) && (how != How::Hash || way.can_hash);
  };
  for (const std::string& name : names) {
    if (name == "all") {
      for (std::size_t i = 0; i < how_.size(); ++i)
        if (is_usual || can(kWays[i])) how_[i] = is_usual ? kWays[i].usual : how;
      continue;
    }
    const auto content = format::find_content(name);
    if (!content)
      return use_error(
          fmt::format("{}: there is no class '{}'; there are {}", option, name, known_classes()));
    const auto number = static_cast<std::size_t>(*content);
    if (!is_usual && !can(kWays[number]))
      return use_error(fmt::format("{}: {} cannot be {}; --hide {} makes it {}", option, name, state_of(how),
                                   name, state_of(kWays[number].usual)));
    how_[number] = is_usual ? kWays[number].usual : how;
  }
  return Done{};
}

Result<> Redaction::keep(std::string_view classes) { return set("--keep", classes, How::Keep, false); }
Result<> Redaction::hide(std::string_view classes) { return set("--hide", classes, How::Keep, true); }
Result<> Redaction::drop(std::string_view classes) { return set("--drop", classes, How::Drop, false); }
Result<> Redaction::hash(std::string_view classes) { return set("--hash", classes, How::Hash, false); }

std::string Redaction::table() {
  std::string table;
  for (const format::ContentRow& row : format::kContents) {
    const WayRow& way = kWays[static_cast<std::size_t>(row.content)];
    std::string_view other;
    if (way.usual != How::Hash && way.can_hash) other = " (or hashed)";
    if (way.usual != How::Drop && way.can_drop) other = " (or dropped)";
    table += fmt::format("  {:<11} {:<22} {}\n", row.name,
                         std::string(state_of(way.usual)) + std::string(other), row.what);
  }
  return table;
}

}  // namespace tacho::report
