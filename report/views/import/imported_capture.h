// A capture that is made of a profile of another tool: its events, modules with names, threads and samples,
// written as perf.data with the names in its symbol pack.
//
// Formats such as folded stacks have names and no addresses. Each frame gets an address of its own in a
// module whose build id is made from the input, so that no file of any host is taken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/base/seeded_hash.h"
#include "format/container/capture_writer.h"
#include "format/extensions/payload_schema.h"
#include "format/extensions/symbol_pack.h"
#include "format/records/build_id.h"
#include "report/views/convert/convert.h"

namespace tacho::report {

// An event, whose periods are the weights of its samples.
struct ImportedEvent {
  std::string name;
  std::string unit;                 // "ns", "bytes", ...; empty: a count
  std::uint64_t sample_period = 1;  // of the attribute; 1: every sample has its own
};
using PidSet = std::unordered_set<std::uint32_t, format::SeededHash>;

// A fact of samples that perf's records have no field for: a field of the payload of all events.
struct ImportedLabel {
  std::string name;
  std::string unit;
  std::uint32_t text_bytes = 0;  // room for a text; 0: it is a number
};
struct ImportedLabelValue {
  std::string_view text;
  std::int64_t number = 0;
};
// What the profile says of itself.
struct ImportedFacts {
  std::uint64_t begin = 0;   // ns since 1970; 0: unknown
  std::uint64_t length = 0;  // ns; 0: unknown
  std::vector<std::string> comments;
};
struct ImportedLayout {
  std::vector<ImportedEvent> events;
  std::vector<ImportedLabel> labels;
  bool has_times = false, has_cpus = false;
  ImportedFacts facts{};
  // Processes and threads that samples name themselves; threads without such numbers get others.
  PidSet pids;
};

// A function at an address; several, innermost first, are inlined calls.
struct ImportedLine {
  std::string_view function, file;  // file: empty: unknown
  std::uint32_t line = 0;           // 0: unknown
};

enum class ImportedModuleId : std::uint32_t {};
enum class ImportedFrameId : std::uint32_t {};

// A thread; without a pid each name is a process of its own.
struct ImportedThread {
  std::optional<std::uint32_t> pid, tid;
  std::string_view comm;
};
struct ImportedSample {
  std::size_t event = 0;
  std::uint64_t weight = 0;
  ImportedThread thread;
  std::span<const ImportedFrameId> frames;       // leaf first
  std::uint64_t time = 0;                        // ns, with has_times
  std::uint32_t cpu = 0;                         // with has_cpus
  std::span<const ImportedLabelValue> labels{};  // as many as the layout has
};

class ImportedCapture {
 public:
  // `source`: name of the module of functions without one, and of threads without a name; `digest`: of the
  // input. `diagnostics` must outlive this.
  ImportedCapture(const std::string& source, std::uint64_t digest, format::Diagnostics& diagnostics);

  format::Diagnostics& diagnostics() { return *diagnostics_; }
  const std::string& source() const { return source_; }

  // A module whose frames have no addresses. Equal paths are one module; empty: the source.
  ImportedModuleId named_module(std::string_view path);
  // A module with its addresses: file offsets, or of the kernel runtime addresses. Nothing: they cannot be
  // kept, as they overlap another module's or are too many; its frames then belong to named_module().
  std::optional<ImportedModuleId> placed_module(std::string_view path, const format::BuildId& id,
                                                std::uint64_t first, std::uint64_t last);
  ImportedFrameId add_frame(ImportedModuleId module, std::span<const ImportedLine> lines);
  // `address` is in the module's range; without lines it has no name.
  ImportedFrameId add_frame_at(ImportedModuleId module, std::uint64_t address,
                               std::span<const ImportedLine> lines);

  // Then samples. Modules, but not frames, are known before the first one.
  Result<> begin_samples(const CopyOutput& output, ImportedLayout layout);
  Result<> add_sample(const ImportedSample& sample);
  // Writes the names and closes the capture.
  Result<> finish(const CopyOutput& output);

 private:
  static constexpr std::uint16_t kMostFrames = 8000;  // of a sample: a record ends at 64 KiB

  struct Module {
    format::PackedModule packed;                           // what the pack says of it
    std::uint64_t start = 0, length = 0, page_offset = 0;  // of its mapping
    bool is_kernel = false;
    std::uint64_t next = 0;  // the next address, of frames without
    std::unordered_map<std::string, std::uint32_t, format::SeededTextHash> symbols;  // by name
  };
  struct Frame {
    std::uint64_t ip = 0;
    bool is_kernel = false;
  };
  struct KnownThread {
    std::uint32_t pid = 0;
    std::string comm;
  };

  ImportedModuleId add_module(Module module, std::string_view path);
  void pack_lines(Module& module, std::uint64_t address, std::span<const ImportedLine> lines);
  format::BuildId made_build_id(std::size_t number) const;
  format::EventSet events() const;
  Result<format::Features> features() const;
  std::uint32_t unused_pid();
  struct Ids {
    std::uint32_t pid = 0, tid = 0;
  };
  Ids ids_of(const ImportedThread& thread, std::string_view comm, bool has_user_frames);
  void start_process(std::uint32_t pid);
  void write_mapping(const Module& module, std::uint32_t pid);
  Ids start_thread(const ImportedThread& thread, bool has_user_frames);
  void write_chain(std::span<const ImportedFrameId> frames);
  void write_payload(const ImportedSample& sample);
  Result<> write_out();

  std::string source_;
  std::uint64_t digest_;
  format::Diagnostics* diagnostics_;
  format::SymbolPack pack_;
  std::vector<Module> modules_;
  std::unordered_map<std::string, ImportedModuleId, format::SeededTextHash> named_;
  std::set<std::pair<std::string, format::BuildId>> placed_;
  std::size_t kernel_modules_ = 0;
  std::vector<Frame> frames_;
  std::uint64_t next_named_, next_placed_;  // addresses for further modules

  ImportedLayout layout_;
  std::optional<format::CaptureWriter> writer_;
  format::ByteWriter records_;
  std::size_t trailer_ = 0;  // bytes of sample ids
  std::unordered_map<std::uint32_t, KnownThread, format::SeededHash>
      threads_;       // by tid, which alone tells threads apart
  PidSet processes_;  // with mappings
  std::unordered_map<std::string, std::uint32_t, format::SeededTextHash>
      own_pids_;  // of threads without a pid, by name
  std::optional<std::uint32_t>
      first_pid_;  // its mappings are all modules; other processes are forked from it
  std::uint32_t next_pid_ = 1;
  std::uint64_t cut_stacks_ = 0;
  std::uint64_t written_ = 0;  // bytes of records
};

// Sums of weights with fractions as whole numbers: each is rounded so that their sum is right.
class WholeWeights {
 public:
  std::uint64_t next_weight(double weight);

 private:
  double sum_ = 0;
  std::uint64_t given_ = 0;
};

}  // namespace tacho::report
