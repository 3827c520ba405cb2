#include "report/views/page/page_head.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>

#include "report/command.h"
#include "report/output/frame_colours.h"
#include "report/output/heat_colours.h"

namespace tacho::report {
namespace {

std::string command_of(const format::Environment& environment) {
  std::string command;
  for (const std::string& word : environment.command_line) command += (command.empty() ? "" : " ") + word;
  return command;
}

}  // namespace

void describe_capture(JsonFields& to, Session& session, PageSamples& samples, const PageNames& names,
                      PageTexts& texts, const std::string& input) {
  const format::Environment& environment = session.features().environment;
  const auto text = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) to.number(name, texts.number_of(value));
  };
  const auto host = [&](const std::optional<std::string>& value) {
    return value ? names.name_of(Content::Host, *value) : std::string();
  };
  text("file", printable(names.path(input)));
  text("host", host(environment.hostname));
  text("kernel", printable(environment.os_release.value_or("")));
  text("arch", printable(environment.arch.value_or("")));
  text("cpu", printable(environment.cpu_description.value_or("")));
  if (environment.cpus_online) to.number("cpus", *environment.cpus_online);
  text("command", names.name_of(Content::CommandLine, command_of(environment)));
  if (environment.clock_data && names.how(Content::Time) == How::Keep)
    to.text("clock", fmt::format("{}", static_cast<std::int64_t>(environment.clock_data->wall_ns -
                                                                 environment.clock_data->clock_ns)));
  samples.describe_samples(to);
  to.number("lost", session.lost_samples());
  to.begin_list("notes");
  for (const std::string& line : findings_text(session.diagnostics(), input)) {
    std::string_view shown = line;  // "tacho: FILE: what"
    const std::string begin = "tacho: " + printable(input) + ": ";
    if (shown.starts_with(begin)) shown.remove_prefix(begin.size());
    to.number("", texts.number_of(names.text_with_paths(shown)));
  }
  to.end_list();
}

void describe_hiding(JsonFields& to, const PageNames& names) {
  to.begin_list("hidden");
  for (const Content content : {Content::CommandLine, Content::Host, Content::Paths, Content::Comm,
                                Content::Containers, Content::Payload}) {
    if (names.how(content) == How::Keep) continue;
    to.text("", fmt::format("{} ({})", format::name_of(content), state_of(names.how(content))));
  }
  if (names.how(Content::Kernel) != How::Keep) to.text("", "addresses in payloads (dropped)");
  to.end_list();
}

void describe_colours(JsonFields& to) {
  to.begin_object("fills");
  for (const FrameFill& fill : frame_fills()) {
    to.begin_list(fill.selector);
    to.text("", fmt::format("#{:06x}", fill.light));
    to.text("", fmt::format("#{:06x}", fill.dark));
    to.end_list();
  }
  to.end_object();
  const HeatColours heats = heat_colours();
  to.begin_list("heats");
  for (std::size_t i = 0; i < heats.light.size(); ++i) {
    to.begin_list("");
    to.text("", fmt::format("#{:06x}", heats.light[i]));
    to.text("", fmt::format("#{:06x}", heats.dark[i]));
    to.end_list();
  }
  to.end_list();
}

}  // namespace tacho::report
