#include "report/commands.h"

namespace tacho::report {
namespace {

constexpr Command kCommands[] = {
    {"why", "where the time of threads went, and what they waited for", run_why},
    {"summary", "one screen about a capture, and the commands that show more", run_summary},
    {"script", "every sample as text, as perf script prints it", run_script},
    {"report", "samples counted by thread, module and function", run_report},
    {"tui", "a report on the terminal, to be walked through: call graphs, zooms, annotated code", run_tui},
    {"annotate", "source and instructions of functions, with the share of samples of each", run_annotate},
    {"hist", "the distribution of a field's values", run_hist},
    {"table", "samples in groups: counts, sums and percentiles of a field", run_table},
    {"sql", "a query over the tables of a capture, in DuckDB", run_sql},
    {"fleet", "captures of many hosts in one database: flame graphs, differences, shares over time",
     run_fleet},
    {"stacks", "the stacks of all threads of a process or of the system now, running or blocked", run_stacks},
    {"bpf", "BPF programs, loaded now or in a capture: costs, places, maps, code with source lines", run_bpf},
    {"calls", "calls of functions with their durations, as -e calls recorded them", run_calls},
    {"diff", "what changed between captures: side by side as perf diff, or between two sides with a verdict",
     run_diff},
    {"flamegraph", "a flame graph as one SVG file: zoom, search, differences", run_flamegraph},
    {"heatmap", "how values are spread over time, as text or a picture, and what a part of it has more of",
     run_heatmap},
    {"page", "a page for a browser: timeline, flame graph, tables, heat maps, events", run_page},
    {"folded", "distinct stacks and their weight, for flame graphs", run_folded},
    {"export", "a capture in a format of another tool: pprof and others", run_export},
    {"import", "a profile of another tool as a capture: pprof, speedscope, folded stacks and others",
     run_import},
    {"check", "whether captures are as a rule file expects, for a build", run_check},
    {"header", "what the capture says about itself", run_header},
    {"evlist", "the events of the capture", run_evlist},
    {"dump", "every record with all of its fields, as text or JSON", run_dump},
    {"convert", "a capture in another form: file, pipe, compressed, plain, a part of it", run_convert},
    {"pack", "puts the names of its addresses into a capture, to be read elsewhere", run_pack},
    {"redact", "a capture without what others should not see", run_redact},
    {"doctor", "what a capture lacks on another machine", run_doctor},
    {"parameters", "", run_parameters},
    {"prototypes", "", run_prototypes},
    {"top", "", run_top},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace tacho::report
