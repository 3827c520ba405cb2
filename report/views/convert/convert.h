// Rewrites a capture in another form (file or pipe, compressed or plain), as a whole or in part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/diagnostics.h"
#include "format/base/file.h"
#include "format/base/output.h"
#include "format/base/result.h"
#include "format/container/capture_reader.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"
#include "report/output/output_file.h"
#include "report/output/replaced_file.h"
#include "sandbox/process.h"
#include "symbolize/files/file_access.h"
#include "symbolize/files/pinned_files.h"

namespace tacho::report {

inline constexpr std::size_t kLongestRecord = 0xfff8;  // bytes: sizes have 16 bits and are multiples of 8

struct TargetOptions {
  std::string input, output;         // paths; "-" is standard input, standard output
  bool is_whole_or_nothing = false;  // name the file only when it is complete
  bool replaces_input = false;       // then replace the input, keeping its owner and mode
};

// The functions with which a writer writes its capture.
struct CopyOutput {
  // To be called first. Returns an empty file to read and write, or no descriptor: then call `write`.
  std::function<Result<format::Fd>()> begin;
  std::function<Result<>(format::Bytes)> write;
  // Completes the output.
  std::function<Result<>()> finish;
};

// The output of convert and redact. The parent process opens the file and gives it its name; a sandboxed
// child (sandbox/process.h) reads the input and writes to the open file.
class CaptureTarget {
 public:
  // Opens the file under a temporary name. To be called before the writing process is forked.
  static Result<CaptureTarget> open(TargetOptions options);

  // For a writer in this process.
  CopyOutput here();
  // For a writer in a sandboxed child: in_worker() there, prepare() in its parent, for sandbox::run_view().
  // `child` and `task` must outlive this, and this the child.
  CopyOutput in_worker(sandbox::Child& child);
  void prepare(sandbox::Task& task);

 private:
  explicit CaptureTarget(TargetOptions options) : options_(std::move(options)) {}
  Result<> begin_copy();
  Result<> make_empty();
  Result<> finish();

  TargetOptions options_;
  std::optional<FileState>
      input_state_;  // of an input to replace: refused if it has changed when the copy ends
  // Set while a temporary file exists; destroyed after `file_`, which removes it.
  std::unique_ptr<NoStopping> no_stopping_;
  std::optional<format::WholeOutput> file_;  // nullopt: standard output
  std::optional<OutputFile> child_output_;   // in a sandboxed child: the parent's end of the output
};

struct CaptureTask {
  TargetOptions target{};
  bool has_worker = true;
  bool can_restart = true;
  sandbox::FileTimes times{};
  std::vector<int> kept{};                      // descriptors that the work needs
  std::function<bool()> is_asked_to_stop = {};  // may be empty; called in the parent
};
// Writes a capture. The child is null without a worker.
using CaptureWork = std::function<Result<cli::ExitStatus>(const CopyOutput&, sandbox::Child* child)>;
// Calls `work` in a sandboxed child, or in this process without `has_worker`.
Result<cli::ExitStatus> make_capture(const CaptureTask& task, const CaptureWork& work);

// A change of a capture's content while it is copied, as redact makes it.
class CaptureChange {
 public:
  CaptureChange() = default;
  CaptureChange(const CaptureChange&) = delete;
  CaptureChange& operator=(const CaptureChange&) = delete;
  virtual ~CaptureChange() = default;

  // Called once before the first record: changes events and feature sections of the copy. Sections that are
  // not parsed (Features::raw) are not copied.
  virtual Result<> change_head(format::EventSet& events, format::Features& features) = 0;
  // Called for each record, in this machine's byte order. Returns the record itself, a new one in `scratch`,
  // or nullopt to drop it.
  virtual std::optional<format::RecordView> change(const format::RecordView& record,
                                                   format::ByteWriter& scratch) = 0;
};

enum class CaptureForm : std::uint8_t { File, Pipe };
enum class Packing : std::uint8_t { AsItIs, Plain, Compressed };

struct ConvertOptions {
  std::string input = "perf.data";
  format::ReadOptions capture;
  std::string output;  // "-": standard output
  CaptureForm form = CaptureForm::File;
  Packing packing = Packing::AsItIs;
  int level = 1;                    // of zstd, with Packing::Compressed
  std::string times;                // the value of --time; empty: all
  std::vector<std::string> events;  // names; empty: all
  std::vector<std::uint32_t> pids;  // keep only symbols of these (`change` drops their records); empty: all
  bool unwinds = false;             // replace copied stacks by call chains; records come in order of time
  std::string symfs;                // root of the files for unwinding; empty: this machine's
  const symbolize::PinnedFiles* pinned = nullptr;  // further files for unwinding
  symbolize::FileAccess* access = nullptr;         // access to files of modules; may be null
  // Changes the content and drops sections and records that are not parsed; null: copy everything. Must
  // outlive the conversion.
  CaptureChange* change = nullptr;
  bool is_whole_or_nothing = false;  // name the file only when it is complete
};

// Copies the capture and finishes the output. When the reader of an output pipe goes away, that is no error.
Result<> convert(const ConvertOptions& options, const CopyOutput& output, format::Diagnostics& diagnostics);

}  // namespace tacho::report
