#include "report/views/export/export_formats.h"

namespace tacho::report {
namespace {

constexpr ExportFormat kExportFormats[] = {
    {"pprof", "gzipped protocol buffer, for go tool pprof, Pyroscope, Parca, speedscope", export_pprof},
    {"speedscope", "JSON of speedscope: a profile for each weight of each event", export_speedscope},
    {"callgrind", "costs by source line and call, for KCachegrind and callgrind_annotate", export_callgrind},
    {"firefox", "processed profile of the Firefox Profiler, which Perfetto reads too", export_firefox},
    {"chrome", "trace events of Chrome, for Perfetto and speedscope", export_chrome},
    {"perfetto", "trace of Perfetto: samples, events and waits over time", export_perfetto},
    {"otlp@1.11", "OpenTelemetry profiles of that version", export_otlp},
    {"bolt", "pre-aggregated branches of one binary, for perf2bolt -pa", export_bolt},
    {"autofdo", "branches of one binary as text, for create_llvm_prof --profiler=text", export_autofdo},
    {"folded", "stacks and weights as text: tacho folded, with its options", export_folded},
    {"json", "samples one by one, one JSON object a line: tacho script --json, with its options",
     export_json},
    {"csv", "groups of samples with counts and sums: tacho table --csv, with its options", export_csv},
    {"tables", "a folder of CSV or JSON tables packed by zstd, for DuckDB, ClickHouse and others",
     export_tables},
};

}  // namespace

std::span<const ExportFormat> export_formats() { return kExportFormats; }

}  // namespace tacho::report
