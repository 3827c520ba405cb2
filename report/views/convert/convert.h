// Rewrites a capture in another form (file or pipe, compressed or plain), as a whole or in part: the output,
// the selection of events and times, unwinding, and the copy itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/diagnostics.h"
#include "format/base/file.h"
#include "format/base/output.h"
#include "format/base/result.h"
#include "format/base/seeded_hash.h"
#include "format/container/capture_reader.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"
#include "report/output/output_file.h"
#include "report/samples/filter.h"
#include "report/samples/session.h"
#include "sandbox/process.h"
#include "symbolize/address_space.h"
#include "symbolize/files/file_access.h"
#include "symbolize/symbol_options.h"
#include "symbolize/unwind/unwind.h"

namespace tacho::report {

struct TargetOptions {
  std::string input, output;             // paths; "-" is standard input, standard output
  bool is_whole_or_nothing = false;      // name the file only when it is complete
  bool replaces_input = false;           // then replace the input, keeping its owner and mode
  std::optional<FileState> input_state;  // do not replace an input that has changed since
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
  Result<> begin();
  Result<> make_empty();
  Result<> finish();

  TargetOptions options_;
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
  std::function<bool()> is_asked_to_stop = {};  // may be empty; called in the parent
};
// Writes a capture. The child is null without a worker.
using CaptureWork = std::function<Result<cli::ExitStatus>(const CopyOutput&, sandbox::Child* child)>;
// Calls `work` in a sandboxed child, or in this process without `has_worker`.
Result<cli::ExitStatus> make_capture(const CaptureTask& task, const CaptureWork& work);

// convert --events and --time: selects the events and samples of the copy, and assigns other records to the
// events that stay.
class ConvertSelection {
 public:
  // `names` are the events to keep, `times` is the value of --time; both may be empty: all. Refused when the
  // capture lacks one of them. `events` must outlive this.
  static Result<ConvertSelection> create(const std::vector<std::string>& names, const std::string& times,
                                         const format::EventSet& events, const format::Features& features);

  // The events of the copy: `events` itself, or a part of them in `scratch`.
  const format::EventSet& events(format::EventSet& scratch) const;
  // Adjusts the feature sections to the events of the copy.
  void adjust(format::Features& features) const;
  // A record (in this machine's byte order) in the copy: itself, a new one in `scratch`, or nullopt: dropped.
  std::optional<format::RecordView> apply(const format::RecordView& record, format::ByteWriter& scratch,
                                          format::Diagnostics& diagnostics) const;

 private:
  explicit ConvertSelection(const format::EventSet& events) : all_(&events) {}
  Result<> choose(const std::vector<std::string>& names, const format::Features& features);
  void keep_groups_whole(const format::Features& features);
  Result<> choose_times(const std::string& times, const format::Features& features);
  bool keeps(std::size_t event) const { return kept_.empty() || (event < kept_.size() && kept_[event]); }
  bool keeps_id(std::uint64_t id) const;
  std::optional<format::RecordView> apply_to_kernel(const format::RecordView& record,
                                                    format::ByteWriter& scratch,
                                                    format::Diagnostics& diagnostics) const;
  format::RecordView move_to_first_event(const format::RecordView& record, const format::EventAttr& from,
                                         format::ByteWriter& scratch) const;
  format::RecordView shorten_id_index(const format::RecordView& record, format::ByteWriter& scratch) const;

  const format::EventSet* all_;
  std::vector<bool> kept_;  // by event; empty: all
  std::size_t first_ = 0;   // the first event that stays; it gets mmap, comm and fork records of the others
  Filter filter_;           // times only
};

// The index of a sample's stack, by a hash of the sample's bytes.
using ChainsBySample = std::unordered_map<std::uint64_t, std::uint32_t, format::SeededHash>;

// All unwound call chains of a capture; redact makes them before it drops the copied stacks.
class UnwoundChains {
 public:
  // Reads the capture and the files of its modules, with the FileAccess of `reading`.
  static Result<UnwoundChains> read(SessionOptions reading);

  // The user part of the call chain of a sample (given by its bytes), leaf first; may be empty.
  std::span<const std::uint64_t> of(format::Bytes sample) const;

 private:
  UnwoundChains() = default;

  format::SeededTextHash hash_;
  std::vector<std::vector<std::uint64_t>> chains_;
  ChainsBySample by_sample_;
};

// convert --unwind: replaces copied stacks and registers (--call-graph dwarf) by call chains.
class ConvertUnwinding {
 public:
  // Refused when no event has copied stacks. `events` and `features` must outlive this.
  static Result<ConvertUnwinding> create(const symbolize::SymbolOptions& symbols,
                                         const format::EventSet& events, const format::Features& features);

  // The events of the copy.
  static format::EventSet events_of_copy(const format::EventSet& events);
  // Changes the feature sections to those of the copy.
  static void adjust(format::Features& features);

  // Applies a record of mappings or processes. To be called in order of time.
  void note(const format::RecordView& record, const format::EventAttr& attr,
            format::Diagnostics& diagnostics);
  // The sample (in this machine's byte order) with a call chain, in `scratch`; the record itself when there
  // is nothing to unwind; nullopt when it is damaged, which `diagnostics` counts.
  std::optional<format::RecordView> apply(const format::RecordView& record, const format::EventAttr& attr,
                                          format::ByteWriter& scratch, format::Diagnostics& diagnostics);
  // Reports modules in which call chains ended because unwind information was missing.
  void report(format::Diagnostics& diagnostics) const;

 private:
  ConvertUnwinding(const symbolize::SymbolOptions& symbols, const format::Features& features);

  std::unique_ptr<symbolize::AddressSpaces> spaces_;  // at a stable address: the unwinder refers to it
  symbolize::Unwinder unwinder_;
};

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

// A part of a capture: samples of some processes and times; empty: all.
struct CapturePart {
  std::string input;
  format::ReadOptions capture;
  symbolize::FileAccess* access = nullptr;  // may be null
  std::vector<std::uint32_t> pids;
  std::string times;  // as --time takes it
};

// Reads the part's samples of `events` and drops from `features` what they did not hit: packed symbols,
// copies of files, perf maps and jitdumps. Drops nothing if stacks were copied, since their addresses are
// known only after unwinding.
Result<> keep_needed_symbols(const CapturePart& part, const format::EventSet& events,
                             format::Features& features);

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
  symbolize::FileAccess* access = nullptr;  // access to files of modules; may be null
  // Changes the content and drops sections and records that are not parsed; null: copy everything. Must
  // outlive the conversion.
  CaptureChange* change = nullptr;
  bool is_whole_or_nothing = false;  // name the file only when it is complete
};

// Copies the capture and finishes the output. When the reader of an output pipe goes away, that is no error.
Result<> convert(const ConvertOptions& options, const CopyOutput& output, format::Diagnostics& diagnostics);

}  // namespace tacho::report
