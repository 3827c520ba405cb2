// Finds the symbol list (kallsyms) of the recorded kernel.
#pragma once

#include <optional>
#include <string>

#include "format/container/features.h"
#include "symbolize/address_space.h"
#include "symbolize/files/file_ahead.h"
#include "symbolize/names/kallsyms.h"
#include "symbolize/symbol_options.h"

namespace tacho::symbolize {

class KernelNames {
 public:
  // All must outlive it.
  KernelNames(const SymbolOptions& options, const format::Features& features, const KernelSpace& kernel)
      : options_(&options), features_(&features), kernel_(&kernel) {}

  // Read on first use: the file of --kallsyms, the one in the capture, or this machine's if it runs the
  // recorded kernel.
  Result<Kallsyms>& kallsyms();
  // Of the kernel or one of its modules, which must be at its recorded address: otherwise it is another
  // boot's, even if that kernel is at the recorded address.
  Result<SymbolTable*> table_of(const Module& module);
  // Starts to read the list in the background, because it will be needed.
  void expect();
  // By its build id, or where the capture has none (no sample lay in the kernel) by the names of host and
  // kernel. Never with --symfs, which names another machine.
  bool runs_recorded_kernel() const;
  // By the names of host and kernel.
  bool is_on_recording_host() const;

 private:
  Result<Kallsyms> read();

  const SymbolOptions* options_;
  const format::Features* features_;
  const KernelSpace* kernel_;
  std::optional<FileAhead> running_;  // this machine's list, read in the background
  std::optional<Result<Kallsyms>> kallsyms_;
};

}  // namespace tacho::symbolize
