// The output of convert and redact. The parent process opens the file and gives it its name; a sandboxed
// child (sandbox/process.h) reads the input and writes to the open file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/exit_status.h"
#include "format/base/diagnostics.h"
#include "format/base/file.h"
#include "format/base/output.h"
#include "format/base/result.h"
#include "report/output/output_file.h"
#include "sandbox/process.h"

namespace tacho::report {

struct TargetOptions {
  std::string input, output;             // paths; "-" is standard input, standard output
  bool is_whole_or_nothing = false;      // name the file only when it is complete
  bool replaces_input = false;           // then replace the input, keeping its owner and mode
  std::optional<FileState> input_state;  // do not replace an input that has changed since
};

// The functions with which a writer writes its capture.
struct CaptureOutput {
  // To be called first. Returns an empty file to read and write, or no descriptor: then call `write`.
  std::function<Result<format::Fd>()> begin;
  std::function<Result<>(format::Bytes)> write;
  // Completes the output.
  std::function<Result<>()> finish;
};

class CaptureTarget {
 public:
  // Opens the file under a temporary name. To be called before the writing process is forked.
  static Result<CaptureTarget> open(TargetOptions options);

  // For a writer in this process.
  CaptureOutput here();
  // For a writer in a sandboxed child: in_worker() there, prepare() in its parent, for sandbox::run_view().
  // `child` and `task` must outlive this, and this the child.
  CaptureOutput in_worker(sandbox::Child& child);
  void prepare(sandbox::Task& task);

 private:
  explicit CaptureTarget(TargetOptions options) : options_(std::move(options)) {}
  Result<> begin();
  Result<> make_empty();
  Result<> finish();

  TargetOptions options_;
  // Set while a temporary file exists; destroyed after `file_`, which removes it.
  std::unique_ptr<NoStopping> not_stopped_;
  std::optional<format::WholeOutput> file_;  // nullopt: standard output
  std::optional<OutputFile> elsewhere_;      // in a sandboxed child
};

// Options of make_capture(), which calls `make` in a sandboxed child, or here without `has_worker`.
struct Making {
  TargetOptions target{};
  bool has_worker = true;
  bool can_restart = true;
  sandbox::FileTimes times{};
  std::function<bool()> is_asked_to_stop = {};  // may be empty; called in the parent
};
// `child` is null without a worker.
using Make = std::function<Result<cli::ExitStatus>(const CaptureOutput&, sandbox::Child* child)>;
Result<cli::ExitStatus> make_capture(const Making& making, const Make& make);

}  // namespace tacho::report
