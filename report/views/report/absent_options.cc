#include "report/views/report/absent_options.h"

#include <string_view>

namespace tacho::report {
namespace {

using cli::Takes;

constexpr std::string_view kInteractive = "there is no interactive form; rows are printed as with --stdio";
constexpr std::string_view kTraces = "processor traces (AUX) are not decoded here; perf report does that";

// A row leaves this table when the option comes; rows of options that exist have no effect.
constexpr cli::AbsentOption kRows[] = {
    {"--branch-history", Takes::Nothing,
     "branches are not put into call chains; -b has a row for each, and tacho script -F +brstacksym prints "
     "them with their samples"},
    {"--total-cycles", Takes::Nothing,
     "cycles of blocks need the code that ran between branches; tacho script -F brstackinsn prints it, and "
     "--sort cycles,symbol_from,symbol_to adds up what branches say"},
    {"--show-ref-call-graph", Takes::Nothing,
     "an event that was recorded without call chains is shown without; perf draws those of the samples "
     "before"},
    {"-D,--dump-raw-trace", Takes::Nothing,
     "tacho dump prints every record with its fields, --json for programs; --stats counts them"},
    {"--tui", Takes::Nothing, kInteractive},
    {"--gtk", Takes::Nothing, kInteractive},
    {"--itrace", Takes::Optional, kTraces},
};

}  // namespace

std::span<const cli::AbsentOption> absent_report_options() { return kRows; }

}  // namespace tacho::report
