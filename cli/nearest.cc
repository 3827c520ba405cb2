#include "cli/nearest.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

namespace tacho::cli {
namespace {

// Optimal string alignment: Levenshtein's distance, with swapped neighbours as one step.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

// Names from the command line may be of any length; suggestions are for short ones.
constexpr std::size_t kLongestWord = 100;

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kLongestWord) return {};
  // At most a third of the letters may differ; no guesses for words of one or two letters.
  std::size_t least = word.size() / 3 + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord || candidate == word) continue;
    const std::size_t away = distance(word, candidate);
    if (away < least && away < candidate.size()) {
      least = away;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::string guess = nearest(word, candidates);
  return guess.empty() ? std::string() : "; did you mean '" + guess + "'?";
}

std::string shortened(std::string_view name) {
  if (name.size() <= kLongestWord) return std::string(name);
  return std::string(name.substr(0, kLongestWord - 3)) + "...";
}

std::string some_of(std::span<const std::string> names) {
  constexpr std::size_t kMostListed = 40;
  std::string list;
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second || seen.size() > kMostListed) continue;
    list.append(list.empty() ? "" : ", ").append(shortened(name));
  }
  if (seen.size() > kMostListed) list += " and " + std::to_string(seen.size() - kMostListed) + " more";
  return list;
}

std::string suggestion_or_all(std::string_view word, std::span<const std::string> candidates) {
  const std::string tail = suggestion(word, candidates);
  if (!tail.empty() || candidates.empty()) return tail;
  return "; it has " + some_of(candidates);
}

}  // namespace tacho::cli
