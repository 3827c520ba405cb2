#include "symbolize/symbol_options.h"

namespace tacho::symbolize {

bool names_are_given(const SymbolOptions& options, ModuleKind kind) {
  switch (kind) {
    case ModuleKind::Kernel:
      return !options.kallsyms.empty() || !options.vmlinux.empty();
    case ModuleKind::KernelModule:
      return !options.kallsyms.empty();
    case ModuleKind::Anonymous:
      return !options.perf_map_dir.empty() || !options.symfs.empty();
    default:
      return !options.symfs.empty();
  }
}

}  // namespace tacho::symbolize
