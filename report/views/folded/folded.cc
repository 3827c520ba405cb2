#include "report/views/folded/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "report/perf_text/frame_text.h"
#include "report/perf_text/line_start.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::string_view kUnknown = "[unknown]";
constexpr std::string_view kInlinedByJit = "->";
constexpr std::string_view kHexDigits = "0123456789abcdef";

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

struct Parts {
  std::string_view address, function, module;
};

// The index of " (" after a function's offset: "main+0x1f (/tmp/prog (deleted))".
std::size_t module_behind_offset(std::string_view line, std::size_t at) {
  constexpr std::string_view kOffset = "+0x", kOpen = " (";
  for (at = line.find(kOffset, at); at != std::string_view::npos; at = line.find(kOffset, at + 1)) {
    const auto end = line.find_first_not_of(kHexDigits, at + kOffset.size());
    if (end != std::string_view::npos && end != at + kOffset.size() && line.substr(end).starts_with(kOpen))
      return end;
  }
  return std::string_view::npos;
}

// ^\s*(\w+)\s*(.+) \((.*)\): the module begins at the last " (". For a deleted file the script so takes
// "(deleted)" for the module and leaves the offset in the function's name, so that each address would be a
// frame of its own; here it is not.
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

// Removes "+0x1f" from the end.
std::string_view without_offset(std::string_view function) {
  const auto plus = function.rfind("+0x");
  if (plus == std::string_view::npos || plus + 3 == function.size()) return function;
  const bool is_offset = function.find_first_not_of(kHexDigits, plus + 3) == std::string_view::npos;
  return is_offset ? function.substr(0, plus) : function;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// A thread's name without blanks, which separate the weight from the stack.
std::string without_blanks(std::string_view comm) {
  std::string name(comm);
  std::ranges::replace(name, ' ', '_');
  return name;
}

// Go's methods look like "net/http.(*Client).Do".
bool looks_like_go(std::string_view name) {
  const auto open = name.find(".(");
  return open != std::string_view::npos && name.find(").", open + 2) != std::string_view::npos;
}

// A name without parameters, quotes and semicolons.
std::string tidied_name(std::string name, bool is_java) {
  std::ranges::replace(name, ';', ':');
  if (!looks_like_go(name)) {
    constexpr std::string_view kKept = "(anonymous namespace)";
    for (auto at = name.find('('); at != std::string::npos; at = name.find('(', at + 1)) {
      if (name.compare(at, kKept.size(), kKept) == 0) continue;
      name.resize(at);
      break;
    }
  }
  std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
  if (is_java && name.starts_with('L') && name.find('/') != std::string::npos) name.erase(0, 1);
  return name;
}

std::string folded_name(std::string_view function, const Parts& parts, const FoldOptions& options,
                        bool is_java, bool is_first) {
  std::string name(function);
  if (function == kUnknown) {
    name = "[" + std::string(parts.module == kUnknown ? "unknown" : last_part(parts.module));
    if (options.marks.addresses) name += " <" + std::string(parts.address) + ">";
    name += ']';
  }
  name = tidied_name(std::move(name), is_java);
  const auto has = [&name](std::string_view mark) { return name.find(mark) != std::string::npos; };
  const bool is_kernel = (parts.module.starts_with('[') || parts.module.ends_with("vmlinux")) &&
                         parts.module.find("unknown") == std::string_view::npos;
  if (!is_first) {
    if (!has(kInlinedMark)) name += kInlinedMark;
  } else if (options.marks.kernel && is_kernel) {
    name += kKernelMark;
  } else if (options.marks.jit && is_jit_map(parts.module) && !has(kJitMark)) {
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

// ^(\S.+?)\s+(\d+)\/*(\d+)*\s+ : the shortest name of at least two characters before a number.
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

void FoldedStacks::add_weight(NamedStackId stack, std::uint64_t weight, std::uint64_t other) {
  if (!lines_.has(stack)) lines_.resize(stacks_.size());
  Line& line = lines_[stack];
  line = {line.weight + weight, line.other + other, true};
}

// Lines are ordered byte by byte, so the first names that differ decide, by their ranks: the order of the
// names with a ';' appended. A name at the end of its line has no ';'.
bool FoldedStacks::is_before(Stack a, Stack b, const LineNames& names) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at < shorter && names.ranks[a[at]] == names.ranks[b[at]]) ++at;
  if (at == shorter) return a.size() < b.size();
  if (at + 1 < a.size() && at + 1 < b.size()) return names.ranks[a[at]] < names.ranks[b[at]];
  const auto as_in_line = [&](Stack stack) {
    return names.texts[stack[at]] + (at + 1 < stack.size() ? ";" : "");
  };
  return as_in_line(a) < as_in_line(b);
}

FoldedStacks::LineNames FoldedStacks::line_names() {
  LineNames names;
  std::unordered_map<std::string_view, std::uint32_t> counts;
  for (std::uint32_t name = 0; name < names_.size(); ++name)
    names.texts.push_back(printable_folded(names_.shown(NameId{name}), safety_));
  for (const std::string& text : names.texts) ++counts[text];
  // A name with ';' that reads like another name with ':'.
  std::vector<std::uint32_t> alike;
  for (std::uint32_t name = 0; safety_ == Names::Safe && name < names_.size(); ++name)
    if (counts[names.texts[name]] > 1 && names_.shown(NameId{name}).find(';') != std::string_view::npos)
      alike.push_back(name);
  for (const std::uint32_t name : alike) {
    std::string text;
    for (const char c : names_.shown(NameId{name})) c == ';' ? text += "\\x3b" : text += c;
    names.texts[name] = printable_folded(text);
  }
  std::vector<std::uint32_t> by_name(names_.size());
  names.ranks.resize(names_.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  const auto ended = [](std::string_view name) { return std::string(name) + ';'; };
  std::ranges::sort(by_name, [&](std::uint32_t a, std::uint32_t b) {
    const std::string_view x = names.texts[a], y = names.texts[b];
    const auto difference = std::ranges::mismatch(x, y);
    const bool is_prefix = difference.in1 == x.end() || difference.in2 == y.end();
    return is_prefix ? ended(x) < ended(y) : x < y;
  });
  for (std::uint32_t i = 0; i < by_name.size(); ++i) {
    const bool is_equal = i > 0 && names.texts[by_name[i]] == names.texts[by_name[i - 1]];
    names.ranks[by_name[i]] = is_equal ? names.ranks[by_name[i - 1]] : i;
  }
  return names;
}

void FoldedStacks::write_stack(TextOutput& out, Stack stack, const LineNames& names) const {
  bool is_first = true;
  for (const std::uint32_t& name : stack) {
    const bool is_leaf = &name == &stack.back() && safety_ == Names::Safe;
    const std::string leaf = is_leaf ? printable_leaf(names.texts[name]) : "";
    std::string_view text = is_leaf ? std::string_view(leaf) : names.texts[name];
    if (!is_first) {
      out.character(';');
    } else if (text.starts_with('#') && safety_ == Names::Safe) {  // such a line would be a comment
      out.text("\\x23");
      text.remove_prefix(1);
    }
    out.text(text);
    is_first = false;
  }
}

void FoldedStacks::write(TextOutput& out) {
  const LineNames names = line_names();
  std::vector<NamedStackId> sorted;
  for (const NamedStackId stack : lines_.ids())
    if (lines_[stack].is_counted) sorted.push_back(stack);
  const auto is_less = [&](NamedStackId a, NamedStackId b) {
    return is_before(stacks_[a], stacks_[b], names);
  };
  std::ranges::sort(sorted, is_less);
  for (std::size_t i = 0; i < sorted.size();) {
    // Different names may be shown alike: those of a function with and without known parameters.
    const NamedStackId stack = sorted[i];
    std::uint64_t weight = 0, other = 0;
    for (; i < sorted.size() && !is_less(stack, sorted[i]); ++i) {
      weight += lines_[sorted[i]].weight;
      other += lines_[sorted[i]].other;
    }
    write_stack(out, stacks_[stack].subspan(skipped_), names);
    if (has_two_sides_) {
      out.character(' ');
      out.decimal(other);
    }
    out.character(' ');
    out.decimal(weight);
    out.end_line();
  }
}

namespace {

constexpr Fields kLineFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso};

// Whether stackcollapse-perf.pl --inline asks addr2line about a module's code.
bool is_asked_for(const symbolize::Module& module) {
  using symbolize::ModuleKind;
  return module.kind == ModuleKind::User && module.path.find("kernel.") == std::string::npos &&
         module.path.find('[') == std::string::npos;
}

}  // namespace

std::optional<std::string> expanded_name(const symbolize::Frame& frame, Context context) {
  if (frame.module == nullptr || !is_asked_for(*frame.module)) return std::nullopt;
  // addr2line finds no name in a procedure linkage table.
  if (frame.function.empty() || frame.function == "??" || frame.function.ends_with("@plt"))
    return std::nullopt;
  std::string name(frame.function);
  if (context == Context::None) return name;
  const bool has_file = frame.line_state == symbolize::LineState::Known && !frame.file.empty();
  name.append(":").append(has_file ? last_part(frame.file) : "??");
  return name + ':' + (has_file && frame.line != 0 ? std::to_string(frame.line) : "?");
}

namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r", kJava = "java";
constexpr std::string_view kUnnamed = "[unnamed]";  // of a thread whose name is empty

FrameNames frame_names(Session& session, FoldedStacks& folded, const FoldOptions& options, bool is_java) {
  const bool shows_addresses = options.marks.addresses || options.context == Context::FileAndLine;
  const auto make = [&folded, options, is_java](const symbolize::Frame& frame,
                                                const FrameAddress& /*address*/,
                                                std::vector<std::uint32_t>& numbers) {
    if (options.expands_inlines)
      if (const auto expanded = expanded_name(frame, options.context))
        return numbers.push_back(folded.name(*expanded));
    if (!options.as_perl) {
      const std::string name = name_of_frame(frame, options.marks);
      return numbers.push_back(folded.name(name, name == frame.function ? linker_name_of(frame) : ""));
    }
    TextBuffer line;
    write_frame(line, frame, kLineFields, Names::Raw);
    const std::vector<std::string> names = fold_frame(line.view(), options, is_java);
    for (auto name = names.rbegin(); name != names.rend(); ++name) numbers.push_back(folded.name(*name));
  };
  return {session, shows_addresses ? FrameNames::Of::Locations : FrameNames::Of::Functions, make};
}

std::string first_line(const ResolvedSample& sample, std::string_view event) {
  const auto& attr = sample.event().attr;
  Fields fields{Field::Comm, Field::Tid};
  if (attr.samples(abi::kSampleCpu)) fields.add_field(Field::Cpu);
  if (attr.samples(abi::kSampleTime)) fields.add_field(Field::Time);
  LineStart start{sample.comm,         sample.pid(),        sample.tid(),       sample.fields->cpu,
                  sample.fields->time, sample.fields->misc, abi::kRecordSample, false};
  TextBuffer line;
  TimeText times(TimeDigits::Microseconds, TimeBase::Clock, std::nullopt);
  write_line_start(line, fields, start, times);
  if (attr.type != abi::kTracepoint) line.decimal(sample.period, 10);
  line.character(' ');
  line.text(event);
  line.text(": ");
  return std::string(line.view());
}

}  // namespace

FoldedNames::FoldedNames(Session& session, FoldedStacks& folded, const FoldOptions& options)
    : folded_(&folded), options_(options), code_(frame_names(session, folded, options, false)) {
  if (options.as_perl) java_code_.emplace(frame_names(session, folded, options, true));
}

std::uint32_t FoldedNames::number_of(std::string_view text, FrameKind kind) {
  return folded_->name(kind == FrameKind::Waker ? without_blanks(text) : std::string(text));
}

FrameNames& FoldedNames::code_below(std::string_view root) {
  return java_code_ && root.starts_with(kJava) ? *java_code_ : code_;
}

std::string FoldedNames::thread_name(std::string_view comm, std::uint32_t pid, std::uint32_t tid) const {
  std::string name = without_blanks(comm.empty() ? kUnnamed : comm);
  const auto process = static_cast<std::int32_t>(pid), thread = static_cast<std::int32_t>(tid);
  if (options_.shows_tid) return fmt::format("{}-{}/{}", name, process, thread);
  return options_.shows_pid ? fmt::format("{}-{}", name, process) : name;
}

// perf's line shows the name unchanged, and as the script reads it.
bool FoldedNames::has_fixed_name(const ResolvedSample& sample) const {
  return !options_.as_perl ||
         (sample.comm.size() >= 2 && sample.comm.find_first_of(kBlanks) == std::string_view::npos &&
          static_cast<std::int32_t>(sample.tid()) >= 0);
}

std::optional<std::string> FoldedNames::thread_name(const ResolvedSample& sample,
                                                    std::string_view event) const {
  if (!options_.as_perl) return thread_name(sample.comm, sample.pid(), sample.tid());
  FoldedStart parsed{std::string(sample.comm), std::to_string(sample.tid())};
  // perf's line is parsed for an unusual name, with all that follows the name.
  if (!has_fixed_name(sample) && !fold_last_start(first_line(sample, event), parsed)) return std::nullopt;
  // perf's text has no number of the process.
  const std::string ids = options_.shows_tid ? "-?/" + parsed.tid : options_.shows_pid ? "-?" : "";
  return without_blanks(parsed.comm) + ids;
}

}  // namespace tacho::report
