#include "report/views/report/absent_options.h"

#include <string_view>

namespace tacho::report {
namespace {

using cli::Takes;

constexpr std::string_view kSwitches =
    "all samples are counted, or those of --time; tacho script has this option and prints them one by one";
constexpr std::string_view kBranches =
    "branch stacks are not counted yet; tacho script -F +brstacksym prints them";
constexpr std::string_view kCode =
    "machine code is not shown beside rows; tacho script -F +insn,+srccode shows it for each sample";
constexpr std::string_view kInteractive = "there is no interactive form; rows are printed as with --stdio";
constexpr std::string_view kTraces = "processor traces (AUX) are not decoded here; perf report does that";

// A row leaves this table when the option comes; rows of options that exist have no effect.
constexpr cli::AbsentOption kRows[] = {
    {"--branch-history", Takes::Nothing, kBranches},
    {"--total-cycles", Takes::Nothing, kBranches},
    {"--switch-on", Takes::Value, kSwitches},
    {"--switch-off", Takes::Value, kSwitches},
    {"--show-on-off-events", Takes::Nothing, kSwitches},
    {"--socket-filter", Takes::Value, "sockets are not selected; -C selects their processors"},
    {"--pretty", Takes::Value, "the values of -T have one form, that of --pretty normal"},
    {"--percent-type", Takes::Value, "shares are of the event's period"},
    {"--group-sort-idx", Takes::Value, "the first event of a group decides the order"},
    {"--skip-empty", Takes::Nothing, "events without samples are left out anyway"},
    {"--show-ref-call-graph", Takes::Nothing, "each event is shown with the call chains that it has itself"},
    {"--stitch-lbr", Takes::Nothing, "call stacks that the processor kept (LBR) are taken as recorded"},
    {"-D,--dump-raw-trace", Takes::Nothing, "tacho dump prints every record with its fields"},
    {"--disable-order", Takes::Nothing, "tacho dump prints every record in the order of the file"},
    {"--tasks", Takes::Nothing, "tacho script --show-task-events prints threads as they come and go"},
    {"--mmaps", Takes::Nothing, "tacho script --show-mmap-events prints the mappings"},
    {"--full-source-path", Takes::Nothing,
     "files of source are shown without their folders; tacho script -F +srcline --full-source-path prints "
     "them"},
    {"-M,--disassembler-style", Takes::Value, kCode},
    {"--asm-raw", Takes::Nothing, kCode},
    {"--source", Takes::Nothing, kCode},
    {"--objdump", Takes::Value, kCode},
    {"--prefix", Takes::Value, kCode},
    {"--prefix-strip", Takes::Value, kCode},
    {"--samples", Takes::Value, kInteractive},
    {"--tui", Takes::Nothing, kInteractive},
    {"--gtk", Takes::Nothing, kInteractive},
    {"-m,--modules", Takes::Nothing, "symbols of kernel modules come from kallsyms, without an option"},
    {"--ignore-vmlinux", Takes::Nothing, "a vmlinux is read only when -k names it"},
    {"--demangle-kernel", Takes::Nothing, "kernel symbols are shown as kallsyms has them"},
    {"--itrace", Takes::Optional, kTraces},
};

}  // namespace

std::span<const cli::AbsentOption> absent_report_options() { return kRows; }

}  // namespace tacho::report
