#include "record/options/repeat_options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/option_rows.h"
#include "record/events/target.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

constexpr std::uint64_t kMostCaptures = 1'000;
constexpr std::string_view kBlanks = " \t\n";

// "./new.sh 5": "new".
std::string folder_name(std::string_view command) {
  std::string_view name = command.substr(0, command.find_first_of(kBlanks));
  name.remove_prefix(std::min(name.rfind('/') + 1, name.size()));
  const auto dot = name.rfind('.');
  return std::string(dot == 0 ? name : name.substr(0, dot));
}

// Gives each command a folder of its own: a name that is empty, hidden or used twice gets its number in
// front, "2-run".
void make_names_distinct(std::vector<RepeatedCommand>& commands) {
  std::vector<std::string> names;
  for (const RepeatedCommand& one : commands) names.push_back(one.name);
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (names[i].empty() || names[i].starts_with('.') || std::ranges::count(names, names[i]) > 1)
      commands[i].name = std::to_string(i + 1) + "-" + names[i];
}

}  // namespace

void add_repeat_options(RepeatOptions& repeat, std::vector<cli::Option>& rows) {
  using cli::Takes;
  std::vector<cli::Option> own{
      cli::number("--repeat", "N",
                  "Make N captures of COMMAND, one after another, in a folder (-o; default: captures): "
                  "001.data and so on, as tacho diff takes them. A run that fails is named, and its capture "
                  "is kept as 001.failed",
                  1, kMostCaptures, repeat.captures),
      cli::flag("--interleave",
                "With --repeat: each word of COMMAND is a command of its own ('./new.sh 5'), for a shell if "
                "it has blanks. They run in turns, in a folder for each, so that both see the same machine",
                repeat.interleaves),
      cli::number("--warm-up", "N",
                  "With --repeat: run each command N times before, recorded but not kept (default: 0)", 0,
                  kMostCaptures, repeat.warm_ups),
      {"--pin", Takes::Value, "CPUS", "Run COMMAND on these CPUs only (0-3,6)",
       [&repeat](std::string_view text) { return store(repeat.cpus, parse_cpu_list(text)); }},
  };
  std::ranges::move(own, std::back_inserter(rows));
}

bool is_about_series(std::string_view names) {
  return names == "--repeat" || names == "--interleave" || names == "--warm-up";
}

Result<> check_repeat_options(const RepeatOptions& repeat, bool has_command) {
  if (!repeat.is_on() && repeat.interleaves) return use_error("--interleave needs --repeat N");
  if (!repeat.is_on() && repeat.warm_ups > 0) return use_error("--warm-up needs --repeat N");
  if (repeat.is_on() && !has_command) return use_error("--repeat needs a COMMAND");
  if (!repeat.cpus.empty() && !has_command) return use_error("--pin needs a COMMAND");
  return Done{};
}

std::vector<RepeatedCommand> repeated_commands(const RepeatOptions& repeat, std::vector<std::string> words) {
  if (!repeat.interleaves) return {{"", std::move(words)}};
  std::vector<RepeatedCommand> commands;
  for (std::string& word : words) {
    const bool has_blanks = word.find_first_of(kBlanks) != std::string::npos;
    std::string name = folder_name(word);
    if (has_blanks)
      commands.push_back({std::move(name), {"/bin/sh", "-c", "exec " + word}});
    else
      commands.push_back({std::move(name), {std::move(word)}});
  }
  make_names_distinct(commands);
  return commands;
}

}  // namespace tacho::record
