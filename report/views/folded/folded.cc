#include "report/views/folded/folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "report/perf_text/sample_text.h"
#include "report/profile/wall_times.h"

namespace tacho::report {
namespace {

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

// "-7/12" after a thread's name, if the options distinguish processes or threads.
std::string thread_part(const FoldOptions& options, std::uint32_t pid, std::uint32_t tid) {
  const auto process = static_cast<std::int32_t>(pid), thread = static_cast<std::int32_t>(tid);
  if (options.shows_tid) return fmt::format("-{}/{}", process, thread);
  return options.shows_pid ? fmt::format("-{}", process) : std::string();
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

// Lines are ordered byte by byte, so the first names that differ decide, by their ranks: the order of the
// names with a ';' appended. A name at the end of its line has no ';'.
bool FoldedStacks::is_before(const Stack& a, const Stack& b, const LineNames& names) const {
  const std::uint32_t* const a_names = frames_.data() + a.start;
  const std::uint32_t* const b_names = frames_.data() + b.start;
  const std::size_t shorter = std::min(a.size, b.size);
  std::size_t at = 0;
  while (at < shorter && names.ranks[a_names[at]] == names.ranks[b_names[at]]) ++at;
  if (at == shorter) return a.size < b.size;
  if (at + 1 < a.size && at + 1 < b.size) return names.ranks[a_names[at]] < names.ranks[b_names[at]];
  const auto as_in_line = [&](const Stack& stack, std::uint32_t name) {
    return names.texts[name] + (at + 1 < stack.size ? ";" : "");
  };
  return as_in_line(a, a_names[at]) < as_in_line(b, b_names[at]);
}

FoldedStacks::LineNames FoldedStacks::line_names() {
  LineNames names;
  std::unordered_map<std::string_view, std::uint32_t> counts;
  for (std::uint32_t name = 0; name < names_.size(); ++name)
    names.texts.push_back(printable_folded(names_.shown(name), safety_));
  for (const std::string& text : names.texts) ++counts[text];
  // A name with ';' that reads like another name with ':'.
  std::vector<std::uint32_t> alike;
  for (std::uint32_t name = 0; safety_ == Names::Safe && name < names_.size(); ++name)
    if (counts[names.texts[name]] > 1 && names_.shown(name).find(';') != std::string_view::npos)
      alike.push_back(name);
  for (const std::uint32_t name : alike) {
    std::string text;
    for (const char c : names_.shown(name)) c == ';' ? text += "\\x3b" : text += c;
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

void FoldedStacks::write(TextOutput& out, std::size_t skipped) {
  const LineNames names = line_names();
  std::vector<const Stack*> lines;
  for (const Stack& stack : stacks_)
    if (stack.is_counted) lines.push_back(&stack);
  std::ranges::sort(lines, [&](const Stack* a, const Stack* b) { return is_before(*a, *b, names); });
  for (std::size_t i = 0; i < lines.size();) {
    // Different names may be shown alike: those of a function with and without known parameters.
    const Stack& stack = *lines[i];
    std::uint64_t weight = 0, other = 0;
    for (; i < lines.size() && !is_before(stack, *lines[i], names); ++i) {
      const auto row = static_cast<std::size_t>(lines[i] - stacks_.data());
      weight += lines[i]->weight;
      if (row < others_.size()) other += others_[row];
    }
    bool is_first = true;
    const auto frames = std::span(frames_).subspan(stack.start, stack.size).subspan(skipped);
    for (const std::uint32_t& name : frames) {
      const bool is_leaf = &name == &frames.back() && safety_ == Names::Safe;
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
    if (!others_.empty()) {
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

FrameNames folded_frame_names(Session& session, FoldedStacks& folded, const FoldOptions& options,
                              FoldedInlines inlines, bool is_java) {
  const bool shows_addresses = options.marks.addresses || inlines.context == Context::FileAndLine;
  const auto make = [&folded, options, inlines, is_java](const symbolize::Frame& frame,
                                                         const FrameAddress& /*address*/,
                                                         std::vector<std::uint32_t>& numbers) {
    if (inlines.are_expanded)
      if (const auto expanded = expanded_name(frame, inlines.context))
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

namespace {

namespace abi = format::abi;

constexpr std::string_view kBlanks = " \t\n\v\f\r", kJava = "java";
constexpr std::string_view kUnnamed = "[unnamed]";  // of a thread whose name is empty

std::string first_line(const ResolvedSample& sample, std::string_view event) {
  const auto& attr = sample.event().attr;
  Fields fields{Field::Comm, Field::Tid};
  if (attr.samples(abi::kSampleCpu)) fields.add(Field::Cpu);
  if (attr.samples(abi::kSampleTime)) fields.add(Field::Time);
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

std::string thread_name(const FoldOptions& options, std::uint32_t pid, std::uint32_t tid,
                        std::string_view comm) {
  return without_blanks(comm.empty() ? kUnnamed : comm) + thread_part(options, pid, tid);
}

}  // namespace

const FoldedStarts::Start& FoldedStarts::of(const ResolvedSample& sample, std::string_view event) {
  if (!options_.is_by_comm()) return start_of_roots(sample, event);
  const bool tells_threads = options_.shows_tid, tells_processes = options_.shows_pid || tells_threads;
  const Key key{sample.comm.data(), tells_processes ? sample.pid() : 0, tells_threads ? sample.tid() : 0};
  Recent& recent = recent_[hash_(key) % recent_.size()];
  if (recent.start == nullptr || recent.key != key) recent = {key, &starts_[key]};
  Start& start = *recent.start;
  if (options_.as_perl) {
    read_as_perl(start, sample, event);
  } else if (!start.is_seen) {
    begin(start, sample);
  }
  return start;
}

void FoldedStarts::begin(Start& start, const ResolvedSample& sample) {
  std::string name = thread_name(options_, sample.pid(), sample.tid(), sample.comm);
  start.is_seen = true;
  start.is_java = name.starts_with(kJava);
  start.names.push_back(folded_->name(name));
  start.key = keys_.emplace_back(std::move(name));
}

const FoldedStarts::Start& FoldedStarts::start_of_roots(const ResolvedSample& sample,
                                                        std::string_view event) {
  std::string key(1, sample.comm.starts_with(kJava) ? 'j' : ' ');
  std::vector<std::string> texts;
  for (const RootFrame root : options_.roots) {
    texts.push_back(root == RootFrame::Comm ? thread_name(options_, sample.pid(), sample.tid(), sample.comm)
                                            : root_text(root, sample, event));
    key += texts.back() + '\0';
  }
  const auto [known, is_new] = starts_by_roots_.try_emplace(std::move(key));
  Start& start = known->second;
  if (!is_new) return start;
  start.is_seen = true;
  start.is_java = known->first.front() == 'j';
  for (const std::string& text : texts) start.names.push_back(folded_->name(text));
  start.key = known->first;
  return start;
}

std::vector<std::uint32_t> names_of_roots(FoldedStacks& folded, const FoldOptions& options, std::uint32_t pid,
                                          std::uint32_t tid, std::string_view comm) {
  std::vector<std::uint32_t> names;
  for (const RootFrame root : options.roots)
    names.push_back(folded.name(root == RootFrame::Comm ? thread_name(options, pid, tid, comm)
                                                        : root_text(root, pid, tid, comm)));
  return names;
}

void FoldedStarts::read_as_perl(Start& start, const ResolvedSample& sample, std::string_view event) {
  if (!start.is_seen)
    start.is_usual = sample.comm.size() >= 2 && sample.comm.find_first_of(kBlanks) == std::string_view::npos;
  const bool is_usual = start.is_usual && static_cast<std::int32_t>(sample.tid()) >= 0;
  if (start.is_seen && is_usual) return;
  FoldedStart parsed{std::string(sample.comm), std::to_string(sample.tid())};
  // perf's line is parsed for an unusual name, with all that follows the name.
  start.is_seen = is_usual || fold_last_start(first_line(sample, event), parsed);
  if (!start.is_seen) return;
  std::string name = without_blanks(parsed.comm);
  // perf's text has no number of the process.
  if (options_.shows_tid) {
    name += "-?/" + parsed.tid;
  } else if (options_.shows_pid) {
    name += "-?";
  }
  start.is_java = name.starts_with(kJava);
  start.names.assign(1, folded_->name(name));
  start.key = folded_->text(start.names.front());
}

namespace {

class WaitSink : public Sink {
 public:
  WaitSink(Session& session, const WaitOptions& options, const FoldOptions& fold, Names names)
      : fold_(fold),
        waits_(session, options),
        folded_(names),
        names_(folded_frame_names(session, folded_, fold, {})),
        marker_(folded_.name(kWakerMark)) {}

  Waits& waits() { return waits_; }
  FoldedStacks& folded() { return folded_; }
  bool takes_non_samples() const override { return false; }

  Flow on_sample(const ResolvedSample& sample) override {
    if (const auto wait = waits_.take(sample)) add(*wait);
    return Flow::Continue;
  }

 private:
  void add(const Wait& wait) {
    stack_ = names_of_roots(folded_, fold_, wait.pid, wait.tid, wait.comm);
    names_.append(wait.stack->frames, FrameNames::Order::RootFirst, stack_);
    for (const Waker& waker : wait.wakers) add(waker);
    folded_.add(folded_.row_of(stack_), wait.duration);
    if (folded_.bytes() > kMostChainBytes) waits_.leave_wakers_out();
  }
  // A waker's frames are leaf first, so that the function that woke is next to the one that was woken; the
  // waker's name is last.
  void add(const Waker& waker) {
    stack_.push_back(marker_);
    if (waker.stack != nullptr)
      names_.append(waker.stack->frames.first(waker.frames), FrameNames::Order::LeafFirst, stack_);
    stack_.push_back(waker.is_interrupt ? folded_.name(waker.comm)
                                        : name_of_thread(waker.comm, waker.pid, waker.tid));
  }

  std::uint32_t name_of_thread(std::string_view comm, std::uint32_t pid, std::uint32_t tid) {
    return folded_.name(thread_name(fold_, pid, tid, comm));
  }

  FoldOptions fold_;
  Waits waits_;
  FoldedStacks folded_;
  FrameNames names_;
  std::uint32_t marker_;              // the number of a name
  std::vector<std::uint32_t> stack_;  // the names of the current wait
};

// Adds up the time of threads by state and stack.
class WallSink : public Sink {
 public:
  WallSink(Session& session, const WaitOptions& options, const FoldOptions& fold, Names names)
      : fold_(fold),
        times_(session, options),
        folded_(names),
        names_(folded_frame_names(session, folded_, fold, {})) {}

  WallTimes& times() { return times_; }
  Flow on_sample(const ResolvedSample& sample) override {
    times_.take(sample);
    return Flow::Continue;
  }
  Flow on_non_sample(const NonSampleRecord& event) override {
    times_.take(event);
    return Flow::Continue;
  }

  FoldedStacks& folded() {
    std::vector<std::uint32_t> stack;
    for (const WallRow& row : times_.rows()) {
      const WallThread& thread = times_.threads()[row.thread];
      stack = names_of_roots(folded_, fold_, thread.pid, thread.tid, thread.comm);
      stack.push_back(folded_.name(name_of(row.state)));
      if (row.stack != nullptr) append(*row.stack, stack);
      folded_.add(folded_.row_of(stack), static_cast<std::uint64_t>(std::llround(row.time)));
    }
    return folded_;
  }

 private:
  void append(const Stack& chain, std::vector<std::uint32_t>& stack) {
    const auto marks = times_.chains().names_of(chain);
    bool is_waker = false;
    for (std::size_t i = chain.frames.size(); i-- > 0;) {
      if (marks[i] == WaitChains::kAddress) {
        names_.append(chain.frames.subspan(i, 1),
                      is_waker ? FrameNames::Order::LeafFirst : FrameNames::Order::RootFirst, stack);
        continue;
      }
      const std::string_view name = times_.chains().name(marks[i]);
      is_waker = true;
      stack.push_back(folded_.name(name == kWakerMark ? std::string(name) : without_blanks(name)));
    }
  }

  FoldOptions fold_;
  WallTimes times_;
  FoldedStacks folded_;
  FrameNames names_;
};

}  // namespace

Result<Shown> show_wall(Session& session, TextOutput& out, const WaitOptions& options,
                        const FoldOptions& fold, Names names) {
  read_head(session);
  WallSink sink(session, options, fold, names);
  if (auto found = sink.times().find_events(); !found) return std::move(found.error());
  run_with_progress(session, sink, out);
  sink.times().finish();
  sink.folded().write(out);
  Shown shown(Symbols::Used);
  for (const std::string& note : sink.times().notes()) shown.notes.push_back("tacho folded: " + note);
  return shown;
}

Result<Shown> show_waits(Session& session, TextOutput& out, const WaitOptions& options,
                         const FoldOptions& fold, Names names) {
  WaitOptions wanted = options;
  wanted.who.condition = std::exchange(session.filter().condition, nullptr);
  read_head(session);
  WaitSink sink(session, wanted, fold, names);
  if (auto found = sink.waits().find_events(); !found) return std::move(found.error());
  if (sink.waits().has_switches() && session.filter().looks_at_names())
    return use_error(
        "--off-cpu: of sched:sched_switch every sample is taken in the scheduler, whatever waits; leave "
        "--dsos, --symbols and --symbol-filter out");
  run_with_progress(session, sink, out);
  sink.folded().write(out);
  Shown shown(Symbols::Used);
  for (const std::string& note : sink.waits().notes()) shown.notes.push_back("tacho folded: " + note);
  return shown;
}

}  // namespace tacho::report
