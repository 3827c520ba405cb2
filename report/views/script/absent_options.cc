#include "report/views/script/absent_options.h"

#include <string_view>

namespace tacho::report {
namespace {

using cli::Takes;

constexpr std::string_view kTraces =
    "processor traces (AUX) are not decoded here; perf makes samples of them, which every command reads: "
    "perf inject --itrace=i1ms -i FILE -o DECODED";
constexpr std::string_view kScripts =
    "scripts are not run here; the fields of every sample are in tacho script --fields and tacho dump --json";
constexpr std::string_view kGuests = "guests' samples are shown by address; what they ran is not named";

constexpr cli::AbsentOption kRows[] = {
    {"-D,--dump-raw-trace", Takes::Nothing,
     "tacho report -D prints every record with its bytes, tacho dump with its fields"},
    {"--dump-unsorted-raw-trace", Takes::Nothing, "tacho dump prints every record in the order of the file"},
    {"--show-round-events", Takes::Nothing, "tacho dump shows FINISHED_ROUND records in their places"},
    {"-v,--verbose", Takes::Nothing,
     "-F +ip,+symoff shows addresses; tacho dump prints every record with its fields"},
    {"-d,--debug-mode", Takes::Nothing, "records out of order and lost ones are always reported at the end"},
    {"-L,--Latency", Takes::Nothing, "times between samples are shown by --deltatime"},
    {"--per-event-dump", Takes::Nothing,
     "print the types of events apart, as with -F trace: -F sw:..., or fold one with tacho folded "
     "--event-filter"},
    {"-l,--list", Takes::Nothing, kScripts},
    {"-s,--script", Takes::Value, kScripts},
    {"-g,--gen-script", Takes::Value, kScripts},
    {"--dlfilter", Takes::Value, kScripts},
    {"--dlarg", Takes::Value, kScripts},
    {"--list-dlfilters", Takes::Nothing, kScripts},
    {"-a,--all-cpus", Takes::Nothing, "nothing is recorded here; tacho record -a does that"},
    {"--demangle-kernel", Takes::Nothing, "kernel symbols are shown as kallsyms has them"},
    {"--show-kernel-path", Takes::Nothing, "the kernel is shown as [kernel.kallsyms]; -k names its file"},
    {"--stitch-lbr", Takes::Nothing, "call stacks that the processor kept (LBR) are shown as recorded"},
    {"--itrace", Takes::Optional, kTraces},
    {"--insn-trace", Takes::Optional, kTraces},
    {"--xed", Takes::Optional, kTraces},
    {"--call-trace", Takes::Optional, kTraces},
    {"--call-ret-trace", Takes::Optional, kTraces},
    {"--graph-function", Takes::Value, kTraces},
    {"--guestmount", Takes::Value, kGuests},
    {"--guestkallsyms", Takes::Value, kGuests},
    {"--guestmodules", Takes::Value, kGuests},
    {"--guestvmlinux", Takes::Value, kGuests},
    {"--guest-code", Takes::Nothing, kGuests},
};

}  // namespace

std::span<const cli::AbsentOption> absent_script_options() { return kRows; }

}  // namespace tacho::report
