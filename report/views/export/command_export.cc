// tacho export: a capture in a format of another tool.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/completion.h"
#include "cli/nearest.h"
#include "report/commands.h"
#include "report/views/export/export_formats.h"
#include "report/views/export/export_view.h"

namespace tacho::report {
namespace {

constexpr std::string_view kToOption = "--to";

// Takes --to FORMAT out of the arguments: the format decides which options there are. The last one counts.
std::optional<std::string> take_format(std::vector<std::string>& arguments) {
  std::optional<std::string> format;
  for (auto word = arguments.begin(); word != arguments.end() && *word != "--";) {
    if (word->starts_with("--to=")) {
      format = word->substr(kToOption.size() + 1);
      word = arguments.erase(word);
    } else if (*word == kToOption && std::next(word) != arguments.end()) {
      format = *std::next(word);
      word = arguments.erase(word, std::next(word, 2));
    } else {
      ++word;
    }
  }
  return format;
}

std::string format_names() {
  std::string names;
  for (const ExportFormat& format : export_formats()) {
    names += names.empty() ? "" : ", ";
    names += format.name;
  }
  return names;
}

Error no_such_format(const std::string& name) {
  std::vector<std::string> names;
  for (const ExportFormat& format : export_formats()) names.emplace_back(format.name);
  return use_error("--to: '" + printable(name) + "' is no format that tacho export writes; there are " +
                   format_names() + cli::suggestion(name, names));
}

// Completes --to and its value, if the last word is one of them or no format is named yet. True: it did.
bool completes_format(const std::vector<std::string>& arguments) {
  std::vector<std::string> before(arguments.begin(), arguments.end() - 1);
  const std::string& word = arguments.back();
  cli::ValuePlace place{.text = word};
  if (word.starts_with("--to=")) {
    place.prefix = "--to=";
    place.text = word.substr(place.prefix.size());
  } else if (before.back() != kToOption) {
    if (take_format(before)) return false;
    cli::print_candidates(place,
                          std::vector<cli::Candidate>{{std::string(kToOption), "the format to write"}});
    if (!word.starts_with('-')) cli::print_files(place, cli::Offer::Files);
    return true;
  }
  std::vector<cli::Candidate> formats;
  for (const ExportFormat& format : export_formats())
    formats.push_back({std::string(format.name), std::string(format.help)});
  cli::print_candidates(place, formats);
  return true;
}

}  // namespace

Result<cli::ExitStatus> run_export(const std::vector<std::string>& given) {
  std::vector<std::string> arguments = given;
  if (cli::asks_for_completion(given) && completes_format(given)) return cli::kWhole;
  const std::optional<std::string> name = take_format(arguments);
  const bool asks_for_help =
      std::ranges::count(arguments, "--help") + std::ranges::count(arguments, "-h") > 0;
  if (!name && asks_for_help) return show_export_help();
  if (!name) return use_error("--to: name the format to write; there are " + format_names());
  const auto format = std::ranges::find(export_formats(), *name, &ExportFormat::name);
  return format == export_formats().end() ? no_such_format(*name) : format->run(arguments);
}

}  // namespace tacho::report
