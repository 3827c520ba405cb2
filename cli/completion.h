// Completion of a command line in a shell. The scripts in cli/shells run `tacho complete WORDS...`, which
// asks the command of the first word: by its option table it prints what can stand in place of the last word,
// a line for each candidate: the whole word, and after a tab what it is. A candidate that ends in one of
// kOpenEnds is not the end of a word, so no blank follows it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.h"

namespace tacho::cli {

// The first argument of a command that completes the last one, which may be empty, instead of running.
inline constexpr std::string_view kCompleteOption = "--complete";
// The same characters stand in the scripts.
inline constexpr std::string_view kOpenEnds = "/=:,";

inline bool asks_for_completion(const std::vector<std::string>& arguments) {
  return arguments.size() > 1 && arguments.front() == kCompleteOption;
}

// A value, or a word that is no option.
struct ValuePlace {
  std::string option;  // the names of the option's row: "-e,--event"; empty: a word that is no option
  std::string value;   // the value's name in --help: "EVENT"
  std::string prefix;  // what stands before the text in the same word: "--event=", "sym,"
  std::string text;    // the part that is there already
  std::vector<std::pair<std::string, std::string>> given;  // options before it: names of the row, value
  std::vector<std::string> words;                          // words before it that are no options

  // Whether the option has this spelling.
  bool is_of(std::string_view spelling) const;
};

// Prints what can stand at a place. False: nothing of the command's own, and completion offers files for a
// FILE, a DIR and words.
using CompleteValue = std::function<bool(const ValuePlace&)>;

// parse() of a command that completes: with kCompleteOption it prints candidates and returns HelpShown.
Result<Parsed> parse_or_complete(const CommandLine& line, const std::vector<std::string>& arguments,
                                 const CompleteValue& complete_value);

struct Candidate {
  std::string word;
  std::string help = {};
};

// The lines of the candidates that begin with the place's text. One that could not be typed or printed as it
// is, with a control character or invalid UTF-8, is left out.
std::string candidate_lines(const ValuePlace& place, std::span<const Candidate> candidates);
// Prints them to stdout; nothing is said of a closed pipe.
void print_candidates(const ValuePlace& place, std::span<const Candidate> candidates);

// The place of the last element of a list: of "sym,co" the text "co" after the prefix "sym,".
ValuePlace last_element(ValuePlace place, std::string_view separators = ",");

// The words that a value can be, by one spelling of its option.
struct Choices {
  std::string_view option;
  std::vector<std::string_view> words;
};
// Prints those of the place's option; false: it has none.
bool print_choices(const ValuePlace& place, std::span<const Choices> choices);

// Prints files that continue the text; of folders the names with a slash. A leading "~/" is the home folder.
enum class Offer { Files, Folders };
void print_files(const ValuePlace& place, Offer offer);

}  // namespace tacho::cli
