#include "report/views/report/absent_options.h"

#include <string_view>

namespace tacho::report {
namespace {

using cli::Takes;

constexpr std::string_view kInteractive =
    "there is no interactive form, and nothing was printed; without this option rows are printed, on a "
    "terminal "
    "through a pager";
constexpr std::string_view kTraces =
    "processor traces (AUX) are not decoded here; perf makes samples of them, which every command reads: "
    "perf inject --itrace=i1ms -i FILE -o DECODED";

// A row leaves this table when the option comes; rows of options that exist have no effect.
constexpr cli::AbsentOption kRows[] = {
    {"--tui", Takes::Nothing, kInteractive},
    {"--gtk", Takes::Nothing, kInteractive},
    {"--itrace", Takes::Optional, kTraces},
};

}  // namespace

std::span<const cli::AbsentOption> absent_report_options() { return kRows; }

}  // namespace tacho::report
