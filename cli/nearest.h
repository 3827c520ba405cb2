// Suggestions for misspelled names: "unknown option '--ouptut'; did you mean '--output'?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tacho::cli {

// The candidate with the smallest edit distance from `word`; empty: none is close enough.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'CANDIDATE'?", or nothing: for the end of a message about an unknown name.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

// The same, or when no candidate is near enough, a list: "; it has A, B and 80 more".
std::string suggestion_or_all(std::string_view word, std::span<const std::string> candidates);

// A name for a message; a long one is truncated with "...".
std::string shortened(std::string_view name);

// "A, B and 80 more", each name once.
std::string some_of(std::span<const std::string> names);

}  // namespace tacho::cli
