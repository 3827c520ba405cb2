#include "cli/options.h"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <optional>

#include "cli/nearest.h"
#include "format/base/parse_text.h"

namespace tacho::cli {
namespace {

// The spellings of one row: "-o,--output" -> "-o", "--output".
std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> out;
  for (std::string_view rest = option.names; !rest.empty();) out.emplace_back(format::take_until(rest, ','));
  return out;
}

struct Occurrence {
  const Option* row;
  std::string value;
};

struct Occurrences {
  std::vector<Occurrence> list;    // in the order of the command line
  std::vector<std::string> words;  // arguments that are neither options nor their values
  bool help = false;
};

Error unknown_option(const CommandLine& line, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known{"--help"};
  for (const Option& option : line.options)
    for (std::string& spelling : spellings(option)) known.push_back(std::move(spelling));
  const std::string guess = suggestion(name, known);
  return use_error("unknown option '" + name + "'" +
                   (guess.empty() ? "; see " + line.program + " --help" : guess));
}

// The rows as arguments of getopt_long(). Codes: kFirstRow plus the number of the row, or kHelp.
class GetoptRows {
 public:
  static constexpr int kHelp = 256, kFirstRow = 257;  // above every character

  explicit GetoptRows(const CommandLine& line) : line_(&line) {
    // '+' stops at the first word, '-' returns words as options with the code 1; neither reorders words. With
    // ':' getopt distinguishes a missing value from an unknown option.
    letters_ = line.stop_at_first_word ? "+:" : "-:";
    for (std::size_t row = 0; row < line.options.size(); ++row) {
      const Takes takes = line.options[row].takes;
      const int has_value = takes == Takes::Nothing ? no_argument
                            : takes == Takes::Value ? required_argument
                                                    : optional_argument;
      for (const std::string& name : spellings(line.options[row]))
        add(name, kFirstRow + static_cast<int>(row), has_value);
    }
    add("--help", kHelp, no_argument);
    if (letter_rows_['h'] == 0) add("-h", kHelp, no_argument);
    for (std::size_t at = 0; at < names_.size(); ++at)
      long_[at].name = names_[at].c_str();  // names do not move any more
    long_.push_back({});
  }

  const char* letters() const { return letters_.c_str(); }
  const option* long_options() const { return long_.data(); }
  std::string_view name(int index) const { return names_[static_cast<std::size_t>(index)]; }
  // The code of an option, for a letter or a code of getopt_long(); 0 when there is no such option.
  int code(int got) const { return got > 0 && got < 256 ? letter_rows_[static_cast<std::size_t>(got)] : got; }
  const Option& row(int code) const { return line_->options[static_cast<std::size_t>(code - kFirstRow)]; }

 private:
  void add(std::string_view name, int code, int has_value) {
    if (name.starts_with("--")) {
      long_.push_back({nullptr, has_value, nullptr, code});
      names_.emplace_back(name.substr(2));
      return;
    }
    letter_rows_[static_cast<unsigned char>(name[1])] = code;
    letters_ += name[1];
    letters_.append(static_cast<std::size_t>(has_value), ':');  // required_argument is 1, optional_argument 2
  }

  const CommandLine* line_;
  std::string letters_;
  std::vector<std::string> names_;  // of long_
  std::vector<option> long_;
  std::array<int, 256> letter_rows_{};
};

Result<Occurrences> match(const CommandLine& line, std::vector<std::string> arguments) {
  const GetoptRows rows(line);
  arguments.insert(arguments.begin(), line.program);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  const int count = static_cast<int>(words.size());
  words.push_back(nullptr);

  Occurrences out;
  std::optional<Error> fault;  // the first one; --help anywhere takes precedence
  opterr = 0;                  // errors are values here
  optind = 0;                  // glibc: start over
  while (!out.help) {
    const std::string word = std::max(optind, 1) < count ? arguments[std::max(optind, 1)] : std::string();
    int index = -1;
    const int got = getopt_long(count, words.data(), rows.letters(), rows.long_options(), &index);
    if (got == -1) break;
    if (got == 1) {
      out.words.emplace_back(optarg);
      continue;
    }
    const int code = rows.code(got == '?' || got == ':' ? optopt : got);
    // getopt_long() accepts an unambiguous prefix of a long name.
    const bool is_cut = index >= 0 && word.substr(2, word.find('=') - 2) != rows.name(index);
    if (got == '?' && code >= GetoptRows::kFirstRow) {
      if (!fault)
        fault = use_error("option '" + rows.row(code).names + "' takes no value, not '" +
                          word.substr(std::min(word.find('='), word.size() - 1) + 1) + "'");
    } else if (got == '?' || is_cut) {
      const bool is_long = word.starts_with("--");
      if (!fault) fault = unknown_option(line, is_long ? word : std::string{'-', static_cast<char>(optopt)});
    } else if (got == ':') {
      if (!fault)
        fault = use_error("option '" + word + "' needs a value: " + word + " " + rows.row(code).value);
    } else if (code == GetoptRows::kHelp) {
      out.help = true;
    } else {
      const Option& row = rows.row(code);
      const char* value = optarg;
      const bool takes_next = row.takes == Takes::LastArg && value == nullptr && optind < count;
      if (takes_next && !arguments[optind].starts_with('-')) value = words[optind++];
      out.list.push_back({&row, value == nullptr ? std::string() : value});
    }
  }
  if (out.help) return out;
  if (fault) return *std::move(fault);
  for (int at = optind; at < count; ++at) out.words.emplace_back(words[at]);
  return out;
}

}  // namespace

Result<> write_stdout(std::string_view text) {
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (is_written || errno == EPIPE) return Done{};
  return output_system_error("standard output cannot be written", errno);
}

Result<Parsed> parse(const CommandLine& line, const std::vector<std::string>& arguments) {
  auto occurrences = match(line, arguments);
  if (!occurrences) return std::move(occurrences.error());
  if (occurrences->help) {
    if (auto written = write_stdout(help_text(line)); !written) return std::move(written.error());
    return Parsed::HelpShown;
  }
  for (const auto& [row, value] : occurrences->list)
    if (auto set = row->set(value); !set) return std::move(set.error());
  auto& words = occurrences->words;
  if (words.empty()) return Parsed::Run;
  if (!line.words)
    return use_error("unexpected word '" + words.front() + "'; see " + line.program + " --help");
  if (auto taken = line.words(std::move(words)); !taken) return std::move(taken.error());
  return Parsed::Run;
}

Result<std::uint64_t> parse_number(std::string_view option, std::string_view text, std::uint64_t least,
                                   std::uint64_t most) {
  const std::string name(option), seen(text);
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || fault == std::errc::invalid_argument)
    return use_error(name + ": '" + seen + "' is not a number");
  if (fault == std::errc::result_out_of_range || number < least || number > most)
    return use_error(name + ": " + seen + " is not between " + std::to_string(least) + " and " +
                     std::to_string(most));
  return number;
}

}  // namespace tacho::cli
