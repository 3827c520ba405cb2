// tacho redact: copies a capture without private data.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "cli/message_text.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/filter_options.h"
#include "report/samples/filter.h"
#include "report/views/redact/redact.h"

namespace tacho::report {
namespace {

constexpr std::string_view kRedactDescription =
    "Copies a capture without private content, so that it can be given to others: command lines, names, "
    "folders, texts and memory of programs are removed, or replaced by one-way aliases. Every record and "
    "section is parsed and written anew, so nothing private stays in unused bytes, compressed parts, packed "
    "symbols or attached files. Equal words get equal aliases, so reports count as before; names of "
    "functions, build ids, times and process numbers stay.";

std::string epilog() {
  return "Classes of content, and how they are treated by default:\n" + Redaction::table() +
         "\nKernel addresses are moved to where they would be without KASLR, in samples, mappings and "
         "names.\n"
         "Payloads of tracepoints and BPF programs are redacted field by field; a payload without a\n"
         "description is replaced by zeros.\n\n"
         "Examples:\n"
         "  tacho redact perf.data --dry-run\n"
         "  tacho redact perf.data public.data\n"
         "  tacho redact perf.data public.data --keep comm --hash paths --time 10%-20%\n\n";
}

struct Options {
  RedactOptions redact;
  std::vector<std::string> words;
  bool is_dry = false, is_quiet = false, is_brief = false, has_worker = true;
  std::optional<std::uint64_t> file_seconds;
};

void add_options(std::vector<cli::Option>& rows, Options& options) {
  RedactOptions& redact = options.redact;
  rows.push_back(flag("--dry-run",
                      "write nothing; list the capture's content by class, and how it would be treated",
                      options.is_dry));
  rows.push_back(
      flag("--in-place", "replace IN by the copy, atomically when it is complete", redact.in_place));
  rows.push_back(class_option("--keep", "leave these classes unchanged: names as below, or all",
                              redact.redaction, &Redaction::keep));
  rows.push_back(class_option("--hide", "treat these as by default: --keep all --hide stacks",
                              redact.redaction, &Redaction::hide));
  rows.push_back(class_option("--drop", "drop these", redact.redaction, &Redaction::drop));
  rows.push_back(class_option("--hash", "replace these by aliases", redact.redaction, &Redaction::hash));
  rows.push_back(cli::text(
      "--key", "TEXT",
      "the key of the aliases: several captures with one key have the same aliases, but with the key "
      "words can be found by trying. Default: a random key, which is not kept",
      redact.key));
  rows.push_back(
      {"--pid", cli::Takes::Value, "LIST",
       "only these processes: drop samples, names, mappings, perf maps and lists of other processes, and the "
       "symbols and build ids of files that only these have mapped. Kernel records and cgroups stay, and "
       "what a "
       "process inherited when it was forked",
       [&redact](std::string_view text) -> Result<> {
         auto pids = parse_number_list("--pid", text);
         if (!pids) return std::move(pids.error());
         redact.pids = std::move(*pids);
         return Done{};
       }});
  rows.push_back(
      {"--events", cli::Takes::Value, "LIST",
       "only these events: names, with or without modifiers (cycles for cycles:u), or patterns ('sched:*'), "
       "separated by commas",
       [&redact](std::string_view text) -> Result<> {
         redact.copy.events = parse_name_list(text);
         return Done{};
       }});
  rows.push_back(
      cli::text("--time", "A,B",
                "only samples between these times, in seconds (either side may be empty), or parts of the "
                "capture: 10%-20%",
                redact.copy.times));
  rows.push_back(flag("-q,--quiet", "print errors only", options.is_quiet));
  rows.push_back(flag("--brief", "one line in the form of tacho record's, as at the end of a recording",
                      options.is_brief));
  rows.push_back(inflate_option(redact.copy.capture));
  rows.push_back(file_time_option(options.file_seconds));
  rows.push_back(worker_option(options.has_worker));
}

Result<> settle(Options& options) {
  ConvertOptions& copy = options.redact.copy;
  const std::size_t words = options.words.size();
  const std::size_t most = options.redact.in_place ? 1 : 2;
  if (words == 0 || words > most || (words == 1 && most == 2 && !options.is_dry)) {
    return use_error(most == 2 ? "name the capture and the file to write: tacho redact IN OUT"
                               : "name one capture: --in-place replaces it");
  }
  copy.input = options.words[0];
  copy.output = words > 1 ? options.words[1] : copy.input;
  if (copy.input == "-" || copy.output == "-")
    return use_error("a capture is read twice and written to a file; name files instead of -");
  std::error_code ignored;
  if (words == 2 && std::filesystem::equivalent(copy.input, copy.output, ignored))
    return use_error(cli::shell_word(copy.output) + " is the capture itself; --in-place replaces it");
  if (options.is_dry) copy.output = copy.input;  // nothing is written
  return Done{};
}

std::string text_of(const Options& options, const Redacted& redacted) {
  std::string text = printable(options.redact.copy.input) + " holds:\n";
  for (const RedactedClass& one : redacted.classes) {
    text += fmt::format("  {:<11} {}", name_of(one.content), one.number);
    if (one.number > 0) {
      text += fmt::format(" {}: {}", one.unit, state_of(one.how));
      if (!one.example.empty()) text += fmt::format(", e.g. \"{}\"", printable_quoted(one.example));
      if (!one.becomes.empty() && one.becomes != one.example)
        text += fmt::format(" becomes \"{}\"", printable_quoted(one.becomes));
    }
    text += '\n';
  }
  return text;
}

void print_summary(const Options& options, const Redacted& redacted) {
  std::string hidden, kept;
  for (const RedactedClass& one : redacted.classes) {
    if (one.number == 0) continue;
    std::string& list = one.how == How::Keep ? kept : hidden;
    list += (list.empty() ? "" : ", ") + std::string(name_of(one.content));
    if (one.how != How::Keep) list += fmt::format(" ({})", state_of(one.how));
  }
  const std::string text =
      (hidden.empty() ? "nothing was hidden" : hidden) + (kept.empty() ? "" : "; kept: " + kept);
  if (options.is_brief)
    std::fprintf(stderr, "[ tacho record: Redacted: %s ]\n", text.c_str());
  else
    std::fprintf(stderr, "tacho redact: %s: %s\n", printable(options.redact.copy.output).c_str(),
                 text.c_str());
  if (redacted.not_understood > 0)
    std::fprintf(stderr,
                 "tacho: %llu records were left out: their content is not known, or it would be too long "
                 "with aliases\n",
                 static_cast<unsigned long long>(redacted.not_understood));
}

// Runs in the sandboxed child; without a worker (`child` is null), in the process of the command. A dry run
// writes its text to `output`.
Result<cli::ExitStatus> redact_in_process(const Options& options, const CopyOutput& output,
                                          sandbox::Child* child) {
  RedactOptions redact_options = options.redact;
  if (child != nullptr) {
    redact_options.copy.access = &child->stacks;
    redact_options.name_access = &child->names;
    redact_options.in_step = child->is_serial;
  }
  format::Diagnostics diagnostics;
  const auto redacted = options.is_dry ? examine_for_redaction(redact_options, diagnostics)
                                       : redact(redact_options, output, diagnostics);
  if (redacted && options.is_dry) {
    if (const auto begun = output.begin(); !begun) return begun.error();
    const std::string text = text_of(options, *redacted);
    if (auto written = output.write(std::as_bytes(std::span(text)));
        !written && written.error().code != EPIPE)
      return std::move(written.error());
    if (auto done = output.finish(); !done) return std::move(done.error());
  }
  const auto status = tell_findings(diagnostics, options.redact.copy.input);
  if (!redacted) return redacted.error();
  if (!options.is_dry && !options.is_quiet) print_summary(options, *redacted);
  return status;
}

Result<cli::ExitStatus> run(const Options& options) {
  const ConvertOptions& copy = options.redact.copy;
  CaptureTask task;
  task.has_worker = options.has_worker;
  task.times = file_times(options.file_seconds, symbolize::Servers::NotAsked);
  task.can_restart = can_be_read_again(copy.input);
  task.target.input = copy.input;
  task.target.output = options.is_dry ? "-" : copy.output;
  task.target.is_whole_or_nothing = !options.is_dry;
  task.target.replaces_input = options.redact.in_place;
  return make_capture(task, [&options](const CopyOutput& output, sandbox::Child* child) {
    return redact_in_process(options, output, child);
  });
}

}  // namespace

Result<cli::ExitStatus> run_redact(const std::vector<std::string>& arguments) {
  Options options;
  auto line = command_line("redact", std::string(kRedactDescription));
  line.synopsis = "IN OUT [options]";
  add_options(line.options, options);
  line.words = [&options](const std::vector<std::string>& words) -> Result<> {
    options.words = words;
    return Done{};
  };
  line.epilog = epilog() + line.epilog;
  return run_command(line, arguments, [&options]() -> Result<cli::ExitStatus> {
    if (auto settled = settle(options); !settled) return std::move(settled.error());
    return run(options);
  });
}

}  // namespace tacho::report
