#include "report/views/export/export_formats.h"

namespace tacho::report {
namespace {

constexpr ExportFormat kExportFormats[] = {
    {"pprof", "gzipped protocol buffer, for go tool pprof, Pyroscope, Parca, speedscope", export_pprof},
    {"speedscope", "JSON of speedscope: a profile for each weight of each event", export_speedscope},
    {"callgrind", "costs by source line and call, for KCachegrind and callgrind_annotate", export_callgrind},
};

}  // namespace

std::span<const ExportFormat> export_formats() { return kExportFormats; }

}  // namespace tacho::report
