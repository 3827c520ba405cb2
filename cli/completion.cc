#include "cli/completion.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>

#include "format/base/parse_text.h"
#include "format/base/printable.h"

namespace tacho::cli {
namespace {

// The entries of a folder, without "." and ".."; none when it cannot be read.
std::vector<std::string> entries_of(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  std::vector<std::string> names;
  while (const dirent* entry = open ? ::readdir(open.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

bool is_folder(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Programs of PATH, for the first word of a command to run.
void print_programs(const ValuePlace& place) {
  std::set<std::string> names;
  const std::string path = variable("PATH");
  for (std::string_view rest = path; !rest.empty();) {
    const std::string folder(format::take_until(rest, ':'));
    for (const std::string& name : entries_of(folder)) {
      std::string file = folder;
      file.append("/").append(name);
      if (name.starts_with(place.text) && ::access(file.c_str(), X_OK) == 0) names.insert(name);
    }
  }
  std::vector<Candidate> candidates;
  candidates.reserve(names.size());
  for (const std::string& name : names) candidates.push_back({name});
  print_candidates(place, candidates);
}

// The first sentence of a help text, without what follows a colon, a semicolon or "(".
std::string first_sentence(std::string_view help) {
  const std::size_t end =
      std::min({help.find(". "), help.find("; "), help.find(": "), help.find(" ("), help.find('\n')});
  return std::string(help.substr(0, std::min(end, help.size())));
}

std::vector<std::string> names_of_row(const Option& option) {
  std::vector<std::string> out;
  for (std::string_view rest = option.names; !rest.empty();) out.emplace_back(format::take_until(rest, ','));
  return out;
}

// The words before the last one, read as getopt_long() reads them.
class WordsBefore {
 public:
  WordsBefore(const CommandLine& line, const std::vector<std::string>& words) : line_(&line) {
    for (std::size_t at = 0; at + 1 < words.size(); ++at) take_word(words[at]);
  }

  // The option that the last word is the value of; null: none.
  const Option* open_option() const { return open_; }
  bool has_only_words() const { return has_only_words_; }
  // A place of a value; `option`: null for a word that is no option.
  ValuePlace place(const Option* option, std::string prefix, std::string text) const {
    return {option == nullptr ? "" : option->names,
            option == nullptr ? "" : option->value,
            std::move(prefix),
            std::move(text),
            given_,
            words_};
  }
  const Option* row(std::string_view spelling) const {
    const auto found = std::ranges::find_if(line_->options, [spelling](const Option& option) {
      return std::ranges::count(names_of_row(option), spelling) > 0;
    });
    return found == line_->options.end() ? nullptr : &*found;
  }
  // Of "-gefoo" the letter with a value, "-e", and how long the word is up to it; null: no letter has one.
  std::pair<const Option*, std::size_t> letter_with_value(std::string_view word) const {
    for (std::size_t at = 1; at < word.size(); ++at) {
      const Option* const option = row(std::string{'-', word[at]});
      if (option == nullptr) break;
      if (option->takes != Takes::Nothing) return {option, at + 1};
    }
    return {nullptr, 0};
  }

 private:
  void take_word(const std::string& word) {
    const bool may_be_value = open_ != nullptr && (open_->takes == Takes::Value || !word.starts_with('-'));
    if (may_be_value) {
      given_.emplace_back(open_->names, word);
      open_ = nullptr;
      return;
    }
    open_ = nullptr;
    if (!has_only_words_ && word == "--")
      has_only_words_ = true;
    else if (has_only_words_ || !word.starts_with('-') || word == "-")
      take_plain(word);
    else if (word.starts_with("--"))
      take_long(word);
    else
      take_letters(word);
  }
  void take_plain(const std::string& word) {
    words_.push_back(word);
    has_only_words_ |= line_->stop_at_first_word;
  }
  void take_long(const std::string& word) {
    const std::size_t sign = word.find('=');
    const Option* const option = row(word.substr(0, sign));
    if (option == nullptr) return;
    if (sign != std::string::npos)
      given_.emplace_back(option->names, word.substr(sign + 1));
    else
      await_value(*option);
  }
  void take_letters(const std::string& word) {
    const auto [option, size] = letter_with_value(word);
    if (option == nullptr) return;
    if (size < word.size())
      given_.emplace_back(option->names, word.substr(size));
    else
      await_value(*option);
  }
  void await_value(const Option& option) {
    if (option.takes == Takes::Value || option.takes == Takes::LastArg) open_ = &option;
  }

  const CommandLine* line_;
  const Option* open_ = nullptr;
  bool has_only_words_ = false;
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> words_;
};

// Values whose name says that they are files or folders.
std::optional<Offer> offer_of(std::string_view value) {
  constexpr std::string_view kFiles[] = {"FILE", "FILES", "OUT", "OTHER", "PATH", "PROGRAM"};
  if (std::ranges::count(kFiles, value) > 0) return Offer::Files;
  return value == "DIR" ? std::optional(Offer::Folders) : std::nullopt;
}

void complete_at(const ValuePlace& place, const CompleteValue& complete_value) {
  if (complete_value && complete_value(place)) return;
  if (const auto offer = offer_of(place.value)) print_files(place, *offer);
}

void complete_word(const CommandLine& line, const CompleteValue& complete_value, const WordsBefore& before,
                   const std::string& text) {
  const ValuePlace place = before.place(nullptr, "", text);
  if (complete_value && complete_value(place)) return;
  if (!line.stop_at_first_word && !line.words) return;  // the command takes no words
  const bool is_program =
      line.stop_at_first_word && place.words.empty() && text.find('/') == std::string::npos;
  if (is_program && !text.empty()) print_programs(place);
  print_files(place, Offer::Files);
}

void complete_option(const CommandLine& line, const ValuePlace& place) {
  std::vector<Candidate> candidates;
  for (const Option& option : line.options) {
    if (option.help.empty()) continue;
    for (const std::string& spelling : names_of_row(option))
      candidates.push_back({spelling, first_sentence(option.help)});
  }
  candidates.push_back({"--help", "show the options"});
  print_candidates(place, candidates);
}

// Prints what can stand in place of the last of the words.
void complete(const CommandLine& line, const CompleteValue& complete_value,
              const std::vector<std::string>& words) {
  const WordsBefore before(line, words);
  const std::string text = words.empty() ? "" : words.back();
  const Option* const open = before.open_option();
  if (open != nullptr && (open->takes == Takes::Value || !text.starts_with('-'))) {
    complete_at(before.place(open, "", text), complete_value);
    // The value of perf report's -g may be left out.
    if (open->takes == Takes::LastArg) complete_word(line, complete_value, before, text);
  } else if (before.has_only_words() || !text.starts_with('-')) {
    complete_word(line, complete_value, before, text);
  } else if (const std::size_t sign = text.find('='); text.starts_with("--") && sign != std::string::npos) {
    const Option* const option = before.row(text.substr(0, sign));
    if (option != nullptr && option->takes != Takes::Nothing)
      complete_at(before.place(option, text.substr(0, sign + 1), text.substr(sign + 1)), complete_value);
  } else {
    const auto [option, size] =
        text.starts_with("--") ? std::pair<const Option*, std::size_t>() : before.letter_with_value(text);
    if (option != nullptr && size < text.size())
      complete_at(before.place(option, text.substr(0, size), text.substr(size)), complete_value);
    else
      complete_option(line, before.place(nullptr, "", text));
  }
}

}  // namespace

std::string candidate_lines(const ValuePlace& place, std::span<const Candidate> candidates) {
  std::string out;
  for (const Candidate& candidate : candidates) {
    if (!candidate.word.starts_with(place.text) || format::printable(candidate.word) != candidate.word)
      continue;
    out += place.prefix + candidate.word;
    if (!candidate.help.empty()) out += '\t' + format::printable(candidate.help);
    out += '\n';
  }
  return out;
}

void print_candidates(const ValuePlace& place, std::span<const Candidate> candidates) {
  static_cast<void>(write_stdout(candidate_lines(place, candidates)));
}

ValuePlace last_element(ValuePlace place, std::string_view separators) {
  const std::size_t end = place.text.find_last_of(separators);
  if (end == std::string::npos) return place;
  place.prefix += place.text.substr(0, end + 1);
  place.text.erase(0, end + 1);
  return place;
}

void print_files(const ValuePlace& place, Offer offer) {
  const std::size_t slash = place.text.rfind('/');
  const std::string head = slash == std::string::npos ? "" : place.text.substr(0, slash + 1);
  const std::string folder = head.starts_with("~/") ? variable("HOME") + head.substr(1) : head;
  const bool shows_hidden = place.text.substr(head.size()).starts_with('.');
  std::vector<Candidate> candidates;
  for (const std::string& name : entries_of(folder.empty() ? "." : folder)) {
    if (name.starts_with('.') != shows_hidden && name.starts_with('.')) continue;
    if (!(head + name).starts_with(place.text)) continue;
    const bool opens = is_folder(folder + name);
    if (opens || offer == Offer::Files) candidates.push_back({head + name + (opens ? "/" : "")});
  }
  print_candidates(place, candidates);
}

bool ValuePlace::is_of(std::string_view spelling) const {
  return ("," + option + ",").find("," + std::string(spelling) + ",") != std::string::npos;
}

bool print_choices(const ValuePlace& place, std::span<const Choices> choices) {
  const auto row =
      std::ranges::find_if(choices, [&place](const Choices& one) { return place.is_of(one.option); });
  if (row == choices.end()) return false;
  std::vector<Candidate> candidates;
  for (const std::string_view word : row->words) candidates.push_back({std::string(word)});
  print_candidates(last_element(place), candidates);
  return true;
}

Result<Parsed> parse_or_complete(const CommandLine& line, const std::vector<std::string>& arguments,
                                 const CompleteValue& complete_value) {
  if (!asks_for_completion(arguments)) return parse(line, arguments);
  complete(line, complete_value, {arguments.begin() + 1, arguments.end()});
  return Parsed::HelpShown;
}

}  // namespace tacho::cli
