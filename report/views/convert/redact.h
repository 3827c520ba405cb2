// tacho redact: makes a copy of a capture without private data.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/diagnostics.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/decode/payload.h"
#include "report/redaction.h"
#include "report/views/convert/convert.h"

namespace tacho::report {

// Redacts the records of a capture.

// Redacts the raw data of samples: payloads of BPF events and tracepoints.

class PayloadRedaction {
 public:
  // `events` and `features` are those of the input. All arguments must outlive this.
  PayloadRedaction(const format::EventSet& events, const format::Features& features,
                   const Redaction& redaction, const Aliases& aliases, const KaslrRemap& kernel)
      : schemas_(events, features),
        events_(&events),
        redaction_(&redaction),
        aliases_(&aliases),
        kernel_(&kernel) {}

  // Changes PERF_SAMPLE_RAW (in this machine's byte order) in place: texts and byte arrays become aliases,
  // addresses of kernel code are moved, other kernel addresses become aliases, and bytes of no field zero.
  void change(std::size_t event, std::span<std::byte> raw);

 private:
  void copy_field(const PayloadField& field, std::span<std::byte> raw);
  void hide_text(const PayloadField& field, std::span<std::byte> raw);
  void hide(std::span<std::byte> bytes, format::FieldKind kind);
  void move_addresses(const PayloadField& field, std::span<std::byte> bytes);

  EventSchemas schemas_;
  const format::EventSet* events_;
  const Redaction* redaction_;
  const Aliases* aliases_;
  const KaslrRemap* kernel_;
  std::vector<std::byte> before_;  // scratch
};

// redact --pid: drops what belongs to other processes.

class RedactProcesses {
 public:
  // Empty: keep all processes.
  explicit RedactProcesses(const std::vector<std::uint32_t>& pids) : pids_(pids.begin(), pids.end()) {}

  // To be called first for every record: collects the files that the kept processes map.
  void see(const format::RecordView& record, const format::EventSet& events);
  // False for records of other processes, samples without a pid, lists of threads and AUX traces. True for
  // records of no process: mappings and functions of the kernel, cgroups, lost events.
  bool keeps(const format::RecordView& record, const format::EventSet& events) const;
  // Drops perf maps of other processes, packed symbols and build ids of files that no kept process maps, and
  // lists of processes. Those of the kernel stay. An error when the symbol pack cannot be read.
  Result<> reduce(format::Features& features) const;

 private:
  bool is_kept(std::uint32_t pid) const { return pids_.contains(pid); }
  bool is_mapped(std::string_view path) const;
  bool keeps_own_record(const format::RecordView& record) const;
  Result<> reduce_pack(std::vector<std::byte>& section) const;

  std::unordered_set<std::uint32_t> pids_;
  std::unordered_set<std::string> mapped_;  // without " (deleted)"
};

class RecordRedaction {
 public:
  // `events` and `features` are those of the input. All arguments must outlive this. `time_shift` (ns) is
  // subtracted from each time. `chains` has the call chains of copied stacks; null: they are dropped with the
  // stacks.
  RecordRedaction(const format::EventSet& events, const format::Features& features,
                  const Redaction& redaction, const Aliases& aliases, const KaslrRemap& kernel,
                  std::uint64_t time_shift, const UnwoundChains* chains)
      : events_(&events),
        redaction_(&redaction),
        aliases_(&aliases),
        kernel_(&kernel),
        payloads_(events, features, redaction, aliases, kernel),
        time_shift_(time_shift),
        chains_(chains) {}

  // The redacted record, in `out`; nullopt: dropped. Only known fields are copied; other bytes and records of
  // unknown types are dropped.
  std::optional<format::RecordView> change(const format::RecordView& record, format::ByteWriter& out);
  // The number of dropped records of unknown types, by type.
  const std::map<std::uint32_t, std::uint64_t>& not_understood() const { return not_understood_; }

 private:
  // Bytes of a record that are replaced by `words`.
  struct Cut {
    std::size_t begin = 0, size = 0;
    std::vector<std::uint64_t> words{0};
  };
  bool change_sample(const format::RecordView& record, std::size_t event, format::ByteWriter& out);
  void change_registers(const format::Registers& registers, const format::RecordView& record);
  void add_unwound(const format::Sample& sample, const format::RecordView& record);
  void change_user_stack(const format::Sample& sample, const format::RecordView& record);
  void change_words(const format::U64Array& words, const format::RecordView& record, std::size_t step);
  bool change_kernel_record(const format::RecordView& record, const format::EventAttr& attr,
                            format::ByteWriter& out);
  bool change_own_record(const format::RecordView& record, format::ByteWriter& out);
  bool change_mapping(const format::RecordView& record, const format::EventAttr& attr,
                      format::ByteWriter& out);
  bool change_namespaces(const format::RecordView& record, std::size_t trailer, format::ByteWriter& out);
  void change_thread_map(const format::RecordView& record, format::ByteWriter& out);
  // Writes the first `fixed` bytes of the record, `text`, and the last `trailer` bytes. False: the record is
  // too short.
  static bool with_text(const format::RecordView& record, std::size_t fixed, std::string_view text,
                        std::size_t trailer, format::ByteWriter& out);
  std::string comm(std::string_view name) const;
  std::string container(std::string_view path) const;
  std::uint64_t moved(std::uint64_t address) const {
    return redaction_->hides(Content::Kernel) ? kernel_->moved(address) : address;
  }
  // Changes one word of `bytes`, if they are long enough.
  template <class Change>
  static void patch(std::vector<std::byte>& bytes, std::size_t at, Change&& change);
  void shift_time(std::vector<std::byte>& bytes, std::size_t at) const;

  const format::EventSet* events_;
  const Redaction* redaction_;
  const Aliases* aliases_;
  const KaslrRemap* kernel_;
  PayloadRedaction payloads_;
  std::uint64_t time_shift_;
  const UnwoundChains* chains_;
  std::map<std::uint32_t, std::uint64_t> not_understood_;
  format::SampleParser samples_;
  std::vector<std::byte> bytes_;  // scratch: a copy of the record, changed in place
  std::vector<Cut> cuts_;
};

// The rules for redacting event names and feature sections, with the symbol pack and attached files.

struct HeadRedaction {
  const Redaction& redaction;
  const Aliases& aliases;
  const KaslrRemap& kernel;
  std::uint64_t time_shift = 0;                 // ns
  std::vector<format::ContentClass> content{};  // feature section CONTENT of the copy
};

// Redacts `events` and `features`. Drops everything without a rule: sections that are not parsed, unknown
// attachments. An error when the symbol pack cannot be read, since its content is unknown then.
Result<> redact_head(const HeadRedaction& rules, format::EventSet& events, format::Features& features);

struct RedactOptions {
  ConvertOptions copy;                           // input, output, events and times
  symbolize::FileAccess* name_access = nullptr;  // as copy.access, for files from which names are read
  bool in_step = false;                          // use one thread only
  bool in_place = false;
  Redaction redaction;
  std::string key;                  // --key; empty: a random one
  std::vector<std::uint32_t> pids;  // the processes to keep; empty: all
};

struct RedactedClass {
  Content content = Content::CommandLine;
  How how = How::Keep;
  std::uint64_t number = 0;  // in the input
  std::string_view unit;
  std::string example, becomes;  // an example and its redacted form; may be empty
};

struct Redacted {
  std::vector<RedactedClass> classes;  // all of them
  std::uint64_t not_understood = 0;    // dropped records of unknown types
};

// --dry-run: reads the whole capture and reports its private data and what redact would do with it.
Result<Redacted> examine_for_redaction(const RedactOptions& options, format::Diagnostics& diagnostics);
// The same, and writes the copy, which gets its name when it is complete. Captures in pipe form or of the
// other byte order are refused, with what to do.
Result<Redacted> redact(const RedactOptions& options, const CopyOutput& output,
                        format::Diagnostics& diagnostics);

}  // namespace tacho::report
