#include "report/views/export/export_formats.h"

namespace tacho::report {
namespace {

constexpr ExportFormat kExportFormats[] = {
    {"pprof", "gzipped protocol buffer of Go's pprof, Pyroscope, Parca, speedscope", export_pprof},
};

}  // namespace

std::span<const ExportFormat> export_formats() { return kExportFormats; }

}  // namespace tacho::report
