// Folded stacks: "comm;main;work 5", the frames of a stack from its root and its count, one stack a line.
// With two counts on every line, as difffolded.pl prints them, these are two events.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/digest.h"
#include "format/base/seeded_hash.h"
#include "report/views/import/import_formats.h"
#include "report/views/import/imported_capture.h"

namespace tacho::report {
namespace {

constexpr std::string_view kFoldedBlanks = " \t";

// A count: digits, with or without a fraction.
std::optional<double> folded_count(std::string_view word) {
  if (word.empty() || word.find_first_not_of("0123456789.") != std::string_view::npos || word.front() == '.')
    return std::nullopt;
  double count = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), count);
  if (failed != std::errc() || end != word.data() + word.size() || !std::isfinite(count)) return std::nullopt;
  return count;
}

struct FoldedLine {
  std::string_view stack;
  std::string_view counts[2];  // the last one first; the second is empty where there is one
};

// Nothing: the line has no count at its end.
std::optional<FoldedLine> folded_line(std::string_view line) {
  FoldedLine parsed{.stack = line, .counts = {}};
  for (std::string_view& count : parsed.counts) {
    const auto blank = parsed.stack.find_last_of(kFoldedBlanks);
    if (blank == std::string_view::npos) break;
    const std::string_view word = parsed.stack.substr(blank + 1);
    if (!folded_count(word)) break;
    count = word;
    const auto last = parsed.stack.find_last_not_of(kFoldedBlanks, blank);
    parsed.stack = parsed.stack.substr(0, last == std::string_view::npos ? 0 : last + 1);
  }
  if (parsed.counts[0].empty()) return std::nullopt;
  return parsed;
}

// take(line, its number, its offset) for each line but empty ones and comments.
template <class Take>
void each_folded_line(std::string_view text, Take&& take) {
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    ++number;
    while (!line.empty() &&
           (line.back() == '\r' || kFoldedBlanks.find(line.back()) != std::string_view::npos))
      line.remove_suffix(1);
    if (!line.empty() && line.front() != '#') take(line, number, at);
    at = end + 1;
  }
}

class FoldedImport {
 public:
  FoldedImport(const ImportTask& task, format::Diagnostics& diagnostics)
      : task_(task), capture_(task.source, format::digest(task.bytes), diagnostics) {}

  Result<> run(const CopyOutput& output) {
    const std::string_view text = format::as_text(task_.bytes);
    std::uint64_t lines = 0, pairs = 0;
    each_folded_line(text, [&](std::string_view line, std::uint64_t, std::size_t) {
      const auto parsed = folded_line(line);
      if (!parsed) return;
      ++lines;
      if (!parsed->counts[1].empty()) ++pairs;
    });
    if (lines == 0) return Error{"no line ends with a blank and a count, as those of folded stacks do"};
    ImportedLayout layout;
    has_two_ = pairs == lines;
    if (has_two_)
      layout.events = {{.name = "before", .unit = {}}, {.name = "after", .unit = {}}};
    else
      layout.events = {{.name = "samples", .unit = {}}};
    if (auto begun = capture_.begin_samples(output, std::move(layout)); !begun) return begun;
    Result<> added = Done{};
    each_folded_line(text, [&](std::string_view line, std::uint64_t number, std::size_t offset) {
      if (added) added = add_line(line, number, offset);
    });
    if (!added) return added;
    note_fractions();
    return capture_.finish(output);
  }

 private:
  Result<> add_line(std::string_view line, std::uint64_t number, std::size_t offset) {
    auto parsed = folded_line(line);
    if (!parsed) {
      capture_.diagnostics().add_finding(format::Damage::BadRecord, offset,
                                         "line " + std::to_string(number) + " has no count at its end");
      return Done{};
    }
    // Where not all lines have two counts, the number before the count belongs to the name.
    if (!has_two_ && !parsed->counts[1].empty())
      parsed->stack = std::string_view(
          line.data(),
          static_cast<std::size_t>(parsed->counts[1].data() + parsed->counts[1].size() - line.data()));
    const std::string_view comm = split(parsed->stack);
    for (std::size_t event = 0; event < (has_two_ ? 2U : 1U); ++event) {
      const std::uint64_t weight = weight_of(parsed->counts[has_two_ ? 1 - event : 0], event);
      if (weight == 0) continue;
      const ImportedSample sample{.event = event,
                                  .weight = weight,
                                  .thread = {.pid = {}, .tid = {}, .comm = comm},
                                  .frames = frames_};
      if (auto added = capture_.add_sample(sample); !added) return added;
    }
    return Done{};
  }

  // The frames of a stack, leaf first, into frames_. Returns the name of its thread.
  std::string_view split(std::string_view stack) {
    frames_.clear();
    std::string_view comm = task_.comm ? std::string_view(*task_.comm) : std::string_view();
    bool has_comm = task_.comm.has_value();
    for (std::size_t at = 0; at <= stack.size();) {
      const std::size_t end = std::min(stack.find(';', at), stack.size());
      const std::string_view name = stack.substr(at, end - at);
      if (std::exchange(has_comm, true))
        frames_.push_back(frame_of(name));
      else
        comm = name;
      at = end + 1;
    }
    std::ranges::reverse(frames_);
    return comm;
  }

  ImportedFrameId frame_of(std::string_view name) {
    if (const auto known = by_name_.find(name); known != by_name_.end()) return known->second;
    const ImportedLine line{.function = name, .file = {}};
    return by_name_[name] = capture_.add_frame(capture_.named_module({}), {&line, 1});
  }

  std::uint64_t weight_of(std::string_view word, std::size_t event) {
    std::uint64_t whole = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), whole);
    if (failed == std::errc() && end == word.data() + word.size()) return whole;
    const double count = folded_count(word).value_or(0);
    ++fractions_;
    return rounded_[event].next_weight(count);
  }

  void note_fractions() {
    if (fractions_ == 0) return;
    capture_.diagnostics().add_line(
        format::Damage::Note,
        "counts that are no whole numbers below 2^64 are rounded so that their sum is right: " +
            std::to_string(fractions_));
  }

  const ImportTask& task_;
  ImportedCapture capture_;
  bool has_two_ = false;
  std::unordered_map<std::string_view, ImportedFrameId, format::SeededTextHash> by_name_;
  std::vector<ImportedFrameId> frames_;
  std::array<WholeWeights, 2> rounded_;
  std::uint64_t fractions_ = 0;
};

}  // namespace

Result<> import_folded(const ImportTask& task, const CopyOutput& output, format::Diagnostics& diagnostics) {
  return FoldedImport(task, diagnostics).run(output);
}

}  // namespace tacho::report
