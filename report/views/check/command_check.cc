// tacho check: whether captures are as a rule file expects.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "cli/absent_options.h"
#include "report/commands.h"
#include "report/filter_options.h"
#include "report/output/output_parts.h"
#include "report/views/check/check_forms.h"
#include "report/views/check/init_rules.h"
#include "report/views/check/regressions.h"
#include "report/views/check/rules.h"

namespace tacho::report {
namespace {

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho check --init perf.data > rules.toml\n"
    "  tacho check rules.toml perf.data\n"
    "  tacho check rules.toml 'captures/*.data' --junit check.xml\n"
    "  tacho check --strict --format github rules.toml perf.data\n\n";

constexpr cli::AbsentOption kAbsent[] = {
    {"-i,--input", cli::Takes::Value,
     "captures are named without an option: tacho check RULES.toml CAPTURE..."},
    {"--where", cli::Takes::Value,
     "rules cannot be limited by a condition; --comm, --pid, --cpu, --time and others can be used"},
};

struct Options {
  ReadingOptions reading;
  std::string rules;
  std::vector<std::string> captures, base;
  const CheckForm* form = &check_forms().front();
  std::vector<const CheckForm*> more_forms;  // of ReadingOptions::more_outputs
  bool is_strict = false;
  bool makes_rules = false;  // --init
};

Result<> set_form(Options& options, std::string_view name) {
  std::string known;
  for (const CheckForm& form : check_forms()) {
    if (form.name == name) {
      options.form = &form;
      return Done{};
    }
    known += (known.empty() ? "" : ", ") + std::string(form.name);
  }
  return use_error(fmt::format("--format: '{}' is not known; it is one of {}", name, known));
}

// "--junit FILE": a further file in that form.
cli::Option file_option(Options& options, const CheckForm& form) {
  const std::string name = "--" + std::string(form.name);
  return {name, cli::Takes::Value, "FILE", "also write the results to FILE: " + std::string(form.help),
          [&options, &form, name](std::string_view file) -> Result<> {
            if (file.empty() || file == "-")
              return use_error(name + ": name a file; --format " + std::string(form.name) +
                               " writes to standard output");
            options.reading.more_outputs.push_back({form.name, std::string(file)});
            options.more_forms.push_back(&form);
            return Done{};
          }};
}

cli::CommandLine describe(Options& options) {
  auto line =
      command_line("check",
                   "Checks captures against a rule file (TOML): budgets for functions, modules and stacks, "
                   "limits for the values of fields, functions that must not be called, and what a capture "
                   "must be. What is measured from samples has an interval; a limit inside it is "
                   "inconclusive. Of several captures the median counts.");
  line.synopsis = "[OPTION...] RULES.toml [CAPTURE...]";
  line.words = [&options](const std::vector<std::string>& words) -> Result<> {
    const std::size_t rules = options.makes_rules ? 0 : 1;
    if (rules == 1) options.rules = words.front();
    for (const std::string& word : std::span(words).subspan(rules)) {
      auto named = files_named(word);
      if (!named) return std::move(named.error());
      std::ranges::move(*named, std::back_inserter(options.captures));
    }
    return Done{};
  };
  line.epilog =
      std::string(kExamples) +
      "Exit status: 0 every rule passed, or is inconclusive; 1 wrong use, also of the rule file; 2 a "
      "capture cannot be read; 3 as 0, but a capture lacks something (stderr says what); 4 the output could "
      "not be written; 5 a rule failed, or with --strict is inconclusive.\n";
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(
      {"--format", cli::Takes::Value, "NAME",
       "the form of the output: text (the default), json, markdown, junit, github, gitlab or sarif",
       [&options](std::string_view name) { return set_form(options, name); }});
  for (const CheckForm& form : check_forms())
    if (form.name != "text") rows.push_back(file_option(options, form));
  rows.push_back(
      {"--base", cli::Takes::Value, "FILES",
       "the captures that [[regression]] compares with: a file or a pattern ('base/*.data'); may be given "
       "several times",
       [&options](std::string_view word) -> Result<> {
         auto named = files_named(std::string(word));
         if (!named) return std::move(named.error());
         std::ranges::move(*named, std::back_inserter(options.base));
         return Done{};
       }});
  rows.push_back(cli::flag("--init",
                           "print a rule file made from what the captures have, with limits above it",
                           options.makes_rules));
  rows.push_back(cli::flag("--strict", "what is inconclusive fails, too", options.is_strict));
  add_filter_options(rows, options.reading.session.filter, {"--where"});
  std::erase_if(rows, [](const cli::Option& row) { return row.names == "-i,--input"; });
  cli::add_absent_options(rows, kAbsent);
  return line;
}

// What the capture lacks, as lines of `shown`.
void tell_lacks(Session& session, const std::string& name, Shown& shown) {
  session.report_missing_symbols();
  std::ranges::move(findings_text(session.diagnostics(), name), std::back_inserter(shown.notes));
  if (session.diagnostics().incomplete()) shown.status = cli::kIncomplete;
}

// Gives each capture to `to`, which is RuleChecks or InitRules.
template <class To>
Result<Shown> read_captures(To& to, const SessionOptions& wanted, TextOutput& out, const Options& options) {
  Shown shown(Symbols::Used);
  for (const std::string& name : options.captures) {
    SessionOptions one = wanted;
    one.input = name;
    auto session = Session::open(std::move(one));
    if (!session) return std::move(session.error());
    read_head(*session);
    auto added = to.add_capture(*session, name, [&](Sink& sink) { run_with_progress(*session, sink, out); });
    if (!added) return std::move(added.error());
    tell_lacks(*session, name, shown);
  }
  return shown;
}

// The checks of a rule about regressions. `shown`: gets what captures of the base lack; null: nothing does.
Result<std::vector<Check>> check_regression(const RegressionRule& rule, const SessionOptions& wanted,
                                            TextOutput& out, const Options& options, Shown* shown) {
  if (rule.is_paired && options.base.size() != options.captures.size())
    return use_error(
        fmt::format("{}:{}: paired: there are {} captures and {} of --base; pairs need as many of both",
                    printable(options.rules), rule.line, options.captures.size(), options.base.size()));
  RegressionCheck check(rule, options.base.size() + options.captures.size());
  for (const bool is_of_base : {true, false})
    for (const std::string& name : is_of_base ? options.base : options.captures) {
      SessionOptions one = wanted;
      one.input = name;
      auto session = Session::open(std::move(one));
      if (!session) return std::move(session.error());
      read_head(*session);
      auto added = check.add_capture(*session, name, is_of_base,
                                     [&](Sink& sink) { run_with_progress(*session, sink, out); });
      if (!added)
        return std::move(added.error()).in(fmt::format("{}:{}", printable(options.rules), rule.line));
      if (is_of_base && shown != nullptr) tell_lacks(*session, name, *shown);
    }
  if (shown != nullptr) std::ranges::move(check.notes(), std::back_inserter(shown->notes));
  return check.checks();
}

Result<Shown> show_rules(const SessionOptions& wanted, TextOutput& out, const Options& options) {
  InitRules rules;
  auto shown = read_captures(rules, wanted, out, options);
  if (!shown) return shown;
  TextBuffer text;
  rules.write(text);
  out.text(text.view());
  return shown;
}

Result<Shown> show_checks(const SessionOptions& wanted, const RuleFile& rules, TextOutput& out,
                          const Options& options) {
  RuleChecks checks(rules);
  auto read = read_captures(checks, wanted, out, options);
  if (!read) return read;
  Shown shown = std::move(*read);
  std::vector<Check> all = checks.checks();
  for (const RegressionRule& rule : rules.regressions) {
    const bool is_first = &rule == &rules.regressions.front();
    auto found = check_regression(rule, wanted, out, options, is_first ? &shown : nullptr);
    if (!found) return std::move(found.error());
    std::ranges::move(*found, std::back_inserter(all));
  }
  const CheckReport report{.rules = options.rules,
                           .captures = options.captures,
                           .base = options.base,
                           .checks = std::move(all),
                           .is_strict = options.is_strict};
  TextBuffer text;
  options.form->write(text, report);
  std::vector<TextBuffer> files(options.more_forms.size());
  for (std::size_t i = 0; i < files.size(); ++i) options.more_forms[i]->write(files[i], report);
  if (files.empty()) {
    out.text(text.view());
  } else {
    write_part(out, text.view());
    for (std::size_t i = 0; i + 1 < files.size(); ++i) write_part(out, files[i].view());
    out.text(files.back().view());
  }
  if (report.has_failed()) shown.status = cli::kCheckFailed;
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_check(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    if (options.rules.empty() && !options.makes_rules)
      return use_error("name a rule file and captures: tacho check rules.toml perf.data");
    if (options.captures.empty()) options.captures.push_back(input_when_none_is_named());
    for (const auto* const side : {&options.captures, &options.base})
      if (auto apart = check_captures_differ(*side); !apart) return std::move(apart.error());
    options.reading.session.input = options.captures.front();
    options.reading.other_inputs.assign(options.captures.begin() + 1, options.captures.end());
    if (options.makes_rules)
      return show_alone(options.reading, nullptr, [&](const SessionOptions& wanted, TextOutput& out) {
        return show_rules(wanted, out, options);
      });
    const auto rules = read_rules(options.rules);
    if (!rules) return use_error(rules.error().what);
    if (rules->regressions.empty() != options.base.empty())
      return use_error(options.base.empty()
                           ? options.rules + " has [[regression]]: --base names the captures to compare with"
                           : "--base is for [[regression]], which " + options.rules + " does not have");
    if (options.base.size() == 1 && options.captures.size() > 1)
      return use_error(
          fmt::format("--base has one capture, {}, and {} are checked; quote a pattern (--base "
                      "'base/*.data'), or give --base "
                      "for each capture of the base",
                      options.base.front(), options.captures.size()));
    std::ranges::copy(options.base, std::back_inserter(options.reading.other_inputs));
    return show_alone(options.reading, nullptr, [&](const SessionOptions& wanted, TextOutput& out) {
      return show_checks(wanted, *rules, out, options);
    });
  });
}

}  // namespace tacho::report
