#include "report/views/fleet/fleet_choice.h"

#include <charconv>
#include <ctime>
#include <iterator>
#include <optional>

#include "cli/option_rows.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;  // ns

struct ChoiceRow {
  std::string_view name, value, help;
  std::string FleetChoice::*member;
};
constexpr ChoiceRow kTexts[] = {
    {"service", "NAME", "only captures loaded with this --service", &FleetChoice::service},
    {"release", "NAME", "only captures loaded with this --release", &FleetChoice::release},
    {"host", "NAME", "only captures of this host", &FleetChoice::host},
    {"host-class", "NAME", "only captures loaded with this --host-class", &FleetChoice::host_class},
    {"kernel", "RELEASE", "only captures of this kernel, as uname -r prints it", &FleetChoice::kernel},
    {"cgroup", "PATH", "only samples of this control group, as of a container", &FleetChoice::cgroup},
    {"comm", "NAME", "only samples of threads of this name", &FleetChoice::comm},
    {"event", "NAME", "the event (default: the one with the most samples)", &FleetChoice::event},
};

std::optional<std::int64_t> moment_of(const std::string& text) {
  std::int64_t seconds = 0;
  const auto number = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / kSecond;
  if (number.ec == std::errc() && number.ptr == text.data() + text.size() && seconds >= 0 && seconds < kMost)
    return seconds * kSecond;
  for (const char* const form :
       {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm moment{};
    const char* const end = ::strptime(text.c_str(), form, &moment);
    if (end == nullptr || (*end != '\0' && std::string_view(end) != "Z")) continue;
    const auto of_form = static_cast<std::int64_t>(::timegm(&moment));
    if (of_form < 0 || of_form >= kMost) return std::nullopt;
    return of_form * kSecond;
  }
  return std::nullopt;
}

cli::Option moment_option(std::string_view name, std::string help, std::int64_t& target, std::int64_t minus) {
  return {"--" + std::string(name), cli::Takes::Value, "TIME", std::move(help),
          [name = "--" + std::string(name), &target, minus](std::string_view text) -> Result<> {
            const auto moment = parse_moment(name, text);
            if (!moment) return moment.error();
            target = *moment - minus;
            return Done{};
          }};
}

}  // namespace

Result<std::int64_t> parse_moment(std::string_view option, std::string_view text) {
  const auto moment = moment_of(std::string(text));
  if (moment) return *moment;
  return use_error(std::string(option) + ": '" + std::string(text) +
                   "' is no time; write 2026-11-29T01:30:05Z (UTC), a date, or seconds since 1970");
}

SqlValues FleetChoice::values() const {
  return {{"service", service},
          {"release", release},
          {"host", host},
          {"host_class", host_class},
          {"kernel", kernel},
          {"cgroup", cgroup},
          {"comm", comm},
          {"event", event},
          {"from_ns", std::to_string(from)},
          {"to_ns", std::to_string(to)}};
}

bool FleetChoice::is_of_hours() const {
  const FleetChoice any;
  return (from == any.from || from % kFleetHour == 0) && (to == any.to || (to + 1) % kFleetHour == 0);
}

void add_choice_options(std::vector<cli::Option>& rows, FleetChoice& choice) {
  for (const ChoiceRow& row : kTexts)
    rows.push_back(cli::text("--" + std::string(row.name), std::string(row.value), std::string(row.help),
                             choice.*row.member));
  rows.push_back(moment_option("from",
                               "only samples from then on: 2026-11-29T01:30:05Z (UTC), a date, or seconds "
                               "since 1970",
                               choice.from, 0));
  rows.push_back(
      moment_option("to", "only samples before then. Whole hours are answered faster", choice.to, 1));
}

Result<> change_choice(std::string_view option, std::string_view text, FleetChoice& choice) {
  for (const std::string& word : parse_name_list(text)) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto* const row = std::ranges::find(kTexts, name, &ChoiceRow::name);
    if (equals == std::string::npos || row == std::end(kTexts)) {
      std::string known;
      for (const ChoiceRow& one : kTexts) known += (known.empty() ? "" : ", ") + std::string(one.name);
      return use_error(std::string(option) + ": '" + word + "' is not NAME=VALUE with one of " + known);
    }
    choice.*row->member = word.substr(equals + 1);
  }
  return Done{};
}

Result<FleetEvent> find_event(FleetStore& store, const FleetChoice& choice) {
  std::optional<FleetEvent> found;
  std::string others;
  auto asked = store.ask("events", choice.values(),
                         {.row =
                              [&](std::span<const SqlCell> cells) {
                                const std::string name(cells[0].value_or(""));
                                if (!found && (choice.event.empty() || choice.event == name))
                                  found = FleetEvent{name, std::string(cells[1].value_or(""))};
                                others += (others.empty() ? "" : ", ") + printable(name);
                              },
                          .columns = 2});
  if (!asked) return std::move(asked.error());
  if (found) return *found;
  if (others.empty()) return Error{"the fleet has no samples of that choice"};
  return Error{"the fleet has no samples of the event '" + printable(choice.event) +
               "' in that choice, but of " + others};
}

}  // namespace tacho::report
