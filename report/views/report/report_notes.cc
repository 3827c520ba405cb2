// What a report says beside its text: why it failed, and what was decided without being asked for; and the
// groups of events that its titles name.
#include <fmt/format.h>

#include <algorithm>

#include "report/profile/event_blocks.h"
#include "report/views/report/report_sink.h"

namespace tacho::report {

const format::EventGroup* ReportSink::group_of(std::size_t leader) const {
  const auto found = std::ranges::lower_bound(groups_, leader, {}, &format::EventGroup::leader);
  return found == groups_.end() || found->leader != leader ? nullptr : &*found;
}

std::optional<Error> ReportSink::failure() const {
  if (failure_ || !weight_ || weight_->unreadable() == 0) return failure_;
  return use_error("--weight: " + std::to_string(weight_->unreadable()) + " samples have no number named '" +
                   options_->weight + "'; tacho header lists the fields of payloads");
}

std::vector<std::string> ReportSink::notes() const {
  std::vector<std::string> lines;
  if (waits_) {
    lines.emplace_back("tacho report: rows are waits, weighed by nanoseconds");
    for (const std::string& note : waits_->notes()) lines.push_back("tacho report: " + note);
  }
  const std::string chosen = weight_ && !waits_ ? weight_->chosen_by_role() : std::string();
  if (!chosen.empty()) {
    lines.push_back("tacho report: rows are weighed by " + printable(chosen) +
                    ", as the event says (role:weight); --weight period or samples weighs them otherwise");
  }
  if (profile_ && profile_->left_out() > 0)
    lines.push_back(
        fmt::format("tacho report: {} samples are of events that the pipe described too late; left out",
                    profile_->left_out()));
  if (const auto split = split_group(groups_)) lines.push_back("tacho report: " + *split);
  return lines;
}

}  // namespace tacho::report
