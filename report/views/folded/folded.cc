#include "report/views/folded/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <span>

namespace tacho::report {
namespace {

constexpr std::string_view kUnknown = "[unknown]";
constexpr std::string_view kInlinedByJit = "->";

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Parts {
  std::string_view address, function, module;
};

// Where " (" stands behind a function's offset: "main+0x1f (/tmp/prog (deleted))".
std::size_t module_behind_offset(std::string_view line, std::size_t at) {
  constexpr std::string_view kOffset = "+0x", kOpen = " (";
  for (at = line.find(kOffset, at); at != std::string_view::npos; at = line.find(kOffset, at + 1)) {
    const auto end = line.find_first_not_of("0123456789abcdef", at + kOffset.size());
    if (end != std::string_view::npos && end != at + kOffset.size() && line.substr(end).starts_with(kOpen))
      return end;
  }
  return std::string_view::npos;
}

// ^\s*(\w+)\s*(.+) \((.*)\): the module is what the last " (" opens. That script takes so what a file that
// was deleted has behind its name, and leaves the offset in the function's: here each place would be a frame
// of its own.
bool split_line(std::string_view line, Parts& parts) {
  std::size_t at = 0;
  while (at < line.size() && is_blank(line[at])) ++at;
  const std::size_t address = at;
  while (at < line.size() && is_word(line[at])) ++at;
  if (at == address) return false;
  parts.address = line.substr(address, at - address);
  while (at < line.size() && is_blank(line[at])) ++at;
  const auto close = line.rfind(')');
  if (close == std::string_view::npos) return false;
  auto open = module_behind_offset(line.substr(0, close), at);
  if (open == std::string_view::npos) open = line.substr(0, close).rfind(" (");
  if (open == std::string_view::npos || open <= at) return false;
  parts.function = line.substr(at, open - at);
  parts.module = line.substr(open + 2, close - open - 2);
  return true;
}

// Takes "+0x1f" off the end.
std::string_view without_offset(std::string_view function) {
  const auto plus = function.rfind("+0x");
  if (plus == std::string_view::npos || plus + 3 == function.size()) return function;
  const auto digits = function.substr(plus + 3);
  const bool is_offset =
      std::ranges::all_of(digits, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
  return is_offset ? function.substr(0, plus) : function;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string folded_name(std::string_view function, const Parts& parts, const FoldOptions& options,
                        bool is_java, bool is_first) {
  std::string name(function);
  if (function == kUnknown) {
    name = parts.module == kUnknown ? "unknown" : last_part(parts.module);
    if (options.marks.addresses) name += " <" + std::string(parts.address) + ">";
    name.insert(0, 1, '[');
    name += ']';
  }
  name = tidied_name(std::move(name), is_java);
  const auto ends_marked = [&](std::string_view mark) { return name.find(mark) != std::string::npos; };
  const bool is_kernel = (parts.module.starts_with('[') || parts.module.ends_with("vmlinux")) &&
                         parts.module.find("unknown") == std::string_view::npos;
  if (!is_first) {
    if (!ends_marked(kInlinedMark)) name += kInlinedMark;
  } else if (options.marks.kernel && is_kernel) {
    name += kKernelMark;
  } else if (options.marks.jit && is_jit_map(parts.module) && !ends_marked(kJitMark)) {
    name += kJitMark;
  }
  return name;
}

}  // namespace

std::vector<std::string> fold_frame(std::string_view line, const FoldOptions& options, bool is_java) {
  std::vector<std::string> names;
  Parts parts;
  if (!split_line(line, parts)) return names;
  std::string_view rest = without_offset(parts.function);
  if (rest.starts_with('(')) return names;  // a process's name
  while (rest.ends_with(kInlinedByJit)) rest.remove_suffix(kInlinedByJit.size());
  while (!rest.empty()) {
    const auto arrow = rest.find(kInlinedByJit);
    names.push_back(folded_name(rest.substr(0, arrow), parts, options, is_java, names.empty()));
    rest = arrow == std::string_view::npos ? std::string_view() : rest.substr(arrow + 2);
  }
  return names;
}

// ^(\S.+?)\s+(\d+)\/*(\d+)*\s+ : the shortest name of at least two characters that a number follows.
bool fold_start(std::string_view line, FoldedStart& start) {
  if (line.empty() || is_blank(line[0])) return false;
  for (std::size_t end = 2; end < line.size(); ++end) {
    if (!is_blank(line[end])) continue;
    std::size_t at = end;
    while (at < line.size() && is_blank(line[at])) ++at;
    const std::size_t number = at;
    while (at < line.size() && is_digit(line[at])) ++at;
    const std::size_t number_end = at;
    while (at < line.size() && line[at] == '/') ++at;
    while (at < line.size() && is_digit(line[at])) ++at;
    if (number_end == number || at >= line.size() || !is_blank(line[at])) continue;
    start.comm = line.substr(0, end);
    start.tid = line.substr(number, number_end - number);
    return true;
  }
  return false;
}

bool fold_last_start(std::string_view lines, FoldedStart& start) {
  bool is_found = false;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    is_found = fold_start(lines.substr(0, end), start) || is_found;
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return is_found;
}

std::string thread_part(const FoldOptions& options, std::uint32_t pid, std::uint32_t tid) {
  const auto process = static_cast<std::int32_t>(pid), thread = static_cast<std::int32_t>(tid);
  if (options.shows_tid) return fmt::format("-{}/{}", process, thread);
  return options.shows_pid ? fmt::format("-{}", process) : std::string();
}

std::uint32_t FoldedStacks::name(std::string_view text) {
  return number_of(printable_folded(text, safety_), false);
}

std::uint32_t FoldedStacks::name_that_stays(std::string_view text) {
  const bool is_safe = safety_ == Names::Raw || (is_plain(text) && text.find(';') == std::string_view::npos);
  return is_safe ? number_of(text, true) : name(text);
}

std::uint32_t FoldedStacks::number_of(std::string_view safe, bool stays) {
  if (const auto known = numbers_.find(safe); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.push_back(stays ? safe : texts_.keep(safe));
  numbers_.emplace(names_.back(), number);
  return number;
}

std::uint32_t FoldedStacks::row_of(const std::vector<std::uint32_t>& stack) {
  std::uint64_t hash = stack.size();
  for (const std::uint32_t name : stack) hash = by_frames_.hash.add(hash, name);
  return by_frames_.find_or_make(
      hash,
      [&](std::uint32_t row) {
        const Stack& known = stacks_[row];
        return std::ranges::equal(std::span(frames_).subspan(known.start, known.size), stack);
      },
      [&] {
        stacks_.push_back({frames_.size(), stack.size(), 0, false});
        frames_.insert(frames_.end(), stack.begin(), stack.end());
        return static_cast<std::uint32_t>(stacks_.size() - 1);
      });
}

// Lines are ordered byte by byte. The first names that differ decide: by their ranks, which are those of the
// names with the ';' behind them, unless one of them ends its line and has none.
bool FoldedStacks::is_before(const Stack& a, const Stack& b, const std::vector<std::uint32_t>& ranks) const {
  const std::uint32_t* const a_names = frames_.data() + a.start;
  const std::uint32_t* const b_names = frames_.data() + b.start;
  const std::size_t shorter = std::min(a.size, b.size);
  std::size_t at = 0;
  while (at < shorter && a_names[at] == b_names[at]) ++at;
  if (at == shorter) return a.size < b.size;
  if (at + 1 < a.size && at + 1 < b.size) return ranks[a_names[at]] < ranks[b_names[at]];
  const auto as_in_line = [&](const Stack& stack, std::uint32_t name) {
    return std::string(names_[name]) + (at + 1 < stack.size ? ";" : "");
  };
  return as_in_line(a, a_names[at]) < as_in_line(b, b_names[at]);
}

void FoldedStacks::write(TextOutput& out, std::size_t skipped) const {
  std::vector<std::uint32_t> by_name(names_.size()), ranks(names_.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  const auto ended = [](std::string_view name) { return std::string(name) + ';'; };
  std::ranges::sort(by_name, [&](std::uint32_t a, std::uint32_t b) {
    const std::string_view x = names_[a], y = names_[b];
    const auto difference = std::ranges::mismatch(x, y);
    const bool is_prefix = difference.in1 == x.end() || difference.in2 == y.end();
    return is_prefix ? ended(x) < ended(y) : x < y;
  });
  for (std::uint32_t rank = 0; rank < by_name.size(); ++rank) ranks[by_name[rank]] = rank;

  std::vector<const Stack*> lines;
  for (const Stack& stack : stacks_) {
    if (stack.is_counted) lines.push_back(&stack);
  }
  std::ranges::sort(lines, [&](const Stack* a, const Stack* b) { return is_before(*a, *b, ranks); });
  for (const Stack* stack : lines) {
    bool is_first = true;
    for (const std::uint32_t name : std::span(frames_).subspan(stack->start, stack->size).subspan(skipped)) {
      if (!is_first) out.character(';');
      out.text(names_[name]);
      is_first = false;
    }
    if (!others_.empty()) {
      const auto row = static_cast<std::size_t>(stack - stacks_.data());
      out.character(' ');
      out.decimal(row < others_.size() ? others_[row] : 0);
    }
    out.character(' ');
    out.decimal(stack->weight);
    out.character('\n');
    out.line_end();
  }
}

}  // namespace tacho::report
