#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>

#include "cli/nearest.h"

namespace tacho::cli {
namespace {

// The spellings of one row: "-o,--output" -> "-o", "--output".
std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= option.names.size();) {
    const std::size_t end = std::min(option.names.find(',', at), option.names.size());
    out.push_back(option.names.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

using Rows = std::map<std::string, const Option*, std::less<>>;  // by spelling

Rows rows_of(const std::vector<Option>& options) {
  Rows rows;
  for (const Option& option : options) {
    for (const std::string& name : spellings(option)) rows.emplace(name, &option);
  }
  return rows;
}

const Option* find_row(const Rows& rows, std::string_view name) {
  const auto row = rows.find(name);
  return row == rows.end() ? nullptr : row->second;
}

// What stands on the command line, told apart by the rows. CLI11 gets only `options`: it would take a word
// after -z for its value, and an option of the command to run for ours.
struct Split {
  std::vector<std::string> options;
  std::vector<std::string> words;
};

// The row whose value may stand in the next word, when `word` brings none itself: "-o", "-go", "--output".
const Option* row_open_at_end(const Rows& rows, const std::string& word) {
  if (word.starts_with("--")) return word.find('=') == std::string::npos ? find_row(rows, word) : nullptr;
  for (std::size_t at = 1; at < word.size(); ++at) {
    const Option* row = find_row(rows, std::string{'-', word[at]});
    if (row == nullptr) return nullptr;  // CLI11 will name it
    if (row->takes != Takes::Nothing) return at + 1 == word.size() ? row : nullptr;
  }
  return nullptr;
}

// "--fields=": an empty value behind '=' reads like none to CLI11; as a word of its own it does not.
bool has_empty_value(const Rows& rows, const std::string& word) {
  if (!word.starts_with("--") || !word.ends_with('=')) return false;
  const Option* row = find_row(rows, std::string_view(word).substr(0, word.size() - 1));
  return row != nullptr && row->takes != Takes::Nothing;
}

Result<Split> split(const CommandLine& line, const std::vector<std::string>& arguments) {
  const Rows rows = rows_of(line.options);
  Split out;
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    const bool end_of_options = *at == "--";
    const bool is_option = !end_of_options && at->size() > 1 && at->front() == '-';
    if (end_of_options || (!is_option && line.stop_at_first_word)) {
      out.words.insert(out.words.end(), at + (end_of_options ? 1 : 0), arguments.end());
      break;
    }
    if (!is_option) {
      out.words.push_back(*at);
      continue;
    }
    const Option* row = row_open_at_end(rows, *at);
    if (has_empty_value(rows, *at)) {
      out.options.push_back(at->substr(0, at->size() - 1));
      out.options.emplace_back();
      continue;
    }
    out.options.push_back(*at);
    if (row == nullptr) continue;
    const bool has_next = at + 1 != arguments.end();
    if (row->takes == Takes::Value && !has_next) {
      return use_error("option '" + *at + "' needs a value: " + *at + " " + row->value);
    }
    const bool takes_next = row->takes == Takes::Value ||
                            (row->takes == Takes::LastArg && has_next && !(at + 1)->starts_with('-'));
    if (takes_next) out.options.push_back(*++at);
  }
  return out;
}

Error unknown_option(const CommandLine& line, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known{"--help"};
  for (const Option& option : line.options) {
    for (std::string& spelling : spellings(option)) known.push_back(std::move(spelling));
  }
  const std::string guess = suggestion(name, known);
  return use_error("unknown option '" + name + "'" +
                   (guess.empty() ? "; see " + line.program + " --help" : guess));
}

constexpr std::string_view kFlagSeen = "true";  // CLI11's value of a flag

struct Occurrence {
  const Option* row;
  std::string value;
};

struct Occurrences {
  std::vector<Occurrence> list;  // in the order of the command line
  bool help = false;
};

// Lets CLI11 match spellings, clusters and attached values; it is the only place that can throw here.
Result<Occurrences> match(const CommandLine& line, std::vector<std::string> words) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<const CLI::Option*, const Option*> rows;
  const auto add = [&app](const std::string& names, Takes takes) {
    const auto keep = [](const CLI::results_t&) { return true; };
    CLI::Option* option = app.add_option(names, keep)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (takes == Takes::Nothing) return option->expected(0);
    return takes == Takes::Value ? option->expected(1) : option->expected(0, 1);
  };
  for (const Option& row : line.options) rows.emplace(add(row.names, row.takes), &row);
  const bool dash_h_is_free = find_row(rows_of(line.options), "-h") == nullptr;
  const CLI::Option* help = add(dash_h_is_free ? "-h,--help" : "--help", Takes::Nothing);

  std::ranges::reverse(words);  // CLI11 takes them from the back
  app.parse(std::move(words));

  Occurrences out;
  out.help = help->count() > 0;
  if (out.help) return out;
  if (!app.remaining().empty()) return unknown_option(line, app.remaining().front());
  std::map<const CLI::Option*, std::size_t> taken;
  for (const CLI::Option* option : app.parse_order()) {
    out.list.push_back({rows.at(option), option->results().at(taken[option]++)});
  }
  return out;
}

Result<> call_rows(const Occurrences& occurrences) {
  for (const auto& [row, value] : occurrences.list) {
    const bool flag = row->takes == Takes::Nothing;
    if (flag && value != kFlagSeen) {
      return use_error("option '" + row->names + "' takes no value, not '" + value + "'");
    }
    if (auto set = row->set(flag ? std::string() : value); !set) return set;
  }
  return Done{};
}

Result<> call_words(const CommandLine& line, std::vector<std::string> words) {
  if (words.empty()) return Done{};
  if (!line.words)
    return use_error("unexpected word '" + words.front() + "'; see " + line.program + " --help");
  return line.words(std::move(words));
}

Result<Occurrences> match_without_exceptions(const CommandLine& line, std::vector<std::string> words) {
  try {
    return match(line, std::move(words));
  } catch (const CLI::Error& error) {
    return use_error(error.what());
  }
}

}  // namespace

Result<Parsed> parse(const CommandLine& line, const std::vector<std::string>& arguments) {
  auto parts = split(line, arguments);
  if (!parts) return std::move(parts.error());
  auto occurrences = match_without_exceptions(line, std::move(parts->options));
  if (!occurrences) return std::move(occurrences.error());
  if (occurrences->help) {
    const std::string text = help_text(line);
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    // A reader that has seen enough, as `head` has, is no failure.
    if ((!written || std::fflush(stdout) != 0) && errno != EPIPE)
      return output_error("the help text cannot be written to stdout");
    return Parsed::HelpShown;
  }
  if (auto called = call_rows(*occurrences); !called) return std::move(called.error());
  if (auto called = call_words(line, std::move(parts->words)); !called) return std::move(called.error());
  return Parsed::Run;
}

Result<std::uint64_t> parse_number(std::string_view option, std::string_view text, std::uint64_t least,
                                   std::uint64_t most) {
  const std::string name(option), seen(text);
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end != text.data() + text.size() || fault == std::errc::invalid_argument) {
    return use_error(name + ": '" + seen + "' is not a number");
  }
  if (fault == std::errc::result_out_of_range || number < least || number > most) {
    return use_error(name + ": " + seen + " is not between " + std::to_string(least) + " and " +
                     std::to_string(most));
  }
  return number;
}

}  // namespace tacho::cli
