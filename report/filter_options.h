// The options that choose samples, with perf's spellings: one table for every view that shows samples.
#pragma once

#include <string_view>
#include <vector>

#include "cli/options.h"
#include "report/query/waits.h"
#include "report/samples/event_switch.h"
#include "report/samples/filter.h"

namespace tacho::report {

// Rows for --pid, --tid, -C, --time, -c, -d, -S, --addr-range and --symbol-filter, which fill `filter`; it
// must outlive the parsing. Spellings in `taken` mean something else in the command and are left out; an
// option all of whose spellings are taken is left out as a whole.
void add_filter_options(std::vector<cli::Option>& rows, Filter& filter,
                        const std::vector<std::string_view>& taken = {});

// The row for --event, which fills `filter`; the names are checked by check_events() (report/command.h).
cli::Option event_option(Filter& filter);
// The same for views that choose events themselves, by choose_events(): given twice, the lists are joined.
// `help` says in brackets what is shown without it.
cli::Option event_list_option(std::string names, std::string help, std::string& list);

// Rows for --switch-on, --switch-off and --show-on-off-events.
void add_switch_options(std::vector<cli::Option>& rows, SwitchOptions& options);

// The options --off-cpu and --wakers: one table for every view that shows waits.

// Fill `options`, which must outlive the parsing.
void add_wait_options(std::vector<cli::Option>& rows, WaitOptions& options);

// --wall shows threads whole: an error of the use where the filter chooses parts of them, but for times.
Result<> check_wall_filter(const Filter& filter);

}  // namespace tacho::report
