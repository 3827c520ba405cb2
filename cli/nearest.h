// Suggestions for misspelled names: "unknown option '--ouptut'; did you mean '--output'?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tacho::cli {

// The candidate that is fewest letters away from `word` (one letter more, less, changed, or two swapped count
// one each), or empty when none is close enough to be a guess worth making.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'CANDIDATE'?", or nothing: for the end of a message about an unknown name.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

// The same, or when no candidate is near enough, a list: "; it has A, B and 80 more".
std::string suggestion_or_all(std::string_view word, std::span<const std::string> candidates);

// A name for a message: a long one is cut, and "..." stands for the rest.
std::string shortened(std::string_view name);

// "A, B and 80 more", each name once.
std::string some_of(std::span<const std::string> names);

}  // namespace tacho::cli
