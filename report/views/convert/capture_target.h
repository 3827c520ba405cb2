// Where a capture goes that is made of another one. Whoever may write opens the file and names it; whoever
// reads the other capture, in a sandboxed child (sandbox/process.h), writes to what is open.
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
  bool is_whole_or_nothing = false;      // a file takes its name when it is whole, and not when it is begun
  bool replaces_input = false;           // and then it takes the input's, with its owner and mode
  std::optional<FileState> input_state;  // nothing is replaced when the input has another one by then
};

// What writes a capture asks of its target.
struct CaptureOutput {
  // The head is known. An empty file, to be read and written; without one the bytes go to `write`.
  std::function<Result<format::Fd>()> begin;
  std::function<Result<>(format::Bytes)> write;
  // All of it is there.
  std::function<Result<>()> finish;
};

class CaptureTarget {
 public:
  // Opens a file without its name. Before any process is forked that writes to it.
  static Result<CaptureTarget> open(TargetOptions options);

  // For a writer in this process.
  CaptureOutput here();
  // For a writer in a worker, there and, as sandbox::run_view() wants it, in its parent. All must live as
  // long as this, and this as long as the worker.
  CaptureOutput in_worker(sandbox::Child& child);
  void prepare(sandbox::Task& task);

 private:
  explicit CaptureTarget(TargetOptions options) : options_(std::move(options)) {}
  Result<> begin();
  Result<> make_empty();
  Result<> finish();

  TargetOptions options_;
  // While there is a file under a name that it must not keep; outlives the file, which takes that name away.
  std::unique_ptr<NoStopping> not_stopped_;
  std::optional<format::WholeOutput> file_;  // nothing: standard output
  std::optional<OutputFile> elsewhere_;      // in a worker
};

// Lets `make` read the input and write to a target, in a worker or, without `has_worker`, here.
struct Making {
  TargetOptions target{};
  bool has_worker = true;
  bool can_restart = true;
  sandbox::FileTimes times{};
  std::function<bool()> is_asked_to_stop = {};  // may be empty; here, also where a worker makes it
};
// `child`: null where this process makes it.
using Make = std::function<Result<cli::ExitStatus>(const CaptureOutput&, sandbox::Child* child)>;
Result<cli::ExitStatus> make_capture(const Making& making, const Make& make);

}  // namespace tacho::report
