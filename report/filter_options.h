// The options that filter samples, with perf's spellings, for every view.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "report/query/waits.h"
#include "report/redaction.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {

struct StackSource;  // profile/stack_sums.h

// Adds --pid, --tid, -C, --time, -c, -d, -S, --addr-range, --symbol-filter and --where, which set `filter`;
// it must outlive the parsing. Spellings in `taken` have another meaning in the command and are left out; an
// option without any other spelling is left out as a whole.
void add_filter_options(std::vector<cli::Option>& rows, Filter& filter,
                        const std::vector<std::string_view>& taken = {});

// --event, which sets `filter`; check_events() (report/command.h) checks the names.
cli::Option event_option(Filter& filter);
// --event for views that call choose_events(); given twice, the lists are joined. `help` has the default in
// parentheses.
cli::Option event_list_option(std::string names, std::string help, std::string& list);

// The files that a pattern ("runs/*.data") matches, by name; a word that is no pattern, or names a file, is
// that file. An error: none matches.
Result<std::vector<std::string>> files_named(const std::string& word);
// An error if a file is named twice: a capture is one measurement.
Result<> check_captures_differ(const std::vector<std::string>& files);

// --no-renames, which sets `matches_calls` to false (compare/function_match.h).
cli::Option no_renames_option(bool& matches_calls);

// An option of redaction that takes classes of content: `set` is Redaction::keep, hide, drop or hash.
cli::Option class_option(std::string name, std::string help, Redaction& redaction,
                         Result<> (Redaction::*set)(std::string_view classes));

// Adds --switch-on, --switch-off and --show-on-off-events.
void add_switch_options(std::vector<cli::Option>& rows, SwitchOptions& options);

// Adds --off-cpu and --wakers, which set `options`; it must outlive the parsing.
void add_wait_options(std::vector<cli::Option>& rows, WaitOptions& options);

// For pictures of stacks, after parsing: a usage error for options that do not go together. For waits and
// times, take_who() of the filter.
Result<> check_stack_source(StackSource& source, Filter& filter);

}  // namespace tacho::report
