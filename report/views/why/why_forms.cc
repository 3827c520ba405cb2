#include "report/views/why/why_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "cli/message_text.h"
#include "report/output/field_sinks.h"
#include "report/output/quantity_text.h"
#include "report/output/terminal.h"

namespace tacho::report {
namespace {

constexpr std::size_t kIndent = 10;  // columns before the lines of a finding
constexpr double kLeastPart = 0.05;  // of a finding: callees and doings with less are not printed
constexpr std::size_t kMostIdle = 5, kMostParts = 4;
// An answer does not know the cause of such a part of the time that is not idle.
constexpr double kMuchUnknown = 0.1;
// Who ends waits for work is printed if these take such a part of the threads' time.
constexpr double kMuchOfThreads = 0.2;

// The recorder names a file with the last folder of its path only.
std::string path_text(std::string name) {
  const bool has_folder = name.find('/') != std::string::npos && name.front() != '/';
  return has_folder ? ".../" + name : name;
}

double share(double part, double whole) { return whole <= 0 ? 0 : 100 * part / whole; }

std::string file_of(const WhyText& how) {
  return how.input == "-" || !how.is_kept ? "FILE" : cli::shell_word(how.input);
}

// The time of which findings are shares.
double busy_of(const Answer& answer) { return std::max(answer.wall - answer.idle - answer.unknown, 0.0); }

class AnswerWords {
 public:
  AnswerWords(const Answer& answer, const WhyText& how)
      : answer_(answer), how_(how), busy_(busy_of(answer)) {}

  AnswerText text() const {
    AnswerText made{.head = answer_.operations ? operations_text(*answer_.operations) : head_text()};
    const std::size_t shown = std::min(how_.most, answer_.findings.size());
    for (const TimeFinding& finding : std::span(answer_.findings).first(shown))
      made.findings.push_back(finding_text(finding));
    if (shown == 0)
      made.rest = answer_.threads == 0 ? "no thread that the options choose was recorded"
                  : answer_.unknown > kMuchUnknown * (answer_.wall - answer_.idle)
                      ? "nothing stands out in what is recorded"
                      : "nothing stands out";
    if (answer_.operations) return made;
    if (shown > 0) made.rest = rest_text(shown);
    for (const IdleTime& one : answer_.waits_for_work) made.idle.push_back(idle_text(one));
    return made;
  }

 private:
  std::string safe(std::string_view text) const { return printable(text, how_.names); }

  std::vector<std::string> head_text() const {
    const auto of = [&](double part) { return fmt::format("{:.0f} %", share(part, answer_.wall)); };
    std::string line =
        fmt::format("{} of {}: {} of thread time", quantity_text(answer_.span, "ns"),
                    cli::counted(answer_.threads, "thread"), quantity_text(answer_.wall, "ns"));
    if (answer_.processes > 1) line += " of " + cli::counted(answer_.processes, "process");
    line += fmt::format("; {} waits for work", of(answer_.idle));
    if (share(answer_.unknown, answer_.wall) >= 1)
      line += fmt::format(", {} is not recorded", of(answer_.unknown));
    if (answer_.findings.empty()) return {line};
    return {line, fmt::format("shares are of the other {} ({})", of(busy_), quantity_text(busy_, "ns"))};
  }

  static std::string side_text(const Operations::Side& side) {
    if (side.count == 0) return "none";
    return fmt::format("{}, median {}, from {} up", side.count,
                       quantity_text(static_cast<double>(side.median), "ns"),
                       quantity_text(static_cast<double>(side.least), "ns"));
  }

  static std::vector<std::string> operations_text(const Operations& operations) {
    return {fmt::format("slowest 1 % of {}: {}; the others: {}", operations.name, side_text(operations.slow),
                        side_text(operations.others))};
  }

  // "lock cache_lock"
  std::string title_of(const TimeFinding& finding) const {
    const std::string subject = safe(finding.subject), call = safe(finding.call),
                      function = finding.function.empty() ? "[unknown]" : safe(finding.function);
    switch (finding.cause) {
      case Cause::Cpu:
        return "on the CPU in " + function;
      case Cause::Spin:
        return fmt::format("spins in {}{}", function, call.empty() ? "" : ": " + call);
      case Cause::Syscall:
        return fmt::format("on the CPU in system calls: {} of {}", call, function);
      case Cause::Fork:
        return fmt::format("processes that live for a moment: {}", cli::counted(answer_.forks, "process"));
      case Cause::Runnable:
        return subject.empty() ? "waits for a CPU"
                               : "waits for a CPU, which " + subject + " has most of the time";
      case Cause::Throttled:
        return "waits for a CPU: the cgroup's quota is used up";
      case Cause::Lock:
        return fmt::format("waits for the lock {} in {}", subject.empty() ? "[unknown]" : subject, function);
      case Cause::Condition:
        return fmt::format("waits for {} in {}", subject.empty() ? "a condition" : "the condition " + subject,
                           function);
      case Cause::KernelLock:
        return "waits for a lock of the kernel in " + function;
      case Cause::Disk:
        return fmt::format("waits for the disk{} in {}{}",
                           finding.disk.empty() ? "" : " " + safe(finding.disk), function,
                           subject.empty() ? "" : ", file " + path_text(subject));
      case Cause::Network:
        return fmt::format("waits for {} in {}", subject.empty() ? "a socket" : "the peer " + subject,
                           function);
      case Cause::Fault:
        return "page faults in " + function;
      case Cause::Child:
        return "waits for a child process in " + function;
      case Cause::Timer:
        return "sleeps in " + function;
      case Cause::Stopped:
        return "is stopped by a signal or a debugger in " + function;
      case Cause::Pipe:
        return "waits until a pipe is read in " + function;
      default:
        return (is_idle(finding.cause) ? fmt::format("waits ({}) in ", name_of(finding.cause))
                                       : "is blocked in ") +
               function;
    }
  }

  FindingText finding_text(const TimeFinding& finding) const {
    FindingText made{.share = answer_.operations
                                  ? "+" + quantity_text(finding.of_slow - finding.of_others, "ns")
                                  : fmt::format("{:.1f} %", share(finding.time, busy_)),
                     .title = title_of(finding),
                     .evidence = {evidence_of(finding)},
                     .command = more_of(finding, how_)};
    if (finding.cause == Cause::Runnable && (finding.parts.size() > 1 || !finding.runner_functions.empty()))
      made.evidence.push_back("the CPU had " + parts_text(finding, ""));
    else if (finding.cause != Cause::Runnable && !finding.parts.empty())
      made.evidence.push_back("of it " + parts_text(finding, "in "));
    for (const Holder& holder : finding.holders) {
      if (share(holder.time, finding.time) < 100 * kLeastPart) continue;
      made.evidence.push_back(holder_text(holder, finding.time, finding.cause != Cause::Lock));
    }
    if (!finding.stack.empty()) made.evidence.push_back(stack_text(finding));
    return made;
  }

  std::string threads_text(const TimeFinding& finding) const {
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(finding.threads.size(), 3); ++i)
      text += (i == 0 ? "" : ", ") + safe(finding.threads[i].name);
    if (finding.threads.size() > 3) text += ", ...";
    return text;
  }

  static std::string waits_text(std::uint64_t count, std::uint64_t median, std::uint64_t longest) {
    return fmt::format("{}, median {}, longest {}", cli::counted(count, "wait"),
                       quantity_text(static_cast<double>(median), "ns"),
                       quantity_text(static_cast<double>(longest), "ns"));
  }

  std::string evidence_of(const TimeFinding& finding) const {
    std::string text = answer_.operations ? fmt::format("{} of a slow one, {} of another",
                                                        quantity_text(finding.of_slow, "ns"),
                                                        quantity_text(finding.of_others, "ns"))
                                          : quantity_text(finding.time, "ns");
    const bool is_on_cpu = finding.median == 0;
    if (is_on_cpu)
      text += ", " + cli::counted(finding.count, finding.cause == Cause::Fork ? "process" : "sample");
    else
      text += ", " + waits_text(finding.count, finding.median, finding.longest);
    if (finding.began_before > 0)
      text += fmt::format(", {} since before the recording", finding.began_before);
    if (finding.unfinished > 0) text += fmt::format(", {} not ended", finding.unfinished);
    return text + "; " + threads_text(finding);
  }

  std::string parts_text(const TimeFinding& finding, std::string_view in) const {
    std::string text;
    for (std::size_t i = 0; i < std::min(kMostParts, finding.parts.size()); ++i) {
      text += fmt::format("{}{:.0f} % {}{}", i == 0 ? "" : ", ", share(finding.parts[i].time, finding.time),
                          in, safe(finding.parts[i].name));
      if (i == 0) text += runner_text(finding);
    }
    return text;
  }

  // " (98 % in render_page)"
  std::string runner_text(const TimeFinding& finding) const {
    constexpr std::size_t kMostFunctions = 3;
    std::string text;
    for (const NamedTime& one :
         std::span(finding.runner_functions).first(std::min(kMostFunctions, finding.runner_functions.size())))
      text += fmt::format("{}{:.0f} % in {}", text.empty() ? " (" : ", ",
                          share(one.time, finding.parts.front().time), safe(one.name));
    return text.empty() ? text : text + ")";
  }

  std::string doing_text(const Doing& doing) const {
    const std::string in = doing.function.empty() ? "" : " in " + safe(doing.function);
    const std::string subject = safe(doing.subject),
                      of = subject.empty()
                               ? ""
                               : " " + (doing.cause == Cause::Disk ? path_text(subject) : subject);
    if (doing.cause == Cause::Cpu) return "on the CPU" + in;
    if (doing.cause == Cause::Unknown)
      return "not recorded" + (doing.function.empty() ? "" : ", given back in " + safe(doing.function));
    if (doing.cause == Cause::Runnable)
      return "waiting for a CPU" + in + (of.empty() ? "" : " (" + subject + " had it)");
    if (is_idle(doing.cause)) return fmt::format("waiting ({}){}", name_of(doing.cause), in);
    const bool is_network = doing.cause == Cause::Network;
    return fmt::format(
        "waiting for {}{}{}",
        is_network ? of.empty() ? "a socket" : "the peer" : "the " + std::string(name_of(doing.cause)), of,
        in);
  }

  // `has_end`: they did not hold a lock, but ended the wait.
  std::string holder_text(const Holder& holder, double time, bool has_end) const {
    std::string text = fmt::format(
        "{} by {}{}{}, {:.0f} %{}", has_end ? "ended" : "held", safe(holder.comm),
        holder.tid == 0 ? "" : fmt::format(" ({})", holder.tid),
        has_end && !holder.ends_in.empty() ? " in " + safe(holder.ends_in) : "", share(holder.time, time),
        has_end || holder.median_hold == 0
            ? ""
            : fmt::format(", {} at a time, longest {}",
                          quantity_text(static_cast<double>(holder.median_hold), "ns"),
                          quantity_text(static_cast<double>(holder.longest_hold), "ns")));
    std::size_t count = 0;
    for (const Doing& doing : holder.doings) {
      if (share(doing.time, holder.time) < 100 * kLeastPart || count == 3) break;
      text += fmt::format("{} {:.0f} % {}",
                          count++ > 0 ? ","
                          : has_end   ? "; meanwhile"
                                      : ":",
                          share(doing.time, holder.time), doing_text(doing));
    }
    return text;
  }

  std::string stack_text(const TimeFinding& finding) const {
    constexpr std::size_t kInnermost = 8;
    const std::size_t left_out = finding.stack.size() - std::min(finding.stack.size(), kInnermost);
    std::string text = left_out > 0 ? "..." : "";
    for (std::size_t i = left_out; i < finding.stack.size(); ++i)
      text += (text.empty() ? "" : " > ") + safe(finding.stack[i]);
    return text;
  }

  std::string rest_text(std::size_t shown) const {
    double rest = answer_.rest;
    for (const TimeFinding& finding : std::span(answer_.findings).subspan(shown)) rest += finding.time;
    if (share(rest, busy_) < 0.1) return "";
    return fmt::format("{:5.1f} %  the rest, each part smaller", share(rest, busy_));
  }

  IdleText idle_text(const IdleTime& one) const {
    IdleText made{.title = fmt::format("{}: {} in {}{}", quantity_text(one.time, "ns"), name_of(one.cause),
                                       one.function.empty() ? "[unknown]" : safe(one.function),
                                       one.threads.empty() ? "" : "; " + safe(one.threads)),
                  .evidence = {}};
    const bool may_be_work = !one.ended_by.empty() || !one.peers.empty() || one.cause == Cause::IdleTimer;
    if (!may_be_work || one.time < kMuchOfThreads * one.life) return made;
    made.evidence.push_back(waits_text(one.count, one.median, one.longest));
    for (const Holder& holder : one.ended_by)
      if (share(holder.time, one.time) >= 100 * kLeastPart)
        made.evidence.push_back(holder_text(holder, one.time, true));
    for (const NamedTime& peer : one.peers)
      if (share(peer.time, one.time) >= 100 * kLeastPart)
        made.evidence.push_back(
            fmt::format("ended by the peer {}, {:.0f} %", safe(peer.name), share(peer.time, one.time)));
    return made;
  }

  const Answer& answer_;
  const WhyText& how_;
  double busy_;  // ns
};

class WhyWriter {
 public:
  WhyWriter(TextBuffer& out, const Answer& answer, const WhyText& how)
      : out_(out), answer_(answer), how_(how), text_(words_of(answer, how)) {}

  void write() {
    for (const std::string& line : text_.head) write_line(0, line);
    for (const std::string& line : how_.missing) write_line(0, "not seen: " + line);
    if (answer_.operations && !answer_.findings.empty()) write_line(0, "what a slow one has more of");
    for (const FindingText& finding : text_.findings) write_finding(finding);
    if (!text_.rest.empty()) write_line(0, text_.rest);
    if (!text_.idle.empty()) write_line(0, "waits for work or for other threads (not counted above)");
    for (const IdleText& one : std::span(text_.idle).first(std::min(kMostIdle, text_.idle.size()))) {
      write_line(2, one.title);
      for (const std::string& line : one.evidence) write_line(kIndent, line);
    }
    if (!text_.findings.empty() && !how_.is_kept)
      write_line(0, "tacho why -o FILE keeps the capture for these commands");
  }

 private:
  void write_line(std::size_t indent, const std::string& text) {
    out_.blanks(indent);
    out_.text(how_.room == 0 ? text : cut_in_the_middle(text, how_.room - std::min(how_.room, indent)));
    out_.character('\n');
  }

  void write_finding(const FindingText& finding) {
    write_line(0, fmt::format("{:>{}}  {}", finding.share, answer_.operations ? 9 : 7, finding.title));
    for (const std::string& line : finding.evidence) write_line(kIndent, line);
    out_.blanks(kIndent);  // never cut, so that it can be copied
    out_.text(finding.command);
    out_.character('\n');
  }

  TextBuffer& out_;
  const Answer& answer_;
  const WhyText& how_;
  AnswerText text_;
};

void describe_holder(JsonFields& to, const Holder& holder) {
  to.text("comm", holder.comm);
  if (holder.tid != 0) to.number("tid", holder.tid);
  to.number("time_ns", static_cast<std::uint64_t>(holder.time));
  if (!holder.doings.empty()) {
    to.text("function", holder.doings.front().function);
    to.text("doing", name_of(holder.doings.front().cause));
  }
  if (!holder.ends_in.empty()) to.text("ends_in", holder.ends_in);
  if (holder.median_hold != 0) {
    to.number("median_hold_ns", holder.median_hold);
    to.number("max_hold_ns", holder.longest_hold);
  }
  to.begin_list("doings");
  for (const Doing& doing : holder.doings) {
    to.begin_object({});
    to.text("doing", name_of(doing.cause));
    to.text("function", doing.function);
    if (!doing.subject.empty()) to.text("of", doing.subject);
    to.number("time_ns", static_cast<std::uint64_t>(doing.time));
    to.end_object();
  }
  to.end_list();
}

void describe_holders(JsonFields& to, std::string_view name, const std::vector<Holder>& holders) {
  to.begin_list(name);
  for (const Holder& holder : holders) {
    to.begin_object({});
    describe_holder(to, holder);
    to.end_object();
  }
  to.end_list();
}

// The name of the member that TimeFinding::subject is.
std::string_view subject_name(Cause cause) {
  switch (cause) {
    case Cause::Lock:
    case Cause::Condition:
      return "lock";
    case Cause::Network:
      return "peer";
    case Cause::Runnable:
      return "by";
    default:
      return "file";
  }
}

void describe_times(JsonFields& to, std::string_view name, const std::vector<NamedTime>& times) {
  to.begin_list(name);
  for (const NamedTime& one : times) {
    to.begin_object({});
    to.text("name", one.name);
    to.number("time_ns", static_cast<std::uint64_t>(one.time));
    to.end_object();
  }
  to.end_list();
}

void describe_finding(JsonFields& to, const TimeFinding& finding, double busy, const WhyText& how) {
  to.begin_object({});
  to.text("cause", name_of(finding.cause));
  to.real("share", share(finding.time, busy) / 100);
  to.number("time_ns", static_cast<std::uint64_t>(finding.time));
  to.number("count", finding.count);
  if (finding.median != 0) {
    to.number("median_ns", finding.median);
    to.number("max_ns", finding.longest);
    if (finding.began_before > 0) to.number("began_before", finding.began_before);
    if (finding.unfinished > 0) to.number("unfinished", finding.unfinished);
  }
  if (finding.of_slow > 0) {
    to.number("slow_ns", static_cast<std::uint64_t>(finding.of_slow));
    to.number("others_ns", static_cast<std::uint64_t>(finding.of_others));
  }
  to.text("function", finding.function);
  if (!finding.call.empty()) to.text("call", finding.call);
  if (!finding.subject.empty()) to.text(subject_name(finding.cause), finding.subject);
  if (!finding.disk.empty()) to.text("device", finding.disk);
  if (!finding.holders.empty()) {
    to.begin_object("holder");
    describe_holder(to, finding.holders.front());
    to.end_object();
    describe_holders(to, "holders", finding.holders);
  }
  for (const auto& [name, parts] :
       {std::pair("parts", &finding.parts), std::pair("threads", &finding.threads)})
    describe_times(to, name, *parts);
  if (!finding.runner_functions.empty()) describe_times(to, "by_functions", finding.runner_functions);
  to.begin_list("stack");
  for (const std::string& name : finding.stack) to.text("", name);
  to.end_list();
  to.text("more", more_of(finding, how));
  to.end_object();
}

// What had the CPU, by function.
std::string report_of(const WhyText& how) {
  const std::string event = how.clock.empty() ? "" : " --event " + cli::shell_word(how.clock);
  return fmt::format("tacho report -i {}{} --no-children", file_of(how), event);
}

}  // namespace

std::string more_of(const TimeFinding& finding, const WhyText& how) {
  const std::string file = file_of(how), waits = fmt::format("tacho table -i {} --event offcpu", file);
  std::string all = fmt::format("tacho flamegraph -i {} --wall -o wall.svg", file);
  if (finding.cause == Cause::Syscall || finding.cause == Cause::Fork) return report_of(how);
  if (finding.cause == Cause::Cpu || finding.cause == Cause::Spin)
    return finding.code.empty() ? report_of(how)
                                : fmt::format("tacho annotate -i {} {}", file, cli::shell_word(finding.code));
  if (!how.has_objects) return all;
  if (finding.cause == Cause::Runnable)
    return waits + " --where 'runq_ns > 0' --value runq_ns --by comm,runner";
  if (finding.cause == Cause::Throttled)
    return waits + " --where 'throttled == 1' --value runq_ns --by comm,runner";
  // A lock without an address, as of SQLite, or a file or peer without a name is none in a table.
  if (finding.subject.empty() || (finding.cause == Cause::Lock && finding.subject.front() == '[')) return all;
  switch (finding.cause) {
    case Cause::Lock:
      // The stacks of a deadlock, as long as it lasts, name the owners.
      if (finding.unfinished > 0 && finding.holders.empty() && finding.pid != 0)
        return fmt::format("tacho stacks -p {}", finding.pid);
      return waits + " --by lock,holder";
    case Cause::Condition:
      return waits + " --by lock,waker";
    case Cause::Disk:
    case Cause::Network:
      return waits + " --by object,name,comm";
    default:
      return all;
  }
}

AnswerText words_of(const Answer& answer, const WhyText& how) { return AnswerWords(answer, how).text(); }

void write_text(TextBuffer& out, const Answer& answer, const WhyText& how) {
  WhyWriter(out, answer, how).write();
}

void write_json(TextBuffer& out, const Answer& answer, const WhyText& how) {
  const double busy = busy_of(answer);
  const auto whole = [](double ns) { return static_cast<std::uint64_t>(std::max(ns, 0.0)); };
  JsonFields to(out);
  to.number("tacho_why", kWhyVersion);
  if (how.is_kept) to.text("file", how.input);
  to.number("span_ns", whole(answer.span));
  to.number("threads", answer.threads);
  to.number("processes", answer.processes);
  to.number("forks", answer.forks);
  to.number("wall_ns", whole(answer.wall));
  to.number("idle_ns", whole(answer.idle));
  to.number("unknown_ns", whole(answer.unknown));
  to.number("rest_ns", whole(answer.rest));
  to.begin_list("missing");
  for (const std::string& line : how.missing) to.text("", line);
  to.end_list();
  if (answer.operations) {
    to.begin_object("operations");
    to.text("of", answer.operations->name);
    for (const auto& [name, side] :
         {std::pair("slow", &answer.operations->slow), std::pair("others", &answer.operations->others)}) {
      to.begin_object(name);
      to.number("count", side->count);
      to.number("median_ns", side->median);
      to.number("min_ns", side->least);
      to.end_object();
    }
    to.end_object();
  }
  to.begin_list("findings");
  for (const TimeFinding& finding : answer.findings) describe_finding(to, finding, busy, how);
  to.end_list();
  to.begin_list("idle");
  for (const IdleTime& one : answer.waits_for_work) {
    to.begin_object({});
    to.text("waits_for", name_of(one.cause));
    to.text("function", one.function);
    if (!one.call.empty()) to.text("call", one.call);
    to.text("threads", one.threads);
    to.number("time_ns", whole(one.time));
    to.number("count", one.count);
    to.number("median_ns", one.median);
    to.number("max_ns", one.longest);
    if (!one.ended_by.empty()) describe_holders(to, "ended_by", one.ended_by);
    if (!one.peers.empty()) describe_times(to, "peers", one.peers);
    to.end_object();
  }
  to.end_list();
  to.finish();
  out.character('\n');
}

}  // namespace tacho::report
